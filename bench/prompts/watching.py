"""A judge whose every first try is looked at: through the product's own request, reader and protocols."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from findings import findings
from pydantic import ValidationError

from steelyard.judges import ChatJudge, Judge
from steelyard.judges.dialects import dialect_of
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Reply, Unjudged

FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)
Record = dict[str, Any]


class WatchedJudge(Judge):
    """Asks once and notes how it went; a reply that cannot be used is asked for anew in the product's usual way.

    With `first_only` nothing is asked a second time: where time is short, all of it goes into first tries.
    Of each prompt only one ask is under way at a time: a server that keeps a slot for each has then read all of it
    but the sample.
    """

    def __init__(
        self,
        chat: ChatJudge,
        prompts: Prompts,
        note: Callable[[Record], None],
        at_once: int = 1,
        *,
        first_only: bool = False,
        key: str | None = None,
    ) -> None:
        self._chat, self._prompts, self._note, self._first_only = chat, prompts, note, first_only
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._room = asyncio.Semaphore(at_once)
        self._turns: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._replies: dict[str, Reply] = {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def mode(self) -> str:
        return self._chat.endpoint.structured

    def prompts_of(self, protocol: str, language: str) -> list[str]:
        """The hashes of what a protocol may ask with; `scorecard` splits as `atomic` does."""
        families, tasks = (protocol, "again", "atomic", "reply"), get_protocol(protocol).tasks
        return sorted(
            prompt.sha256
            for prompt in self._prompts
            if prompt.language == language and (prompt.task.split(".")[0] in families or prompt.task in tasks)
        )

    def fingerprint(self, ask: Ask) -> str:
        return self._chat.fingerprint(ask)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if self._first_only and ask.again:
            return Unjudged(reason="not_asked", detail="a second ask")
        async with self._turns[ask.task, ask.language], self._room:
            if earlier := self._replies.get(ask.key):
                # `atomic` and `scorecard` split the same answers; the journal holds only what is finished.
                return earlier
            began = time.monotonic()
            try:
                payload = await self._post(self._chat.request(ask))
            except (aiohttp.ClientError, TimeoutError) as error:
                # The server's trouble is no mistake of the prompts; the next run asks again.
                return Unjudged(reason="unreachable", detail=f"{type(error).__name__}: {error}")
            seconds = time.monotonic() - began
        first = self._chat.read_completion(ask, payload)
        record = {
            "kind": "ask",
            "key": ask.key,
            "task": ask.task,
            "language": ask.language,
            "mode": self.mode,
            "prompt": self._prompts.get(ask.task, ask.language).sha256,
            "again": ask.again is not None,
            "seconds": round(seconds, 2),
            "prompt_tokens": first.usage.prompt_tokens,
            "completion_tokens": first.usage.completion_tokens,
            "raw": _said(payload),
        }
        if isinstance(first, Reply):
            self._note(record | {"form": _form(first.raw, ask), "wrong": findings(ask, first.data)})
            self._replies[ask.key] = first
            return first
        record |= {"form": None, "wrong": [_kind(first)], "detail": first.detail}
        if self._first_only:
            self._note(record)
            return first
        async with self._room:
            mended = await self._chat.answer(ask)
        self._note(record | {"rescued": isinstance(mended, Reply)})
        return mended

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._chat.endpoint.timeout)
            self._session = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        async with self._session.post(dialect_of(self._chat.endpoint).url, json=body) as response:
            response.raise_for_status()
            payload: dict[str, Any] = await response.json()
            return payload

    async def aclose(self) -> None:
        await self._chat.aclose()
        if self._session is not None:
            await self._session.close()


def _said(payload: Mapping[str, Any]) -> str:
    try:
        return str(payload["choices"][0]["message"]["content"])
    except (LookupError, TypeError):
        return ""


def _kind(failure: Unjudged) -> str:
    """A failure in the words of the table."""
    if failure.reason == "truncated":
        return "cut off"
    if failure.reason != "invalid_reply":
        return failure.reason
    kinds = {
        "whose code is": "no reply",
        "且 code 的值为": "no reply",
        "must be": "wrong enum",
        "只能是": "wrong enum",
        "missing": "missing key",
        "缺少": "missing key",
    }
    return next((kind for sign, kind in kinds.items() if sign in failure.detail), "bad JSON")


def _form(said: str, ask: Ask) -> str:
    """How much help the reply needed to be read."""
    text = said.strip()
    fenced = FENCED.match(text)
    try:
        found = json.loads(fenced[1] if fenced else text)
    except ValueError:
        return "repaired"
    try:
        ask.reply.model_validate(found)
    except ValidationError:
        return "tidied"
    return "fenced" if fenced else "clean"
