"""What a model's tokens cost: the shipped list, with the user's own prices before it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from pydantic import ValidationError

from steelyard.errors import ConfigError, invalid_field
from steelyard.judges.endpoint import Price

# A price that was listed longer ago is marked as old.
MONTHS_GOOD = 6


class ListedPrice(NamedTuple):
    """A price of the shipped list, and the month in which the vendor listed it."""

    price: Price
    as_of: str

    def is_old(self, today: date) -> bool:
        year, month = map(int, self.as_of.split("-"))
        return (today.year - year) * 12 + today.month - month > MONTHS_GOOD


@cache
def shipped() -> dict[str, ListedPrice]:
    """The list, by model."""
    table = tomllib.loads((files("steelyard.judges") / "prices.toml").read_text("utf-8"))
    return {
        model: ListedPrice(Price.model_validate({k: v for k, v in listed.items() if k != "as_of"}), listed["as_of"])
        for model, listed in table["models"].items()
    }


def price_of(model: str, own: Mapping[str, Mapping[str, Any]]) -> Price | None:
    """The price of a model; dated versions (gpt-4o-2024-08-06) cost what their family does. None if unknown."""
    if model in own:
        try:
            return Price.model_validate(own[model])
        except ValidationError as error:
            raise ConfigError(f"prices.{model!r}.{invalid_field(error)}") from None
    found = listed_price(model)
    return found.price if found else None


def listed_price(model: str) -> ListedPrice | None:
    """What the shipped list says of a model."""
    known = shipped()
    if model in known:
        return known[model]
    families = [name for name in known if model.startswith(f"{name}-2")]
    return known[max(families, key=len)] if families else None


def dating(prices: Mapping[str, Price | None], today: date) -> str:
    """When the shipped prices among these (by model) were listed, and whether that is long ago; empty without any."""
    found = ((price, listed_price(model)) for model, price in prices.items())
    used = [listed for price, listed in found if listed and listed.price == price]
    if not used:
        return ""
    oldest = min(used, key=lambda listed: listed.as_of)
    changed = "; they may have changed" if oldest.is_old(today) else ""
    return f"shipped prices as of {oldest.as_of}{changed}"
