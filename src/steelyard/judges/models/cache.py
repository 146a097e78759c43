"""The folder that models are kept in.

Beside every NAME's file lies a small record (FILE.json): its SHA-256, where it came from, and size and time of the
file when it was verified. A model whose size and time are unchanged is taken as it is; otherwise it is read in full.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from steelyard.errors import ConfigError, JudgeError
from steelyard.judges.models.catalogue import DEFAULT, known_models

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
CHUNK = 1 << 20

Removed = Literal["model", "leftovers", "nothing"]
"""What was there to be removed; leftovers are those of a pull that did not come to its end."""


class ModelRecord(BaseModel):
    """What is known of a model in the cache. `checked` says that its hash was compared with a published one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    file: str
    sha256: str
    size: int
    modified: int
    source: str
    checked: bool
    licence: str = "not known"


class KeptModel(BaseModel):
    """A model file that is ready to be used. `title` says which and in what quantisation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    path: Path
    sha256: str
    too_small: bool = False


class ModelCache:
    """The models in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Self:
        """The user's own: as STEELYARD_MODELS says, else in the platform's folder for caches."""
        if named := environment.get("STEELYARD_MODELS"):
            return cls(Path(named).expanduser())
        return cls(_cache_folder(environment) / "steelyard" / "models")

    def records(self) -> list[ModelRecord]:
        """The models that are here, by name; a file without a readable record is not one of ours."""
        found = (self._read(path) for path in sorted(self.folder.glob("*.gguf.json")))
        kept = (record for record in found if record and (self.folder / record.file).is_file())
        return sorted(kept, key=lambda record: record.name)

    def record(self, name: str) -> ModelRecord | None:
        return next((record for record in self.records() if record.name == name), None)

    def path_for(self, name: str) -> Path:
        """Where a model of this name is kept, or will be."""
        # What ends in .gguf is a path wherever a model is named.
        if not NAME.fullmatch(name) or name.lower().endswith(".gguf"):
            raise ConfigError(
                f"{name!r} cannot be a model's name: letters, digits, dots, dashes and underscores, not ending in .gguf"
            )
        known = known_models().get(name)
        return self.folder / (known.file if known else f"{name}.gguf")

    def keep(self, record: ModelRecord) -> None:
        """Write the record of a model that has just been verified, whole or not at all."""
        path = self.folder / f"{record.file}.json"
        draft = path.with_suffix(".json.part")
        draft.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
        draft.replace(path)

    def remove(self, name: str) -> Removed:
        """Take a model out of the cache, with what an interrupted pull of it may have left."""
        path = self.path_for(name)
        left = [path, *(path.with_name(path.name + end) for end in (".json", ".part", ".part.json"))]
        there = [file for file in left if file.exists()]
        for file in there:
            file.unlink()
        return "model" if path in there else "leftovers" if there else "nothing"

    def find(self, name: str = "") -> KeptModel:
        """The model a user named: by its name here, or by the path of a GGUF file; the default where none is named."""
        name = name or DEFAULT
        if name.lower().endswith(".gguf") or os.sep in name or "/" in name:
            return _outside(Path(name).expanduser())
        record = self.record(name)
        if record is None:
            raise JudgeError(self._how_to_get(name))
        path = self.folder / record.file
        if not _unchanged(path, record):
            if sha256_of(path) != record.sha256:
                raise JudgeError(
                    f"{path} is no longer the file that was pulled; steelyard models remove {name} and pull it again"
                )
            self.keep(record.model_copy(update={"modified": path.stat().st_mtime_ns}))
        known = known_models().get(name)
        title = known.full_title if known else name
        return KeptModel(title=title, path=path, sha256=record.sha256, too_small=known.too_small if known else False)

    def _how_to_get(self, name: str) -> str:
        known = known_models().get(name)
        if known:
            return f"the model {name} is not here yet: steelyard models pull {name} ({size_text(known.size)}, once)"
        names = ", ".join(dict.fromkeys([*known_models(), *(record.name for record in self.records())]))
        return (
            f"there is no model {name!r}; known: {names}; a GGUF file of your own is named by its path (local:/path/"
            f"model.gguf), or pulled first: steelyard models pull {name} --from PATH"
        )

    def _read(self, path: Path) -> ModelRecord | None:
        try:
            record = ModelRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        # A record names the file beside it and nothing else.
        return record if f"{record.file}.json" == path.name else None


def sha256_of(path: Path, seen: Callable[[int], None] = lambda count: None) -> str:
    """The hash of a file, telling now and then how many bytes have been read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            seen(len(chunk))
    return digest.hexdigest()


def size_text(size: int) -> str:
    """1117320768 → "1.12 GB", in decimal units."""
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _unchanged(path: Path, record: ModelRecord) -> bool:
    state = path.stat()
    return (state.st_size, state.st_mtime_ns) == (record.size, record.modified)


def _outside(path: Path) -> KeptModel:
    """A file that the user keeps elsewhere: there is nothing to compare its bytes with."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read: {error.strerror}") from error
    if magic != b"GGUF":
        raise JudgeError(f"{path} is not a GGUF model")
    state = path.stat()
    return KeptModel(title=path.stem, path=path, sha256=f"size {state.st_size}, modified {state.st_mtime_ns}")


def _cache_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    home = Path(environment.get("HOME") or environment.get("USERPROFILE") or Path.home())
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if platform == "darwin":
        return home / "Library" / "Caches"
    named = environment.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path there is to be ignored.
    return Path(named) if named.startswith("/") else home / ".cache"
