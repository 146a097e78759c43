"""What an importer is: how a tool's files are recognised, and how their records become rows under our names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from steelyard.errors import InputError
from steelyard.samples.columns import Kind
from steelyard.samples.files import Place, Rows

Skipped = Counter[str]
"""What was not taken: how often, by reason."""

# How far a record is looked into to recognise it.
_DEEP, _MANY = 4, 2_000


class ImportedScore(NamedTuple):
    """A score that the tool, one of its judges, or a person gave; of one item of a turn where these are set."""

    name: str
    value: float
    by: str = ""
    """Who gave it; empty: the tool."""
    by_person: bool = False
    reason: str = ""
    turn: int | None = None
    item: int | None = None
    text: str = ""


class Imported(NamedTuple):
    """One record of a tool: its fields under our names, the ids it has there, and the scores that came with it."""

    fields: Mapping[str, object]
    source: Mapping[str, str]
    scores: tuple[ImportedScore, ...] = ()
    record: Mapping[str, Any] = {}
    """As the tool wrote it, for columns that the user maps."""


Reader = Callable[[Rows, Kind, Skipped], Iterator[tuple[Place, Imported | InputError]]]


@dataclass(frozen=True)
class Importer:
    """One tool. `signs` are sets of dotted paths: a record that has all of one set is unmistakably this tool's."""

    name: str
    title: str
    read: Reader
    signs: tuple[frozenset[str], ...] = ()
    suffix: str = ""
    """The ending that only this tool's files have."""
    is_whole: bool = False
    """Whether a JSON document is one record, even if it holds a list under a name that often holds samples."""
    open: Callable[[str], Rows] | None = field(default=None, repr=False)
    """How the source is read where it is no file of rows: an archive, a folder, the name of a dataset."""
    opens: Callable[[str], bool] = field(default=lambda name: False, repr=False)
    """Whether `open` is needed for a source of this name."""
    has_names: bool = False
    """Whether a source may be a name rather than a file."""


def signs(*paths: str) -> frozenset[str]:
    """Paths separated by blanks, as one set."""
    return frozenset(path for part in paths for path in part.split())


def one_by_one(convert: Callable[[Mapping[str, Any], Kind, Skipped], Iterable[Imported]]) -> Reader:
    """A reader of files in which every record stands for itself."""

    def read(rows: Rows, kind: Kind, skipped: Skipped) -> Iterator[tuple[Place, Imported | InputError]]:
        for place, row in rows:
            yield from converted(place, row, lambda record: convert(record, kind, skipped))

    return read


def by_first_row(choose: Callable[[Mapping[str, Any]], Reader]) -> Reader:
    """A reader for a tool with several kinds of files: the first row says which of them this is."""

    def read(rows: Rows, kind: Kind, skipped: Skipped) -> Iterator[tuple[Place, Imported | InputError]]:
        first = next(rows, None)
        if first is not None:
            reader = choose(first[1] if isinstance(first[1], Mapping) else {})
            yield from reader(chain([first], rows), kind, skipped)

    return read


def converted(
    place: Place, row: object, convert: Callable[[Mapping[str, Any]], Iterable[Imported]]
) -> Iterator[tuple[Place, Imported | InputError]]:
    """What one record becomes, each with its place; an error for one that cannot be read."""
    if isinstance(row, InputError):
        yield place, row
        return
    if not isinstance(row, Mapping):
        yield place, place.error("expected an object of the tool's export")
        return
    try:
        for imported in convert(row):
            yield place, imported
    except InputError as error:
        yield place, place.error(error.problem, error.field)
    except RecursionError:
        yield place, place.error("nested too deeply to be read")


def paths_of(record: object) -> frozenset[str]:
    """The dotted paths in a record; those through lists have no number."""
    found: set[str] = set()
    rest: list[tuple[str, object, int]] = [("", record, 0)]
    while rest and len(found) < _MANY:
        path, value, depth = rest.pop()
        if isinstance(value, Mapping):
            for key, part in value.items():
                inner = f"{path}.{key}" if path else str(key)
                found.add(inner)
                if depth < _DEEP:
                    rest.append((inner, part, depth + 1))
        elif isinstance(value, list | tuple):
            rest += [(path, part, depth + 1) for part in value[:3]]
    return frozenset(found)


# --- small readers ---------------------------------------------------------------------------------


def ids(tool: str, **given: object) -> dict[str, str]:
    """The tool and the ids that are known, as text: what scores go back by."""
    return {"tool": tool} | {name: text for name, value in given.items() if (text := plain_id(value))}


def plain_id(value: object) -> str:
    """An id as text; nothing where it is neither text nor a number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).encode(errors="replace").decode().strip()


def text_at(record: Mapping[str, Any], name: str) -> str:
    """A text of a record; blank where there is none."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def mapping_at(record: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An object inside a record; empty where there is none."""
    here: object = record
    for name in path:
        here = here.get(name) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


def list_at(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    return value if isinstance(value, list) else []


def mappings_at(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list of a record."""
    return [part for part in list_at(record, name) if isinstance(part, Mapping)]


_WORDS: Final = {"true": 1.0, "yes": 1.0, "pass": 1.0, "false": 0.0, "no": 0.0, "fail": 0.0}


def number(value: object) -> float | None:
    """A score as a number: yes and no count 1 and 0; None for anything else."""
    if isinstance(value, str):
        if value.strip().casefold() in _WORDS:
            return _WORDS[value.strip().casefold()]
        if len(value) > 40:
            return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e300 else None


def scored(skipped: Skipped, name: object, value: object, **more: Any) -> Iterator[ImportedScore]:
    """A score, where its value is a number; any other is counted as not taken."""
    called, found = plain_id(name), number(value)
    if not called or value is None:
        return
    if found is None:
        skipped[f"score {called[:60]!r} that is not a number"] += 1
        return
    yield ImportedScore(called, found, **more)
