"""`report` summarises a run; `show` prints one sample."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from weakref import finalize

import typer

from steelyard.cli.common import ConfigOption, Lang, LangOption, StoreOption, check_out, console, language
from steelyard.errors import ConfigError, InputError, invalid_field

if TYPE_CHECKING:
    from steelyard.records import Language, Sample, Verdict
    from steelyard.reports.build_servers import FileLocation
    from steelyard.reports.model import RunFacts

SourceArgument = Annotated[
    str, typer.Argument(metavar="RUN|FILE", help="A run (id, number, last) or a result-lines file.")
]


class Form(StrEnum):
    """How a report is written."""

    terminal = "terminal"
    markdown = "markdown"
    json = "json"
    transcript = "transcript"
    report1 = "report1"
    report2 = "report2"
    junit = "junit"
    sarif = "sarif"


def register(app: typer.Typer) -> None:
    app.command("report")(report)
    app.command("show")(show)


def report(
    source: SourceArgument = "last",
    form: Annotated[
        Form,
        typer.Option(
            "--as",
            help="transcript: the documents' own form; report1, report2: the dialogue reports; "
            "junit, sarif: for build servers.",
        ),
    ] = Form.terminal,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write it here instead of printing it; transcripts to a .jsonl: one a line."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as a self-contained HTML file.")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, help="With --html: how many samples it holds in full, the lowest first.")
    ] = 50,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Summarise a run, or a file of result lines.

    Example:  steelyard report last --html report.html
    """
    from steelyard.reports import ReportBuilder

    found = ResultsSource(source, config, store)
    if html:
        _write_html(found, html, samples, lang)
        if form is Form.terminal and out is None:
            return None
    if form in (Form.transcript, Form.report1, Form.report2):
        text, judges = _transcripts(found, form, as_lines=out is not None and out.suffix == ".jsonl")
        _emit(text, out)
        return _say_agreement(judges, language(lang) or "en")
    builder = ReportBuilder(found.protocol, language(lang))
    for sample, verdict in found.verdicts():
        builder.add(verdict, sample)
    for bad in found.bad_rows():
        builder.add_bad_row(bad)
    built = builder.build(found.manifest, found.facts)
    if form in (Form.junit, Form.sarif):
        return _emit(_for_build_servers(found, form, built.language), out)
    if form is Form.terminal and out is None:
        from steelyard.reports import terminal

        return console().print(terminal.render(built, language(lang)))
    from steelyard.reports import json as json_form
    from steelyard.reports import markdown

    render = json_form.render if form is Form.json else markdown.render
    return _emit(render(built, language(lang)), out)


def _for_build_servers(found: ResultsSource, form: Form, language: Language) -> str:
    from steelyard import __version__
    from steelyard.reports.build_servers import FileLocation, junit, sarif

    if form is Form.junit:
        return junit(found.verdicts(), found.bad_rows(), found.protocol, language).rstrip("\n")
    spots = found.spots()
    data = (found.manifest or {}).get("data") or [{"path": str(found.file)}]
    fallback = FileLocation(data[0]["path"])
    bad_rows = found.bad_rows()
    return sarif(found.verdicts(), bad_rows, found.protocol, language, __version__, spots, fallback).rstrip("\n")


def show(
    source: SourceArgument,
    sample: Annotated[str, typer.Argument(help="The sample's id.")],
    form: Annotated[Form, typer.Option("--as", help="terminal, markdown, json or transcript.")] = Form.terminal,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Show one sample in full: items, labels, reasons, evidence.

    Example:  steelyard show last sample-17
    """
    from steelyard.protocols.transcripts import render as render_transcript
    from steelyard.reports.model import agreement_notes
    from steelyard.reports.sample import render_sample, sample_markdown
    from steelyard.text import language_of

    found = ResultsSource(source, config, store)
    judged, verdict = found.one(sample)
    _check_form(form, verdict.protocol)
    texts = [item.text for item in verdict.items[:20]] or [judged.model_dump_json() if judged else ""]
    chosen = language(lang) or language_of(*texts)
    if form is Form.json:
        extras = {"notes": dict(verdict.notes), "agreement": agreement_notes([verdict.judge], chosen)}
        print(json.dumps(verdict.line() | extras, ensure_ascii=False, indent=2))
    elif form is Form.markdown:
        print(sample_markdown(verdict, judged, chosen))
    elif form is Form.terminal:
        console().print(render_sample(verdict, judged, chosen))
    else:
        print(render_transcript(verdict, _forms(form)))
        _say_agreement({verdict.judge}, chosen)


def _say_agreement(judges: set[str], language: Language) -> None:
    """The judges' measured agreement, printed beside transcript forms, which have no place for it."""
    from steelyard.reports.model import agreement_notes

    for note in agreement_notes(sorted(judges), language).values():
        print(f"note: {note}", file=sys.stderr)


def _write_html(found: ResultsSource, path: Path, samples: int, lang: Lang | None) -> None:
    from steelyard.reports import ReportBuilder
    from steelyard.reports.html import Lowest, render

    check_out(path, [str(found.file)] if found.file else [])
    builder, lowest = ReportBuilder(found.protocol, language(lang)), Lowest(samples)
    for sample, verdict in found.verdicts():
        builder.add(verdict, sample)
        lowest.add(verdict, sample)
    for bad in found.bad_rows():
        builder.add_bad_row(bad)
    report = builder.build(found.manifest, found.facts)
    path.write_text(render(report, lowest.chosen(), language(lang)), encoding="utf-8")
    print(f"wrote {path}", file=sys.stderr)


class ResultsSource:
    """A run of the store, or a file of result lines; the file has no samples, so no tags and no texts.

    The store is closed when nobody holds the source any more: as soon as the command is through with it.
    """

    def __init__(self, name: str, config: Path | None, store: str | None) -> None:
        from steelyard.engine.runs import state_of
        from steelyard.reports.model import RunFacts
        from steelyard.settings import Settings
        from steelyard.store import Store, is_run_name

        self.file = Path(name) if Path(name).is_file() else None
        self.manifest: dict[str, Any] | None = None
        self.facts: RunFacts | None = None
        if self.file is None and not is_run_name(name):
            raise InputError("there is no such file", file=name)
        if self.file is None:
            self.store = Store.open(Settings.load(config).store_location(store), create=False)
            finalize(self, self.store.close)
            row = self.store.run(name)
            self.run, self.protocol, self.manifest = row.id, row.protocol, row.manifest
            self.facts = RunFacts.of(row.id, state_of(row, self.store), row.started, row.finished)
            return
        first = next(self.verdicts(), None)
        if first is None:
            raise InputError("holds no result lines", file=name)
        self.protocol = first[1].protocol

    def verdicts(self) -> Iterator[tuple[Sample | None, Verdict]]:
        if self.file is None:
            yield from self.store.verdicts(self.run)
            return
        from pydantic import ValidationError

        from steelyard.records import Verdict

        check = _LinesCheck(str(self.file))
        with self.file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.isspace():
                    continue
                try:
                    verdict = Verdict.model_validate_json(line)
                except ValidationError as error:
                    field, problem, _ = invalid_field(error)
                    problem = f"is not a result line: {problem}"
                    raise InputError(problem, file=str(self.file), line=number, field=field) from None
                check.add(verdict, number)
                yield None, verdict

    def spots(self) -> dict[str, FileLocation]:
        """The source line of each sample: in the run's input files if unchanged, or in the file of result lines."""
        from steelyard.engine.inputs import input_of
        from steelyard.errors import StoreError
        from steelyard.reports.build_servers import FileLocation

        if self.file is not None:
            lines = enumerate(self.file.read_text("utf-8").splitlines(), start=1)
            filled = (number for number, line in lines if line.strip())
            return {
                verdict.id: FileLocation(str(self.file), line)
                for (_, verdict), line in zip(self.verdicts(), filled, strict=True)
            }
        try:
            data = input_of(self.store.run(self.run), self.store)
        except StoreError:
            return {}
        ids = dict(self.store.query("SELECT seq, id FROM samples WHERE run = ?", self.run))
        return {
            ids[seq]: FileLocation(place.file, place.number if place.unit == "line" else 1)
            for seq, place in enumerate(data.places())
            if seq in ids and place.file
        }

    def bad_rows(self) -> list[InputError]:
        return [] if self.file else self.store.bad_rows(self.run)

    def one(self, id: str) -> tuple[Sample | None, Verdict]:
        if self.file is None:
            found = self.store.verdict(self.run, id)
            if found:
                return found
        else:
            for pair in self.verdicts():
                if pair[1].id == id:
                    return pair
        raise InputError(f"there is no sample {id!r}", file=str(self.file or self.run))


class _LinesCheck:
    """Checks that result lines come from one run and have possible scores; otherwise their mean would be wrong."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.first: Verdict | None = None
        self.ids: dict[str, int] = {}

    def add(self, verdict: Verdict, number: int) -> None:
        for field, problem in self._problems(verdict):
            raise InputError(problem, file=self.file, line=number, field=field)
        self.first = self.first or verdict
        self.ids[verdict.id] = number

    def _problems(self, verdict: Verdict) -> Iterator[tuple[str, str]]:
        from steelyard.protocols import vocabulary

        first = self.first or verdict
        if verdict.id in self.ids:
            yield "id", f"{verdict.id!r} was used in line {self.ids[verdict.id]} already; ids must differ"
        if verdict.protocol != first.protocol:
            yield "protocol", f"{verdict.protocol}, but the lines before are of {first.protocol}; a file holds one"
        words = vocabulary(verdict.protocol)
        for name, score in verdict.scores.items():
            low, high = words.metric(name).bounds
            if score is not None and not math.isfinite(score):
                yield f"scores.{name}", f"{score} is no score; where there is none, write null"
            if score is not None and not low <= score <= high:
                yield f"scores.{name}", f"{score:g} does not lie between {low:g} and {high:g}"
        # A protocol of someone else may score each sample as it likes.
        if words.metrics and (unlike := verdict.scores.keys() ^ first.scores.keys()):
            missing = sorted(unlike - verdict.scores.keys())
            problem = f"{missing[0]!r} is missing" if missing else f"{sorted(unlike)[0]!r} is not in the lines before"
            yield "scores", f"{problem}; all lines have the same scores, null where one does not apply"


def _forms(form: Form) -> Literal["text", "json", "markdown"]:
    if form is Form.report1:
        return "json"
    return "markdown" if form is Form.report2 else "text"


def _check_form(form: Form, protocol: str) -> None:
    if form in (Form.junit, Form.sarif):
        raise ConfigError(f"--as {form.value} is for a whole run: steelyard report --as {form.value}")
    from steelyard.protocols.transcripts import DIALOGUE

    if form in (Form.report1, Form.report2) and protocol != DIALOGUE:
        raise ConfigError(f"--as {form.value} is for {DIALOGUE}; this was judged with {protocol}")


def _transcripts(found: ResultsSource, form: Form, *, as_lines: bool) -> tuple[str, set[str]]:
    """All transcripts to read; or one line each, with its id, as `parse` takes them back. Also who judged."""
    from steelyard.protocols.transcripts import render

    _check_form(form, found.protocol)
    written, judges = dict[str, str](), set[str]()
    for _, verdict in found.verdicts():
        written[verdict.id] = render(verdict, _forms(form))
        judges.add(verdict.judge)
    if not as_lines:
        return "\n\n".join(written.values()), judges
    rows = ({"id": id, "protocol": found.protocol, "transcript": text} for id, text in written.items())
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows), judges


def _emit(text: str, out: Path | None) -> None:
    if out is None:
        print(text)
    else:
        out.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
