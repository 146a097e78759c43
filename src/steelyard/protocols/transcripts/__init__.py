"""The seeds' textual forms, written and read. `render` then `parse` is the identity; `parse` also reads what other
models and tools wrote in those forms: what it infers is flagged, what it cannot read is unjudged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from steelyard.errors import ConfigError, TranscriptError
from steelyard.protocols.transcripts import atomic, detecting, dialogue, grounded, scorecard
from steelyard.protocols.transcripts.lines import Reading, verdict_of
from steelyard.records import Verdict

__all__ = ["detect", "parse", "parse_all", "render"]

Form = Literal["text", "json", "markdown"]

WRITERS: dict[tuple[str, str], Callable[[Verdict], str]] = {
    ("atomic", "text"): atomic.render,
    ("grounded", "text"): grounded.render,
    ("scorecard", "text"): scorecard.render,
    ("dialogue", "text"): dialogue.render_markdown,
    ("dialogue", "json"): dialogue.render_json,
    ("dialogue", "markdown"): dialogue.render_markdown,
}
READERS: dict[str, Callable[[str], list[Reading]]] = {
    "atomic": atomic.parse,
    "grounded": grounded.parse,
    "scorecard": scorecard.parse,
    "dialogue": dialogue.parse,
}


DIALOGUE = "dialogue"
"""The protocol whose transcript has two forms of its own, report 1 and report 2."""


def render(verdict: Verdict, form: Form = "text") -> str:
    """The verdict in its protocol's form; `dialogue` also has `json` (report 1) and `markdown` (report 2)."""
    writer = WRITERS.get((verdict.protocol, form))
    if writer is None:
        raise ConfigError(f"protocol {verdict.protocol!r} has no transcript of the form {form!r}")
    return writer(verdict)


def detect(text: str) -> str | None:
    """The protocol whose form the text has; None where it has none of them."""
    return detecting.detect(text)


def parse(text: str, protocol: str | None = None, *, id: str = "transcript") -> Verdict:
    """The labels of the one transcript in the text, as a verdict whose scores are counted here."""
    found = parse_all(text, protocol, id=id)
    if len(found) > 1:
        raise TranscriptError("the text holds more than one transcript: read them with parse_all")
    return found[0]


def parse_all(text: str, protocol: str | None = None, *, id: str = "transcript") -> list[Verdict]:
    """A verdict for each transcript in the text; where there are several, their ids are `id#1`, `id#2` and so on.

    What stands around them is passed over. A text of a named protocol without a transcript is one failed verdict.
    """
    if protocol is not None and protocol not in READERS:
        raise ConfigError(f"there is no transcript form for protocol {protocol!r}; known: {', '.join(READERS)}")
    known = protocol or detect(text)
    if known is None:
        raise TranscriptError(f"the text has none of the known forms ({', '.join(READERS)}): name its protocol")
    found = READERS[known](text)
    ids = [f"{id}#{number}" for number in range(1, len(found) + 1)] if len(found) > 1 else [id]
    return [verdict_of(reading, id=name, protocol=known) for name, reading in zip(ids, found, strict=True)]
