"""Pages in GitHub Markdown. Judged text is escaped so that it can add no table cell, tag, link or heading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from steelyard.records import Language
from steelyard.reports.blocks import Block, Entry, Heading, Lines, Passage, Table, TonedText, clean, one_line
from steelyard.reports.layout import Page
from steelyard.reports.model import Report, in_language

ESCAPES = str.maketrans(
    {character: "\\" + character for character in "\\`*_{}[]#|~$"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
)
# What makes a list, a heading rule or a numbered item at the start of a line.
LINE_START = re.compile(r"^(\d{1,9})?([-+=.)])(?=\s|$|[-=])")
# What begins a name, an issue, a merge request, a milestone, a snippet, a label, an epic or an address somewhere.
SIGILS = re.compile(r"(?:&#64;|\\#|\\~|\\\$|\\\[|&amp;|&#58;|&#46;|!|%|(?i:\bGH-)|/|:)(?=[\w\"/\\])")
WORD_JOINER = "\u2060"
AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(:)|\b(www)(\.)")


def render(report: Report, language: Language | None = None) -> str:
    """The report as a Markdown document."""
    return document(Page(in_language(report, language), brief=False).blocks())


def document(blocks: Iterable[Block]) -> str:
    """Blocks as one Markdown text."""
    return "\n\n".join(part for block in blocks if (part := _block(block))) + "\n"


def inert(markdown: str) -> str:
    """Escaped Markdown in which a code host finds nobody to notify and nothing to link.

    Hosts look for names, issues and addresses in what Markdown made of the text, where escapes are gone already; so an
    invisible character follows each sign that begins one.
    """
    return SIGILS.sub(lambda found: found[0] + WORD_JOINER, markdown)


def escape(text: str) -> str:
    """Text that Markdown shows as it is. Line breaks become `<br>`, the only markup that is added."""
    return "<br>".join(_escape_line(line) for line in clean(text).strip().split("\n"))


def _escape_line(line: str) -> str:
    line = LINE_START.sub(r"\1\\\2", line.strip().translate(ESCAPES))
    return AUTOLINK.sub(lambda m: f"{m[1] or m[3]}&#{ord(m[2] or m[4])};", line)


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {escape(one_line(text))}"
        case Lines(lines, listed):
            escaped = [escape(one_line(line)) for line in lines]
            return "\n".join(f"- {line}" for line in escaped) if listed else "  \n".join(escaped)
        case Table():
            return "\n".join(_table(block))
        case Passage():
            return _passage(block)
        case Entry():
            return "\n".join(_entry(block))


def _table(table: Table) -> Iterator[str]:
    yield _row(table.columns)
    yield _raw_row("---:" if align == "r" else "---" for align in table.align)
    for row in table.rows:
        yield _row(row)


def _row(cells: Iterable[str | TonedText]) -> str:
    return _raw_row(escape(cell.text if isinstance(cell, TonedText) else cell) for cell in cells)


def _raw_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _passage(passage: Passage) -> str:
    parts, at = [], 0
    for start, end in passage.marks:
        # Tags, not asterisks: those do not open or close next to Chinese punctuation.
        parts += [_inner(passage.text[at:start]), "<b>", _inner(passage.text[start:end]), "</b>"]
        at = end
    body = "".join([*parts, _inner(passage.text[at:])]) or "–"
    title = f"<i>{escape(one_line(passage.title))}</i><br>" if passage.title else ""
    return f"> {title}{body}"


def _inner(text: str) -> str:
    """Escaped text that keeps the spaces at its ends, for joining."""
    cleaned = clean(text)
    lead = " " if cleaned[:1] == " " else ""
    tail = " " if cleaned[-1:] == " " else ""
    breaks = "<br>" if cleaned[:1] == "\n" else ""
    after = "<br>" if cleaned[-1:] == "\n" and cleaned.strip() else ""
    return f"{lead}{breaks}{escape(cleaned)}{after}{tail}"


def _entry(entry: Entry) -> Iterator[str]:
    labels = " · ".join(f"<b>{escape(one_line(label.text))}</b>" for label in entry.labels)
    yield f"- {entry.number}\\. {escape(entry.text)}" + (f" — {labels}" if labels else "")
    for name, fact in entry.facts:
        yield f"  - {escape(name)}{' ' if name.endswith(' ') else ''}{escape(one_line(fact))}"
