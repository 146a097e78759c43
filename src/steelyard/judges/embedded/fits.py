"""How a claim lies in a clause of a passage: what of it is there, and what stands in the place of the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.denials import negators
from steelyard.judges.embedded.differences import WORD_OR_HAN
from steelyard.judges.embedded.meaning import STOP_CHARACTERS, STOP_WORDS, plain, simplified, stem

# Longer stretches than these are no single name or value; longer texts say too much to be compared so.
LONGEST_TAKEN, LONGEST_NAME, LONGEST_CLAIM, LONGEST_CLAUSE = 6, 3, 60, 80
CLAUSE_END = re.compile(
    # 12,000 is one number; 主演，2019年上映 are two clauses.
    r"(?:[，;；。！？!?\n]|(?<!\d),|,(?!\d))+|(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\bProf)\.(?=\s|$)"
    r"|\s(?=(?:and|but|while|whereas|then|ahead of|before|after)\b)|(?=但|而且|并且|然后)"
)
# 在山东注入渤海: a place or a time that comes first is not whom the clause speaks of.
ADVERBIAL = re.compile(r"\A(?:在|于|从|自|当|(?:in|at|on|from|since|during)\b)|[年月日时期]\Z|\A[12][0-9]{3}\Z")
PRONOUNS = frozenset("it they he she this these 它 他 她 其 该 们".split())
MODAL = frozenset("made used called named known paid".split()) | frozenset("能可要会得应须使用该需")
COPULA = re.compile(r"是|为|\b(?:is|are|was|were)\b")
NEGATORS = frozenset("not no never n't without 不 没 未 无 非".split())
FUNCTION_WORDS = STOP_WORDS | STOP_CHARACTERS | NEGATORS


class Token(NamedTuple):
    """A word or a Chinese character: what it is compared by, how it is written, whether it says something by itself."""

    key: str
    written: str
    is_content: bool


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[Token, ...]:
    found = []
    for match in WORD_OR_HAN.finditer(simplified(text)):
        low = match.group().lower()
        key = stem(low) if low.isascii() and low.isalpha() else low
        found.append(Token(key, match.group(), low not in FUNCTION_WORDS))
    return tuple(found)


@lru_cache(maxsize=4096)
def short_clauses(text: str) -> tuple[str, ...]:
    """The clauses of a text, cut as finely as it can be: each *and* and each comma may begin another thing."""
    return tuple(part.strip() for part in CLAUSE_END.split(text) if part and part.strip())


class Change(NamedTuple):
    """What the claim has, between two places, where the clause has something else or nothing."""

    start: int
    end: int
    instead: tuple[Token, ...]


class Fit(NamedTuple):
    """How a claim lies in a clause: the share of it that is there, and what stands there instead of the rest."""

    share: float
    taken: tuple[Token, ...]
    instead: tuple[Token, ...]
    held: frozenset[str]
    beside: frozenset[tuple[str, ...]]
    """What is taken with the token before or behind it: a single character is half a word."""
    changes: tuple[Change, ...]
    added: float
    """How many words of content the clause has beyond the claim."""
    is_unnamed: bool
    """Whether the clause leaves out whom it speaks of, or has a pronoun there."""


@lru_cache(maxsize=4096)
def fit(claim: str, clause: str) -> Fit:
    """How a claim lies in a clause; `taken` and `instead` are there where the two differ in one thing only."""
    ours, theirs = tokens(claim), tokens(clause)
    matcher = SequenceMatcher(None, [one.key for one in ours], [one.key for one in theirs], autojunk=False)
    held: set[str] = set()
    changes: list[Change] = []
    added: list[tuple[Token, ...]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            held.update(one.key for one in ours[a:b] if one.is_content)
        elif any(one.is_content for one in ours[a:b]):
            changes.append(Change(a, b, theirs[c:d]))
        elif any(one.is_content for one in theirs[c:d]):
            added.append(theirs[c:d])
    begin = 0
    is_unnamed = False
    if changes and _is_subject(ours, changes[0]):
        # The museum is open, where the clause has It is closed: who is meant was named before.
        begin, is_unnamed = changes[0].end, True
        changes = changes[1:]
    content = sum(one.is_content for one in ours[begin:])
    share = sum(one.is_content and one.key in held for one in ours[begin:]) / content if content else 0.0
    extra = sum(_weight(one) for part in added for one in part if one.is_content)
    if len(changes) != 1:
        return Fit(share, (), (), frozenset(held), frozenset(), tuple(changes), extra, is_unnamed)
    a, b, instead = changes[0]
    if not instead and len(added) == 1 and COPULA.search(plain(claim)) and COPULA.search(plain(clause)):
        # The capital is Sydney, Canberra is the capital: what is said to be the same may stand on either side.
        instead = added[0]
    a, b = _bare(ours, a, b)
    instead = instead[slice(*_bare(instead, 0, len(instead)))]
    keys = [one.key for one in ours]
    beside = {tuple(keys[max(0, a - 1) : b]), tuple(keys[a : b + 1])} - {tuple(keys[a:b])}
    return Fit(share, ours[a:b], instead, frozenset(held), frozenset(beside), tuple(changes), extra, is_unnamed)


def _weight(token: Token) -> float:
    """A Chinese word has about two characters."""
    return 1.0 if token.written.isascii() else 0.5


def _is_subject(ours: Sequence[Token], change: Change) -> bool:
    """Whether it is whom the claim speaks of that the clause leaves out, or has a pronoun for; the rest says more."""
    if any(one.is_content for one in ours[: change.start]):
        return False
    named, said = (sum(one.is_content for one in part) for part in (ours[: change.end], ours[change.end :]))
    if change.instead and ADVERBIAL.search(plain(written(change.instead))):
        return said > 1
    if any(one.key in PRONOUNS for one in change.instead):
        return said > 1 and not any(one.is_content for one in change.instead if one.key not in PRONOUNS)
    return said > max(1, named) and not any(one.is_content for one in change.instead)


def _bare(stretch: Sequence[Token], a: int, b: int) -> tuple[int, int]:
    """Where a stretch begins and ends without the function words at its ends."""
    while a < b and not stretch[a].is_content and stretch[a].key not in NEGATORS:
        a += 1
    while b > a and not stretch[b - 1].is_content and stretch[b - 1].key not in NEGATORS:
        b -= 1
    return a, b


def is_value(one: Fit) -> bool:
    """Whether one name or value stands in the place of another: about as long, and none of them a denial."""
    sizes = sorted((len(one.taken), len(one.instead)))
    if not sizes[0] or sizes[1] > LONGEST_TAKEN or denies(written(one.taken)) or denies(written(one.instead)):
        return False
    if sizes[1] - sizes[0] > 1 or (one.taken[0].key in MODAL and sizes[1] == 1):
        return False
    if any(not token.written.isascii() for token in (*one.taken, *one.instead)):
        return sizes[0] > 1 or sizes[1] == 1
    return sizes[1] <= LONGEST_NAME and any(token.is_content for token in one.instead)


class Near(NamedTuple):
    """All clauses, and the one that holds most of a claim."""

    clauses: tuple[str, ...]
    home: int
    fit: Fit

    @property
    def clause(self) -> str:
        return self.clauses[self.home]


def nearest(claim: str, texts: Sequence[str]) -> Near | None:
    """The clauses of some texts and which of them comes nearest to the claim; several rules ask for the same."""
    return _nearest(claim, tuple(texts))


@lru_cache(maxsize=1024)
def _nearest(claim: str, texts: tuple[str, ...]) -> Near | None:
    if len(tokens(claim)) > LONGEST_CLAIM:
        return None
    clauses = tuple(clause for text in texts for clause in short_clauses(text) if len(tokens(clause)) <= LONGEST_CLAUSE)
    if not clauses:
        return None
    fits = [fit(claim, clause) for clause in clauses]
    home = max(range(len(clauses)), key=lambda at: (fits[at].share, is_value(fits[at]), -at))
    return Near(clauses, home, fits[home])


def denies(text: str) -> bool:
    return count_negators(text) > 0


def count_negators(text: str) -> int:
    return negators(plain(text))


def written(stretch: Sequence[Token]) -> str:
    """A stretch as text again; Chinese is written without gaps."""
    text = ""
    for token in stretch:
        gap = " " if text[-1:].isascii() and text and token.written.isascii() else ""
        text += gap + token.written
    return text
