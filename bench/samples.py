"""The samples every client judges: made up, each one different, the same on every machine."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

PARTS = "battery screen sensor housing motor cable filter valve pump bracket relay switch charger lens hinge".split()


def samples(count: int) -> Iterator[dict[str, Any]]:
    """Question, three passages of some eighty words, a four-sentence answer, a two-sentence reference answer."""
    rng = random.Random(20)
    for index in range(count):
        name = f"Unit-{index:07d} {rng.choice(PARTS)}"
        year, weight = 1990 + index % 35, 1 + index % 17
        passages = [
            f"Sheet {number} on the {name}. "
            + " ".join(
                f"In {year} the {rng.choice(PARTS)} of the {name} was measured at {weight} kilograms "
                f"next to its {rng.choice(PARTS)}."
                for _ in range(5)
            )
            for number in range(3)
        ]
        yield {
            "id": f"s{index}",
            "question": f"When did the {name} come out, how heavy is it and how long is its warranty?",
            "references": passages,
            "answer": f"The {name} came out in {year}. It weighs {weight} kilograms. Its warranty covers two years. "
            "It can be repaired at any authorised centre.",
            "reference_answer": f"The {name} came out in {year} and weighs {weight} kilograms. "
            "Its warranty lasts two years.",
            "date": "2026-01-01",
        }


if __name__ == "__main__":
    for sample in samples(int(sys.argv[1])):
        print(json.dumps(sample))
