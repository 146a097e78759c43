"""A pull: fetch into a draft, verify, put into the cache. Interrupted at any point, the next one goes on from there."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from steelyard.errors import ConfigError, PullError
from steelyard.judges.models.cache import ModelCache, ModelRecord, sha256_of, size_text
from steelyard.judges.models.catalogue import KnownModel, known_models
from steelyard.judges.models.draft import Draft
from steelyard.judges.models.sources import OnBytes, Source

# Room for the record, and for a file system that counts blocks.
SPARE = 1 << 20


def pull(name: str, source: Source, cache: ModelCache, on_progress: OnBytes = lambda done, total: None) -> ModelRecord:
    """Fetch a model and keep it under this name; the record says if its bytes are those that were expected."""
    path = cache.path_for(name)
    if cache.record(name):
        raise ConfigError(f"{name} is already here; to fetch it again: steelyard models remove {name}")
    known = known_models().get(name)
    try:
        cache.folder.mkdir(parents=True, exist_ok=True)
        with Draft(path, source.name) as draft:
            _check_room(cache, known, draft.size)
            source.fetch(draft, on_progress)
        sha256 = _verified(draft, known, source)
        draft.move_to(path)
        state = path.stat()
        record = ModelRecord(
            name=name,
            file=path.name,
            sha256=sha256,
            size=state.st_size,
            modified=state.st_mtime_ns,
            source=source.name,
            checked=known is not None,
            licence=known.licence if known else "not known",
        )
        cache.keep(record)
    except OSError as error:
        raise explained(error, cache.folder) from error
    return record


def _verified(draft: Draft, known: KnownModel | None, source: Source) -> str:
    """The hash of what has arrived; what is not the model is thrown away, since going on from it is no use."""
    with draft.path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        draft.discard()
        what = "does not begin as one does" if magic else "is empty"
        raise PullError(f"{source.name} is not a GGUF model: it {what}; nothing was kept")
    sha256 = sha256_of(draft.path)
    if known and sha256 != known.sha256:
        draft.discard()
        raise PullError(
            f"what {source.name} holds is not {known.name}: its SHA-256 is {sha256}, expected is {known.sha256}; "
            "nothing was kept (another file of yours is pulled under a name of its own)"
        )
    return sha256


def _check_room(cache: ModelCache, known: KnownModel | None, already: int) -> None:
    """Refuse early if there is not enough disk space."""
    free = shutil.disk_usage(cache.folder).free
    if known and free < known.size - already + SPARE:
        raise PullError(
            f"{known.name} needs {size_text(known.size - already)} in {cache.folder}; {size_text(free)} is free"
        )


def explained(error: OSError, folder: Path) -> PullError:
    """A disk error in words, with what to do."""
    if error.errno == errno.ENOSPC:
        return PullError(
            f"the disk that holds {folder} is full; make room and run the same command again to go on, "
            "or name another folder with STEELYARD_MODELS"
        )
    return PullError(f"{error.filename or folder}: {error.strerror or error}")
