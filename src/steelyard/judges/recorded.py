"""Replies from a file, and the recorder that writes such files.

One JSON object per line:
{"key": "…", "code": "…", "task": "atomic.judge", "judge": "openai:…", "reply": {…}, "usage": {…}}.
The key is the ask's content address, so a recording answers exactly the asks it was made with. A reply that carries
the code of another call is none; lines of earlier versions have no code and are read as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from steelyard.errors import InputError, invalid_field
from steelyard.judges.base import Judge, JudgeLike
from steelyard.prompts import nonce
from steelyard.records import Ask, Reply, Unjudged


class RecordedJudge(Judge):
    """Answers from a file of recorded replies; a replay costs nothing, so its usage is empty."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        # Lines stay text until they are asked for: parsed, a large recording takes several times the memory.
        self._lines = {entry["key"]: (number, line) for number, line, entry in _entries(self._path)}
        self.name = f"recorded:{self._path.stem}"

    def fingerprint(self, ask: Ask) -> str:
        """What the file says: another file of the same name, or another edition of it, is another judge."""
        _, line = self._lines.get(ask.key, (0, b""))
        return f"{self.name} {hashlib.sha256(line).hexdigest()}"

    def __len__(self) -> int:
        return len(self._lines)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        number, line = self._lines.get(ask.key, (0, b""))
        if not number:
            return Unjudged(
                reason="not_recorded",
                detail=f"{self._path.name} has no reply to this {ask.task} (key {ask.key}); record one with "
                "steelyard run … --record FILE (in Python: steelyard.judges.Recorder around a live judge)",
            )
        entry = json.loads(line)
        if entry.get("code", nonce(ask)) != nonce(ask):
            detail = f"{self._path.name}:{number}: carries the code of another call"
            return Unjudged(reason="invalid_reply", detail=detail)
        reply = entry["reply"]
        try:
            return Reply.model_validate(
                {
                    "data": ask.reply.model_validate(reply),
                    "raw": json.dumps(reply, ensure_ascii=False),
                    "marks": entry.get("marks", {}),
                }
            )
        except ValidationError as error:
            return Unjudged(reason="invalid_reply", detail=f"{self._path.name}:{number}: {invalid_field(error)}")


class Recorder(Judge):
    """Passes asks on to a judge and appends each reply to a file as it comes. Each key is written once."""

    def __init__(self, judge: JudgeLike, path: Path | str) -> None:
        self._judge, self.name = judge, judge.name
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(self._path)
        self._recorded = {entry["key"] for *_, entry in _entries(self._path)} if self._path.exists() else set()
        self._file: BinaryIO | None = None

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        reply = await self._judge.answer(ask)
        if isinstance(reply, Reply) and ask.key not in self._recorded:
            self._recorded.add(ask.key)
            self._append(_entry(ask, reply, self._judge.name))
        return reply

    async def aclose(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        await self._judge.aclose()

    def _append(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            # Unbuffered and appending: each line is one write, whole even if the process is killed next.
            self._file = self._path.open("ab", buffering=0)
        assert self._file is not None
        self._file.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _entry(ask: Ask, reply: Reply, judge: str) -> dict[str, Any]:
    # How a panel came to it, where one did.
    marks = {"marks": reply.model_dump(mode="json", include={"marks"})["marks"]} if reply.marks else {}
    return {
        "key": ask.key,
        "code": nonce(ask),
        "task": ask.task,
        "judge": judge,
        "reply": reply.data.model_dump(mode="json"),
        "usage": reply.usage.model_dump(mode="json"),
        **marks,
    }


def _entries(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """The lines of a recording with their numbers; a later line of the same key stands."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                line = line.removeprefix(b"\xef\xbb\xbf").strip()
                if line:
                    yield number, line, _read_entry(line, path, number)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error


def _read_entry(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON object: {error}", file=str(path), line=number) from error
    if not isinstance(entry, dict):
        raise InputError("not a JSON object", file=str(path), line=number)
    for field, kind in (("key", str), ("reply", dict)):
        if not isinstance(entry.get(field), kind):
            raise InputError("missing or of the wrong type", file=str(path), line=number, field=field)
    return entry


def _drop_torn_line(path: Path) -> None:
    """A killed process may leave half a line at the end; appending to it would spoil the next one too."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        content = file.read()
        last = content.rpartition(b"\n")[2]
        if not last:
            return
        try:
            json.loads(last)
        except ValueError:
            file.truncate(len(content) - len(last))
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
