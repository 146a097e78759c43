"""Which protocol's form a text has, told by the headings only that form uses."""

from __future__ import annotations

import re
from collections import Counter

from steelyard.transcripts import atomic_lines, dialogue_markdown, grounded, scorecard
from steelyard.transcripts.dialogue_json import KEY
from steelyard.transcripts.lines import lines_of

# Most lines of a long text have none of the forms' words; they need not be tried against every pattern.
HINT = re.compile(
    r"性|原子|兜底|是否|[轮輪]|[细細][则則]|判定|等[级級]|[结結][论論]|[逻邏][辑輯]|回答|完整|忠|[A-Z][a-z]+(?:ness|nce|cy)"
)
MARKED = re.compile(r"\s*(?:#|[1-4]\ufe0f?\u20e3)")


def detect(text: str) -> str | None:
    """The protocol most of whose sections appear; the one that appears first wins a tie."""
    seen: dict[tuple[str, str], None] = {}
    for line in lines_of(text):
        if HINT.search(line):
            seen.update(dict.fromkeys(_signs(line)))
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
    if dialogue_markdown.ROUND.fullmatch(line):
        signs.append(("dialogue", "round"))
    if dialogue_markdown.CRITERION.fullmatch(line):
        signs.append(("dialogue", "criterion"))
    return signs
