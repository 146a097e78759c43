"""What is said of a number: whether it rose or fell by so much, whether it is the least or the most."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.judges.embedded.clashes import are_opposites
from steelyard.judges.embedded.denials import CLAUSE_END, negators
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.facts import Fact, facts
from steelyard.judges.embedded.meaning import plain
from steelyard.judges.embedded.polarity import told_by_words

AT_LEAST = r"at least|no less than|no fewer than|not less than|minimum of|至少|不少于|不低于"
AT_MOST = r"at most|up to|no more than|not more than|maximum of|至多|最多|不超过|不多于"
BOUND = re.compile(rf"(?P<least>{AT_LEAST})|(?P<most>{AT_MOST})")
STARTING = re.compile(r"(?:\bfrom|由|从)\s*\Z")
# The first pair of opposites is up and down; others may stand near a number by chance.
UP_AND_DOWN = 0
# So many characters before and behind a number tell what is said of it.
ABOUT = 16


def bounded(claim: str, texts: Sequence[str]) -> Clash | None:
    """The same number with the opposite said of it: fell 12 %, an increase of 12 %; at least 10, up to 10."""
    for fact in facts(claim):
        for text in texts if fact.kind == "quantity" else ():
            twins = [other for other in facts(text) if (other.value, other.unit) == (fact.value, fact.unit)]
            if len(twins) == 1 and (clash := _turned(_about(claim, fact), _about(text, twins[0]))):
                return clash
    return None


def _about(text: str, fact: Fact) -> tuple[str, str]:
    """What stands before and behind a number in its clause."""
    low = plain(text)
    before = CLAUSE_END.split(low[max(0, fact.start - ABOUT) : fact.start])[-1]
    if STARTING.search(before):
        # Raised from 30 to 50 says nothing of 30.
        return fact.text, ""
    return before + fact.text, CLAUSE_END.split(low[fact.end : fact.end + ABOUT])[0]


def _turned(mine: tuple[str, str], other: tuple[str, str]) -> Clash | None:
    ours, theirs = BOUND.search(mine[0]), BOUND.search(other[0])
    if ours and theirs:
        is_other = ours.lastgroup != theirs.lastgroup
        return Clash("comparison", mine[0][ours.start() :], other[0][theirs.start() :]) if is_other else None
    here, there = " ".join(mine), " ".join(other)
    if negators(here) or negators(there) or None in (_direction(here), _direction(there)):
        return None
    return are_opposites(here, there) if _direction(here) != _direction(there) else None


def _direction(stretch: str) -> int | None:
    found = {side for number, side in told_by_words(stretch) if number == UP_AND_DOWN}
    return found.pop() if len(found) == 1 else None
