"""Tells from a refused call whether the judge is unusable or only this ask has no answer."""

from __future__ import annotations

from steelyard.errors import JudgeError
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.providers import Meaning
from steelyard.judges.wire import Declined
from steelyard.records import Unjudged

BY_STATUS: dict[int, Meaning] = {401: "key", 402: "balance", 403: "key", 404: "model", 413: "too_long", 429: "balance"}


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
