"""The features of labelled rows, as one matrix; kept in a file between runs if one is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.judges.embedded.features import NAMES, measure_pairs
from steelyard.judges.embedded.meaning import DIMENSIONS, ONE_THREAD
from steelyard.judges.embedded.readers import Readings, readings
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.spans import Beside
from training.sets import Row


class Measured(NamedTuple):
    """One line per row; a row without anything to compare is a line of NaN."""

    features: NDArray[np.float64]
    vectors: NDArray[np.float32]
    supported: NDArray[np.bool_]
    sets: NDArray[np.str_]
    labels: NDArray[np.str_]
    kinds: NDArray[np.str_]
    folds: NDArray[np.int64]
    beside: NDArray[np.object_]
    """What the networks read: the claim, and the spans beside it with their ranks and places."""


def measured(rows: Sequence[Row], kept: Path | None = None, workers: int = 1) -> Measured:
    if kept and kept.exists():
        with np.load(kept) as held:
            if list(held["names"]) == list(NAMES):
                beside = _objects(json.loads(held["beside"].tobytes()))
                return Measured(*(held[field] for field in Measured._fields[:-1]), beside)
    batches = [rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER)]
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            lines = [line for found in pool.map(_lines, batches, chunksize=4) for line in found]
    else:
        lines = [line for batch in batches for line in _lines(batch)]
    result = Measured(
        np.array([line.features for line in lines], dtype=np.float64).reshape(-1, len(NAMES)),
        np.array([line.vector for line in lines], dtype=np.float32).reshape(-1, DIMENSIONS),
        np.array([row.is_supported for row in rows], dtype=np.bool_),
        np.array([row.set for row in rows], dtype=np.str_),
        np.array([row.label for row in rows], dtype=np.str_),
        np.array([row.context if row.set in ("planted", "slips", "written") else "" for row in rows], dtype=np.str_),
        np.array([fold_of(row.document) for row in rows], dtype=np.int64),
        _objects([line.beside for line in lines]),
    )
    if kept:
        beside = np.frombuffer(json.dumps(list(result.beside)).encode(), dtype=np.uint8)
        np.savez(kept, names=np.array(NAMES), **result._asdict() | {"beside": beside})
    return result


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    found = np.empty(len(values), dtype=np.object_)
    for at, value in enumerate(values):
        found[at] = value
    return found


def read(found: Measured, workers: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the shipped networks make of measured rows: the log-odds each gives, and how probably they are denied."""
    parts = [slice(at, at + TOGETHER) for at in range(0, len(found.beside), TOGETHER)]
    batches = [(found.beside[part].tolist(), found.features[part]) for part in parts]
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            said = [one for some in pool.map(_read, batches, chunksize=8) for one in some]
    else:
        said = [one for batch in batches for one in _read(batch)]
    return np.array([one.support for one in said]), np.array([one.contradicted for one in said])


def _read(batch: tuple[Sequence[Any], NDArray[np.float64]]) -> list[Readings]:
    with ONE_THREAD:
        return readings([(claim, [Beside(*span) for span in spans]) for claim, spans in batch[0]], batch[1])


FOLDS = 5


def fold_of(document: str) -> int:
    """A fifth of the documents, for what must be learnt on some rows and used on others."""
    return hashlib.sha256(f"fold {document}".encode("utf-8", "replace")).digest()[0] % FOLDS


# So many rows are encoded in one go.
TOGETHER = 16


class _Line(NamedTuple):
    features: list[float]
    vector: NDArray[np.float32]
    beside: tuple[str, list[Beside]]


def _lines(rows: Sequence[Row]) -> list[_Line]:
    sources: dict[object, Source] = {}
    pairs = []
    for row in rows:
        # Only key words stand in a text of their own.
        answer = row.context if row.set == "uhgeval" else ""
        key = (row.passages, row.question, answer)
        if key not in sources:
            sources[key] = Source(*key)
        pairs.append((row.claim, sources[key]))
    nothing = _Line([float("nan")] * len(NAMES), np.zeros(DIMENSIONS, dtype=np.float32), ("", []))
    # Rounded, so that the last bits of a sum do not move a threshold.
    return [
        _Line(
            [round(found.features[name], 4) for name in NAMES],
            found.vector.round(4),
            (found.claim, list(found.beside)),
        )
        if found
        else nothing
        for found in measure_pairs(pairs)
    ]
