"""The `verifier` judge: the embedded judge with an encoder of the user's choice as its reader, run by onnxruntime.

folder.py    what a verifier's folder says of itself: config.json, verifier.toml, which output means what
encoder.py   passages and claims in, three probabilities out
reading.py   the encoder as the embedded judge's reader
judge.py     the judge made of it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judges.verifiers.judge import VerifierJudge, make_verifier

__all__ = ["VerifierJudge", "make_verifier"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from steelyard.judges.verifiers import judge

    return getattr(judge, name)
