"""What a model's tokens cost: the shipped list, with the user's own prices before it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from steelyard.errors import ConfigError
from steelyard.judges.endpoint import Price


@cache
def shipped() -> tuple[str, dict[str, Price]]:
    """(the date of the list, price by model)."""
    table = tomllib.loads((files("steelyard") / "prices.toml").read_text("utf-8"))
    return table["as_of"], {model: Price.model_validate(price) for model, price in table["models"].items()}


def price_of(model: str, own: Mapping[str, Mapping[str, Any]]) -> Price | None:
    """The price of a model; dated versions (gpt-4o-2024-08-06) cost what their family does. None if unknown."""
    if model in own:
        try:
            return Price.model_validate(own[model])
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise ConfigError(f"prices.{model!r}.{where}: {problem['msg']}") from None
    known = shipped()[1]
    if model in known:
        return known[model]
    families = [name for name in known if model.startswith(f"{name}-2")]
    return known[max(families, key=len)] if families else None
