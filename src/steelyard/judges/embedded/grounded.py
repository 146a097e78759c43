"""The task `grounded.judge`: an answer of its own from the background, the source of each sentence, the checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from steelyard.judges.embedded.claims import is_fallback
from steelyard.judges.embedded.fallacies import Link, against_itself, swapped
from steelyard.judges.embedded.meaning import plain, words
from steelyard.judges.embedded.outright import is_yes
from steelyard.judges.embedded.passages import Ranked, best_sentences
from steelyard.judges.embedded.relevance import answers, is_about
from steelyard.judges.embedded.statements import FOREIGN, Claim, Remembering, Statement, read_statements, repeats
from steelyard.judges.embedded.support import Read
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.tasks import CheckVerdict, GroundedData, GroundedReply, SentenceSource, Unsure
from steelyard.text import HAN, sentences

# What one question asks in several parts: 多少钱，在哪里买？ / how much is it and where is it sold?
PARTS = re.compile(
    r"[？?；;]|[，,](?=.{0,12}(?:什么|怎么|如何|哪|多少|几|是否|谁|为何|何时))"
    r"|\band (?=(?:how|what|when|where|who|why|which|is|are|can|does|do)\b)"
)


class Answer(NamedTuple):
    """What every check looks at."""

    data: GroundedData
    statements: list[Statement]
    direct: list[Claim]
    """The claims that speak to the question itself."""
    own: list[Ranked]
    fallback: bool
    read: Read
    voice: Voice


Finding = tuple[int | None, str]
"""1, 0, or None where this judge cannot tell; and why."""


def judge(data: GroundedData, language: PromptLanguage, read: Read) -> GroundedReply:
    voice = Voice(language, data.answer, data.question)
    reading = Remembering(read(data.references, data.question))
    # The list may be a part of the answer's sentences, or hold others than this reading finds.
    texts = dict.fromkeys([*sentences(data.answer), *(item.text for item in data.sentences)])
    whole = read_statements(list(texts), data.question, reading, read)
    stated = {statement.text: statement for statement in whole}
    known = _pieces(" ".join((data.question, *data.references)))
    own = best_sentences(data.question, data.references)
    answer = Answer(
        data, whole, _direct(data.question, whole, own), own, is_fallback(data.answer, data.question), read, voice
    )
    checks: list[CheckVerdict] = []
    unsure: list[Unsure] = []
    for check in data.checks:
        label, reason = CHECKS[check.text](answer) if check.text in CHECKS else (None, _unheard_of(check.text, voice))
        if label is None:
            unsure.append(Unsure(items="checks", id=check.id, reason=reason))
        else:
            checks.append(CheckVerdict(id=check.id, reason=reason, label=1 if label else 0))
    return GroundedReply(
        own_answer=" ".join(found.text for found in own)
        or voice("背景资料没有回答这个问题。", "The background does not answer this."),
        answerable=bool(own),
        sentences=[_source(item.id, stated[item.text], data.references, known, voice) for item in data.sentences],
        checks=checks,
        unsure=unsure,
    )


def _direct(question: str, statements: Sequence[Statement], own: Sequence[Ranked]) -> list[Claim]:
    asked = [question, *question_parts(question)]
    return [
        claim
        for statement in statements
        for claim in statement.claims
        if any(answers(part, text) for part in asked for text in _as_said(claim, statement))
        or repeats(claim, [found.text for found in own])
    ]


def _as_said(claim: Claim, statement: Statement) -> list[str]:
    """A claim, and where it opens its sentence the sentence too: it may begin with the yes or no."""
    return [claim.text, statement.text] if claim is statement.claims[0] else [claim.text]


def _unheard_of(name: str, voice: Voice) -> str:
    return voice("不认识检查项“{name}”", "the check “{name}” is not known", name=name)


# --- where a sentence comes from -------------------------------------------------------------------


def _source(id: int, statement: Statement, references: Sequence[str], known: set[str], voice: Voice) -> SentenceSource:
    if link := swapped(statement.text, references):
        return SentenceSource(id=id, label="outside", reason=_swapped(link, voice))
    if statement.contradicted:
        reason = statement.contradicted[0].support.reason
        return SentenceSource(id=id, label="outside", reason=reason, confidence=statement.confidence)
    unknown = [claim for claim in statement.unknown if not is_commonplace(claim.text, known)]
    if unknown:
        reason = voice("背景未提：{claim}", "not in the background: {claim}", claim=unknown[0].text)
        return SentenceSource(id=id, label="outside", reason=reason, confidence=statement.confidence)
    if not statement.supported:
        reason = voice("没有可核查的事实", "states no fact that could be checked")
        return SentenceSource(id=id, label="benign_extension", reason=reason)
    reason = voice("背景写有：{quote}", "the background has: {quote}", quote=statement.supported[0].support.quote or "")
    return SentenceSource(id=id, label="from_background", reason=reason, confidence=statement.confidence)


# What everybody grants: that something matters, helps, or wants care.
COMMONPLACE = re.compile(
    r"重要|关键|必不可少|不可或缺|不可忽视|离不开|有助于|有利于|息息相关|密切相关|至关|值得(?:注意|重视)|\b(?:important|essential|crucial|vital|matters?"
    r"|key (?:to|part|role|factor)|plays? an? \w+ (?:role|part)|helps? (?:to )?(?:ensure|keep)|worth)\b"
)
FACT = re.compile(r"\d|[一二两三四五六七八九十百千万亿]+(?:[个位次种年天倍元米人]|分之)|[A-Z]{2,}|[《“「]")
SPOKEN_OF = 0.6


def is_commonplace(claim: str, known: set[str]) -> bool:
    """Whether a claim only says that a thing already spoken of matters: no figure, no name, nothing new."""
    said = _pieces(claim)
    return bool(
        COMMONPLACE.search(plain(claim)) and not FACT.search(claim) and len(said & known) >= SPOKEN_OF * len(said)
    )


def _pieces(text: str) -> set[str]:
    """Single characters rather than pairs: a commonplace puts known words together in new ways."""
    return {*HAN.findall(plain(text)), *(word for word in words(text) if not HAN.search(word))}


# --- the checks, each on its own -------------------------------------------------------------------


def _not_fallback(answer: Answer) -> Finding:
    if answer.fallback:
        return 0, answer.voice("整个答案是兜底回复", "the answer as a whole declines")
    return 1, answer.voice("给出了实际回答", "it gives a real answer")


def _on_topic(answer: Answer) -> Finding:
    texts = [statement.text for statement in answer.statements]
    if answer.fallback:
        # 资料没有提到票价 declines the question that was asked; 我还在学习 could decline any.
        if set(words(answer.data.question)) & set(words(" ".join(texts))):
            return 1, answer.voice("针对所问作了拒答", "it declines the very thing that is asked")
        return 0, answer.voice("没有谈到所问", "it does not speak of what is asked")
    if answer.direct or any(is_about(answer.data.question, text) for text in texts):
        return 1, answer.voice("说的正是所问", "it speaks of what is asked")
    return 0, answer.voice("答非所问", "it speaks of something else than what is asked")


def _answers_question(answer: Answer) -> Finding:
    if answer.fallback:
        return 0, answer.voice("只是拒答", "it only declines")
    if answer.direct:
        return 1, answer.voice("直接作答：{claim}", "it answers: {claim}", claim=answer.direct[0].text)
    return 0, answer.voice("没有一句直接回答问题", "no sentence answers the question")


def _complete(answer: Answer) -> Finding:
    answered, reason = _answers_question(answer)
    if not answered:
        return 0, reason
    texts = [claim.text for statement in answer.statements for claim in statement.claims]
    for part in question_parts(answer.data.question):
        if not any(answers(part, text) for text in texts):
            return 0, answer.voice("没有回答：{part}", "does not answer: {part}", part=part)
    return 1, answer.voice("核心问题已作答", "the core of the question is answered")


def question_parts(question: str) -> list[str]:
    """The several things that one question asks; none where it asks one."""
    parts = [part.strip() for part in PARTS.split(question) if len(part.strip()) > 3]
    return parts if len(parts) > 1 else []


def _conclusion_correct(answer: Answer) -> Finding:
    voice = answer.voice
    if answer.fallback or not answer.statements:
        return 0, voice("没有给出结论", "it gives no conclusion")
    if not answer.direct:
        return 0, voice("没有给出结论", "it gives no conclusion")
    if link := swapped(answer.data.answer, answer.data.references):
        return 0, _swapped(link, voice)
    # An advice that the background is silent on is judged by the facts it is given with.
    conclusion = [claim for claim in answer.direct if claim.checkable] or [
        claim for statement in answer.statements for claim in statement.checked
    ]
    if not conclusion and any(is_yes(claim.text) is not None for claim in answer.direct):
        return None, voice(
            "只答了是或否，本评判者无法对照", "a bare yes or no, which this judge cannot hold against it"
        )
    if not conclusion:
        return 0, voice("没有可与背景对照的结论", "there is no conclusion to hold against the background")
    for claim in conclusion:
        if claim.support.label == "contradicted":
            return 0, claim.support.reason
    unknown = [claim for claim in conclusion if claim.support.label == "unknown"]
    if invented := next((claim for claim in unknown if claim.support.probability < FOREIGN), None):
        return 0, voice("背景没有这样的结论：{claim}", "the background does not conclude: {claim}", claim=invented.text)
    if len(unknown) < len(conclusion):
        first = next(claim for claim in conclusion if claim.support.label == "supported")
        quote = first.support.quote or ""
        return 1, voice("与背景一致：{quote}", "agrees with the background: {quote}", quote=quote)
    return None, voice(
        "背景是否支持结论，本评判者看不出来", "this judge cannot tell whether the background bears it out"
    )


def _no_fallacy(answer: Answer) -> Finding:
    voice, data = answer.voice, answer.data
    if link := swapped(data.answer, data.references):
        return 0, _swapped(link, voice)
    claims = [claim.text for statement in answer.statements for claim in statement.claims]
    if clash := against_itself(claims, data.question, answer.read):
        return 0, voice("自相矛盾：{a} / {b}", "contradicts itself: {a} / {b}", a=clash[0], b=clash[1])
    return 1, voice("没有看出推理问题", "no flaw of reasoning was seen")


def _swapped(link: Link, voice: Voice) -> str:
    return voice("因果倒置：{cause} → {effect}", "cause and effect swapped: {cause} → {effect}", **link._asdict())


CHECKS: dict[str, Callable[[Answer], Finding]] = {
    "on_topic": _on_topic,
    "answers_question": _answers_question,
    "complete": _complete,
    "conclusion_correct": _conclusion_correct,
    "no_fallacy": _no_fallacy,
    "not_fallback": _not_fallback,
}
