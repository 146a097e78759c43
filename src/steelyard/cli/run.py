"""`run`, `resume`, `retry`, `rescore`: judging."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date as Date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.common import (
    ConfigOption,
    EncodingOption,
    FormatOption,
    FromOption,
    LangOption,
    MapOption,
    ProtocolNames,
    StoreOption,
    check_files,
    check_out,
    console,
    language,
    note,
    out_of,
    pairs,
)
from steelyard.cli.flags import (
    AddressOption,
    DetachOption,
    EngineOption,
    EscalateOption,
    FenceOption,
    JudgeOption,
    LinesOption,
    MetaOption,
    NameOption,
    NotesOption,
    OptionOption,
    OutOption,
    ProcessesOption,
    ProjectOption,
    PromptsOption,
    RepeatsOption,
    RunArgument,
    SessionFlags,
    SilenceOption,
    SureOption,
    TagOption,
    TemplateOption,
    VerifyOption,
    with_session_flags,
)
from steelyard.errors import ConfigError, Surface

if TYPE_CHECKING:
    from steelyard.engine.estimate import RunEstimate
    from steelyard.engine.inputs import Input
    from steelyard.engine.runner import Row
    from steelyard.judges.base import Judge
    from steelyard.judges.endpoint import Price
    from steelyard.prompts import Prompts
    from steelyard.protocols import Protocol
    from steelyard.protocols.common import Options
    from steelyard.records import Sample, Verdict
    from steelyard.settings import Settings
    from steelyard.store import RunIdentity, Store

SetOption = Annotated[
    str | None, typer.Option("--set", metavar="NAME[@VERSION]", help="Judge a set of samples instead of files.")
]
FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...", help="Samples: files, folders, globs, s3://… and other URLs; - is standard input."
    ),
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("resume")(_continuation(RESUME, retrying=False))
    app.command("retry")(_continuation(RETRY, retrying=True))
    app.command("rescore")(rescore)


@with_session_flags
def run(
    protocol: ProtocolNames,
    files: FilesArgument = None,
    judge: JudgeOption = None,
    repeats: RepeatsOption = None,
    escalate: EscalateOption = None,
    verify: VerifyOption = None,
    sure: SureOption = None,
    out: OutOption = None,
    map: MapOption = None,
    importer: FromOption = None,
    option: OptionOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="The protocol's strict switch.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="One call per item.")] = False,
    date: Annotated[
        str | None,
        typer.Option(
            help="Date at which samples are judged; default: that of an earlier run over the same files, else today."
        ),
    ] = None,
    place: Annotated[str | None, typer.Option(help="Where the user is, for samples that do not say.")] = None,
    tolerance_quantities: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY", help="Which numbers may be off: statistics (default), exact, magnitude, or N%, e.g. 5%."
        ),
    ] = None,
    tolerance_dates: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Which dates may be off: seed (default; political ones exact, others by year), exact, year.",
        ),
    ] = None,
    prompts: PromptsOption = None,
    template: TemplateOption = None,
    fence: FenceOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; send nothing.")] = False,
    set: SetOption = None,
    record: Annotated[Path | None, typer.Option(help="Also append each reply to this file, for recorded:FILE.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore stored replies and ask again, with today's date.")
    ] = False,
    detach: DetachOption = False,
    processes: ProcessesOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    silence: SilenceOption = 15.0,
    name: NameOption = None,
    notes: NotesOption = None,
    tag: TagOption = None,
    meta: MetaOption = None,
    project: ProjectOption = None,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
    *,
    flags: SessionFlags,
) -> None:
    """Judge samples of files, or of a set, and report.

    Example:  steelyard run answers.jsonl -p atomic -j openai:gpt-4o-mini -o results.jsonl
    """
    from steelyard.cli.session import Session
    from steelyard.cli.worker import judge_with_processes, judge_with_ray, queue
    from steelyard.engine import runs
    from steelyard.engine.inputs import Input
    from steelyard.engine.sets import StoredSet
    from steelyard.engine.templates import check_judge
    from steelyard.protocols import options_by_protocol
    from steelyard.settings import Settings
    from steelyard.store import Store

    settings = Settings.load(flags.config)
    chosen = chosen_protocols(settings, protocol, template, fence)
    files = files or []
    if bool(files) == bool(set):
        raise ConfigError("name files of samples, or a set with --set")
    check_files(files, importer)
    if "-" in files and len(chosen) > 1:
        raise ConfigError("standard input can be read only once; several protocols need a file")
    for one in chosen:
        check_out(out_of(out, one.name) if out and len(chosen) > 1 else out, files)
    switches: dict[str, Any] = {
        "strict": strict,
        "thorough": thorough,
        "date": date,
        "place": place,
        "tolerance.quantities": tolerance_quantities,
        "tolerance.dates": tolerance_dates,
    }
    given = {name: value for name, value in switches.items() if value} | pairs(option, "--option")
    options = [
        chosen_options(one, settings, own) for one, own in zip(chosen, options_by_protocol(chosen, given), strict=True)
    ]
    if set and (map or importer):
        raise ConfigError("--map and --from are for files; a set has its fields already")
    data = Input(files, pairs(map, "--map"), encoding, format, on_note=note, importer=importer)
    if not set:
        for one in chosen:
            data.check(one)
    texts = {source: text for one in chosen for source, text in one.prompts.items()}
    known_prompts = settings.prompts.with_texts(texts).with_files(prompts or [])
    session = Session(settings, flags, out)
    voting: dict[str, Any] = {"repeats": repeats, "escalate": escalate, "verify": verify, "sure": as_confidence(sure)}
    together = {name: value for name, value in voting.items() if value is not None}
    made = session.judge(judge, known_prompts, together)
    for one in chosen:
        check_judge(one, made)
    if dry_run:
        with _held(settings, flags.store, set, project) as held:
            data = held or data
            for one, own in zip(chosen, options, strict=True):
                if len(chosen) > 1:
                    print(f"{one.name} (alone)")
                print_estimate(made, data.rows(one), one, own, known_prompts, data.total)
        return
    if detach and (processes or engine or out or record):
        raise ConfigError("--detach judges nothing here; leave out --processes, --engine, --out and --record")
    if (processes or engine) and record:
        raise ConfigError("--record needs one process; leave out --processes and --engine")
    if address and not engine:
        raise ConfigError("--address is that of a Ray cluster; add --engine ray")
    if not (detach or engine):
        # Workers have keys of their own.
        runs.check_ready(made)
    identity = named(settings, name=name, notes=notes, tags=tag, meta=meta, project=project)
    by_workers = bool(detach or engine or processes)
    location = settings.store_location(flags.store)
    with Store.open(location) as opened, ExitStack() as held:
        if set:
            data = Input([], given=StoredSet.named(opened, set, identity.project or None))
        if engine and not opened.is_remote:
            raise ConfigError("--engine ray needs a store that its nodes can reach: --store postgresql://…")
        if engine:
            # Before any run is made, too.
            from steelyard.integrations.ray import WorkOrder, connected

            cluster = held.enter_context(connected(address))
        settled = session.run_settings(fresh=fresh, record=record)
        spec = settings.choose(judge).name
        for one in chosen:
            # Before any run is made: none is left behind where another one cannot begin.
            data.check_readable(one)
        group = runs.new_run_id() if len(chosen) > 1 else None
        started = []
        for one, own in zip(chosen, options, strict=True):
            if not fresh:
                own = with_earlier_date(opened, one, settings, given, own, made, data)
            begun = runs.start(opened, one, own, made, spec, known_prompts, data, settled, together, identity, group)
            started.append(begun)
        if not by_workers:
            session.finish(*started)
            return
        queue(session, opened, started, silence)
        if detach:
            return
        for begun in started:
            if engine:
                own_prompts = settings.prompts.with_files(prompts or [])
                order = WorkOrder.of(settings, own_prompts, str(location), begun.row.id)
                judge_with_ray(opened, cluster, order, processes, flags.progress)
            else:
                judge_with_processes(opened, location, begun.row.id, processes or 1, flags.config, prompts or [])
        session.report(*started)


@contextmanager
def _held(settings: Settings, store: str | None, named: str | None, project: str | None) -> Iterator[Input | None]:
    """The samples of the named set, with its store open; None if no set is named."""
    from steelyard.engine.inputs import Input
    from steelyard.engine.sets import StoredSet
    from steelyard.store import Store

    if not named:
        yield None
        return
    with Store.open(settings.store_location(store), create=False) as opened:
        yield Input([], given=StoredSet.named(opened, named, project))


RESUME = """Resume a run that was stopped or killed; stored replies are not asked for again.

Example:  steelyard resume last
"""
RETRY = """Ask again for what failed or stayed unjudged in a run.

Example:  steelyard retry last
"""


def _continuation(help: str, *, retrying: bool) -> Callable[..., None]:
    """`resume` and `retry` take the same flags and differ in which samples they look at."""

    @with_session_flags
    def command(
        name: RunArgument = "last",
        judge: JudgeOption = None,
        out: OutOption = None,
        prompts: PromptsOption = None,
        *,
        flags: SessionFlags,
    ) -> None:
        from steelyard.cli.session import Session
        from steelyard.engine import runs
        from steelyard.protocols import get_protocol
        from steelyard.settings import Settings
        from steelyard.store import Store

        settings = Settings.load(flags.config)
        session = Session(settings, flags, out)
        with Store.open(settings.store_location(flags.store), create=False) as opened:
            row = opened.run(name)
            # Runs that were started together go on together; each has its own gaps, and is asked again by itself.
            rows = [row] if retrying else runs.open_runs(opened, row)
            for one in rows:
                written = out_of(out, one.protocol) if out and "group" in one.manifest else out
                check_out(written, [data["path"] for data in one.manifest["data"]])
            texts = {source: text for one in rows for source, text in get_protocol(one.protocol).prompts.items()}
            known = settings.prompts.with_texts(texts).with_files(prompts or [])
            spec = judge or row.manifest.get("judge_spec") or None
            made = session.judge(spec, known, row.manifest.get("together", {}))
            settled = session.run_settings()
            session.finish(*(runs.continue_(opened, one.id, made, known, settled) for one in rows), retrying=retrying)

    command.__doc__ = help
    return command


def rescore(
    name: RunArgument = "last",
    option: OptionOption = None,
    out: LinesOption = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Recompute a run's scores from its stored replies, also with other options; no call is made.

    Example:  steelyard rescore last -O tolerance.quantities=exact
    """
    from steelyard.cli.session import ResultLines
    from steelyard.engine import runs
    from steelyard.protocols import get_protocol
    from steelyard.reports import ReportBuilder
    from steelyard.reports.terminal import render
    from steelyard.settings import Settings
    from steelyard.store import Store

    check_out(out, [])
    with Store.open(Settings.load(config).store_location(store), create=False) as opened, ResultLines(out) as lines:
        row = opened.run(name)
        builder = ReportBuilder(row.protocol, language(lang))
        given = _values(pairs(option, "--option"), get_protocol(row.protocol).options.model_fields)

        def keep(sample: Sample, verdict: Verdict) -> None:
            builder.add(verdict, sample)
            lines.write(verdict)

        asyncio.run(runs.rescore(opened, row.id, given, keep))
        console().print(render(builder.build(row.manifest), language(lang)))


def named(
    settings: Settings,
    *,
    name: str | None,
    notes: str | None,
    tags: list[str] | None,
    meta: list[str] | None,
    project: str | None,
) -> RunIdentity:
    """The run's identity: flags, over the defaults of the settings file."""
    from steelyard.store import run_identity

    defaults = settings.run
    return run_identity(
        {
            "name": name or "",
            "notes": notes or "",
            "tags": (*defaults.tags, *(tags or ())),
            "meta": {**defaults.meta, **pairs(meta, "--meta")},
            "project": defaults.project if project is None else project,
        }
    )


def as_confidence(given: str | None) -> float | str | None:
    """A confidence, or the name of a file of them."""
    try:
        return float(given) if given is not None else None
    except ValueError:
        return given


def chosen_protocols(settings: Settings, names: str, template: str | None, fence: bool) -> list[Protocol]:
    """The protocols of `-p A,B`."""
    from steelyard.protocols import check_together

    named = [name.strip() for name in names.split(",") if name.strip()]
    if template and len(named) > 1:
        raise ConfigError("--template is for one protocol; run the others by themselves")
    chosen = [settings.protocol(name, template, fence=fence) for name in named or [names]]
    check_together(chosen)
    return chosen


def chosen_options(
    protocol: Protocol, settings: Settings, given: dict[str, Any], today: Callable[[], Date] = Date.today
) -> Options:
    """The protocol's options: the settings file's, then the flags' on top, with today's date where none is given."""
    from steelyard.evaluation import dated

    from_file = settings.options.get(protocol.family, {})
    named = {**from_file, **_values(given, protocol.options.model_fields)}
    return protocol.parse_options(dated(protocol, named, today))


def with_earlier_date(
    store: Store,
    protocol: Protocol,
    settings: Settings,
    given: dict[str, Any],
    options: Options,
    judge: Judge,
    data: Input,
) -> Options:
    """Where nobody names a date, that of an earlier run of this judge over the same files; the user is told."""
    from steelyard.engine.runs import earlier_date
    from steelyard.evaluation import redated

    if given.get("date") or settings.options.get(protocol.family, {}).get("date"):
        return options
    if found := earlier_date(store, protocol, judge.name, data):
        options, said = redated(options, *found, Surface.flags)
        if said:
            note(said)
    return options


def _values(given: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Option values as flags write them: `weights=relevance=1,accuracy=2` becomes a mapping."""
    values = dict(given)
    if isinstance(text := values.get("weights"), str) and "weights" in fields:
        values["weights"] = pairs(text.split(","), "--option weights")
    return values


def print_estimate(
    judge: Judge,
    rows: Iterable[Row],
    protocol: Protocol,
    options: Options,
    prompts: Prompts,
    total: int | None,
    today: Callable[[], Date] = Date.today,
) -> None:
    """Print what judging these rows would cost; nothing is sent."""
    from steelyard.engine.estimate import estimate, standing_in
    from steelyard.judges.prices import dating

    paid = [voice.judge for voice in judge.voices() if not voice.judge.offline]
    if not paid:
        print(f"{judge.name} judges on this machine: nothing is sent and nothing is paid")
        return
    expected = asyncio.run(estimate(rows, protocol, options, standing_in(judge, prompts), total))
    listed = dating({one.model: one.price for one in paid}, today())
    _print(expected, {one.name: one.price for one in paid}, listed)


def _print(expected: RunEstimate, prices: dict[str, Price | None], listed: str) -> None:
    print(
        f"samples            {expected.samples:>14,}" + (f"  ({expected.bad_rows} bad rows)" * bool(expected.bad_rows))
    )
    print(f"calls              {expected.calls:>14,}")
    if expected.further_tokens:
        money = "" if expected.further_cost is None else f", ${expected.further_cost:,.4f}"
        takes = f"{expected.further_tokens:,} tokens{money}"
        print(f"  and at most      {expected.further:>14,}  for what is passed on ({takes}); not counted below")
    elif expected.further:
        print(f"  and at most      {expected.further:>14,}  for splits and second looks; not counted below")
    print(f"prompt tokens      {expected.prompt_tokens:>14,}")
    print(f"completion tokens  {expected.completion_tokens:>14,}")
    unpriced = [name for name, price in prices.items() if price is None]
    if unpriced or expected.cost is None:
        whose = f" for {unpriced[0]}" if len(prices) > 1 else ""
        print(f'cost                      unknown  (no price is known{whose}; set [prices."MODEL"] in steelyard.toml)')
    else:
        dated = f"; {listed}" if listed else ""
        rates = ", ".join(f"${p.prompt:g} and ${p.completion:g}" for p in dict.fromkeys(prices.values()) if p)
        print(f"cost               {f'${expected.cost:,.4f}':>14}  ({rates} a million tokens{dated})")
    if expected.looked_at < expected.samples:
        print(f"estimated from the first {expected.looked_at} samples")
    print("nothing was sent")
