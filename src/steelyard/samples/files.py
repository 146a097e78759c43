"""Rows out of files: JSONL, JSON, CSV, TSV, Parquet and Excel, text plain or gzipped, each row with its place."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib.util
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, cast

from steelyard.errors import ConfigError, InputError, MissingExtra, Surface
from steelyard.samples.documents import broken_json, elements, wraps_samples
from steelyard.samples.locations import DataFile, RemoteFile, files_at, is_url
from steelyard.samples.values import is_encodable

Unit = Literal["line", "item", "row"]
Rows = Iterator[tuple["Place", object]]

FORMATS: Final = ("jsonl", "json", "csv", "tsv", "parquet", "xlsx")
_SUFFIXES: Final = {".jsonl": "jsonl", ".ndjson": "jsonl"} | {f".{name}": name for name in FORMATS}
_STDIN: Final = "-"
_PEEK: Final = 1 << 20
# So many characters tell whose file it is.
_HEAD: Final = 1 << 17
_BATCH: Final = 256
_AT_ONCE: Final = 16
_EXTRAS: Final = {"parquet": ("pyarrow", "reading Parquet files"), "xlsx": ("openpyxl", "reading Excel files")}
# A quote that is never closed swallows the rest of a file; this is where we stop believing it.
_FIELD_LIMIT: Final = 1 << 28
_UNREADABLE = (OSError, EOFError, zlib.error)


class Place(NamedTuple):
    """Where a row stands: lines are counted in text, items in JSON documents, rows in Parquet and Excel."""

    file: str | None
    number: int
    unit: Unit

    def error(self, problem: str, field: str | None = None) -> InputError:
        counted = "" if self.unit == "line" else f" ({self.unit} {self.number})"
        return InputError(f"{problem}{counted}", file=self.file, line=self.number, field=field)

    def seen_from(self, other: Place) -> str:
        """`on line 3`, with the file where that is another one."""
        where = f"{'on' if self.unit == 'line' else 'in'} {self.unit} {self.number}"
        return where if self.file == other.file else f"{where} of {self.file}"


def check_sources(names: Sequence[str], format: str | None, encoding: str) -> None:
    """Refuse unreadable sources before the first row is read."""
    if format is not None and _format(format) is None:
        raise ConfigError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise ConfigError(f"unknown encoding {encoding!r}; try utf-8, gb18030 or big5") from None
    kinds = {_format(format) if format else _format_of(name) for name in names}
    for kind, (package, purpose) in _EXTRAS.items():
        if kind in kinds and importlib.util.find_spec(package) is None:
            raise MissingExtra(package, kind, purpose)


def files_of(name: str, format: str | None) -> list[DataFile]:
    """The files of samples that a name stands for: itself, or those of a folder, a glob or an object store. Where a
    format was asked for, a file may have any ending."""
    return files_at(name, lambda file: format is not None or _format_of(file) is not None)


def rows_of(
    name: str,
    format: str | None,
    encoding: str,
    on_note: Callable[[str], None] = lambda note: None,
    surface: Surface = Surface.python,
    *,
    whole: bool = False,
) -> Rows:
    """The rows of one file with their places; an `InputError` for a row, or the file, that cannot be read.

    With `whole`, an object in a JSON document is a row even where it seems to hold the rows in a list.
    """
    shown = "stdin" if name == _STDIN else name
    chosen = _format(format) if format else _format_of(name)
    if chosen is None and name != _STDIN:
        known = ", ".join(_SUFFIXES)
        hint = "save it as .xlsx" if name.lower().endswith(".xls") else f"or name it with {surface.setting('format')}"
        yield _whole(shown, f"unknown kind of file; known: {known}; {hint}")
        return
    try:
        if chosen in _EXTRAS and name == _STDIN:
            yield _whole(shown, f"{chosen} cannot be read from a pipe; give the file's name")
            return
        if chosen == "parquet":
            yield from _parquet(name, shown)
            return
        if chosen == "xlsx" and is_url(name):
            yield _whole(shown, "Excel files are read from disk only; copy it first")
            return
        if chosen == "xlsx":
            from steelyard.samples.workbooks import sheet_rows

            sheet = format.partition(":")[2] if format else ""
            yield from sheet_rows(name, sheet, on_note, surface)
            return
        with ExitStack() as stack:
            stream = _opened(name, stack)
            # A format that was asked for is taken at its word; a suffix is checked against the content.
            kind = chosen if format and chosen else _sniffed(stream, chosen, whole=whole)
            text = stack.enter_context(_decoded(stream, encoding, kind))
            if kind == "json":
                yield from _json(text, shown, _undecodable(encoding, surface), whole=whole)
            else:
                yield from _READERS[kind](text, shown, _undecodable(encoding, surface))
    except FileNotFoundError:
        yield _whole(shown, "no such file")
    except UnicodeError:
        yield _whole(shown, f"cannot be read as {encoding}; name its encoding with {surface.setting('encoding')}")
    except _UNREADABLE as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or "broken off"
        yield _whole(shown, f"cannot be read: {reason}")


def _whole(file: str, problem: str) -> tuple[Place, InputError]:
    return Place(file, 0, "line"), InputError(problem, file=file)


def _format(name: str) -> str | None:
    # Only a workbook has parts of its own: `xlsx:SHEET`.
    kind, colon, _ = name.lower().removeprefix(".").partition(":")
    found = _SUFFIXES.get(f".{kind}")
    return None if colon and found != "xlsx" else found


def _format_of(name: str) -> str | None:
    path = Path(name.lower())
    return _SUFFIXES.get(path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix)


def _opened(name: str, stack: ExitStack) -> io.BufferedReader:
    """The bytes of a file or of standard input, gunzipped, with room to look ahead."""
    stream: io.BufferedReader = stack.enter_context(io.BufferedReader(_raw(name), _PEEK))
    if stream.peek(2)[:2] != b"\x1f\x8b":
        return stream
    unzipped = stack.enter_context(gzip.GzipFile(fileobj=stream))
    return io.BufferedReader(cast(io.RawIOBase, unzipped), _PEEK)


def _raw(name: str) -> io.RawIOBase:
    if name == _STDIN:
        return _StandardInput(sys.stdin.buffer)
    return RemoteFile(name) if is_url(name) else io.FileIO(name)


class _StandardInput(io.RawIOBase):
    """Standard input, which must not be closed after reading."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def head_of(name: str, format: str | None, encoding: str) -> str | None:
    """The beginning of a file of JSON, lines or one document, gunzipped; None for any other."""
    chosen = _format(format) if format else _format_of(name)
    if name == _STDIN or chosen not in ("jsonl", "json"):
        return None
    try:
        with ExitStack() as stack:
            stream = _opened(name, stack)
            text = stack.enter_context(_decoded(stream, encoding, "json"))
            return text.read(_HEAD)
    except (*_UNREADABLE, UnicodeError):  # said when its rows are read
        return None


def _sniffed(stream: io.BufferedReader, suffix: str | None, *, whole: bool) -> str:
    """The format the content has: arrays are called .jsonl as often as lines are called .json."""
    if suffix in ("csv", "tsv"):
        return suffix
    head = stream.peek(_PEEK).removeprefix(codecs.BOM_UTF8).lstrip()
    first, newline, _ = head.partition(b"\n")
    if head[:1] == b"[":
        return "json"
    if head[:1] == b"{":
        document = _parsed(first) if newline or suffix == "jsonl" else None
        if not whole and wraps_samples(document):
            return "json"
        return "jsonl" if suffix == "jsonl" or isinstance(document, dict) else "json"
    return suffix or "csv"


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _decoded(stream: io.BufferedReader, encoding: str, format: str) -> io.TextIOWrapper:
    """Text in which undecodable bytes are marked rather than fatal, so that only their row is lost."""
    if codecs.lookup(encoding).name == "utf-8":
        utf16 = stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding = "utf-16" if utf16 else "utf-8-sig"
    newline = "\n" if format == "jsonl" else ""
    return io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline=newline)


def _undecodable(encoding: str, surface: Surface) -> str:
    return f"not valid {encoding}; a file in another encoding needs {surface.setting('encoding')} (gb18030 for GBK)"


def _jsonl(text: io.TextIOWrapper, file: str, undecodable: str) -> Rows:
    for number, line in enumerate(text, 1):
        place, line = Place(file, number, "line"), line.strip("\ufeff \t\r\n")
        if line:
            yield place, _object(line, place, undecodable)


def _object(line: str, place: Place, undecodable: str) -> object:
    if not is_encodable(line):
        return place.error(undecodable)
    try:
        return json.loads(line, strict=False)
    except json.JSONDecodeError as error:
        return place.error(f"not JSON: {error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError):
        return place.error("not JSON that can be read: a number too long or nested too deeply")


def _json(text: io.TextIOWrapper, file: str, undecodable: str, *, whole: bool = False) -> Rows:
    number = 0
    try:
        for number, (value, damaged) in enumerate(elements(text, whole=whole), 1):
            place = Place(file, number, "item")
            yield place, place.error(undecodable) if damaged else value
    except broken_json() as error:
        place = Place(file, number + 1, "item")
        detail = _first_line(error).rstrip(".")
        yield place, place.error(f"the JSON is broken or breaks off here: {detail} (NaN is not JSON either)")


def _first_line(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    shown = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return shown.partition("\n")[0].strip()


def _csv(text: io.TextIOWrapper, file: str, undecodable: str, delimiter: str | None = None) -> Rows:
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    first = text.readline()
    rows = csv.reader(_after(first, text), delimiter=delimiter or _delimiter(first), strict=True)
    header: list[str] | None = None
    while True:
        place = Place(file, rows.line_num + 1, "line")
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            never_closed = str(error) == "unexpected end of data"
            problem = "a quote that opens here is never closed" if never_closed else f"not CSV: {error}"
            yield place, place.error(problem)
            continue
        if not any(cells):
            continue
        if header is None:
            header = [name.strip() for name in cells]
            if twice := same_names(header):
                yield place, place.error(twice)
                return
            continue
        yield place, _cells(header, cells, place, undecodable)


def same_names(header: Sequence[str]) -> str:
    """What is wrong with a header in which two columns are called the same; empty where nothing is."""
    twice = {name for name in header if name and header.count(name) > 1}
    return f"two columns have the same name: {', '.join(sorted(twice))}" if twice else ""


def _after(first: str, rest: io.TextIOWrapper) -> Iterator[str]:
    yield first
    yield from rest


def _delimiter(header: str) -> str:
    """Spreadsheets write semicolons where the comma is the decimal sign."""
    return max(",;\t", key=header.count)


def _cells(header: list[str], cells: list[str], place: Place, undecodable: str) -> object:
    if any(cells[len(header) :]):
        return place.error(f"{len(cells)} cells under {len(header)} columns; is a quote missing?")
    row = dict(zip(header, cells, strict=False))
    for name, cell in row.items():
        if not is_encodable(cell):
            return place.error(undecodable, name)
    return row


def _tsv(text: io.TextIOWrapper, file: str, undecodable: str) -> Rows:
    return _csv(text, file, undecodable, "\t")


def _parquet(name: str, shown: str) -> Rows:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with ExitStack() as stack:
            table = stack.enter_context(pyarrow.parquet.ParquetFile(_seekable(name, stack), pre_buffer=False))
            # Asked for all row groups at once, pyarrow keeps the whole file in memory.
            for group in range(table.num_row_groups):
                for batch in table.iter_batches(batch_size=_BATCH, row_groups=[group], use_threads=False):
                    for row in batch.to_pylist():
                        number += 1
                        yield Place(shown, number, "row"), row
    except pyarrow.ArrowException as error:
        place = Place(shown, number + 1, "row")
        yield place, InputError(f"not Parquet that can be read: {_first_line(error)}", file=shown)


def _seekable(name: str, stack: ExitStack) -> str | RemoteFile:
    """What pyarrow reads: a local file by its name, one in an object store in the pieces that it asks for."""
    return stack.enter_context(RemoteFile(name, whole_reads=True)) if is_url(name) else name


_READERS: Final = {"jsonl": _jsonl, "csv": _csv, "tsv": _tsv}


def count_rows(names: Sequence[str], format: str | None) -> int | None:
    """How many rows these files have, where counting lines or the files' own notes (Parquet) tell it."""
    kinds = [_format(format) if format else _format_of(name) for name in names]
    if all(kind == "parquet" for kind in kinds):
        # A request or two for each file of an object store: one after the other they would take minutes.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            counts = list(pool.map(_noted_rows, names))
        return None if None in counts else sum(n for n in counts if n)
    if any(kind != "jsonl" for kind in kinds) or not all(map(_has_lines, names)):
        return None
    total = 0
    for name in names:
        with Path(name).open("rb") as lines:
            total += sum(1 for line in lines if not line.isspace())
    return total


def _has_lines(name: str) -> bool:
    """Whether it is a local file, not packed, whose lines can be counted."""
    return Path(name).suffix.lower() != ".gz" and Path(name).is_file()


def _noted_rows(name: str) -> int | None:
    import pyarrow
    import pyarrow.parquet

    try:
        with ExitStack() as stack:
            return int(pyarrow.parquet.read_metadata(_seekable(name, stack)).num_rows)
    except (OSError, InputError, pyarrow.ArrowException):  # said when its rows are read
        return None
