"""Who an English clause speaks of: shared subjects are repeated, pronouns become names where only one can be meant."""

from __future__ import annotations

import re

from steelyard.judges.embedded.clauses import Clause
from steelyard.judges.embedded.grammar import EXPLETIVE, FINITE, LEAD_EN, NOT_SUBJECT, PRONOUN_EN, SUBJECT_EN
from steelyard.judges.embedded.names import Names

POSSESSIVES = ("its", "his", "her", "their")


def complete_en(clause: Clause, names: Names) -> str:
    """An English clause with its shared subject or its pronoun by name, where only one can be meant."""
    core = clause.core.strip()
    while (lead := LEAD_EN.match(core)) and len(core) > lead.end():
        core = core[lead.end() :]
    if re.match(rf"(?:also )?{FINITE}\b", core) and names.current:
        return _sentence(f"{names.current} {core}")
    if (pronoun := PRONOUN_EN.match(core)) and not EXPLETIVE.match(core):
        name = _fitting(pronoun[1].lower(), names)
        if name is None:
            names.current = pronoun[1]
            return _sentence(core)
        ending = "'" if pronoun[1].lower() == "their" and name.endswith("s") else "'s"
        named = name + ending if pronoun[1].lower() in POSSESSIVES else name
        names.speak_of(name)
        return _sentence(named + core[pronoun.end() :])
    if (subject := SUBJECT_EN.match(core)) and not NOT_SUBJECT.match(core):
        names.mention(subject[1])
    return _sentence(core)


def _fitting(pronoun: str, names: Names) -> str | None:
    """The only name that the pronoun can stand for: they are many, he and she people, it is a thing."""
    if pronoun in ("he", "she", "his", "her"):
        return names.person_en(pronoun)
    name = names.only() if pronoun in ("they", "their") else names.thing()
    is_plural = bool(name and re.search(r"\band\b|[^s]s$", name))
    return name if is_plural == (pronoun in ("they", "their")) else None


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]
