"""Contradictions that rules can see between a claim and the span it is about, each with the two things that differ.

The encoder puts 第二排 beside 第三排 and "rose" beside "fell"; these rules do not. They prefer silence to a guess:
a claim that says another thing than the span is not a clash, only the same thing said differently is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.denials import CLAUSE_END, EXCEPTED, denial, denied, negators
from steelyard.judges.embedded.differences import LONGEST_COMPARED, Clash, edits
from steelyard.judges.embedded.facts import Fact, agree, comparable, facts, is_written, same
from steelyard.judges.embedded.lexicon import Opposites, lexicon
from steelyard.judges.embedded.meaning import HAN_RUN, STOP_CHARACTERS, plain, simplified, stem, words
from steelyard.judges.embedded.polarity import told_by_words
from steelyard.judges.embedded.renaming import COMMON, renamed, swapped, turned_about

__all__ = ["KINDS", "Clash", "are_opposites", "clashes", "is_turned_about", "opposed", "shared"]

KINDS = ("quantity", "date", "ordinal", "name", "negation", "direction", "comparison", "kinship", "entity")
# The least share of the claim's words, numbers aside, that the span must hold to speak of the same thing.
SAME_SUBJECT = 0.4
# What a negator turns round must be the same statement, and who did what to whom the same words.
SAME_STATEMENT, SAME_WORDS = 0.6, 0.9
# From here on the claim repeats the span, and each small difference between the two is meant.
SAME_SENTENCE = 0.7
# Single characters are shared by chance more often than words are.
CHARACTER_DISCOUNT = 0.1
NEARBY = 14
# No, it is not open: the first word answers the question, and denies nothing of what follows.
YES_OR_NO = re.compile(r"\A\s*(?:yes|no|是的?|不是|不|对|没有)\s*[,，]\s*", re.IGNORECASE)


def clashes(claim: str, span: str, around: str = "") -> list[Clash]:
    """What the span contradicts in the claim. `around` is more text in which what is claimed may yet be found."""
    claim, span = YES_OR_NO.sub("", claim[:LONGEST_COMPARED]), span[:LONGEST_COMPARED]
    alike = shared(claim, span)
    if alike < SAME_SUBJECT:
        return []
    # A sentence repeated with one number changed is about that sentence, not about others that hold the number.
    around = span if alike >= SAME_SENTENCE else f"{span}\n{around}"
    rules = [_facts(claim, span, around), _turned(claim, span), _kin(claim, span), renamed(claim, span, around)]
    if alike >= SAME_STATEMENT and not _is_said_otherwise(claim, span):
        rules.append(denied(claim, span, shared))
    if alike >= SAME_SENTENCE:
        rules += [_edited(claim, span), swapped(claim, span)]
    if alike >= SAME_WORDS:
        rules.append(turned_about(claim, span))
    return list(dict.fromkeys(clash for rule in rules for clash in rule))


def _is_said_otherwise(claim: str, span: str) -> bool:
    """Whether one denies what the other has the opposite of: not open, closed."""
    ours, theirs = told_by_words(claim), told_by_words(span)
    return any((number, 1 - side) in theirs and (number, side) not in theirs for number, side in ours)


def opposed(claim: str, span: str) -> Clash | None:
    """A word exchanged for its opposite in a sentence that is repeated otherwise: the networks take rose for fell.

    A denial counts only where nothing else of the claim differs, since negators wander: 不建议贴, 建议不要贴.
    """
    claim, span = YES_OR_NO.sub("", claim[:LONGEST_COMPARED]), span[:LONGEST_COMPARED]
    alike = shared(claim, span)
    if alike < SAME_STATEMENT or EXCEPTED.search(span) or _has_both(claim, span):
        return None
    is_repeated = alike >= SAME_WORDS and sum(bool(edit.claimed) for edit in edits(claim, span)) < 2
    return next((clash for clash in _edited(claim, span) if is_repeated or clash.kind != "negation"), None)


def _has_both(claim: str, span: str) -> bool:
    """Whether the span has a word and its opposite, of which the claim has one: the first train, the last train."""
    ours, theirs = told_by_words(claim), told_by_words(span)
    return any({(number, 0), (number, 1)} <= theirs for number, _ in ours)


def shared(claim: str, span: str) -> float:
    """The share of the claim's content words, those of its numbers aside, that the span holds."""
    counted = "".join(fact.text for fact in facts(claim))
    wanted = [word for word in words(claim) if word not in counted and not word[0].isdigit()]
    if not wanted:
        return float(bool(facts(span)))
    held = frozenset(words(span))
    by_word = sum(word in held for word in wanted) / len(wanted)
    characters = [character for run in HAN_RUN.findall(plain(claim)) for character in run if character not in counted]
    content = [character for character in characters if character not in STOP_CHARACTERS]
    if len(content) * 2 < len(characters) or not content:
        return by_word
    low = plain(span)
    return max(by_word, sum(character in low for character in content) / len(content) - CHARACTER_DISCOUNT)


# --- exact facts -----------------------------------------------------------------------------------


def _facts(claim: str, span: str, around: str) -> Iterator[Clash]:
    claimed, stated, known = facts(claim), facts(span), facts(around)
    for fact in claimed:
        if any(same(fact, other) for other in known) or is_written(fact, plain(around)):
            continue
        rivals = [
            other
            for other in stated
            if _rivals(fact, other) and not any(comparable(other, own) and agree(other, own) for own in claimed)
        ]
        if rivals:
            rival = max(rivals, key=lambda other: (_neighbours(claim, fact, span, other), -other.start))
            if fact.unit or _neighbours(claim, fact, span, rival):
                yield Clash(fact.kind, fact.text, rival.text)


def _rivals(fact: Fact, other: Fact) -> bool:
    # 10 trophies and a bare 19 may agree, but they do not contradict one another.
    return comparable(fact, other) and bool(fact.unit) == bool(other.unit)


def _neighbours(claim: str, fact: Fact, span: str, other: Fact) -> int:
    return len(_near(claim, fact) & _near(span, other))


def _near(text: str, fact: Fact) -> frozenset[str]:
    low = simplified(text)
    before = CLAUSE_END.split(low[max(0, fact.start - NEARBY) : fact.start])[-1]
    return frozenset(words(before)) | frozenset(words(CLAUSE_END.split(low[fact.end : fact.end + NEARBY])[0]))


# --- words that turn a statement round -------------------------------------------------------------


def _turned(claim: str, span: str) -> Iterator[Clash]:
    low_claim, low_span = plain(claim), plain(span)
    if (negators(low_claim) - negators(low_span)) % 2:
        # Not open is closed.
        return
    claim_words, span_words = _word_places(claim), _word_places(span)
    ours, theirs = told_by_words(claim), told_by_words(span)
    for number, pair in enumerate(lexicon().opposites):
        if any((number, side) in ours and (number, 1 - side) in theirs for side in (0, 1)):
            yield from _turned_zh(pair, low_claim, low_span)
        yield from _turned_en(pair, claim_words, span_words)


def _turned_zh(pair: Opposites, claim: str, span: str) -> Iterator[Clash]:
    if not HAN_RUN.search(claim):
        return
    for ours, theirs in (pair.zh, pair.zh[::-1]):
        mine = _first_of(ours, claim)
        other = _first_of(theirs, span)
        if not mine or not other or _first_of(theirs, claim) or _first_of(ours, span):
            continue
        if _touch(claim, mine, span, other) and not is_turned_about(claim, mine, span, other):
            yield Clash(pair.kind, mine, other)
            return


def _first_of(group: Iterable[str], text: str) -> str | None:
    held = [word for word in group if len(word) > 1 and word in text]
    return max(held, key=len, default=None)


def _touch(claim: str, mine: str, span: str, other: str) -> bool:
    """Whether the two words stand among the same words."""
    at, place = claim.find(mine), span.find(other)
    near = frozenset(words(claim[max(0, at - 10) : at])) | frozenset(words(claim[at + len(mine) : at + len(mine) + 10]))
    there = frozenset(words(span[max(0, place - 10) : place])) | frozenset(
        words(span[place + len(other) : place + len(other) + 10])
    )
    return bool(near & there)


def is_turned_about(claim: str, mine: str, span: str, other: str) -> bool:
    """Whether what stands before the one word stands behind the other: A is above B, B is below A."""
    our_front, our_back = _around(claim, mine)
    their_front, their_back = _around(span, other)
    crosswise = len(our_front & their_back), len(our_back & their_front)
    straight = len(our_front & their_front) + len(our_back & their_back)
    return all(crosswise) and sum(crosswise) >= straight


def _around(text: str, word: str) -> tuple[frozenset[str], frozenset[str]]:
    before, _, behind = text.partition(word)
    return frozenset(words(before)), frozenset(words(behind))


class _Places(NamedTuple):
    order: tuple[str, ...]
    written: tuple[str, ...]


ENGLISH_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@lru_cache(maxsize=1024)
def _word_places(text: str) -> _Places:
    written = tuple(ENGLISH_WORD.findall(plain(text)))
    return _Places(tuple(map(stem, written)), written)


def _turned_en(pair: Opposites, claim: _Places, span: _Places) -> Iterator[Clash]:
    for ours, theirs in (pair.en, pair.en[::-1]):
        if ours.isdisjoint(claim.order) or theirs.isdisjoint(span.order):
            continue
        if not theirs.isdisjoint(claim.order) or not ours.isdisjoint(span.order):
            continue
        mine = next(at for at, word in enumerate(claim.order) if word in ours)
        other = next(at for at, word in enumerate(span.order) if word in theirs)
        here, there = " ".join(claim.order), " ".join(span.order)
        is_turned = is_turned_about(here, claim.order[mine], there, span.order[other])
        if _near_words(claim.order, mine) & _near_words(span.order, other) and not is_turned:
            yield Clash(pair.kind, claim.written[mine], span.written[other])
            return


def _near_words(order: tuple[str, ...], at: int) -> frozenset[str]:
    return frozenset(order[max(0, at - 3) : at] + order[at + 1 : at + 4]) - COMMON


# --- relatives -------------------------------------------------------------------------------------


def _kin(claim: str, span: str) -> Iterator[Clash]:
    tables, low_claim, low_span = lexicon(), plain(claim), plain(span)
    if (first := tables.firstborn.search(low_claim)) and (elder := tables.elder.search(low_span)):
        yield Clash("kinship", first.group(), elder.group())
        return
    if (elder := tables.elder.search(low_claim)) and (first := tables.firstborn.search(low_span)):
        yield Clash("kinship", elder.group(), first.group())
        return
    ours = _relatives(low_claim)
    theirs = _relatives(low_span)
    only_ours, only_theirs = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    if only_ours and only_theirs and len(ours) == 1:
        yield Clash("kinship", ours[min(only_ours)], theirs[min(only_theirs)])


def _relatives(text: str) -> dict[str, str]:
    tables = lexicon()
    return {tables.same_kin.get(match.group(), match.group()): match.group() for match in tables.kin.finditer(text)}


# --- small differences between two sentences that run alike -----------------------------------------


def _edited(claim: str, span: str) -> Iterator[Clash]:
    """A negator or an opposite that is the difference between claim and span, wherever else such words stand."""
    differences = edits(claim, span)
    # Summed up, since a negator that has only moved (不建议贴, 建议不要贴) denies the same thing.
    if sum(negators(plain(mine)) - negators(plain(other)) for mine, other in differences) % 2:
        if not any(are_opposites(plain(mine), plain(other)) for mine, other in differences):
            yield from denial(claim, span)
        return
    found = (are_opposites(plain(mine), plain(other)) for mine, other in differences)
    clash = next(filter(None, found), None)
    if clash and not is_turned_about(plain(claim), clash.claimed, plain(span), clash.stated):
        yield clash


def are_opposites(mine: str, other: str) -> Clash | None:
    """Whether one stretch holds a word and the other its opposite."""
    for pair in lexicon().opposites:
        for at in (0, 1):
            a, b = _one_of(pair, at, mine), _one_of(pair, 1 - at, other)
            if a and b:
                return Clash(pair.kind, a, b)
    return None


def _one_of(pair: Opposites, side: int, text: str) -> str | None:
    """The word of one side of a pair that a short stretch holds; a single character must be all of it."""
    for word in pair.zh[side]:
        if word == text or (len(word) > 1 and word in text):
            return word
    return next((word for word in ENGLISH_WORD.findall(text) if stem(word) in pair.en[side]), None)
