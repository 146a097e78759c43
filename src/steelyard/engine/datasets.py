"""Runs as partitioned Parquet datasets, in a folder or an object store.

    FOLDER/verdicts/run=ID/part-0000.parquet    a row per sample
    FOLDER/items/run=ID/part-0000.parquet       a row per labelled item

Each run is a partition of its own; writing it again replaces it and leaves the others alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from steelyard.errors import ConfigError
from steelyard.reports.parquet import TABLES, ParquetFile, Table, table_rows
from steelyard.samples.locations import explained_file_errors, filesystem, is_url
from steelyard.store import RunRow, Store

# A part is a file that every engine likes to read, and small enough to be uploaded in one piece.
PART_ROWS = 250_000
FILE_ENDINGS = (".jsonl", ".ndjson", ".csv", ".parquet", ".json")


def names_folder(out: str) -> bool:
    """Whether results go to a folder of Parquet: a URL, a name that ends in a slash, a folder that is there."""
    if is_url(out):
        if out.endswith(FILE_ENDINGS):
            raise ConfigError(
                f"{out}: a URL must name a folder, to which Parquet is written; a single file must be local"
            )
        return True
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def check_folder(out: str) -> None:
    """Whether it can be written to, as far as that can be told without writing: before anything is paid for."""
    if not is_url(out):
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{out}: this folder cannot be made: {error.strerror}") from None
        if not os.access(out, os.W_OK):
            raise ConfigError(f"{out}: this folder cannot be written to")
        return
    store, path = filesystem(out, "writing to")
    with explained_file_errors(out, store):
        store.exists(path)  # it need not be there yet, but the store must answer


def write_dataset(store: Store, run: RunRow, out: str) -> int:
    """Write a run's verdicts and items; returns how many verdicts."""
    with _folder(out) as folder:
        parts = {table: _Parts(folder, table, run.id) for table in TABLES}
        try:
            for sample, verdict in store.verdicts(run.id):
                for table, part in parts.items():
                    for row in table_rows(table, sample, verdict):
                        part.add(row)
        except BaseException:
            for part in parts.values():
                part.abandon()
            raise
        for part in parts.values():
            part.finish()
    return parts["verdicts"].rows


class _Folder:
    """A local folder. Files are written beside their places and moved there when they are complete."""

    def __init__(self, root: str, scratch: Path) -> None:
        self.root, self.scratch = root.rstrip("/"), scratch

    def put(self, file: Path, place: str) -> None:
        target = Path(self.root, place)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)

    def names(self, inner: str) -> list[str]:
        return [path.name for path in Path(self.root, inner).glob("part-*.parquet")]

    def remove(self, place: str) -> None:
        Path(self.root, place).unlink()


class _RemoteFolder(_Folder):
    """A folder of an object store: files are uploaded when they are complete."""

    def __init__(self, root: str, scratch: Path) -> None:
        self._store, path = filesystem(root, "writing to")
        super().__init__(path, scratch)
        self._url = root

    def put(self, file: Path, place: str) -> None:
        with explained_file_errors(self._url, self._store):
            self._store.put_file(str(file), f"{self.root}/{place}")
        file.unlink()

    def names(self, inner: str) -> list[str]:
        with explained_file_errors(self._url, self._store):
            self._store.invalidate_cache()
            found = self._store.glob(f"{self.root}/{inner}/part-*.parquet")
        return [name.rpartition("/")[2] for name in found]

    def remove(self, place: str) -> None:
        with explained_file_errors(self._url, self._store):
            self._store.rm_file(f"{self.root}/{place}")


@contextmanager
def _folder(out: str) -> Iterator[_Folder]:
    if not is_url(out):
        Path(out).mkdir(parents=True, exist_ok=True)
    # On the same disk as the target, or a file could not be moved there in one step; hidden from readers.
    with TemporaryDirectory(prefix=".steelyard-", dir=None if is_url(out) else out) as scratch:
        yield (_RemoteFolder if is_url(out) else _Folder)(out, Path(scratch))


class _Parts:
    """One table of one run, as files of at most `PART_ROWS` rows."""

    def __init__(self, folder: _Folder, table: Table, run: str) -> None:
        self._folder, self._table = folder, table
        self._inner = f"{table}/run={run}"
        self._written: list[str] = []
        self.rows = 0
        self._file = self._next()

    def add(self, row: dict[str, object]) -> None:
        if self._file.rows >= PART_ROWS:
            self._deliver()
            self._file = self._next()
        self._file.add(row)
        self.rows += 1

    def finish(self) -> None:
        """Deliver the last part, and remove those that the same run left when it was longer."""
        self._deliver()
        for name in set(self._folder.names(self._inner)) - set(self._written):
            self._folder.remove(f"{self._inner}/{name}")

    def abandon(self) -> None:
        self._file.close()

    def _next(self) -> ParquetFile:
        self._path = self._folder.scratch / f"{self._table}-{len(self._written)}.parquet"
        return ParquetFile(self._path, self._table)

    def _deliver(self) -> None:
        self._file.close()
        name = f"part-{len(self._written):04}.parquet"
        self._folder.put(self._path, f"{self._inner}/{name}")
        self._written.append(name)
