"""Atoms as others wrote them, made complete from the answer they stand in, and what they take for granted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded.grammar import (
    DEMONSTRATIVE,
    NOT_SUBJECT,
    PREDICATE,
    PRONOUN,
    PRONOUN_EN,
    SUBJECT_EN,
    shadow,
)
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.subjects import subject_of
from steelyard.text import HAN

SHORTEST_MATCH = 4
LONGEST_ADDITION = 24
POINTING_BACK = re.compile(r"[\d.、\s]{0,6}(?:[这该此它他她其]|(?:It|He|She|They|This|These|Its|His|Her|Their)\b)")
STOP = " \t。.;；,，!！"

AS_ZH = re.compile(
    r"(身为|作为)([^，,；;的]{1,12})的([\w·]{2,12}?)(?=或许|也许|可能|大概|从小|自幼|一直|曾|已|就|也|都|还|在|是"
    r"|有|会|能|将|，|,)"
)
AS_COMMA_ZH = re.compile(
    r"([\w·]{2,12})?(?:身为|作为)([^，,；;]{1,16})[，,]([\w·]{2,12}?)(?=或许|也许|可能|大概|从小|自幼|一直|曾|已|就"
    r"|也|都|还|在|是|有|会|能|将|，|,)"
)
AS_EN = re.compile(r"\bAs (the|an?|his|her|their) ([^,]{3,60}), ((?:[A-Z][\w.'-]* ?){1,4}|he|she|it) ?(?=[a-z])")


def completed(texts: Sequence[str], answer: str, question: str) -> list[str]:
    """Each text with the subject its answer gives it; unchanged where that is not plain."""
    known = [atom.text for atom in split(answer, question)]
    return [_completed(text, known) for text in texts]


def _completed(text: str, known: Sequence[str]) -> str:
    bare = text.strip(STOP)
    pieces = [piece for piece in _without_pronouns(bare) if piece]
    if sum(map(len, pieces)) < SHORTEST_MATCH or bare in (one.strip(STOP) for one in known):
        return text
    pattern = re.compile(".{1,24}?".join(map(re.escape, pieces)), re.IGNORECASE)
    found = [one for one in known if pattern.search(one) and len(one) <= len(bare) + LONGEST_ADDITION]
    return found[0] if len(found) == 1 else text


def _without_pronouns(text: str) -> list[str]:
    """What is left of a text once what stands for a name is taken out."""
    if not HAN.search(text):
        pronoun = PRONOUN_EN.match(text)
        return [text[pronoun.end() :].strip() if pronoun else text]
    simple = shadow(text)
    predicate = PREDICATE.search(simple, 2)
    if predicate and DEMONSTRATIVE.fullmatch(simple[: predicate.start()]):
        return [text[predicate.start() :]]
    pieces, start = [], 0
    for pronoun in PRONOUN.finditer(simple):
        pieces.append(text[start : pronoun.start()])
        start = pronoun.end()
    return [*pieces, text[start:]]


class Unnamed(NamedTuple):
    """A statement as a passage would word it that has named its subject before."""

    subject: str
    text: str


def unnamed(text: str) -> Unnamed | None:
    """The statement without its subject; None where it has none to take away."""
    if not HAN.search(text):
        subject = SUBJECT_EN.match(text)
        known = None if subject is None or NOT_SUBJECT.match(text) else subject[1]
        return Unnamed(known, f"It{text[len(known) :]}") if known else None
    known = subject_of(text)
    rest = text[len(known) :] if known and text.startswith(known) else ""
    return Unnamed(known, rest) if known and len(rest) >= SHORTEST_MATCH else None


def points_back(span: str) -> bool:
    """Whether a span of a passage speaks of something that was named before it: 这个国家…, It…"""
    return bool(POINTING_BACK.match(shadow(span)))


def presupposed(text: str) -> list[str]:
    """What a statement takes for granted in passing: 身为老大的她… says that she is the eldest."""
    simple = shadow(text)
    if found := AS_ZH.search(simple):
        role, name = text[found.start(2) : found.end(2)], text[found.start(3) : found.end(3)]
        return [f"{name}是{role}"]
    if found := AS_COMMA_ZH.search(simple):
        name = text[found.start(1) : found.end(1)] if found[1] else text[found.start(3) : found.end(3)]
        return [f"{name}是{text[found.start(2) : found.end(2)]}"]
    if found := AS_EN.search(text):
        return [f"{found[3].strip()} is {found[1]} {found[2]}."]
    return []
