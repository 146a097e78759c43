"""The input of a run: where its samples come from, and how to read them again on resume."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.engine.manifest import described_data, file_sha256
from steelyard.engine.pairs import PairedRuns
from steelyard.engine.runner import Row
from steelyard.engine.sets import StoredSet
from steelyard.errors import InputError, NoReadableRow, StoreError, Surface
from steelyard.protocols import Protocol
from steelyard.records import Sample
from steelyard.samples import count_samples, read_samples, takes_names
from steelyard.samples.files import Place, files_of, rows_of
from steelyard.store import RunRow, Store

# How a manifest calls samples that were not in a file but given in Python.
IN_MEMORY = "(in memory)"
# Of an input without a readable row, so many bad ones are kept for the error.
BAD_ROWS_KEPT = 1000


@dataclass(frozen=True)
class Input:
    """Where samples come from and how to read them; `given` are those that were read already."""

    sources: Sequence[str]
    fields: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    format: str | None = None
    surface: Surface = Surface.flags
    on_note: Callable[[str], None] = lambda note: None
    given: Iterable[Sample | InputError] | None = None
    importer: str | None = None
    """The tool that wrote the files; None: told from their shape."""

    def rows(self, protocol: Protocol, *, quietly: bool = False) -> Iterator[Row]:
        if isinstance(self.given, StoredSet):
            return enumerate(self.given.rows(protocol))
        if self.given is not None:
            return enumerate(self.given)
        samples = read_samples(
            self.sources,
            protocol.kind,
            fields=self.fields,
            encoding=self.encoding,
            format=self.format,
            on_note=(lambda note: None) if quietly else self.on_note,
            importer=self.importer,
            surface=self.surface,
            needs_question=protocol.needs_question,
        )
        return enumerate(samples)

    def places(self) -> Iterator[Place]:
        """Where each row stands, in the order of `rows`."""
        files = (file.name for source in self.sources for file in files_of(source, self.format))
        return (place for file in files for place, _ in rows_of(file, self.format, self.encoding))

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """What the manifest says of the data: each file with its hash, or what was given with its own."""
        if self.given is None:
            if takes_names(self.importer):
                return [{"path": source} for source in self.sources]
            return [described_data(source, self.format) for source in self.sources]
        digest, count = hashlib.sha256(), 0
        for row in self.given:
            count += 1
            digest.update((str(row) if isinstance(row, InputError) else row.model_dump_json()).encode() + b"\n")
        made = {"samples": count, "sha256": digest.hexdigest()}
        if isinstance(self.given, PairedRuns):
            return [{"path": f"runs {' + '.join(self.given.ids)}", "runs": self.given.ids, **made}]
        if isinstance(self.given, StoredSet):
            return [{"path": f"set {self.given}", "set": self.given.described, **made}]
        return [{"path": IN_MEMORY, **made}]

    @property
    def total(self) -> int | None:
        """How many samples there are, if that is known without reading them."""
        if self.given is not None:
            return len(self.given) if isinstance(self.given, Sized) else None
        return count_samples(self.sources, self.format, self.importer)

    def check_readable(self, protocol: Protocol) -> None:
        """A run needs a row that can be read. Standard input can be read only once, so it is not looked at here."""
        if "-" in self.sources:
            return
        bad: list[InputError] = []
        count = 0
        for _, row in self.rows(protocol, quietly=True):
            if not isinstance(row, InputError):
                return
            count += 1
            if len(bad) < BAD_ROWS_KEPT:
                bad.append(row)
        raise NoReadableRow(bad, count, file=", ".join(self.sources))

    def check(self, protocol: Protocol) -> None:
        """A field, format or encoding that does not exist is an error before anything is made or paid for."""
        self.rows(protocol)


def input_of(row: RunRow, store: Store) -> Input:
    """The input of an earlier run; refused where it has changed or cannot be read a second time."""
    for data in row.manifest["data"]:
        if "runs" in data:
            paired = Input([], given=PairedRuns(store, data["runs"]))
            if paired.described != [data]:
                raise StoreError(f"the runs that run {row.id} compares have changed since; start a new run")
            return paired
        if "set" in data:
            chosen = Input([], given=StoredSet.recorded(store, data, row.id))
            if chosen.described != [data]:
                raise StoreError(f"{data['path']} is another set since run {row.id}; start a new run")
            return chosen
        path = Path(data["path"])
        if data["path"] == "-":
            raise StoreError(f"run {row.id} read its samples from standard input; run the same command again instead")
        if data["path"] == IN_MEMORY:
            raise StoreError(f"run {row.id} was given its samples in Python; call evaluate() again with this store")
        if "files" in data:
            _check_same(row, data)
            continue
        if not path.is_file() and not takes_names(row.manifest.get("importer")):
            raise StoreError(f"run {row.id} was made from {path}, which is not there any more")
        if "sha256" in data and file_sha256(path) != data["sha256"]:
            raise StoreError(f"{path} has changed since run {row.id}; start a new run")
    return Input(
        [data["path"] for data in row.manifest["data"]],
        row.manifest["fields"],
        row.manifest["encoding"],
        row.manifest.get("format"),
        importer=row.manifest.get("importer"),
    )


def _check_same(row: RunRow, data: Mapping[str, Any]) -> None:
    """A folder, glob or URL must hold the files that it held: their rows are known by their places."""
    today = described_data(data["path"], row.manifest.get("format"))
    if today != data:
        then, now = (f"{one.get('files', 0):,} files, {one.get('bytes', 0):,} bytes" for one in (data, today))
        raise StoreError(f"{data['path']} has changed since run {row.id} ({then}; now {now}); start a new run")
