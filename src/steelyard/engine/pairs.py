"""Stored runs over the same samples as pairs of answers to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from steelyard.errors import ConfigError, InputError
from steelyard.records import RagSample, Sample
from steelyard.store import RunRow, Store


class PairedRuns:
    """The answers of two or more runs to the same questions, two by two; iterates over samples with two answers.

    Samples are paired by id. One that is missing in a run is left out there; another question under the same id is a
    bad row. Where there are more than two runs, each is compared with each, and ids say which: `q1#1-3`.
    """

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self._store = store
        self._rows = [store.run(name) for name in runs]
        self.ids = [row.id for row in self._rows]
        if len(set(self.ids)) < 2 or len(set(self.ids)) < len(self.ids):
            raise ConfigError("answers are compared between different runs; name two or more, each once")
        self.names = _names(self._rows)
        if not any(self):
            raise ConfigError(f"the runs {', '.join(self.ids)} have no sample in common")

    def __iter__(self) -> Iterator[Sample | InputError]:
        for (one, a), (two, b) in combinations(enumerate(self._rows), 2):
            mark = f"#{one + 1}-{two + 1}" if len(self._rows) > 2 else ""
            for first, _ in self._store.verdicts(a.id):
                found = self._store.verdict(b.id, first.id)
                if found is not None:
                    yield self._pair(first, found[0], (one, two), f"{first.id}{mark}")

    def _pair(self, first: Sample, second: Sample, places: tuple[int, int], id: str) -> RagSample | InputError:
        if not isinstance(first, RagSample) or not isinstance(second, RagSample):
            raise ConfigError("answers are compared, not dialogues; name runs that judged answers")
        if first.question.strip() != second.question.strip():
            runs = " and ".join(self.ids[at] for at in places)
            return InputError(f"{first.id!r} is another question in run {runs}", field="question")
        return first.model_copy(
            update={
                "id": id,
                "other_answer": second.answer,
                "other_model": second.model,
                "answer_of": tuple(self.names[at] for at in places),
                # Either answer may rest on what only its own retriever brought.
                "references": tuple(dict.fromkeys((*first.references, *second.references))),
                "reference_answer": first.reference_answer or second.reference_answer,
            }
        )

    def alone(self) -> int:
        """How many samples stand in some of the runs only."""
        counts = Counter(sample.id for row in self._rows for sample, _ in self._store.verdicts(row.id))
        return sum(n < len(self._rows) for n in counts.values())


def _names(rows: Sequence[RunRow]) -> list[str]:
    """What the runs are called: the name that the user gave, where it is given once; else the id."""
    given = [row.name for row in rows]
    return [name if name and given.count(name) == 1 else row.id for name, row in zip(given, rows, strict=True)]
