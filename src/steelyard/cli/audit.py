"""`audit`: a judge measured before it is trusted."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from steelyard.cli.common import (
    MapOption,
    check_out,
    console,
    pairs,
)
from steelyard.cli.flags import PromptsOption, SessionFlags, with_session_flags
from steelyard.cli.gate import FAILED, UNDECIDED, OnlySignificantOption
from steelyard.cli.run import chosen_options, print_estimate

if TYPE_CHECKING:
    from steelyard.cli.session import Session
    from steelyard.judges.base import Judge
    from steelyard.prompts import Prompts
    from steelyard.reports.audit.card import Card
    from steelyard.trust.audit import Auditor
    from steelyard.trust.gating import Requirement


def register(app: typer.Typer) -> None:
    app.command("audit")(audit)


@with_session_flags
def audit(
    judge: Annotated[
        str,
        typer.Argument(
            metavar="JUDGE", help="embedded, local, verifier:NAME, PROVIDER:MODEL, or a judge of steelyard.toml."
        ),
    ],
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", help="Only this protocol; may be repeated. Default: all four."),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="injection, stability, sensitivity, or several with commas.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Also audit on your own samples; needs --protocol.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="How many of your own samples, from the top.")] = 20,
    built_in: Annotated[
        bool, typer.Option("--built-in/--no-built-in", help="Whether the built-in data is audited too.")
    ] = True,
    project: Annotated[
        str, typer.Option("--project", help="Whose samples --data holds: only its members see that card in the viewer.")
    ] = "",
    map: MapOption = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How many times each base sample is judged.")] = 3,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the card here (JSON).")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the card here as one HTML file.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write the whole card here as Markdown.")] = None,
    compare: Annotated[
        list[Path] | None, typer.Option("--compare", help="Another judge's card to put beside it; may be repeated.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option("--require", help="E.g. 'injection<=0.05'; exit code 6 where it is missed.")
    ] = None,
    only_significant: OnlySignificantOption = False,
    prompts: PromptsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; send nothing.")] = False,
    *,
    flags: SessionFlags,
) -> None:
    """Measure a judge before you trust it: prompt injection, stability of its labels, errors it misses.

    Example:  steelyard audit openai:gpt-4o-mini -p atomic --html card.html -o card.json
    """
    from steelyard.cli.session import Session
    from steelyard.errors import ConfigError, Surface
    from steelyard.protocols import get_protocol
    from steelyard.settings import Settings
    from steelyard.store import Store
    from steelyard.trust.audit import auditor_for, check_comparable, data_hash, read_card, samples_for, scope_of

    settings = Settings.load(flags.config)
    scope = scope_of(protocol or (), [name.strip() for name in only.split(",")] if only else (), repeats)
    if data is not None and not protocol:
        raise ConfigError(f"--data needs --protocol: one or more of {', '.join(scope.protocols)}")
    if data is None and not built_in:
        raise ConfigError("--no-built-in leaves nothing to audit; name your own samples with --data")
    for path in (out, html, markdown):
        check_out(path, [str(data)] if data else [])
    requirements = _requirements(require or [])
    others = [(str(path), read_card(path)) for path in compare or ()]
    mine = samples_for(data, scope, samples, pairs(map, "--map"), Surface.flags) if data is not None else []
    known = settings.prompts.with_files(prompts or [])
    session = Session(settings, flags)
    made = session.judge(judge, known)
    options = {name: chosen_options(get_protocol(name), settings, {}) for name in scope.protocols}
    audited = partial(
        auditor_for,
        made,
        scope,
        samples=mine,
        with_built_in=built_in,
        options=options,
        settings=session.run_settings(),
    )
    if dry_run:
        _dry_run(audited(), made, known)
        return
    with Store.open(settings.store_location(flags.store)) as opened:
        work = audited(store=opened)
        for name, other in others:
            # Before anything is asked: what cannot be compared is said at once.
            check_comparable(work.card("en", "", "", data_hash(mine)), other, name)
        card = _judged(work, session, data_hash(mine))
        opened.add_card(project if mine else "", card.judge, card.made, card.model_dump_json())
    _emit(card, [other for _, other in others], session, out, html, markdown)
    _exit_by_requirements(card, requirements, only_significant)


def _dry_run(work: Auditor, judge: Judge, prompts: Prompts) -> None:
    from steelyard.protocols.common import Options

    print_estimate(judge, work.rows(), work.protocol(), Options(), prompts, work.tally.total)


def _judged(work: Auditor, session: Session, data: str | None) -> Card:
    """Run the audit with progress and Ctrl-C; answers that arrived are kept in any case."""
    from steelyard import __version__
    from steelyard.cli.session import interruptible
    from steelyard.engine.manifest import now
    from steelyard.engine.progress import ProgressLine

    print(f"audit · {work.judge.name} · {work.tally.total} judgings", file=sys.stderr)

    async def work_on() -> None:
        try:
            await interruptible(work.run(), work.tally, work.stop, shown.tick)
        finally:
            await work.aclose()

    with ProgressLine(session.progress.value, work.tally, lambda: session.limiter.in_flight) as shown:
        asyncio.run(work_on())
    return work.card(session.language or "en", __version__, now(), data)


def _emit(
    card: Card, others: list[Card], session: Session, out: Path | None, html: Path | None, markdown: Path | None
) -> None:
    from steelyard.reports.audit.html import render
    from steelyard.reports.audit.page import blocks
    from steelyard.reports.markdown import document
    from steelyard.reports.terminal import renderable

    console().print(renderable(blocks(card, others, brief=True)))
    if out is not None:
        out.write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if html is not None:
        html.write_text(render(card, others), encoding="utf-8")
    if markdown is not None:
        markdown.write_text(document(blocks(card, others)), encoding="utf-8")


def _requirements(texts: list[str]) -> list[Requirement]:
    from steelyard.errors import ConfigError
    from steelyard.reports.audit.card import Measure
    from steelyard.trust.gating import parse_requirement

    requirements = [parse_requirement(text, lambda _: "ratio") for text in texts]
    if unknown := [wanted.metric for wanted in requirements if wanted.metric not in get_args(Measure)]:
        raise ConfigError(f"an audit measures no {unknown[0]!r}; it measures {', '.join(get_args(Measure))}")
    return requirements


def _exit_by_requirements(card: Card, requirements: list[Requirement], only_significant: bool) -> None:
    """Check the card against the requirements and exit with the matching code."""
    from steelyard.cli.session import GAPS, INTERRUPTED
    from steelyard.reports.blocks import number
    from steelyard.reports.model import Estimate
    from steelyard.trust.gating import outcome_of, state_of

    outcomes = set[str]()
    for wanted in requirements:
        found = {str(name): estimate for name, estimate in card.measures().items()}.get(wanted.metric, Estimate())
        state = state_of(found.value, found.interval, wanted.sign, wanted.limit)
        outcome = outcome_of("require", state, only_significant)
        outcomes.add(outcome)
        doubt = ", not significant" if state == "missed_not_significant" else ""
        print(f"{outcome}: {wanted.metric} {wanted.sign} {wanted.limit:g} ({number(found.value, 'ratio')}{doubt})")
    if card.stopped:
        raise typer.Exit(INTERRUPTED if card.stopped == "interrupted" else GAPS)
    if "failed" in outcomes:
        raise typer.Exit(FAILED)
    if card.n_failed:
        raise typer.Exit(GAPS)
    if "undecided" in outcomes:
        raise typer.Exit(UNDECIDED)
