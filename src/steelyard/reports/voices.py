"""Statistics of runs with several judges: votes of a panel, and who decided what in a routed judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steelyard.protocols.vocabulary import Vocabulary, name_of, parts_of
from steelyard.records import AnyItem, Part, Verdict
from steelyard.reports.model import Routing, SavedCalls, SecondOpinions, Votes
from steelyard.reports.tally import count_bounded
from steelyard.stats.intervals import wilson


class VotesTally:
    """How far judges agreed, by kind of item."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._shares: dict[str, list[float]] = {}

    def add(self, verdict: Verdict) -> None:
        if all(item.confidence is None for item in verdict.items):
            return
        for item in facts(verdict, self._words):
            if item.confidence is None or item.confidence_kind != "votes":
                continue
            sums = self._shares.setdefault(item.kind, [0, 0.0, 0, 0])
            sums[0] += 1
            sums[1] += item.confidence
            sums[2] += item.confidence == 1
            sums[3] += "split" in item.flags

    def summary(self) -> dict[str, Votes]:
        return {
            kind: Votes(n=int(n), mean=total / n, unanimous=int(unanimous), split=int(split))
            for kind, (n, total, unanimous, split) in self._shares.items()
        }


class RoutingTally:
    """Which judge of a routed one gave how many labels, and how far the second agrees where it was asked too."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._decided: dict[str, Counter[str]] = {}
        self._opinions: dict[str, Counter[bool]] = {}

    def add(self, verdict: Verdict) -> None:
        labelled = (one for item in verdict.items for one in (item, *parts_of(item)))
        if not any(one.judge or one.second_opinion for one in labelled):
            return
        for item in facts(verdict, self._words):
            parts, of = parts_of(item), self._words.kind_of(item).parts
            for part in parts:
                self._count(of.name if of else item.kind, part)
            if not parts:
                self._count(item.kind, item)

    def _count(self, kind: str, item: AnyItem | Part) -> None:
        if item.judge:
            count_bounded(self._decided.setdefault(kind, Counter()), item.judge)
        if item.second_opinion:
            self._opinions.setdefault(kind, Counter())[item.second_opinion.agrees] += 1

    def summary(self, saved: Iterable[Mapping[str, Any]]) -> Routing | None:
        if not self._decided:
            return None
        return Routing(
            decided={kind: dict(counts.most_common()) for kind, counts in self._decided.items()},
            second_opinions={
                kind: SecondOpinions(
                    n=counts.total(), agreed=counts[True], interval=wilson(counts[True], counts.total())
                )
                for kind, counts in self._opinions.items()
            },
            saved=tuple(SavedCalls.model_validate(one) for one in saved),
        )


def facts(verdict: Verdict, words: Vocabulary) -> Iterator[AnyItem]:
    """The items of a verdict; of those that are one fact in several groups, the first."""
    seen: set[tuple[str, str]] = set()
    for item in verdict.items:
        place = item.kind, name_of(item)
        if not (words.kind_of(item).once and place in seen):
            seen.add(place)
            yield item
