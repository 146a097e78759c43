"""Which value belongs to which name: claims that have all the words of a passage and none of its sense.

*The headquarters are in Paris* holds every word of *the headquarters are in Lyon and the factory is in Paris*. What
shows the error is the clause that says the same of something else, and the neighbour that the word was taken from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.judges.embedded.clashes import are_opposites, is_turned_about
from steelyard.judges.embedded.denials import EXCEPTED
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.fits import (
    LONGEST_TAKEN,
    NEGATORS,
    Fit,
    Near,
    count_negators,
    denies,
    fit,
    is_value,
    nearest,
    tokens,
    written,
)
from steelyard.judges.embedded.lexicon import lexicon
from steelyard.judges.embedded.limits import BOUND
from steelyard.judges.embedded.meaning import plain
from steelyard.judges.embedded.polarity import told_by_words

# The least share of the claim that its own clause must hold, and the most that the neighbour may hold of that share.
HOME, NEIGHBOUR = 0.5, 0.34
# A clause that says much else besides is not the claim with another value.
MOST_ADDED = 3
# What a clause must hold of a claim to deny it as a whole.
SAME_MATTER = 0.7
# 还设立了物理学院, it also has: more about the same thing, so that both values are its own.
GOES_ON = re.compile(r"还|也|并|同时|[该这那它他她]|其(?!中)|(?:it|they|he|she|this|these)\b", re.IGNORECASE)
# Both and each hold the one that the claim names.
COLLECTIVE = re.compile(r"[两各都均皆]|\b(?:both|all|each|every|either|two)\b")
NUMERAL = re.compile(r"[0-9一二三四五六七八九十百千万亿]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b")


def crossed(claim: str, texts: Sequence[str]) -> Clash | None:
    """A value of one thing said of another: its own clause has something else there, and a neighbour has the value."""
    found = _home(claim, texts)
    if found is None:
        return None
    best = found.fit
    taken = tuple(one.key for one in best.taken)
    if best.is_unnamed or best.added > MOST_ADDED or _has(found.clause, taken) or not _are_rivals(best):
        return None
    is_denied = denies(claim)
    if is_denied != denies(found.clause):
        # It suits vegetables, it does not suit ice cream: both may be true.
        return None
    wanted = best.beside if len(best.taken) == 1 and not taken[0].isascii() else {taken}
    for at, clause in enumerate(found.clauses):
        if at == found.home or not any(_has(clause, keys) for keys in wanted) or not _is_other(claim, clause, best):
            continue
        if GOES_ON.match(clause) or _is_bare(clause, taken):
            continue
        # Fines are refunded, tolls are not: the neighbour says of tolls what the claim says of them.
        if not is_denied or not denies(clause):
            return Clash("entity", written(best.taken), written(best.instead))
    return None


def _are_rivals(best: Fit) -> bool:
    """Whether only one of the two can be true: not a weight and a thing, nor grew and increased, nor both of them."""
    mine, other = plain(written(best.taken)), plain(written(best.instead))
    if bool(NUMERAL.search(mine)) != bool(NUMERAL.search(other)) or COLLECTIVE.search(other):
        return False
    return not told_by_words(mine) & told_by_words(other)


def _is_bare(clause: str, keys: Sequence[str]) -> bool:
    """整片吞服: nothing stands before the value and little behind it, so it is told of what stood before."""
    there = tuple(one.key for one in tokens(clause))
    is_han = len(keys) > 1 and not there[0].isascii()
    return is_han and there[: len(keys)] == tuple(keys) and len(there) - len(keys) <= 1


def exchanged(claim: str, texts: Sequence[str]) -> Clash | None:
    """A clause repeated with a word's opposite, or with another value of its kind: a colour, a material."""
    found = nearest(claim, texts)
    if found is None or denies(claim) != denies(found.clause) or EXCEPTED.search(found.clause):
        return None
    best = found.fit
    # 东门靠近车站，西门有停车场: the word that seems to be exchanged stands in the neighbour with its own noun.
    others = (clause for at, clause in enumerate(found.clauses) if at != found.home)
    if any(_has(clause, keys) for clause in others for keys in best.beside):
        return None
    if not HOME <= best.share < 1.0 or not best.taken or not 0 < len(best.instead) <= LONGEST_TAKEN:
        return None
    mine, other = plain(written(best.taken)), plain(written(best.instead))
    if clash := are_opposites(mine, other) or are_opposites(mine, plain(best.instead[0].written)):
        is_turned = is_turned_about(plain(claim), clash.claimed, plain(found.clause), clash.stated)
        return None if is_turned or BOUND.search(mine) or BOUND.search(other) else clash
    ours, theirs = _value(mine), _value(other)
    kinds = lexicon().exclusive
    # What another clause has may be one of several: English, French and German.
    if ours and theirs and kinds[ours] == kinds[theirs] and not any(ours in plain(text) for text in texts):
        return Clash("entity", ours, theirs)
    return None


def _value(stretch: str) -> str | None:
    """The colour, material or other such value that a stretch ends in."""
    kinds = lexicon().exclusive
    words = [stretch.removesuffix("色"), *stretch.split()[-1:]]
    ends = (word[at:] for word in words for at in range(len(word)) if not word.isascii() or at == 0)
    return next((end for end in ends if end in kinds), None)


def denied_there(claim: str, texts: Sequence[str]) -> Clash | None:
    """A clause that the claim has all of, and that denies it: no shuttle, where the claim has a free shuttle."""
    found = nearest(claim, texts)
    if found is None or found.fit.added or EXCEPTED.search(found.clause):
        return None
    if count_negators(claim) % 2 == count_negators(found.clause) % 2 or _is_anothers(claim, found):
        return None
    best = found.fit
    is_general = denies(found.clause) and best.share >= SAME_MATTER and len(best.held) > 1
    if best.share == 1.0 or (is_general and not any(change.instead for change in best.changes)):
        return Clash("negation", claim.strip(" 。."), found.clause)
    return None


def _is_anothers(claim: str, found: Near) -> bool:
    """Norway is not a member, Sweden is: the clause leaves out whom it speaks of, and a later one names the claim's."""
    if not found.fit.is_unnamed:
        return False
    named = {one.key for one in tokens(claim)[: len(tokens(claim)) - len(found.fit.held)] if one.is_content}
    later = found.clauses[found.home + 1 :]
    return any(named & {one.key for one in tokens(clause)} for clause in later)


def _home(claim: str, texts: Sequence[str]) -> Near | None:
    """The clause that the claim repeats but for one value."""
    found = nearest(claim, texts)
    return found if found and HOME <= found.fit.share < 1.0 and is_value(found.fit) else None


def _has(clause: str, keys: Sequence[str]) -> bool:
    there = tuple(one.key for one in tokens(clause))
    return any(there[at : at + len(keys)] == tuple(keys) for at in range(len(there) - len(keys) + 1))


def _is_other(claim: str, clause: str, best: Fit) -> bool:
    """Whether a clause with the value says something else than the claim does."""
    content = {one.key for one in tokens(clause) if one.is_content or one.key in NEGATORS}
    taken = {one.key for one in best.taken}
    if not content - taken:
        return False
    if len(content & best.held) <= NEIGHBOUR * len(best.held):
        return True
    # Women are 60 %, men are 40 %: the neighbour is made alike, and has something else where the claim has women.
    ours, there = tokens(claim), fit(claim, clause)
    return any(
        any(one.is_content and one.key not in taken for one in ours[change.start : change.end])
        and any(one.is_content for one in change.instead)
        for change in there.changes
    )
