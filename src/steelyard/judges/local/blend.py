"""What the rules say and what the model says, made into one. The numbers (blend.toml) rest on training/local.py."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from steelyard.judges.embedded.support import Label, Support

Language = Literal["zh", "en"]
# Beyond this, more certainty means nothing.
SUREST = 1e-4


class Blend(BaseModel):
    """How the two opinions are weighed in one language.

    A claim whose probability, by the rules, lies between `ask_above` and `ask_below` is put to the model. The
    log-odds of both are added up with their weights, and half is the limit. A clash that the rules see counts
    against the claim by `clash` on top: what then falls short is contradicted, not merely without support.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ask_above: float
    ask_below: float
    rules: float
    model: float
    constant: float
    clash: float

    def is_open(self, found: Support) -> bool:
        """Whether the rules leave the claim to the model."""
        return found.reference is not None and self.ask_above < found.probability < self.ask_below

    def probability(self, found: Support, share: float) -> float:
        """That the passages support the claim, by the rules' probability and the model's share for yes."""
        odds = self.rules * log_odds(found.probability) + self.model * log_odds(share) + self.constant
        odds += self.clash if found.clash else 0.0
        return 1 / (1 + math.exp(-odds))

    def label(self, found: Support, share: float) -> Label:
        if self.probability(found, share) >= 0.5:
            return "supported"
        return "contradicted" if found.clash else "unknown"


def log_odds(share: float) -> float:
    kept = min(max(share, SUREST), 1 - SUREST)
    return math.log(kept / (1 - kept))


class BlendLimits(BaseModel):
    """From `yes` on a criterion is met, up to `no` it is not; in between the model does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    yes: float
    no: float


@cache
def _numbers() -> dict[str, Any]:
    return tomllib.loads((files("steelyard.judges.local") / "blend.toml").read_text("utf-8"))


@cache
def blends() -> dict[Language, Blend]:
    """How support is weighed, by language."""
    return {"zh": Blend.model_validate(_numbers()["zh"]), "en": Blend.model_validate(_numbers()["en"])}


@cache
def conduct_limits() -> dict[Language, BlendLimits]:
    """How sure the model must be of a criterion, by language."""
    table = _numbers()["conduct"]
    return {"zh": BlendLimits.model_validate(table["zh"]), "en": BlendLimits.model_validate(table["en"])}
