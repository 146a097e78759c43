"""HTTP to one endpoint: JSON out, JSON in, one pooled session, retries for what time may mend."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from pydantic import SecretStr
from tenacity import AsyncRetrying, RetryCallState, retry_if_result
from tenacity.wait import wait_random_exponential
from yarl import URL

from steelyard.errors import JudgeError
from steelyard.judges.answers import retry_after, room_in
from steelyard.judges.connections import Connections, Unconnected, Untrusted, cause_of
from steelyard.judges.endpoint import Endpoint, is_header_text
from steelyard.judges.limiter import Limiter
from steelyard.judges.masking import Mask, shown_url
from steelyard.judges.payload import (
    ACCEPTED_ENCODINGS,
    MOST_BYTES,
    MOST_PARTS,
    AnswerBody,
    BrokenBody,
    cleaned,
    decoded,
    error_code,
    has_too_many_parts,
    is_error,
    is_shallow,
    one_line,
    parse_json,
    readable,
    reported_error,
    unpacked,
)
from steelyard.judges.providers import BEARER, Meaning
from steelyard.judges.refusals import meaning_of
from steelyard.judges.sigv4 import Signer

CONNECT_TIMEOUT = 15.0
LONGEST_PAUSE = 60.0
# Server errors that another try cannot mend: the method or the protocol version is not implemented.
PERMANENT_5XX = frozenset({501, 505})
OVERLOAD = frozenset({429, 503, 529})
# 498: Groq has no room in its flex tier.
TRANSIENT_4XX = frozenset({408, 409, 425, 429, 498})
# Where nothing accepts a connection, no sample is at fault: a call is tried at least so often, more where there was
# somebody before, and then the run stops instead of failing sample after sample.
NEVER_CONNECTED_TRIES, DISCONNECTED_TRIES = 5, 10
# The same where connections hang or are closed without an answer, counted over calls that were given up: one alone may
# be the sample's fault.
UNANSWERED_TRIES = 25
# A pause of this length that the endpoint asks for uses up no retry: it is bounded by `patience` instead.
ASKED_PAUSE = 1.0


class Answered(NamedTuple):
    """A success with a JSON object."""

    payload: dict[str, Any]


class Declined(NamedTuple):
    """A status that another try of the same call would get again."""

    status: int
    message: str
    meaning: Meaning | None = None


class Failed(NamedTuple):
    """What another try may mend."""

    reason: Literal["unreachable", "timeout", "rate_limited", "server_error"]
    detail: str
    retry_after: float | None = None
    has_connected: bool = True


Outcome = Answered | Declined | Failed


class Wire:
    """Posts bodies to an endpoint. Usable in one event loop after another; close it in the last.

    Raises `JudgeError` where going on is pointless for now: nobody answers at the address, or the endpoint asks for a
    longer pause than the user has patience for.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        limiter: Limiter,
        url: str,
        headers: Mapping[str, str],
        key: SecretStr | Signer | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._limiter = limiter
        self._url = URL(url, encoded=True)
        self._signer = key if isinstance(key, Signer) else None
        secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
        self._headers = _headers(endpoint, headers, secret)
        given = {name.lower() for name in self._headers}
        has_key = self._signer or not given.isdisjoint({BEARER.lower(), endpoint.row.key_header.lower()})
        self._lacks_key = not has_key and endpoint.row.asks_for_key(self._url.host or "")
        signing = self._signer.secrets() if self._signer else set()
        self._mask = Mask(endpoint.secrets(), secret, endpoint.certain_secrets() | signing)
        # Sooner than the whole call: no connection is told apart from no answer.
        self._connect = min(CONNECT_TIMEOUT, endpoint.timeout / 2)
        self._connections: Connections | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_connected = False
        # Calls that anything was said to; those with a usable answer; tries in a row that ended in silence.
        self._answers = self._successes = self._unanswered = 0

    @property
    def missing_key(self) -> str:
        """Which key to set where; empty: there is one, or none is needed."""
        if not self._lacks_key:
            return ""
        source = f" (get one at {self._endpoint.row.key_url})" if self._endpoint.key_env else ""
        return f"{self._endpoint.name}: there is no key: set {self._endpoint.key_env or 'key_env'}{source}"

    async def post(self, body: bytes) -> Outcome:
        """The outcome of this call after as many tries as the endpoint allows."""
        if missing := self.missing_key:
            raise JudgeError(missing)
        answers = self._answers
        outcome, tries = await self._attempt(body), 1
        # A call that goes well never meets tenacity: entering it costs more than the rest of this module.
        if isinstance(outcome, Failed):
            outcome, tries = await self._retry(body, outcome)
        if isinstance(outcome, Failed) and self._answers == answers:
            self._unanswered += tries
            if self._unanswered >= UNANSWERED_TRIES:
                raise JudgeError(self._silence(outcome, self._unanswered))
        return outcome

    def cleaned(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """An answer whose texts can be stored and shown: valid Unicode, without the endpoint's secrets."""
        return cast(dict[str, Any], cleaned(payload, self._mask.reply))

    async def aclose(self) -> None:
        if self._connections is not None:
            await self._connections.aclose()
            self._connections = None

    async def _retry(self, body: bytes, first: Failed) -> tuple[Outcome, int]:
        made = iter([first])
        most = DISCONNECTED_TRIES if self._has_connected else NEVER_CONNECTED_TRIES
        allowance = _Allowance(self._endpoint, most)
        answers, successes = self._answers, self._successes

        async def attempt() -> Outcome:
            return next(made, None) or await self._attempt(body)

        def given_up(state: RetryCallState) -> Failed:
            failed = _outcome(state)
            # Where others were answered meanwhile, this call was unlucky; else the endpoint means everybody.
            if allowance.is_impatient(failed) and (
                self._successes == successes or (failed.retry_after or 0) > self._endpoint.patience
            ):
                raise JudgeError(self._impatience(failed))
            if not failed.has_connected and self._answers == answers:
                raise JudgeError(self._silence(failed, state.attempt_number))
            if state.attempt_number == 1:
                return failed
            return failed._replace(detail=f"{failed.detail} (tried {state.attempt_number} times)")

        # One per call: tenacity keeps the state of the current call on the object.
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda outcome: isinstance(outcome, Failed)),
            stop=allowance.is_used_up,
            wait=self._pause,
            sleep=lambda seconds: self._limiter.wait(asyncio.sleep(seconds)),
            retry_error_callback=given_up,
        )
        outcome = cast(Outcome, await retrying(attempt))
        return outcome, int(retrying.statistics["attempt_number"])

    def _pause(self, state: RetryCallState) -> float:
        asked_for = _outcome(state).retry_after
        if asked_for is not None:
            # All calls were told the same moment; spread them after it, never before.
            return asked_for + random.uniform(0, self._endpoint.backoff)
        return wait_random_exponential(multiplier=self._endpoint.backoff, max=LONGEST_PAUSE)(state)

    def _silence(self, failed: Failed, tries: int) -> str:
        return (
            f"{self._endpoint.name}: no answer from {self._host} in {tries} tries in a row ({failed.detail}); "
            "check base_url, the server and the network"
        )

    def _impatience(self, failed: Failed) -> str:
        return (
            f"{self._endpoint.name}: {self._host} asks to wait {_span(failed.retry_after or 0)} (Retry-After), and "
            f"patience is {self._endpoint.patience:g} s ({failed.detail}); go on after that, or raise patience"
        )

    @property
    def _host(self) -> str:
        return self._url.authority

    async def _attempt(self, body: bytes) -> Outcome:
        await self._limiter.enter(len(body))
        try:
            signed = self._signer.headers(self._url, body) if self._signer else None
            connections = self._current_connections()
            response = await connections.post(
                connections.request(body, signed), self._endpoint.timeout, self._note_answer
            )
            encoding = response.headers.get("content-encoding", "").strip().lower()
            content = AnswerBody(response.content, response.is_whole)
            if encoding and encoding != "identity":
                content = unpacked(content, encoding)
        except Unconnected as error:
            return Failed("unreachable", self._told(error), has_connected=False)
        except TimeoutError:
            self._has_connected = True
            return Failed("timeout", f"no complete answer from {self._host} within {self._endpoint.timeout:g} s")
        except Untrusted as error:
            raise JudgeError(
                f"{self._endpoint.name}: the certificate of {self._host} is not trusted ({self._hidden(str(error))}); "
                "check base_url, or point SSL_CERT_FILE to your own authority"
            ) from None
        except ValueError as error:
            # Somebody is there, but this is not HTTP, or not what its headers say.
            self._note_answer()
            return Failed("server_error", self._told(error))
        except OSError as error:
            self._has_connected = True
            return Failed("unreachable", self._told(error))
        finally:
            self._limiter.leave()
        outcome = self._outcome(response.status, response.headers, content)
        if isinstance(outcome, Answered):
            self._successes += 1
            self._limiter.eased()
        elif response.status in OVERLOAD and isinstance(outcome, Failed):
            # A pause beyond patience ends the run; nobody is held back for it.
            asked_for = outcome.retry_after or 0
            self._limiter.overloaded(asked_for if asked_for <= self._endpoint.patience else None)
        if wait := room_in(response.headers):
            self._limiter.hold(min(wait, self._endpoint.patience))
        return outcome

    def _note_answer(self) -> None:
        self._has_connected = True
        self._answers += 1
        self._unanswered = 0

    def _current_connections(self) -> Connections:
        loop = asyncio.get_running_loop()
        if self._connections is None or self._loop is not loop:
            self._loop = loop
            self._connections = Connections(self._url, self._headers, self._endpoint.proxy, self._connect, MOST_BYTES)
        return self._connections

    def _outcome(self, status: int, headers: Mapping[str, str], body: AnswerBody) -> Outcome:
        payload = self._payload(body)
        if 200 <= status < 300:
            if not body.is_whole:
                return Declined(status, f"the answer is longer than {MOST_BYTES // 2**20} MB")
            if payload is None and has_too_many_parts(body.content):
                return Declined(status, f"the answer has more than {MOST_PARTS:,} parts, which no completion has")
            if payload is None:
                return Failed("server_error", f"the endpoint did not send JSON: {self._hidden(readable(body.content))}")
            if not is_error(payload):
                return Answered(payload)
            status = error_code(payload)
        if 300 <= status < 400:
            return Declined(status, self._hidden(f"redirects to {shown_url(headers.get('location', 'elsewhere'))}"))
        error = reported_error(payload, headers.get("x-amzn-errortype", ""))
        message = self._hidden(error.message or readable(body.content))
        meaning = meaning_of(status, message, error.codes, self._endpoint.row)
        if meaning == "busy" or (_is_transient(status) and meaning is None):
            pause = retry_after(headers)
            return Failed(_reason(status), f"HTTP {status}: {message}", error.retry_after if pause is None else pause)
        return Declined(status, message, meaning)

    def _payload(self, body: AnswerBody) -> dict[str, Any] | None:
        try:
            text = decoded(body.content) if body.is_whole else "null"
            payload = parse_json(text)
        except ValueError:
            return None
        if not isinstance(payload, dict):
            return None
        # Without an escape every letter stands for itself: no text of it is invalid, and a look at the whole tells
        # whether one may hold a secret.
        is_clean = "\\u" not in text and not self._mask.may_be_in(text) and is_shallow(payload)
        return payload if is_clean else self.cleaned(payload)

    def _told(self, error: Exception) -> str:
        if isinstance(error, BrokenBody):
            return self._hidden(str(error))
        broken = isinstance(error, OSError) and error.errno
        said = f"the connection broke ({cause_of(error)})" if broken else str(error)
        return self._hidden(f"{self._host}: {said}")

    def _hidden(self, text: str) -> str:
        """The text for people to read; servers like to quote the key they refuse."""
        return one_line(self._mask(text))


class _Allowance:
    """What is left to one call: its retries, and its patience where the endpoint says how long to wait."""

    def __init__(self, endpoint: Endpoint, unconnected_tries: int) -> None:
        self._retries, self._patience = endpoint.retries, endpoint.patience
        self._unconnected_tries = unconnected_tries

    def is_impatient(self, failed: Failed) -> bool:
        return (failed.retry_after or 0) > self._patience

    def is_used_up(self, state: RetryCallState) -> bool:
        """Whether there is no further try after this one."""
        failed = _outcome(state)
        if self.is_impatient(failed):
            return True
        if (failed.retry_after or 0) >= ASKED_PAUSE:
            self._patience -= failed.retry_after or 0
            return False
        self._retries -= 1
        # Without a connection the retries alone decide nothing.
        return self._retries < 0 and (failed.has_connected or state.attempt_number >= self._unconnected_tries)


def _headers(endpoint: Endpoint, own: Mapping[str, str], secret: str) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": ACCEPTED_ENCODINGS,
        "User-Agent": "steelyard",
        **own,
    }
    if secret := secret.strip():
        if not is_header_text(secret):
            raise JudgeError(
                f"{endpoint.name}: the key{_in_variable(endpoint)} holds a line break or non-ASCII characters; "
                "copy it again"
            )
        name = endpoint.row.key_header
        headers[name] = f"Bearer {secret}" if name == BEARER else secret
    return headers | dict(endpoint.headers)


def _in_variable(endpoint: Endpoint) -> str:
    return f" in {endpoint.key_env}" if endpoint.key_env else ""


def _outcome(state: RetryCallState) -> Failed:
    assert state.outcome is not None
    return cast(Failed, state.outcome.result())


def _is_transient(status: int) -> bool:
    return status in TRANSIENT_4XX or (status >= 500 and status not in PERMANENT_5XX)


def _reason(status: int) -> Literal["timeout", "rate_limited", "server_error"]:
    if status == 429:
        return "rate_limited"
    return "timeout" if status in (408, 504) else "server_error"


def _span(seconds: float) -> str:
    """Seconds as people say them: in the largest unit of which there are two."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:g} s"
