"""`gate`: pass or fail, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.calibrate import JsonOption, LabelsOption, MarkdownOption, PolicyOption, emit, labels_for, run_id
from steelyard.cli.common import ConfigOption, LangOption, StoreOption, language, pairs
from steelyard.cli.compare import AnywayOption, judged
from steelyard.cli.results import SourceArgument

FAILED = 6
UNDECIDED = 7
"""The exit codes of a gate that did not pass; the other codes say that it could not be tried."""

OnlySignificantOption = Annotated[
    bool,
    typer.Option(
        "--only-significant",
        help="A threshold fails only if the whole 95 % interval is on the wrong side; else it is undecided (code 7).",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("gate")(gate)


def gate(
    source: SourceArgument = "last",
    require: Annotated[
        list[str] | None, typer.Option("--require", help="E.g. 'accuracy>=0.9'; may be repeated.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The run or file to compare with: a significant fall fails.")
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop", metavar="METRIC=NUMBER", help="How far a score may fall: 0.02 or 2%, of 100 points 2."
        ),
    ] = None,
    only_significant: OnlySignificantOption = False,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="--require is about scores corrected by people's labels.")
    ] = False,
    labels: LabelsOption = None,
    policy: PolicyOption = None,
    max_unjudged: Annotated[
        float, typer.Option("--max-unjudged", min=0, max=1, help="Share of samples that may lack a full judgement.")
    ] = 0.05,
    anyway: AnywayOption = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML here.")] = None,
    comment: Annotated[
        Path | None, typer.Option("--comment", help="Also write a comment for a pull request here (steelyard comment).")
    ] = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Pass or fail a run. Exit code 6 if it fails, 7 if it is undecided (only with --only-significant).

    A score on the wrong side of --require fails. A fall behind --baseline fails only if it is significant.

    Example:  steelyard gate last --require 'accuracy>=0.9' --baseline 1 --max-drop accuracy=0.02
    """
    from steelyard.cli.results import ResultsSource
    from steelyard.reports import ReportBuilder
    from steelyard.reports.gate import blocks
    from steelyard.reports.gate import comment as as_comment
    from steelyard.reports.gate import junit as as_junit
    from steelyard.trust import gating

    found = ResultsSource(source, config, store)
    builder = ReportBuilder(found.protocol, language(lang))
    for sample, verdict in found.verdicts():
        builder.add(verdict, sample)
    for bad in found.bad_rows():
        builder.add_bad_row(bad)
    report = builder.build()
    requirements = [gating.parse_requirement(text, report.scale_of) for text in require or ()]
    comparison = calibration = None
    if baseline is not None:
        from steelyard.trust.comparison import compare

        before = judged(baseline, ResultsSource(baseline, config, store))
        comparison = compare(before, judged(source, found), anyway=anyway, language=report.language)
    # Runs on different scales are compared as shares of them.
    drops = gating.parse_drops(pairs(max_drop, "--max-drop"), comparison.scale_of if comparison else report.scale_of)
    if corrected or labels:
        from steelyard.people.calibration import calibrate

        given = labels_for(found, labels)
        calibration = calibrate(found.verdicts(), given, policy=policy, run=run_id(found), language=report.language)
    measured = gating.gate(
        report,
        requirements,
        run=str(found.file or found.run),
        drops=drops,
        comparison=comparison,
        calibration=calibration,
        only_significant=only_significant,
        max_unjudged=max_unjudged,
        finished=found.facts is None or found.facts.state in ("complete", "failed"),
    )
    emit(measured, list(blocks(measured)), as_json=as_json, markdown=markdown)
    if junit is not None:
        junit.write_text(as_junit(measured), encoding="utf-8")
    if comment is not None:
        comment.write_text(as_comment(measured, report, comparison), encoding="utf-8")
    if measured.outcome != "passed":
        raise typer.Exit(FAILED if measured.outcome == "failed" else UNDECIDED)
