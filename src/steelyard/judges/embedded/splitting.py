"""An answer into atoms: stretches of it, word for word, that are checked one by one; together they are all of it.

What an atom leans on (its question, the sentence before it) is read beside it by whoever judges it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from steelyard.judges.embedded.kinds import GENERIC, is_fallback, kind_of, yes_or_no
from steelyard.tasks import SplitAtom
from steelyard.text import (
    HAN,
    HEADING,
    LETTER_OR_DIGIT,
    LIST_MARK,
    TABLE_RULE,
    THINKING,
    code_blocks,
    fold,
    normalise,
    sentences,
    word_pieces,
)
from steelyard.text.clauses import Link, clauses, states

# A question or a courtesy this short holds no statement; longer ones are kept, so that nothing is passed over.
SHORTEST_STATEMENT = 7
# So many of a sentence's words must recur in the atoms; the protocols ask again below .35.
COVERED = 0.4
# 根据提供的资料，… says where the answer comes from, not what it is.
OPENER = re.compile(r"[^，,:：]{2,40}[，,]\s*")
END = " \t\u3000。；;，,、:："


class _Atoms:
    """Atoms as they are found: numbered, each once, with the links between causes and effects."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.effects: dict[int, int] = {}
        self._known: dict[str, int] = {}

    def add(self, text: str) -> int | None:
        text = tidy(text)
        if not LETTER_OR_DIGIT.search(text):
            return None
        # As in a reader's eyes: width, case and the last stop do not make another statement.
        key = "".join(fold(text).casefold().split()).rstrip(".。;；,，!！")
        if key not in self._known:
            self.texts.append(text)
            self._known[key] = len(self.texts)
        return self._known[key]

    def link(self, cause: int | None, effect: int | None) -> None:
        if cause and effect and cause != effect and self.effects.get(effect) != cause:
            self.effects.setdefault(cause, effect)


def split(answer: str, question: str = "") -> list[SplitAtom]:
    """The atoms of an answer in its own order. An answer that declines as a whole states nothing."""
    return list(_split(answer, question))


# Splitting and judging ask about the same answer one after the other.
@lru_cache(maxsize=64)
def _split(answer: str, question: str) -> tuple[SplitAtom, ...]:
    if is_fallback(answer, question):
        return ()
    atoms = _Atoms()
    for part in THINKING.split(answer):
        _read(part, atoms)
    _cover(answer, atoms)
    if not atoms.texts and yes_or_no(answer) is not None:
        atoms.add(answer)
    return tuple(
        SplitAtom(id=number, text=text, causal_of=atoms.effects.get(number))
        for number, text in enumerate(atoms.texts, 1)
    )


def _read(text: str, atoms: _Atoms) -> None:
    previous: int | None = None
    headings: list[str] = []
    for block in blocks(text):
        if block.kind == "heading":
            headings.append(block.text)
            continue
        if headings:
            _announce(headings, block, atoms)
            headings = []
        if block.kind in ("code", "row"):
            previous = atoms.add(_under(block.prefix, block.text))
            continue
        for at, sentence in enumerate(sentences(block.text)):
            if not states_nothing(sentence):
                # Every sentence of a list item completes its introduction; of a paragraph only the first does.
                prefix = block.prefix if block.kind == "item" or at == 0 else ""
                previous = _take(sentence, prefix, atoms, previous) or previous


def _announce(headings: Sequence[str], block: AnswerBlock, atoms: _Atoms) -> None:
    """Add headings that say more than the first sentence under them; the protocols read both as one sentence."""
    first = next(iter(sentences(block.text)), "")
    if not _is_covered(" ".join((*headings, first)), word_pieces(_under(block.prefix, first))):
        for sentence in (sentence for heading in headings for sentence in sentences(heading)):
            atoms.add(sentence)


def states_nothing(sentence: str) -> bool:
    """A question, a greeting or a word too short to inform."""
    if sentence.endswith(("?", "？")) and kind_of(sentence) == "question":
        return True
    return len(normalise(sentence)) <= SHORTEST_STATEMENT and kind_of(sentence) in ("greeting", "meta", "question")


def _take(sentence: str, prefix: str, atoms: _Atoms, previous: int | None) -> int | None:
    """Add the atoms of one sentence and link them; `previous` is the last atom before it."""
    opener = OPENER.match(sentence)
    if opener and kind_of(opener.group()) == "meta":
        sentence = sentence[opener.end() :]
    found: list[tuple[int | None, Link]] = [
        (atoms.add(_under(prefix, clause.text)), clause.link) for clause in clauses(sentence)
    ]
    for at, (number, link) in enumerate(found):
        before = found[at - 1][0] if at else previous
        if link == "effect":
            atoms.link(before, number)
        elif link == "because":
            # 因为甲，乙 and 乙，因为甲.
            atoms.link(number, found[at + 1][0] if at == 0 and len(found) > 1 else before)
    return found[-1][0]


def _under(prefix: str, text: str) -> str:
    """An item or a row after the heading or introduction that it completes; one that repeats it needs no more."""
    name = prefix.rstrip(":： ")
    return text if not name or name in text or kind_of(prefix) == "meta" else f"{prefix}{text}"


def _cover(answer: str, atoms: _Atoms) -> None:
    """Add each sentence whole that the atoms do not speak of."""
    said = word_pieces("\n".join(atoms.texts))
    for sentence in sentences(answer):
        for added in (unmarked(sentence), sentence):
            if not _is_covered(sentence, said) and not states_nothing(sentence):
                atoms.add(added)
                said |= word_pieces(added)


def _is_covered(text: str, said: set[str]) -> bool:
    wanted = word_pieces(text)
    return len(wanted & said) >= COVERED * len(wanted)


def tidy(text: str) -> str:
    """An atom without the stop that ended its sentence, in Chinese; English keeps its full stop."""
    text = text.strip()
    return text.rstrip(END) if HAN.search(text) else text.rstrip(" ,;:\t")


# --- an answer as a page: lines of prose, list items, table rows and code -------------------------------

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


class AnswerBlock(NamedTuple):
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


def blocks(answer: str) -> Iterator[AnswerBlock]:
    """The blocks of an answer in order; lines without a letter or a digit say nothing."""
    lines = answer.splitlines()
    code = code_blocks(lines)
    heading = introduction = ""
    listing = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if end := code.get(at):
            yield AnswerBlock("code", "\n".join(lines[at + 1 : end]).strip())
            at = end + 1
            continue
        if size := _table(lines, at):
            # A table stands under its heading; an introduction above it has said what it is about.
            yield from (AnswerBlock("row", text, heading) for text in _rows(lines[at : at + size]))
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
            yield AnswerBlock("heading", body)
        elif body.endswith((":", "：")) and len(body) <= LONGEST_INTRODUCTION:
            # An introduction of several clauses states something by itself.
            *before, last = CLAUSE_END.split(body)
            introduction, listing = last.strip() + " " * body.endswith(":"), False
            yield AnswerBlock("prose" if any(map(states, before)) else "heading", body)
        elif mark and mark.group().strip() != ">":
            listing = True
            yield AnswerBlock("item", body, introduction or heading)
        else:
            # A paragraph ends the list that an introduction opened; a blank line does not.
            yield AnswerBlock("prose", body, "" if listing else introduction)
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
