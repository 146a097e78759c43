"""Train the embedded judge's learned part: python -m training.train [--data ../shared/data]

Everything is seeded; the same measured features and library versions give the same weights, byte for byte.
Learns on the train parts and the planted pairs, chooses and calibrates on the dev parts, never reads a held-out part.
"""

from __future__ import annotations

import argparse
import io
import itertools
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from steelyard.judges.embedded.clashes import KINDS as CLASHES
from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.model import (
    KINDS,
    REGIMES,
    WEIGHTS,
    Leaning,
    Line,
    Trees,
    kinds,
    regimes,
    together,
    weighed_up,
)
from training.measuring import FOLDS, Measured, measured, read
from training.planted import pairs
from training.profiles import SET as PROFILES
from training.profiles import profiles
from training.sets import DATA, NEVER_TRAINED_ON, SETS, Part, Row, rows
from training.slips import slips
from training.written import written

LEARNED = (*(name for name in SETS if name not in NEVER_TRAINED_ON), "planted", "slips", "profiles", "written")
SEED = 20
# How much each set counts; within a set both labels count the same, whatever their numbers.
SHARES = {
    "factcheckgpt": 1.5, "summedits": 1.0, "begin": 1.2, "uhgeval": 1.2, "kvpi": 1.2, "planted": 1.0, "slips": 1.5,
    "profiles": 1.0, "written": 4.0,
}  # fmt: skip
# Sets whose other label means that people saw no claim at all have nothing to teach about support.
NO_LESSON = frozenset(("no_claim", "unclear"))


# What can only speak for a claim, and what only against it: the trees may not learn the reverse from a few odd rows.
FOR = frozenset(
    "recall_all recall_best recall_window recall_top weighted_all weighted_best weighted_window weighted_top "
    "pairs_window run run_window verbatim clause_recall characters cosine_best cosine_max cosine_clause "
    "soft_least soft_mean soft_rare soft_recall soft_recall_top value_named "
    "w_clause w_sentence w_window w_passage w_all w_rest weakest ctx_clause ctx_sentence".split()
)
AGAINST = frozenset(
    "missing missing_window missing_rarest missing_second strange nowhere soft_far facts_far facts_nowhere "
    "names_unknown han_names_unknown negators_differ extremes_unknown other_sign other_place clashes "
    "facts_unheld lone lone_mass lone_rarest far_mass far_rarest name_lone name_far rival_near polar_gap "
    "polar_best turned_gap ctx_far ctx_lone ctx_before ctx_facts".split()
) | frozenset(f"clash_{kind}" for kind in CLASHES)


class Chosen(NamedTuple):
    leaves: int
    rounds: int
    rate: float
    ridge: float


GRID = [Chosen(*each) for each in itertools.product((16,), (300,), (0.05,), (20.0,))]


def part_rows(part: Part, data: Path) -> list[Row]:
    public = [row for name in LEARNED if name in SETS for row in rows(name, part, data)]
    own = (*pairs(part, data), *slips(part), *profiles(part, data), *written(part))
    return [row for row in (*public, *own) if row.label not in NO_LESSON]


def weights_of(found: Measured) -> NDArray[np.float64]:
    weights = np.zeros(len(found.supported))
    for name in np.unique(found.sets):
        for label in (True, False):
            here = (found.sets == name) & (found.supported == label)
            if here.any():
                weights[here] = SHARES.get(str(name), 1.0) / here.sum()
    scaled: NDArray[np.float64] = weights * len(weights) / weights.sum()
    return scaled


def straight(train: Measured) -> Line:
    """Logistic regression in which no feature may count against its nature, held close to zero: it has to serve text
    that nobody trained on. Scaled to spread by one over the training rows."""
    weights = weights_of(train)
    share = weights / weights.sum()
    mean, spread = share @ train.features, train.features.std(axis=0) + 1e-6
    scaled, sign = (train.features - mean) / spread, np.where(train.supported, 1.0, -1.0)

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        against = -sign * (scaled @ line[1:] + line[0])
        pull = -sign / (1 + np.exp(-against)) * share
        value = float(share @ np.logaddexp(0, against) + RIDGE * (line[1:] ** 2).sum())
        return value, np.concatenate([[pull.sum()], scaled.T @ pull + 2 * RIDGE * line[1:]])

    bounds = [(None, None), *((0, None) if name in FOR else (None, 0) if name in AGAINST else (0, 0) for name in NAMES)]
    line = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds).x.round(6)
    found = Line(line[1:] / spread, float(line[0] - (line[1:] / spread) @ mean))
    wide = float(found.score(train.features).std())
    return Line((found.weights / wide).round(6), round(found.offset / wide, 6))


RIDGE = 0.3


def fitted(train: Measured, columns: NDArray[np.float64], chosen: Chosen) -> Any:
    directions = [1 if name in FOR else -1 if name in AGAINST else 0 for name in NAMES]
    trees = HistGradientBoostingClassifier(
        learning_rate=chosen.rate, max_iter=chosen.rounds, max_leaf_nodes=chosen.leaves, min_samples_leaf=25,
        l2_regularization=chosen.ridge, early_stopping=False, random_state=SEED, max_features=0.4,
        monotonic_cst=[*directions, *(0 for _ in REGIMES)],
    )  # fmt: skip
    return trees.fit(columns, train.supported, sample_weight=weights_of(train))


# --- leanings --------------------------------------------------------------------------------------


def leanings(train: Measured) -> tuple[dict[str, Leaning], NDArray[np.float64]]:
    """A leaning per regime, and what each says of the training rows when it has not seen their documents."""
    found = {regime: _leaning(train, here, regime) for regime, here in regimes(train.features).items()}
    columns = np.zeros((len(train.supported), len(REGIMES)))
    for at, (regime, here) in enumerate(regimes(train.features).items()):
        for fold in range(FOLDS):
            away = train.folds != fold
            columns[~away, at] = _leaning(train, here & away, regime).of(train.vectors, here)[~away]
    return found, columns


def _leaning(train: Measured, here: NDArray[np.bool_], regime: str) -> Leaning:
    if len(set(_told(train, regime)[here])) < 2:
        return Leaning(np.zeros(train.vectors.shape[1]), 0.0)
    fit = LogisticRegression(C=0.5, max_iter=500).fit(train.vectors[here], _told(train, regime)[here])
    return Leaning(fit.coef_[0].astype(np.float64), float(fit.intercept_[0]))


def _told(train: Measured, regime: str) -> NDArray[np.bool_]:
    # Beside a list of facts the question is whether the claim is about them at all.
    return train.labels != "unsupported" if regime == "listed" else train.supported


def with_leanings(found: Measured, learnt: Mapping[str, Leaning]) -> NDArray[np.float64]:
    here = regimes(found.features)
    return np.column_stack([found.features, *(learnt[regime].of(found.vectors, here[regime]) for regime in REGIMES)])


def exported(fit: Any) -> Trees:
    """The fitted trees as tables. Missing values do not occur: such rows are left out of training."""
    grown = [stage[0].nodes for stage in fit._predictors]
    size = max(len(nodes) for nodes in grown)
    tables: dict[str, Any] = {
        "feature": np.zeros((len(grown), size), dtype=np.int16),
        "threshold": np.zeros((len(grown), size), dtype=np.float64),
        "left": np.zeros((len(grown), size), dtype=np.int16),
        "right": np.zeros((len(grown), size), dtype=np.int16),
        "value": np.zeros((len(grown), size), dtype=np.float32),
    }
    for at, nodes in enumerate(grown):
        own = np.arange(len(nodes))
        leaf = nodes["is_leaf"].astype(bool)
        tables["feature"][at, : len(nodes)] = np.where(leaf, 0, nodes["feature_idx"])
        tables["threshold"][at, : len(nodes)] = np.where(leaf, 0.0, nodes["num_threshold"])
        tables["left"][at, : len(nodes)] = np.where(leaf, own, nodes["left"])
        tables["right"][at, : len(nodes)] = np.where(leaf, own, nodes["right"])
        tables["value"][at, : len(nodes)] = np.where(leaf, nodes["value"], 0.0)
    depth = max(int(nodes["depth"].max()) for nodes in grown)
    return Trees(**tables, start=float(np.ravel(fit._baseline_prediction)[0]), depth=depth)


def even(trees: Trees, columns: NDArray[np.float64]) -> Trees:
    """The same trees, scaled to spread by one over the training rows, as the line is."""
    wide = float(trees.score(columns).std().round(6))
    return trees._replace(value=(trees.value / wide).astype(np.float32), start=trees.start / wide)


def balanced(supported: NDArray[np.bool_], called: NDArray[np.bool_]) -> float:
    """Balanced accuracy: the mean of the two shares that were called rightly."""
    return float((called[supported].mean() + (~called[~supported]).mean()) / 2)


def by_set(found: Measured, called: NDArray[np.bool_]) -> Mapping[str, float]:
    return {
        str(name): balanced(found.supported[found.sets == name], called[found.sets == name])
        for name in np.unique(found.sets)
    }


def calibrated(scores: NDArray[np.float64], readings: NDArray[np.float64], dev: Measured) -> NDArray[np.float64]:
    """For each kind of row what scores and readings count, as a plane to log-odds (Platt's line, with three).

    Both labels of every set count the same.
    """
    weights, kind = weights_of(dev), kinds(dev.features)
    columns = np.column_stack([scores, readings])
    found = np.zeros((len(KINDS), columns.shape[1] + 1))
    for at in range(len(KINDS)):
        here = kind == at
        if len(set(dev.supported[here])) < 2:
            here = np.ones_like(here)
        counted = np.arange(columns.shape[1])
        while True:
            plane = LogisticRegression(C=1e6).fit(columns[here][:, counted], dev.supported[here], weights[here])
            if (plane.coef_ >= 0).all():
                break
            # Nothing that speaks for a claim may count against it; without it the others are weighed anew.
            counted = counted[plane.coef_[0] >= 0]
        found[at, counted], found[at, -1] = plane.coef_[0], plane.intercept_[0]
    return found.round(5)


def drawn(probability: NDArray[np.float64], dev: Measured, language: str) -> tuple[float, float]:
    """Where a language draws its lines: above the first a claim is supported, below the second a clash counts."""
    chinese = dev.features[:, NAMES.index("chinese")] > 0
    here = chinese if language == "zh" else ~chinese
    rows = _only(dev, here)
    served = {float(line): _mean(rows, probability[here] >= line) for line in STEPS}
    # Of lines that serve nearly as well the strictest: an error called correct costs more than an abstention.
    supported = max(line for line, mean in served.items() if mean >= max(served.values()) - NEARLY)
    clashing = here & (dev.features[:, NAMES.index("clashes")] > 0)
    # A clash that people would not call one costs more than one that is missed.
    worth = weights_of(dev)[clashing] * np.where(dev.supported[clashing], -2.0, 1.0)
    contradicted = max(STEPS, key=lambda line: (worth[probability[clashing] < line].sum(), line))
    return float(supported), float(contradicted)


def denial(
    denied: NDArray[np.float64],
    probability: NDArray[np.float64],
    dev: Measured,
    lines: Mapping[str, tuple[float, float]],
) -> float:
    """From where on what the network finds denied is called so: there it is mostly right, where labels tell."""
    chinese = dev.features[:, NAMES.index("chinese")] > 0
    rest = probability < np.where(chinese, lines["zh"][0], lines["en"][0])
    told = rest & np.isin(dev.sets, TELLS_APART)
    weights, is_right = weights_of(dev), dev.labels == "contradicted"

    def share(line: float) -> float:
        called = told & (denied >= line)
        return float((weights * is_right)[called].sum() / (weights[called].sum() or 1))

    return float(next((line for line in STEPS if share(line) >= SURE_OF_DENIAL), 1.0))


SURE_OF_DENIAL = 0.8
NEARLY = 0.005
# Sets whose labels tell what is contradicted from what is not to be found.
TELLS_APART = ("factcheckgpt", "kvpi", "profiles", "written")
STEPS = np.round(np.arange(0.30, 0.905, 0.01), 2)


def _only(found: Measured, here: NDArray[np.bool_]) -> Measured:
    return Measured(*(field[here] for field in found))


def _mean(found: Measured, called: NDArray[np.bool_]) -> float:
    return float(np.mean(list(by_set(found, called).values())))


def usable(part: Part, options: argparse.Namespace) -> Measured:
    kept = options.keep / f"{part}.npz" if options.keep else None
    found = measured(part_rows(part, options.data), kept, options.workers)
    return _only(found, ~np.isnan(found.features[:, 0]))


def tables(
    trees: Trees, line: Line, learnt: Mapping[str, Leaning], weighed: NDArray[np.float64],
    lines: Mapping[str, tuple[float, float]],
) -> Mapping[str, Any]:  # fmt: skip
    """All that `Model` holds, as it is written."""
    leant = np.array([[learnt[regime].offset, *learnt[regime].weights] for regime in REGIMES], dtype=np.float32)
    held = trees._asdict() | {"names": np.array(NAMES), "leanings": leant, "weighed": weighed}
    held |= {"line": np.array([line.offset, *line.weights])}
    return held | {"languages": np.array(list(lines)), "lines": np.array(list(lines.values()))}


def saved(out: Path, held: Mapping[str, Any]) -> None:
    """Write the weights; the archive carries no time stamps, so that the same training gives the same bytes."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in held.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(value), allow_pickle=False)
            archive.writestr(
                zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), content.getvalue(), zipfile.ZIP_DEFLATED
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the public sets")
    parser.add_argument("--keep", type=Path, default=None, help="a folder in which to keep measured features")
    parser.add_argument("--workers", type=int, default=1, help="processes that measure at the same time")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args(arguments)
    # Twins of profiles teach the network who is spoken of; trees lose by them which words go with which label.
    train, dev = (_only(found, found.sets != PROFILES) for found in (usable(part, options) for part in PARTS))
    learnt, unseen = leanings(train)
    columns, tested = np.column_stack([train.features, unseen]), with_leanings(dev, learnt)
    line = straight(train)
    grown = {each: even(exported(fitted(train, columns, each)), columns) for each in GRID}
    said = {each: together(grown[each], line, dev.features, tested) for each in GRID}
    chosen = max(GRID, key=lambda each: _mean(dev, said[each] >= 0))
    readings, denied = read(dev, options.workers)
    trees, scores = grown[chosen], said[chosen]
    weighed = calibrated(scores, readings, dev)
    probability = weighed_up(weighed[kinds(dev.features)], scores, readings)
    lines = {language: drawn(probability, dev, language) for language in LANGUAGES}
    line_of_denial = denial(denied, probability, dev, lines)
    saved(options.out, tables(trees, line, learnt, weighed, lines) | {"denied": line_of_denial})
    print(f"chosen {chosen}, lines {lines}, denied from {line_of_denial}")
    for kind, weights in zip(KINDS, weighed.tolist(), strict=True):
        print(f"{kind}: trees and line count {weights[0]}, the networks {weights[1:-1]}, offset {weights[-1]}")
    chinese = dev.features[:, NAMES.index("chinese")] > 0
    called = probability >= np.where(chinese, lines["zh"][0], lines["en"][0])
    for name, value in by_set(dev, called).items():
        print(f"dev {name:14} balanced accuracy {value:.3f}")


PARTS: tuple[Part, Part] = ("train", "dev")
LANGUAGES = ("en", "zh")

if __name__ == "__main__":
    main()
