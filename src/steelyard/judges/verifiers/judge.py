"""VerifierJudge: the embedded judge with an encoder of the user's choice as its reader."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import ConfigError
from steelyard.judges.embedded.judge import EmbeddedJudge, edition
from steelyard.judges.models.verifiers import VerifierCache
from steelyard.judges.verifiers.encoder import Encoder
from steelyard.judges.verifiers.reading import VerifierReader
from steelyard.records import Ask

PACKAGE = "steelyard.judges.verifiers"


class VerifierJudge(EmbeddedJudge):
    """Says what passages support with an encoder; nothing leaves the machine.

    Splitting, relevance, refusals and the criteria of dialogues are the embedded judge's.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        super().__init__(VerifierReader(encoder), name=f"verifier:{encoder.name}")

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: which model, and which rules around it."""
        rules = super().describe()
        return {
            **rules,
            "model": self._encoder.name,
            "sha256": self._encoder.sha256,
            "folder": self._encoder.identity[:12],
            "rules": rules["model"].rpartition("-")[2],
            "reading": edition(PACKAGE),
        }

    def fingerprint(self, ask: Ask) -> str:
        """Changes with the ask, the model, its tokenizer and settings, and the code around it."""
        own = f"{super().fingerprint(ask)} {self._encoder.identity} {edition(PACKAGE)}"
        return hashlib.sha256(own.encode()).hexdigest()[:32]


def make_verifier(rest: str = "", *, environment: Mapping[str, str] | None = None, **table: Any) -> VerifierJudge:
    """The judge that `-j verifier:NAME` or a [judges.x] table with kind = "verifier" names.

    `model` is a pulled verifier's name or the path of a folder.
    """
    model = rest or table.pop("model", "")
    table.pop("model", None)
    if table:
        raise ConfigError(f"{next(iter(table))}: a verifier has only model")
    if not isinstance(model, str) or not model:
        raise ConfigError("a verifier needs a model: verifier:NAME of `steelyard models list`, or verifier:./FOLDER")
    if _is_path(model):
        return VerifierJudge(Encoder(Path(model).expanduser()))
    cache = VerifierCache.of_user(os.environ if environment is None else environment)
    return VerifierJudge(Encoder(*cache.find(model)))


def _is_path(model: str) -> bool:
    """Names of pulled models have neither slashes nor leading dots."""
    return os.sep in model or "/" in model or model.startswith((".", "~"))
