"""Draws the line of each language: weights of what the network says and what is counted beside it, and two thresholds.

    python -m training.entailment.weigh --rows 300

Reads development rows with the judge as it is shipped and writes `lines.json` beside its network. Every set counts the
same, and within a set both labels do.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steelyard.judges.embedded.network import Odds
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.judges.embedded.support import ClaimInContext, PassageReading
from steelyard.text import language_of, sentences
from training.entailment.examples import LEFT_OUT, SAYS_NOTHING, entailment_rows, held_back, task_rows
from training.entailment.export import WEIGHTS
from training.sets import DATA, Row

# Measured by themselves, never among the rows that the line is drawn on.
PAIRS_TOO = {"en_fever": "dev_en_fever", "zh_cfever": "train_zh_cfever"}
STRENGTH, STEPS = 0.002, 40
CUTS = np.linspace(0.2, 0.8, 61)
THREE = {"supported": 0, "contradicted": 1, "neutral": 2}
Numbers = np.ndarray  # type: ignore[type-arg]


class Seen(NamedTuple):
    language: str
    set: str
    features: list[float]
    odds: Odds
    label: str


def development(data: Path, most: int) -> Iterator[Row]:
    found: dict[str, list[Row]] = {}
    for row in task_rows("dev", data):
        if row.label not in LEFT_OUT:
            found.setdefault(f"{_language(row.claim)} {row.set}", []).append(row)
    for name, file in PAIRS_TOO.items():
        pairs = entailment_rows(file, data)
        if file.startswith("train"):
            pairs = [pair for pair, held in zip(pairs, held_back(pairs), strict=True) if held]
        found[name] = [
            Row(name, pair["id"], "", "", pair["claim"], (pair["premise"],), pair["label"]) for pair in pairs
        ]
    for rows in found.values():
        yield from random.Random(11).sample(rows, min(len(rows), most))


def _language(text: str) -> str:
    return "en" if language_of(text) == "en" else "zh"


def seen(row: Row) -> Seen:
    context = ""
    if row.set == "answers":
        context = row.context
    elif row.set == "uhgeval":
        context = next((sentence for sentence in sentences(row.context) if row.claim in sentence), "")
    (found,) = PassageReading(row.passages, Phrasing("en")).evidence([ClaimInContext(row.claim, context)])
    label = "neutral" if row.label == "unsupported" and row.set in SAYS_NOTHING else row.label
    return Seen(_language(row.claim), row.set, found.features(), found.odds, label)


def balanced(found: Numbers, wanted: Numbers) -> float:
    if not wanted.any() or wanted.all():
        return float("nan")
    return float((found[wanted].mean() + (~found[~wanted]).mean()) / 2)


def line(rows: Sequence[Seen]) -> dict[str, object]:
    features = np.array([[*row.features, 1.0] for row in rows])
    wanted = np.array([row.label == "supported" for row in rows])
    sets = np.array([row.set for row in rows])
    share = np.zeros(len(rows))
    for name in set(sets):
        for label in (True, False):
            mine = (sets == name) & (wanted == label)
            share[mine] = 1 / max(1, mine.sum())
    share /= share.sum()
    weights = np.zeros(features.shape[1])
    strength = STRENGTH * np.eye(len(weights))
    strength[-1, -1] = 0
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (share * (likely - wanted)) + strength @ weights
        weights -= np.linalg.solve((features.T * (share * likely * (1 - likely))) @ features + strength, slope)
    likely = 1 / (1 + np.exp(-features @ weights))
    of_sets = sorted(set(sets))
    cut = _best(lambda cut: [balanced(likely[sets == name] >= cut, wanted[sets == name]) for name in of_sets])
    for name in of_sets:
        mine = sets == name
        alone = np.array([row.odds.supported >= 0.5 for row in rows])
        print(
            f"  {name:14} {mine.sum():4}  line {balanced(likely[mine] >= cut, wanted[mine]):.3f}  "
            f"network {balanced(alone[mine], wanted[mine]):.3f}",
            flush=True,
        )
    # Which of those that are not supported are contradicted.
    rest = [row for row in rows if row.label in ("contradicted", "neutral")]
    against = np.array([row.odds.contradicted / max(1e-6, row.odds.contradicted + row.odds.neutral) for row in rest])
    denied = np.array([row.label == "contradicted" for row in rest])
    second = _best(lambda cut: [balanced(against >= cut, denied)])
    print(f"  contradicted or not said: {balanced(against >= second, denied):.3f}")
    return {
        "weights": [round(float(weight), 4) for weight in weights[:-1]],
        "bias": round(float(weights[-1]), 4),
        "supported": round(cut, 2),
        "contradicted": round(second, 2),
    }


def _best(figures: object) -> float:
    return float(CUTS[int(np.argmax([np.nanmean(figures(cut)) for cut in CUTS]))])  # type: ignore[operator]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rows", type=int, default=300, help="of each set and language")
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    rows = [seen(row) for row in development(given.data, given.rows)]
    lines = {}
    for language in ("en", "zh"):
        print(language)
        lines[language] = line([row for row in rows if row.language == language])
    (given.weights / "lines.json").write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    print(lines)


if __name__ == "__main__":
    main()
