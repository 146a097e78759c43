"""A labelling queue: the next item of each person, progress, and disagreements."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from steelyard.errors import FormRefused
from steelyard.people.calibration.matching import Rated
from steelyard.people.calibration.measure import between_people
from steelyard.people.label_targets import Slot
from steelyard.people.labelling import LabelTask, Verdicts
from steelyard.records import Record, Sample, Verdict
from steelyard.reports.calibration.model import Figure
from steelyard.store import LabelQueue, QueueItem, RunRow, Store
from steelyard.store.labels import HumanLabel
from steelyard.store.listing import SampleQuery, catch_up
from steelyard.store.listing.query import places
from steelyard.store.queue_table import QueueTotals

# Whoever was given a sample and has labelled nothing for so long is not waited for.
PATIENCE = timedelta(hours=1)
MOST_PEOPLE = 2
MOST_ITEMS = 20_000


def make_queue(
    store: Store,
    row: RunRow,
    drawn: Callable[[Verdicts], Sequence[LabelTask]],
    *,
    name: str,
    people: Sequence[str],
    policy: str,
    share: float,
    seed: int,
    blind: bool,
    filter: SampleQuery,
    created: str,
    author: str = "",
) -> LabelQueue:
    """Draw the items once, from the samples of a run that fit: what people are given does not change with the run."""
    if not name:
        raise FormRefused("give the queue a name", "no_queue_name", field="name")
    if len(people) == 1 and share:
        raise FormRefused("two people are needed to label anything twice", "one_person", field="people")
    wanted = None
    if not filter.model_copy(update={"sort": "seq"}).is_plain:
        catch_up(store, row.id)
        fits = {int(place) for place in places(store, row.id, filter)}
        wanted = {id for seq, id in store.query("SELECT seq, id FROM samples WHERE run = ?", row.id) if seq in fits}

    def judged() -> Iterator[tuple[Sample, Verdict]]:
        return (one for one in store.verdicts(row.id) if wanted is None or one[1].id in wanted)

    found = [QueueItem(*task, wanted=1) for task in drawn(judged)]
    if len(found) > MOST_ITEMS:
        problem = f"a queue has at most {MOST_ITEMS:,} items, and these are {len(found):,}; draw fewer samples"
        raise FormRefused(problem, "too_many_items", most=f"{MOST_ITEMS:,}", n=f"{len(found):,}")
    twice = labelled_twice([item.sample for item in found], share, seed)
    given = {"people": people, "policy": policy, "blind": blind, "created": created, "author": author}
    return store.add_queue(row.id, name, with_wanted(found, twice), **given)  # type: ignore[arg-type]


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
    """A queue as it is now: looked up item by item, however long it is."""

    queue: LabelQueue
    store: Store

    @cached_property
    def totals(self) -> QueueTotals:
        return self.store.queue_totals(self.queue.id)

    def item(self, place: int) -> QueueItem:
        found = self.store.queue_item(self.queue.id, place)
        if found is None:
            raise FormRefused("there is no item at this place", "no_item", field="at")
        return found

    def given(self, place: int) -> dict[str, HumanLabel]:
        """The labels of this item by person."""
        labels = self.store.labels_at(self.queue.id, place)
        return {label.annotator: label for label in labels if not label.adjudicated}

    def settled(self, place: int) -> HumanLabel | None:
        ours = (label for label in self.store.labels_at(self.queue.id, place) if label.adjudicated)
        return max(ours, key=lambda label: label.time, default=None)

    # --- who is next ---

    def next_for(self, person: str, now: datetime, after: int = -1) -> int | None:
        """The next item that this person is to label, behind this place first; None: nothing is left for them."""
        if self.queue.closed or not self.admits(person):
            return None
        end = self.totals.items
        taken: dict[str, bool] = {}
        for start, stop in ((after + 1, end), (0, min(after + 1, end))):
            for place, item in self.store.open_items(self.queue.id, person, start, stop):
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
        claims = self.store.queue_claims(self.queue.id, item.sample)
        others = {claim.person for claim in claims if claim.time >= since}
        others |= self.store.done_with(self.queue.id, item.sample)
        return len(others - {person}) >= item.wanted

    # --- how far it is ---

    def shares(self) -> list[PersonShare]:
        counted = Counter(person for _, person, _ in self.store.queue_labels(self.queue.id))
        people = sorted({*self.queue.people, *counted})
        return [PersonShare(person=name, n=counted[name]) for name in people]

    def last_of(self, person: str) -> int | None:
        """The item that this person labelled last."""
        return self.store.last_labelled(self.queue.id, person)

    # --- where people disagree ---

    def disagreements(self) -> list[int]:
        """The items on which people differ, settled or not, in the order of the queue."""
        return self.store.disputed_places(self.queue.id)

    def unsettled(self) -> list[int]:
        return self.store.disputed_places(self.queue.id, unsettled=True)

    def agreement(self) -> Iterator[Agreement]:
        """Of every kind that two people labelled somewhere."""
        given: dict[int, dict[str, str]] = {}
        for place, person, label in self.store.queue_labels(self.queue.id, twice=True):
            given.setdefault(place, {})[person] = label
        if not given:
            return
        items = self.store.queue_items(self.queue.id)
        for kind in dict.fromkeys(item.kind for item in items):
            of_kind = [(items[place], people) for place, people in given.items() if items[place].kind == kind]
            if of_kind:
                yield _agreement(kind, of_kind)


def _agreement(kind: str, given: Sequence[tuple[QueueItem, dict[str, str]]]) -> Agreement:
    samples = {sample: n for n, sample in enumerate(dict.fromkeys(item.sample for item, _ in given))}
    rated = []
    for item, people in given:
        slot = Slot(kind, kind, item.turn, item.item, "", "", "")
        rated.append(Rated(slot, item.sample, samples[item.sample], (), item.weight, people))
    pairing, alpha = between_people(rated)
    return Agreement(kind=kind, n=len(given), raw=pairing.raw, kappa=pairing.kappa, alpha=alpha)


def with_wanted(items: Iterable[QueueItem], twice: frozenset[str]) -> list[QueueItem]:
    return [item._replace(wanted=MOST_PEOPLE if item.sample in twice else 1) for item in items]
