"""What a refused call means: the whole judge is unusable, or just this ask has no answer."""

from __future__ import annotations

import re

from steelyard.errors import JudgeError
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.wire import Declined
from steelyard.records import Unjudged

NO_MODEL = re.compile(
    r"model\W{1,9}(?:\S{1,200}\W{1,9})?(?:does )?not (?:exist|found)|(?:unknown|invalid|no such) model|模型不存在",
    re.IGNORECASE,
)
BAD_KEY = re.compile(r"(?:api[ _-]?key|token)\W.{0,20}(?:not valid|invalid|incorrect|expired)", re.IGNORECASE)
# How the vendors say that their moderation stopped the text: OpenAI and Azure, Qwen, DeepSeek, GLM.
MODERATED = re.compile(
    r"content[_ ](?:filter|policy)|data_?inspection_?failed|content exists risk|不安全或敏感|\[1301\]",
    re.IGNORECASE,
)


def diagnose(refusal: Declined, endpoint: Endpoint) -> Unjudged:
    """Why this ask has no answer; raises `JudgeError` where no ask to this endpoint can have one."""
    status, message = refusal
    if status == 400 and MODERATED.search(message):
        return Unjudged(reason="refused", detail=message)
    if advice := _unusable(refusal, endpoint):
        raise JudgeError(f"{endpoint.name}: {advice} (HTTP {status}: {message})")
    return Unjudged(reason="rejected", detail=f"HTTP {status}: {message}")


def is_about_key_or_model(refusal: Declined) -> bool:
    """Whether a 400 means what others say with 401 or 404."""
    return bool(refusal.status == 400 and (BAD_KEY.search(refusal.message) or NO_MODEL.search(refusal.message)))


def _unusable(refusal: Declined, endpoint: Endpoint) -> str:
    status, message = refusal
    if status in (401, 403) or (status == 400 and BAD_KEY.search(message)):
        return _about_the_key(endpoint)
    if status == 402 or status == 429:
        return "the account has no balance left; top it up, or name another endpoint"
    if status == 404 or (status == 400 and NO_MODEL.search(message)):
        return (
            f"no model {endpoint.model!r} at {endpoint.shown_url}; check the model's name, "
            "and that base_url ends where /chat/completions begins (often in /v1)"
        )
    if status == 405 or 300 <= status < 400:
        return f"{endpoint.shown_url} is not the root of an OpenAI-compatible API; check base_url"
    return ""


def _about_the_key(endpoint: Endpoint) -> str:
    if endpoint.key_env:
        return f"{endpoint.shown_url} refused the key; check the environment variable {endpoint.key_env}"
    return f"{endpoint.shown_url} wants a key; name its environment variable in key_env"
