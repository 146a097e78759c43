"""The task `grounded.judge`: an answer of its own from the background, the source of each sentence, the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.kinds import is_commonplace, is_fallback
from steelyard.judges.embedded.network import Reader
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.relevance import answering, best_sentences, on_topic, question_parts
from steelyard.judges.embedded.statements import Checked, Statement, statements
from steelyard.judges.embedded.support import ClaimInContext, PassageReading
from steelyard.tasks import CheckVerdict, GroundedData, GroundedReply, SentenceSource, Unsure
from steelyard.text import sentences
from steelyard.text.figures import stated

# A conclusion that the background supports less than this is not its own.
FOREIGN = 0.4
# An answer contradicts itself only where that is beyond doubt.
BEYOND_DOUBT = 0.97
MOST_COMPARED = 12


class GroundedAnswer(NamedTuple):
    """What every check looks at."""

    data: GroundedData
    statements: list[Statement]
    direct: list[Checked]
    """The claims that speak to the question itself."""
    is_fallback: bool
    phrase: Phrasing

    @property
    def claims(self) -> list[Checked]:
        return [claim for statement in self.statements for claim in statement.claims]


CheckFinding = tuple[int | None, str]
"""1, 0, or None where this judge cannot tell; and why."""


def judge(data: GroundedData, language: PromptLanguage, reader: Reader | None) -> GroundedReply:
    phrase = Phrasing(language, data.answer, data.question, sources=data.references)
    reading = PassageReading(data.references, phrase, reader)
    # The list may be a part of the answer's sentences, or hold others than this reading finds.
    texts = list(dict.fromkeys([*sentences(data.answer), *(item.text for item in data.sentences)]))
    whole = statements(texts, data.answer, data.question, reading)
    own = best_sentences(data.question, data.references)
    answer = GroundedAnswer(data, whole, _direct(data.question, whole), is_fallback(data.answer, data.question), phrase)
    checks: list[CheckVerdict] = []
    unsure: list[Unsure] = []
    for check in data.checks:
        label, reason = CHECKS[check.text](answer) if check.text in CHECKS else (None, _unknown(check.text, phrase))
        if label is None:
            unsure.append(Unsure(items="checks", id=check.id, reason=reason))
        else:
            checks.append(CheckVerdict(id=check.id, reason=reason, label=1 if label else 0))
    known = {statement.text: statement for statement in whole}
    spoken_of = words(" ".join((data.question, *data.references)))
    return GroundedReply(
        own_answer=" ".join(found.text for found in own)
        or phrase("背景资料没有回答这个问题。", "The background does not answer this."),
        answerable=bool(own),
        sentences=[_source(item.id, known[item.text], spoken_of, phrase) for item in data.sentences],
        checks=checks,
        unsure=unsure,
    )


def _direct(question: str, found: Sequence[Statement]) -> list[Checked]:
    claims = [claim for statement in found for claim in statement.claims]
    asked = [question, *question_parts(question)]
    is_direct = answering(asked, [claim.text for claim in claims])
    return [claim for claim, direct in zip(claims, is_direct, strict=True) if direct]


def _unknown(name: str, phrase: Phrasing) -> str:
    return phrase("不认识检查项“{name}”", "the check “{name}” is not known", name=name)


# --- where a sentence comes from -------------------------------------------------------------------


def _source(id: int, statement: Statement, spoken_of: frozenset[str], phrase: Phrasing) -> SentenceSource:
    if contradicted := statement.labelled("contradicted"):
        support = contradicted[0].support
        return SentenceSource(id=id, label="outside", reason=support.reason, confidence=statement.confidence)
    unknown = [claim for claim in statement.labelled("unknown") if not _is_granted(claim.text, spoken_of)]
    if unknown:
        reason = phrase("背景未提：{claim}", "not in the background: {claim}", claim=unknown[0].text)
        return SentenceSource(id=id, label="outside", reason=reason, confidence=statement.confidence)
    supported = statement.labelled("supported")
    if not supported:
        reason = phrase("没有可核查的事实", "states no fact that could be checked")
        return SentenceSource(id=id, label="benign_extension", reason=reason)
    weakest = min(supported, key=lambda claim: claim.support.confidence).support
    reason = phrase("背景写有：{quote}", "the background has: {quote}", quote=weakest.quote or "")
    return SentenceSource(id=id, label="from_background", reason=reason, confidence=statement.confidence)


def _is_granted(claim: str, known: frozenset[str]) -> bool:
    """Whether a claim only says that a thing already spoken of matters: no value, and hardly a new word."""
    said = words(claim)
    return is_commonplace(claim) and not stated(claim) and 2 * len(said & known) >= len(said)


# --- the checks, each on its own -------------------------------------------------------------------


def _not_fallback(answer: GroundedAnswer) -> CheckFinding:
    if answer.is_fallback:
        return 0, answer.phrase("整个答案是兜底回复", "the answer as a whole declines")
    return 1, answer.phrase("给出了实际回答", "it gives a real answer")


def _on_topic(answer: GroundedAnswer) -> CheckFinding:
    texts = [statement.text for statement in answer.statements]
    if answer.is_fallback:
        # 资料没有提到票价 declines the question that was asked; 我还在学习 could decline any.
        if words(answer.data.question) & words(" ".join(texts)):
            return 1, answer.phrase("针对所问作了拒答", "it declines the very thing that is asked")
        return 0, answer.phrase("没有谈到所问", "it does not speak of what is asked")
    if answer.direct or any(on_topic(answer.data.question, texts)):
        return 1, answer.phrase("说的正是所问", "it speaks of what is asked")
    return 0, answer.phrase("答非所问", "it speaks of something else than what is asked")


def _answers_question(answer: GroundedAnswer) -> CheckFinding:
    if answer.is_fallback:
        return 0, answer.phrase("只是拒答", "it only declines")
    if answer.direct:
        return 1, answer.phrase("直接作答：{claim}", "it answers: {claim}", claim=answer.direct[0].text)
    return 0, answer.phrase("没有一句直接回答问题", "no sentence answers the question")


def _complete(answer: GroundedAnswer) -> CheckFinding:
    answered, reason = _answers_question(answer)
    if not answered:
        return 0, reason
    texts = [claim.text for claim in answer.claims]
    for part in question_parts(answer.data.question):
        if not any(answering([part], texts)):
            return 0, answer.phrase("没有回答：{part}", "does not answer: {part}", part=part)
    return 1, answer.phrase("核心问题已作答", "the core of the question is answered")


def _conclusion_correct(answer: GroundedAnswer) -> CheckFinding:
    phrase = answer.phrase
    if answer.is_fallback or not answer.direct:
        return 0, phrase("没有给出结论", "it gives no conclusion")
    # An advice that the background is silent on is judged by the facts it is given with.
    conclusion = [claim for claim in answer.direct if claim.is_checkable] or [
        claim for statement in answer.statements for claim in statement.checked
    ]
    if not conclusion:
        return 0, phrase("没有可与背景对照的结论", "there is no conclusion to hold against the background")
    supports = [claim.support for claim in conclusion]
    if wrong := next((support for support in supports if support.label == "contradicted"), None):
        return 0, wrong.reason
    if foreign := next((claim for claim in conclusion if claim.support.odds.supported < FOREIGN), None):
        return 0, phrase("背景没有这样的结论：{claim}", "the background does not conclude: {claim}", claim=foreign.text)
    if held := next((support for support in supports if support.label == "supported"), None):
        return 1, phrase("与背景一致：{quote}", "agrees with the background: {quote}", quote=held.quote or "")
    return None, phrase(
        "背景是否支持结论，本评判者看不出来", "this judge cannot tell whether the background bears it out"
    )


def _no_fallacy(answer: GroundedAnswer) -> CheckFinding:
    texts = [claim.text for claim in answer.claims if claim.kind == "claim"][:MOST_COMPARED]
    for at, text in enumerate(texts[1:], start=1):
        found = PassageReading(texts[:at], answer.phrase).support(ClaimInContext(text))
        if found.label == "contradicted" and found.confidence >= BEYOND_DOUBT:
            said = {"a": found.quote or "", "b": text}
            return 0, answer.phrase("自相矛盾：{a} / {b}", "contradicts itself: {a} / {b}", **said)
    return 1, answer.phrase("没有看出推理问题", "no flaw of reasoning was seen")


CHECKS: dict[str, Callable[[GroundedAnswer], CheckFinding]] = {
    "on_topic": _on_topic,
    "answers_question": _answers_question,
    "complete": _complete,
    "conclusion_correct": _conclusion_correct,
    "no_fallacy": _no_fallacy,
    "not_fallback": _not_fallback,
}
