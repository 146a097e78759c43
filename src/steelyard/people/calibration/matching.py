"""Matches human labels to items. Labels without an unambiguous match are left out, counted and listed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from steelyard.people.label_targets import Slot, slots_of
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary
from steelyard.records import Sample, Verdict
from steelyard.reports.build import cluster_of
from steelyard.reports.calibration.model import Unmatched
from steelyard.stats import Cluster
from steelyard.store.labels import HumanLabel, digest
from steelyard.text import normalise

MOST_EXAMPLES = 20


class Rated(NamedTuple):
    """A slot with human labels."""

    slot: Slot
    sample: str
    cluster: int
    tags: tuple[str, ...]
    weight: float
    people: Mapping[str, str]
    settled: str | None = None
    """What somebody decided after people had disagreed; it counts instead of their majority."""


@dataclass
class Matcher:
    """Takes the judged samples one by one and finds the human labels of each."""

    labels: Sequence[HumanLabel]
    run: str = ""
    unmatched: Counter[str] = field(default_factory=Counter)
    examples: list[Unmatched] = field(default_factory=list)
    used: int = 0

    def __post_init__(self) -> None:
        self._by_sample: dict[str, list[HumanLabel]] = defaultdict(list)
        for label in self.labels:
            self._by_sample[label.sample].append(label)
        self._clusters: dict[Cluster, int] = {}

    def cluster(self, sample: Sample | None, verdict: Verdict) -> int:
        """The number of what the sample depends on: its question, or itself."""
        shared = cluster_of(sample)
        return self._clusters.setdefault(verdict.id if shared is None else shared, len(self._clusters))

    def match(self, sample: Sample | None, verdict: Verdict, cluster: int) -> list[Rated]:
        """The slots of one sample that people filled."""
        labels = self._by_sample.pop(verdict.id, None)
        if labels is None:
            return []
        found = _Slots(slots_of(verdict), vocabulary(verdict.protocol))
        about = digest(sample) if sample else ""
        people: dict[Slot, dict[str, str]] = defaultdict(dict)
        weights: dict[Slot, float] = {}
        settled: dict[Slot, HumanLabel] = {}
        for label in labels:
            fit = self._fit(label, found, about)
            if isinstance(fit, str):
                self._leave(label, fit)
                continue
            self.used += 1
            weights[fit] = label.weight
            if not label.adjudicated:
                people[fit][label.annotator] = label.label
            elif fit not in settled or label.time >= settled[fit].time:
                settled[fit] = label
        tags = sample.tags if sample else ()
        decided = {slot: label.label for slot, label in settled.items()}
        return [
            Rated(slot, verdict.id, cluster, tags, weight, people.get(slot, {}), decided.get(slot))
            for slot, weight in weights.items()
        ]

    def finish(self) -> None:
        """After the last sample: what is left is about samples that the run does not have."""
        for labels in self._by_sample.values():
            for label in labels:
                self._leave(label, "no_sample")
        self._by_sample.clear()

    def _fit(self, label: HumanLabel, found: _Slots, about: str) -> Slot | str:
        if label.about and about and label.about != about:
            return "other_text"
        elsewhere = bool(label.run and self.run and label.run != self.run)
        if elsewhere and not label.about:
            return "other_run"
        if elsewhere and not label.text and found.by_judge(label.kind):
            return "other_run"
        return found.find(label)

    def _leave(self, label: HumanLabel, reason: str) -> None:
        self.unmatched[reason] += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(Unmatched(reason=reason, sample=label.sample, kind=label.kind, item=label.item))


class _Slots:
    """The slots of a sample, by number and by text."""

    def __init__(self, slots: Iterable[Slot], vocab: Vocabulary) -> None:
        self._vocab = vocab
        self._by_number: dict[tuple[str, int | None, int | None], Slot] = {}
        self._by_text: dict[tuple[str, int | None, str], list[Slot]] = defaultdict(list)
        for slot in slots:
            self._by_number[slot.kind, slot.turn, slot.item] = slot
            self._by_text[slot.kind, slot.turn, normalise(slot.text)].append(slot)

    def by_judge(self, aspect: str) -> bool:
        """Whether a judge made the items, so that their numbers differ between runs."""
        kind = self._vocab.kind_with(aspect)
        return kind is not None and kind.by_judge

    def find(self, label: HumanLabel) -> Slot | str:
        slot = self._by_number.get((label.kind, label.turn, label.item))
        kind = self._vocab.kind_with(label.kind)
        # The text of a named item is its name in the language of the day.
        if not label.text or (kind and kind.identity == "name"):
            return slot or "no_item"
        text = normalise(label.text)
        if slot and normalise(slot.text) == text:
            return slot
        same = self._by_text.get((label.kind, label.turn, text), [])
        return same[0] if len(same) == 1 else "other_item"
