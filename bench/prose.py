"""Answers for clients that describe the wanted form in their prompt instead of sending a schema."""

from __future__ import annotations

import json
from typing import Any

SENTENCES = (
    "The device was released in the year the manual states.",
    "It weighs what the manual says.",
    "Its warranty covers two years.",
    "It can be repaired at any authorised centre.",
)
# ragas
SCHEMA_FOLLOWS = "JSON Schema:\n"
TO_MEND, INPUT_FOLLOWS = "did not satisfy the constraints given in the prompt", "with the following input\ninput: "
_decoder = json.JSONDecoder()


def _lines(pattern: str) -> str:
    return "\n".join(pattern.format(number=number, sentence=text) for number, text in enumerate(SENTENCES, 1))


# A phrase of the prompt, and what a willing model would say to it; the first that occurs wins.
SAYINGS = (
    # inspect-ai
    ("GRADE: ", "It does what was asked.\n\nGRADE: C"),
    # promptfoo
    (
        "Natural language inference",
        _lines("{number}. {sentence}\nExplanation: the context says so. Verdict: Yes.")
        + "\nFinal verdict for each statement in order: Yes. Yes. Yes. Yes.",
    ),
    ("create one or more statements from each sentence", "\n".join(SENTENCES)),
    ("Generate question for the given answer", "When did it come out and how long is its warranty?"),
    ("can be attributed", _lines("{number}. {sentence} The context says so. So [Attributed]")),
    ("pass: boolean", '{"reason": "It does what was asked.", "pass": true, "score": 1}'),
    # ragchecker
    (
        "extract a KG from",
        '("device", "came out in", "2019")\n("device", "weighs", "two kilograms")\n("device", "has", "warranty")',
    ),
    ("['Entailment'", "Entailment\nEntailment\nEntailment"),
    # trulens
    ("into individual sentences", "\n".join(SENTENCES)),
    ("Identify and remove sentences", json.dumps(SENTENCES)),
    ("Supporting Evidence:", "Criteria: supported\nSupporting Evidence: the source says so\nScore: 3"),
)
OTHERWISE = '{"score": 1, "reason": "It does what was asked."}'


def prose_answer(text: str) -> str:
    return next((said for phrase, said in SAYINGS if phrase in text), OTHERWISE)


def quoted_schema(text: str) -> dict[str, Any] | None:
    """The JSON schema that ragas quotes in its prompts."""
    at = text.find(SCHEMA_FOLLOWS)
    return _decoder.raw_decode(text, at + len(SCHEMA_FOLLOWS))[0] if at >= 0 else None


def prompt_to_mend(text: str) -> str | None:
    """The prompt that got a broken reply, where ragas asks for that reply to be mended."""
    at = text.find(INPUT_FOLLOWS)
    return (
        _decoder.raw_decode(text, at + len(INPUT_FOLLOWS))[0]["prompt_value"] if TO_MEND in text and at >= 0 else None
    )
