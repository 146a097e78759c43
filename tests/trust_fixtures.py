"""Runs and labels for the tests of calibration, comparison and gates: invented, seeded, of any size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from report_fixtures import atomic, rag
from steelyard.cli import app, calibrate, compare, gate, labelling
from steelyard.records import Atom, Sample, Verdict
from steelyard.store import Store
from steelyard.store.labels import HumanLabel, digest

Judged = list[tuple[Sample, Verdict]]
MANIFEST: dict[str, Any] = {
    "protocol": {"name": "atomic", "version": 1},
    "options": {"strict": False, "date": "2026-03-02"},
    "prompts": {"atomic.judge.zh": {"version": 1, "sha256": "aa"}},
    "judge": {"name": "j:m", "model": "m", "base_url": "u"},
    "data": [],
}
FLIPPED = {"correct": "wrong", "wrong": "correct"}

for module, command in ((calibrate, "calibrate"), (compare, "compare"), (gate, "gate"), (labelling, "sample")):
    if command not in {registered.name for registered in app.registered_commands}:
        module.register(app)


def judged(id: str, labels: Sequence[str], *, question: str | None = None, **fields: Any) -> tuple[Sample, Verdict]:
    """One sample whose atoms carry these labels."""
    sample = rag(id, question or f"问题{id}？", answer=fields.pop("answer", f"回答{id}。"), tags=fields.pop("tags", ()))
    return sample, atomic(id, labels, judge=fields.pop("judge", "j:m"), **fields)


def simulate(
    n: int, *, seed: int = 1, right: float = 0.8, over_flags: float = 0.15, misses: float = 0.05, atoms: int = 3
) -> tuple[Judged, dict[str, list[str]]]:
    """A run of a judge that over-flags, and what is true of each atom."""
    rng = random.Random(seed)
    run: Judged = []
    truth: dict[str, list[str]] = {}
    for number in range(n):
        ease = min(1.0, max(0.0, rng.gauss(right, 0.15)))
        real = ["correct" if rng.random() < ease else "wrong" for _ in range(atoms)]
        said = [FLIPPED[x] if rng.random() < (over_flags if x == "correct" else misses) else x for x in real]
        id = f"s{number:04d}"
        truth[id] = real
        run.append(judged(id, said, tags=("even",) if number % 2 else ("odd",)))
    return run, truth


def labels_of(run: Judged, truth: dict[str, list[str]], ids: Sequence[str], /, **fields: Any) -> list[HumanLabel]:
    """What a person who is never mistaken says of these samples."""
    samples = {sample.id: (sample, verdict) for sample, verdict in run}
    found = []
    for id in ids:
        sample, verdict = samples[id]
        for item, label in zip(verdict.items, truth[id], strict=True):
            assert isinstance(item, Atom)
            given = {"annotator": "ana", "policy": "1", "about": digest(sample), "text": item.text, **fields}
            found.append(HumanLabel(sample=id, kind="atom", item=item.id, label=label, **given))
    return found


def keep(path: Path, *runs: Judged, state: str = "complete", **manifest: Any) -> list[str]:
    """Put runs into a store; returns their ids."""
    ids = []
    with Store.open(path) as store:
        for run in runs:
            id = f"run-{len(store.runs()) + 1}"
            verdict = run[0][1]
            store.create_run(id, verdict.protocol, verdict.judge, "2026-03-02T10:00:00+00:00", MANIFEST | manifest)
            store.add_verdicts(id, [(seq, sample, verdict) for seq, (sample, verdict) in enumerate(run)])
            store.update_run(id, state=state, finished=None, manifest=MANIFEST | manifest)
            ids.append(id)
    return ids
