"""The forms of API that judges are asked in: one module each, behind `Dialect`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.judges.dialects.base import Dialect
    from steelyard.judges.endpoint import Endpoint


def dialect_of(endpoint: Endpoint) -> Dialect:
    """The dialect of an endpoint's provider, loaded when it is spoken."""
    wire = endpoint.row.wire
    made: Dialect = getattr(import_module(f"steelyard.judges.dialects.{wire}"), f"{wire.title()}Dialect")(endpoint)
    return made
