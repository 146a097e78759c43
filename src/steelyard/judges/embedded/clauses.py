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
    RELATION_NOUN,
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


# Predicates that are nouns and adjectives too: they count where they end a piece or stand before a number.
PLAIN = re.compile(
    r"([^\W\d_][^，,；;的]{1,9}?)(?:均|都|也|则|仅|只)?(?:保修|质保|收费|免费|免票|半价|营业|开放|打[\d一二三四五六七八九.]{1,3}折)"
    r"(?:期?(?:为|约|至|到)?[\d一二三四五六七八九十两半终].{0,12})?[。.！!]?"
)
COMPARED = re.compile(
    r"([^，,；;]{2,12}?)(?<![同环对相])比(?![如较赛例分重])[^，,；;]{1,12}?(?:更|还|要)?(?:贵|便宜|实惠|大|小|高|低|长|短|重|轻|快|慢|好|差"
    r"|多|少|早|晚|强|弱|远|近|新|旧|宽|窄|厚|薄)(?:得多|一些|一点|[\d一二三四五六七八九十两几].{0,8})?[。.！!]?"
)
MEASURED_SIDE = re.compile(rf"{RELATION_NOUN}约?\d(?:(?!以[上下内外])[^，,；;的者]){{0,12}}(?=[，,；;。]|\Z)")
HAS_SIDE = re.compile(rf"([^\W\d_][^，,；;的]{{1,9}}?){RELATION_NOUN}约?\d[^，,；;]{{0,12}}")
NOT_NAMED = re.compile(r"[已曾将正]|\d[\u4e00-\u9fff]")
NOT_OWN = re.compile(r"[周每前后今明昨上下全平暂不已将仅对可需以从在若如现目均都也还则就只其那它他她]|星期|节假|工作日")
# 入住时间为14:00以后 states a time; 2010年以后 only gives one.
SCHEDULE = re.compile(r".{2,}(?:是|为)[^，,；;]*[\d一二三四五六七八九十两][^，,；;]*\Z")


def own_subject(piece: str) -> str | None:
    """The subject of a short piece that states something without a verb: 电池保修一年, A款比B款贵."""
    simple = shadow(piece)
    found = COMPARED.fullmatch(simple) or PLAIN.fullmatch(simple) or HAS_SIDE.fullmatch(simple)
    if found is None or NOT_OWN.match(simple) or STATED.search(found[1]) or NOT_NAMED.search(found[1]):
        return None
    return piece[: found.end(1)]


def _link(simple: str) -> Link:
    if (cause := CAUSE.match(simple)) and STATED.search(simple, cause.end()):
        return "cause"
    return "effect" if EFFECT.match(simple) else ""


def _states(simple: str) -> bool:
    """Whether a piece can be a statement: long enough, and with something that looks like a predicate."""
    lead = LEAD.match(simple)
    body = simple[lead.end() :] if lead else simple
    return len(body) >= SHORTEST and bool(STATED.search(body) or own_subject(body) or MEASURED_SIDE.match(body))


def _is_tail(simple: str) -> bool:
    return bool(TAIL.match(simple)) or not _states(simple)


def _is_opener(simple: str, *, first: bool) -> bool:
    if CONDITION.match(simple) or REPORTING.search(simple) or (TIME_END.search(simple) and not SCHEDULE.match(simple)):
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
# After a semicolon: somebody, perhaps described, and what is done.
CLAUSE_EN = re.compile(
    r"(?:the|an?|its|his|her|their|our|[A-Z][\w'-]*) (?:[\w'-]+ ){0,3}?[\w'-]+, [^,;]{3,40}, (?:\w+ed|\w+s|"
    rf"{FINITE})\b|(?:[\w'-]+ ){{1,5}}?{FINITE}\b",
    re.IGNORECASE,
)
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
    if joint.startswith(";") and CLAUSE_EN.match(after):
        return True
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
