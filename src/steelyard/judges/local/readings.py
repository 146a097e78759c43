"""What a model said, kept in a file: the same question is never put to the same model twice, not even by another run.

The network and the weights may change in between: the answer is kept as the model gave it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from steelyard.errors import ConfigError
from steelyard.judges.local.server import FirstToken, Message, ModelServer


class Readings:
    """A model with its earlier answers before it. `identity` names the model's bytes; several may share a file."""

    def __init__(self, model: ModelServer, identity: str, path: Path) -> None:
        self._model, self._identity, self._path = model, identity, path
        self._lock = threading.Lock()
        self._known = dict[str, FirstToken | None](_lines(path))

    def turn(self) -> AbstractContextManager[None]:
        return self._model.turn()

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None:
        asked = json.dumps([self._identity, list(messages)], ensure_ascii=False)
        key = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:32]
        if key not in self._known:
            self._known[key] = self._model.first_token(messages)
            # One line, written at once: another process may be writing to the same file.
            line = json.dumps([key, self._known[key]], ensure_ascii=False) + "\n"
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        return self._known[key]


def _lines(path: Path) -> Iterator[tuple[str, FirstToken | None]]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            key, first = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: is no reading of a model; name another file") from error
        yield key, first
