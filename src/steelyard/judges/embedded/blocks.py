"""An answer as a page: its lines of prose, list items, table rows and code, each with what introduces it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.clauses import states
from steelyard.text import HAN, HEADING, LETTER_OR_DIGIT, LIST_MARK, TABLE_RULE, code_blocks

LONGEST_HEADING = 40
LONGEST_INTRODUCTION = 80

IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*\)")
LINK = re.compile(r"\[([^\[\]]+)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
CITATION = re.compile(
    r"\s?(?:\[\^?\d{1,3}(?:[,，\-–]\s?\d{1,3}){0,9}\]|\[citation:\d{1,3}\]|【\d{1,3}(?:†[^】]{0,30})?】)"
)
TAG = re.compile(r"</?(?:b|i|u|em|strong|p|br|span|sup|sub|code|li|ul|ol|h[1-6])\s?/?>", re.IGNORECASE)
EMPHASIS = re.compile(
    r"(\*\*\*|\*\*|~~|`)(?=\S)([^*`~\n]*\S|\S)\1"
    r"|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\*(?![\w*])|(?<!\w)__(?=\S)([^_\n]*\S|\S)__(?!\w)"
)
BOLD_LINE = re.compile(r"\s*\*\*([^*\n]+)\*\*[:：]?\s*")
CLAUSE_END = re.compile(r"[，；。;]|[,.!?]\s")
SEPARATOR = re.compile(r"\s*(?:[-*_=]\s?){3,}\s*")
# What a heading says of its place on the page, not of the subject.
NUMBER = re.compile(r"^[第（(]?[一二三四五六七八九十\d]{1,3}[、.．）)章节]\s*")
GENERIC = re.compile(
    r"[总總][结結]|小[结結]|概述|[简簡]介|介[绍紹]|答案|回答|[结結][论論]|背景|[说說]明|[补補]充|注意(?:事[项項])?"
    r"|[参參]考[资資]料|(?:主要|[关關][键鍵]|具体|具體)?(?:内容|內容|信息|要[点點]|步[骤驟]|方法)"
    r"|summary|overview|introduction|conclusion|answer|notes?|references?|sources?|background|details?|steps?"
    r"|key points?|tl;?dr",
    re.IGNORECASE,
)


class Block(NamedTuple):
    """One line of an answer without its marks; `prefix` is the heading or introduction that an item completes."""

    kind: Literal["prose", "item", "row", "code", "heading"]
    text: str
    prefix: str = ""


def unmarked(text: str) -> str:
    """The text as a reader sees it: emphasis, links, citations and tags resolved."""
    text = LINK.sub(r"\1", IMAGE.sub(r"\1", text)) if "](" in text else text
    text = CITATION.sub("", TAG.sub(" ", text))
    for _ in range(2):  # **bold with `code` inside**
        text = EMPHASIS.sub(lambda mark: next((group for group in mark.groups()[1:] if group), ""), text)
    return text.strip()


def blocks(answer: str) -> Iterator[Block]:
    """The blocks of an answer in order; lines without a letter or a digit say nothing."""
    lines = answer.splitlines()
    code = code_blocks(lines)
    heading = introduction = ""
    listing = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if end := code.get(at):
            yield Block("code", "\n".join(lines[at + 1 : end]).strip())
            at = end + 1
            continue
        if size := _table(lines, at):
            # A table stands under its heading; an introduction above it has said what it is about.
            yield from (Block("row", text, heading) for text in _rows(lines[at : at + size]))
            at += size
            continue
        at += 1
        if not LETTER_OR_DIGIT.search(line) or SEPARATOR.fullmatch(line):
            continue
        mark = LIST_MARK.match(line)
        body = unmarked(line[mark.end() :] if mark else line)
        if not body:
            continue
        if HEADING.match(line) or _is_bold_heading(line):
            heading, listing = _prefix(body), False
            introduction = "" if HEADING.match(line) else heading
            yield Block("heading", body)
        elif body.endswith((":", "：")) and len(body) <= LONGEST_INTRODUCTION:
            # An introduction of several clauses states something by itself.
            *before, last = CLAUSE_END.split(body)
            introduction, listing = last.strip() + " " * body.endswith(":"), False
            yield Block("prose" if any(map(states, before)) else "heading", body)
        elif mark and mark.group().strip() != ">":
            listing = True
            yield Block("item", body, introduction or heading)
        else:
            # A paragraph ends the list that an introduction opened; a blank line does not.
            yield Block("prose", body, "" if listing else introduction)
            introduction = ""


def _is_bold_heading(line: str) -> bool:
    bold = BOLD_LINE.fullmatch(line)
    return bold is not None and len(bold[1]) <= LONGEST_HEADING and not bold[1].rstrip().endswith(tuple("。.!！?？"))


def _prefix(heading: str) -> str:
    """What an item under this heading begins with; nothing where the heading could stand in any answer."""
    name = NUMBER.sub("", heading).rstrip(":： ")
    is_bare = bool(GENERIC.fullmatch(name)) or len(name) > LONGEST_HEADING
    return "" if is_bare else f"{name}：" if HAN.search(name) else f"{name}: "


def _table(lines: Sequence[str], at: int) -> int:
    """How many lines the table that begins here has; 0 where none begins."""
    rule = lines[at + 1] if at + 1 < len(lines) else ""
    if "|" not in lines[at] or "--" not in rule or "|" not in rule or not TABLE_RULE.fullmatch(rule):
        return 0
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return end - at


def _rows(lines: Sequence[str]) -> Iterator[str]:
    """What the cells of a table say, one statement each: the row's name, the column's name, the value."""
    head = _cells(lines[0])
    for line in lines[2:]:
        name, *values = _cells(line) or [""]
        columns = [*head[1:], *[""] * len(values)]
        cells = zip(columns, values, strict=False)
        said = [_cell(name, column, value) for column, value in cells if LETTER_OR_DIGIT.search(value)]
        yield from said or ([name] if LETTER_OR_DIGIT.search(name) else [])
    if len(lines) == 2:
        yield " ".join(head)


def _cell(name: str, column: str, value: str) -> str:
    is_chinese = bool(HAN.search(name + column + value))
    place = ("，" if is_chinese else ", ").join(filter(None, (name, column)))
    return f"{place}{'：' if is_chinese else ': '}{value}" if place else value


def _cells(line: str) -> list[str]:
    return [unmarked(cell.strip()) for cell in line.strip().strip("|").split("|")]
