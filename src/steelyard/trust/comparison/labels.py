"""One sample in two runs: which labels changed, item by item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary, name_of, turn_of
from steelyard.records import AnyItem, Record, Verdict

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
    vocab = vocabulary(b.protocol)
    found = [change for pair in _pairs(a.items, b.items, vocab) for change in _changes(*pair, vocab)]
    return sorted(found, key=lambda change: ORDER.index(change.change))


def _changes(a: AnyItem | None, b: AnyItem | None, vocab: Vocabulary) -> Iterator[LabelChange]:
    one, other = (dict(vocab.labels_of(item)) if item else {} for item in (a, b))
    either = a or b
    assert either is not None
    for kind in dict.fromkeys((*one, *other)):
        sides = _side(a, one.get(kind)), _side(b, other.get(kind))
        yield LabelChange(
            kind=kind,
            name=name_of(either),
            turn=turn_of(either),
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


def _pairs(
    a: Sequence[AnyItem], b: Sequence[AnyItem], vocab: Vocabulary
) -> Iterator[tuple[AnyItem | None, AnyItem | None]]:
    for kind in dict.fromkeys(item.kind for item in (*a, *b)):
        alike = vocab.kind_named(kind).identity == "alike"
        yield from _paired([i for i in a if i.kind == kind], [i for i in b if i.kind == kind], vocab, alike)


def _paired(
    a: list[AnyItem], b: list[AnyItem], vocab: Vocabulary, alike: bool
) -> Iterator[tuple[AnyItem | None, AnyItem | None]]:
    """Items of one kind: equal ones first, then, where that is enough, the most alike; each at most once."""
    left = list(b)
    partner: dict[int, AnyItem] = {}
    for at, item in enumerate(a):
        equal = next((other for other in left if _key(other, vocab) == _key(item, vocab)), None)
        if equal is not None:
            partner[at] = equal
            left.remove(equal)
    alone = [at for at in range(len(a)) if at not in partner]
    if alike and len(alone) <= MOST_SEARCHED and len(left) <= MOST_SEARCHED:
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


def _key(item: AnyItem, vocab: Vocabulary) -> tuple[object, ...]:
    """What makes two items the same one: the name, the text in its turn, else what is said."""
    match vocab.kind_of(item).identity:
        case "name":
            return getattr(item, "group", ""), name_of(item)
        case "text":
            return turn_of(item), item.text
        case _:
            return turn_of(item), "".join(item.text.split()).casefold()


def _likeness(a: AnyItem, b: AnyItem) -> float:
    return SequenceMatcher(None, a.text[:LONGEST_SEARCHED], b.text[:LONGEST_SEARCHED], autojunk=False).ratio()
