"""A run from the command line: the judge, the limiter, progress, Ctrl-C, result lines, the report."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import typer

from steelyard.cli.common import console, language, out_of
from steelyard.cli.flags import SessionFlags
from steelyard.engine.datasets import names_folder, write_dataset
from steelyard.engine.progress import ProgressLine
from steelyard.engine.runner import Budget, Tally, run_to_end
from steelyard.engine.runs import Run, RunSettings, check_affordable
from steelyard.errors import ConfigError, JudgeError, NoReadableRow, SteelyardError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limits
from steelyard.prompts import Prompts
from steelyard.records import Usage, Verdict
from steelyard.reports import Report, ReportBuilder
from steelyard.reports.blocks import one_line
from steelyard.reports.model import RunFacts, self_judged_note
from steelyard.reports.terminal import render
from steelyard.settings import Settings

T = TypeVar("T")
GAPS = 3
INTERRUPTED = 130


class Session:
    """One invocation that judges: what the user allowed, and how they want to hear about it."""

    def __init__(self, config: Settings, flags: SessionFlags, out: str | None = None) -> None:
        self.config, self.progress, self.out, self.store = config, flags.progress, out, flags.store
        self.budget = Budget(flags.max_cost, flags.max_tokens, flags.max_time)
        self.language = language(flags.lang) or config.run.language
        defaults = config.run
        self.limits = Limits(
            concurrency=flags.concurrency or defaults.concurrency,
            requests_per_minute=flags.rpm or defaults.requests_per_minute,
            tokens_per_minute=flags.tpm or defaults.tokens_per_minute,
        )
        self.limiter = self.limits.limiter()

    def judge(self, spec: str | None, prompts: Prompts, together: Mapping[str, Any] | None = None) -> Judge:
        choice = self.config.choose(spec)
        if choice.why:
            print(f"judge {choice.name}: {choice.why}", file=sys.stderr)
        made = JudgeFactory(self.config, prompts, self.limiter, self.store).judge(choice.name, together)
        check_affordable(made, self.budget)
        for caution in dict.fromkeys(voice.judge.caution for voice in made.voices()):
            if caution:
                print(f"note: {caution}", file=sys.stderr)
        return made

    def run_settings(self, *, fresh: bool = False, record: Path | None = None) -> RunSettings:
        return RunSettings(self.limits.samples_at_once, self.budget, fresh, self.limiter, record)

    def finish(self, *runs: Run, retrying: bool = False) -> None:
        """Judge the runs one after the other, write their lines, print their reports, and exit with the right code.

        What one was answered is in the store when the next one asks. All of them share one budget.
        """
        if len(runs) > 1:
            names = ", ".join(run.protocol.name for run in runs)
            print(
                f"{len(runs)} runs over the same samples: {names}; what they both ask is paid for once", file=sys.stderr
            )
        began, code = time.monotonic(), 0
        # They share a judge, whose connections belong to one loop and which answers nothing once it is closed.
        with asyncio.Runner() as loop:
            try:
                for at, run in enumerate(runs):
                    spent = sum((earlier.journal.spent for earlier in runs[:at]), start=Usage())
                    run.runner.budget = self.budget.after(spent, time.monotonic() - began if at else 0.0)
                    tally, report = self.judge_run(run, loop, retrying=retrying)
                    goes_on, found = self._report_failure(run, report, tally.stopped)
                    code = max(code, found)
                    if not goes_on:
                        break
            finally:
                loop.run(runs[0].aclose())
        if code:
            raise typer.Exit(code)

    def report(self, *runs: Run) -> None:
        """The same for runs that workers judged: write lines, print reports, exit."""
        code = 0
        for run in runs:
            run.journal.continued = True
            self._write_lines(run)
            row = run.store.run(run.row.id)
            stopped = row.manifest.get("stopped") or ("interrupted" if row.state == "running" else None)
            report = self._report(run, ReportBuilder(run.protocol.name, self.language))
            code = max(code, self._report_failure(run, report, stopped)[1])
        if code:
            raise typer.Exit(code)

    def _report_failure(self, run: Run, report: Report, stopped: str | None) -> tuple[bool, int]:
        console().print(render(report, self.language))
        if note := self_judged_note(report):
            print(f"warning: {note}", file=sys.stderr)
        if stopped:
            print(f"stopped: {stopped}; go on with: steelyard resume {run.row.id}", file=sys.stderr)
            return False, INTERRUPTED if stopped == "interrupted" else GAPS
        if report.failure:
            print(one_line(" ".join(report.failure.sentences(self.language or "en"))), file=sys.stderr)
            return False, JudgeError.exit_code
        gaps = report.n_bad_rows or report.statuses.get("partial") or report.statuses.get("failed")
        return True, GAPS if gaps else 0

    def judge_run(self, run: Run, loop: asyncio.Runner, *, retrying: bool = False) -> tuple[Tally, Report]:
        """Judge what is open in the run, with progress and Ctrl-C, and write its lines. The judge stays open."""
        run.tally.total = run.data.total
        by = f" · template {run.protocol.template['source']}" if run.protocol.template else ""
        print(f"run {run.row.id} · {run.protocol.name} · {run.judge.name}{by}", file=sys.stderr)
        builder = ReportBuilder(run.protocol.name, self.language)
        try:
            with ProgressLine(self.progress.value, run.tally, lambda: self.limiter.in_flight) as shown:
                tally = run_to_end(_judged(run, builder, shown.tick, retrying=retrying), loop)
        except NoReadableRow:
            raise
        except BaseException:
            # What was judged until then is written out all the same; if that fails too, the first failure is the news.
            with suppress(SteelyardError, OSError):
                self._write_lines(run)
            if kept := _kept_text(run):
                print(kept, file=sys.stderr)
            raise
        self._write_lines(run)
        return tally, self._report(run, builder)

    def _write_lines(self, run: Run) -> None:
        """Write all result lines in input order, a file per run of a group; or the Parquet datasets."""
        if self.out and names_folder(self.out):
            try:
                write_dataset(run.store, run.row, self.out)
            except SteelyardError as error:
                again = f"steelyard export {run.row.id} --to {self.out}"
                raise ConfigError(f"{error}; the results are in the store, write them out with: {again}") from None
        elif self.out:
            path = out_of(self.out, run.protocol.name) if "group" in run.row.manifest else self.out
            with Path(path).open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in run.store.lines(run.row.id))

    def _report(self, run: Run, builder: ReportBuilder) -> Report:
        """The report of the whole run: collected while judging, or, for a run that was started earlier, read from the
        store."""
        if run.journal.continued:
            builder = ReportBuilder(run.protocol.name, self.language)
            for sample, verdict in run.store.verdicts(run.row.id):
                builder.add(verdict, sample)
            for bad in run.store.bad_rows(run.row.id):
                builder.add_bad_row(bad)
        row = run.store.run(run.row.id)
        return builder.build(row.manifest, RunFacts.of(row.id, row.state, row.started, row.finished))


def _kept_text(run: Run) -> str:
    """What a failed run has in the store and how to resume it; empty if it has nothing."""
    try:
        verdicts, replies = run.store.kept(run.row.id)
    except SteelyardError as error:
        return f"what was kept cannot be read: {error}"
    if not (verdicts or replies or run.journal.unwritten):
        return ""
    kept = f"kept: {verdicts} verdicts and {replies} replies in {run.store.name}"
    if run.journal.unwritten:
        kept += f"; {run.journal.unwritten} replies could not be written and will be asked for again"
    return f"{kept}; go on with: steelyard resume {run.row.id}"


async def _judged(run: Run, builder: ReportBuilder, tick: Callable[[], None], *, retrying: bool) -> Tally:
    work = run.drive(lambda sample, verdict: builder.add(verdict, sample), builder.add_bad_row, retry=retrying)
    return await interruptible(work, run.tally, run.runner.stop, tick)


async def interruptible(
    work: Coroutine[Any, Any, T], tally: Tally, stop: Callable[[str], None], tick: Callable[[], None]
) -> T:
    """Work with a heartbeat for the progress line and two stages of Ctrl-C."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)

    def interrupted() -> None:
        if tally.stopped:
            task.cancel()
        else:
            stop("interrupted")
            print("\nfinishing what is in flight; press Ctrl-C again to stop now", file=sys.stderr)

    if sys.platform != "win32":
        # Schedulers and containers say SIGTERM, and wait a while before they kill.
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, interrupted)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=0.1)
            tick()
        return task.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class ResultLines:
    """The `-o` file, or nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8") if path else None

    def __enter__(self) -> ResultLines:
        return self

    def write(self, verdict: Verdict) -> None:
        if self._file:
            self._file.write(json.dumps(verdict.line(), ensure_ascii=False) + "\n")

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()
