"""Reading text: which language it is in, where its sentences end, whether a quote really stands in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from steelyard.records import Language

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")

# Enough to tell a script; a megabyte of answer need not be read for it.
LANGUAGE_PREFIX = 4000


def language_of(*texts: str) -> Language:
    """The language a reader of these texts expects. Chinese wins ties: model names are Latin in Chinese text."""
    text = " ".join(part[:LANGUAGE_PREFIX] for part in texts)
    han = HAN.findall(text)
    if not han or len(han) * 2 < len(LATIN_WORD.findall(text)):
        return "en"
    return "zh-Hant" if _is_traditional(han) else "zh-Hans"


def _is_traditional(han: Sequence[str]) -> bool:
    # The two national code pages hold one script each, so a character in only one of them is a vote.
    votes = 0
    for character in han[:1000]:
        votes += _script_vote(character)
    return votes > 0


@lru_cache(maxsize=4096)
def _script_vote(character: str) -> int:
    return _encodable(character, "big5") - _encodable(character, "gb2312")


def _encodable(character: str, encoding: str) -> int:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return 0
    return 1


# --- sentences -------------------------------------------------------------------------------------

CLOSERS = "”’」』）)】]》\"'*_"
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st vs etc inc ltd co corp no fig al approx dept est gen gov sen rep rev "
    "jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k a.m p.m ph.d cf ca".split()
)
LIST_MARK = re.compile(r"\s*(?:[-*+•·▪◦]|#{1,6}|>|\(?\d{1,3}[.)、]|（\d{1,3}）|[①-⑳])\s*")
ENDING = re.compile(rf"(?:[。！？!?…]+|\.+)[{re.escape(CLOSERS)}]*")
WORD_BEFORE = re.compile(r"[A-Za-z.]+\Z")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, without list marks; what asserts nothing readable is left out.

    A line ends a sentence, except that a heading or a line ending in a colon belongs to what follows it.
    """
    found: list[str] = []
    held = ""
    for line in text.splitlines():
        mark = LIST_MARK.match(line)
        body = line[mark.end() :] if mark and mark.end() < len(line) else line
        is_heading = line.lstrip().startswith("#") or body.rstrip().endswith((":", "："))
        if is_heading:
            held = f"{held} {body.strip()}".strip()
            continue
        for sentence in _split_line(body):
            found.append(f"{held} {sentence}".strip())
            held = ""
    if held:
        found.append(held)
    return [sentence for sentence in found if LETTER_OR_DIGIT.search(sentence)]


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for match in ENDING.finditer(line):
        if not _ends_sentence(line, match):
            continue
        if piece := line[start : match.end()].strip():
            yield piece
        start = match.end()
    if tail := line[start:].strip():
        yield tail


def _ends_sentence(line: str, match: re.Match[str]) -> bool:
    """A full stop ends a sentence unless it is part of a number, a name, an abbreviation or an initial."""
    after = line[match.end() : match.end() + 2]
    if match.group()[0] != ".":
        # “真的吗？”他问。 is one sentence: the question ends inside the quotation.
        quoted = match.group()[0] in "？！?!" and match.group()[-1] in '”’」』"'
        return not (quoted and HAN.match(after[:1]))
    if after and not after[0].isspace() and not HAN.match(after[0]):
        return False
    if after[:1].isspace() and after[1:].islower():
        return False
    before = WORD_BEFORE.search(line, max(0, match.start() - 12), match.start())
    word = before.group().lower() if before else ""
    is_initial = len(word) == 1 and bool(after)
    return word not in ABBREVIATIONS and not is_initial


# --- comparing -------------------------------------------------------------------------------------

COMMA_IN_NUMBER = re.compile(r"(?<=\d),(?=\d{3})")
# A point or minus counts only inside or before a number; all other punctuation and spacing is noise.
NOISE = re.compile(r"(?!(?<=\d)\.(?=\d))(?!(?<!\w)-(?=\d))[^\w%°]|_")


@lru_cache(maxsize=2048)
def normalise(text: str) -> str:
    """Text reduced to what a quote must share with its source: width, case, spacing, punctuation removed."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return NOISE.sub("", COMMA_IN_NUMBER.sub("", text))


ELLIPSIS = re.compile(r"…+|\.{3,}|\[\.\.\.\]|⋯+")
SHORTEST_QUOTE = 4


def contains_quote(passage: str, quote: str) -> bool:
    """Whether the quote stands in the passage, word for word after normalising; parts joined by … in order.

    A quote of two or three characters proves nothing unless it is the whole passage.
    """
    parts = [part for part in map(normalise, ELLIPSIS.split(quote)) if part]
    haystack = normalise(passage)
    if not parts or (sum(map(len, parts)) < SHORTEST_QUOTE and "".join(parts) != haystack):
        return False
    at = 0
    for part in parts:
        at = haystack.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def find_quote(passages: Sequence[str], quote: str, named: int | None = None) -> int | None:
    """The index of the passage that holds the quote; the one the judge named is tried first."""
    order = list(range(len(passages)))
    if named is not None and 0 <= named < len(passages):
        order.remove(named)
        order.insert(0, named)
    return next((index for index in order if contains_quote(passages[index], quote)), None)


def overlap(part: str, whole: str) -> float:
    """How much of the part's wording (character pairs) recurs in the whole, from 0 to 1."""
    needle, haystack = normalise(part), normalise(whole)
    pairs = {needle[i : i + 2] for i in range(len(needle) - 1)} or {needle}
    return sum(pair in haystack for pair in pairs) / len(pairs)
