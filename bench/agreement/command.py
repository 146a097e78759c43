"""Measure a judge: `python bench/agreement JUDGE`. See README.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from agreement.figures import write_figures
from agreement.page import page, section
from agreement.planted import listing, pairs
from agreement.run import SETS, Bench, Result
from steelyard.engine.journal import JournalledJudge
from steelyard.errors import SteelyardError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.limiter import Limits
from steelyard.settings import Settings
from steelyard.store import Store

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
RESULTS = Path(__file__).resolve().parent / "results"
FIGURES = ROOT / "src" / "steelyard" / "reports" / "agreement.toml"


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.list_planted:
        print(listing(pairs()))
        return 0
    if given.judge:
        try:
            result = asyncio.run(_measure(given))
        except SteelyardError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(json.dumps(result, indent=1, ensure_ascii=False) if given.json else section(result))
    if given.write:
        found = [json.loads(file.read_text("utf-8")) for file in sorted(given.results.glob("*.json"))]
        given.write.write_text(page(found, _notes(found, given.results)), "utf-8")
        write_figures(found, given.figures)
    return 0


async def _measure(given: argparse.Namespace) -> Result:
    config = Settings.load(given.config)
    limits = Limits(concurrency=given.concurrency)
    bare = JudgeFactory(config, limiter=limits.limiter()).judge(given.judge)
    given.results.mkdir(parents=True, exist_ok=True)
    file = given.results / f"{file_name(bare.name)}.json"
    earlier: dict[str, Any] = json.loads(file.read_text("utf-8")) if given.add and file.exists() else {}

    def keep(result: Result) -> None:
        # Figures of another edition of the judge would stand under this one's name.
        same = earlier.get("described") == result["described"]
        found = {**(earlier["sets"] if same else {}), **result["sets"]}
        result["sets"] = {name: found[name] for name in SETS if name in found}
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")

    store = Store.open(given.store)
    try:
        bench = Bench(
            judge=JournalledJudge(bare, store),
            bare=bare,
            data=given.data,
            names=given.sets,
            n=given.rows,
            workers=given.concurrency,
            quiet=given.quiet,
        )
        return await bench.results(keep)
    finally:
        store.close()
        await bare.aclose()


def _notes(results: list[Result], folder: Path) -> dict[str, str]:
    """What people wrote about a judge's figures, in a file beside them: why a goal was missed, for instance."""
    files = {result["judge"]: folder / f"{file_name(result['judge'])}.md" for result in results}
    return {judge: file.read_text("utf-8") for judge, file in files.items() if file.exists()}


def file_name(judge: str) -> str:
    return re.sub(r"[^\w.-]+", "-", judge).strip("-") or "judge"


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of 1 or more")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python bench/agreement", description=__doc__)
    parser.add_argument("judge", nargs="?", help="as -j takes it: embedded, local:NAME, openai:MODEL, a name of yours")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    parser.add_argument("--rows", type=_some, metavar="N", help="at most N rows of each set, balanced by label")
    parser.add_argument("--concurrency", type=_some, default=4, metavar="N", help="asks at once (4)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="where the public sets are")
    parser.add_argument(
        "--store", type=Path, default=ROOT / ".steelyard" / "agreement.db", help="replies are kept here"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a steelyard.toml with judges of yours")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--add", action="store_true", help="keep other sets of an earlier run of the very same judge")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of all judges measured so far here")
    parser.add_argument("--figures", type=Path, default=FIGURES, metavar="FILE", help="and their figures here")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--list-planted", action="store_true", help="print the planted errors, to be read")
    return parser
