"""Which samples a file carries in full: the lowest first, bounded, chosen while the verdicts stream by."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

from steelyard.records import Sample, Verdict
from steelyard.reports.build import bad_labels, words_of


class ChosenSample(NamedTuple):
    """A sample to show. `metric` and `score` say what ranked it; both are null where it has no main score."""

    rank: tuple[int, float, int, str]
    verdict: Verdict
    sample: Sample | None
    metric: str | None
    score: float | None


class Lowest:
    """At most `most` samples: low scores first, then what could not be judged, then what has full marks."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chosen: list[ChosenSample] = []
        self.n = 0

    def add(self, verdict: Verdict, sample: Sample | None = None) -> None:
        self.n += 1
        vocab = words_of(verdict)
        metric, score = vocab.main_score(verdict.scores) or (None, None)
        goodness = vocab.metric(metric).goodness(score) if metric and score is not None else 0.0
        rank = (_class(verdict, metric, score), goodness, -len(bad_labels(verdict)), verdict.id)
        chosen = ChosenSample(rank, verdict, sample, metric, score)
        if self._most and (len(self._chosen) < self._most or chosen.rank < self._chosen[-1].rank):
            insort(self._chosen, chosen, key=lambda entry: entry.rank)
            del self._chosen[self._most :]

    def chosen(self) -> tuple[ChosenSample, ...]:
        return tuple(self._chosen)


def _class(verdict: Verdict, metric: str | None, score: float | None) -> int:
    if metric is None or score is None:
        return 3 if verdict.status == "judged" else 1
    return 2 if score == words_of(verdict).metric(metric).best else 0
