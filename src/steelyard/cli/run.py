"""`run`, `resume`, `retry`, `rescore`: judging."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.common import (
    ConfigOption,
    EncodingOption,
    FormatOption,
    Lang,
    LangOption,
    MapOption,
    ProtocolName,
    StoreOption,
    check_files,
    check_out,
    console,
    language,
    pairs,
)
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.config import Config
    from steelyard.judges.base import Judge
    from steelyard.judges.gate import Gate
    from steelyard.records import Sample, Verdict
    from steelyard.reports.build import ReportBuilder
    from steelyard.runner import Tally
    from steelyard.runs import Run

GAPS = 3
INTERRUPTED = 130


class ProgressStyle(StrEnum):
    """How progress is told."""

    auto = "auto"
    live = "live"
    plain = "plain"
    json = "json"
    quiet = "quiet"


JudgeOption = Annotated[
    str | None,
    typer.Option("--judge", "-j", help="openai:MODEL, recorded:FILE, or a judge of steelyard.toml."),
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Write one result line per sample here (JSONL).")]
ConcurrencyOption = Annotated[int | None, typer.Option("--concurrency", "-c", min=1, help="Calls in flight at most.")]
ProgressOption = Annotated[ProgressStyle, typer.Option(help="How progress is told, on standard error.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop after this many US dollars.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Stop after this many tokens.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", min=0, help="Stop after this many seconds.")]
OptionOption = Annotated[
    list[str] | None, typer.Option("--option", "-O", metavar="NAME=VALUE", help="Any option of the protocol.")
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("resume")(resume)
    app.command("retry")(retry)
    app.command("rescore")(rescore)


def run(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Samples; - is standard input.")],
    protocol: ProtocolName,
    judge: JudgeOption = None,
    out: OutOption = None,
    map: MapOption = None,
    option: OptionOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="The protocol's strict switch.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="One call per item.")] = False,
    date: Annotated[str | None, typer.Option(help="The date samples are judged at; default: today.")] = None,
    place: Annotated[str | None, typer.Option(help="Where the user is, for samples that do not say.")] = None,
    prompts: Annotated[
        list[Path] | None, typer.Option("--prompts", help="Your own prompt file or folder, over the shipped ones.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Also append each reply to this file, for recorded:FILE.")] = None,
    concurrency: ConcurrencyOption = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask again, even what the store has answers to.")] = False,
    progress: ProgressOption = ProgressStyle.auto,
    lang: LangOption = None,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Judge a file of samples and report.

    Example:  steelyard run answers.jsonl -p atomic -j openai:gpt-4o-mini -o results.jsonl
    """
    from steelyard import runs
    from steelyard.config import Config
    from steelyard.evaluation import dated
    from steelyard.judges.gate import Gate
    from steelyard.protocols import get_protocol
    from steelyard.store import Store

    settings = Config.load(config)
    chosen = get_protocol(protocol)
    check_files(files)
    check_out(out, files)
    switches: dict[str, Any] = {"strict": strict, "thorough": thorough, "date": date, "place": place}
    given = {name: value for name, value in switches.items() if value} | pairs(option, "--option")
    from_file = settings.settings.options.get(chosen.name, {})
    options = chosen.parse_options(dated(chosen, {**from_file, **_values(given, chosen.options.model_fields)}))
    data = runs.Input(files, pairs(map, "--map"), encoding, format)
    data.check(chosen)
    known_prompts = settings.prompts.with_texts(chosen.prompts).with_files(prompts or [])
    workers = concurrency or settings.settings.run.concurrency
    gate = Gate(workers)
    made = _recording(settings.judge(judge, known_prompts, gate, store), record)
    if max_cost is not None:
        _check_price(made)
    how = runs.How(workers, _budget(max_cost, max_tokens, max_time), fresh)
    with Store.open(settings.store_path(store)) as opened:
        begun = runs.start(opened, chosen, options, made, judge or "", known_prompts, data, how)
        begun.tally.total = _count(files, format)
        _finish(begun, made, gate, out, lang, progress, settings)


def resume(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, number, or last.")] = "last",
    judge: JudgeOption = None,
    out: OutOption = None,
    concurrency: ConcurrencyOption = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    progress: ProgressOption = ProgressStyle.auto,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Go on with a run that was stopped or killed; nothing that was answered is asked again.

    Example:  steelyard resume last
    """
    budget = (max_cost, max_tokens, max_time)
    _again(name, judge, out, concurrency, budget, progress, lang, config, store, retrying=False)


def retry(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, number, or last.")] = "last",
    judge: JudgeOption = None,
    out: OutOption = None,
    concurrency: ConcurrencyOption = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    progress: ProgressOption = ProgressStyle.auto,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Ask again for what failed or stayed unjudged in a run.

    Example:  steelyard retry last
    """
    budget = (max_cost, max_tokens, max_time)
    _again(name, judge, out, concurrency, budget, progress, lang, config, store, retrying=True)


def _again(
    name: str,
    judge: str | None,
    out: Path | None,
    concurrency: int | None,
    budget: tuple[float | None, int | None, float | None],
    progress: ProgressStyle,
    lang: Lang | None,
    config: Path | None,
    store: Path | None,
    *,
    retrying: bool,
) -> None:
    from steelyard import runs
    from steelyard.config import Config
    from steelyard.judges.gate import Gate
    from steelyard.protocols import get_protocol
    from steelyard.store import Store

    settings = Config.load(config)
    workers = concurrency or settings.settings.run.concurrency
    gate = Gate(workers)
    with Store.open(settings.store_path(store), create=False) as opened:
        row = opened.run(name)
        check_out(out, [data["path"] for data in row.manifest["data"]])
        spec = judge or row.manifest.get("judge_spec") or None
        known_prompts = settings.prompts.with_texts(get_protocol(row.protocol).prompts)
        made = settings.judge(spec, known_prompts, gate, store)
        if budget[0] is not None:
            _check_price(made)
        begun = runs.continue_(opened, row.id, made, runs.How(workers, _budget(*budget)))
        begun.tally.total = _count(begun.data.sources, begun.data.format)
        _finish(begun, made, gate, out, lang, progress, settings, retrying=retrying)


def rescore(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, number, or last.")] = "last",
    option: OptionOption = None,
    out: OutOption = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Compute a run's scores anew from its stored replies, without a call; other options can be tried.

    Example:  steelyard rescore last -O strict=true
    """
    from steelyard import runs
    from steelyard.config import Config
    from steelyard.protocols import get_protocol
    from steelyard.reports import ReportBuilder
    from steelyard.reports.terminal import render
    from steelyard.store import Store

    check_out(out, [])
    with Store.open(Config.load(config).store_path(store), create=False) as opened, _Lines(out) as lines:
        row = opened.run(name)
        builder = ReportBuilder(row.protocol, language(lang))
        given = _values(pairs(option, "--option"), get_protocol(row.protocol).options.model_fields)

        def keep(sample: Sample, verdict: Verdict) -> None:
            builder.add(verdict, sample)
            lines.write(verdict)

        asyncio.run(runs.rescore(opened, row.id, given, keep))
        console().print(render(builder.build(row.manifest), language(lang)))


def _finish(
    begun: Run,
    judge: Judge,
    gate: Gate,
    out: Path | None,
    lang: Lang | None,
    style: ProgressStyle,
    settings: Config,
    *,
    retrying: bool = False,
) -> None:
    """Drive the run, write its lines, print its report, and leave with the right code."""
    from steelyard.progress import Progress
    from steelyard.reports.terminal import render

    print(f"run {begun.row.id} · {begun.protocol.name} · {judge.name}", file=sys.stderr)
    try:
        with Progress(style.value, begun.tally, lambda: gate.in_flight) as shown:
            tally = asyncio.run(_drive(begun, judge, shown.tick, retrying=retrying))
    finally:
        # Also after a failure: what was judged until then is written out.
        chosen = language(lang) or settings.settings.run.language
        report = _collect(begun, out, chosen).build(begun.store.run(begun.row.id).manifest)
    console().print(render(report, chosen))
    if tally.stopped:
        print(f"stopped: {tally.stopped}; go on with: steelyard resume {begun.row.id}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED if tally.stopped == "interrupted" else GAPS)
    if report.n_bad_rows or report.statuses.get("partial") or report.statuses.get("failed"):
        raise typer.Exit(GAPS)


async def _drive(begun: Run, judge: Judge, tick: Any, *, retrying: bool) -> Tally:
    """The run with a heartbeat for the progress line and two stages of Ctrl-C."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(begun.drive(lambda *_: None, lambda _: None, retry=retrying))

    def interrupted() -> None:
        if begun.tally.stopped:
            task.cancel()
        else:
            begun.runner.stop("interrupted")
            print("\nfinishing what is in flight; press Ctrl-C again to stop now", file=sys.stderr)

    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=0.1)
            tick()
        return task.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        await judge.aclose()


def _collect(begun: Run, out: Path | None, chosen: Any) -> ReportBuilder:
    """The report and the result lines of the whole run, from the store: a resumed run is reported whole."""
    from steelyard.reports import ReportBuilder

    builder = ReportBuilder(begun.protocol.name, chosen)
    with _Lines(out) as lines:
        for sample, verdict in begun.store.verdicts(begun.row.id):
            builder.add(verdict, sample)
            lines.write(verdict)
    for bad in begun.store.bad_rows(begun.row.id):
        builder.add_bad_row(bad)
    return builder


class _Lines:
    """The `-o` file, or nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8") if path else None

    def __enter__(self) -> _Lines:
        return self

    def write(self, verdict: Verdict) -> None:
        if self._file:
            self._file.write(json.dumps(verdict.line(), ensure_ascii=False) + "\n")

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()


def _recording(judge: Judge, record: Path | None) -> Judge:
    from steelyard.judges.recorded import Recorder

    return Recorder(judge, record) if record else judge


def _check_price(judge: Judge) -> None:
    known: dict[str, Any] = getattr(judge, "describe", dict)()
    if "price" in known and known["price"] is None:
        raise ConfigError(
            f"--max-cost needs the prices of {judge.name}: set price = {{ prompt = …, completion = … }} "
            "(US dollars for a million tokens) in its table of steelyard.toml, or use --max-tokens"
        )


def _budget(max_cost: float | None, max_tokens: int | None, max_time: float | None) -> Any:
    from steelyard.runner import Budget

    return Budget(max_cost, max_tokens, max_time)


def _values(given: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Option values as flags write them: `weights=relevance=1,accuracy=2` becomes a mapping."""
    values = dict(given)
    if isinstance(text := values.get("weights"), str) and "weights" in fields:
        values["weights"] = pairs(text.split(","), "--option weights")
    return values


def _count(files: Sequence[str], format: str | None) -> int | None:
    """How many samples there are, where counting lines tells it."""
    total = 0
    for file in files:
        path = Path(file)
        if (
            file == "-"
            or path.suffix not in (".jsonl", ".ndjson")
            or format not in (None, "jsonl")
            or not path.is_file()
        ):
            return None
        with path.open("rb") as lines:
            total += sum(1 for line in lines if not line.isspace())
    return total
