"""What an endpoint accepts, negotiated by the first calls and kept for the judge's lifetime."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.endpoint import Endpoint
from steelyard.judges.providers import Mode
from steelyard.judges.wire import Declined

if TYPE_CHECKING:
    from steelyard.judges.dialects.base import Dialect

# Sampling parameters that a judge can do without; reasoning models refuse them.
OPTIONAL = ("temperature", "top_p", "top_k", "seed", "max_tokens", "logprobs")
UNPROCESSABLE = frozenset({400, 422, 501})
FORMAT = re.compile(
    r"response_?format|json|schema|structured|grammar|guided|constrained|output[_ ]?(?:config|format)|tool",
    re.IGNORECASE,
)
NOT_FORMAT = re.compile(r"context|too long|too large|length|tokens|filter|inspection|sensitive|risk", re.IGNORECASE)
# OpenRouter's words where no host of the model takes all that was asked for.
UNROUTABLE = re.compile(r"requested parameters", re.IGNORECASE)


class Terms(NamedTuple):
    """How to ask: the mode of structured output, and the parameters the endpoint does not take."""

    mode: Mode
    without: frozenset[str] = frozenset()


def opening_terms(endpoint: Endpoint) -> Terms:
    """The terms to try first."""
    return Terms(endpoint.row.structured[0] if endpoint.structured == "auto" else endpoint.structured)


def other_terms(terms: Terms, refusal: Declined, dialect: Dialect, *, proven: bool) -> Terms | None:
    """Terms that avoid this refusal, or null if it is about something else.

    Until a call has succeeded (`proven`), a refusal that does not say what it is about may be about the
    format: many local servers just answer 400.
    """
    endpoint = dialect.endpoint
    is_routing = refusal.status == 404 and bool(UNROUTABLE.search(refusal.message))
    if refusal.status not in UNPROCESSABLE and not is_routing:
        return None
    sent = dialect.parameters(terms).keys() - dialect.required
    for optional in (*OPTIONAL, *endpoint.row.body.keys() - endpoint.body.keys()):
        for name in {optional, dialect.names.get(optional, optional)}:
            if optional in sent and re.search(rf"(?<![A-Za-z_]){name}(?![A-Za-z_])", refusal.message):
                return terms._replace(without=terms.without | {optional})
    is_format = is_routing or bool(FORMAT.search(refusal.message))
    unexplained = not (proven or is_format or refusal.meaning or NOT_FORMAT.search(refusal.message))
    if unexplained and "logprobs" in sent:
        return terms._replace(without=terms.without | {"logprobs"})
    if endpoint.structured != "auto" or refusal.meaning in ("key", "balance"):
        return None
    lesser = _lesser(terms.mode, endpoint)
    return terms._replace(mode=lesser) if lesser and (is_format or unexplained) else None


def _lesser(mode: Mode, endpoint: Endpoint) -> Mode | None:
    modes = endpoint.row.structured
    return modes[modes.index(mode) + 1] if mode in modes[:-1] else None
