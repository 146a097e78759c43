"""The seeds' textual forms, written and read. `render` then `parse` is the identity; `parse` also reads what other
models and tools wrote in those forms: what it infers is flagged, what it cannot read is unjudged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from steelyard.errors import ConfigError, TranscriptError
from steelyard.records import Verdict
from steelyard.transcripts import atomic, detecting, dialogue, grounded, scorecard
from steelyard.transcripts.lines import Reading, verdict_of

__all__ = ["detect", "parse", "render"]

Form = Literal["text", "json", "markdown"]

WRITERS: dict[tuple[str, str], Callable[[Verdict], str]] = {
    ("atomic", "text"): atomic.render,
    ("grounded", "text"): grounded.render,
    ("scorecard", "text"): scorecard.render,
    ("dialogue", "text"): dialogue.render_markdown,
    ("dialogue", "json"): dialogue.render_json,
    ("dialogue", "markdown"): dialogue.render_markdown,
}
READERS: dict[str, Callable[[str], Reading]] = {
    "atomic": atomic.parse,
    "grounded": grounded.parse,
    "scorecard": scorecard.parse,
    "dialogue": dialogue.parse,
}


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
    """The labels a transcript states, as a verdict whose scores are counted here."""
    if protocol is not None and protocol not in READERS:
        raise ConfigError(f"there is no transcript form for protocol {protocol!r}; known: {', '.join(READERS)}")
    known = protocol or detect(text)
    if known is None:
        raise TranscriptError(f"the text has none of the known forms ({', '.join(READERS)}): name its protocol")
    return verdict_of(READERS[known](text), id=id, protocol=known)
