"""The judge over HTTP: a language model behind any API of `dialects`."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from pydantic import SecretStr

from steelyard.errors import JudgeError
from steelyard.judges.base import Judge
from steelyard.judges.copying import shown_texts
from steelyard.judges.dialects import dialect_of
from steelyard.judges.dialects.base import Dialect
from steelyard.judges.endpoint import Endpoint, Price
from steelyard.judges.limiter import Limiter
from steelyard.judges.logprobs import SpelledToken, with_confidence
from steelyard.judges.parsing import Problem, read, without_thoughts
from steelyard.judges.payload import one_line
from steelyard.judges.providers import Mode
from steelyard.judges.refusals import diagnose
from steelyard.judges.schema import strict_schema
from steelyard.judges.sigv4 import Signer
from steelyard.judges.terms import Terms, opening_terms, other_terms
from steelyard.judges.wire import Answered, Failed, Outcome, Wire
from steelyard.prompts import nonce
from steelyard.records import Ask, Reply, ReplyData, TextReply, Unjudged, Usage

Messages = list[dict[str, str]]

DEFAULT_CALLS_IN_FLIGHT = 16
# A refusal of the format comes at once; a first call still running after this is being worked on.
PROBE_SECONDS = 1.0
QUOTED_BACK = 8000
LONGEST_REPLY = 2_000_000

CORRECTION = {
    "zh": "你的上一条回复无法使用。{problem}。请重新完整作答，带上编码 {code}：只输出一个 JSON 对象，不要其他文字。",
    "en": "Your previous reply cannot be used. {problem}. Answer again in full, with the code {code}: "
    "one JSON object and nothing else.",
}
SHAPE = {"zh": "\n它必须符合这个 JSON Schema：", "en": "\nIt must match this JSON schema: "}


class Wordings(Protocol):
    """Renders asks as conversations; `Prompts` is the one in use."""

    def messages(self, ask: Ask) -> Messages: ...

    def identity(self, ask: Ask) -> str:
        """Changes whenever the wording around the ask's data does; far cheaper than rendering."""
        ...


class Completion(NamedTuple):
    """A complete message of the judge, what it cost, and its tokens where their probabilities were asked for."""

    text: str
    usage: Usage
    tokens: Sequence[SpelledToken] = ()


class ChatJudge(Judge):
    """Asks an LLM over HTTP. An unusable reply is asked for again, with what was wrong.

    A reply that was cut off by the limit on tokens is not asked for again: the limit is the user's, and the same
    question under the same limit ends the same way. It is `truncated`, even if what there is of it parses.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Wordings,
        *,
        key: SecretStr | Signer | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self.endpoint, self.name = endpoint, f"{endpoint.name}:{endpoint.model}"
        self._prompts = prompts
        self._dialect = dialect_of(endpoint)
        limiter = limiter or Limiter(DEFAULT_CALLS_IN_FLIGHT)
        self._wire = Wire(endpoint, limiter, self._dialect.url, self._dialect.headers, key)
        self._identity = endpoint.model_dump_json(include=_shaping(endpoint)).encode()
        if endpoint.row.body:
            self._identity += json.dumps(endpoint.row.body, sort_keys=True).encode()
        self._terms = opening_terms(endpoint)
        self._proven = False
        self._probe: asyncio.Event | None = None
        self._unusable = ""
        self._settings: dict[tuple[str, type, Terms], bytes] = {}

    @property
    def model(self) -> str:
        return self.endpoint.model

    @property
    def price(self) -> Price | None:
        return self.endpoint.price

    @property
    def structured(self) -> Mode | None:
        """The mode of structured output that works here; null until a call has succeeded."""
        return self._terms.mode if self._proven else None

    @property
    def without(self) -> frozenset[str]:
        """Body parameters that the endpoint refused and that are no longer sent."""
        return self._terms.without

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: everything that shapes the answers, nothing that is secret."""
        shown = _shaping(self.endpoint) | {"timeout", "retries", "price"}
        settings = self.endpoint.model_dump(mode="json", include=shown)
        return settings | {
            "base_url": self.endpoint.shown_url,
            "body": self.endpoint.shown_body,
            "settled": self.structured,
        }

    def fingerprint(self, ask: Ask) -> str:
        """Says exactly what is asked of whom: the ask, the prompt it is put in, the model and its parameters."""
        digest = hashlib.sha256(self._identity)
        digest.update(self._prompts.identity(ask).encode())
        digest.update(ask.key.encode())
        return digest.hexdigest()[:32]

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        opening = messages = self._prompts.messages(ask)
        usage, problem = Usage(), Problem("")
        for _ in range(1 + self.endpoint.corrections):
            said = await self._said(ask, messages)
            usage += said.usage
            if isinstance(said, Unjudged):
                return said.model_copy(update={"usage": usage})
            data = _read(said, ask)
            if not isinstance(data, Problem):
                return Reply(data=data, raw=said.text, usage=usage)
            # Only the latest mistake is shown: a conversation full of bad replies breeds more of them.
            problem, messages = data, opening + self._correction(ask, said.text, data)
        return Unjudged(reason="invalid_reply", detail=problem.text, usage=usage)

    def request(self, ask: Ask) -> dict[str, Any]:
        """The body that would be posted for this ask: what a batch file holds."""
        body: dict[str, Any] = json.loads(self._request(ask, self._prompts.messages(ask), self._terms))
        return body

    def read_completion(self, ask: Ask, payload: Mapping[str, Any]) -> Reply | Unjudged:
        """The reply in a completion that came some other way than over this wire."""
        said = _completion(self._wire.cleaned(payload), self._dialect)
        if isinstance(said, Unjudged):
            return said
        data = _read(said, ask)
        if isinstance(data, Problem):
            return Unjudged(reason="invalid_reply", detail=data.text, usage=said.usage)
        return Reply(data=data, raw=said.text, usage=said.usage)

    @property
    def missing(self) -> str:
        return self._wire.missing_key

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _said(self, ask: Ask, messages: Messages) -> Completion | Unjudged:
        outcome = await self._called(ask, messages)
        if isinstance(outcome, Answered):
            return _completion(outcome.payload, self._dialect)
        if isinstance(outcome, Failed):
            return Unjudged(reason=outcome.reason, detail=outcome.detail)
        try:
            return diagnose(outcome, self.endpoint)
        except JudgeError as error:
            self._unusable = str(error)
            raise

    async def _called(self, ask: Ask, messages: Messages) -> Outcome:
        """The first call negotiates what the endpoint accepts; concurrent calls wait for it briefly."""
        if self._proven:
            return await self._negotiated(ask, messages)
        if self._probe is None:
            self._probe = asyncio.Event()
            try:
                return await self._negotiated(ask, messages)
            finally:
                self._probe.set()
        if not self._probe.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._probe.wait(), PROBE_SECONDS)
            if self._unusable and not self._proven:
                # Those who waited learn it from the first; a refused key is not knocked with thirty times.
                raise JudgeError(self._unusable)
        return await self._negotiated(ask, messages)

    async def _negotiated(self, ask: Ask, messages: Messages) -> Outcome:
        began = terms = self._terms
        while True:
            outcome = await self._wire.post(self._request(ask, messages, terms))
            if isinstance(outcome, Answered):
                # Only what helped is remembered, and never over what another call has learnt meanwhile.
                if terms != began and self._terms == began:
                    self._terms = terms
                self._proven = True
                return outcome
            if isinstance(outcome, Failed):
                return outcome
            other = other_terms(terms, outcome, self._dialect, proven=self._proven)
            if other is None:
                return outcome
            terms = other

    def _request(self, ask: Ask, messages: Messages, terms: Terms) -> bytes:
        key = (ask.task, ask.reply, terms)
        if key not in self._settings:
            self._settings[key] = self._dialect.tail(ask, terms)
        return self._dialect.conversation(messages) + self._settings[key]

    def _correction(self, ask: Ask, said: str, problem: Problem) -> Messages:
        correction = CORRECTION[ask.language].format(problem=problem.text, code=nonce(ask))
        if self._terms.mode not in ("json_schema", "tool"):
            correction += SHAPE[ask.language] + json.dumps(strict_schema(ask.reply), separators=(",", ":"))
        asked_again = [{"role": "user", "content": correction}]
        shown = without_thoughts(said, nonce(ask))[:QUOTED_BACK]
        # Some servers refuse an empty message of the assistant.
        return [{"role": "assistant", "content": shown}, *asked_again] if shown else asked_again


def _read(said: Completion, ask: Ask) -> ReplyData | Problem:
    if issubclass(ask.reply, TextReply):
        return ask.reply(text=said.text)
    data = read(said.text, ask.reply, nonce(ask), ask.language, shown_texts(ask.data, ask.again, ask.verify))
    return data if isinstance(data, Problem) else with_confidence(data, said.text, said.tokens, nonce(ask))


def _completion(payload: Mapping[str, Any], dialect: Dialect) -> Completion | Unjudged:
    """The message in an answer, unless it is cut off, refused or not there."""
    endpoint, answer = dialect.endpoint, dialect.read(payload)
    usage = answer.usage
    if endpoint.price:
        usage = usage.model_copy(update={"cost": endpoint.price.of(usage, answer.written)})
    match answer.ending:
        case "absent" | "interrupted":
            return Unjudged(reason="server_error", detail=one_line(answer.detail), usage=usage)
        case "refused":
            return Unjudged(reason="refused", detail=one_line(answer.detail), usage=usage)
        case "cut_off":
            tokens = f" after {usage.completion_tokens} tokens" if usage.completion_tokens else ""
            detail = f"the reply was cut off{tokens}; raise max_tokens in the body of judge {endpoint.name}"
            return Unjudged(reason="truncated", detail=detail, usage=usage)
    if len(answer.text) > LONGEST_REPLY:
        return Unjudged(reason="invalid_reply", detail=f"a reply of {len(answer.text)} characters", usage=usage)
    return Completion(answer.text, usage, answer.tokens)


def _shaping(endpoint: Endpoint) -> set[str]:
    """The settings that shape an answer. Those of later versions only where they say something: the keys of all other
    replies are in stores already."""
    shaping = {"base_url", "model", "body", "structured"}
    shaping |= {"logprobs"} if endpoint.logprobs else set()
    return shaping | ({"provider"} if endpoint.provider != "openai" else set())
