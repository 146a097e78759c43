"""Detects labels that a judge copied from judged text: that text may imitate a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from steelyard.protocols.common import is_unjudged
from steelyard.protocols.transcripts import detect, parse_all
from steelyard.records import DialogueSample, Sample

# Single lines of a form stand in any transcript; so many in a row were copied.
LINES_IN_A_ROW = 4
Share = Literal["none", "some", "all"]


def imitations(sample: Sample, protocol: str) -> list[str]:
    """The judged texts that would be read as labels if a judge repeated them; of most samples none."""
    return [text for text in _judged_texts(sample) if detect(text) and _says(text, protocol)]


def copied_labels(reply: str, texts: Iterable[str], protocol: str) -> Share:
    """How many of the reply's labels rest on lines that it copied from these texts."""
    own, copies = reply, ""
    for text in texts:
        own, copied = _apart(own, text)
        copies += copied
    if not copies or not _says(copies, protocol):
        return "none"
    return "some" if _says(own, protocol) else "all"


def _judged_texts(sample: Sample) -> Iterator[str]:
    """The untrusted texts that the judge is shown."""
    if isinstance(sample, DialogueSample):
        for turn in sample.turns:
            yield from (turn.prompt, turn.answer)
        return
    yield from (sample.question, sample.answer, *sample.references)


def _apart(reply: str, text: str) -> tuple[str, str]:
    """The judge's own lines, and those it copied: consecutive lines of the text, or a report in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    n = LINES_IN_A_ROW
    whole = [text.strip()] if len(lines) < n else []
    whole += [line for line in lines if line.startswith("{") and line.endswith("}") and len(line) > 1]
    copies = ""
    for part in whole:
        if part in reply:
            reply, copies = reply.replace(part, ""), f"{copies}{part}\n"
    rows = {tuple(lines[at : at + n]) for at in range(len(lines) - n + 1)}
    said = reply.splitlines(keepends=True)
    full = [at for at, line in enumerate(said) if line.strip()]
    copied: set[int] = set()
    for at in range(len(full) - n + 1):
        places = full[at : at + n]
        if tuple(said[place].strip() for place in places) in rows:
            copied.update(places)
    own = "".join(line for at, line in enumerate(said) if at not in copied)
    return own, copies + "".join(said[at] for at in sorted(copied))


def _says(text: str, protocol: str) -> bool:
    """Whether any label or total is read in the text."""
    return any(
        verdict.stated or verdict.status != "failed" or any(not is_unjudged(item) for item in verdict.items)
        for verdict in parse_all(text, protocol)
    )
