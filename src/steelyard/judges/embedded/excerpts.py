"""Retrieval: which sentences of the passages the network reads beside a claim.

Passages are cut into sentences once. For each claim the sentences that hold most of its words are taken, rare words
first, until the budget of pieces is spent, and with them the opening of their passage: a sentence often leans on
its title.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from steelyard.text import HAN, in_simplified, sentences

Sizes = Callable[[list[str]], list[int]]
"""How much there is to read in each text, in pieces of the reader's vocabulary."""

# K2 and 3.5 are one word each; ISOFIX接口 is two.
WORD = re.compile(r"[A-Za-z]*+\d++(?:[.,:]\d++)*+[A-Za-z]*+|[\u3400-\u9fff]++|[^\W\d_\u3400-\u9fff]++")
STOP_WORDS = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his in into is it its may "
    "might no not of on or she than that the their them then there these they this those to was were which who whose "
    "will with would".split()
)
ENDINGS = ("ing", "ies", "ed", "es", "s")
SHORTEST_STEM = 4

# In characters. What is longer is cut at a comma, or else at a space: a network cannot read half of it.
LONGEST_SENTENCE = 220
CUTS = (("，", "；", "：", "、", ", ", "; ", ": "), (" ",))
# In characters: enough of a title or an opening to know what the passage is about.
LEAD, LEAD_HAN = 80, 30
# Words that an earlier sentence already has count little for a later one.
SAID_BEFORE = 0.3
# A neighbour of a telling sentence may hold its other half.
BEFORE, AFTER = 0.35, 0.15
LENGTH_COST = 0.02
# So many sentences are looked at for one claim, those with most of its words.
MOST_LOOKED_AT = 48


def words(text: str) -> frozenset[str]:
    """What a reworded text may share with its source: stems of words, numbers, pairs of Chinese characters.

    Traditional and Simplified characters are the same.
    """
    return _words(text) if len(text) > LONGEST_SENTENCE else _known_words(text)


def _words(text: str) -> frozenset[str]:
    found = set[str]()
    for match in WORD.finditer(in_simplified(text)):
        word = match.group()
        if HAN.match(word):
            found.update([word] if len(word) == 1 else (word[at : at + 2] for at in range(len(word) - 1)))
        elif (stem := _stem(word.lower())) not in STOP_WORDS:
            found.add(stem)
    return frozenset(found)


_known_words = lru_cache(maxsize=4096)(_words)


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


class PassageSentence(NamedTuple):
    """A sentence of a passage: as it is written, and as it is compared and read."""

    passage: int
    place: int
    text: str
    words: frozenset[str]
    size: int


class Excerpt(NamedTuple):
    """What is read beside one claim, in the order of the passages; `leads` are openings that are only begun."""

    sentences: tuple[PassageSentence, ...]
    leads: frozenset[int]
    """Passages whose opening stands there only in part."""
    is_whole: bool
    """Whether nothing was left out."""

    def parts(self) -> tuple[str, ...]:
        """What is read, one text for each passage."""
        found: dict[int, list[str]] = {}
        for sentence in self.sentences:
            is_lead = sentence.place == 0 and sentence.passage in self.leads
            longest = (LEAD_HAN if HAN.search(sentence.text) else LEAD) if is_lead else None
            found.setdefault(sentence.passage, []).append(sentence.text[:longest])
        return tuple(" ".join(texts) for texts in found.values())


class Passages:
    """The passages of one sample, cut and counted once for all claims."""

    def __init__(self, texts: Sequence[str], sizes: Sizes) -> None:
        found = [(passage, place, text) for passage, whole in enumerate(texts) for place, text in enumerate(cut(whole))]
        self.sentences = tuple(
            PassageSentence(*at, words(at[-1]), size)
            for at, size in zip(found, sizes([text for *_, text in found]), strict=True)
        )
        self._openings = {one.passage: at for at, one in enumerate(self.sentences) if one.place == 0}
        self._size = sum(one.size for one in self.sentences)

    def excerpt(self, wanted: frozenset[str], budget: int) -> Excerpt:
        """The sentences to read for a claim of these words, of at most `budget` pieces (but at least one)."""
        if self._size <= budget:
            return Excerpt(self.sentences, frozenset(), True)
        chosen = self._chosen(wanted, budget)
        missing = {self.sentences[at].passage for at in chosen} - {
            self.sentences[at].passage for at in chosen if self.sentences[at].place == 0
        }
        shown = sorted({*chosen, *(self._openings[passage] for passage in missing)})
        return Excerpt(tuple(self.sentences[at] for at in shown), frozenset(missing), False)

    def _chosen(self, wanted: frozenset[str], budget: int) -> list[int]:
        shared = [one.words & wanted for one in self.sentences]
        weight = self._weights(shared)
        base = [
            _total(weight, found) / (1 + LENGTH_COST * one.size)
            for found, one in zip(shared, self.sentences, strict=True)
        ]
        near = [strength + self._beside(base, at) for at, strength in enumerate(base)]
        alone = [1.5 * _total(weight, found) + lent for found, lent in zip(shared, near, strict=True)]
        open_ = set(heapq.nlargest(MOST_LOOKED_AT, range(len(alone)), key=lambda at: (alone[at], -at)))
        chosen: list[int] = []
        used = 0
        while open_:
            strengths = {at: 1.5 * _total(weight, shared[at]) + near[at] for at in open_}
            best = max(open_, key=lambda at: (strengths[at], -at))
            open_.discard(best)
            if chosen and not strengths[best]:
                break  # nothing that is left has to do with the claim
            size = self.sentences[best].size
            if chosen and used + size > budget:
                if used > 0.75 * budget:
                    break
                continue
            chosen.append(best)
            used += size
            for word in shared[best]:
                weight[word] *= SAID_BEFORE
        return chosen

    def _weights(self, shared: Sequence[frozenset[str]]) -> dict[str, float]:
        """How much a word tells: the fewer sentences have it, the more."""
        counts: dict[str, int] = {}
        for found in shared:
            for word in found:
                counts[word] = counts.get(word, 0) + 1
        return {word: math.log(1 + len(shared) / count) for word, count in counts.items()}

    def _beside(self, base: Sequence[float], at: int) -> float:
        """What the neighbours in the same passage lend to a sentence."""
        own, found = self.sentences[at].passage, 0.0
        if at and self.sentences[at - 1].passage == own:
            found += BEFORE * base[at - 1]
        if at + 1 < len(base) and self.sentences[at + 1].passage == own:
            found += AFTER * base[at + 1]
        return found


def _total(weight: dict[str, float], found: frozenset[str]) -> float:
    # Not `sum`: in another order of a set its last digit may differ.
    return math.fsum(weight[word] for word in found)


def cut(passage: str) -> list[str]:
    """The sentences of a passage; very long ones at their commas."""
    found: list[str] = []
    for sentence in sentences(passage):
        start = 0
        while len(sentence) - start > LONGEST_SENTENCE:
            end = start + LONGEST_SENTENCE
            low = start + LONGEST_SENTENCE // 3
            at = next(
                (at + 1 for marks in CUTS if (at := max(sentence.rfind(one, low, end) for one in marks)) > 0), end
            )
            found.append(sentence[start:at].strip())
            start = at
        found.append(sentence[start:].strip())
    return [text for text in found if text]
