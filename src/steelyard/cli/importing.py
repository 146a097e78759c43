"""`import`: what another tool knows about its answers."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import (
    ConfigOption,
    EncodingOption,
    FormatOption,
    FromOption,
    MapOption,
    StoreOption,
    check_files,
    check_out,
    note,
    pairs,
)
from steelyard.errors import InputError, NoReadableRow, Surface

GAPS = 3
MOST_SHOWN = 5


class SampleKind(StrEnum):
    """What a conversation becomes."""

    rag = "rag"
    dialogue = "dialogue"


def register(app: typer.Typer) -> None:
    app.command("import")(import_)


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="The export of another tool.")],
    importer: FromOption = None,
    kind: Annotated[
        SampleKind, typer.Option("--as", help="rag: every answer is a sample; dialogue: a conversation is one.")
    ] = SampleKind.rag,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="KIND=SCORE",
            help="Keep a score of 0 and 1 as labels too, for calibrate: accuracy=feedback.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the samples here (JSONL).")] = None,
    map: MapOption = None,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Import the scores and feedback of another tool: as runs to compare with, and as labels to calibrate with.

    Example:  steelyard import messages.jsonl.gz --from dify --label accuracy=feedback
    """
    from steelyard.engine.imports import ImportedScores, aspects_to_label
    from steelyard.engine.inputs import Input
    from steelyard.samples import read_scored
    from steelyard.settings import Settings
    from steelyard.store import Store

    labels = aspects_to_label(pairs(label, "--label"))
    check_files(files, importer)
    check_out(out, files)
    found = read_scored(
        files,
        kind.value,
        fields=pairs(map, "--map"),
        encoding=encoding,
        format=format,
        importer=importer,
        on_note=note,
        surface=Surface.flags,
        needs_question=False,
    )
    good = scored = 0
    bad: list[InputError] = []
    with ExitStack() as stack:
        opened = stack.enter_context(Store.open(Settings.load(config).store_location(store)))
        lines = stack.enter_context(out.open("w", encoding="utf-8")) if out else None
        kept = ImportedScores(opened, Input(files, format=format, importer=importer).described, labels)
        for row in found:
            if isinstance(row, InputError):
                bad.append(row)
                continue
            good, scored = good + 1, scored + bool(row.scores)
            kept.add(row)
            if lines:
                lines.write(f"{row.sample.model_dump_json(exclude_defaults=True)}\n")
        if not good:
            raise NoReadableRow(bad, file=", ".join(files))
        for run in kept.finish():
            names = ", ".join(run.manifest["protocol"]["origin"]["scales"])
            print(f"run {run.id} · {run.judge} · {run.manifest['rows']:,} samples · {names}")
    for problem in bad[:MOST_SHOWN]:
        print(f"steelyard: {problem}", file=sys.stderr)
    if labels:
        print(f"{kept.labels:,} labels kept")
    for reason, n in kept.not_labels.most_common():
        note(f"not kept as labels: {n:,} × {reason}")
    print(f"{good:,} samples, {scored:,} of them with scores; {len(bad):,} bad rows", file=sys.stderr)
    if bad:
        raise typer.Exit(GAPS)
