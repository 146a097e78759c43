"""A model file being downloaded: FILE.part grows, FILE.part.json says how far it can be trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any, Self

from steelyard.errors import PullError


class Draft:
    """Open as a context manager. What another source had begun is thrown away."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path.with_name(f"{path.name}.part")
        self._notes = path.with_name(f"{path.name}.part.json")
        self._source = source
        self._file: IO[bytes] | None = None
        self._known: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._file = self.path.open("ab")
        if not _locked(self._file):
            self._file.close()
            raise PullError(f"another pull is writing {self.path.name}; wait for it, or stop it first")
        self._known = self._read_notes()
        if not self._known:
            self.restart()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._file:
            is_empty = self.size == 0
            self._file.close()
            self._file = None
            # A pull that brought nothing leaves nothing to go on from.
            if kind and is_empty:
                self.discard()

    @property
    def size(self) -> int:
        return self._open.tell()

    @property
    def tag(self) -> str | None:
        """What the server called the version that was begun."""
        tag = self._known.get("tag")
        return tag if isinstance(tag, str) else None

    @property
    def parts(self) -> int:
        """How many numbered parts are complete."""
        parts = self._known.get("parts")
        return parts if isinstance(parts, int) and parts > 0 else 0

    def append(self, chunk: bytes) -> None:
        self._open.write(chunk)

    def restart(self) -> None:
        """Begin anew."""
        self._open.truncate(0)
        self._open.seek(0)
        self._known = {}

    def cut_to_parts(self) -> None:
        """Drop what was written after the last complete part."""
        ends = self._known.get("size")
        if not self.parts or not isinstance(ends, int) or self.size < ends:
            self.restart()
        else:
            self._open.truncate(ends)
            self._open.seek(ends)

    def note(self, *, tag: str | None = None, parts: int | None = None) -> None:
        """Write down what the next pull needs to go on from here."""
        self._open.flush()
        self._known = {"source": self._source, "tag": tag, "parts": parts, "size": self.size}
        self._notes.write_text(json.dumps(self._known), encoding="utf-8")

    def discard(self) -> None:
        """Throw away what is there; called when it is closed."""
        for path in (self.path, self._notes):
            path.unlink(missing_ok=True)

    def move_to(self, path: Path) -> None:
        """The finished file under its own name, in one step; called when it is closed."""
        self.path.replace(path)
        self._notes.unlink(missing_ok=True)

    @property
    def _open(self) -> IO[bytes]:
        assert self._file, "a draft is written inside its with block"
        return self._file

    def _read_notes(self) -> dict[str, Any]:
        try:
            notes = json.loads(self._notes.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        mine = isinstance(notes, dict) and notes.get("source") == self._source and self.path.exists()
        return notes if mine else {}


def _locked(file: IO[bytes]) -> bool:
    """Whether this process may write alone; where the platform has no such locks, it may."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A file system without locks is no reason to fetch nothing.
        return not isinstance(error, BlockingIOError)
    return True
