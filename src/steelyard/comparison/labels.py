"""One sample in two runs: which labels changed, item by item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from steelyard.records import AnyItem, Check, Criterion, Record, Verdict
from steelyard.reports.tally import labels_of

Change = Literal["same", "changed", "only_a", "only_b"]
ORDER: tuple[Change, ...] = ("changed", "only_a", "only_b", "same")
# Two answers seldom word a statement alike; less than this in common is another statement.
ALIKE = 0.6
# Comparing each item with each grows with the square; beyond this only equal ones are paired.
MOST_SEARCHED = 80
LONGEST_SEARCHED = 400


class Side(Record):
    """An item as one run has it."""

    id: int
    text: str
    label: str
    reason: str = ""


class LabelChange(Record):
    """One kind of label of one item, as A and as B have it."""

    kind: str
    name: str = ""
    turn: int | None = None
    a: Side | None = None
    b: Side | None = None
    change: Change


def label_changes(a: Verdict, b: Verdict) -> list[LabelChange]:
    """Every label of both verdicts, those that changed first, else in the order of the items."""
    found = [change for pair in _pairs(a.items, b.items) for change in _changes(*pair)]
    return sorted(found, key=lambda change: ORDER.index(change.change))


def _changes(a: AnyItem | None, b: AnyItem | None) -> Iterator[LabelChange]:
    one, other = (dict(labels_of(item)) if item else {} for item in (a, b))
    either = a or b
    for kind in dict.fromkeys((*one, *other)):
        sides = _side(a, one.get(kind)), _side(b, other.get(kind))
        yield LabelChange(
            kind=kind,
            name=either.name if isinstance(either, Check) else "",
            turn=either.turn if isinstance(either, Criterion) else None,
            a=sides[0],
            b=sides[1],
            change=_change(*sides),
        )


def _side(item: AnyItem | None, label: str | None) -> Side | None:
    if item is None or label is None:
        return None
    return Side(id=item.id, text=item.text, label=label, reason=item.reason)


def _change(a: Side | None, b: Side | None) -> Change:
    if a is None or b is None:
        return "only_b" if a is None else "only_a"
    return "same" if a.label == b.label else "changed"


# --- which item is which ---------------------------------------------------------------------------


def _pairs(a: Sequence[AnyItem], b: Sequence[AnyItem]) -> Iterator[tuple[AnyItem | None, AnyItem | None]]:
    for kind in dict.fromkeys(item.kind for item in (*a, *b)):
        yield from _paired([item for item in a if item.kind == kind], [item for item in b if item.kind == kind])


def _paired(a: list[AnyItem], b: list[AnyItem]) -> Iterator[tuple[AnyItem | None, AnyItem | None]]:
    """Items of one kind: equal ones first, then the most alike; each at most once."""
    left = list(b)
    partner: dict[int, AnyItem] = {}
    for at, item in enumerate(a):
        equal = next((other for other in left if _key(other) == _key(item)), None)
        if equal is not None:
            partner[at] = equal
            left.remove(equal)
    alone = [at for at in range(len(a)) if at not in partner]
    if len(alone) <= MOST_SEARCHED and len(left) <= MOST_SEARCHED:
        scored = [(_likeness(a[at], other), at, n) for at in alone for n, other in enumerate(left)]
        taken: set[int] = set()
        for likeness, at, n in sorted(scored, key=lambda entry: (-entry[0], *entry[1:])):
            if likeness >= ALIKE and at not in partner and n not in taken:
                partner[at] = left[n]
                taken.add(n)
        left = [other for n, other in enumerate(left) if n not in taken]
    for at, item in enumerate(a):
        yield item, partner.get(at)
    for other in left:
        yield None, other


def _key(item: AnyItem) -> tuple[object, ...]:
    """What makes two items the same one: the check, the criterion of the turn, else what is said."""
    match item:
        case Check():
            return item.group, item.name
        case Criterion():
            return item.turn, item.text
        case _:
            return ("".join(item.text.split()).casefold(),)


def _likeness(a: AnyItem, b: AnyItem) -> float:
    if isinstance(a, Check | Criterion):
        return 0.0
    return SequenceMatcher(None, a.text[:LONGEST_SEARCHED], b.text[:LONGEST_SEARCHED], autojunk=False).ratio()
