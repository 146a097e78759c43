"""The baseline to beat: the share of a claim's words, or Chinese character pairs, found in the passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean

from training.sets import Row

from steelyard.text import fold

WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")


def pieces(text: str) -> list[str]:
    """Latin words as they are, Chinese runs as overlapping pairs."""
    found: list[str] = []
    for run in WORD.findall(fold(text).lower()):
        if run.isascii() or len(run) < 2:
            found.append(run)
        else:
            found += [run[i : i + 2] for i in range(len(run) - 1)]
    return found


def share(claim: str, passages: Sequence[str]) -> float:
    """How much of the claim is found, from 0 to 1; a claim without any word is not found."""
    wanted = pieces(claim)
    there = set(pieces(" \n ".join(passages)))
    return mean(piece in there for piece in wanted) if wanted else 0.0


def threshold(scores: Sequence[float], truths: Sequence[bool]) -> float:
    """The share from which on "supported" gives the best balanced accuracy on these rows."""
    positives, negatives = sum(truths), len(truths) - sum(truths)
    if not positives or not negatives:
        return 1.0
    pairs = sorted(zip(scores, truths, strict=True), reverse=True)
    best, chosen, hits, alarms = 0.5, 1.0 + 1e-9, 0, 0
    for at, (score, truth) in enumerate(pairs):
        hits, alarms = hits + truth, alarms + (not truth)
        if at + 1 < len(pairs) and pairs[at + 1][0] == score:
            continue
        found = (hits / positives + 1 - alarms / negatives) / 2
        if found > best:
            best, chosen = found, score
    return chosen


def learned(rows: Sequence[Row]) -> float:
    """The threshold that the train rows suggest."""
    return threshold([share(row.claim, row.passages) for row in rows], [row.is_supported for row in rows])
