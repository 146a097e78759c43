"""The scores of `retrieval`, counted from labels: ranking metrics, and the cause of a failure. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from steelyard.protocols.scoring import Number, plain, ratio
from steelyard.protocols.vocabulary import UNJUDGED
from steelyard.records import AnyItem

GAINS = {"answers": 2, "helps": 1, "irrelevant": 0}
# Logarithms are no fractions. Decimal rounds them the same way on every machine.
PRECISE = Context(prec=40)


def of_kind(items: Iterable[AnyItem], kind: str) -> list[AnyItem]:
    return [item for item in items if item.kind == kind]


def read(item: AnyItem, field: str) -> str | None:
    """A label of an item; null where it does not apply."""
    label: str | None = getattr(item, field, None)
    return label


# --- scores ----------------------------------------------------------------------------------------


def retrieval_scores(items: Sequence[AnyItem], k: int, *, with_recall: bool = True) -> dict[str, Number]:
    """The scores, each null where nothing can be said. `with_recall` is off where key points come from the passages
    themselves, which then hold all of them; where there are no passages; where the right answer is that there is none.
    """
    passages = sorted(of_kind(items, "passage"), key=lambda item: item.id)
    ranked = [read(item, "label") for item in passages]
    labels = [label for label in ranked if label is not None]
    useful = [item for item in passages if GAINS.get(read(item, "label") or "")]
    used = [use for item in useful if (use := read(item, "use")) in ("used", "unused")]
    points = [label for item in of_kind(items, "point") if (label := read(item, "label")) in ("found", "not_found")]
    recall = ratio(points.count("found"), len(points)) if with_recall else None
    return {
        "recall": plain(recall),
        "precision": plain(_precision(labels)),
        "precision_at_k": plain(_precision(labels[:k])),
        "ndcg": ndcg(labels),
        "mrr": plain(reciprocal_rank(labels)),
        "noise": plain(_noise(passages)),
        "use": plain(ratio(used.count("used"), len(used))),
    }


def _precision(labels: Sequence[str]) -> Fraction | None:
    known = [GAINS[label] for label in labels if label in GAINS]
    return ratio(sum(gain > 0 for gain in known), len(known))


def ndcg(labels: Sequence[str]) -> Number:
    """The gains as they are ranked over the same gains in the best order; null where none is worth anything, and while
    a label is open: it could stand anywhere."""
    if any(label not in GAINS for label in labels):
        return None
    gains = [GAINS[label] for label in labels]
    best = sorted(gains, reverse=True)
    if not any(gains):
        return None
    return 1 if gains == best else float(PRECISE.divide(_discounted(gains), _discounted(best)))


def _discounted(gains: Sequence[int]) -> Decimal:
    total, two = Decimal(0), PRECISE.ln(Decimal(2))
    for place, gain in enumerate(gains, start=2):
        # gain / log2(rank + 1)
        total = PRECISE.add(total, PRECISE.divide(PRECISE.multiply(gain, two), PRECISE.ln(Decimal(place))))
    return total


def reciprocal_rank(labels: Sequence[str]) -> Fraction | None:
    """1 over the place of the first passage that is worth something, 0 without one; null where an open label comes
    first."""
    for place, label in enumerate(labels, start=1):
        if label not in GAINS:
            return None
        if GAINS[label]:
            return Fraction(1, place)
    return Fraction(0) if labels else None


def _noise(passages: Sequence[AnyItem]) -> Fraction | None:
    """The share of the retrieved text that stands in irrelevant passages."""
    known = [(int(getattr(item, "size", 0)), label) for item in passages if (label := read(item, "label")) in GAINS]
    return ratio(sum(size for size, label in known if label == "irrelevant"), sum(size for size, _ in known))


# --- blame -----------------------------------------------------------------------------------------

# Where several points of a sample fail for different causes, the first of these is told: what is said wrongly before
# what is left out, and of what is left out, what the answer could not know first.
ORDER = ("misread", "noise_followed", "made_up", "retriever_miss", "ignored")


class Blame(NamedTuple):
    """The cause of a sample's failure, or that there is none, with the items that show it."""

    cause: str
    shown_by: tuple[AnyItem, ...] = ()
    reason: str = ""


def blame(items: Sequence[AnyItem], refuses: bool | None) -> Blame | None:
    """One cause from labels alone; None where there are none, `unjudged` while one that could change it is open.

    `refuses` says whether the answer declines as a whole; None where that is open.
    """
    passages, points = of_kind(items, "passage"), of_kind(items, "point")
    rated = [item for item in passages if read(item, "label") is not None]
    if not points and not rated:
        return None
    fields = [(item, name) for item in passages for name in ("label", "use")]
    fields += [(item, name) for item in points for name in ("label", "in_answer")]
    if waiting := next((item for item, name in fields if read(item, name) == UNJUDGED), None):
        return Blame(UNJUDGED, (waiting,), waiting.reason)
    if refuses is None:
        return Blame(UNJUDGED, (), "split")
    if refuses:
        right = declines_as_expected(points, refuses) or not _is_answerable(rated, points)
        return Blame("right_refusal" if right else "wrong_refusal")
    if not points:
        return Blame(_without_points(rated), tuple(_used(rated)))
    failing = [(_cause_of_point(point, passages), point) for point in points if read(point, "in_answer") != "stated"]
    if not failing:
        return Blame("no_failure")
    cause = min((cause for cause, _ in failing), key=ORDER.index)
    return Blame(cause, tuple(point for one, point in failing if one == cause))


def declines_as_expected(items: Iterable[AnyItem], refuses: bool | None) -> bool:
    """Whether an answer that declines states every key point: then they say that there is no answer, and no passage
    can hold them."""
    points = of_kind(items, "point")
    return bool(refuses and points) and all(read(point, "in_answer") == "stated" for point in points)


def _is_answerable(rated: Sequence[AnyItem], points: Sequence[AnyItem]) -> bool:
    """Whether a passage answers the question, or several together hold every key point."""
    held = [read(point, "label") == "found" for point in points]
    return any(read(item, "label") == "answers" for item in rated) or (bool(held) and all(held))


def _used(passages: Iterable[AnyItem]) -> list[AnyItem]:
    return [item for item in passages if read(item, "use") == "used"]


def _cause_of_point(point: AnyItem, passages: Sequence[AnyItem]) -> str:
    """Why the answer does not state a key point."""
    found = read(point, "label") == "found"
    if read(point, "in_answer") == "absent":
        return "ignored" if found else "retriever_miss"
    used = _used(passages)
    if found and {item.id for item in used} & set(getattr(point, "passages", ())):
        return "misread"
    if any(read(item, "label") == "irrelevant" for item in used):
        return "noise_followed"
    return "ignored" if found else "made_up"


def _without_points(rated: Sequence[AnyItem]) -> str:
    """Without key points only the passages tell: whether the answer could and did draw on one that is worth it."""
    useful = [item for item in rated if GAINS.get(read(item, "label") or "")]
    if all(read(item, "use") is None for item in rated):
        # Nothing was said at all.
        return "ignored" if useful else "retriever_miss"
    if _used(useful):
        return "no_failure"
    if _used(rated):
        return "noise_followed"
    return "ignored" if useful else "made_up"
