"""The tasks `atomic.split` and `atomic.judge`; the labels of atoms, which `scorecard` shares."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judges.embedded.claims import is_fallback
from steelyard.judges.embedded.completing import completed
from steelyard.judges.embedded.labels import Finding, findings
from steelyard.judges.embedded.meaning import expect
from steelyard.judges.embedded.moments import other_place, other_time
from steelyard.judges.embedded.outright import spelt_out
from steelyard.judges.embedded.questions import question_of
from steelyard.judges.embedded.relevance import level, to_compare
from steelyard.judges.embedded.splitting import split as split_answer
from steelyard.judges.embedded.support import Read, Reading
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.records import Numbered
from steelyard.tasks import AtomicData, AtomicReply, AtomVerdict, GradedAtomVerdict, SplitData, SplitReply
from steelyard.text import sentences


def split(data: SplitData, language: PromptLanguage, read: Read) -> SplitReply:
    return SplitReply(atoms=split_answer(data.answer, data.question))


def judge(data: AtomicData, language: PromptLanguage, read: Read) -> AtomicReply:
    texts = completed([atom.text for atom in data.atoms], data.answer, data.question)
    stated = _stated(texts, data.question)
    voice = Voice(language, data.question, data.answer, *texts, sources=data.references)
    others = [_others(text, texts, data.answer) for text in texts]
    expect(to_compare(data.question, texts, others))
    found = findings(stated, data.question, read(data.references, data.question, data.answer), voice, data.references)
    verdicts = []
    for atom, text, rest, finding in zip(data.atoms, texts, others, found, strict=True):
        finding = _here_and_now(text, data, finding, voice) or finding
        graded = level(data.question, text, rest, voice)
        verdicts.append(
            GradedAtomVerdict(id=atom.id, level=graded.level, level_reason=graded.reason, **finding._asdict())
        )
    return AtomicReply(atoms=verdicts, fallback=is_fallback(data.answer, data.question))


def atom_verdicts(
    atoms: Sequence[Numbered],
    question: str,
    reading: Reading,
    language: PromptLanguage,
    passages: Sequence[str] = (),
) -> list[AtomVerdict]:
    """The atoms' labels without a level. Where the passages are given, every quote is one that code will find."""
    texts = _stated([atom.text for atom in atoms], question)
    voice = Voice(language, question, *texts, sources=passages)
    found = findings(texts, question, reading, voice, passages)
    return [
        AtomVerdict(
            id=atom.id,
            quote=one.quote,
            reason=one.reason,
            label=one.label,
            source=one.source,
            difference=one.difference,
            confidence=one.confidence,
        )
        for atom, one in zip(atoms, found, strict=True)
    ]


def _stated(texts: Sequence[str], question: str) -> list[str]:
    """What is checked: a bare yes or no states what the question asks."""
    if question_of(question).kind != "yes_no":
        return list(texts)
    return [spelt_out(question, text) for text in texts]


def _others(text: str, texts: Sequence[str], answer: str) -> list[str]:
    """What else the answer says; an atom asked about alone is still part of its answer."""
    if len(texts) > 1:
        return [other for other in texts if other != text]
    return [sentence for sentence in sentences(answer) if text.rstrip("。.") not in sentence]


# --- time and place --------------------------------------------------------------------------------


def _here_and_now(text: str, data: AtomicData, found: Finding, voice: Voice) -> Finding | None:
    """Wrong for another time or place than the question implies; None where the rule does not apply."""
    if found.label == "exempt":
        return None
    other = other_time(data.question, text, data.date) or other_place(data.question, text, data.place)
    if other is None:
        return None
    reason = voice(
        "所问的是{meant}，说的是{named}", "asked about {meant}, this is about {named}", meant=other[0], named=other[1]
    )
    if found.quote is not None:
        return Finding("wrong", reason, found.reference, found.quote, "inference")
    # What day it is stands in no passage.
    return Finding("wrong", reason, source="own_knowledge")
