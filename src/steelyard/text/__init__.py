"""Reading text: which language it is in, where its sentences end, whether a quote really stands in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from steelyard.records import Language

HAN = re.compile(r"[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
WORD = re.compile(r"[^\W_]+")

# Enough to tell a script; a megabyte of answer need not be read for it.
LANGUAGE_PREFIX = 4000
# Longer texts are not kept in memory only to save reading them a second time.
REMEMBERED = 5000

# Only the characters that our own patterns use, so that each pattern is written once for both scripts.
SIMPLIFIED = str.maketrans(
    "過於個話點條內須應覆復輸開頭結該當從則標準評規視無記務給確認對號審員專斷為終狀態輪轉據閱讀時請現這將說語體長簡漢與並來後詞類檢劃級數實關價總滿兩萬億負約餘質問題測試訴裡還們聽會導進統網機樣單獨帶發隨別僅範圍鍵錯誤項寫強達",
    "过于个话点条内须应复复输开头结该当从则标准评规视无记务给确认对号审员专断为终状态轮转据阅读时请现这将说语体长简汉与并来后词类检划级数实关价总满两万亿负约余质问题测试诉里还们听会导进统网机样单独带发随别仅范围键错误项写强达",
)


def language_of(*texts: str) -> Language:
    """The language a reader of these texts expects. Chinese wins ties: model names are Latin in Chinese text.

    What is neither Chinese nor English (Japanese, emoji, nothing) is addressed in English.
    """
    text = " ".join(part[:LANGUAGE_PREFIX] for part in texts)
    if text.isascii():
        return "en"
    han = len(HAN.findall(text))
    if not han or han * 2 < len(LATIN_WORD.findall(text)) or han < len(KANA.findall(text)):
        return "en"
    simplified, traditional = script_votes(text)
    return "zh-Hant" if traditional > simplified else "zh-Hans"


class ScriptVotes(NamedTuple):
    """How many characters exist in only one of the two Chinese scripts."""

    simplified: int
    traditional: int


def script_votes(text: str) -> ScriptVotes:
    votes = [_script_vote(character) for character in HAN.findall(text)]
    return ScriptVotes(votes.count(-1), votes.count(1))


@lru_cache(maxsize=4096)
def _script_vote(character: str) -> int:
    # The two national code pages hold one script each, so a character in only one of them is a vote.
    return _encodable(character, "big5") - _encodable(character, "gb2312")


def _encodable(character: str, encoding: str) -> int:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return 0
    return 1


def converted(text: str, direction: Literal["t2s", "s2t", "s2twp"]) -> str:
    """The text in the other script, by OpenCC's names for them."""
    try:
        return str(_converter(direction).convert(text))
    except UnicodeEncodeError:  # half of a character
        return str(_converter(direction).convert(text.encode(errors="replace").decode()))


@cache
def _converter(direction: str) -> Any:
    from opencc import OpenCC

    return OpenCC(direction)


def in_simplified(text: str) -> str:
    """The text with Simplified characters for Traditional ones, to compare."""
    return converted(text, "t2s") if HAN.search(text) else text


@lru_cache(maxsize=256)
def in_traditional(text: str) -> str:
    """The text as it is written in Taiwan, words included."""
    return converted(text, "s2twp")


# What a reason shows of the judged texts stands in “” or after a colon.
SHOWN = re.compile(r"(“[^”]*+(?:”|\Z)|：(?:“[^”]*+(?:”|\Z)|[^；“])*+)")


def reason_in_traditional(reason: str) -> str:
    """A reason in Traditional characters; what it shows of the judged texts stays as it is written there."""
    return "".join(piece if at % 2 else in_traditional(piece) for at, piece in enumerate(SHOWN.split(reason)))


# --- sentences -------------------------------------------------------------------------------------

ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st vs etc inc ltd co corp al approx dept est gen gov sen rep rev "
    "jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k a.m p.m ph.d cf ca".split()
)
# What may end a sentence as well: "…at Acme Inc. He left." The rest never does: "Dr. He".
MAY_END = frozenset("inc ltd co corp etc jr sr u.s u.k a.m p.m ph.d al".split()) | frozenset(
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
BEGINS_SENTENCE = re.compile(
    r"\s+[\"'“‘(]?(?:He|She|It|They|We|You|This|That|These|Those|The|There|His|Her|Its|Their|Our|However|But|And|In|On|At"
    r"|After|Before|When|While|If|For|As|A|An|Both|Today|Later|Then)\s"
)
# "The answer is no." ends a sentence, "No. 5" does not.
BEFORE_NUMBER = frozenset("no nos fig figs vol p pp sec ch eq art".split())
# A mark needs what follows it to be apart: -5 is a number, 3.5 is one too, **bold** is not a bullet.
LIST_MARK = re.compile(
    r"[ \t\u3000]*(?:(?:[-+•·▪◦]|\*(?!\*)|\d{1,3}[.)]|\(\d{1,3}\))(?:[ \t\u3000]+|$|(?=[\u3400-\u9fff]))"
    r"|#{1,6}(?:[ \t]+|$)|>|\d{1,3}、|（\d{1,3}）|[①-⑳])[ \t\u3000]*"
)
HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
TABLE_RULE = re.compile(r"[ \t|:-]*")
CODE_BLOCK = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[ \t]*+")
PROSE = frozenset(("", "markdown", "md", "text", "txt", "plain", "plaintext"))
CLOSER = "”’」』）)】\\]》"
CITATION = r"\[\^?\d{1,3}\]"
ENDING = re.compile(rf"(?:[。｡！？!?]+|…+|⋯+|\.+)(?:{CITATION}|[{CLOSER}]|[\"'*_]+)*")
SYMMETRIC = re.compile(rf"(?<=[。｡！？!?…⋯.{CLOSER}])[\"'*_]+")
WORD_BEFORE = re.compile(r"[A-Za-z.]{1,12}\Z")
LONGEST_QUOTATION = 500
# What a model thought before it answered stands apart from the answer, even on the same line.
THINKING = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
# The number of a list item inside a line; the 40 of 17:40 and the 50 of 3.50 are none.
NUMBER_BEFORE = re.compile(r"(?:\A|(?<!\d)[:：;；。.!?！？]|[:：;；。.!?！？](?=\s))\s*\d{1,2}\Z")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, without list marks; what asserts nothing readable is left out.

    A line ends a sentence, except that a heading, a table's head or a piece that ends in a colon belongs
    to what follows it. A block of code is one sentence.
    """
    return list(_known_sentences(text) if len(text) <= REMEMBERED else _sentences(text))


def _sentences(text: str) -> tuple[str, ...]:
    found: list[str] = []
    held: list[str] = []
    for piece, is_held in _pieces(text):
        if not LETTER_OR_DIGIT.search(piece):
            continue
        held.append(piece)
        if not is_held:
            found.append(" ".join(held))
            held = []
    return (*found, " ".join(held)) if held else tuple(found)


# A protocol and its checks want the sentences of the same answer, one soon after the other.
_known_sentences = lru_cache(maxsize=512)(_sentences)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, each with whether it waits for the next one."""
    lines = THINKING.sub("\n", text).splitlines()
    blocks = code_blocks(lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        if end := blocks.get(at):
            if code := "\n".join(lines[at + 1 : end]).strip():
                yield code, False
            at = end
        elif not CODE_BLOCK.fullmatch(line):
            mark = LIST_MARK.match(line)
            body = line[mark.end() :] if mark else line
            if mark and not body:
                yield line.strip(), True
            elif HEADING.match(line) or _is_table_head(line, lines[at + 1 : at + 2]):
                yield body.strip(), True
            else:
                yield from ((piece, piece.endswith((":", "："))) for piece in _split_line(body))
        at += 1


def code_blocks(lines: Sequence[str]) -> dict[int, int]:
    """Where blocks of code begin and end. What is never closed, or says that it is prose, is read as prose."""
    blocks: dict[int, int] = {}
    opened: tuple[int, str, str] | None = None
    for index, line in enumerate(lines):
        fence = CODE_BLOCK.fullmatch(line)
        if fence is None:
            continue
        if opened is None:
            opened = index, fence[1], fence[2].lower()
        elif fence[1] == opened[1] and not fence[2]:
            if opened[2] not in PROSE:
                blocks[opened[0]] = index
            opened = None
    return blocks


def _is_table_head(line: str, following: Sequence[str]) -> bool:
    return "|" in line and any("--" in rule and "|" in rule and TABLE_RULE.fullmatch(rule) for rule in following)


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for match in ENDING.finditer(line):
        end = _own_end(line, start, match)
        if not _ends_sentence(line, start, match, end):
            continue
        if piece := line[start:end].strip():
            yield piece
        start = end
    if tail := line[start:].strip():
        yield tail


def _own_end(line: str, start: int, match: re.Match[str]) -> int:
    """Where the sentence's own closing marks end: a quotation mark that closes nothing opens the next sentence."""
    for marks in SYMMETRIC.finditer(line, match.start(), match.end()):
        if line.count(marks.group(), max(start, match.start() - LONGEST_QUOTATION), match.start()) % 2 == 0:
            return marks.start()
    return match.end()


def _ends_sentence(line: str, start: int, match: re.Match[str], end: int) -> bool:
    """A stop ends a sentence unless it is part of a number, a name, an address, an abbreviation or a quotation."""
    stop, closed = match.group()[0], line[end - 1]
    after = line[end : end + 2]
    goes_on = after[:1].isspace() and after[1:].islower()
    is_quoted = closed in "”’」』\"'"
    if stop in "。｡":
        return True
    if stop in "！？!?":
        # “真的吗？”他问。 is one sentence: the question ends inside the quotation.
        if is_quoted and (HAN.match(after) or goes_on):
            return False
        if stop in "！？" or not after or after[0].isspace() or HAN.match(after[0]):
            return True
        return bool(HAN.match(line[match.start() - 1 : match.start()]))
    if stop in "…⋯" or match.group().startswith(".."):
        return not after or (after[0].isspace() and not goes_on)
    if goes_on or (after and not after[0].isspace() and not HAN.match(after[0])):
        return False
    # A piece of the line, so that a number right after the last sentence is seen to begin the next.
    if after and NUMBER_BEFORE.search(line[max(start, match.start() - 6) : match.start()]):
        return False
    before = WORD_BEFORE.search(line, max(start, match.start() - 12), match.start())
    word = before.group().lower() if before else ""
    if word in BEFORE_NUMBER:
        return not after[1:].isdigit()
    is_initial = len(word) == 1 and bool(after)
    if word in MAY_END and after:
        return bool(BEGINS_SENTENCE.match(line, end))
    return word not in ABBREVIATIONS and not is_initial


# --- comparing -------------------------------------------------------------------------------------

# Sorting a long run of combining marks takes quadratic time, so long texts are folded piece by piece.
FOLDED_AT_ONCE = 1000
MINUS = str.maketrans(dict.fromkeys("−﹣－‒–", "-"))
COMMA_IN_NUMBER = re.compile(r"(?<=\d)[,'](?=\d{3}(?!\d))")
# Between digits any mark keeps them apart: 3-5 is not 35. A minus counts where no letter or digit stands before it.
# What is said of a number is part of it: $100 is not €100, <5 not >5, 5‰ not 5.
NOISE = re.compile(
    r"(?P<sign>[$€£¥₩<>≤≥±](?=\s?\d)|(?<=\d)‰)|(?P<point>(?<=\d)\.(?=\d))|(?P<minus>(?<![a-z0-9])-(?=\d))|(?P<between>(?<=\d)(?:[^\w%°$€£¥₩<>≤≥±‰]|_)++(?=\d))|[^\w%°]|_"
)
KEPT = {"point": ".", "minus": "-", "between": " "}


def fold(text: str) -> str:
    """Compatibility form (full-width to half-width, composed), in linear time whatever the text is."""
    if len(text) <= FOLDED_AT_ONCE:
        return unicodedata.normalize("NFKC", text)
    parts, start = [], 0
    while start < len(text):
        end = min(start + FOLDED_AT_ONCE, len(text))
        limit = min(end + FOLDED_AT_ONCE, len(text))
        while end < limit and unicodedata.combining(text[end]):
            end += 1
        parts.append(unicodedata.normalize("NFKC", text[start:end]))
        start = end
    return "".join(parts)


@lru_cache(maxsize=256)
def normalise(text: str) -> str:
    """Text reduced to what a quote must share with its source: width, case, spacing, punctuation removed."""
    # Before folding: ０，１００ is a list of two numbers, 0,100 is not.
    text = fold(COMMA_IN_NUMBER.sub("", text)).casefold().translate(MINUS)
    return NOISE.sub(_kept, text)


def _kept(noise: re.Match[str]) -> str:
    return noise.group() if noise.lastgroup == "sign" else KEPT.get(noise.lastgroup or "", "")


ELLIPSIS = re.compile(r"…+|\.{3,}|\[\.\.\.\]|⋯+")
SHORTEST_QUOTE = 4
PLAIN_QUOTE = 12
SHORTEST_PART = 2
PLAIN_LOOKS = 16


def contains_quote(passage: str, quote: str) -> bool:
    """Whether the quote stands in the passage, word for word after normalising; parts joined by … in order.

    A quote of two or three characters proves nothing unless it is the whole passage.
    """
    return (_known_quote if len(passage) + len(quote) <= REMEMBERED else _holds_quote)(passage, quote)


def _holds_quote(passage: str, quote: str) -> bool:
    needle = normalise(quote)
    if len(needle) >= PLAIN_QUOTE and _find(passage, quote, 0) is not None:
        return True  # most judges copy faithfully, and normalising a passage costs far more than looking
    haystack = normalise(passage)
    if not needle or (len(needle) < SHORTEST_QUOTE and needle != haystack):
        return False
    if _find(haystack, needle, 0) is not None:
        return True
    at = 0
    for part in filter(None, map(normalise, ELLIPSIS.split(quote))):
        found = _find(haystack, part, at)
        if found is None or len(part) < SHORTEST_PART:
            return False
        at = found + len(part)
    return True


# Asked once when the evidence is checked and once when it is shown.
_known_quote = lru_cache(maxsize=1024)(_holds_quote)


def _find(haystack: str, needle: str, start: int) -> int | None:
    """Where the needle stands without cutting a number in two: 20个 is not found in 120个, nor 5度 in -5度."""
    for at in places(haystack, needle, start):
        before, after = haystack[max(0, at - 2) : at], haystack[at + len(needle) : at + len(needle) + 2]
        cuts_before = needle[0].isdigit() and bool(re.search(r"\d[.,]?\Z|[-−]\Z", before))
        cuts_after = needle[-1].isdigit() and bool(re.match(r"[.,]?\d", after))
        if not cuts_before and not cuts_after:
            return at
    return None


def places(haystack: str, needle: str, start: int) -> Iterator[int]:
    """Where the needle stands, also where it overlaps itself.

    After some places by Knuth, Morris and Pratt: to look for half a megabyte of ones in a megabyte of them, each time
    from the next character, takes hours.
    """
    for _ in range(PLAIN_LOOKS):
        at = haystack.find(needle, start)
        if at < 0:
            return
        yield at
        start = at + 1
    borders, matched = [0], 0
    for character in needle[1:]:
        while matched and character != needle[matched]:
            matched = borders[matched - 1]
        matched += character == needle[matched]
        borders.append(matched)
    matched = 0
    for at in range(start, len(haystack)):
        while matched and (matched == len(needle) or haystack[at] != needle[matched]):
            matched = borders[matched - 1]
        matched += haystack[at] == needle[matched]
        if matched == len(needle):
            yield at + 1 - matched


def find_quote(passages: Sequence[str], quote: str, named: int | None = None) -> int | None:
    """The index of the passage that holds the quote; the one the judge named is tried first."""
    if named is not None and 0 <= named < len(passages) and contains_quote(passages[named], quote):
        return named
    for index, passage in enumerate(passages):
        if contains_quote(passage, quote):
            return index
    return None


def word_pieces(text: str) -> set[str]:
    """What can recur when a text is reworded: pairs of Chinese characters, beginnings of longer words, numbers."""
    pieces = set[str]()
    for match in WORD.finditer(text.casefold()):
        word = match.group()
        if HAN.search(word):
            pieces.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) > 3 or word.isdecimal():
            pieces.add(word[:5])
    return pieces
