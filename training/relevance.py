"""When the `local` judge takes the model's word on relevance: the numbers of [relevance] in blend.toml.

    python -m training.relevance --readings readings.jsonl [--model NAME] [--threads N]

asks the model about statements of our own (relevance.toml), prints how well it tells the levels apart beside the rules,
and the limits with the best macro-F1. What the model says is kept in the file and never asked again.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from steelyard.judges.embedded.relevance import level
from steelyard.judges.local.blend import Language
from steelyard.judges.local.readings import Readings
from steelyard.judges.local.relevance import share_for
from steelyard.judges.local.server import ModelServer
from steelyard.models import Shelf

STATEMENTS = Path(__file__).with_name("relevance.toml")
LEVELS = ("answers", "adds", "apart")
LIMITS = [step / 50 for step in range(1, 50)]


class Statement(NamedTuple):
    """One statement: its true level, the rules', and the model's share for yes."""

    level: int
    rules: int
    share: float


def statements(spoken: Language, model: Readings) -> Iterator[Statement]:
    for entry in tomllib.loads(STATEMENTS.read_text("utf-8"))[spoken]:
        question, every = entry["question"], [text for name in LEVELS for text in entry[name]]
        for number, name in enumerate(LEVELS, start=1):
            for text in entry[name]:
                share = share_for(model, question, text)
                if share is not None:
                    yield Statement(number, level(question, text, [one for one in every if one != text]).level, share)


def macro_f1(pairs: Sequence[tuple[int, int]]) -> float:
    """The mean over the levels; a level that nobody has and nobody gives does not count against anyone."""
    found = []
    for number in range(1, len(LEVELS) + 1):
        hits = sum(true == said == number for true, said in pairs)
        given = sum(said == number for _, said in pairs) + sum(true == number for true, _ in pairs)
        found.append(2 * hits / given if given else 1.0)
    return mean(found)


def by_limits(found: Sequence[Statement], direct: float, related: float) -> float:
    return macro_f1([(one.level, 1 if one.share >= direct else 2 if one.share >= related else 3) for one in found])


def best(found: Sequence[Statement]) -> tuple[float, float]:
    """The limits in the middle of the best stretch: a lucky edge would not last."""
    worth = {pair: by_limits(found, *pair) for pair in product(LIMITS, LIMITS) if pair[1] < pair[0]}
    smooth = {pair: mean(worth[near] for near in _around(pair) if near in worth) for pair in worth}
    return max(smooth, key=lambda pair: smooth[pair])


def _around(pair: tuple[float, float]) -> Iterator[tuple[float, float]]:
    step = next(second - first for first, second in pairwise(LIMITS))
    for one, other in product((-1, 0, 1), repeat=2):
        yield round(pair[0] + one * step, 2), round(pair[1] + other * step, 2)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="name or path; default: the local judge's own")
    parser.add_argument("--readings", type=Path, default=Path("readings.jsonl"), help="what it said is kept here")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args(arguments)
    model = Shelf.of_user(os.environ).find(given.model)
    server = ModelServer(model.path, threads=given.threads)
    asking = Readings(server, model.sha256, given.readings)
    languages: tuple[Language, ...] = ("zh", "en")
    for spoken in languages:
        found = list(statements(spoken, asking))
        direct, related = best(found)
        rules = macro_f1([(one.level, one.rules) for one in found])
        print(f"{spoken}: {len(found)} statements, macro-F1 of the rules {rules:.2f}, of the model", end=" ")
        print(f"{by_limits(found, direct, related):.2f} with direct = {direct}, related = {related}")
    server.close()


if __name__ == "__main__":
    main()
