"""The tasks `dialogue.validity` and `dialogue.compliance`.

A criterion is read beside the lines of the system prompt. It is valid with the line that it rests on; invalid only
where the prompt has another value or another quotation in its place, says the opposite, or has nothing of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.conduct import (
    MARK,
    NEGATION,
    QUOTE,
    STYLE,
    Found,
    Spoken,
    content,
    is_one,
    look,
    plain,
    quotations,
    shared,
)
from steelyard.judges.embedded.figures import clash, missing
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

if TYPE_CHECKING:
    from steelyard.judges.embedded.conduct import Vectors

# --- the lines of a system prompt ------------------------------------------------------------------

HEADING = re.compile(
    r"#{1,6}\s*(?P<hash>\S.*)|[*_]{2}(?P<bold>[^*_]{1,40})[*_]{2}\s*[:：]?(?P<after_bold>.*)|【(?P<frame>[^】]{1,30})】(?P<after_frame>.*)"
    r"|(?P<colon>[^:：，,。.;；!?！？\d][^:：，,。;；!?！？]{0,24})[:：](?P<after_colon>.*)"
)
ITEM = re.compile(r"(?:(?P<number>\d{1,2})\s*[.、)）]|[（(](?P<framed>\d{1,2})[）)]|[-+•]|\*(?!\*))\s*(?P<rest>.*)")
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
            heading = (found["hash"] or found["bold"] or found["frame"] or found["colon"]).strip(" *#:：")
        label = (item["number"] or item["framed"]) if item else None
        if heading and label:
            place = f"{heading}第{label}条" if is_chinese else f"{heading} {label}"
        else:
            place = heading or (f"第{number}行" if is_chinese else f"line {number}")
        lines += [PromptLine(piece.strip(), place) for piece in STOP.split(text) if LETTER_OR_DIGIT.search(piece)]
    return lines


# --- validity --------------------------------------------------------------------------------------

JOINTS = re.compile(
    r"[，,；;。]|[并並]且|而且|同[时時](?![间間])|(?<=[^合])[并並](?![不列])"
    r"|,? and (?=(?:then |also )?(?:asks?|gives?|says?|tells?|uses?|offers?|ends?|begins?|explains?|mentions?|cites?|does)\b)"
)
# From this share of what it is about in one line on, a constraint rests on that line.
GROUNDED = 0.5
# With this share a number or a quotation of the line stands in the place of the constraint's own; with the next, line
# and constraint speak of the same deed, and only one of them may deny it.
SAME_MATTER, SAME_DEED, SAME_WORDS = 0.4, 0.5, 0.75
OPPOSED = 0.5
# Up to this share in the whole prompt, the prompt has nothing of the kind.
UNHEARD = 0.25
SHORTEST = 2
VALUE = re.compile(r"\d+|[二两三四五六七八九十百千]")
CONDITIONAL = re.compile(r"^\s*(?:如果|若|当|一旦|if|when|unless)\b|^\s*[如若当]|时$|的话$")
CLAUSES = re.compile(r"[，,；;]|但|\bbut\b")
# Long numbers without a unit: telephone numbers, room numbers.
CODE = re.compile(r"(?<![\d-])\d{3,}(?:-\d{2,}){0,4}(?![\d-])")


class Basis(NamedTuple):
    """Whether a constraint follows from the prompt; None where this judge cannot tell."""

    is_valid: bool | None
    strength: float
    line: PromptLine | None
    reason: str


def content_of(criterion: str) -> tuple[str, str]:
    """What is demanded, and the type that stands after the last ` | `."""
    content, bar, kind = criterion.rpartition(" | ")
    return (content.strip(), kind.strip()) if bar else (criterion.strip(), "")


def constraints_of(content: str) -> list[str]:
    """The constraints that one criterion holds. Those of a condition, or of what is to be said, stay together."""
    if is_one(content):
        return [content]
    pieces, start = [], 0
    for joint in JOINTS.finditer(QUOTE.sub(lambda quote: MARK * len(quote.group()), content)):
        pieces.append(content[start : joint.start()].strip())
        start = joint.end()
    pieces = [piece for piece in (*pieces, content[start:].strip()) if LETTER_OR_DIGIT.search(piece)]
    return pieces if len(pieces) > 1 and all(len(piece) > SHORTEST for piece in pieces) else [content]


def validity(data: ValidityData, language: PromptLanguage, reader: Reader | None = None) -> ValidityReply:
    lines = prompt_lines(data.system_prompt)
    parts = [(item, part) for item in data.criteria for part in constraints_of(content_of(item.text)[0])]
    reading = Reading([line.text for line in lines], Voice(language), reader)
    read = reading.supports([Claim(part) for _, part in parts])
    found: dict[int, list[Basis]] = {}
    for (item, part), support in zip(parts, read, strict=True):
        voice = Voice(language, item.text, sources=(data.system_prompt,))
        found.setdefault(item.id, []).append(_basis(part, content_of(item.text)[1], support, lines, voice))
    labels, unsure = [], []
    for id, bases in found.items():
        # One constraint without a basis makes a criterion invalid; otherwise one that is open leaves it open.
        first = min(bases, key=lambda one: (one.is_valid is not False, one.is_valid is not None, -one.strength))
        if first.is_valid is None:
            unsure.append(Unsure(items="criteria", id=id, reason=first.reason))
            continue
        line = first.line if first.is_valid else None
        place, quote = (line.place, line.text) if line else ("", None)
        labels.append(ValidityVerdict(id=id, place=place, quote=quote, reason=first.reason, valid=first.is_valid))
    return ValidityReply(criteria=labels, unsure=unsure)


def _basis(part: str, kind: str, support: Support, lines: Sequence[PromptLine], voice: Voice) -> Basis:
    """The line that a constraint rests on, or what speaks against it."""
    texts = [line.text for line in lines]
    shares = [shared(part, text) for text in texts]
    best = max(range(len(lines)), key=lambda at: (shares[at], -at), default=None)
    if best is None:
        return Basis(False, 0.0, None, voice("没有系统提示", "there is no system prompt"))
    if support.label == "supported" and support.reference is not None and shares[support.reference] >= SAME_MATTER:
        best = support.reference
    line, share = lines[best], shares[best]
    if other := _other_value(part, line.text, texts):
        claimed, stated = other
        told = voice(
            "系统提示为“{stated}”，不是“{claimed}”",
            "the system prompt has “{stated}”, not “{claimed}”",
            stated=stated,
            claimed=claimed,
        )
        return Basis(False, share, line, told)
    if against := _opposite(part, [one for one, near in zip(texts, shares, strict=True) if near >= SAME_MATTER]):
        is_sure = len(content(part)) > 1 and shared(part, against) >= SAME_WORDS and support.odds.contradicted >= OPPOSED
        if is_sure:
            told = voice("系统提示的规定与之相反：{line}", "the system prompt says the opposite: {line}", line=against)
        else:
            told = voice("看不出是否与此相反：{line}", "cannot tell whether this says the opposite: {line}", line=against)
        return Basis(False if is_sure else None, share, line, told)
    lacking = [*(one.text for one in missing(part, texts)), *_missing_quotations(part, texts)]
    if (share > GROUNDED or support.label == "supported") and not lacking:
        return Basis(True, share, line, voice("依据：{line}", "rests on: {line}", line=line.text))
    is_style = STYLE.search(plain(f"{kind} {part}"))
    if shared(part, "\n".join(texts)) <= UNHEARD and support.label == "unknown" and not is_style:
        told = voice("“{part}”在系统提示中没有依据", "“{part}” has no basis in the system prompt", part=part)
        return Basis(False, 0.0, None, told)
    if lacking:
        told = voice("系统提示中没有“{claimed}”", "the system prompt does not have “{claimed}”", claimed=lacking[0])
    else:
        told = voice("看不出“{part}”是否有依据", "cannot tell whether “{part}” has a basis", part=part)
    return Basis(None, share, line, told)


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
    codes = [code for code in CODE.findall(part) if all(code not in text for text in texts)]
    in_line = CODE.findall(line)
    return (codes[0], in_line[0]) if codes and in_line else None


def _opposite(part: str, near: Sequence[str]) -> str | None:
    """The clause that is nearest to a constraint, where that and no other clause denies what it affirms or the reverse."""
    clauses = [clause for text in near for clause in CLAUSES.split(text) if not CONDITIONAL.search(plain(clause))]
    same = [clause for clause in clauses if _is_negated(clause) is _is_negated(part)]
    other = max((clause for clause in clauses if clause not in same), key=lambda one: shared(part, one), default="")
    strength = shared(part, other)
    return other.strip() if strength >= SAME_DEED and all(shared(part, one) < strength for one in same) else None


def _is_negated(text: str) -> bool:
    return bool(NEGATION.search(QUOTE.sub(MARK, plain(text))))


def _missing_quotations(part: str, texts: Sequence[str]) -> list[str]:
    there = normalise(in_simplified("\n".join(texts)))
    return [one for one in quotations(part) if normalise(in_simplified(one)) not in there]


# --- compliance ------------------------------------------------------------------------------------


def compliance(
    data: ComplianceData, language: PromptLanguage, reader: Reader | None = None, vectors: Vectors | None = None
) -> ComplianceReply:
    """What shows is decided; what takes an ear for tone is left open, with the reason."""
    reading = Reading([data.answer], Voice(language), reader)
    turn = Spoken(data.prompt, data.answer, reading, vectors or network().vectors)
    labels, unsure = [], []
    for item in data.criteria:
        voice = Voice(language, item.text, sources=(data.answer,))
        content, kind = content_of(item.text)
        found = _together([look(part, kind, turn, voice) for part in constraints_of(content)])
        if found.complies is None:
            unsure.append(Unsure(items="criteria", id=item.id, reason=found.reason))
        else:
            labels.append(
                ComplianceVerdict(id=item.id, reason=found.reason, triggered=found.triggered, complies=found.complies)
            )
    return ComplianceReply(criteria=labels, unsure=unsure)


def _together(found: Sequence[Found]) -> Found:
    """One failing part fails the criterion; it is met only where every part is."""
    if failed := next((one for one in found if one.complies in ("no", "partly")), None):
        return failed._replace(complies="no" if len(found) == 1 else "partly")
    return next((one for one in found if one.complies is None), found[0])
