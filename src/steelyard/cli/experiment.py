"""`experiment`: the runs of an [experiments.NAME] table, and one table that compares them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.calibrate import JsonOption, MarkdownOption, emit
from steelyard.cli.common import ConfigOption, LangOption, ProgressStyle, StoreOption, check_out, language
from steelyard.cli.flags import ConcurrencyOption, MaxCost, ProgressOption, Rpm, SessionFlags, Tpm
from steelyard.errors import JudgeError

if TYPE_CHECKING:
    from steelyard.cli.session import Session
    from steelyard.store import Store
    from steelyard.trust.experiments import CellRun, Combination


def register(app: typer.Typer) -> None:
    app.command("experiment")(experiment)


def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An [experiments.NAME] table of steelyard.toml.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and which of them are done; judge nothing.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    max_cost: MaxCost = None,
    progress: ProgressOption = ProgressStyle.auto,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write the table here, as one HTML file.")] = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Run every combination of data, protocols, judges and options that the settings list, and compare them.

    Runs that are in the store are not judged again; the same command resumes a stopped experiment.

    Example:  steelyard experiment faq --html faq.html
    """
    from steelyard.cli.session import GAPS, INTERRUPTED, Session
    from steelyard.reports.experiment import blocks
    from steelyard.settings import Settings
    from steelyard.store import Store
    from steelyard.trust.experiments import plan, tabulate

    settings = Settings.load(config)
    wanted = plan(settings, name)
    check_out(html, [])
    cells: list[tuple[Combination, CellRun]] = []
    stopped = ""
    with Store.open(settings.store_location(store)) as opened:
        spent = 0.0
        for at, one in enumerate(wanted, start=1):
            left = None if max_cost is None else max(0.0, max_cost - spent)
            session = Session(
                settings, SessionFlags(concurrency, rpm, tpm, left, None, None, progress, lang, config, store)
            )
            print(f"{at}/{len(wanted)} {one.title}", file=sys.stderr)
            cell, cost, stopped = _cell(session, opened, one, dry_run=dry_run or bool(stopped), stopped=stopped)
            spent += cost
            cells.append((one, cell))
        if dry_run:
            return
        table = tabulate(opened, name, cells, language(lang) or settings.run.language)
    page = list(blocks(table))
    emit(table, page, as_json=as_json, markdown=markdown, brief=list(blocks(table, brief=True)))
    if html is not None:
        from steelyard.reports.notebook import page as as_html

        html.write_text(as_html(f"Steelyard · {name}", [page]), encoding="utf-8")
    if stopped:
        print(f"stopped: {stopped}; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED if stopped == "interrupted" else GAPS)
    if any(run.state == "failed" or run.problem for run in table.runs):
        raise typer.Exit(JudgeError.exit_code)
    if any(score.n_unjudged for run in table.runs for score in run.scores):
        raise typer.Exit(GAPS)


def _cell(
    session: Session, store: Store, wanted: Combination, *, dry_run: bool, stopped: str
) -> tuple[CellRun, float, str]:
    """The run of one combination (found, resumed or new), what it cost now, and why it was stopped, if it was."""
    from steelyard.engine.runs import state_of
    from steelyard.errors import InputError
    from steelyard.trust.experiments import CellRun, find_run, open_run

    prompts = session.config.prompts.with_texts(wanted.protocol.prompts)
    judge = session.judge(wanted.judge, prompts)
    found = find_run(store, wanted, judge, prompts)
    state = state_of(found, store) if found else "pending"
    if dry_run or (found and state == "complete"):
        print(f"  {state}{f': run {found.id}' if found else ''}", file=sys.stderr)
        return CellRun(id=found.id if found else None), 0.0, stopped
    try:
        run = open_run(store, wanted, found, judge, prompts, session.run_settings())
        with asyncio.Runner() as loop:
            try:
                tally, _ = session.judge_run(run, loop, retrying=state == "failed")
            finally:
                loop.run(run.aclose())
    except (JudgeError, InputError) as error:
        begun = find_run(store, wanted, judge, prompts)
        return CellRun(id=begun.id if begun else None, problem=str(error)), 0.0, stopped
    return CellRun(id=run.row.id), run.journal.spent.cost or 0.0, tally.stopped or ""
