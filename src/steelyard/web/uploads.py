"""Samples that arrive over HTTP, kept as files beside the store: a run can only be resumed over what it began with."""

from __future__ import annotations

import gzip
import json
import re
import secrets
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException

from steelyard.engine.inputs import Input
from steelyard.errors import InputError
from steelyard.protocols import Protocol
from steelyard.store import RunRow, Store

POSTED = "samples.jsonl"
LONGEST_NAME = 80
LOOKED_AT = 20
PIECE = 1 << 20
GZIP = b"\x1f\x8b"
ZIP = b"PK"
UNSAFE = re.compile(r"[^\w.\-]+")
# How folders of uploads are called.
FOLDER = re.compile(r"[0-9a-f]{16}")
# Stands beside an upload of which no run was made yet, and says whose it is. No uploaded file can have this name.
PENDING = ".pending"
DAY = 24 * 3600


def safe_name(given: str | None) -> str:
    """A file's own name, without folders and without anything that a file system could take for more than a name."""
    name = UNSAFE.sub("_", PurePosixPath((given or "").replace("\\", "/")).name).lstrip(".")
    # The end says what kind of file it is, so a long name loses its beginning.
    return name[-LONGEST_NAME:].lstrip(".") or POSTED


def keep_file(folder: Path, name: str | None, content: BinaryIO, most_unpacked: int) -> Path:
    if unpacks_beyond(content, most_unpacked):
        most = f"{most_unpacked:,} bytes, the most that an uploaded file may hold"
        hint = "split it, or judge it with `steelyard run`"
        raise HTTPException(413, f"{safe_name(name)} unpacks to more than {most}; {hint}")
    path = _new_folder(folder) / safe_name(name)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, PIECE)
    return path


def unpacks_beyond(content: BinaryIO, most: int) -> bool:
    """Whether a packed file holds more than so many bytes; no more than these are ever unpacked, and none are kept."""
    start = content.read(len(GZIP))
    content.seek(0)
    if start == ZIP:
        return _zip_beyond(content, most)
    if start != GZIP:
        return False
    unpacked = 0
    try:
        with gzip.GzipFile(fileobj=content, mode="rb") as opened:
            while unpacked <= most and (piece := opened.read(PIECE)):
                unpacked += len(piece)
    except (OSError, EOFError, zlib.error):  # whoever reads its samples says what is wrong with it
        pass
    content.seek(0)
    return unpacked > most


def _zip_beyond(content: BinaryIO, most: int) -> bool:
    """The same for a workbook, which says how large its parts are; none is ever read further than it says."""
    try:
        with zipfile.ZipFile(content) as parts:
            return sum(part.file_size for part in parts.infolist()) > most
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
    finally:
        content.seek(0)


def keep_samples(folder: Path, samples: Iterable[Mapping[str, Any]]) -> Path:
    path = _new_folder(folder) / POSTED
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(sample, ensure_ascii=True) + "\n" for sample in samples)
    return path


def _new_folder(folder: Path) -> Path:
    made = folder / secrets.token_hex(8)
    made.mkdir(parents=True)
    return made


# --- uploads that wait for their owner to start a run ----------------------------------------------


def hold(path: Path, person: str | None) -> str:
    """Let an upload wait for whoever sent it; the name to ask for it by. Those that waited for a day go."""
    folder = path.parent.parent
    for waiting in folder.glob(f"*/{PENDING}"):
        with suppress(OSError):  # somebody started it just now
            if time.time() - waiting.stat().st_mtime > DAY:
                forget(folder, waiting)
    (path.parent / PENDING).write_text(person or "", encoding="utf-8")
    return path.parent.name


def held(folder: Path, name: str, person: str | None) -> Path:
    """The upload that waits under this name; there is none but one's own."""
    place = folder / name
    try:
        if FOLDER.fullmatch(name) and (place / PENDING).read_text(encoding="utf-8") == (person or ""):
            return next(path for path in place.iterdir() if path.name != PENDING)
    except (OSError, StopIteration):
        pass
    raise HTTPException(404, "this upload was started or removed already; choose the file again")


@contextmanager
def taken(path: Path, person: str | None) -> Iterator[None]:
    """While a run is made of an upload that waits, nobody can take it a second time; if none is made, it waits on."""
    try:
        (path.parent / PENDING).unlink()
    except FileNotFoundError:
        raise HTTPException(409, "a run of this upload was started already") from None
    try:
        yield
    except BaseException:
        (path.parent / PENDING).write_text(person or "", encoding="utf-8")
        raise


# --- taking away -----------------------------------------------------------------------------------


def forget(folder: Path, path: Path) -> None:
    """Take an upload away; files from elsewhere are the user's own and stay."""
    # By its name too: a run from elsewhere may name `store-uploads/../x`, and the folder of that is the store's own.
    if path.parent.parent == folder and FOLDER.fullmatch(path.parent.name):
        shutil.rmtree(path.parent, ignore_errors=True)
        with suppress(OSError):  # others are still in it
            folder.rmdir()


def forget_run(folder: Path, row: RunRow, store: Store) -> None:
    """Take away what a deleted run was made from, unless another one or an experiment was too."""
    for data in row.manifest.get("data", ()):
        forget_unused(folder, str(data.get("path")), store)


def forget_unused(folder: Path, path: str, store: Store) -> None:
    """Take away an upload that no run and no experiment is made from."""
    used = {data.get("path") for run in store.runs() for data in run.manifest.get("data", ())}
    used |= {file for one in store.experiments() for file in json.loads(one.design).get("files", ())}
    if path not in used:
        forget(folder, Path(path))


def check_readable(data: Input, protocol: Protocol) -> None:
    """A file without a single sample at its beginning is the wrong file: that is said before a run is made of it."""
    first = list(islice(data.rows(protocol), LOOKED_AT))
    problems = [row for _, row in first if isinstance(row, InputError)]
    if first and len(problems) < len(first):
        return
    if not problems:
        raise InputError("there is no sample in it", file=Path(data.sources[0]).name if data.sources else None)
    raise as_sent(problems[0])


def as_sent(bad: InputError) -> InputError:
    """The error with the file's name as its sender knows it, rather than where it is kept."""
    return InputError(bad.problem, file=Path(bad.file).name if bad.file else None, line=bad.line, field=bad.field)
