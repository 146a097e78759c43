"""The tasks `dialogue.validity` and `dialogue.compliance`."""

from __future__ import annotations

import re

from steelyard.judges.embedded.acts import Exchanged
from steelyard.judges.embedded.basis import GROUNDED, HINTED, Basis, Line, basis, prompt_lines
from steelyard.judges.embedded.conduct import CONDITION, TONE, Found, look, stated
from steelyard.judges.embedded.meaning import plain, words
from steelyard.judges.embedded.support import Read
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.tasks import (
    ComplianceData,
    ComplianceReply,
    ComplianceVerdict,
    Unsure,
    ValidityData,
    ValidityReply,
    ValidityVerdict,
)

# Where one criterion holds several constraints. What is joined by 和 or 、 is usually one.
JOINTS = re.compile(
    r"[，,；;。]|[并並]且|而且|同[时時]|(?<=[^合])[并並](?!不)|(?<=\w)且|,? and (?=(?:then |also )?[a-z]+s?\b)"
)


def content_of(criterion: str) -> str:
    """What is demanded, without the type that stands after the last ` | `."""
    content, bar, _ = criterion.rpartition(" | ")
    return (content if bar else criterion).strip()


def constraints_of(criterion: str) -> list[str]:
    """The constraints that one criterion holds, each long enough to mean something."""
    content = content_of(criterion)
    if CONDITION.fullmatch(plain(content).strip(" .。")):
        return [content]
    parts = [part.strip() for part in JOINTS.split(content) if words(part)]
    return parts if len(parts) > 1 and all(len(plain(part)) > 2 for part in parts) else [content]


# --- validity --------------------------------------------------------------------------------------


def validity(data: ValidityData, language: PromptLanguage, read: Read) -> ValidityReply:
    lines = prompt_lines(data.system_prompt)
    return ValidityReply(criteria=[_validity(item.id, item.text, lines, language) for item in data.criteria])


def _validity(id: int, criterion: str, lines: list[Line], language: PromptLanguage) -> ValidityVerdict:
    voice = Voice(language, criterion)
    found = [(constraint, basis(constraint, lines)) for constraint in constraints_of(criterion)]
    whole = basis(content_of(criterion), lines)
    # A role implies a manner in words of its own: 脾气火爆 makes 语气急躁 follow.
    enough = HINTED if TONE.search(plain(criterion)) else GROUNDED
    for constraint, one in found:
        # A criterion may say in two clauses what the prompt says in one.
        strength = max(one.strength, whole.strength) if one.strength >= HINTED else one.strength
        if reason := _objection(constraint, one._replace(strength=strength), enough, voice):
            return ValidityVerdict(id=id, reason=reason, valid=False)
    best = max((one for _, one in found), key=lambda one: one.strength)
    line = (best if best.strength >= whole.strength else whole).line
    assert line is not None  # what has no line has no strength, and was objected to
    reason = voice("依据：{line}", "rests on: {line}", line=line.text)
    return ValidityVerdict(id=id, place=line.place, quote=line.text, reason=reason, valid=True)


def _objection(constraint: str, found: Basis, enough: float, voice: Voice) -> str:
    """Why a constraint has no basis; empty where it has."""
    if found.line is None or found.strength < enough:
        return voice("“{part}”在系统提示中没有依据", "“{part}” has no basis in the system prompt", part=constraint)
    if found.amiss:
        return voice("“{amiss}”没有依据", "“{amiss}” has no basis", amiss=found.amiss)
    if found.opposite:
        return voice(
            "系统提示的规定与之相反：{line}", "the system prompt says the opposite: {line}", line=found.line.text
        )
    return ""


# --- compliance ------------------------------------------------------------------------------------


def compliance(data: ComplianceData, language: PromptLanguage, read: Read) -> ComplianceReply:
    """What shows on the surface is decided; what takes an ear for tone is left open, with the reason."""
    exchange = Exchanged(data.system_prompt, data.prompt, data.answer)
    labels: list[ComplianceVerdict] = []
    unsure: list[Unsure] = []
    for item in data.criteria:
        voice = Voice(language, item.text)
        content = content_of(item.text)
        # What is to be said may have commas of its own.
        parts = [content] if stated(content) else constraints_of(item.text)
        found = _together([look(part, exchange, voice, read) for part in parts])
        if found.complies is None:
            unsure.append(Unsure(items="criteria", id=item.id, reason=found.reason))
        else:
            labels.append(
                ComplianceVerdict(id=item.id, reason=found.reason, triggered=found.triggered, complies=found.complies)
            )
    return ComplianceReply(criteria=labels, unsure=unsure)


def _together(found: list[Found]) -> Found:
    """One failing part fails the criterion; it is met only where every part is."""
    failed = [one for one in found if one.complies in ("no", "partly")]
    if failed:
        whole = all(one.complies == "no" for one in found)
        return failed[0]._replace(complies="no" if whole else "partly")
    return next((one for one in found if one.complies is None), found[0])
