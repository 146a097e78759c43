"""Which protocol's form a text has, told by the headings only that form uses."""

from __future__ import annotations

import re
from collections import Counter

from steelyard.transcripts import atomic_lines, dialogue, grounded, scorecard
from steelyard.transcripts.dialogue_json import KEY
from steelyard.transcripts.lines import lines_of

MARKED = re.compile(r"\s*(?:#|[1-4]\ufe0f?\u20e3)")


def detect(text: str) -> str | None:
    """The protocol most of whose sections appear; the one that appears first wins a tie."""
    seen: dict[tuple[str, str], None] = {}
    for line in lines_of(text):
        for sign in _signs(line):
            seen.setdefault(sign)
    if KEY.search(text):
        seen.setdefault(("dialogue", "json"))
    counts = Counter(protocol for protocol, _ in seen)
    return counts.most_common(1)[0][0] if counts else None


def _signs(line: str) -> list[tuple[str, str]]:
    """What a line is evidence of. Checks, criteria and steps count beside headings, which models leave out."""
    signs: list[tuple[str, str]] = []
    if heading := atomic_lines.heading_of(line):
        signs.append(("atomic", heading[0]))
    if atomic_lines.GROUP.fullmatch(line):
        signs.append(("atomic", "group"))
    if atomic_lines.NEED.fullmatch(line):
        signs.append(("atomic", "need"))
    if grounded.TOTAL.fullmatch(line):
        signs.append(("grounded", "total"))
    for name in ("relevance", "truthfulness"):
        if grounded.HEADINGS[name].fullmatch(line):
            signs.append(("grounded", name))
    signs += [("grounded", kind.name) for kind, pattern in grounded.CHECKS if pattern.fullmatch(line)]
    if MARKED.match(line) and (metric := scorecard.heading_of(line)):
        signs.append(("scorecard", metric))
    if scorecard.LABEL.fullmatch(line):
        signs.append(("scorecard", "label"))
    if dialogue.ROUND.fullmatch(line):
        signs.append(("dialogue", "round"))
    if dialogue.CRITERION.fullmatch(line):
        signs.append(("dialogue", "criterion"))
    return signs
