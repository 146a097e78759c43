"""How well labels agree. Everything is a function of counts, so that one resampling serves all figures.

A table of counts has a row per label of the judge (or of the first person) and a column per label of the people
(or of the second). Functions take tables on the last two axes and whatever comes before; undefined is NaN here, and
becomes `None` where figures leave this package.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.stats.libraries import Array, np


def _divide(part: Array, whole: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


def raw_agreement(table: Array) -> Array:
    """The share of items with the same label on both sides."""
    return _divide(np.trace(table, axis1=-2, axis2=-1), table.sum(axis=(-2, -1)))


def chance_agreement(table: Array) -> Array:
    """How often two who label at random, each with their own habits, would agree."""
    total = table.sum(axis=(-2, -1))
    return _divide((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), total**2)


def above_chance(observed: Array, chance: Array) -> Array:
    """Agreement on a scale where chance is 0 and identity is 1. Undefined where only one label ever occurs."""
    # Two multiples of 1/n² that differ by rounding alone would otherwise make a kappa out of nothing.
    return _divide(observed - chance, np.where(1.0 - chance > 1e-12, 1.0 - chance, 0.0))


def cohen_kappa(table: Array) -> Array:
    """Cohen's κ (1960)."""
    return above_chance(raw_agreement(table), chance_agreement(table))


def precision(table: Array, label: int) -> Array:
    """Of what the judge gave this label, the share that people gave it too."""
    return _divide(table[..., label, label], table[..., label, :].sum(axis=-1))


def recall(table: Array, label: int) -> Array:
    """Of what people gave this label, the share that the judge gave it too."""
    return _divide(table[..., label, label], table[..., :, label].sum(axis=-1))


def f1(table: Array, label: int) -> Array:
    """The harmonic mean of precision and recall."""
    return _divide(2 * table[..., label, label], table[..., label, :].sum(axis=-1) + table[..., :, label].sum(axis=-1))


def balanced_accuracy(table: Array) -> Array:
    """The mean recall over the labels that people used: a judge that always says the same gets no credit for it."""
    used = table.sum(axis=-2) > 0
    recalls = _divide(np.diagonal(table, axis1=-2, axis2=-1), table.sum(axis=-2))
    return _divide(np.where(used, recalls, 0.0).sum(axis=-1), used.sum(axis=-1).astype(np.float64))


# --- several people, missing labels ----------------------------------------------------------------


def coincidences(ratings: Sequence[Sequence[int]], labels: int) -> Array:
    """Krippendorff's coincidence table of each item, from the labels it was given, in any number and order.

    An item with fewer than two labels pairs with nothing and adds nothing.
    """
    found = np.zeros((len(ratings), labels, labels))
    for unit, given in zip(found, ratings, strict=True):
        if len(given) > 1:
            counts = np.bincount(np.asarray(given), minlength=labels).astype(np.float64)
            unit += (np.outer(counts, counts) - np.diag(counts)) / (len(given) - 1)
    return found


def krippendorff_alpha(table: Array) -> Array:
    """Krippendorff's α for nominal labels from a coincidence table (2011, section D)."""
    total = table.sum(axis=(-2, -1))
    each = table.sum(axis=-1)
    matching = np.trace(table, axis1=-2, axis2=-1)
    observed = _divide(matching, total)
    expected = _divide((each * (each - 1)).sum(axis=-1), total * (total - 1))
    return above_chance(observed, expected)
