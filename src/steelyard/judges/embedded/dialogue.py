"""The tasks `dialogue.validity` and `dialogue.compliance`.

A criterion is read beside the lines of the system prompt. It is valid with the line that it rests on; invalid only
where the prompt has another value or quotation in its place, says the opposite, or has nothing of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded import conduct
from steelyard.judges.embedded.conduct import QUOTE, content, quotations, shared
from steelyard.judges.embedded.figures import clash, missing
from steelyard.judges.embedded.kinds import plain
from steelyard.judges.embedded.network import Reader, network
from steelyard.judges.embedded.reasons import PromptLanguage, Voice
from steelyard.judges.embedded.support import Claim, Reading, Support
from steelyard.tasks import (
    ComplianceData,
    ComplianceReply,
    ComplianceVerdict,
    Unsure,
    ValidityData,
    ValidityReply,
    ValidityVerdict,
)
from steelyard.text import HAN, LETTER_OR_DIGIT, in_simplified, normalise

# Where one criterion holds several constraints. What is joined by 和 or 、 is usually one.
JOINTS = re.compile(
    r"[，,；;。]|[并並]且|而且|同[时時](?![间間])|(?<=[^合])[并並](?![不列])"
    r"|,? and (?=(?:then |also )?(?:asks?|gives?|says?|tells?|uses?|offers?|ends?|begins?|explains?|mentions?|cites?)\b)"
)
SHORTEST = 2


def content_of(criterion: str) -> tuple[str, str]:
    """What is demanded, and the type that stands after the last ` | `."""
    demanded, bar, kind = criterion.rpartition(" | ")
    return (demanded.strip(), kind.strip()) if bar else (criterion.strip(), "")


def constraints_of(demanded: str) -> list[str]:
    """The constraints that one criterion holds."""
    if conduct.is_one(demanded):
        return [demanded]
    pieces, start = [], 0
    for joint in JOINTS.finditer(QUOTE.sub(lambda quote: conduct.MARK * len(quote.group()), demanded)):
        pieces.append(demanded[start : joint.start()].strip())
        start = joint.end()
    pieces = [piece for piece in (*pieces, demanded[start:].strip()) if LETTER_OR_DIGIT.search(piece)]
    return pieces if len(pieces) > 1 and all(len(piece) > SHORTEST for piece in pieces) else [demanded]


# --- the lines of a system prompt ------------------------------------------------------------------

HEADING = re.compile(
    r"#{1,6}\s*(?P<hash>\S.*)|[*_]{2}(?P<bold>[^*_]{1,40})[*_]{2}.*|【(?P<frame>[^】]{1,30})】.*"
    r"|(?P<colon>[^:：，,。.;；!?！？\d][^:：，,。;；!?！？]{0,24})[:：].*"
)
ITEM = re.compile(r"(?:(?P<number>\d{1,2})\s*[.、)）]|[（(](?P<framed>\d{1,2})[）)]|[-+•]|\*(?!\*)).*")
STOP = re.compile(r"(?<=[。！？!?])(?![）)”」』\"'’])|(?<=\.)\s+(?=[A-Z])")


class PromptLine(NamedTuple):
    """A sentence of the system prompt, verbatim, and where it stands."""

    text: str
    place: str


def prompt_lines(prompt: str) -> list[PromptLine]:
    """The sentences of a system prompt, each with its heading and number, or else its line."""
    lines: list[PromptLine] = []
    heading, is_chinese = "", bool(HAN.search(prompt))
    for number, raw in enumerate(prompt.splitlines(), start=1):
        text = raw.strip()
        item = ITEM.fullmatch(text)
        if not item and (found := HEADING.fullmatch(text)):
            heading = next(filter(None, found.groups())).strip(" *#:：")
        label = (item["number"] or item["framed"]) if item else None
        place = heading or (f"第{number}行" if is_chinese else f"line {number}")
        if heading and label:
            place += f"第{label}条" if is_chinese else f" {label}"
        lines += [PromptLine(piece.strip(), place) for piece in STOP.split(text) if LETTER_OR_DIGIT.search(piece)]
    return lines


# --- validity --------------------------------------------------------------------------------------

# Above this share of what it is about in one line, a constraint rests on that line.
GROUNDED = 0.5
# With this share, a value of the line stands in the place of the constraint's own; with the next, both speak of one
# deed, and only one may deny it; with the last, they say the same but for that.
SAME_MATTER, SAME_DEED, SAME_WORDS = 0.4, 0.5, 0.75
OPPOSED = 0.5
# Up to this share in the whole prompt, the prompt has nothing of the kind; of how many words that can be said.
UNHEARD, FEWEST = 0.25, 2
NEGATION = re.compile(
    r"不(?!断|同|仅|只|超过|少于|多于|低于|高于)|没有?|未|无需|勿|(?<![分特个级性区])别(?!人|的|家)|禁止|严禁|避免|拒绝|婉拒|n't\b"
    r"|\b(?:no(?! more| fewer| less| longer)|not|nothing(?! else)|never|cannot|without|avoid|refrain|refus|declin)(?:e?s|ing|e)?\b"
)  # fmt: skip
CLAUSES = re.compile(r"[，,；;]|但|\bbut\b")
CONDITIONAL = re.compile(r"^\s*(?:[如若当]|一旦|(?:if|when|unless)\b)|(?:时|的话)$")
VALUE = re.compile(r"\d+|[二两三四五六七八九十百千]")
# Long numbers without a unit: telephone numbers, room numbers.
CODE = re.compile(r"(?<![\d-])\d{3,40}(?:-\d{2,40}){0,4}(?![\d-])")


class Basis(NamedTuple):
    """Whether a constraint follows from the prompt; None where this judge cannot tell."""

    is_valid: bool | None
    reason: str
    line: PromptLine | None = None
    strength: float = 0.0


def validity(data: ValidityData, language: PromptLanguage, reader: Reader | None = None) -> ValidityReply:
    lines = prompt_lines(data.system_prompt)
    parts = [(item, part) for item in data.criteria for part in constraints_of(content_of(item.text)[0])]
    reading = Reading([line.text for line in lines], Voice(language), reader)
    found: dict[int, list[Basis]] = {}
    for (item, part), support in zip(parts, reading.supports([Claim(part) for _, part in parts]), strict=True):
        voice = Voice(language, item.text, sources=(data.system_prompt,))
        found.setdefault(item.id, []).append(_basis(part, content_of(item.text)[1], support, lines, voice))
    labels, unsure = [], []
    for id, bases in found.items():
        # One constraint without a basis makes a criterion invalid; otherwise one that is open leaves it open.
        is_valid, reason, line, _ = min(
            bases, key=lambda one: (one.is_valid is not False, bool(one.is_valid), -one.strength)
        )
        if is_valid is None:
            unsure.append(Unsure(items="criteria", id=id, reason=reason))
        else:
            place, quote = (line.place, line.text) if line and is_valid else ("", None)
            labels.append(ValidityVerdict(id=id, place=place, quote=quote, reason=reason, valid=is_valid))
    return ValidityReply(criteria=labels, unsure=unsure)


def _basis(part: str, kind: str, support: Support, lines: Sequence[PromptLine], voice: Voice) -> Basis:
    """The line that a constraint rests on, or what speaks against it."""
    texts = [line.text for line in lines]
    shares = [shared(part, text) for text in texts]
    if not lines:
        return Basis(False, voice("没有系统提示", "there is no system prompt"))
    best = max(range(len(lines)), key=lambda at: (shares[at], -at))
    if support.label == "supported" and support.reference is not None and shares[support.reference] >= SAME_MATTER:
        best = support.reference
    line, share = lines[best], shares[best]
    if other := _other_value(part, line.text, texts):
        told = "系统提示为“{stated}”，不是“{claimed}”", "the system prompt has “{stated}”, not “{claimed}”"
        return Basis(False, voice(*told, claimed=other[0], stated=other[1]))
    if against := _opposite(part, [text for text, near in zip(texts, shares, strict=True) if near >= SAME_MATTER]):
        is_same = len(content(part)) >= FEWEST and shared(part, against) >= SAME_WORDS
        if is_same and support.odds.contradicted >= OPPOSED:
            told = "系统提示的规定与之相反：{line}", "the system prompt says the opposite: {line}"
            return Basis(False, voice(*told, line=against))
        told = "看不出是否与此相反：{line}", "cannot tell whether this says the opposite: {line}"
        return Basis(None, voice(*told, line=against))
    lacking = [*(one.text for one in missing(part, texts)), *_missing_quotations(part, texts)]
    if (share > GROUNDED or support.label == "supported") and not lacking:
        return Basis(True, voice("依据：{line}", "rests on: {line}", line=line.text), line, share)
    if lacking:
        told = "系统提示中没有“{lacking}”", "the system prompt does not have “{lacking}”"
        return Basis(None, voice(*told, lacking=lacking[0]))
    is_unheard = support.label == "unknown" and shared(part, "\n".join(texts)) <= UNHEARD
    if is_unheard and _must_be_named(part, kind, texts):
        told = "“{part}”在系统提示中没有依据", "“{part}” has no basis in the system prompt"
        return Basis(False, voice(*told, part=part))
    return Basis(None, voice("看不出“{part}”是否有依据", "cannot tell whether “{part}” has a basis", part=part))


def _must_be_named(part: str, kind: str, texts: Sequence[str]) -> bool:
    """Manners and courtesies follow from a role, and what is to be said from a general rule; two languages share no
    words."""
    is_same_language = bool(HAN.search(part)) is any(map(HAN.search, texts))
    follows = conduct.STYLE.search(plain(f"{kind} {part}")) or conduct.act_asked(part) or conduct.is_one(part)
    return is_same_language and not follows and len(content(part)) >= FEWEST


def _other_value(part: str, line: str, texts: Sequence[str]) -> tuple[str, str] | None:
    """A number or quotation of the constraint, and what the line has in its place."""
    share = shared(VALUE.sub(" ", QUOTE.sub(" ", part)), line)
    if share < SAME_MATTER:
        return None
    # Where line and constraint say the same but for this, it does not count that the value stands elsewhere.
    around = [line] if share >= SAME_WORDS else texts
    if found := clash(part, line, around):
        return found.claimed, found.stated
    lacking, there = _missing_quotations(part, around), quotations(line)
    if lacking and there:
        return lacking[0], there[0]
    codes, there = [code for code in CODE.findall(part) if all(code not in text for text in texts)], CODE.findall(line)
    return (codes[0], there[0]) if codes and there else None


def _missing_quotations(part: str, texts: Sequence[str]) -> list[str]:
    there = normalise(in_simplified("\n".join(texts)))
    return [one for one in quotations(part) if normalise(in_simplified(one)) not in there]


def _opposite(part: str, near: Sequence[str]) -> str | None:
    """The clause nearest to a constraint, if it denies what that affirms or the reverse, and no other is as near."""
    clauses = [clause for text in near for clause in CLAUSES.split(text) if not CONDITIONAL.search(plain(clause))]
    same = [clause for clause in clauses if _is_negated(clause) is _is_negated(part)]
    other = max((clause for clause in clauses if clause not in same), key=lambda one: shared(part, one), default="")
    strength = shared(part, other)
    return other.strip() if strength >= SAME_DEED and all(shared(part, one) < strength for one in same) else None


def _is_negated(text: str) -> bool:
    return bool(NEGATION.search(QUOTE.sub(conduct.MARK, plain(text))))


# --- compliance ------------------------------------------------------------------------------------


def compliance(
    data: ComplianceData, language: PromptLanguage, reader: Reader | None = None, vectors: conduct.Vectors | None = None
) -> ComplianceReply:
    """What shows is decided; what takes an ear for tone is left open, with the reason."""
    reading = Reading([data.answer], Voice(language), reader)
    turn = conduct.Spoken(data.turn, data.prompt, data.answer, reading, vectors or network().vectors)
    labels, unsure = [], []
    for item in data.criteria:
        voice = Voice(language, item.text, sources=(data.answer,))
        demanded, kind = content_of(item.text)
        complies, reason, triggered = _together(
            [conduct.look(part, kind, turn, voice) for part in constraints_of(demanded)]
        )
        if complies is None:
            unsure.append(Unsure(items="criteria", id=item.id, reason=reason))
        else:
            labels.append(ComplianceVerdict(id=item.id, reason=reason, triggered=triggered, complies=complies))
    return ComplianceReply(criteria=labels, unsure=unsure)


def _together(found: Sequence[conduct.Found]) -> conduct.Found:
    """One failing part fails the criterion; it is met only where every part is."""
    if failed := next((one for one in found if one.complies in ("no", "partly")), None):
        return failed._replace(complies="no" if len(found) == 1 else "partly")
    return next((one for one in found if one.complies is None), found[0])
