"""How many samples a second: `atomic`, three passages of 300 characters, an answer of three claims, both languages."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from agreement.planted import Pair
from steelyard.evaluation import evaluate_async
from steelyard.judges.base import Judge
from steelyard.records import RagSample

PASSAGES, CHARACTERS, CLAIMS = 3, 300, 3
AT_MOST = 60.0
ROUND = 20


def samples(pairs: Sequence[Pair], n: int) -> list[RagSample]:
    """Different samples, so that nothing that a judge remembers of one helps with the next."""
    by_script = [[pair for pair in pairs if (pair.script == "en") == is_english] for is_english in (True, False)]
    made = []
    for number in range(n):
        own = by_script[number % 2]
        # Neighbours belong to one text; the others fill the passages up.
        start = number // 2 * 6 % len(own)
        text = islice(cycle(own), start, start + 6 * 12)
        words = " ".join(dict.fromkeys(passage for pair in text for passage in pair.passages))
        words = words[number % 40 :] if number >= len(pairs) // 6 else words
        passages = tuple(words[i * CHARACTERS : (i + 1) * CHARACTERS] for i in range(PASSAGES))
        claims = [pair.clean for pair in islice(cycle(own), start, start + CLAIMS)]
        made.append(
            RagSample(id=str(number), question=own[start].question, references=passages, answer=" ".join(claims))
        )
    return made


async def _seconds(batch: Sequence[RagSample], judge: Judge, workers: int) -> float:
    began = time.monotonic()
    await evaluate_async(batch, "atomic", judge, options={"date": "2026-03-02"}, concurrency=workers)
    return time.monotonic() - began


async def speed(judge: Judge, pairs: Sequence[Pair], workers: int) -> dict[str, Any]:
    """Samples a second after two to warm up; as many samples as a minute allows, 200 at most."""
    first, second, *others = samples(pairs, 202)
    start, usual = await _seconds([first], judge, 1), await _seconds([second], judge, 1)
    size = 1 if usual > 2 else ROUND
    done, taken, worked = 0, 0.0, time.process_time()
    while done < len(others) and taken < AT_MOST:
        batch = others[done : done + size]
        taken += await _seconds(batch, judge, workers)
        done += len(batch)
    return {
        "samples a second": round(done / taken, 2),
        "samples": done,
        "CPU milliseconds a sample": round(1000 * (time.process_time() - worked) / done, 1),
        "first sample, seconds": round(start, 2),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
