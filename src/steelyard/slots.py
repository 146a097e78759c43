"""The places for labels in a verdict: what people can be asked about, and what the judge put there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.labels import SAMPLE_KINDS
from steelyard.records import AnyItem, Check, ConfidenceKind, Criterion, Verdict
from steelyard.reports.tally import labels_of

# Labels that stand in a field of their own name.
OWN_FIELDS = ("on_topic", "support", "validity")


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
    first: str | None = None
    confidence: float | None = None
    confidence_kind: ConfidenceKind = "votes"
    by: str = ""


def slots_of(verdict: Verdict) -> Iterator[Slot]:
    """Every place for a label in a verdict. The two fallback checks of `grounded` are one fact and one place."""
    seen: set[str] = set()
    for item in verdict.items:
        if isinstance(item, Check):
            if item.name in seen:
                continue
            seen.add(item.name)
        for kind, label in labels_of(item):
            first = (item.first or {}).get(kind if kind in OWN_FIELDS else "label")
            before = None if first is None else str(first)
            sure, by = _confidence(kind, item), item.judge or verdict.judge
            yield Slot(
                kind,
                _task(kind, item),
                _turn(item),
                item.id,
                item.text,
                label,
                item.reason,
                before,
                sure,
                item.confidence_kind,
                by,
            )
    for kind in SAMPLE_KINDS:
        if (score := verdict.scores.get(kind)) is not None:
            yield Slot(kind, kind, None, None, "", str(int(score)), "")


def _confidence(kind: str, item: AnyItem) -> float | None:
    """How sure this label of the item is: votes are about all its labels, a probability is about one."""
    if item.confidence_kind == "probability" or item.confidence is None:
        if kind == "validity" and isinstance(item, Criterion):
            return item.validity_confidence
        if kind == "on_topic" or (isinstance(item, Criterion) and item.validity != "valid"):
            return None
    return item.confidence


def _task(kind: str, item: AnyItem) -> str:
    return f"check.{item.name}" if isinstance(item, Check) else kind


def _turn(item: AnyItem) -> int | None:
    return item.turn if isinstance(item, Criterion) else None
