"""The `verifier` judge: the embedded judge with a verifier of the user's as its reader, run by onnxruntime.

folder.py   what a verifier's folder says of itself: config.json, verifier.toml, which output means what
reader.py   pairs of passages and claims in, probabilities out
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.judges.embedded import EmbeddedJudge

__all__ = ["make_verifier"]


def make_verifier(rest: str = "", *, environment: Mapping[str, str] | None = None, **table: Any) -> EmbeddedJudge:
    """The judge that `-j verifier:NAME` or a [judges.x] table with kind = "verifier" names.

    `model` is a pulled verifier's name or the path of a folder.
    """
    from steelyard.judges.embedded import EmbeddedJudge
    from steelyard.judges.verifiers.reader import Verifier
    from steelyard.models.verifiers import VerifierShelf

    model = rest or table.pop("model", "")
    table.pop("model", None)
    if table:
        raise ConfigError(f"{next(iter(table))}: a verifier has only model")
    if not isinstance(model, str) or not model:
        raise ConfigError("a verifier needs a model: verifier:NAME of `steelyard models list`, or verifier:./FOLDER")
    if is_path(model):
        folder, digest = Path(model).expanduser(), None
    else:
        folder, digest = VerifierShelf.of_user(os.environ if environment is None else environment).find(model)
    verifier = Verifier(folder, digest)
    return EmbeddedJudge(verifier, name=f"verifier:{folder.resolve().name}")


def is_path(model: str) -> bool:
    """Names of pulled models have neither slashes nor leading dots."""
    return os.sep in model or "/" in model or model.startswith((".", "~"))
