"""The numbers of the `local` judge: when the model is asked, and how its word and the rules' are weighed.

    python -m training.local --model qwen2.5-coder-1.5b --rows 80 --remember scores.jsonl

asks the model about claims of the development parts only, chooses src/steelyard/judges/local/blend.toml by
balanced accuracy averaged over the sets of a language, and prints what it saw. Every score is appended to the
--remember file, so that a run that was stopped goes on, and other numbers can be tried without asking again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from steelyard.judges.embedded.support import Support, read
from steelyard.judges.local.blend import Blend, Language, log_odds
from steelyard.judges.local.reading import language, share_for
from steelyard.judges.local.server import FirstToken, Message, ModelServer
from steelyard.judges.local.window import window
from steelyard.models import Shelf
from training.planted import pairs
from training.sets import DATA, Row, rows

SETS: Mapping[Language, Sequence[str]] = {
    "zh": ("paraphrased", "planted", "uhgeval", "kvpi"),
    "en": ("paraphrased", "planted", "factcheckgpt", "begin", "summedits"),
}
PARAPHRASED = Path(__file__).with_name("paraphrased.toml")
LEFT_OUT = frozenset(("no_claim", "unclear"))
# The widest band worth asking in, and those that are tried; asking about all costs what it brings in.
WIDEST = (0.02, 0.98)
ABOVE, BELOW = (0.02, 0.1, 0.2, 0.3), (0.7, 0.8, 0.9, 0.98)
COST_OF_ASKING = 0.02
LEAST_INSISTENCE = 0.9
SEED = 11


class Opinion(NamedTuple):
    """One labelled claim: what the rules say of it, and the model's share for yes where it was asked."""

    set: str
    supported: bool
    rules: Support
    share: float | None


class Remembering:
    """A model that is asked the same thing only once, even in another run."""

    def __init__(self, model: ModelServer, path: Path) -> None:
        self._model, self._path, self._known = model, path, dict[str, FirstToken]()
        if path.exists():
            self._known = dict(json.loads(line) for line in path.read_text("utf-8").splitlines())

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._model.turn():
            yield

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None:
        asked = json.dumps([self._model.path.name, list(messages)], ensure_ascii=False)
        key = hashlib.sha256(asked.encode()).hexdigest()[:32]
        if key not in self._known:
            self._known[key] = self._model.first_token(messages) or {}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self._known[key]], ensure_ascii=False) + "\n")
        return self._known[key] or None


def dev_rows(name: str, spoken: Language, n: int, data: Path) -> list[Row]:
    """n rows of a set's development part, half of them supported, the same ones every time."""
    if name == "paraphrased":
        found: Iterable[Row] = paraphrased(spoken)
    else:
        found = pairs("dev", data) if name == "planted" else rows(name, "dev", data)
    kept = [row for row in found if row.label not in LEFT_OUT and language(row.claim) == spoken]
    random.Random(SEED).shuffle(kept)
    halves = [[row for row in kept if row.is_supported is side][: n // 2] for side in (True, False)]
    # In turns, so that a run that is cut short has seen both.
    return [row for pair in zip(*halves, strict=False) for row in pair]


def paraphrased(spoken: Language) -> Iterator[Row]:
    """True and false claims in other words than their passage's."""
    for text in tomllib.loads(PARAPHRASED.read_text("utf-8"))[spoken]:
        passages = (text["passage"],)
        for label, key in (("supported", "true"), ("unsupported", "false")):
            for claim in text[key]:
                yield Row("paraphrased", claim, passages[0], "", claim, passages, label)


def opinions(found: Sequence[Row], model: Remembering) -> Iterator[Opinion]:
    for row in found:
        rules = read(row.passages, row.question).support(row.claim)
        is_open = rules.reference is not None and WIDEST[0] < rules.probability < WIDEST[1]
        share = share_for(model, window(row.passages, [row.claim]), row.claim) if is_open else None
        yield Opinion(row.set, row.is_supported, rules, share)


# --- choosing --------------------------------------------------------------------------------------


def chosen(found: Sequence[Opinion]) -> tuple[Blend, float]:
    """The best numbers for these opinions, and the balanced accuracy they reach on them."""
    blends = [blend for above, below in product(ABOVE, BELOW) if (blend := fitted(found, above, below))]
    worth = {blend: accuracy(found, blend) - COST_OF_ASKING * share_asked(found, blend) for blend in blends}
    best = max(blends, key=lambda blend: worth[blend])
    return best, accuracy(found, best)


def fitted(found: Sequence[Opinion], above: float, below: float) -> Blend | None:
    """The weights for a band, learnt where they will be used: on the claims inside it."""
    inside = [one for one in found if one.share is not None and above < one.rules.probability < below]
    if len({one.supported for one in inside}) < 2:
        return None
    rules, model, constant = (round(number, 3) for number in weights(inside))
    insists = insistence(inside)
    return Blend(ask_above=above, ask_below=below, rules=rules, model=model, constant=constant, insists=insists)


def weights(asked: Sequence[Opinion]) -> tuple[float, float, float]:
    """What the rules' log-odds, the model's, and nothing at all count for; the rules' never against themselves."""
    features = np.array([[log_odds(one.rules.probability), log_odds(one.share or 0.0)] for one in asked])
    truth = [one.supported for one in asked]
    both = LogisticRegression(class_weight="balanced").fit(features, truth)
    if both.coef_[0][0] >= 0:
        return float(both.coef_[0][0]), float(both.coef_[0][1]), float(both.intercept_[0])
    alone = LogisticRegression(class_weight="balanced").fit(features[:, 1:], truth)
    return 0.0, float(alone.coef_[0][0]), float(alone.intercept_[0])


def insistence(asked: Sequence[Opinion]) -> float:
    """The share that the model hardly ever gives a claim that is not supported."""
    denied = [one.share or 0.0 for one in asked if not one.supported]
    return round(max(LEAST_INSISTENCE, float(np.quantile(denied, 0.95))), 3)


def is_supported(one: Opinion, blend: Blend) -> bool:
    if one.share is None or not blend.is_open(one.rules):
        return one.rules.label == "supported"
    return blend.label(one.rules, one.share) == "supported"


def accuracy(found: Sequence[Opinion], blend: Blend | None) -> float:
    """Balanced accuracy, each set counting the same; without a blend, that of the rules alone."""
    by_set: dict[str, list[Opinion]] = {}
    for one in found:
        by_set.setdefault(one.set, []).append(one)
    return mean(_balanced(part, blend) for part in by_set.values())


def _balanced(part: Sequence[Opinion], blend: Blend | None) -> float:
    right: dict[bool, list[bool]] = {True: [], False: []}
    for one in part:
        said = is_supported(one, blend) if blend else one.rules.label == "supported"
        right[one.supported].append(said == one.supported)
    return mean(mean(side) for side in right.values() if side)


def share_asked(found: Sequence[Opinion], blend: Blend) -> float:
    return mean(one.share is not None and blend.is_open(one.rules) for one in found)


def as_toml(spoken: Language, blend: Blend) -> str:
    lines = [f"{name} = {value}" for name, value in blend.model_dump().items()]
    return "\n".join([f"[{spoken}]", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="name or path; default: the local judge's own")
    parser.add_argument("--rows", type=int, default=80, help="rows of each set")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--remember", type=Path, default=Path("scores.jsonl"))
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    server = ModelServer(Shelf.of_user(os.environ).find(given.model).path, threads=given.threads)
    model = Remembering(server, given.remember)
    for spoken, names in SETS.items():
        found: list[Opinion] = []
        for name in names:
            part = list(opinions(dev_rows(name, spoken, given.rows, given.data), model))
            print(f"# {spoken} {name}: n {len(part)}, rules alone {accuracy(part, None):.3f}", flush=True)
            found += part
        blend, reached = chosen(found)
        for name in names:
            part = [one for one in found if one.set == name]
            print(f"# {spoken} {name}: both {accuracy(part, blend):.3f}, asked {share_asked(part, blend):.2f}")
        print(f"# {spoken}: rules alone {accuracy(found, None):.3f}, both {reached:.3f}\n\n{as_toml(spoken, blend)}\n")
    server.close()


if __name__ == "__main__":
    main()
