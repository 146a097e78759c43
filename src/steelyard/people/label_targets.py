"""The slots of a verdict: what people can label, and what the judge put there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, Aspect, name_of, turn_of
from steelyard.records import AnyItem, ConfidenceKind, Verdict


class Slot(NamedTuple):
    """One place for a label: an item of a sample, and what the judge put there; `first` is what stood there before a
    second look, where that changed it, `confidence` how sure the label is, `by` which judge gave it."""

    kind: str
    task: str
    turn: int | None
    item: int | None
    text: str
    judge: str
    reason: str
    choices: tuple[str, ...] = ()
    first: str | None = None
    confidence: float | None = None
    confidence_kind: ConfidenceKind = "votes"
    by: str = ""


def slots_of(verdict: Verdict) -> Iterator[Slot]:
    """Every place for a label in a verdict. What stands in several groups is one fact and one place; what nobody
    declared labels for is none."""
    vocab = vocabulary(verdict.protocol)
    seen: set[tuple[str, str]] = set()
    for item in verdict.items:
        kind, name = vocab.kind_of(item), name_of(item)
        if kind.once:
            if (kind.name, name) in seen:
                continue
            seen.add((kind.name, name))
        for aspect, label in kind.labels(item):
            if not aspect.labels:
                continue
            first = (item.first or {}).get(aspect.field)
            yield Slot(
                kind=aspect.name,
                task=f"{aspect.name}.{name}" if kind.identity == "name" else aspect.name,
                turn=turn_of(item),
                item=item.id,
                text=item.text,
                judge=label if label in aspect.names else UNJUDGED,
                reason=item.reason,
                choices=aspect.names,
                first=None if first is None else str(first),
                confidence=_confidence(aspect, label, item),
                confidence_kind=item.confidence_kind,
                by=item.judge or verdict.judge,
            )
    for aspect in vocab.whole:
        if (score := verdict.scores.get(aspect.name)) is not None:
            yield Slot(aspect.name, aspect.name, None, None, "", str(int(score)), "", aspect.names)


def _confidence(aspect: Aspect, label: str, item: AnyItem) -> float | None:
    """How sure this label of the item is: votes are about all its labels, a probability is about one."""
    if item.confidence is not None and item.confidence_kind == "votes":
        return item.confidence
    if aspect.confidence is None or aspect.label(label).follows:
        return None
    return getattr(item, aspect.confidence, None)
