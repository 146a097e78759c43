"""Reliability of a judge's confidence: calibration curves, and confidence thresholds for a wanted precision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from steelyard.people.calibration.majority import Majority
from steelyard.people.calibration.matching import Rated
from steelyard.protocols.vocabulary import UNJUDGED
from steelyard.records import ConfidenceKind
from steelyard.reports.calibration.model import (
    LEAST_LABELS,
    Calibration,
    ConfidenceBin,
    ConfidenceThreshold,
    Reliability,
)
from steelyard.stats.intervals import wilson

BINS = 10
PRECISION = 0.95


class Point(NamedTuple):
    """A label that people gave too: the judge's confidence, and whether it was right."""

    confidence: float
    is_right: bool
    label: str
    weight: float


def curves(rated: Sequence[Rated], majority: Majority, precision: float) -> tuple[Reliability, ...]:
    """A curve for each judge and kind of label that has confidences."""
    found: dict[tuple[str, str, ConfidenceKind], list[Point]] = {}
    for item in rated:
        slot = item.slot
        if slot.confidence is not None and slot.judge != UNJUDGED:
            right = slot.judge == majority.label(item)
            point = Point(slot.confidence, right, slot.judge, item.weight)
            found.setdefault((slot.by, slot.task, slot.confidence_kind), []).append(point)
    return tuple(_curve(*key, points, precision) for key, points in found.items())


def _curve(judge: str, task: str, source: ConfidenceKind, points: Sequence[Point], precision: float) -> Reliability:
    bins = [_bin(step, inside) for step in range(BINS) if (inside := [p for p in points if _step(p) == step])]
    total = sum(p.weight for p in points)
    weights = [sum(p.weight for p in points if _step(p) == round(b.low * BINS)) for b in bins]
    labels = dict.fromkeys(p.label for p in points)
    return Reliability(
        judge=judge,
        task=task,
        source=source,
        n=len(points),
        confidence=_mean(points),
        right=_right(points),
        error=sum(w * abs(b.right - b.confidence) for w, b in zip(weights, bins, strict=True)) / total,
        bins=tuple(bins),
        sure_from=tuple(sure_from(label, [p for p in points if p.label == label], precision) for label in labels),
    )


def sure_from(label: str, points: Sequence[Point], precision: float) -> ConfidenceThreshold:
    """The lowest confidence from which on this label is right often enough; null where it is so nowhere."""
    found = ConfidenceThreshold(label=label, least=None, n=0, of=len(points), precision=None, interval=None)
    weight = right = 0.0
    # From the surest down, each point once: there may be a hundred thousand.
    ordered = sorted(points, key=lambda point: -point.confidence)
    for n, (point, below) in enumerate(zip_longest(ordered, ordered[1:]), start=1):
        weight, right = weight + point.weight, right + point.weight * point.is_right
        is_last_of_its_confidence = below is None or below.confidence < point.confidence
        if is_last_of_its_confidence and n >= LEAST_LABELS and right / weight >= precision:
            found = ConfidenceThreshold(
                label=label,
                least=point.confidence,
                n=n,
                of=len(points),
                precision=right / weight,
                interval=wilson(right / weight * n, n),
            )
    return found


def _bin(step: int, points: Sequence[Point]) -> ConfidenceBin:
    right = _right(points)
    return ConfidenceBin(
        low=step / BINS,
        high=(step + 1) / BINS,
        n=len(points),
        confidence=_mean(points),
        right=right,
        interval=wilson(right * len(points), len(points)),
    )


def _step(point: Point) -> int:
    return min(BINS - 1, int(point.confidence * BINS + 1e-9))


def _mean(points: Sequence[Point]) -> float:
    return sum(p.confidence * p.weight for p in points) / sum(p.weight for p in points)


def _right(points: Sequence[Point]) -> float:
    return sum(p.weight for p in points if p.is_right) / sum(p.weight for p in points)


def thresholds(found: Calibration) -> dict[str, object]:
    """What a routed judge reads: by judge and label, from where on it is believed. Labels too few to tell are left out
    and keep the default."""
    judges: dict[str, dict[str, float | None]] = {}
    for curve in found.reliability:
        of_judge = judges.setdefault(curve.judge, {})
        for label in curve.sure_from:
            if label.of >= LEAST_LABELS:
                of_judge[f"{curve.task}.{label.label}"] = label.least
    return {"precision": found.precision, "judges": judges}
