"""What a refusal is about: by the provider's own codes, else by the words that providers use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.judges.providers import Meaning, Provider

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


def meaning_of(status: int, message: str, codes: Sequence[str], provider: Provider) -> Meaning | None:
    """What this refusal is about; null where neither its codes nor its words say it."""
    known = provider.meaning(codes)
    if known or status not in AMBIGUOUS:
        return known
    found = next((meaning for meaning, words in WORDS if words.search(message)), None)
    # A rate limit speaks of quotas, keys, models and tokens too; only an empty account is worth no other try.
    return found if status != 429 or found == "balance" else None
