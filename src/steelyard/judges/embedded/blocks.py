"""An answer as a page: its lines of prose, list items and table rows, each with the heading it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from steelyard.text import HAN, HEADING, LETTER_OR_DIGIT, LIST_MARK, TABLE_RULE, code_blocks

LONGEST_HEADING = 40
LONGEST_CELL = 24

IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*\)")
LINK = re.compile(r"\[([^\[\]]+)\]\((?:[^()\s]*)(?:\s+\"[^\"]*\")?\)")
CITATION = re.compile(
    r"\s?(?:\[\^?\d{1,3}(?:[,，\-–]\s?\d{1,3}){0,9}\]|\[citation:\d{1,3}\]|【\d{1,3}(?:†[^】]{0,30})?】)"
)
TAG = re.compile(r"</?(?:b|i|u|em|strong|p|br|span|sup|sub|code|li|ul|ol|h[1-6])\s?/?>", re.IGNORECASE)
EMPHASIS = re.compile(
    r"(\*\*\*|\*\*|~~|`)(?=\S)([^*`~\n]*\S|\S)\1"
    r"|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*]|[^\s*])\*(?![\w*])|(?<!\w)__(?=\S)([^_\n]*\S|\S)__(?!\w)"
)
BOLD_LINE = re.compile(r"\s*\*\*([^*\n]+)\*\*[:：]?\s*")
SEPARATOR = re.compile(r"\s*(?:[-*_=]\s?){3,}\s*")
# What a heading says of its place on the page, not of the subject.
NUMBER = re.compile(
    r"^(?:第?[一二三四五六七八九十\d]{1,3}[、.．）)章节]|[（(][一二三四五六七八九十\d]{1,3}[）)]|[IVX]{1,4}\.)\s*"
)
GENERIC = re.compile(
    r"总结|總結|小结|小結|概述|概览|简介|簡介|介绍|介紹|答案|回答|结论|結論|正文|背景|说明|說明|补充|補充|其他|其它"
    r"|(?:参考|參考)(?:资料|資料|文献|文獻)?|注意(?:事项|事項)?|要点|要點|(?:主要|关键|核心|具体)?(?:内容|信息|要点"
    r"|步骤|方法)"
    r"|summary|overview|introduction|conclusion|answer|notes?|references?|sources?|background|details?|steps?"
    r"|key points?"
    r"|tl;?dr",
    re.IGNORECASE,
)


class Block(NamedTuple):
    """One line of an answer without its marks. `heading` is what a list item or a row belongs to."""

    kind: Literal["prose", "item", "row", "code", "heading"]
    text: str
    heading: str = ""


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
    heading = intro = ""
    listing = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if end := code.get(at):
            yield Block("code", "\n".join(lines[at + 1 : end]).strip())
            at = end + 1
            continue
        if table := _table(lines, at):
            context = heading if listing else intro or heading
            yield from (Block("row", text, context) for text in _rows(lines[at : at + table]))
            at += table
            continue
        at += 1
        if not LETTER_OR_DIGIT.search(line) or SEPARATOR.fullmatch(line):
            continue
        mark = LIST_MARK.match(line)
        body = unmarked(line[mark.end() :] if mark else line)
        if not body:
            continue
        if HEADING.match(line) or ((bold := BOLD_LINE.fullmatch(line)) and len(bold[1]) <= LONGEST_HEADING):
            heading, intro, listing = _named(body), "", False
            yield Block("heading", body)
        elif body.endswith((":", "：")) and len(body) <= LONGEST_HEADING * 2:
            intro, listing = body, False
            yield Block("heading", body)
        elif mark:
            listing = True
            yield Block("item", body, intro or heading)
        else:
            # A paragraph ends the list that an introduction opened; a blank line does not.
            yield Block("prose", body, intro if len(body) <= LONGEST_HEADING and not listing else "")
            intro = ""


def _named(heading: str) -> str:
    name = NUMBER.sub("", heading).rstrip(":： ")
    return "" if GENERIC.fullmatch(name) else name


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
        said = [
            (column, value) for column, value in zip(head[1:], values, strict=False) if LETTER_OR_DIGIT.search(value)
        ]
        extra = [value for value in values[max(0, len(head) - 1) :] if LETTER_OR_DIGIT.search(value)]
        yield from (_statement(name, column, value) for column, value in said)
        yield from (f"{name}：{value}" if HAN.search(name + value) else f"{name}: {value}" for value in extra)
        if not said and not extra and LETTER_OR_DIGIT.search(name):
            yield name
    if len(lines) == 2:
        yield " ".join(head)


def _statement(name: str, column: str, value: str) -> str:
    if not name or not column:
        return " ".join(filter(None, (name, column, value)))
    if HAN.search(name + column + value):
        is_plain = len(value) <= LONGEST_CELL and not re.search(r"[，。；,;:：]", value)
        return f"{name}的{column}是{value}" if is_plain else f"{name}的{column}：{value}"
    return f"{column} of {name}: {value}"


def _cells(line: str) -> list[str]:
    return [unmarked(cell.strip()) for cell in line.strip().strip("|").split("|")]
