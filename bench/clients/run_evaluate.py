"""Steelyard's Python door: `evaluate()` over all four scorecard metrics, without a store."""

from pathlib import Path

from meter import CONCURRENCY, TOLD, measured, report, scores_of

import steelyard
import steelyard.judges.chat  # loaded before the clock starts, as the peers' imports are
from steelyard.samples import read_samples

rows = list(read_samples([Path(TOLD["data"])], "rag"))
with measured():
    results = steelyard.evaluate(rows, "scorecard", "stub", concurrency=CONCURRENCY)
report({verdict.id: scores_of(verdict.line()) for verdict in results})
