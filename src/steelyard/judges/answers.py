"""What the HTTP around an answer says: how long to wait, and in our own words why there is none."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import aiohttp

# x-ratelimit-remaining-requests: 0 with x-ratelimit-reset-requests: 1m30s, and the same for tokens.
LIMIT_KINDS, REMAINING, RESET = ("requests", "tokens"), "x-ratelimit-remaining-", "x-ratelimit-reset-"
GO_DURATION = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h)")
DURATION = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def in_words(error: Exception) -> str:
    """What went wrong. The library's own words quote the address, with whatever key is in it."""
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


def distrust(error: aiohttp.ClientConnectorCertificateError) -> str:
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
    waits = [
        sum(float(number) * DURATION[unit] for number, unit in GO_DURATION.findall(headers.get(RESET + kind, "")))
        for kind in LIMIT_KINDS
        if headers.get(REMAINING + kind) == "0"
    ]
    return max(waits, default=0.0)


def _seconds_until(date: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return -1.0
