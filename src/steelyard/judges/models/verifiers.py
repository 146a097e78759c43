"""The verifiers in the cache: each a folder with a model, its tokenizer and its settings.

They lie in verifiers/NAME, with a record of all hashes (record.json). What the first pull of a verifier without a
published hash brought stays noted in verifiers/.seen.json, also after it was removed: later pulls must match it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from steelyard.errors import AbsentFile, ConfigError, JudgeError, PullError
from steelyard.judges.models.cache import NAME, ModelCache, Removed, sha256_of, size_text
from steelyard.judges.models.catalogue import KnownVerifier, known_models, known_verifiers
from steelyard.judges.models.draft import Draft
from steelyard.judges.models.folders import CONFIG, MODELS, SETTINGS, TOKENIZER, FolderSource, ModelFile, to_convert
from steelyard.judges.models.pulling import explained
from steelyard.judges.models.sources import OnBytes

RECORD, SEEN = "record.json", ".seen.json"
UNFINISHED = (".part", ".part.json")
SPARE = 1 << 20
# The first bytes of an ONNX file: its field 1, the version of the format.
ONNX = b"\x08"


class FileRecord(BaseModel):
    """One file of a verifier when it was verified."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    size: int
    modified: int


class VerifierRecord(BaseModel):
    """What is known of a verifier in the cache. `checked` says that all hashes were compared with earlier ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    files: Mapping[str, FileRecord]
    source: str
    checked: bool
    licence: str = "not known"

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())


class VerifierCache:
    """The verifiers in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Self:
        return cls(ModelCache.of_user(environment).folder / "verifiers")

    def path_for(self, name: str) -> Path:
        """The folder of a verifier of this name, or where it will be."""
        if not NAME.fullmatch(name) or name.lower().endswith(".gguf"):
            raise ConfigError(f"{name!r} cannot be a verifier's name: letters, digits, dots, dashes and underscores")
        return self.folder / name

    def records(self) -> list[VerifierRecord]:
        """The verifiers that are here, by name."""
        found = [self._read(path) for path in sorted(self.folder.glob(f"*/{RECORD}"))]
        return [record for record in found if record]

    def record(self, name: str) -> VerifierRecord | None:
        return self._read(self.path_for(name) / RECORD) if NAME.fullmatch(name) else None

    def keep(self, record: VerifierRecord) -> None:
        """Write the record of a verifier that has just been verified."""
        _write(self.path_for(record.name) / RECORD, record.model_dump_json(indent=2))

    def find(self, name: str) -> tuple[Path, str]:
        """The folder of a pulled verifier and its model's SHA-256, after a look that nothing in it has changed."""
        record = self.record(name)
        if record is None:
            raise JudgeError(self._how_to_get(name))
        folder, files = self.path_for(name), dict(record.files)
        for file, noted in record.files.items():
            path = folder / file
            state = path.stat() if path.is_file() else None
            if state and (state.st_size, state.st_mtime_ns) == (noted.size, noted.modified):
                continue
            if state is None or sha256_of(path) != noted.sha256:
                raise JudgeError(
                    f"{path} is no longer the file that was pulled; steelyard models remove {name} and pull it again"
                )
            files[file] = noted.model_copy(update={"modified": state.st_mtime_ns})
        if files != record.files:
            self.keep(record.model_copy(update={"files": files}))
        model = next(file for file in record.files if file.endswith(".onnx"))
        return folder, record.files[model].sha256

    def remove(self, name: str, forget: bool = False) -> Removed:
        """Remove a verifier and what an interrupted pull may have left; `forget` its first hashes too."""
        folder = self.path_for(name)
        there: Removed = "model" if self.record(name) else "leftovers" if folder.is_dir() else "nothing"
        if there != "nothing":
            shutil.rmtree(folder)
        if forget and self.seen(name):
            self._note({other: hashes for other, hashes in self._all_seen().items() if other != name})
            return there if there != "nothing" else "leftovers"
        return there

    def seen(self, name: str) -> Mapping[str, str]:
        """The hashes that the first pull of this verifier brought, by file."""
        return self._all_seen().get(name, {})

    def hashes(self, name: str) -> Mapping[str, str]:
        """What is known of a verifier's files: of those that are here, else as they were seen or published."""
        if record := self.record(name):
            return {file: noted.sha256 for file, noted in record.files.items()}
        known = known_verifiers().get(name)
        return {**self.seen(name), **(known.sha256 if known else {})}

    def remember(self, name: str, hashes: Mapping[str, str]) -> None:
        self._note({**self._all_seen(), name: hashes})

    def _all_seen(self) -> dict[str, Mapping[str, str]]:
        try:
            found = json.loads((self.folder / SEEN).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            # Taken for empty, it would let anything through.
            raise PullError(f"{self.folder / SEEN}: cannot be read: {error}") from error
        return found if isinstance(found, dict) else {}

    def _note(self, seen: Mapping[str, Mapping[str, str]]) -> None:
        _write(self.folder / SEEN, json.dumps(seen, indent=2))

    def _read(self, path: Path) -> VerifierRecord | None:
        try:
            record = VerifierRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        plain = all(Path(file).name == file for file in record.files)
        has_model = any(file.endswith(".onnx") for file in record.files)
        return record if record.name == path.parent.name and plain and has_model else None

    def _how_to_get(self, name: str) -> str:
        known = known_verifiers().get(name)
        if known and known.is_ready:
            return f"the verifier {name} is not here yet: steelyard models pull {name} ({shown_size(known)}, once)"
        if known:
            return to_convert(known)
        if name in known_models():
            return f"{name} is a model of the local judge: -j local:{name}"
        names = ", ".join(dict.fromkeys([*(record.name for record in self.records()), *known_verifiers()]))
        return f"there is no verifier {name!r}; known are {names}; a folder is named by its path: verifier:./{name}"


def is_unverified(name: str, source: FolderSource, cache: VerifierCache) -> bool:
    """Whether a pull of this known verifier brings a file that there is no hash of to compare with."""
    known = known_verifiers().get(name)
    if known is None or not source.is_elsewhere:
        return False
    expected = {**cache.seen(name), **known.sha256}
    return any(part.is_needed and part.target not in expected for part in source.parts)


def pull_verifier(
    name: str, source: FolderSource, cache: VerifierCache, on_progress: OnBytes = lambda done, total: None
) -> VerifierRecord:
    """Fetch a verifier's files, compare them with what is known of them, and keep them under this name."""
    folder, known = cache.path_for(name), known_verifiers().get(name)
    if cache.record(name):
        raise ConfigError(f"{name} is already here; to fetch it again: steelyard models remove {name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Of an earlier pull that broke off, drafts are gone on with; finished files may be another source's.
        for path in folder.iterdir():
            if not path.name.endswith(UNFINISHED):
                path.unlink()
        free = shutil.disk_usage(folder).free
        if known and known.weights and free < known.weights + SPARE:
            raise PullError(f"{name} needs {size_text(known.weights)} in {cache.folder}; {size_text(free)} is free")
        for part in source.parts:
            if not _fetched(part, folder / part.target, on_progress) and part.is_needed:
                raise PullError(f"{source.name} has no {part.target}; tried: {', '.join(o.name for o in part.sources)}")
        if known and known.settings and not (folder / SETTINGS).exists():
            (folder / SETTINGS).write_text(known.settings, encoding="utf-8")
        return _kept(name, source, cache, known)
    except OSError as error:
        raise explained(error, cache.folder) from error


def _fetched(part: ModelFile, path: Path, on_progress: OnBytes) -> bool:
    for source in part.sources:
        draft = Draft(path, source.name)
        try:
            with draft:
                source.fetch(draft, on_progress)
        except AbsentFile:
            continue
        draft.move_to(path)
        return True
    return False


def _kept(name: str, source: FolderSource, cache: VerifierCache, known: KnownVerifier | None) -> VerifierRecord:
    """The record of what has arrived; what is no verifier, or another one than expected, is thrown away."""
    folder = cache.path_for(name)
    here = sorted(path for path in folder.iterdir() if not path.name.endswith(UNFINISHED))
    hashes = {path.name: sha256_of(path) for path in here}
    # A folder of the user's may be a conversion of one's own, which no two machines make alike.
    expected = {**cache.seen(name), **known.sha256} if known and source.is_elsewhere else {}
    problem = next(filter(None, map(_damage, here)), None) or next(
        (
            f"its {file} has the SHA-256 {sha256}, expected is {expected[file]}"
            for file, sha256 in hashes.items()
            if expected.get(file, sha256) != sha256
        ),
        None,
    )
    if problem:
        shutil.rmtree(folder)
        again = f"; if the new one is right: steelyard models remove {name} --forget" if "expected" in problem else ""
        raise PullError(f"{source.name} is not {name}: {problem}; nothing was kept{again}")
    states = {path.name: path.stat() for path in here}
    record = VerifierRecord(
        name=name,
        files={
            file: FileRecord(sha256=sha256, size=states[file].st_size, modified=states[file].st_mtime_ns)
            for file, sha256 in hashes.items()
        },
        source=source.name,
        checked=bool(expected) and expected.keys() >= hashes.keys() - {SETTINGS},
        licence=known.licence if known else "not known",
    )
    if known and source.is_elsewhere and not record.checked:
        cache.remember(name, {file: sha256 for file, sha256 in hashes.items() if file != SETTINGS})
    cache.keep(record)
    return record


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    draft = path.with_name(f"{path.name}.part")
    draft.write_text(f"{text}\n", encoding="utf-8")
    draft.replace(path)


def _damage(path: Path) -> str | None:
    """What is wrong with a file at first sight: an error page, or a pointer to a file that is stored elsewhere."""
    if path.name in (CONFIG, TOKENIZER):
        try:
            json.loads(path.read_bytes())
        except ValueError:
            return f"its {path.name} is not JSON"
    elif path.name in MODELS:
        with path.open("rb") as file:
            if file.read(1) != ONNX:
                return f"its {path.name} is not an ONNX model"
    return None


def shown_size(known: KnownVerifier) -> str:
    """Of the weights; where their size is not known, the number of parameters."""
    return size_text(known.weights) if known.weights else f"{known.parameters}"
