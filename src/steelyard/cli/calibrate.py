"""`calibrate`: compares a judge with human labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, LangOption, StoreOption, console, language
from steelyard.cli.results import SourceArgument
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.cli.results import ResultsSource
    from steelyard.records import Record
    from steelyard.reports.blocks import Block
    from steelyard.store.labels import HumanLabel

LabelsOption = Annotated[
    list[Path] | None,
    typer.Option("--labels", "-l", help="People's labels (JSONL or CSV); default: those in the store."),
]
PolicyOption = Annotated[str | None, typer.Option("--policy", help="Only labels under this version of the policy.")]
JsonOption = Annotated[bool, typer.Option("--json", help="All figures as JSON instead.")]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", help="Also write the page here, as Markdown.")]


def register(app: typer.Typer) -> None:
    app.command("calibrate")(calibrate)


def calibrate(
    source: SourceArgument = "last",
    labels: LabelsOption = None,
    policy: PolicyOption = None,
    width: Annotated[
        float, typer.Option("--width", help="Wanted width of an interval, as a share of the scale; 0.1 is ±5 points.")
    ] = 0.1,
    precision: Annotated[
        float, typer.Option("--precision", help="Wanted share of right labels, for the thresholds of a routed judge.")
    ] = 0.95,
    write_thresholds: Annotated[
        Path | None,
        typer.Option("--write-thresholds", help="Write them here, for sure = FILE of a routed judge (JSON)."),
    ] = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write the page here, as HTML with curves.")] = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Compare a judge with human labels: how well they agree, and what the scores would be with human labels.

    Example:  steelyard calibrate last --labels human.jsonl
    """
    from steelyard.cli.results import ResultsSource
    from steelyard.people.calibration import calibrate as measure
    from steelyard.reports.calibration.page import blocks

    found = ResultsSource(source, config, store)
    given = labels_for(found, labels)
    measured = measure(
        found.verdicts(),
        given,
        policy=policy,
        run=run_id(found),
        width=width,
        precision=precision,
        language=language(lang),
    )
    emit(measured, list(blocks(measured)), as_json=as_json, markdown=markdown)
    if html is not None:
        from steelyard.reports.html.document import html_document

        html.write_text(html_document(blocks(measured), measured.language), encoding="utf-8")
    if write_thresholds is not None:
        from steelyard.people.calibration.reliability import thresholds

        if not measured.reliability:
            raise ConfigError("there are no thresholds to write: no label that people gave has a confidence")
        write_thresholds.write_text(json.dumps(thresholds(measured), indent=2, ensure_ascii=False) + "\n", "utf-8")


def labels_for(found: ResultsSource, files: list[Path] | None) -> list[HumanLabel]:
    """The labels of these files, or those that the store has."""
    from steelyard.people.labelling import labels_in

    if files:
        return [label for file in files for label in labels_in(file)]
    if found.file:
        return []
    return list(found.store.labels(found.run)) or list(found.store.labels())


def run_id(found: ResultsSource) -> str:
    return "" if found.file else found.run


def emit(
    value: Record,
    page: Sequence[Block],
    *,
    as_json: bool,
    markdown: Path | None,
    brief: Sequence[Block] | None = None,
) -> None:
    """Print a result as a page or as JSON, and write it as Markdown too where that is wanted."""
    from steelyard.reports.markdown import document
    from steelyard.reports.terminal import renderable

    if as_json:
        print(value.model_dump_json(indent=2))
    else:
        console().print(renderable(page if brief is None else brief))
    if markdown is not None:
        markdown.write_text(document(page), encoding="utf-8")
