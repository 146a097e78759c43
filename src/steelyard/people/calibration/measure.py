"""Agreement on one kind of label: judge with people, and people with each other, from tables of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from steelyard.people.calibration.majority import Majority
from steelyard.people.calibration.matching import Rated
from steelyard.protocols.vocabulary import UNJUDGED
from steelyard.reports.calibration.model import (
    AgreementGroup,
    Dispute,
    DisputedItem,
    Figure,
    LabelFigures,
    Pairing,
    SecondLook,
    Task,
)
from steelyard.stats import agreement
from steelyard.stats.bootstrap import Resampled, gather
from steelyard.stats.intervals import wilson
from steelyard.stats.libraries import Array, np

MOST_DISPUTES = 8
ITEMS_PER_DISPUTE = 5
ABOVE_CHANCE = (-1.0, 1.0)


def measure(task: str, rated: Sequence[Rated], majority: Majority) -> Task:
    """All figures of one task."""
    both = [item for item in rated if item.slot.judge != UNJUDGED]
    labels = _labels_in_use(both)
    tables = _Tables(both, labels)
    people = [majority.label(item) for item in both]
    against = Resampled(tables.of([[(i.slot.judge, label)] for i, label in zip(both, people, strict=True)]))
    alone = Resampled(tables.pairs_of_people())
    names = {name for item in both for name in item.people}
    several = bool(alone.total.sum())
    return Task(
        task=task,
        n=len(both),
        n_samples=len({item.sample for item in both}),
        n_split=sum(Majority.is_split(item) for item in both),
        n_unjudged=len(rated) - len(both),
        labels=tuple(labels),
        confusion=_confusion(both, people, labels),
        raw=_figure(against, agreement.raw_agreement),
        kappa=_kappa(against),
        balanced_accuracy=_figure(against, agreement.balanced_accuracy),
        alpha=_alpha(tables.coincidences([[item.slot.judge, *item.people.values()] for item in both])),
        by_label=tuple(_by_label(against, both, people, labels)),
        second_look=tuple(_second_look(rated, majority)),
        judge_person=_pairing(Resampled(tables.of([_with_each(i) for i in both]))) if len(names) > 1 else None,
        person_person=_pairing(alone) if several else None,
        alpha_people=_alpha(tables.coincidences([list(i.people.values()) for i in both])) if several else None,
        gap=_gap(tables, both) if several else None,
    )


def between_people(rated: Sequence[Rated]) -> tuple[Pairing, Figure]:
    """Agreement of people with each other, with Krippendorff's α."""
    tables = _Tables(rated, sorted({label for item in rated for label in item.people.values()}))
    alpha = _alpha(tables.coincidences([list(item.people.values()) for item in rated]))
    return _pairing(Resampled(tables.pairs_of_people())), alpha


def _second_look(rated: Sequence[Rated], majority: Majority) -> Iterable[SecondLook]:
    """Each label that a second look took away somewhere: precision and recall before and after, on the same items."""
    first = Counter(item.slot.first for item in rated if item.slot.first is not None)
    if not first:
        return
    # What was left open is a label like any other here: it was a finding before.
    labelled = [item for item in rated if item.slot.first is not None or item.slot.judge != UNJUDGED]
    labels = [*_labels_in_use(labelled), UNJUDGED]
    labels += [label for label in first if label not in labels]
    tables = _Tables(labelled, labels)
    people = [majority.label(item) for item in labelled]
    sides = (
        tables.of([[(i.slot.first or i.slot.judge, label)] for i, label in zip(labelled, people, strict=True)]),
        tables.of([[(i.slot.judge, label)] for i, label in zip(labelled, people, strict=True)]),
    )
    before, after = (Resampled(side) for side in sides)
    both = Resampled(np.stack(sides, axis=1))
    for label, n in first.most_common():
        k = labels.index(label)
        yield SecondLook(
            label=label,
            n_changed=n,
            precision=(
                _figure(before, _at(agreement.precision, k), _at(by_judge, k)),
                _figure(after, _at(agreement.precision, k), _at(by_judge, k)),
            ),
            precision_change=change_of(both, agreement.precision, by_judge, k),
            recall=(
                _figure(before, _at(agreement.recall, k), _at(by_people, k)),
                _figure(after, _at(agreement.recall, k), _at(by_people, k)),
            ),
            recall_change=change_of(both, agreement.recall, by_people, k),
        )


def change_of(
    both: Resampled, statistic: Callable[[Array, int], Array], counts: Callable[[Array, int], Array], label: int
) -> Figure:
    """After minus before, resampled together."""
    found = both.figure(
        lambda t: statistic(t[..., 1, :, :], label) - statistic(t[..., 0, :, :], label),
        counts=lambda t: counts(t[..., 0, :, :], label),
        bounds=ABOVE_CHANCE,
    )
    if found.value == 0 and found.interval == ABOVE_CHANCE:
        # Nothing moved in any of so many samples: what that leaves room for, either way.
        _, most = wilson(0, found.clusters) or ABOVE_CHANCE
        found = found._replace(interval=(-most, most))
    return Figure(**found._asdict())


def _gap(tables: _Tables, rated: Sequence[Rated]) -> Figure:
    """The judge's agreement with one person minus that of two people, on the same items, resampled together."""
    twice = [_with_each(item) if len(item.people) > 1 else [] for item in rated]
    data = Resampled(np.stack([tables.of(twice), tables.pairs_of_people()], axis=1))
    found = data.figure(
        lambda t: agreement.raw_agreement(t[..., 0, :, :]) - agreement.raw_agreement(t[..., 1, :, :]),
        counts=lambda t: _size(t[..., 1, :, :]),
        bounds=ABOVE_CHANCE,
    )
    return Figure(**found._asdict())


def _labels_in_use(rated: Iterable[Rated]) -> list[str]:
    used = {label for item in rated for label in (item.slot.judge, *item.people.values(), item.settled)}
    choices = {item.slot.kind: item.slot.choices for item in rated}
    return [label for _, names in sorted(choices.items()) for label in names if label in used]


def _with_each(item: Rated) -> list[tuple[str, str]]:
    return [(item.slot.judge, label) for label in item.people.values()]


class _Tables:
    """Tables of counts, one per cluster: what can be resampled without tearing a sample apart."""

    def __init__(self, rated: Sequence[Rated], labels: Sequence[str]) -> None:
        self._rated = rated
        self._index = {label: n for n, label in enumerate(labels)}
        numbers = {cluster: n for n, cluster in enumerate(dict.fromkeys(item.cluster for item in rated))}
        self._clusters = np.array([numbers[item.cluster] for item in rated], dtype=np.int64)
        weights = np.array([item.weight for item in rated])
        # Their sum stays the number of items: α reads the size of the data from it.
        self._weights = weights / weights.mean() if len(weights) else weights

    def of(self, pairs: Sequence[Sequence[tuple[str, str]]]) -> Array:
        """Tables from the pairs of labels of each item."""
        found = np.zeros((len(self._rated), len(self._index), len(self._index)))
        for table, given in zip(found, pairs, strict=True):
            for row, column in given:
                table[self._index[row], self._index[column]] += 1
        return self._sum(found)

    def pairs_of_people(self) -> Array:
        """Two people as they are; of more than two nobody is the first, so each pair counts half in either order."""
        names = sorted({name for item in self._rated for name in item.people})
        pairs = [
            [(item.people[a], item.people[b]) for a, b in combinations(names, 2) if {a, b} <= item.people.keys()]
            for item in self._rated
        ]
        tables = self.of(pairs)
        return tables if len(names) <= 2 else (tables + tables.swapaxes(-2, -1)) / 2

    def coincidences(self, ratings: Sequence[Sequence[str]]) -> Array:
        coded = [[self._index[label] for label in given] for given in ratings]
        return self._sum(agreement.coincidences(coded, len(self._index)))

    def _sum(self, tables: Array) -> Array:
        return gather(tables * self._weights[:, None, None], self._clusters)


def _size(tables: Array) -> Array:
    return np.asarray(tables.sum(axis=(-2, -1)))


def _figure(data: Resampled, statistic: Callable[[Array], Array], counts: Callable[[Array], Array] = _size) -> Figure:
    return Figure(**data.figure(statistic, counts=counts)._asdict())


def _kappa(data: Resampled) -> Figure:
    found = data.figure(agreement.cohen_kappa, counts=_size, chance=agreement.chance_agreement, bounds=ABOVE_CHANCE)
    return Figure(**found._asdict())


def _alpha(tables: Array) -> Figure:
    found = Resampled(tables).figure(
        agreement.krippendorff_alpha, counts=_size, chance=agreement.chance_agreement, bounds=ABOVE_CHANCE
    )
    return Figure(**found._asdict())


def _pairing(data: Resampled) -> Pairing:
    return Pairing(n=round(float(data.total.sum())), raw=_figure(data, agreement.raw_agreement), kappa=_kappa(data))


def _confusion(rated: Sequence[Rated], people: Sequence[str], labels: Sequence[str]) -> dict[str, dict[str, int]]:
    counts = Counter((item.slot.judge, label) for item, label in zip(rated, people, strict=True))
    return {judge: {label: counts[judge, label] for label in labels} for judge in labels}


def _by_label(
    data: Resampled, rated: Sequence[Rated], people: Sequence[str], labels: Sequence[str]
) -> Iterable[LabelFigures]:
    for k, label in enumerate(labels):
        yield LabelFigures(
            label=label,
            n_judge=sum(item.slot.judge == label for item in rated),
            n_people=people.count(label),
            precision=_figure(data, _at(agreement.precision, k), _at(by_judge, k)),
            recall=_figure(data, _at(agreement.recall, k), _at(by_people, k)),
            f1=_figure(data, _at(agreement.f1, k), _at(_by_either, k)),
        )


def by_judge(tables: Array, label: int) -> Array:
    return np.asarray(tables[..., label, :].sum(axis=-1))


def by_people(tables: Array, label: int) -> Array:
    return np.asarray(tables[..., :, label].sum(axis=-1))


def _by_either(tables: Array, label: int) -> Array:
    return by_judge(tables, label) + by_people(tables, label)


def _at(statistic: Callable[[Array, int], Array], label: int) -> Callable[[Array], Array]:
    return lambda tables: statistic(tables, label)


# --- where they differ -----------------------------------------------------------------------------


def disputes(rated: Iterable[Rated], majority: Majority) -> tuple[Dispute, ...]:
    """The ways in which judge and people differ, the most frequent first, each with its items."""
    ways: dict[tuple[str, str, str], list[Rated]] = {}
    for item in rated:
        label = majority.label(item)
        if item.slot.judge not in (UNJUDGED, label):
            ways.setdefault((item.slot.task, item.slot.judge, label), []).append(item)
    ordered = sorted(ways.items(), key=lambda way: (-len(way[1]), way[0]))
    return tuple(
        Dispute(
            task=task,
            judge=judge,
            people=people,
            n=len(items),
            # Those on which people are of one mind come first: they say most about the judge.
            items=tuple(_disputed(item) for item in sorted(items, key=_unanimity)[:ITEMS_PER_DISPUTE]),
        )
        for (task, judge, people), items in ordered[:MOST_DISPUTES]
    )


def _unanimity(item: Rated) -> tuple[int, int]:
    return len(set(item.people.values())), -len(item.people)


def _disputed(item: Rated) -> DisputedItem:
    slot = item.slot
    return DisputedItem(
        sample=item.sample,
        turn=slot.turn,
        item=slot.item,
        text=slot.text,
        reason=slot.reason,
        people=dict(item.people),
    )


def groups(rated: Iterable[Rated], majority: Majority, least: int = 10, most: int = 20) -> tuple[AgreementGroup, ...]:
    """Agreement by tag, the lowest first; tags with fewer items say too little."""
    by_tag: dict[str, list[Rated]] = {}
    for item in rated:
        if item.slot.judge != UNJUDGED:
            for tag in dict.fromkeys(item.tags):
                by_tag.setdefault(tag, []).append(item)
    found = [_group(tag, items, majority) for tag, items in by_tag.items() if len(items) >= least]
    return tuple(sorted(found, key=lambda group: (group.raw.value or 0.0, group.tag))[:most])


def by_votes(rated: Iterable[Rated], majority: Majority) -> tuple[AgreementGroup, ...]:
    """Agreement with people where the judges were of one mind and where they were not; empty without a panel."""
    sides: dict[str, list[Rated]] = {"unanimous": [], "divided": []}
    for item in rated:
        voted = item.slot.confidence is not None and item.slot.confidence_kind == "votes"
        if voted and item.slot.judge != UNJUDGED:
            sides["unanimous" if item.slot.confidence == 1 else "divided"].append(item)
    return tuple(_group(name, items, majority) for name, items in sides.items() if items)


def _group(name: str, items: Sequence[Rated], majority: Majority) -> AgreementGroup:
    tables = _Tables(items, ["same", "other"])
    same = [[("same", "same" if i.slot.judge == majority.label(i) else "other")] for i in items]
    return AgreementGroup(tag=name, n=len(items), raw=_figure(Resampled(tables.of(same)), agreement.raw_agreement))
