"""The family of a model, to warn where a judge judges answers of its own family."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    table = tomllib.loads((files(__package__) / "families.toml").read_text("utf-8"))
    return {family: re.compile(rf"(?<![a-z])(?:{'|'.join(names)})") for family, names in table.items()}


@cache
def families(name: str) -> frozenset[str]:
    """The families in the name of a model or a judge: none, one, or several (a panel; a distilled model)."""
    return frozenset(family for family, pattern in _patterns().items() if pattern.search(name.casefold()))


def judges_itself(judge: str, model: str | None) -> bool:
    """Whether the judge, or a member of the panel, is of the family that wrote the answer."""
    return bool(model) and not families(judge).isdisjoint(families(model or ""))
