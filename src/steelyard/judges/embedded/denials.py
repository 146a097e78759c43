"""What one text denies and another states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.lexicon import found, lexicon
from steelyard.judges.embedded.meaning import HAN_RUN, plain, terms, words

# Who does not advise a thing advises against it: 不建议贴膜 is 建议不要贴膜.
ADVISED = re.compile("(?:建议|推荐|主张|提倡|鼓励|应该?|宜)您?")
CLAUSE_END = re.compile(r"[，,。；;！？!?\n]|\bbut\b|\bwhile\b|但是|但|而是")


# Where something is excepted, what is denied of the rest is affirmed of it: closed except on Fridays.
EXCEPTED = re.compile(r"除|否则|以外|不到|\b(?:except|excluding|unless|until|other than|apart from)\b", re.IGNORECASE)
REST_OF_WORD = re.compile(r"[a-z0-9'-]*")


class _Negated(NamedTuple):
    written: str
    keys: frozenset[str]


def negations(text: str) -> list[_Negated]:
    """Each negator of a text, with the words it negates."""
    low = plain(text)
    matches = found(lexicon().negators_zh, low) + found(lexicon().negators_en, low)
    result = []
    for match in matches:
        width = 6 if HAN_RUN.match(match.group()) else 30
        advised = ADVISED.match(low, match.end())
        begin = advised.end() if advised else match.end()
        stop = CLAUSE_END.search(low, begin, begin + width)
        end = stop.start() if stop else min(len(low), begin + width)
        keys = words(low[begin:end])[: 3 if width == 6 else 2]
        result.append(_Negated(_cut(low, match.start(), min(end, match.end() + width)), frozenset(keys)))
    return result


def denied(claim: str, span: str, shared: Callable[[str, str], float]) -> Iterator[Clash]:
    ours, theirs = negations(claim), negations(span)
    if ours and not theirs:
        held = frozenset(words(span))
        for negated in ours:
            if negated.keys & held:
                yield Clash("negation", negated.written, _where(span, negated.keys))
                return
    if theirs and not ours:
        held = frozenset(words(claim))
        for negated in theirs:
            clause = _clause_with(span, negated.written)
            if negated.keys & held and shared(claim, clause) >= 0.6:
                yield Clash("negation", _where(claim, negated.keys), negated.written)
                return


def _where(text: str, keys: frozenset[str]) -> str:
    """How a text writes the first of some words, with what follows it."""
    low = plain(text)
    for term in terms(text):
        if term.key in keys:
            at = low.find(term.written)
            return _cut(low, at, at + max(8, len(term.written)))
    return _cut(low, 0, 12)


def _cut(low: str, start: int, end: int) -> str:
    """That stretch, with the rest of an English word that it ends in."""
    rest = REST_OF_WORD.match(low, end) if low[start:end][-1:].isascii() else None
    return low[start : rest.end() if rest else end].strip(" ,.;:!?，。；：！？、")


def _clause_with(span: str, written: str) -> str:
    low = plain(span)
    at = max(0, low.find(written))
    start = max((match.end() for match in CLAUSE_END.finditer(low, 0, at)), default=0)
    end = CLAUSE_END.search(low, at)
    return low[start : end.start() if end else len(low)]


def denial(claim: str, span: str) -> Iterator[Clash]:
    """What one of two sentences denies and the other states."""
    ours, theirs = negations(claim), negations(span)
    if negated := next((one for one in ours if _is_stated(one, theirs, span)), None):
        yield Clash("negation", negated.written, _where(span, negated.keys))
    elif negated := next((one for one in theirs if _is_stated(one, ours, claim)), None):
        yield Clash("negation", _where(claim, negated.keys), negated.written)


def _is_stated(negated: _Negated, others: list[_Negated], text: str) -> bool:
    """Whether the other text speaks of it and does not deny it too, in these words or about the same things.

    *No milk and no eggs* denies nothing of *no milk*: eggs are not spoken of there.
    """
    if negated.written in plain(text) or any(negated.keys & other.keys for other in others):
        return False
    return not negated.keys or bool(negated.keys & frozenset(words(text)))


def negators(text: str) -> int:
    return len(found(lexicon().negators_zh, text)) + len(found(lexicon().negators_en, text))
