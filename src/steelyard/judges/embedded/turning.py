"""Who did what to whom: the same names around the same act, in one another's place.

Stricter than `renaming.turned_about`, which hints at it: this one overrules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.fits import LONGEST_CLAUSE, Token, tokens, written
from steelyard.judges.embedded.meaning import plain
from steelyard.judges.embedded.polarity import sides, told_by_words

SENTENCE_END = re.compile(r"(?:[，;；。！？!?\n]|(?<!\d),|,(?!\d))+|\.(?=\s|$)")
PASSIVE = frozenset("被遭受由") | {"by"}
# What has no direction: A and B are brothers, A met with B.
MUTUAL = re.compile(
    r"和|与|跟|同|及|、|互|之间|婚|对阵|对战|交手|对决|接壤|毗邻|相邻|邻近|连接|合并|等于|\b(?:and|or|with|between|each|marr\w+|met"
    r"|meets?|plays?|faces?|border\w*|neighbou?r\w*|adjoin\w*|resembl\w*|equals?|merg\w+|connects?)\b"
)
# Characters that set two things against one another, though they are no words of content.
RELATING = frozenset("比给向对胜")
COMPARING = frozenset(("than", "比"))
# Places, belongings and equations may be told from either end.
LOOSE = frozenset("for of from in on at to into 在 于 是 为 有 含 属 租 住".split())
FURTHEST, LONGEST_ENTITY, LONGEST_ACT, LONGEST_VERB = 8, 8, 30, 2
SAME_ACT = 0.7


class _Entity(NamedTuple):
    """A stretch that stands once in the claim and once in the clause: where it begins and ends in either."""

    ours: tuple[int, int]
    theirs: tuple[int, int]


def reversed_roles(claim: str, texts: Sequence[str]) -> Clash | None:
    """A beat B, where the passage has B beat A; A was bought by B, where it has A bought B."""
    ours = tokens(claim)
    if MUTUAL.search(plain(claim)) or len(ours) > LONGEST_ACT:
        return None
    content = {one.key for one in ours if one.is_content}
    for sentence in (part for text in texts for part in SENTENCE_END.split(text)):
        theirs = tokens(sentence)
        is_told = len(content & {one.key for one in theirs}) >= SAME_ACT * len(content)
        if not is_told or len(theirs) > LONGEST_CLAUSE or _opposite(claim, sentence):
            continue
        for first, second in combinations(_entities(ours, theirs), 2):
            if _is_first(ours, first.ours[0]) and (stated := _turned(ours, theirs, first, second)):
                return Clash("entity", _told(ours, first.ours[0], second.ours[1]), stated)
    return None


def _is_first(ours: Sequence[Token], at: int) -> bool:
    """Whether it is what the sentence is about: nothing but function words stands before it."""
    return not any(one.is_content for one in ours[:at])


def _told(text: Sequence[Token], start: int, end: int) -> str:
    """From the one to the other, and the verb that may follow."""
    return written(text[start : end + (LONGEST_VERB if any(one.key in PASSIVE for one in text[start:end]) else 0)])


def _entities(ours: Sequence[Token], theirs: Sequence[Token]) -> list[_Entity]:
    mine, other = [one.key for one in ours], [one.key for one in theirs]
    found: list[_Entity] = []
    at = 0
    while at < len(mine):
        size = next((size for size in range(LONGEST_ENTITY, 0, -1) if _once(mine, other, at, size)), 0)
        if size and _is_name(ours[at : at + size]):
            begin = next(place for place in range(len(other)) if other[place : place + size] == mine[at : at + size])
            found.append(_Entity((at, at + size), (begin, begin + size)))
        at += max(size, 1)
    return found


def _is_name(stretch: Sequence[Token]) -> bool:
    """Whether it can be someone: not a single character, nor a figure."""
    is_said = any(one.is_content and not one.key[0].isdigit() for one in stretch)
    return is_said and (len(stretch) > 1 or stretch[0].written.isascii())


def _once(mine: Sequence[str], other: Sequence[str], at: int, size: int) -> bool:
    keys = mine[at : at + size]
    if len(keys) < size or any(key in RELATING for key in keys):
        return False
    return all(
        sum(each[place : place + size] == keys for place in range(len(each) - size + 1)) == 1 for each in (mine, other)
    )


def _turned(ours: Sequence[Token], theirs: Sequence[Token], first: _Entity, second: _Entity) -> str | None:
    """What the passage has, where the two stand in one another's place around the same word."""
    is_swapped = second.theirs[0] < first.theirs[0]
    before, after = sorted((first.theirs, second.theirs))
    between, there = ours[first.ours[1] : second.ours[0]], theirs[before[1] : after[0]]
    if max(len(between), len(there)) > FURTHEST:
        return None
    if any(one.key in LOOSE for one in (*between, *there)) or not _is_about(ours, first, second, between):
        return None
    is_passive = _is_passive(between), _is_passive(there)
    if is_swapped == (is_passive[0] != is_passive[1]):
        return None
    # In Chinese the verb of a passive stands behind both.
    mine = (*between, *ours[second.ours[1] : second.ours[1] + FURTHEST]) if is_passive[0] else between
    other = (*there, *theirs[after[1] : after[1] + FURTHEST]) if is_passive[1] else there
    return _told(theirs, before[0], after[1]) if _is_same_act(mine, other) else None


def _is_about(ours: Sequence[Token], first: _Entity, second: _Entity, between: Sequence[Token]) -> bool:
    """English verbs go with many things; two names, or two things compared, can be taken for one another."""
    if any(one.key in COMPARING for one in between) or not ours[first.ours[0]].written.isascii():
        return True
    return all(any(one.written[0].isupper() for one in ours[slice(*each.ours)]) for each in (first, second))


def _is_passive(between: Sequence[Token]) -> bool:
    """Whether what follows is who did it: the marker stands right before."""
    return any(one.key in PASSIVE for one in between[-3:])


def _is_same_act(mine: Sequence[Token], other: Sequence[Token]) -> bool:
    acts = [{one.key for one in stretch if one.is_content or one.key in RELATING} for stretch in (mine, other)]
    # An adverb that both have is not yet the same act: yesterday beat, yesterday lost to.
    is_same = bool(acts[0] & acts[1]) and (acts[0] <= acts[1] or acts[1] <= acts[0])
    return is_same or bool(told_by_words(written(mine)) & told_by_words(written(other)))


def _opposite(claim: str, sentence: str) -> bool:
    """Whether the two are on opposite sides: who is larger, where the other is smaller."""
    mine, other = sides(claim), sides(sentence)
    return any((number, 1 - side) in other for number, side in mine)
