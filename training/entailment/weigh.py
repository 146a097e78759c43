"""Draws the line between supported and not, for each language, and says how well the reader does on development rows.

    python -m training.entailment.weigh                # writes weights/lines.json
    python -m training.entailment.weigh --pairs        # only the three classes of the entailment sets

The line weighs the network's numbers and what is counted exactly (`Evidence.features`). Every set counts alike, and in
a set the supported rows as much as the others. Held-out rows are not read.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.judges.embedded.network import Network, Pair
from steelyard.judges.embedded.reasons import Voice
from steelyard.judges.embedded.statements import in_context
from steelyard.judges.embedded.support import Claim, Reading
from steelyard.text import language_of
from training.entailment.examples import (
    DEVELOPMENT,
    HELD_BACK,
    LABELS,
    LEFT_OUT,
    SAYS_NOTHING,
    entailment_rows,
    held_back,
    task_rows,
)
from training.entailment.export import WEIGHTS
from training.sets import DATA, Row

MOST_OF_A_SET = 500
RIDGE = 0.002
DIE = 11


class Measured(NamedTuple):
    set: str
    language: str
    features: list[float]
    is_supported: bool
    against: float
    """How much of what is not support is contradiction, as the network sees it."""
    is_contradicted: bool | None


def chosen(rows: Sequence[Row]) -> list[Row]:
    by_set: dict[str, list[Row]] = {}
    for row in rows:
        if row.label not in LEFT_OUT:
            by_set.setdefault(f"{row.set} {language_of(row.claim) != 'en'}", []).append(row)
    dice = random.Random(DIE)
    return [row for found in by_set.values() for row in dice.sample(found, min(len(found), MOST_OF_A_SET))]


def measured(rows: Sequence[Row], network: Network) -> Iterator[Measured]:
    for row in rows:
        reading = Reading(row.passages, Voice("en"), network)
        claim = Claim(row.claim, row.context) if row.set == "answers" else _in_context(row)
        (found,) = reading.evidence([claim])
        odds = found.odds
        is_contradicted = None
        if row.label == "contradicted" or row.label == "neutral" or row.set in SAYS_NOTHING:
            is_contradicted = row.label == "contradicted"
        yield Measured(
            row.set,
            "en" if language_of(row.claim) == "en" else "zh",
            found.features(),
            row.is_supported,
            odds.contradicted / max(1e-6, odds.contradicted + odds.neutral),
            is_contradicted,
        )


def _in_context(row: Row) -> Claim:
    (claim,) = in_context([row.claim], row.context if row.set == "uhgeval" else row.claim, row.question)
    return claim


def line(rows: Sequence[Measured]) -> dict[str, object]:
    features = np.array([row.features for row in rows])
    wanted = np.array([row.is_supported for row in rows])
    sets = np.array([row.set for row in rows])
    weights, bias = _fitted(features, wanted, _shares(sets, wanted))
    odds = 1 / (1 + np.exp(-(features @ weights + bias)))
    cuts = np.linspace(0.2, 0.8, 61)
    balanced = [
        np.mean([_balanced(odds[sets == name] >= cut, wanted[sets == name]) for name in set(sets)]) for cut in cuts
    ]
    supported = float(cuts[int(np.argmax(balanced))])
    told = [row for row in rows if row.is_contradicted is not None and not row.is_supported]
    against, contradicted = np.array([row.against for row in told]), np.array([row.is_contradicted for row in told])
    second = [_balanced(against >= cut, contradicted) for cut in cuts]
    for name in sorted(set(sets)):
        own = sets == name
        print(
            f"  {name}: {own.sum()} rows, balanced {_balanced(odds[own] >= supported, wanted[own]):.3f}, "
            f"network alone {_balanced(features[own, 0] >= 0, wanted[own]):.3f}, "
            f"overlap alone {max(_balanced(features[own, 2] >= cut, wanted[own]) for cut in cuts):.3f}"
        )
    return {
        "weights": [round(float(weight), 4) for weight in weights],
        "bias": round(float(bias), 4),
        "supported": round(supported, 2),
        "contradicted": round(float(cuts[int(np.argmax(second))]), 2),
    }


def _shares(sets: NDArray[np.str_], wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    shares = np.zeros(len(sets))
    for name in set(sets):
        for side in (True, False):
            own = (sets == name) & (wanted == side)
            if own.any():
                shares[own] = 1 / own.sum()
    return shares / shares.sum()


def _fitted(
    features: NDArray[np.float64], wanted: NDArray[np.bool_], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Logistic regression by Newton's method, with a small ridge."""
    lines = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(lines.shape[1])
    ridge = RIDGE * np.eye(lines.shape[1])
    ridge[-1, -1] = 0
    for _ in range(30):
        odds = 1 / (1 + np.exp(-lines @ weights))
        slope = lines.T @ (shares * (odds - wanted)) + ridge @ weights
        bend = (lines * (shares * odds * (1 - odds))[:, None]).T @ lines + ridge
        weights -= np.linalg.solve(bend, slope)
    return weights[:-1], float(weights[-1])


def _balanced(found: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> float:
    sides = [found[wanted].mean() if wanted.any() else None, (~found[~wanted]).mean() if (~wanted).any() else None]
    known = [side for side in sides if side is not None]
    return float(np.mean(known)) if known else 0.0


def entailment(network: Network, data: Path, most: int) -> None:
    """The share of pairs whose class is found, of all three."""
    sets = {name: entailment_rows(f"dev_{name}", data) for name in DEVELOPMENT}
    kept = entailment_rows(f"train_{HELD_BACK}", data)
    sets[f"{HELD_BACK} held back"] = [pair for pair, is_held in zip(kept, held_back(kept), strict=True) if is_held]
    for name, pairs in sets.items():
        pairs = random.Random(DIE).sample(pairs, min(most, len(pairs)))
        odds = network.read([Pair((pair["premise"],), "", pair["claim"]) for pair in pairs])
        found = np.array(odds).argmax(1)
        wanted = np.array([LABELS[pair["label"]] for pair in pairs])
        print(f"{name}: {len(pairs)} pairs, right {np.mean(found == wanted):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--keep", type=Path, help="a file for what was measured; later lines are drawn from it")
    parser.add_argument("--most", type=int, default=1000)
    given = parser.parse_args()
    network = Network(given.weights)
    if given.pairs:
        entailment(network, given.data, given.most)
        return
    kept: Path | None = given.keep
    if kept and kept.exists():
        found = [Measured(*row) for row in json.loads(kept.read_text())]
    else:
        found = list(measured(chosen(list(task_rows("dev", given.data))), network))
        if kept:
            kept.write_text(json.dumps(found))
    lines = {}
    for language in ("en", "zh"):
        print(language)
        lines[language] = line([row for row in found if row.language == language])
    (given.weights / "lines.json").write_text(json.dumps(lines, indent=1) + "\n")
    print(json.dumps(lines))


if __name__ == "__main__":
    main()
