"""HTTP to one endpoint: JSON out, JSON in, one pooled session, retries for what time may mend."""

from __future__ import annotations

import asyncio
import io
import json
import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, cast

import aiohttp
from pydantic import SecretStr
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential
from yarl import URL

from steelyard.errors import JudgeError
from steelyard.judges.endpoint import Endpoint, is_header_text
from steelyard.judges.gate import Gate

CONNECT_TIMEOUT = 15.0
LONGEST_PAUSE = 60.0
# aiohttp warns about raw bytes beyond this size and sends a stream of them piecewise instead.
ONE_WRITE = 2**20
# Server errors that another try cannot mend: the method or the protocol version is not implemented.
PERMANENT_5XX = frozenset({501, 505})
# x-ratelimit-remaining-requests: 0 with x-ratelimit-reset-requests: 1m30s, and the same for tokens.
LIMIT_KINDS, REMAINING, RESET = ("requests", "tokens"), "x-ratelimit-remaining-", "x-ratelimit-reset-"
GO_DURATION = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h)")
DURATION = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
OVERLOAD = frozenset({429, 503, 529})
TRANSIENT_4XX = frozenset({408, 409, 425, 429})
SPENT = ("insufficient_quota", "insufficient balance", "余额不足", "欠费", "exceeded your current quota")
MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*+>", re.IGNORECASE | re.DOTALL)
DETAIL_LENGTH = 300


class Answered(NamedTuple):
    """HTTP 200 with a JSON object."""

    payload: dict[str, Any]


class Declined(NamedTuple):
    """A status that another try of the same call would get again."""

    status: int
    message: str


class Failed(NamedTuple):
    """What another try may mend."""

    reason: Literal["unreachable", "timeout", "rate_limited", "server_error"]
    detail: str
    retry_after: float | None = None


Outcome = Answered | Declined | Failed


class Wire:
    """Posts bodies to an endpoint. Usable in one event loop after another; close it in the last."""

    def __init__(self, endpoint: Endpoint, gate: Gate, key: SecretStr | None = None) -> None:
        self._endpoint = endpoint
        self._gate = gate
        self._key = key
        self._url = URL(endpoint.url, encoded=True)
        self._headers = _headers(endpoint, key)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, body: bytes) -> Outcome:
        """The outcome of this call after as many tries as the endpoint allows."""
        outcome = await self._attempt(body)
        # A call that goes well never meets tenacity: entering it costs more than the rest of this module.
        if isinstance(outcome, Failed) and self._endpoint.retries:
            return await self._retry(body, outcome)
        return outcome

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _retry(self, body: bytes, first: Failed) -> Outcome:
        made = iter([first])

        async def attempt() -> Outcome:
            return next(made, None) or await self._attempt(body)

        # One per call: tenacity keeps the state of the current call on the object.
        retrying = AsyncRetrying(
            retry=retry_if_result(self._may_mend),
            stop=stop_after_attempt(1 + self._endpoint.retries),
            wait=self._pause,
            sleep=lambda seconds: self._gate.wait(asyncio.sleep(seconds)),
            retry_error_callback=_given_up,
        )
        return cast(Outcome, await retrying(attempt))

    def _may_mend(self, outcome: Outcome) -> bool:
        return isinstance(outcome, Failed) and (outcome.retry_after or 0) <= self._endpoint.patience

    def _pause(self, state: RetryCallState) -> float:
        asked_for = _outcome(state).retry_after
        if asked_for is not None:
            # All calls were told the same moment; spread them after it, never before.
            return asked_for + random.uniform(0, self._endpoint.backoff)
        return wait_random_exponential(multiplier=self._endpoint.backoff, max=LONGEST_PAUSE)(state)

    async def _attempt(self, body: bytes) -> Outcome:
        data = body if len(body) <= ONE_WRITE else io.BytesIO(body)
        host = self._url.authority
        if self._gate.pace:
            await self._gate.wait(self._gate.pace.wait(len(body)))
        try:
            async with self._gate:
                session = await self._current_session()
                async with session.post(
                    self._url, data=data, allow_redirects=False, proxy=self._endpoint.proxy
                ) as response:
                    content = await response.read()
        except aiohttp.ConnectionTimeoutError:
            return Failed("unreachable", f"no connection to {host} within {CONNECT_TIMEOUT:g} s")
        except TimeoutError:
            return Failed("timeout", f"no complete answer from {host} within {self._endpoint.timeout:g} s")
        except aiohttp.ClientConnectorCertificateError as error:
            raise JudgeError(
                f"{self._endpoint.name}: the certificate of {host} is not trusted ({_short(str(error))}); "
                "check base_url, or point SSL_CERT_FILE to your own authority"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            return Failed("unreachable", self._hidden(f"{host}: {str(error) or type(error).__name__}"))
        outcome = self._outcome(response.status, response.headers, content)
        if isinstance(outcome, Answered):
            self._gate.eased()
        elif response.status in OVERLOAD and isinstance(outcome, Failed):
            self._gate.overloaded(outcome.retry_after)
        if wait := _room_in(response.headers):
            self._gate.hold(min(wait, self._endpoint.patience))
        return outcome

    async def _current_session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop or self._session.closed:
            stale, self._loop = self._session, loop
            self._session = aiohttp.ClientSession(
                # The gate limits; a second limit here would only hide calls from it.
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout, sock_connect=CONNECT_TIMEOUT),
            )
            if stale is not None:
                await stale.close()
        return self._session

    def _outcome(self, status: int, headers: Mapping[str, str], content: bytes) -> Outcome:
        payload = _json_object(content)
        if status == 200:
            if payload is None:
                return Failed("server_error", f"the endpoint did not send JSON: {_readable(content)}")
            if "error" not in payload or "choices" in payload:
                return Answered(payload)
            status = _error_code(payload)  # some gateways wrap an error in a 200
        if 300 <= status < 400:
            return Declined(status, f"redirects to {headers.get('Location', 'elsewhere')}")
        message = self._hidden(error_message(payload) or _readable(content))
        if _is_transient(status) and not _is_spent(status, message):
            return Failed(_reason(status), f"HTTP {status}: {message}", _retry_after(headers))
        return Declined(status, message)

    def _hidden(self, text: str) -> str:
        """The text for people to read; servers like to quote the key they refuse."""
        secret = self._key.get_secret_value().strip() if self._key else ""
        return _short(text.replace(secret, "***") if secret else text)


def _headers(endpoint: Endpoint, key: SecretStr | None) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "steelyard"}
    if key is not None and (secret := key.get_secret_value().strip()):
        if not is_header_text(secret):
            raise JudgeError(
                f"{endpoint.name}: the key{_in_variable(endpoint)} holds a line break or non-ASCII characters; "
                "copy it again"
            )
        headers["Authorization"] = f"Bearer {secret}"
    return headers | dict(endpoint.headers)


def _in_variable(endpoint: Endpoint) -> str:
    return f" in {endpoint.key_env}" if endpoint.key_env else ""


def _outcome(state: RetryCallState) -> Failed:
    assert state.outcome is not None
    return cast(Failed, state.outcome.result())


def _given_up(state: RetryCallState) -> Failed:
    failed = _outcome(state)
    return failed._replace(detail=f"{failed.detail} (tried {state.attempt_number} times)")


def _is_transient(status: int) -> bool:
    return status in TRANSIENT_4XX or (status >= 500 and status not in PERMANENT_5XX)


def _is_spent(status: int, message: str) -> bool:
    # An empty account answers 429 as well, and waiting does not fill it.
    return status == 429 and any(sign in message.lower() for sign in SPENT)


def _reason(status: int) -> Literal["timeout", "rate_limited", "server_error"]:
    if status == 429:
        return "rate_limited"
    return "timeout" if status in (408, 504) else "server_error"


def _retry_after(headers: Mapping[str, str]) -> float | None:
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


def _room_in(headers: Mapping[str, str]) -> float:
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
    except (ValueError, OverflowError):
        return -1.0


def _json_object(content: bytes) -> dict[str, Any] | None:
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _error_code(payload: Mapping[str, Any]) -> int:
    error = payload["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def error_message(payload: Mapping[str, Any] | None) -> str:
    """What the server says was wrong, with its code, in whichever of the usual shapes it says it."""
    if payload is None:
        return ""
    error = payload.get("error")
    if isinstance(error, dict):
        said = error.get("message") or json.dumps(error, ensure_ascii=False)
        code = error.get("code") or error.get("type")
        return f"{said} [{code}]" if code and str(code) not in str(said) else str(said)
    said = error or payload.get("message") or payload.get("detail") or payload
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _readable(content: bytes) -> str:
    text = MARKUP.sub(" ", content[:20_000].decode("utf-8", "replace"))
    return _short(text) or "(empty body)"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_LENGTH else f"{line[:DETAIL_LENGTH]}…"
