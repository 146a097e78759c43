"""Which protocol's form a text has, told by the headings only that form uses."""

from __future__ import annotations

import re
from collections import Counter

from steelyard.protocols.transcripts import (
    atomic_lines,
    atomic_table,
    dialogue_markdown,
    grounded_reader,
    scorecard_reader,
)
from steelyard.protocols.transcripts.dialogue_json import KEY
from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.protocols.transcripts.lines import lines_of
from steelyard.protocols.transcripts.tables import MarkdownTable, columns_of, with_tables

# Most lines of a long text have none of the forms' words; they need not be tried against every pattern.
HINT = FormPattern(
    r"性|原子|兜底|是否|轮|细则|判定|等级|结论|逻辑|回答|完整|忠|relevan|complet|accura|faithful|truthful|atom|fall-?back"
    r"|level|round|turn|criterion|background|topic|conclusion|fallac|label|verdict|factual|question"
)
MARKED = re.compile(r"\s*(?:#|[1-4]\ufe0f?\u20e3)")


def detect(text: str) -> str | None:
    """The protocol most of whose sections appear; the one that appears first wins a tie."""
    seen: dict[tuple[str, str], None] = {}
    for part in with_tables(lines_of(text)):
        if isinstance(part, MarkdownTable):
            seen.update(dict.fromkeys(_table_signs(part)))
        elif HINT.search(part):
            seen.update(dict.fromkeys(_signs(part)))
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
    if atomic_lines.FALLBACK_SCORE.fullmatch(line):
        signs.append(("atomic", "fallback"))
    if total := grounded_reader.TOTAL.fullmatch(line) or grounded_reader.PLAIN_TOTAL.fullmatch(line):
        signs.append(("grounded", f"total {total.word(1)}"))
    elif grounded_reader.SUMMARY.match(line) and grounded_reader.SUMMED.search(line):
        signs.append(("grounded", "total"))
    elif scored := scorecard_reader.score_of(line):
        signs.append(("scorecard", scored[0]))
    for name in ("relevance", "truthfulness"):
        if grounded_reader.HEADINGS[name].fullmatch(line):
            signs.append(("grounded", name))
    signs += [("grounded", kind.name) for kind, form in grounded_reader.CHECKS if form.fullmatch(line)]
    if MARKED.match(line) and (metric := scorecard_reader.heading_of(line)):
        signs.append(("scorecard", metric))
    if scorecard_reader.LABEL.fullmatch(line):
        signs.append(("scorecard", "label"))
    if dialogue_markdown.ROUND.fullmatch(line):
        signs.append(("dialogue", "round"))
    if dialogue_markdown.CRITERION.fullmatch(line):
        signs.append(("dialogue", "criterion"))
    return signs


def _table_signs(table: MarkdownTable) -> list[tuple[str, str]]:
    """The same of a table: which titles its columns have."""
    signs: list[tuple[str, str]] = []
    if any(atomic_table.ATOM_TITLE.fullmatch(title) for title in table.header):
        signs += [("atomic", f"column {name}") for name in columns_of(table, atomic_table.COLUMNS)]
    if any(grounded_reader.check_of(cell) for row in table.rows for cell in row[:2]):
        signs += [("grounded", f"column {name}") for name in columns_of(table, grounded_reader.COLUMNS)]
    signs += [("scorecard", metric) for metric, _ in scorecard_reader.metric_scores(table)]
    dialogue = columns_of(table, dialogue_markdown.COLUMNS)
    if {"text", "result"} <= dialogue.keys() and ({"turn", "validity"} & dialogue.keys()):
        signs += [("dialogue", f"column {name}") for name in dialogue]
    return signs
