"""Strengths from comparisons of two: the model of Bradley and Terry (1952), in which the odds that one beats another
are the ratio of their strengths.

Strengths are logarithms and sum to 0: a difference of 1.1 means odds of 3 to 1. A tie is half a win for each. The fit
is Hunter's MM iteration (2004), whose every step raises the likelihood. Errors are those of the likelihood, made
robust: comparisons of one cluster (the answers to one question) are summed before their spread is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.stats.intervals import CONFIDENCE, Interval, t_quantile
from steelyard.stats.libraries import Array, np

MOST_STEPS = 100_000
CLOSE_ENOUGH = 1e-10
NO_SPREAD = 1e-9


class Compared(NamedTuple):
    """Comparisons of two contestants, by number, in one cluster; `points` are those of the first."""

    first: int
    second: int
    points: float
    n: int
    cluster: int


class Strength(NamedTuple):
    """The logarithm of a strength, and its 95 % interval; None below two clusters."""

    value: float
    interval: Interval | None


def strengths(contestants: int, compared: Sequence[Compared]) -> list[Strength] | None:
    """The strengths of the contestants; None where they are not finite: some of them never lost to, or never met, the
    others, so that nothing says how far apart they are."""
    wins: Array = np.zeros((contestants, contestants))
    for one in compared:
        wins[one.first, one.second] += one.points
        wins[one.second, one.first] += one.n - one.points
    if contestants < 2 or not _connected(wins):
        return None
    values = _fitted(wins)
    errors = _errors(values, wins, compared)
    clusters = len({one.cluster for one in compared})
    reach = t_quantile((1 + CONFIDENCE) / 2, clusters - 1) if clusters > 1 else None
    return [
        Strength(float(value), None if reach is None else (float(value - reach * error), float(value + reach * error)))
        for value, error in zip(values, errors, strict=True)
    ]


def _connected(wins: Array) -> bool:
    """Whether a chain of wins leads from each to each: then, and only then, the strengths are finite (Ford 1957)."""
    return all(_reached(along) == len(wins) for along in (wins, wins.T))


def _reached(wins: Array) -> int:
    """How many can be reached from the first one along wins."""
    seen, left = {0}, [0]
    while left:
        new = set(np.flatnonzero(wins[left.pop()]).tolist()) - seen
        seen |= new
        left += new
    return len(seen)


def _fitted(wins: Array) -> Array:
    met, won = wins + wins.T, wins.sum(axis=1)
    strength: Array = np.ones(len(wins))
    for _ in range(MOST_STEPS):
        better = won / (met / (strength[:, None] + strength[None, :])).sum(axis=1)
        better /= math.exp(float(np.log(better).mean()))
        moved = float(np.abs(np.log(better / strength)).max())
        strength = better
        if moved < CLOSE_ENOUGH:
            break
    found: Array = np.log(strength)
    return found


def _errors(values: Array, wins: Array, compared: Iterable[Compared]) -> Array:
    odds = 1 / (1 + np.exp(values[None, :] - values[:, None]))
    weights = (wins + wins.T) * odds * odds.T
    information = np.diag(weights.sum(axis=1)) - weights
    # Only differences can be known, so one direction has no information; the strengths sum to 0 in it.
    inverse = np.linalg.pinv(information, hermitian=True)
    sums: dict[int, Array] = {}
    for one in compared:
        surprise = one.points - one.n * float(odds[one.first, one.second])
        of_cluster = sums.setdefault(one.cluster, np.zeros(len(values)))
        of_cluster[one.first] += surprise
        of_cluster[one.second] -= surprise
    spread = np.stack(list(sums.values()))
    clusters = len(sums)
    meat = spread.T @ spread * (clusters / max(1, clusters - 1))
    robust = np.sqrt(np.clip(np.diag(inverse @ meat @ inverse), 0, None))
    # Clusters that are all alike (every comparison a tie) show no spread; certainty does not follow from that.
    found: Array = np.where(robust > NO_SPREAD, robust, np.sqrt(np.diag(inverse)))
    return found
