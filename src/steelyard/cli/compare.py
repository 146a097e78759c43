"""`compare`: two runs over the same samples, by their scores or by which answers a judge prefers."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.calibrate import JsonOption, MarkdownOption, emit
from steelyard.cli.common import ConfigOption, LangOption, ProgressStyle, StoreOption, language, note
from steelyard.cli.flags import ConcurrencyOption, JudgeOption, MaxCost, ProgressOption, SessionFlags
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.cli.results import ResultsSource
    from steelyard.cli.session import Session
    from steelyard.trust.comparison import Judged

AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Compare runs of different protocols, judges, prompts, options or questions.")
]


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="A B", help="The earlier run (id, number, last) or file, and the one to compare with it."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this score; may be repeated. Fewer comparisons have more power."),
    ] = None,
    anyway: AnywayOption = False,
    pairwise: Annotated[
        bool,
        typer.Option("--pairwise", help="Ask a judge which answers it prefers, in both orders; two or more runs."),
    ] = False,
    judge: JudgeOption = None,
    aspects: Annotated[
        str | None,
        typer.Option("--aspects", metavar="LIST", help="With --pairwise: what to compare, separated by commas."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --pairwise: estimate calls, tokens and cost; send nothing.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    max_cost: MaxCost = None,
    progress: ProgressOption = ProgressStyle.auto,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Say whether B is better than A, worse, or not decided, and how many samples would decide it.

    Example:  steelyard compare 1 2
    """
    if pairwise:
        if metric or anyway or as_json or markdown:
            raise ConfigError(
                "--metric, --anyway, --json and --markdown are for scores; the preferences become a run, "
                "which `steelyard report last --as json` writes in any form"
            )
        from steelyard.cli.session import Session
        from steelyard.settings import Settings

        flags = SessionFlags(concurrency, max_cost=max_cost, progress=progress, lang=lang, config=config, store=store)
        session = Session(Settings.load(config), flags)
        _prefer(session, runs, judge, aspects, dry_run=dry_run)
        return
    if judge or aspects or dry_run:
        raise ConfigError("comparing the scores of two runs takes no judge; add --pairwise to ask one")
    if len(runs) != 2:
        raise ConfigError(f"scores are compared between two runs, not {len(runs)}; with --pairwise there may be more")
    from steelyard.cli.results import ResultsSource
    from steelyard.reports.comparison import blocks
    from steelyard.trust.comparison import compare as measure

    sides = [judged(name, ResultsSource(name, config, store)) for name in runs]
    measured = measure(sides[0], sides[1], metrics=metric or (), anyway=anyway, language=language(lang))
    brief = list(blocks(measured, brief=True))
    emit(measured, list(blocks(measured)), as_json=as_json, markdown=markdown, brief=brief)


def judged(name: str, source: ResultsSource) -> Judged:
    from steelyard.trust.comparison import Judged

    return Judged(name if source.file else source.run, source.verdicts, source.manifest)


def _prefer(session: Session, runs: list[str], judge: str | None, aspects: str | None, *, dry_run: bool) -> None:
    """A run over the pairs of answers that the runs hold, kept like any other."""
    from steelyard.cli.run import chosen_options, print_estimate
    from steelyard.engine.inputs import Input
    from steelyard.engine.pairs import PairedRuns
    from steelyard.engine.runs import start
    from steelyard.protocols import PAIRS
    from steelyard.store import Store

    settings = session.config
    protocol, prompts = settings.protocol(PAIRS), settings.prompts
    options = chosen_options(protocol, settings, {} if aspects is None else {"aspects": aspects})
    with Store.open(settings.store_location(session.store), create=False) as opened:
        paired = PairedRuns(opened, runs)
        made = session.judge(judge, prompts)
        note(" · ".join(f"{letter}: {name}" for letter, name in zip(ascii_uppercase, paired.names, strict=False)))
        if alone := paired.alone():
            note(f"{alone} samples are not in all of these runs and are compared only where they are in two")
        data = Input([], given=paired)
        if dry_run:
            print_estimate(made, data.rows(protocol), protocol, options, prompts, None)
            return
        spec = settings.choose(judge).name
        session.finish(start(opened, protocol, options, made, spec, prompts, data, session.run_settings()))
