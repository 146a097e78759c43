"""Steelyard's Python door: `evaluate()` over all four scorecard metrics, without a store."""

from importlib import import_module
from pathlib import Path

from meter import CONCURRENCY, TOLD, measured, report, scores_of

import steelyard
from steelyard.samples import read_samples

# Loaded before the clock starts, as the peers' imports are.
LOADED = "evaluation judges.chat judges.prices protocols.scorecard".split()
for name in LOADED:
    import_module(f"steelyard.{name}")

rows = list(read_samples([Path(TOLD["data"])], "rag"))
with measured():
    results = steelyard.evaluate(rows, "scorecard", "stub", concurrency=CONCURRENCY)
report({verdict.id: scores_of(verdict.line()) for verdict in results})
