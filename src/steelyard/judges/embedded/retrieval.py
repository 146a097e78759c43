"""The task `retrieval.judge`: which passages hold what is asked for, and what the answer made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.kinds import is_fallback, kind_of
from steelyard.judges.embedded.network import Reader
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.relevance import ANSWERS, UNINFORMATIVE, odds_of_answer
from steelyard.judges.embedded.scorecard import Coverage, coverage
from steelyard.judges.embedded.statements import in_context
from steelyard.judges.embedded.support import ClaimInContext, PassageReading, Support
from steelyard.tasks import PassageVerdict, PointVerdict, RetrievalData, RetrievalReply, Unsure
from steelyard.text import sentences

# Below these odds, no sentence of a passage has anything to do with the question.
APART = 0.15


class _SinglePassage(NamedTuple):
    """How one passage by itself stands to the key points and to what the answer says, and to the question."""

    points: list[Support]
    said: list[Support]
    odds: float


def judge(data: RetrievalData, language: PromptLanguage, reader: Reader | None) -> RetrievalReply:
    phrase = Phrasing(language, data.question, data.answer, sources=data.passages)
    points = [ClaimInContext(point.text) for point in data.key_points]
    texts = [text for text in sentences(data.answer) if kind_of(text, data.question) not in UNINFORMATIVE]
    said = in_context(texts, data.answer, data.question)
    # Each passage is read alone: another one that says the same must not take its place.
    each: list[_SinglePassage] = []
    for passage in data.passages:
        found = PassageReading([passage], phrase, reader).supports([*points, *said])
        each.append(_SinglePassage(found[: len(points)], found[len(points) :], odds_of_answer(data.question, passage)))
    labelled = [_passage(item.id, each, phrase) for item in data.retrieved]
    retrieved = [one for one in labelled if isinstance(one, PassageVerdict)]
    unsure = [one for one in labelled if isinstance(one, Unsure)]
    key_points: list[PointVerdict] = []
    made = coverage([point.text for point in data.key_points], data.answer, data.question, reader, phrase)
    for at, (item, one) in enumerate(zip(data.key_points, made, strict=True)):
        if one.label == "partial":
            reason = phrase("答案只说到一部分，无从判断", "the answer says only part of it, so this cannot be told")
            unsure.append(Unsure(items="key_points", id=item.id, reason=reason))
        else:
            key_points.append(_point(item.id, [alone.points[at] for alone in each], one, phrase))
    refuses = bool(data.answer.strip()) and is_fallback(data.answer, data.question)
    return RetrievalReply(retrieved=retrieved, key_points=key_points, refuses=refuses, unsure=unsure)


def _passage(id: int, each: Sequence[_SinglePassage], phrase: Phrasing) -> PassageVerdict | Unsure:
    if not 0 < id <= len(each):
        return Unsure(items="retrieved", id=id, reason=phrase("资料里没有这一段", "there is no such passage"))
    one = each[id - 1]
    label = _relevance(one)
    if label is None:
        reason = phrase("说不准它与问题有没有关系", "cannot tell whether it bears on the question")
        return Unsure(items="retrieved", id=id, reason=reason)
    held = next((found for found in one.points if found.label == "supported"), None)
    if held:
        reason = held.reason
    elif label == "irrelevant":
        reason = phrase("没有回答问题的内容", "holds nothing that answers the question")
    else:
        reason = phrase("与所问相符", "speaks to what is asked")
    is_used = any(found.label != "unknown" and found.quote for found in one.said)
    return PassageVerdict(id=id, reason=reason, label=label, use="used" if is_used else "unused")


def _relevance(one: _SinglePassage) -> Literal["answers", "helps", "irrelevant"] | None:
    """By the key points that it holds; without one, by how near it comes to the question. None where both waver."""
    held, answers = sum(found.label == "supported" for found in one.points), one.odds >= ANSWERS
    if held:
        return "answers" if 2 * held >= len(one.points) or answers else "helps"
    if one.odds < APART:
        return "irrelevant"
    if one.points:
        # Near the question, and yet none of what a good answer says.
        return None if answers else "irrelevant"
    return "answers" if answers else None


def _point(id: int, found: Sequence[Support], made: Coverage, phrase: Phrasing) -> PointVerdict:
    holding = [number for number, one in enumerate(found, start=1) if one.label == "supported" and one.quote]
    proof = found[holding[0] - 1] if holding else None
    missing: Literal["contradicted", "absent"] = "contradicted" if made.is_contradicted else "absent"
    return PointVerdict(
        id=id,
        passages=holding,
        quote=proof.quote if proof else None,
        reason=proof.reason if proof else phrase("资料未提", "not in the passages"),
        label="found" if proof else "not_found",
        in_answer="stated" if made.label == "covered" else missing,
    )
