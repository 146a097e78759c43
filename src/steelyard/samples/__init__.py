"""Files, standard input or mappings in; `Sample` values out, and `InputError` values for what cannot be read.

Everything streams. Only the table of ids grows with the input, and it lies in a temporary file (ids.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.errors import InputError, Surface
from steelyard.records import Sample
from steelyard.samples.columns import Kind, check_fields, known_fields
from steelyard.samples.fields import NO_QUESTION, coerce, derived_id, sample_from
from steelyard.samples.files import FORMATS, Place, check_sources, count_lines, rows_of
from steelyard.samples.ids import Ids
from steelyard.samples.objects import rows_in

__all__ = ["FORMATS", "Kind", "count_lines", "known_fields", "read_samples", "sample_from", "samples_from"]

_NO_FIELDS: Final[Mapping[str, str]] = {}
OnNote = Callable[[str], None]
"""Is told, once for each file, how its rows are read where their columns' names alone do not say it."""


def read_samples(
    sources: Sequence[str | os.PathLike[str]],
    kind: Kind,
    *,
    fields: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
    on_note: OnNote = lambda note: None,
    surface: Surface = Surface.python,
    needs_question: bool = True,
) -> Iterator[Sample | InputError]:
    """The samples of these files (`-` is standard input), one after the other.

    With `needs_question` a row without a question cannot be read either.
    A row that cannot be read comes as an `InputError` in its place, and the reading goes on; so does a file.
    An unknown field, format or encoding is the caller's mistake and raises `ConfigError` at once.
    """
    names = [os.fspath(s) for s in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    check_fields(kind, fields)
    check_sources(names, format, encoding)
    rows = (row for name in names for row in rows_of(name, format, encoding, on_note, surface))
    return _samples(rows, kind, fields, on_note, surface, needs_question)


def samples_from(
    samples: object,
    kind: Kind,
    *,
    fields: Mapping[str, str] | None = None,
    on_note: OnNote = lambda note: None,
    needs_question: bool = True,
) -> Iterator[Sample | InputError]:
    """The same for what is in memory already: mappings, records, dataclasses, models, or a table of them."""
    check_fields(kind, fields)
    rows = ((Place(None, n, "item"), row) for n, row in enumerate(rows_in(samples), 1))
    return _samples(rows, kind, fields, on_note, Surface.python, needs_question)


def _samples(
    rows: Iterable[tuple[Place, object]],
    kind: Kind,
    fields: Mapping[str, str] | None,
    on_note: OnNote,
    surface: Surface,
    needs_question: bool,
) -> Iterator[Sample | InputError]:
    noted: set[tuple[str | None, str]] = set()
    with Ids() as ids:
        for place, row in rows:
            if isinstance(row, InputError):
                yield row
                continue
            try:
                sample, reading = coerce(row, kind, fields or _NO_FIELDS, surface, needs_question=needs_question)
            except InputError as error:
                # A new error, because the caught one holds on to the row through its traceback.
                problem, field = error.problem, error.field
            else:
                if reading and (place.file, reading) not in noted:
                    noted.add((place.file, reading))
                    other = surface.mapping({"question" if reading == NO_QUESTION else "answer": "COLUMN"})
                    on_note(f"{place.file or 'samples'}: {reading}; to change that: {other}")
                if not sample.id:
                    stem = derived_id(sample)
                    sample = sample.model_copy(update={"id": ids.unused(stem)})
                first = ids.claim(sample.id, place)
                if first is None:
                    yield sample
                    continue
                problem, field = f"{sample.id!r} was used {first.seen_from(place)} already; ids must differ", "id"
            yield place.error(problem, field)
