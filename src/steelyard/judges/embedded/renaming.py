"""One name in the place of another, and two names in one another's place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steelyard.judges.embedded.differences import WORD_OR_HAN, Clash, Exchange, exchanges
from steelyard.judges.embedded.facts import UNCOMMON, is_han_name, is_place
from steelyard.judges.embedded.meaning import STOP_WORDS, plain, rarity

COMMON = frozenset("the a an of to in on at and or is was were are be been by for with as that it".split())
# Characters or words: a longer stretch is not one name in the place of another.
LONGEST_RENAMED = 8
WORD_OR_HAN_RUN = re.compile(r"[\u3400-\u9fff]+|[a-z\u00c0-\u024f]{3,}")


def renamed(claim: str, span: str, around: str) -> Iterator[Clash]:
    """A name in the claim that no text knows, where the span has another name that the claim does not know."""
    low_claim, low_around = plain(claim), plain(around)
    for claimed, stated in exchanges(claim, span):
        if max(len(WORD_OR_HAN.findall(claimed)), len(WORD_OR_HAN.findall(stated))) > LONGEST_RENAMED:
            continue
        if _is_name(claimed) and _is_name(stated):
            if _strange(claimed, low_around) and _strange(stated, low_claim):
                yield Clash("entity", claimed, stated)
                return
        elif _capitals(claimed, claim, low_around) and _capitals(stated, span, low_claim):
            yield Clash("entity", claimed, stated)
            return


def _is_name(stretch: str) -> bool:
    return is_han_name(stretch) or is_place(stretch)


CAPITAL = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z\u00c0-\u024f]{2,}")


def _capitals(stretch: str, text: str, elsewhere: str) -> list[str]:
    """The capitalised words of a stretch that the other text does not know; a sentence's first word must be rare."""
    first = text.lstrip().startswith(stretch)
    return [
        word
        for at, word in enumerate(CAPITAL.findall(stretch))
        if word.lower() not in STOP_WORDS
        and word.lower() not in elsewhere
        and not (first and at == 0 and rarity(word.lower()) < UNCOMMON)
    ]


def _strange(stretch: str, text: str) -> bool:
    """Whether no two characters of the stretch stand together in the text."""
    return all(stretch[at : at + 2] not in text for at in range(len(stretch) - 1))


def swapped(claim: str, span: str) -> Iterator[Clash]:
    """Two stretches in one another's place."""
    found = [edit for edit in exchanges(claim, span) if len(edit.claimed) > 1]
    for edit in found:
        if Exchange(edit.stated, edit.claimed) in found and not JOINED.search(plain(claim)):
            yield Clash("entity", edit.claimed, edit.stated)
            return


PASSIVE = re.compile(r"被|遭|由|\bby\b")
JOINED = re.compile(r"[、]|和|与|及|\band\b|\bor\b|\bwith\b")


def turned_about(claim: str, span: str) -> Iterator[Clash]:
    """A beats B where the span has B beats A."""
    low_claim, low_span = plain(claim), plain(span)
    if bool(PASSIVE.search(low_claim)) != bool(PASSIVE.search(low_span)) or JOINED.search(low_claim):
        return
    common = _common(low_claim, low_span)
    for first in range(len(common) - 2):
        for last in range(first + 2, len(common)):
            a, b = common[first], common[last]
            if low_span.find(a) < low_span.find(b):
                continue
            for verb in common[first + 1 : last]:
                if low_span.find(b) < low_span.find(verb) < low_span.find(a):
                    yield Clash("entity", f"{a}{_gap(a)}{verb}{_gap(a)}{b}", f"{b}{_gap(a)}{verb}{_gap(a)}{a}")
                    return


def _gap(text: str) -> str:
    return " " if text.isascii() else ""


def _common(claim: str, span: str) -> list[str]:
    """The stretches of the claim that the span has too, longest first from the left; each once in both."""
    found: list[str] = []
    for run in WORD_OR_HAN_RUN.findall(claim[:200]):
        at = 0
        while at < len(run):
            size = len(run) - at
            if not run[0].isascii():
                while size > 1 and run[at : at + size] not in span:
                    size -= 1
            stretch = run[at : at + size]
            if size > 1 and stretch not in COMMON and claim.count(stretch) == 1 and span.count(stretch) == 1:
                found.append(stretch)
            at += size
    return found
