"""`Results`: what `evaluate` returns: verdicts as records, rows, data frames, files and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from steelyard.errors import ConfigError, InputError, MissingExtra
from steelyard.records import Language, Sample, Verdict
from steelyard.text.wording import words

if TYPE_CHECKING:
    from steelyard.reports.model import Report
    from steelyard.reports.notebook import NotebookSample

AnyPath = str | PathLike[str]
# As many as a report of the command line holds.
SAMPLES_IN_FULL = 50
# As many as one wants to open below a cell.
SAMPLES_FOLDED = 5


class Results(Sequence[Verdict]):
    """The verdicts in the order of the samples, with what could not be read beside them.

    `stopped` says why judging ended early, `notes` how samples were read and dated where that was chosen for you, `run`
    is the id under which a store keeps them.
    """

    def __init__(
        self,
        protocol: str,
        judged: Iterable[tuple[Sample, Verdict]],
        bad_rows: Sequence[InputError],
        *,
        stopped: str | None = None,
        notes: Sequence[str] = (),
        run: str | None = None,
    ) -> None:
        self.protocol, self.bad_rows = protocol, tuple(bad_rows)
        self.stopped, self.notes, self.run = stopped, tuple(notes), run
        pairs = tuple(judged)
        self.samples = tuple(sample for sample, _ in pairs)
        self._verdicts = tuple(verdict for _, verdict in pairs)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, index: int | slice) -> Verdict | Sequence[Verdict]:
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"<Results: {len(self)} {self.protocol} verdicts, {len(self.bad_rows)} bad rows{stopped}>"

    def _repr_html_(self) -> str:
        from steelyard.reports.notebook import report_fragment

        report = self.report()
        lowest = ((low.id, self.show(low.id, report.language).blocks()) for low in report.worst[:SAMPLES_FOLDED])
        return report_fragment(report, self._remarks(), lowest)

    def show(self, sample: str | int, language: Language | None = None) -> NotebookSample:
        """One sample in full, by its id or its place: a notebook shows it with evidence, `print` as text."""
        from steelyard.reports.notebook import NotebookSample

        if isinstance(sample, str):
            at = next((at for at, verdict in enumerate(self) if verdict.id == sample), None)
            if at is None:
                raise InputError(f"there is no sample {sample!r} among these results")
            sample = at
        return NotebookSample(self.samples[sample], self[sample], language)

    def summary(self, language: Language | None = None) -> str:
        """The report as text of 80 columns, as the command line prints it."""
        if language is not None:
            words(language)
        from steelyard.reports.layout import Page
        from steelyard.reports.terminal import as_text

        return "\n".join([as_text(Page(self.report(language), brief=True).blocks()), *self._remarks()])

    def _remarks(self) -> list[str]:
        return [*([f"stopped: {self.stopped}"] if self.stopped else []), *self.notes]

    def save(self, path: AnyPath, *, items: bool = False) -> Path:
        """Write `.jsonl` (result lines), `.csv` or `.parquet` (a row per sample or item), or `.html` (the report)."""
        from steelyard.reports.files import write_csv, write_lines
        from steelyard.reports.parquet import write_parquet

        out = Path(path)
        if items and out.suffix not in (".csv", ".parquet"):
            raise ConfigError("items=True is for .csv and .parquet; result lines and reports hold the items already")
        rows = self.item_rows() if items else self.rows()
        match out.suffix:
            case ".jsonl" | ".ndjson":
                write_lines(out, (verdict.line() for verdict in self))
            case ".csv":
                write_csv(out, rows)
            case ".parquet":
                write_parquet(out, zip(self.samples, self, strict=True), "items" if items else "verdicts")
            case ".html":
                out.write_text(self._page(), encoding="utf-8")
            case _:
                raise ConfigError(f"{out}: the name must end in .jsonl, .csv, .parquet or .html")
        return out

    def _page(self) -> str:
        from steelyard.reports.html import Lowest, render

        lowest = Lowest(SAMPLES_IN_FULL)
        for sample, verdict in zip(self.samples, self, strict=True):
            lowest.add(verdict, sample)
        return render(self.report(), lowest.chosen())

    def to_dicts(self) -> list[dict[str, Any]]:
        """The result lines, as `-o` writes them."""
        return [verdict.line() for verdict in self]

    def report(self, language: Language | None = None) -> Report:
        """The summary that the command line shows."""
        from steelyard.reports.build import ReportBuilder

        builder = ReportBuilder(self.protocol, language)
        for sample, verdict in zip(self.samples, self, strict=True):
            builder.add(verdict, sample)
        for bad in self.bad_rows:
            builder.add_bad_row(bad)
        return builder.build()

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per sample: id, status, each score, flags joined by commas, cost."""
        for verdict in self:
            yield {
                "id": verdict.id,
                "protocol": verdict.protocol,
                "status": verdict.status,
                **verdict.scores,
                "flags": ",".join(verdict.flags),
                "judge": verdict.judge,
                "cost": verdict.usage.cost,
            }

    def item_rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per labelled item, with the sample's id."""
        for verdict in self:
            for item in verdict.line()["items"]:
                evidence = item.pop("evidence", None) or {}
                flat = {name: _flat(name, value) for name, value in item.items()}
                yield {"sample": verdict.id, **flat, **{f"evidence_{k}": v for k, v in evidence.items()}}

    def to_pandas(self, *, items: bool = False) -> Any:
        """A pandas frame of the samples, or of the items."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        return pandas.DataFrame(list(self.item_rows() if items else self.rows()))

    def to_polars(self, *, items: bool = False) -> Any:
        """A polars frame of the samples, or of the items."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("polars", "polars", "to_polars()") from None
        rows = list(self.item_rows() if items else self.rows())
        return polars.DataFrame(rows, infer_schema_length=None)


def _flat(name: str, value: Any) -> Any:
    """A cell: lists joined, and labels always words, since a check's 0 and 1 share their column with `unjudged`."""
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in value.items())
    return str(value) if name == "label" else value
