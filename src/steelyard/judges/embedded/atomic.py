"""The tasks `atomic.split` and `atomic.judge`; the labels of atoms, which `scorecard` shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from steelyard.judges.embedded.kinds import Kind, is_fallback, kind_of
from steelyard.judges.embedded.network import Reader
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.relevance import levels
from steelyard.judges.embedded.splitting import split as split_answer
from steelyard.judges.embedded.statements import Checked, in_context
from steelyard.judges.embedded.support import PassageReading, Support
from steelyard.records import Numbered, Source, Tolerance
from steelyard.tasks import AtomicData, AtomicReply, AtomVerdict, Difference, GradedAtomVerdict, SplitData, SplitReply
from steelyard.text import normalise
from steelyard.text.figures import difference_of, stated
from steelyard.text.moments import Day
from steelyard.text.tolerance import ruling

USUAL = Tolerance()
UNCHECKABLE: dict[Kind, tuple[str, str]] = {
    "opinion": ("主观看法，不需要核查", "an opinion; there is nothing to check"),
    "advice": ("建议，资料没有相反的说法", "advice that no passage speaks against"),
    "hedge": ("只说明不确定，没有断言事实", "says how uncertain it is, and states no fact"),
    "greeting": ("客套话", "a courtesy"),
    "meta": ("关于回答本身的话", "about the answer itself"),
    "question": ("反问或提问，没有断言", "a question; it states nothing"),
}
# The day that a question means, counted from the day of the sample.
DAYS = {"今天": 0, "今日": 0, "明天": 1, "昨天": -1, "today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
DAY = re.compile("|".join(rf"\b{word}\b" if word.isascii() else word for word in DAYS), re.IGNORECASE)
# A date tells of the day that a statement is about only where it opens the statement.
OPENING = 6


class AtomFinding(NamedTuple):
    """The label of one atom, with its evidence."""

    label: Literal["correct", "wrong", "undetermined", "exempt"]
    reason: str
    reference: int | None = None
    quote: str | None = None
    source: Source | None = None
    difference: Difference | None = None
    confidence: float | None = None


def split(data: SplitData, language: PromptLanguage, reader: Reader | None) -> SplitReply:
    return SplitReply(atoms=split_answer(data.answer, data.question))


def judge(data: AtomicData, language: PromptLanguage, reader: Reader | None) -> AtomicReply:
    texts = [atom.text for atom in data.atoms]
    phrase = Phrasing(language, data.question, data.answer, *texts, sources=data.references)
    found = findings(texts, data.answer, data.question, PassageReading(data.references, phrase, reader), phrase)
    graded = levels(data.question, texts, phrase) if data.question else [None] * len(texts)
    verdicts = []
    for atom, finding, grade in zip(data.atoms, found, graded, strict=True):
        finding = _on_another_day(atom.text, data, finding, phrase) or finding
        level = {"level": grade.level, "level_reason": grade.reason} if grade else {"level": 1}
        verdicts.append(GradedAtomVerdict(id=atom.id, **level, **finding._asdict()))
    return AtomicReply(atoms=verdicts, fallback=is_fallback(data.answer, data.question))


def atom_verdicts(
    atoms: Sequence[Numbered], answer: str, question: str, reading: PassageReading, phrase: Phrasing
) -> list[AtomVerdict]:
    """The atoms' labels without a level; code finds the passage of a quote."""
    found = findings([atom.text for atom in atoms], answer, question, reading, phrase)
    return [
        AtomVerdict(id=atom.id, **{name: value for name, value in one._asdict().items() if name != "reference"})
        for atom, one in zip(atoms, found, strict=True)
    ]


def findings(
    texts: Sequence[str], answer: str, question: str, reading: PassageReading, phrase: Phrasing
) -> list[AtomFinding]:
    """The label of every atom."""
    supports = reading.supports(in_context(texts, answer, question))
    return [
        _finding(Checked(text, kind_of(text, question), support), question, phrase)
        for text, support in zip(texts, supports, strict=True)
    ]


def _finding(claim: Checked, question: str, phrase: Phrasing) -> AtomFinding:
    support = claim.support
    if not claim.is_checkable:
        return AtomFinding("exempt", phrase(*UNCHECKABLE[claim.kind]))
    if support.label == "unknown":
        return AtomFinding("undetermined", support.reason, confidence=support.confidence)
    source: Source = "reference" if _is_said(claim.text, support) else "inference"
    proof = AtomFinding("correct", support.reason, support.reference, support.quote, source, None, support.confidence)
    if support.difference is None:
        return proof if support.label == "supported" else proof._replace(label="wrong")
    difference = difference_of(support.difference, f"{question} {claim.text} {support.quote}")
    if support.label == "supported":
        return proof._replace(difference=difference)
    # Whether a difference passes is the tolerance's to say, and the user's: the judge reports it.
    if difference is None or ruling(difference, USUAL) not in ("within", "same"):
        return proof._replace(label="wrong", difference=difference)
    told = phrase(
        "资料为{stated}，所述为{claimed}",
        "the passage has {stated}, the statement {claimed}",
        stated=difference.stated,
        claimed=difference.claimed,
    )
    return proof._replace(reason=told, difference=difference)


def _is_said(text: str, support: Support) -> bool:
    """Whether the quote itself says it, or it takes an inference."""
    return bool(support.difference) or normalise(text) in normalise(support.quote or "") or support.confidence >= 0.8


def _on_another_day(text: str, data: AtomicData, found: AtomFinding, phrase: Phrasing) -> AtomFinding | None:
    """Wrong for another day than the question means; None where nothing says so."""
    asked, today = DAY.search(data.question), next((one.value for one in stated(data.date)), None)
    if found.label == "exempt" or not asked or not isinstance(today, Day) or None in today:
        return None
    try:
        meant = date(*map(int, filter(None, today))) + timedelta(days=DAYS[asked.group().lower()])
    except (ValueError, OverflowError):  # 30 February, and the end of all days
        return None
    named = next((one for one in stated(text) if one.start <= OPENING and isinstance(one.value, Day)), None)
    if named is None or Day(meant.year, meant.month, meant.day).fits(named.value) is not False:  # type: ignore[arg-type]
        return None
    reason = phrase(
        "所问的是{meant}，说的是{claimed}",
        "asked about {meant}, this is about {claimed}",
        meant=meant.isoformat(),
        claimed=named.text,
    )
    if found.quote is not None:
        return found._replace(label="wrong", reason=reason, source="inference", difference=None)
    # What day it is stands in no passage.
    return AtomFinding("wrong", reason, source="own_knowledge")
