"""The task `retrieval.judge`: which passages hold what is asked for, and what the answer made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded.claims import is_fallback, kind_of
from steelyard.judges.embedded.coverage import Coverage, coverage
from steelyard.judges.embedded.outright import spelt_out
from steelyard.judges.embedded.passages import ANSWERING, ranked
from steelyard.judges.embedded.questions import question_of
from steelyard.judges.embedded.support import Read, Support
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.tasks import PassageVerdict, PointVerdict, RetrievalData, RetrievalReply, Unsure
from steelyard.text import sentences

# Below this, no sentence of a passage has anything to do with the question; from ANSWERING on, one may well answer it.
APART = 0.15


def judge(data: RetrievalData, language: PromptLanguage, read: Read) -> RetrievalReply:
    voice = Voice(language, data.question, data.answer, sources=data.passages)
    points = [point.text for point in data.key_points]
    said = [text for text in sentences(data.answer) if kind_of(text, data.question) not in ("greeting", "meta")]
    # Each passage is read alone: another one that says the same must not take its place.
    each = [_read_alone(text, points, said, data, read) for text in data.passages]
    unsure: list[Unsure] = []
    retrieved = []
    for item in data.retrieved:
        if not 0 < item.id <= len(each):
            reason = voice("资料里没有这一段", "there is no such passage")
            unsure.append(Unsure(items="retrieved", id=item.id, reason=reason))
            continue
        one, strength = each[item.id - 1], _strength(data.question, data.passages[item.id - 1])
        label = _relevance(one, strength)
        if label is None:
            reason = voice("说不准它与问题有没有关系", "cannot tell whether it bears on the question")
            unsure.append(Unsure(items="retrieved", id=item.id, reason=reason))
            continue
        use = "used" if any(found.label != "unknown" and found.quote for found in one.said) else "unused"
        retrieved.append(PassageVerdict(id=item.id, reason=_why(one, label, voice), label=label, use=use))
    made = coverage(points, _spelt(data, said), data.question, read)
    key_points = []
    for at, (item, treated) in enumerate(zip(data.key_points, made, strict=True)):
        if treated.label == "partial":
            reason = voice("答案只说到一部分，无从判断", "the answer says only part of it, so this cannot be told")
            unsure.append(Unsure(items="key_points", id=item.id, reason=reason))
            continue
        key_points.append(_point(item.id, [one.points[at] for one in each], treated, voice))
    return RetrievalReply(
        retrieved=retrieved,
        key_points=key_points,
        refuses=bool(data.answer.strip()) and is_fallback(data.answer, data.question),
        unsure=unsure,
    )


class _Alone(NamedTuple):
    """How one passage stands to the key points and to what the answer says."""

    points: list[Support]
    said: list[Support]


def _read_alone(text: str, points: Sequence[str], said: Sequence[str], data: RetrievalData, read: Read) -> _Alone:
    found = read([text], data.question, data.answer).supports([*points, *said])
    return _Alone(found[: len(points)], found[len(points) :])


def _spelt(data: RetrievalData, said: Sequence[str]) -> list[str]:
    is_plain = question_of(data.question).kind != "yes_no"
    return [text if is_plain else spelt_out(data.question, text) for text in said]


def _strength(question: str, passage: str) -> float:
    return max((one.strength for one in ranked(question, [passage])), default=0.0) if question.strip() else 0.0


def _relevance(one: _Alone, strength: float) -> str | None:
    """By the key points that it holds; without one, by how near it comes to the question. None where both waver."""
    held = sum(found.label == "supported" for found in one.points)
    if held:
        return "answers" if 2 * held >= len(one.points) or strength >= ANSWERING else "helps"
    if strength < APART:
        return "irrelevant"
    if one.points:
        # Near the question, and yet none of what a good answer says.
        return None if strength >= ANSWERING else "irrelevant"
    return "answers" if strength >= ANSWERING else None


def _why(one: _Alone, label: str, voice: Voice) -> str:
    held = next((found for found in one.points if found.label == "supported"), None)
    if held:
        return held.reason
    if label == "irrelevant":
        return voice("没有回答问题的内容", "holds nothing that answers the question")
    return voice("与所问相符", "speaks to what is asked")


def _point(id: int, found: Sequence[Support], treated: Coverage, voice: Voice) -> PointVerdict:
    holding = [number for number, one in enumerate(found, start=1) if one.label == "supported" and one.quote]
    proof = found[holding[0] - 1] if holding else None
    in_answer = "stated" if treated.label == "covered" else "contradicted" if treated.clash else "absent"
    reason = proof.reason if proof else voice("资料未提", "not in the passages")
    return PointVerdict(
        id=id,
        passages=holding,
        quote=proof.quote if proof else None,
        reason=reason,
        label="found" if proof else "not_found",
        in_answer=in_answer,
        confidence=None,
    )
