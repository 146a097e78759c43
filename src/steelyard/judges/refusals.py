"""What a refused call is about, by the provider's codes or words, and whether it makes the whole judge unusable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.errors import JudgeError
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.providers import Meaning, Provider
from steelyard.records import Unjudged

if TYPE_CHECKING:
    from steelyard.judges.wire import Declined

# A 400 that means what others say with 401 or 404; a 403 that is not about the key.
AMBIGUOUS = frozenset({400, 403, 404, 413, 422, 429})
WORDS: Sequence[tuple[Meaning, re.Pattern[str]]] = (
    (
        "filtered",
        re.compile(
            r"content[_ ](?:filter|policy)|data_?inspection_?failed|content exists risk|flagged|moderation"
            r"|不安全或敏感",
            re.IGNORECASE,
        ),
    ),
    (
        "balance",
        re.compile(
            r"insufficient[_ ](?:quota|balance|credits)|余额不足|余量已用尽|欠费|exceeded your current quota"
            r"|(?:credit )?balance is (?:too low|insufficient)|overdue balance|good standing",
            re.IGNORECASE,
        ),
    ),
    (
        "too_long",
        re.compile(
            r"(?:maximum|exceeds?(?: the)?(?: available| model's)?) context|context[_ ](?:length|window)"
            r"|(?:prompt|input) is too long|(?:prompt|input) token (?:length|count)|model token limit"
            r"|range of input length|超长",
            re.IGNORECASE,
        ),
    ),
    (
        "key",
        re.compile(r"(?:api[ _-]?key|token)\W.{0,20}(?:not valid|invalid|incorrect|expired)", re.IGNORECASE),
    ),
    (
        "model",
        re.compile(
            r"model\W{1,9}(?:\S{1,200}\W{1,9})?(?:does )?not (?:exist|found)|(?:unknown|invalid|no such) model"
            r"|模型不存在|model identifier is invalid|not a valid model|on-demand throughput isn",
            re.IGNORECASE,
        ),
    ),
)
BY_STATUS: dict[int, Meaning] = {401: "key", 402: "balance", 403: "key", 404: "model", 413: "too_long", 429: "balance"}


def meaning_of(status: int, message: str, codes: Sequence[str], provider: Provider) -> Meaning | None:
    """What this refusal is about; null where neither its codes nor its words say it."""
    known = provider.meaning(codes)
    if known or status not in AMBIGUOUS:
        return known
    found = next((meaning for meaning, words in WORDS if words.search(message)), None)
    # A rate limit speaks of quotas, keys, models and tokens too; only an empty account is worth no other try.
    return found if status != 429 or found == "balance" else None


def diagnose(refusal: Declined, endpoint: Endpoint) -> Unjudged:
    """Why this ask has no answer; raises `JudgeError` where no ask to this endpoint can have one."""
    said = f"HTTP {refusal.status}: {refusal.message}"
    meaning = refusal.meaning or BY_STATUS.get(refusal.status)
    if meaning == "filtered":
        return Unjudged(reason="refused", detail=refusal.message)
    if meaning == "too_long":
        return Unjudged(reason="rejected", detail=f"{said} (more than {endpoint.model} reads at once)")
    if advice := _unusable(refusal.status, meaning, endpoint):
        raise JudgeError(f"{endpoint.name}: {advice} ({said})")
    return Unjudged(reason="rejected", detail=said)


def _unusable(status: int, meaning: Meaning | None, endpoint: Endpoint) -> str:
    hint = endpoint.row.hints.get(meaning, "") if meaning else ""
    added = f"; {hint}" if hint else ""
    if meaning == "key":
        return _about_the_key(endpoint) + added
    if meaning == "balance":
        return "the account has no balance or quota left, or billing is not set up; top it up, or name another endpoint"
    if meaning == "model":
        place = added or "; check the model's name"
        if endpoint.row.wire == "chat" and not hint:
            place += ", and that base_url ends where /chat/completions begins (often in /v1)"
        return f"no model {endpoint.model!r} at {endpoint.shown_url}{place}"
    if status == 405 or 300 <= status < 400:
        form = "an OpenAI-compatible API" if endpoint.row.wire == "chat" else f"the API of {endpoint.provider}"
        return f"{endpoint.shown_url} is not the root of {form}; check base_url"
    return ""


def _about_the_key(endpoint: Endpoint) -> str:
    if endpoint.key_env:
        return f"{endpoint.shown_url} refused the key; check the environment variable {endpoint.key_env}"
    return f"{endpoint.shown_url} wants a key; name its environment variable in key_env"
