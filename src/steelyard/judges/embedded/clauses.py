"""A sentence into clauses that each state something. What does not stand alone stays with what it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from steelyard.judges.embedded.grammar import (
    CAUSE,
    CIRCUMSTANCE,
    CIRCUMSTANCE_END,
    CONDITION,
    EFFECT,
    EFFECT_EN,
    FINITE,
    FINITE_WORD,
    LEAD,
    LEAD_EN,
    PARTICIPLE_EN,
    REPORTING,
    STANDS_EN,
    STATED,
    SUBJECT_EN,
    TAIL,
    TIME_END,
    shadow,
)
from steelyard.text import HAN, LETTER_OR_DIGIT

Link = Literal["", "cause", "effect"]

SHORTEST = 4
PAIRS = {"（": "）", "(": ")", "“": "”", "‘": "’", "「": "」", "『": "』", "《": "》", "【": "】", "[": "]", "〈": "〉"}
OPENERS = {closer: opener for opener, closer in PAIRS.items()}


class Clause(NamedTuple):
    """`opener` is what comes before the statement proper: a condition, a circumstance, a topic."""

    opener: str
    core: str
    link: Link = ""


def enclosed(text: str) -> list[bool]:
    """For each place, whether it lies within quotation marks or brackets that are closed again."""
    inside = [0] * (len(text) + 1)
    opened: list[tuple[str, int]] = []
    straight: int | None = None
    for at, character in enumerate(text):
        if character == '"':
            if straight is None:
                straight = at
            else:
                inside[straight] += 1
                inside[at] -= 1
                straight = None
        elif character in PAIRS:
            opened.append((character, at))
        elif character in OPENERS and opened and opened[-1][0] == OPENERS[character]:
            inside[opened.pop()[1]] += 1
            inside[at] -= 1
    depth, found = 0, []
    for change in inside[:-1]:
        depth += change
        found.append(depth > 0)
    return found


def clauses(sentence: str) -> list[Clause]:
    """The clauses of one sentence, in order; together they hold all of its words except connectives."""
    return list(_chinese(sentence) if HAN.search(sentence) else _english(sentence))


# --- Chinese ---------------------------------------------------------------------------------------

COMMA = re.compile(r"[，；;]|(?<!\d),|,(?!\d)")


def _pieces(sentence: str) -> list[tuple[str, str]]:
    """The pieces between commas that are not within quotation marks, each with the comma that follows it."""
    inside, pieces, start = enclosed(sentence), [], 0
    for comma in COMMA.finditer(sentence):
        if not inside[comma.start()]:
            pieces.append((sentence[start : comma.start()], comma.group()))
            start = comma.end()
    return [*pieces, (sentence[start:], "")]


def _chinese(sentence: str) -> Iterator[Clause]:
    pieces = [(piece.strip(), comma) for piece, comma in _pieces(sentence) if LETTER_OR_DIGIT.search(piece)]
    held, link = "", ""
    statement: Clause | None = None
    between = ""
    for index, (piece, comma) in enumerate(pieces):
        simple = shadow(piece)
        is_last = index == len(pieces) - 1
        if not is_last and LEAD.fullmatch(simple + "，") and not held:
            link = link or _link(simple)
            between = comma
            continue
        if not is_last and _is_opener(simple, first=statement is None):
            held += piece + comma
        elif statement is not None and not held and _is_tail(simple):
            statement = statement._replace(core=statement.core + (between or "，") + piece)
        else:
            if statement is not None:
                yield statement
            own = _link(simple)
            statement = Clause(held, piece, own or ("effect" if link == "effect" else ""))
            held, link = "", ""
        between = comma
    if statement is None:
        yield Clause("", sentence.strip())
    else:
        yield statement


def _link(simple: str) -> Link:
    if (cause := CAUSE.match(simple)) and STATED.search(simple, cause.end()):
        return "cause"
    return "effect" if EFFECT.match(simple) else ""


def _states(simple: str) -> bool:
    """Whether a piece can be a statement: long enough, and with something that looks like a predicate."""
    lead = LEAD.match(simple)
    body = simple[lead.end() :] if lead else simple
    return len(body) >= SHORTEST and bool(STATED.search(body))


def _is_tail(simple: str) -> bool:
    return bool(TAIL.match(simple)) or not _states(simple)


def _is_opener(simple: str, *, first: bool) -> bool:
    if CONDITION.match(simple) or REPORTING.search(simple) or TIME_END.search(simple):
        return True
    if circumstance := CIRCUMSTANCE.match(simple):
        rest = simple[circumstance.end() :]
        return bool(CIRCUMSTANCE_END.search(rest)) or not STATED.search(rest)
    return first and not _states(simple)


# --- English ---------------------------------------------------------------------------------------

JOINT = re.compile(
    rf";\s+|,?\s+(?=because\s)|,\s+(?=(?:and|but|so|yet|while|whereas|although)\s)"
    rf"|\s(?=(?:and|but) (?:also )?{FINITE}\s)",
    re.IGNORECASE,
)
JOINED = re.compile(r"(?:because|and|but|so|yet|while|whereas|although)\s+", re.IGNORECASE)
MEASURED = re.compile(r"so (?:that|much|many|far|long)\b|and (?:so on|more)\b", re.IGNORECASE)
POINTING = re.compile(r"(?:this|that|it) (?:is|was|may be|could be)(?: \w+ly)?", re.IGNORECASE)
SUBORDINATE = re.compile(
    r"(?:if|when|while|although|though|as|unless|once|after|before|since|whether|whenever|because|until|given|even)\b",
    re.IGNORECASE,
)
RELATIVE = re.compile(r"\b(?:that|which|who|whose|whom|where|whether|if|to)\b", re.IGNORECASE)
BECAUSE_FIRST = re.compile(r"(because|since(?! (?:\d|then|the \d)))\s+([^,]+),\s+(.+)", re.IGNORECASE | re.DOTALL)


def _english(sentence: str) -> Iterator[Clause]:
    if (because := BECAUSE_FIRST.fullmatch(sentence)) and all(map(_can_stand, (because[2], because[3]))):
        yield Clause("", because[2], "cause")
        yield Clause("", because[3], "effect")
        return
    if SUBORDINATE.match(LEAD_EN.sub("", sentence)):
        yield Clause("", sentence, "effect" if EFFECT_EN.match(sentence) else "")
        return
    inside, start = enclosed(sentence), 0
    for joint in JOINT.finditer(sentence):
        before, after = sentence[start : joint.start()], sentence[joint.end() :]
        if inside[joint.start()] or not _parts(before, after, joint.group()):
            continue
        yield _linked(before)
        start = joint.end()
    yield _linked(sentence[start:])


def _parts(before: str, after: str, joint: str) -> bool:
    """Whether a sentence can be cut here: a statement before, and one after that has a subject or shares the first."""
    if (
        MEASURED.match(after)
        or POINTING.fullmatch(before)
        or not (FINITE_WORD.search(before) or STANDS_EN.match(before))
    ):
        return False
    word = JOINED.match(after)
    rest = after[word.end() :] if word else after
    if word and re.match(rf"(?:also )?{FINITE}\b", rest, re.IGNORECASE):
        is_shared = PARTICIPLE_EN.match(rest) and re.search(r"\b(?:is|are|was|were|been|be)\b", before)
        return bool(SUBJECT_EN.match(LEAD_EN.sub("", before))) and not RELATIVE.search(before) and not is_shared
    return _can_stand(rest)


def _can_stand(text: str) -> bool:
    return bool(SUBJECT_EN.match(text) or STANDS_EN.match(text))


def _linked(text: str) -> Clause:
    if re.match(r"because\s", text, re.IGNORECASE):
        return Clause("", text, "cause")
    return Clause("", text, "effect" if EFFECT_EN.match(text) else "")
