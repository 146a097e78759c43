"""A labelling queue: the next item of each person, progress, and disagreements."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from steelyard.errors import FormRefused
from steelyard.people.calibration.matching import Rated
from steelyard.people.calibration.measure import between_people
from steelyard.people.label_targets import Slot
from steelyard.records import Record
from steelyard.reports.calibration.model import Figure
from steelyard.store import LabelQueue, QueueItem
from steelyard.store.labels import HumanLabel
from steelyard.store.queue_table import Claim

Key = tuple[str, str, int | None, int | None]
# Whoever was given a sample and has labelled nothing for so long is not waited for.
PATIENCE = timedelta(hours=1)
MOST_PEOPLE = 2


def labelled_twice(samples: Sequence[str], share: float, seed: int) -> frozenset[str]:
    """The samples that two people label: so large a share, at random."""
    if not 0 <= share <= 1:
        problem = f"the share that two people label is between 0 and 1, not {share:g}"
        raise FormRefused(problem, "share", field="share")
    every = sorted(set(samples))
    n = round(share * len(every))
    # At least one where any are wanted: without one there is no agreement to measure.
    return frozenset(random.Random(seed).sample(every, max(n, 1) if share and every else 0))


class PersonShare(Record):
    """How many items one person has labelled."""

    person: str
    n: int


class Agreement(Record):
    """Agreement of people who labelled the same items, on one kind of label; samples are resampled whole."""

    kind: str
    n: int
    raw: Figure
    kappa: Figure
    alpha: Figure


@dataclass(frozen=True)
class QueueState:
    """A queue with the labels of its run as they are now."""

    queue: LabelQueue
    items: Sequence[QueueItem]
    labels: Sequence[HumanLabel]
    claims: Sequence[Claim] = ()

    @cached_property
    def _given(self) -> dict[Key, dict[str, HumanLabel]]:
        found: dict[Key, dict[str, HumanLabel]] = {key_of(item): {} for item in self.items}
        for label in self.labels:
            if label.policy == self.queue.policy and not label.adjudicated and label.key in found:
                found[label.key][label.annotator] = label
        return found

    @cached_property
    def _settled(self) -> dict[Key, HumanLabel]:
        ours = (one for one in self.labels if one.adjudicated and one.policy == self.queue.policy)
        return {label.key: label for label in sorted(ours, key=lambda label: label.time)}

    @cached_property
    def _samples(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            found.setdefault(item.sample, []).append(place)
        return found

    def given(self, place: int) -> dict[str, HumanLabel]:
        """The labels of this item by person."""
        return self._given[key_of(self.items[place])]

    def settled(self, place: int) -> HumanLabel | None:
        return self._settled.get(key_of(self.items[place]))

    # --- who is next ---

    def next_for(self, person: str, now: datetime, after: int = -1) -> int | None:
        """The next item that this person is to label, behind this place first; None: nothing is left for them."""
        if self.queue.closed or not self.admits(person):
            return None
        order: list[int] = [*range(after + 1, len(self.items)), *range(min(after + 1, len(self.items)))]
        taken: dict[str, bool] = {}
        for place in order:
            item, given = self.items[place], self.given(place)
            if person in given or len(given) >= item.wanted:
                continue
            if item.sample not in taken:
                taken[item.sample] = self._is_taken(item, person, now)
            if not taken[item.sample]:
                return place
        return None

    def admits(self, person: str) -> bool:
        return not self.queue.people or person in self.queue.people

    def _is_taken(self, item: QueueItem, person: str, now: datetime) -> bool:
        """Whether others are at work on the sample already, as many as it takes."""
        since = (now - PATIENCE).isoformat(timespec="seconds")
        others = {claim.person for claim in self.claims if claim.sample == item.sample and claim.time >= since}
        for name in {name for place in self._samples[item.sample] for name in self.given(place)}:
            if all(name in self.given(place) for place in self._samples[item.sample]):
                others.add(name)
        return len(others - {person}) >= item.wanted

    # --- how far it is ---

    @property
    def wanted(self) -> int:
        return sum(item.wanted for item in self.items)

    @property
    def done(self) -> int:
        return sum(min(len(self.given(place)), item.wanted) for place, item in enumerate(self.items))

    def shares(self) -> list[PersonShare]:
        counted = dict.fromkeys(self.queue.people, 0)
        for given in self._given.values():
            for name in given:
                counted[name] = counted.get(name, 0) + 1
        return [PersonShare(person=name, n=n) for name, n in sorted(counted.items())]

    def last_of(self, person: str) -> int | None:
        """The item that this person labelled last."""
        own = [place for place in range(len(self.items)) if person in self.given(place)]
        return max(own, key=lambda place: (self.given(place)[person].time, place), default=None)

    # --- where people disagree ---

    def disagreements(self) -> list[int]:
        """The items on which people differ, settled or not, in the order of the queue."""
        return [
            place for place in range(len(self.items)) if len({label.label for label in self.given(place).values()}) > 1
        ]

    def unsettled(self) -> list[int]:
        return [place for place in self.disagreements() if self.settled(place) is None]

    def agreement(self) -> Iterator[Agreement]:
        """Of every kind that two people labelled somewhere."""
        for kind in dict.fromkeys(item.kind for item in self.items):
            places = [
                place for place, item in enumerate(self.items) if item.kind == kind and len(self.given(place)) > 1
            ]
            if places:
                yield self._agreement(kind, places)

    def _agreement(self, kind: str, places: Sequence[int]) -> Agreement:
        samples = {sample: n for n, sample in enumerate(dict.fromkeys(self.items[place].sample for place in places))}
        rated = []
        for place in places:
            item = self.items[place]
            slot = Slot(kind, kind, item.turn, item.item, "", "", "")
            people = {name: label.label for name, label in self.given(place).items()}
            rated.append(Rated(slot, item.sample, samples[item.sample], (), item.weight, people))
        pairing, alpha = between_people(rated)
        return Agreement(kind=kind, n=len(places), raw=pairing.raw, kappa=pairing.kappa, alpha=alpha)


def key_of(item: QueueItem) -> Key:
    return item.sample, item.kind, item.turn, item.item


def with_wanted(items: Iterable[QueueItem], twice: frozenset[str]) -> list[QueueItem]:
    return [item._replace(wanted=MOST_PEOPLE if item.sample in twice else 1) for item in items]
