"""Files, standard input or mappings in; `Sample` values out, and `InputError` values for what cannot be read.

Everything streams. Only the table of ids grows with the input, and it lies in a temporary file (ids.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Final, NamedTuple, TypedDict, Unpack

from steelyard.errors import InputError, Surface
from steelyard.records import Sample
from steelyard.samples.columns import Kind, check_fields, known_fields
from steelyard.samples.documents import paths_at
from steelyard.samples.fields import coerce, derived_id, sample_from
from steelyard.samples.files import FORMATS, Place, Rows, check_sources, count_rows, files_of, head_of, rows_of
from steelyard.samples.ids import Ids
from steelyard.samples.importers import PLAIN, detected, importer_named, importer_names
from steelyard.samples.importers.base import Imported, ImportedScore, Importer, Skipped, paths_of
from steelyard.samples.locations import DataFile, is_dataset
from steelyard.samples.objects import as_mapping, rows_in

__all__ = [
    "FORMATS",
    "PLAIN",
    "ImportedScore",
    "Kind",
    "ScoredSample",
    "count_samples",
    "importer_names",
    "is_dataset",
    "known_fields",
    "read_samples",
    "read_scored",
    "sample_from",
    "samples_from",
    "takes_names",
]

_NO_FIELDS: Final[Mapping[str, str]] = {}
OnNote = Callable[[str], None]
"""Is told, once for each file, how its rows are read where their columns' names alone do not say it, and what of a
tool's export was not taken."""


class ScoredSample(NamedTuple):
    """A sample with the scores that it had where it comes from."""

    sample: Sample
    scores: tuple[ImportedScore, ...] = ()


class ReadSettings(TypedDict, total=False):
    """The keyword arguments of `read_samples`."""

    fields: Mapping[str, str] | None
    encoding: str
    format: str | None
    importer: str | None
    on_note: OnNote
    surface: Surface
    needs_question: bool


def read_samples(
    sources: Sequence[str | os.PathLike[str]], kind: Kind, **settings: Unpack[ReadSettings]
) -> Iterator[Sample | InputError]:
    """The samples of these files, folders, globs or URLs of object stores (`-` is standard input), one after the other.

    `importer` names the tool that wrote them; without it, and without `fields`, files of known tools are recognised.
    With `needs_question` a row without a question cannot be read either.
    A row that cannot be read comes as an `InputError` in its place, and the reading goes on; so does a local file.
    An object store that cannot be reached, or a folder without a file of samples, raises `InputError`.
    An unknown field, format, importer or encoding is the caller's mistake and raises `ConfigError` at once.
    """
    found = read_scored(sources, kind, **settings)
    return (row if isinstance(row, InputError) else row.sample for row in found)


def read_scored(
    sources: Sequence[str | os.PathLike[str]],
    kind: Kind,
    *,
    fields: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
    importer: str | None = None,
    on_note: OnNote = lambda note: None,
    surface: Surface = Surface.python,
    needs_question: bool = True,
) -> Iterator[ScoredSample | InputError]:
    """The same, with the scores that the tool gave."""
    names = [os.fspath(s) for s in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    check_fields(kind, fields)
    named = importer_named(importer, surface) if importer else None
    takes_any = named is not None and named.has_names
    found = [file for name in names for file in ([DataFile(name)] if takes_any else files_of(name, format))]
    check_sources([file.name for file in found], format, encoding)
    looks = importer is None and not fields

    def rows() -> Iterator[tuple[Place, object]]:
        recognised = ((file, importer_of(file.name, format, encoding) if looks else named) for file in found)
        # Files of one tool belong together: traces may be in one and their scores in another.
        for tool, group in groupby(recognised, key=lambda one: one[1]):
            if tool is None:
                read = (_rows(file, format, encoding, on_note, surface) for file, _ in group)
                yield from chain.from_iterable(_perhaps_imported(one, kind, looks, on_note, surface) for one in read)
                continue
            files = [file.name for file, _ in group]
            if looks:
                for name in files:
                    on_note(_read_as(name, tool, surface))
            opened = chain.from_iterable(_opened(tool, name, format, encoding, on_note, surface) for name in files)
            yield from _imported(tool, opened, ", ".join(files), kind, on_note)

    return _samples(rows(), kind, fields, on_note, surface, needs_question)


def samples_from(
    samples: object,
    kind: Kind,
    *,
    fields: Mapping[str, str] | None = None,
    importer: str | None = None,
    on_note: OnNote = lambda note: None,
    needs_question: bool = True,
) -> Iterator[Sample | InputError]:
    """The same for what is in memory already: mappings, records, dataclasses, models, or a table of them."""
    check_fields(kind, fields)
    named = importer_named(importer) if importer else None
    rows: Rows = ((Place(None, n, "item"), row) for n, row in enumerate(rows_in(samples), 1))
    if named:
        plain = ((place, as_mapping(row)) for place, row in rows)
        rows = _imported(named, plain, "samples", kind, on_note)
    else:
        looks = importer is None and not fields
        rows = _perhaps_imported(rows, kind, looks, on_note, Surface.python)
    found = _samples(rows, kind, fields, on_note, Surface.python, needs_question)
    return (row if isinstance(row, InputError) else row.sample for row in found)


def count_samples(files: Sequence[str], format: str | None, importer: str | None = None) -> int | None:
    """How many samples there are, where counting rows tells it."""
    if importer not in (None, PLAIN) or "-" in files:
        return None
    names = [file.name for name in files for file in files_of(name, format)]
    count = count_rows(names, format)
    if count is None or importer == PLAIN:
        return count
    # Of a tool's files several rows may be one sample.
    first = next(rows_of(names[0], format, "utf-8"), None)
    if first and detected(paths_of(as_mapping(first[1]) if not isinstance(first[1], InputError) else {})):
        return None
    return None if any(importer_of(name, format, "utf-8") for name in names) else count


def takes_names(importer: str | None) -> bool:
    """Whether its sources may be names instead of files."""
    found = importer_named(importer) if importer else None
    return found is not None and found.has_names


# --- files of other tools --------------------------------------------------------------------------


def importer_of(name: str, format: str | None, encoding: str) -> Importer | None:
    """The tool whose file this unmistakably is, told from its ending or its beginning."""
    head = head_of(name, format, encoding)
    return detected(frozenset() if head is None else paths_at(head), name)


def _opened(tool: Importer, name: str, format: str | None, encoding: str, on_note: OnNote, surface: Surface) -> Rows:
    if tool.open and tool.opens(name):
        return tool.open(name)
    return rows_of(name, format, encoding, on_note, surface, whole=tool.is_whole)


def _rows(file: DataFile, format: str | None, encoding: str, on_note: OnNote, surface: Surface) -> Rows:
    """The rows of a file, with the columns that a partitioned dataset keeps in the names of its folders."""
    found = rows_of(file.name, format, encoding, on_note, surface)
    if not file.columns:
        return found
    return ((place, {**file.columns, **row} if isinstance(row, Mapping) else row) for place, row in found)


def _perhaps_imported(rows: Rows, kind: Kind, looks: bool, on_note: OnNote, surface: Surface) -> Rows:
    """The rows as they are, unless the first one shows that they are of a known tool."""
    first = next(rows, None)
    if first is None:
        return
    all_rows = chain([first], rows)
    place, row = first
    tool = detected(paths_of(as_mapping(row))) if looks and not isinstance(row, InputError) else None
    if tool is None:
        yield from all_rows
        return
    on_note(_read_as(place.file or "samples", tool, surface))
    plain = ((place, as_mapping(row)) for place, row in all_rows)
    yield from _imported(tool, plain, place.file or "samples", kind, on_note)


def _imported(tool: Importer, rows: Rows, name: str, kind: Kind, on_note: OnNote) -> Rows:
    skipped = Skipped()
    # Two answers side by side are no export's: where pairs are judged, the columns of the other one are mapped.
    yield from tool.read(rows, "dialogue" if kind == "dialogue" else "rag", skipped)
    if reasons := "; ".join(f"{n:,} × {reason}" for reason, n in skipped.most_common() if n):
        on_note(f"{name}: not taken: {reasons}")


def _read_as(name: str, tool: Importer, surface: Surface) -> str:
    other = surface.importing(PLAIN).rstrip(",")
    return f"{name}: read as a file of {tool.title}; to read its columns by their names: {other}"


# --- rows to samples -------------------------------------------------------------------------------


def _samples(
    rows: Iterable[tuple[Place, object]],
    kind: Kind,
    fields: Mapping[str, str] | None,
    on_note: OnNote,
    surface: Surface,
    needs_question: bool,
) -> Iterator[ScoredSample | InputError]:
    noted: set[tuple[str | None, str]] = set()
    with Ids() as ids:
        for place, row in rows:
            if isinstance(row, InputError):
                yield row
                continue
            scores: tuple[ImportedScore, ...] = ()
            record: Mapping[str, object] | None = None
            if isinstance(row, Imported):
                record, scores = row.record, row.scores
                row = {**row.fields, "source": row.source}
            try:
                sample, reading = coerce(
                    row, kind, fields or _NO_FIELDS, surface, needs_question=needs_question, record=record
                )
            except InputError as error:
                # A new error, because the caught one holds on to the row through its traceback.
                problem, field = error.problem, error.field
            else:
                if reading and (place.file, reading) not in noted:
                    noted.add((place.file, reading))
                    other = surface.mapping({"question": "COLUMN"})
                    on_note(f"{place.file or 'samples'}: {reading}; to change that: {other}")
                if not sample.id:
                    stem = derived_id(sample)
                    sample = sample.model_copy(update={"id": ids.unused(stem)})
                first = ids.claim(sample.id, place)
                if first is None:
                    yield ScoredSample(sample, scores)
                    continue
                problem, field = f"{sample.id!r} was used {first.seen_from(place)} already; ids must differ", "id"
            yield place.error(problem, field)
