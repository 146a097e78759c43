"""`compare`: two runs over the same samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.calibrate import JsonOption, MarkdownOption, emit
from steelyard.cli.common import ConfigOption, LangOption, StoreOption, language

if TYPE_CHECKING:
    from steelyard.cli.results import ResultsSource
    from steelyard.trust.comparison import Judged

AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Compare runs of different protocols, judges, prompts, options or questions.")
]


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The run (id, number, last) or file of before.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run or file to compare with A.")],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this score; may be repeated. Fewer questions decide more."),
    ] = None,
    anyway: AnywayOption = False,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Say whether B is better than A, worse, or not decided, and how many samples would decide it.

    Example:  steelyard compare 1 2
    """
    from steelyard.cli.results import ResultsSource
    from steelyard.trust.comparison import compare as measure
    from steelyard.trust.comparison.page import blocks

    sides = [judged(name, ResultsSource(name, config, store)) for name in (a, b)]
    measured = measure(sides[0], sides[1], metrics=metric or (), anyway=anyway, language=language(lang))
    brief = list(blocks(measured, brief=True))
    emit(measured, list(blocks(measured)), as_json=as_json, markdown=markdown, brief=brief)


def judged(name: str, source: ResultsSource) -> Judged:
    from steelyard.trust.comparison import Judged

    return Judged(name if source.file else source.run, source.verdicts, source.manifest)
