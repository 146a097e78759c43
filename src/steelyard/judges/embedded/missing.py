"""What a claim says that the passages do not, and how near they come to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.lexicon import lexicon
from steelyard.judges.embedded.meaning import HAN_RUN, STOP_CHARACTERS, pieces, plain, rarity, terms, word_vector, words

MOST_WORDS = 48
MOST_MISSING = 12
# A missing word whose nearest word is further than this has no counterpart.
FAR = 0.3


def soft(claim: str, text: str, window: str, top: str) -> dict[str, float]:
    """How near the words that the passages lack come to words that they have."""
    import numpy as np

    strange = strange_words(claim, window)
    if not strange:
        return {"soft_least": 1.0, "soft_mean": 1.0, "soft_rare": 1.0, "soft_top": 1.0, **_counts(0, 0, 0)}
    nowhere = sum(word not in text for word in strange)
    there, further = _candidates(window), _candidates(top)
    if not there:
        far = len(strange)
        return {"soft_least": 0.0, "soft_mean": 0.0, "soft_rare": 0.0, "soft_top": 0.0, **_counts(far, nowhere, far)}
    mine = np.stack([word_vector(word) for word in strange])
    cosines = mine @ np.stack([word_vector(word) for word in (*there, *further)]).T
    near = cosines[:, : len(there)].max(axis=1)
    weights = [rarity(word) for word in strange]
    total = sum(weights) or 1.0
    return {
        "soft_least": float(near.min()),
        "soft_mean": float(near.mean()),
        "soft_rare": float(near @ weights) / total,
        "soft_top": float(cosines.max(axis=1) @ weights) / total,
        **_counts(len(strange), nowhere, int((near < FAR).sum())),
    }


def _counts(strange: int, nowhere: int, far: int) -> dict[str, float]:
    return {"strange": float(strange), "nowhere": float(nowhere), "soft_far": float(far)}


def strange_words(claim: str, window: str) -> list[str]:
    """Words of the claim that the window lacks; of Chinese, the stretches no two characters of which it has."""
    low = plain(window)
    held = frozenset(words(window))
    result = [term.written for term in terms(claim) if term.written.isascii() and term.key not in held]
    for run in HAN_RUN.findall(plain(claim)):
        result.extend(_strange_han(run, low))
    return list(dict.fromkeys(result))[:MOST_MISSING]


def _strange_han(run: str, text: str) -> list[str]:
    return [piece for stretch in uncovered(run, text) if len(stretch) > 1 for piece in cut(stretch)]


def uncovered(run: str, text: str) -> list[str]:
    """The stretches of a run of Chinese no two characters of which stand together in the text."""
    covered = [False] * len(run)
    for at in range(len(run) - 1):
        if run[at : at + 2] in text:
            covered[at] = covered[at + 1] = True
    kept = (" " if is_covered else character for is_covered, character in zip(covered, run, strict=True))
    return "".join(kept).split()


class HanWord(NamedTuple):
    written: str
    is_name: bool


LONGEST_WORD = 3
SHORTEST_NAME, LONGEST_PERSON = 2, 3


@lru_cache(maxsize=8192)
def han_words(run: str) -> tuple[HanWord, ...]:
    """A run of Chinese in words: the vocabulary's own, and what stands between them, names of people apart."""
    found: list[HanWord] = []
    single = ""
    for piece in (*pieces(run), ""):
        bare = piece.strip(STOPS)
        if len(piece) == 1 and bare:
            single += piece
            continue
        found.extend(_unlisted(single))
        single = ""
        if len(bare) > 1:
            found.append(HanWord(bare, False))
        elif bare:
            single = bare
    return tuple(found)


STOPS = "".join(STOP_CHARACTERS)


def _unlisted(run: str) -> Iterator[HanWord]:
    """Characters that the vocabulary holds only one by one: a name, a short word, or pairs of them."""
    if not run:
        return
    if len(run) >= SHORTEST_NAME and run[0] in lexicon().surnames and rarity(run[:LONGEST_PERSON]) >= NAME_RARITY:
        yield HanWord(run[:LONGEST_PERSON], True)
        yield from _unlisted(run[LONGEST_PERSON:])
    elif len(run) <= LONGEST_WORD:
        yield HanWord(run, False)
    else:
        yield from (HanWord(run[at : at + 2], False) for at in range(len(run) - 1))


NAME_RARITY = 21.0


def cut(stretch: str) -> tuple[str, ...]:
    return tuple(word.written for word in han_words(stretch))


@lru_cache(maxsize=512)
def _candidates(window: str) -> tuple[str, ...]:
    low = plain(window)
    latin = [term.written for term in terms(window) if term.written.isascii() and term.written.isalpha()]
    han = [piece for run in HAN_RUN.findall(low) for piece in cut(run) if len(piece) > 1]
    return tuple(dict.fromkeys((latin + han)[:MOST_WORDS]))
