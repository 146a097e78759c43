"""What the headers of an answer say: how long to wait. Their names are in small letters."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from retry-after-ms, or Retry-After as a number or a date; null if unreadable."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
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
    if not any("remaining" in name for name in headers):
        return 0.0
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
