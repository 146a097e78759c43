"""LocalJudge: the embedded judge with a language model in this process behind its reading."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigError
from steelyard.judges.embedded.judge import EmbeddedJudge
from steelyard.judges.embedded.support import read
from steelyard.judges.local.conduct import settled
from steelyard.judges.local.reading import reader
from steelyard.judges.local.readings import Readings
from steelyard.judges.local.server import CONTEXT, ModelServer, llama_cpp
from steelyard.judges.models import KeptModel, Shelf
from steelyard.records import Ask, Reply, Unjudged
from steelyard.tasks import ComplianceData


class LocalJudge(EmbeddedJudge):
    """Answers every task of the four protocols with rules and a local model; nothing leaves the machine.

    `model` is a file on the shelf or anywhere (`Shelf.find`). It is loaded at the first claim
    that the rules leave open. With `readings`, what the model says is kept in that file and never asked again.
    """

    def __init__(
        self, model: KeptModel, *, threads: int | None = None, context: int = CONTEXT, readings: Path | None = None
    ) -> None:
        llama_cpp()
        self.server = ModelServer(model.path, threads=threads, context=context)
        self._asked = Readings(self.server, model.sha256, readings) if readings else self.server
        self._model = model
        super().__init__(reader(read, self._asked), name=f"local:{model.title}")

    @property
    def caution(self) -> str:
        """What whoever is about to judge with this model should be told; nothing for most."""
        if not self._model.too_small:
            return ""
        return f"{self._model.title} is too small to judge; what it says is for trying out only"

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: which model, which rules, which questions and thresholds."""
        rules = super().describe()
        return {
            **rules,
            "model": self._model.title,
            "sha256": self._model.sha256,
            "rules": rules["model"],
            "questions": edition(),
            "context": self.server.context,
        }

    def fingerprint(self, ask: Ask) -> str:
        """Changes with the ask, the model's bytes, the rules, the questions and the thresholds."""
        own = f"{super().fingerprint(ask)} {self._model.sha256} {self.server.context} {edition()}"
        return hashlib.sha256(own.encode()).hexdigest()[:32]

    async def aclose(self) -> None:
        await super().aclose()
        # Waits for the question that is being answered.
        await asyncio.to_thread(self.server.close)

    def _answer(self, ask: Ask) -> Reply | Unjudged:
        with self.server.counted() as spent:
            reply = super()._answer(ask)
            if isinstance(reply, Reply) and isinstance(ask.data, ComplianceData):
                reply = reply.model_copy(update={"data": settled(ask.data, reply.data, self._asked)})
        return reply.model_copy(update={"usage": sum(spent, reply.usage)})


def make_local(rest: str = "", *, environment: Mapping[str, str] | None = None, **table: Any) -> LocalJudge:
    """The judge that `-j local[:NAME|:PATH]` or a [judges.x] table with kind = "local" names.

    A table may have `model` (a name or a path), `threads`, `context` and `readings` (a file).
    """
    environment = os.environ if environment is None else environment
    model = str(rest or table.pop("model", "") or "")
    table.pop("model", None)
    given = {name: _whole(name, table.pop(name)) for name in ("threads", "context") if name in table}
    readings = table.pop("readings", None)
    if table:
        raise ConfigError(f"{next(iter(table))}: a local judge has only model, threads, context and readings")
    if readings is not None and not (isinstance(readings, str) and readings):
        raise ConfigError(f"readings: must be the path of a file, not {readings!r}")
    return LocalJudge(Shelf.of_user(environment).find(model), **given, readings=Path(readings) if readings else None)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}: must be a whole number from 1 on, not {value!r}")
    return value


@cache
def edition() -> str:
    """The content address of what this folder adds to the embedded judge: questions, thresholds, code."""
    digest = hashlib.sha256()
    folder = files("steelyard.judges.local")
    for part in (folder, folder / "prompts"):
        for file in sorted(part.iterdir(), key=lambda file: file.name):
            if file.is_file() and not file.name.endswith(".pyc"):
                digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]
