"""LocalJudge: the embedded judge with a language model in this process beside its network."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigError
from steelyard.judges.embedded.judge import EmbeddedJudge, edition
from steelyard.judges.local.conduct import settled
from steelyard.judges.local.reader import LocalReader
from steelyard.judges.local.readings import Readings
from steelyard.judges.local.server import CONTEXT, ModelServer, llama_cpp
from steelyard.judges.models import KeptModel, ModelCache
from steelyard.records import Ask, Reply, Unjudged
from steelyard.tasks import ComplianceData


class LocalJudge(EmbeddedJudge):
    """Answers the tasks of the protocols with a network and a local model; nothing leaves the machine.

    `model` is a file in the cache or anywhere (`ModelCache.find`). It is loaded at the first claim
    that the network is in doubt about. With `readings`, what the model says is kept in that file and never asked again.
    """

    # An ask may hold some hundred claims that are put to the model.
    seconds = 1800.0

    def __init__(
        self, model: KeptModel, *, threads: int | None = None, context: int = CONTEXT, readings: Path | None = None
    ) -> None:
        llama_cpp()
        self.server = ModelServer(model.path, threads=threads, context=context)
        self._asked = Readings(self.server, model.sha256, readings) if readings else self.server
        self._file = model
        reader = LocalReader(self._asked, f"local-{model.sha256[:12]}-{context}-{edition('steelyard.judges.local')}")
        super().__init__(reader, name=f"local:{model.title}")

    @property
    def caution(self) -> str:
        """What whoever is about to judge with this model should be told; nothing for most."""
        if not self._file.too_small:
            return ""
        return f"{self._file.title} is too small to judge; what it says is for trying out only"

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: which model, which network, which questions."""
        embedded = super().describe()
        return {
            **embedded,
            "model": self._file.title,
            "sha256": self._file.sha256,
            "reader": embedded["model"],
            "context": self.server.context,
        }

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
    named = str(table.pop("model", "") or "")
    given = {name: _whole(name, table.pop(name)) for name in ("threads", "context") if name in table}
    readings = table.pop("readings", None)
    if table:
        raise ConfigError(f"{next(iter(table))}: a local judge has only model, threads, context and readings")
    if readings is not None and not (isinstance(readings, str) and readings):
        raise ConfigError(f"readings: must be the path of a file, not {readings!r}")
    model = ModelCache.of_user(environment).find(rest or named)
    return LocalJudge(model, **given, readings=Path(readings) if readings else None)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}: must be a whole number from 1 on, not {value!r}")
    return value
