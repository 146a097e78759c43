"""Names for what texts share or lack, as they write it themselves: 關閉 for 关闭, L9 for l9, 40℃ for 40°c."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from steelyard.judges.embedded.facts import HAN_UNITS
from steelyard.judges.embedded.meaning import HAN_RUN, STOP_CHARACTERS, pieces, plain, words
from steelyard.text import fold

# A word, a number or a code with all that belongs to it: CA1832, 20:00, two-year, 40°c, $12.
MARK = re.compile(
    r"[$€£¥]?[a-z0-9\u00c0-\u024f]+(?:(?:(?<=\d)[.,:](?=\d)|['/_-])[a-z0-9\u00c0-\u024f]+)*(?:°c|°f|[%°])?"
)
# What hangs on a stretch without being part of what it names: 是陈建国, 的儿子, 离婚了. 了解 and 有效 are words.
LEADING = re.compile(
    r"(?:[的吗呢吧啊呀嘛们很也您我你他她它]|于(?!是)|这个?|那个?|了(?!解)|个(?![人体性别])|是(?![否非])"
    r"|有(?![效限关机趣利力名害毒意时])|没有)+"
)
TRAILING = re.compile(
    r"(?:[的了吗呢吧啊呀嘛您我你他她它]|(?<=.)们|(?<![但可还就不总都若凡只])是|(?<![作行成认因称视以])为|(?<![存现正实内])在)+\Z"
)
LONGEST_NAMED = 30
UNIT = re.compile(HAN_UNITS)
# X2续航 counts nothing.
NUMBER_BEFORE = re.compile(r"(?<![a-z0-9.,:-])[0-9][0-9.,:]*\Z")


def as_written(stretch: str, texts: Iterable[str]) -> str:
    """A stretch as one of the texts writes it, the first that holds it; where none does, as it is."""
    low, texts = plain(stretch), tuple(texts)
    if not low.strip() or any(_find(text, stretch) is not None for text in texts):
        return stretch
    for text in texts:
        if (at := _find(plain(text), low)) is not None:
            return slice_of(text, at, at + len(low))
    return stretch


def _find(text: str, stretch: str) -> int | None:
    """Where it stands as words of its own: the l of l9 is not that of metal."""
    at = text.find(stretch)
    while at >= 0:
        if not _is_inside_word(text, at) and not _is_inside_word(text, at + len(stretch)):
            return at
        at = text.find(stretch, at + 1)
    return None


def _is_inside_word(text: str, at: int) -> bool:
    beside = text[max(0, at - 1) : at + 1]
    return len(beside) == 2 and at > 0 and beside.isascii() and beside.isalnum()


def slice_of(text: str, start: int, end: int) -> str:
    """What a text has from `start` to `end` of its folded form."""
    low = plain(text)
    if plain(text[start:end]) == low[start:end] and len(text) == len(low):
        return text[start:end]
    places = _places(text)
    if len(places) != len(low):
        # Marks that were composed while folding: no character is the other's counterpart.
        return low[start:end]
    return text[places[start] : places[end - 1] + 1] if end > start else ""


@lru_cache(maxsize=64)
def _places(text: str) -> tuple[int, ...]:
    """For each character of the folded text, which one of the text it comes from: ℃ becomes two."""
    return tuple(at for at, character in enumerate(text) for _ in fold(character).casefold())


# --- stretches worth naming ------------------------------------------------------------------------


class _Stretch(NamedTuple):
    start: int
    end: int


def lacking(claim: str, window: str, everything: str) -> list[str]:
    """What the claim says and the window does not, nor any other place of the passages, in order.

    Of Chinese these are whole stretches: no list of words says where a word ends inside of one.
    """
    low, near, far = plain(claim), plain(window), plain(everything)
    held = frozenset((*words(window), *words(everything)))
    marks = (
        _Stretch(mark.start(), mark.end() + _unit(low, mark.end()))
        for mark in MARK.finditer(low)
        if not held.issuperset(words(mark.group()))
    )
    runs = ((run.start() + _unit(low, run.start()), run.end()) for run in HAN_RUN.finditer(low))
    gaps = (gap for run in runs for gap in _han(low, *run, lambda pair: pair in near, False))
    return _named(claim, [*marks, *(gap for gap in gaps if low[gap.start : gap.end] not in far)])


def taken_up(text: str, focus: Collection[str]) -> list[str]:
    """What a text says of some content words (`meaning.words`), in order."""
    low = plain(text)
    marks = (
        _Stretch(mark.start(), mark.end())
        for mark in MARK.finditer(low)
        if (said := words(mark.group())) and all(word in focus for word in said)
    )
    runs = (run.span() for run in HAN_RUN.finditer(low))
    return _named(text, [*marks, *(one for run in runs for one in _han(low, *run, lambda pair: pair in focus, True))])


def _named(text: str, stretches: Iterable[_Stretch]) -> list[str]:
    written = (slice_of(text, start, min(end, start + LONGEST_NAMED)) for start, end in sorted(stretches))
    return list(dict.fromkeys(written))


def _unit(low: str, at: int) -> int:
    """The length of what the number before this place counts, which belongs to the number: the 个月 of 24个月."""
    run = HAN_RUN.match(low, at)
    if not run or not NUMBER_BEFORE.search(low, max(0, at - LONGEST_NAMED), at):
        return 0
    if unit := UNIT.match(run.group()):
        return unit.end()
    return 0 if run.group()[0] in STOP_CHARACTERS else len(pieces(run.group())[0])


def _han(low: str, begin: int, end: int, is_held: Callable[[str], bool], wanted: bool) -> Iterator[_Stretch]:
    """The stretches of a run of Chinese whose pairs are held, or those no pair of which is."""
    held = [is_held(low[at : at + 2]) for at in range(begin, end - 1)]
    covered = [before or after for before, after in zip([False, *held], [*held, False], strict=True)]
    for is_covered, group in groupby(enumerate(covered, begin), lambda one: one[1]):
        places = [at for at, _ in group]
        if is_covered is wanted:
            yield from _trimmed(low, places[0], places[-1] + 1)


def _trimmed(low: str, start: int, end: int) -> Iterator[_Stretch]:
    """The stretch without what hangs on it, unless nothing that can be named is left."""
    leading = LEADING.match(low, start, end)
    start = leading.end() if leading else start
    trailing = TRAILING.search(low[start:end])
    end = start + trailing.start() if trailing else end
    if end - start > 1:
        yield _Stretch(start, end)
