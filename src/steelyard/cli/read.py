"""`validate` checks sample files; `parse` reads labels out of transcripts."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import (
    EncodingOption,
    FormatOption,
    FromOption,
    LangOption,
    MapOption,
    ProtocolName,
    SamplesArgument,
    check_files,
    check_out,
    console,
    language,
    note,
    pairs,
)
from steelyard.errors import InputError, Surface

if TYPE_CHECKING:
    from steelyard.records import Verdict
    from steelyard.samples.files import Rows

GAPS = 3
# What differs between rows with the same problem: values, and where they were met.
VARYING = re.compile(r"""(?:'[^']*'|"[^"]+"|…)(?:, (?:'[^']*'|…))*|\d+""")
SHOWN = 5
# Where a transcript is looked for when no column is named.
COLUMNS = ("transcript", "output", "response", "text")


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)
    app.command("parse")(parse)


def validate(
    files: SamplesArgument,
    protocol: ProtocolName,
    map: MapOption = None,
    importer: FromOption = None,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
) -> None:
    """List the rows that cannot be judged, grouped by problem. Nothing is sent anywhere.

    Example:  steelyard validate answers.csv -p grounded --map answer=reply
    """
    from steelyard.protocols import get_protocol
    from steelyard.samples import read_samples

    chosen = get_protocol(protocol)
    check_files(files, importer)
    good = bad = 0
    problems: dict[tuple[str | None, str | None, str], RowProblem] = {}
    for sample in read_samples(
        files,
        chosen.kind,
        fields=pairs(map, "--map"),
        encoding=encoding,
        format=format,
        importer=importer,
        on_note=note,
        surface=Surface.flags,
        needs_question=chosen.needs_question,
    ):
        if isinstance(sample, InputError):
            bad += 1
            alike = (sample.file, sample.field, VARYING.sub("…", sample.problem))
            problems.setdefault(alike, RowProblem(sample)).add(sample)
        else:
            good += 1
    for problem in problems.values():
        print(problem)
    print(f"{good} good, {bad} bad", file=sys.stderr)
    if bad:
        raise typer.Exit(GAPS)


class RowProblem:
    """One problem and the rows that have it: the first in full, a few others by number."""

    def __init__(self, first: InputError) -> None:
        self._first, self._count = first, 0
        self._others: list[str] = []

    def add(self, bad: InputError) -> None:
        self._count += 1
        if bad is not self._first and len(self._others) < SHOWN:
            self._others.append(str(bad.line))

    def __str__(self) -> str:
        if self._count == 1:
            return str(self._first)
        more = ", …" if self._count - 1 > SHOWN else ""
        rows = "row" if self._count == 2 else "rows"
        return f"{self._first}\n  and {self._count - 1:,} more {rows}: {', '.join(self._others)}{more}"


def parse(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Text files, folders of them, or JSONL/CSV files.")
    ],
    protocol: Annotated[str | None, typer.Option("--protocol", "-p", help="Default: recognised from the text.")] = None,
    column: Annotated[str | None, typer.Option(help="The column that holds the transcript, for JSONL and CSV.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the result lines here instead.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Print a report after the lines.")] = False,
    lang: LangOption = None,
    encoding: EncodingOption = "utf-8",
) -> None:
    """Read labels and scores out of evaluations that a model wrote as text: lists, tables or JSON.

    A text may hold several transcripts; their ids are then NAME#1, NAME#2 and so on.

    Example:  steelyard parse replies.jsonl --column output -p atomic -o results.jsonl
    """
    from steelyard.errors import TranscriptError
    from steelyard.protocols.transcripts import parse_all
    from steelyard.reports import ReportBuilder
    from steelyard.reports.terminal import render

    _check_sources(sources)
    check_out(out, sources)
    gaps = False
    builders: dict[str, ReportBuilder] = {}
    target = out.open("w", encoding="utf-8") if out else sys.stdout
    try:
        for found in _transcripts(sources, column, encoding):
            if isinstance(found, InputError):
                gaps = True
                print(f"steelyard: {found}", file=sys.stderr)
                continue
            name, text, place = found
            try:
                verdicts: list[Verdict] = parse_all(text, protocol, id=name)
            except TranscriptError as error:
                gaps = True
                print(f"steelyard: {place}: {error.problem}", file=sys.stderr)
                continue
            for verdict in verdicts:
                gaps = gaps or verdict.status != "judged"
                target.write(json.dumps(verdict.line(), ensure_ascii=False) + "\n")
                if verdict.protocol not in builders:
                    builders[verdict.protocol] = ReportBuilder(verdict.protocol, language(lang))
                builders[verdict.protocol].add(verdict, None)
    finally:
        if out:
            target.close()
    if report or out:
        for builder in builders.values():
            console().print(render(builder.build(), language(lang)))
    if gaps:
        raise typer.Exit(GAPS)


def _check_sources(sources: list[str]) -> None:
    for source in sources:
        if source != "-" and not Path(source).exists():
            raise InputError("there is no such file or folder", file=source)


def _transcripts(sources: list[str], column: str | None, encoding: str) -> Iterator[tuple[str, str, str] | InputError]:
    """(id, text, place) of every transcript the sources hold."""
    from steelyard.samples.files import rows_of

    for source in sources:
        path = Path(source)
        if column or path.suffix in (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx"):
            yield from _column(rows_of(source, None, encoding, note, Surface.flags), column, source)
        elif path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
            # As where a file is named by itself; only files that differ in nothing else keep their ending.
            stems = Counter(file.with_suffix("") for file in files)
            for file in files:
                named = file.with_suffix("") if stems[file.with_suffix("")] == 1 else file
                yield _text_file(file, str(named.relative_to(path)), encoding)
        elif source == "-":
            yield "stdin", sys.stdin.read(), "-"
        else:
            yield _text_file(path, path.stem, encoding)


def _text_file(file: Path, name: str, encoding: str) -> tuple[str, str, str] | InputError:
    try:
        return name, file.read_text(encoding), str(file)
    except (OSError, UnicodeError) as error:
        return InputError(str(error), file=str(file))


def _column(rows: Rows, column: str | None, source: str) -> Iterator[tuple[str, str, str] | InputError]:
    for place, row in rows:
        if isinstance(row, InputError):
            yield row
            continue
        if not isinstance(row, Mapping):
            yield place.error("is not an object")
            continue
        name = column or next((key for key in COLUMNS if key in row), None)
        text = row.get(name) if name else None
        if not isinstance(text, str):
            yield place.error("there is no such text; name the column with --column", name or "transcript")
            continue
        yield str(row.get("id", f"{Path(source).stem}-{place.number}")), text, f"{source}:{place.number}"
