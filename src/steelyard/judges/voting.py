"""One reply from several: each label by vote, everything around it from a voice on the winning side. No I/O.

Only labels can be voted on. Reasons, quotes and sources come with the label they belong to; a summary or an own answer
is that of the first voice that replied.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from steelyard.records import Ask, Data, Mark, ReplyData, Tolerance
from steelyard.text import find_quote
from steelyard.text.tolerance import ruling

# These belong to another label of the same item and are read together with it.
BESIDE = frozenset({"source", "triggered"})
# Finer points of a label: they never leave an item open.
GRADES = frozenset({"level", "depth"})
# Where the marks of what is about the reply as a whole stand: no list has this name.
WHOLE = ""


class Ballot(NamedTuple):
    """What one voice replied to the ask, null where it failed."""

    reply: ReplyData | None
    weight: Fraction = Fraction(1)


class VoteThreshold(NamedTuple):
    """What it takes to win: more than half of the weight cast, and at least this share; said by enough voices."""

    share: Fraction = Fraction(1, 2)
    quorum: int = 1


class Vote(NamedTuple):
    """The outcome on one label: the winner (null where the vote is split), and the share of the leading label."""

    winner: Any | None
    share: Fraction


class Merged(NamedTuple):
    """The reply, the marks of its items, and by list which items are open. `whole` says that something about the reply
    as a whole is open too."""

    reply: ReplyData
    marks: dict[str, dict[int, Mark]]
    open: dict[str, tuple[int, ...]]
    whole: bool

    @property
    def is_open(self) -> bool:
        return self.whole or any(self.open.values())


def poll(votes: Iterable[tuple[Any, Fraction]], share: Fraction = Fraction(1, 2)) -> Vote:
    """Who wins: whoever has more than half of the weight, and at least `share` of it."""
    weights: dict[Any, Fraction] = {}
    for said, weight in votes:
        weights[said] = weights.get(said, Fraction(0)) + weight
    total = sum(weights.values())
    if not total:
        return Vote(None, Fraction(0))
    leader = max(weights, key=lambda said: weights[said])
    reached = weights[leader] / total
    return Vote(leader if reached > Fraction(1, 2) and reached >= share else None, reached)


def merge(ask: Ask, ballots: Sequence[Ballot], bar: VoteThreshold) -> Merged:
    """The ballots as one reply. At least one of them must hold a reply."""
    base = next(ballot.reply for ballot in ballots if ballot.reply is not None)
    changed: dict[str, Any] = {}
    marks: dict[str, dict[int, Mark]] = {}
    open_: dict[str, tuple[int, ...]] = {}
    unsure: list[Any] = []
    for name, items in ask.data.items().items():
        given = [labels_by_id(ballot.reply, name) for ballot in ballots]
        doubts = [_doubts(ballot.reply, name) for ballot in ballots]
        verdicts: list[ReplyData] = []
        for id in (item.id for item in items):
            said = [labels.get(id) for labels in given]
            abstained = [doubt[id] for doubt in doubts if id in doubt]
            voices = sum(one is not None for one in said)
            if voices and voices + len(abstained) >= bar.quorum:
                verdict, mark = _item(said, [ballot.weight for ballot in ballots], ask, bar.share)
                verdicts.append(verdict)
                marks.setdefault(name, {})[id] = mark
                if mark.open:
                    open_[name] = (*open_.get(name, ()), id)
            elif abstained:
                unsure.append(abstained[0])
        # What nobody asked about is passed on once, for the protocol to drop and count.
        wanted = {item.id for item in items}
        invented = {id: label for labels in given for id, label in labels.items() if id not in wanted}
        changed[name] = [*verdicts, *invented.values()]
    if "unsure" in type(base).model_fields:
        changed["unsure"] = unsure
    whole = _whole(ballots, type(base), bar.share)
    if whole:
        marks[WHOLE] = {0: whole[1]}
        changed |= whole[0]
    return Merged(base.model_copy(update=changed), marks, open_, bool(whole and whole[1].open))


def settle(ask: Ask, merged: Merged, further: ReplyData, weight: Fraction, ballots: Sequence[Ballot]) -> Merged:
    """What was open, as a further judge decides it; what that one leaves out stays open."""
    changed: dict[str, Any] = {}
    marks = {name: dict(by_id) for name, by_id in merged.marks.items()}
    open_: dict[str, tuple[int, ...]] = {}
    for name, ids in merged.open.items():
        said = {id: label for id, label in labels_by_id(further, name).items() if id in ids}
        changed[name] = [
            _decided(label, said[label.id], marks[name][label.id]) if label.id in said else label
            for label in getattr(merged.reply, name)
        ]
        for id, label in said.items():
            weights = [ballot.weight for ballot in ballots]
            marks[name][id] = _with_further(marks[name][id], label, weight, weights, ask.tolerance)
        open_[name] = tuple(id for id in ids if id not in said)
    whole = merged.whole
    if whole:
        mark = marks[WHOLE][0]
        changed |= {field: getattr(further, field) for field in mark.open}
        weights = [ballot.weight for ballot in ballots]
        marks[WHOLE] = {0: _with_further(mark, further, weight, weights, ask.tolerance)}
        whole = False
    return Merged(merged.reply.model_copy(update=changed), marks, open_, whole)


def _decided(label: ReplyData, by: ReplyData, mark: Mark) -> ReplyData:
    """The further judge's label; what the others had agreed on stays."""
    if leading(type(label)) not in mark.open:
        # Reason and quote speak for what was agreed on.
        return label.model_copy(update={field: getattr(by, field) for field in mark.open})
    agreed = {field: getattr(label, field) for field in mark.shares if field not in mark.open}
    return by.model_copy(update=agreed)


def _with_further(
    mark: Mark, label: ReplyData, weight: Fraction, weights: Sequence[Fraction], tolerance: Tolerance
) -> Mark:
    shares, votes = dict(mark.shares), dict(mark.votes)
    for field in mark.open:
        word = meaning(label, field, tolerance)
        cast = [(said, w) for said, w in zip(mark.votes[field], weights, strict=True) if said is not None]
        total = sum((w for _, w in cast), start=weight)
        shares[field] = float((sum((w for said, w in cast if said == word), start=weight)) / total)
        votes[field] = (*mark.votes[field], word)
    return mark.model_copy(update={"shares": shares, "votes": votes, "open": (), "flags": ("escalated",)})


def _item(said: Sequence[Any | None], weights: Sequence[Fraction], ask: Ask, share: Fraction) -> tuple[ReplyData, Mark]:
    """One item by vote, label by label."""

    def meant(label: Any, field: str) -> Any:
        return meaning(label, field, ask.tolerance)

    voices = [(label, weight) for label, weight in zip(said, weights, strict=True) if label is not None]
    shape: type[ReplyData] = type(voices[0][0])
    polls = {field: poll(((meant(label, field), w) for label, w in voices), share) for field in counted(shape)}
    first = leading(shape)
    side = [label for label, _ in voices]
    if first and polls[first].winner is not None:
        side = [label for label in side if meant(label, first) == polls[first].winner]
    base: ReplyData = next((label for label in side if _is_proven(label, ask.data)), side[0])
    changed = {
        field: next(getattr(label, field) for label, _ in voices if meant(label, field) == found.winner)
        for field, found in polls.items()
        if field != first and found.winner is not None
    }
    if getattr(base, "difference", None) is None and (differing := [one for one in side if _has_difference(one)]):
        # What one of them found to differ is told, whoever of them is quoted.
        changed["difference"] = differing[0].difference
    if "confidence" in shape.model_fields:
        changed["confidence"] = None  # one voice's own; the panel's is in the votes
    for field in GRADES & set(label_fields(shape)):
        # A depth is that of a label; a level is given whatever the label.
        of = side if field == "depth" else [label for label, _ in voices]
        among = [(getattr(label, field), w) for label, w in voices if label in of]
        winner = poll(among).winner
        if winner is not None:
            changed[field] = winner
    mark = Mark(
        shares={field: float(found.share) for field, found in polls.items()},
        votes={field: tuple(None if one is None else meant(one, field) for one in said) for field in polls},
        open=tuple(field for field, found in polls.items() if found.winner is None),
    )
    return base.model_copy(update=changed), mark


def _whole(ballots: Sequence[Ballot], shape: type[ReplyData], share: Fraction) -> tuple[dict[str, Any], Mark] | None:
    """What a reply says once, about everything (`fallback`, `answerable`)."""
    fields = label_fields(shape)
    if not fields:
        return None
    replies = [(ballot.reply, ballot.weight) for ballot in ballots if ballot.reply is not None]
    polls = {field: poll(((getattr(reply, field), w) for reply, w in replies), share) for field in fields}
    mark = Mark(
        shares={field: float(found.share) for field, found in polls.items()},
        votes={f: tuple(None if b.reply is None else getattr(b.reply, f) for b in ballots) for f in fields},
        open=tuple(field for field, found in polls.items() if found.winner is None),
    )
    return {field: found.winner for field, found in polls.items() if found.winner is not None}, mark


def _has_difference(label: Any) -> bool:
    return getattr(label, "difference", None) is not None


def meaning(label: Any, field: str, tolerance: Tolerance) -> Any:
    """What a label counts as; of values that differ, the tolerance says which is right and which is wrong."""
    said = label.counted(field)
    if field == label.leads and said in label.ruled.values() and _has_difference(label):
        return label.ruled.get(ruling(label.difference, tolerance) or "", said)
    return said


def spelled(label: ReplyData, field: str, said: Any) -> Any:
    """What a label says, in the words of verdicts."""
    return label.spelled.get(field, {}).get(said, said)


@cache
def label_fields(shape: type[ReplyData]) -> tuple[str, ...]:
    """The fields that hold a choice among few: what can be voted on."""
    return tuple(
        name for name, field in shape.model_fields.items() if name not in BESIDE and _is_choice(field.annotation)
    )


def counted(shape: type[ReplyData]) -> list[str]:
    """The labels of an item; grades go with them."""
    return [field for field in label_fields(shape) if field not in GRADES]


def leading(shape: type[ReplyData]) -> str:
    """The label that an item's reason and quote speak for."""
    fields = counted(shape)
    return shape.leads if shape.leads in fields else fields[0] if fields else ""


def _is_choice(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_is_choice(part) for part in get_args(annotation))
    return annotation is bool or get_origin(annotation) is Literal


def labels_by_id(reply: ReplyData | None, name: str) -> Mapping[int, Any]:
    """A voice's labels by id; said twice and differently is not said at all."""
    found: dict[int, Any] = {}
    torn: set[int] = set()
    for label in getattr(reply, name, ()):
        if found.setdefault(label.id, label) != label:
            torn.add(label.id)
    return {id: label for id, label in found.items() if id not in torn}


def _doubts(reply: ReplyData | None, name: str) -> Mapping[int, Any]:
    return {doubt.id: doubt for doubt in getattr(reply, "unsure", ()) if doubt.items == name}


def _is_proven(label: ReplyData, data: Data) -> bool:
    """Whether the label's quote stands in the material, so that nobody need be asked for a better one."""
    quote: str = getattr(label, "quote", None) or ""
    return bool(quote) and find_quote(data.quotable, quote) is not None
