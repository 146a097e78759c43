"""Steelyard's command: reads the file, judges, journals every reply in a store, writes result lines, reports."""

import contextlib
import json
import sys
from importlib import import_module
from pathlib import Path

from meter import CONCURRENCY, DOING, TOLD, measured, report, scores_of

from steelyard.cli import main

# Loaded before the clock starts, as the peers' imports are.
LOADED = "cli.session evaluation judges.chat judges.prices protocols.scorecard engine.runs store".split()
for name in LOADED:
    import_module(f"steelyard.{name}")

OUT = Path("results.jsonl")
RUN = ["run", TOLD["data"], "-p", TOLD.get("protocol", "scorecard"), "-j", TOLD.get("judge", "stub")]
RESUME = ["resume", "last"]
sys.argv = ["steelyard", *(RESUME if DOING == "resume" else RUN), "-c", str(CONCURRENCY), "-o", str(OUT)]
if "processes" in TOLD:
    sys.argv += ["--processes", str(TOLD["processes"])]
sys.argv += ["--store", "store.db", "--progress", "quiet"]
code = 0
with measured(), contextlib.suppress(SystemExit):
    try:
        main()
    except SystemExit as left:
        code = left.code or 0
        raise
values = {}
if TOLD.get("values", True):
    with OUT.open(encoding="utf-8") as lines:
        for line in lines:
            verdict = json.loads(line)
            values[verdict["id"]] = scores_of(verdict)
report(values, code=code)
