"""HTTP details of an answer: how long to wait before a retry, and why there is no answer, without secrets."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

# x-ratelimit-remaining-requests: 0 with x-ratelimit-reset-requests: 1m30s, and the same for tokens (OpenAI, Groq; Azure
# gives plain seconds); anthropic-ratelimit-requests-remaining: 0 with anthropic-ratelimit-requests-reset: a moment.
LIMIT_HEADERS = [
    *((f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}") for kind in ("requests", "tokens")),
    *(
        (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset")
        for kind in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
    ("ratelimitbysize-remaining", "ratelimitbysize-reset"),
]
GO_DURATION = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h)")
DURATION = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def error_text(error: Exception) -> str:
    """The error in words. The library's own message would quote the address, with whatever key is in it."""
    match error:
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered HTTP {error.status}"
        case aiohttp.ClientProxyConnectionError():
            return f"no connection to the proxy ({_cause(error)})"
        case aiohttp.ClientConnectorDNSError():
            return "the host's name is not known"
        case aiohttp.ClientConnectorError():
            return f"no connection ({_cause(error)})"
        case aiohttp.InvalidURL():
            return "the address cannot be used"
        case aiohttp.ClientResponseError():
            return "what was sent is not HTTP"
        case aiohttp.ClientPayloadError():
            return "the answer breaks off, or is not what its headers say"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case OSError():
            return f"the connection broke ({_cause(error)})"
    return f"the call failed ({type(error).__name__})"


def _cause(error: OSError) -> str:
    number = getattr(getattr(error, "os_error", error), "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else type(error).__name__


def certificate_problem(error: aiohttp.ClientConnectorCertificateError) -> str:
    reason = getattr(error.certificate_error, "verify_message", "")
    return str(reason) or type(error.certificate_error).__name__


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from retry-after-ms, or Retry-After as a number or a date; null if unreadable."""
    for name, unit in (("Retry-After-Ms", 0.001), ("Retry-After", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _seconds_until(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def room_in(headers: Mapping[str, str]) -> float:
    """Seconds until the endpoint's own count of requests or tokens starts anew, where it says none are left."""
    waits = [_time_left(headers.get(reset, "")) for remaining, reset in LIMIT_HEADERS if headers.get(remaining) == "0"]
    return max(waits, default=0.0)


def _time_left(reset: str) -> float:
    """Seconds until a limit is lifted: a number, a duration such as 1m30s, or a moment as RFC 3339 writes it."""
    try:
        seconds = float(reset)
    except ValueError:
        if "T" in reset:
            return _seconds_until_moment(reset)
        return sum(float(number) * DURATION[unit] for number, unit in GO_DURATION.findall(reset))
    return seconds if 0 <= seconds < float("inf") else 0.0


def _seconds_until_moment(moment: str) -> float:
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return 0.0
    return max(0.0, (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - time.time())


def _seconds_until(date: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return -1.0
