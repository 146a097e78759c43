"""`grounded`: eight binary checks of relevance and truthfulness, gated into one accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.protocols import Protocol
from steelyard.protocols.common import (
    UNMARKED,
    WHOLE,
    Collected,
    Options,
    collect,
    confident,
    has_text,
    in_parts,
    marked,
    numbered,
    prompt_language,
    rag_size,
    status_of,
    too_long,
    why_open,
)
from steelyard.protocols.counts import grounded_scores
from steelyard.protocols.scoring import conjunction
from steelyard.protocols.vocabulary import Aspect, Expectation, Kind, Label, Metric, Words
from steelyard.records import Ask, Check, Mark, Numbered, Part, RagSample, Rounds, Verdict
from steelyard.tasks import GroundedData, GroundedReply, SentenceSource
from steelyard.text import language_of, sentences
from steelyard.text.suspicion import shows_injection
from steelyard.text.wording import say

SCORES = ("relevance", "truthfulness", "accuracy")
CheckLabel = Literal[0, 1, "unjudged"]

# The order in which the source document lists them; the two fallback checks are one fact.
CHECKS: tuple[tuple[str, str], ...] = (
    ("relevance", "from_background"),
    ("relevance", "on_topic"),
    ("relevance", "answers_question"),
    ("relevance", "complete"),
    ("relevance", "not_fallback"),
    ("truthfulness", "conclusion_correct"),
    ("truthfulness", "no_fallacy"),
    ("truthfulness", "not_fallback"),
)
ASKED = ("on_topic", "answers_question", "complete", "conclusion_correct", "no_fallacy", "not_fallback")


class GroundedOptions(Options):
    """`strict`: a benign extension counts as outside the background."""

    strict: bool = False


def grounded(sample: RagSample, options: GroundedOptions) -> Rounds:
    flags = ["injection_suspected"] if shows_injection([sample.answer], sample.references) else []
    background = has_text(sample.references)
    if not background:
        flags.append("no_background")
    if not sample.answer.strip():
        nothing: dict[str, tuple[CheckLabel, str]] = {name: (0, _flag(sample, "empty_answer")) for _, name in CHECKS}
        return _verdict(sample, nothing, (), [*flags, "empty_answer"], {})
    if (size := rag_size(sample)) > options.max_chars:
        return too_long(sample.id, "grounded", SCORES, flags, size)

    data = GroundedData(
        question=sample.question,
        references=sample.references,
        answer=sample.answer,
        # Without a background no sentence can come from it; the judge need not say so.
        sentences=numbered(sentences(sample.answer) if background else ()),
        checks=numbered(ASKED),
    )
    language = prompt_language(sample.question, sample.answer)
    judging = Ask(task="grounded.judge", language=language, data=data, reply=GroundedReply)
    collected = yield from collect(in_parts(judging, options.part_size))

    parts = tuple(_part(sentence, collected) for sentence in data.sentences)
    found = {name: _check(id, collected) for id, name in enumerate(ASKED, start=1)}
    marks = {name: collected.mark("checks", id) for id, name in enumerate(ASKED, start=1)}
    marks["from_background"] = _mark_of_parts(parts, collected, strict=options.strict)
    found["from_background"] = _from_background(parts, strict=options.strict)
    sure = {name: _sureness(id, collected) for id, name in enumerate(ASKED, start=1)}
    sure["from_background"] = _sureness_of_parts(parts, strict=options.strict)
    if not background:
        sure["from_background"] = sure["conclusion_correct"] = None
        found["from_background"] = found["conclusion_correct"] = (0, _flag(sample, "no_background"))
    replies: list[GroundedReply] = collected.replies
    answerable: bool | None = bool(replies and replies[0].answerable and background)
    if background and "answerable" in collected.mark(WHOLE, 0).open:
        answerable = None
    if any(part.label == "benign_extension" for part in parts):
        flags.append("benign_extension")
    if found["not_fallback"][0] == 0:
        flags.append("fallback")
        if answerable is None:
            # Whether declining was honest is what the judges do not agree on.
            flags.append("unjudged:answerable:split")
        elif not answerable:
            flags.append("correct_abstention")
    of_asks, notes = collected.remarks()
    if replies:
        notes = {"own_answer": replies[0].own_answer, "answerable": answerable, **notes}
    return _verdict(sample, found, parts, [*flags, *of_asks], notes, marks, sure)


def _flag(sample: RagSample, name: str) -> str:
    """What a flag means, as the reason of a check that no judge was needed for."""
    return say(language_of(sample.question, sample.answer), f"flag.{name}")


def _check(id: int, collected: Collected) -> tuple[CheckLabel, str]:
    label, mark = collected.label("checks", id), collected.mark("checks", id)
    if label is None:
        return "unjudged", collected.reason("checks", id)
    return ("unjudged", why_open(mark)) if mark.open else (label.label, label.reason)


def _part(sentence: Numbered, collected: Collected) -> Part:
    source: SentenceSource | None = collected.label("sentences", sentence.id)
    if source is None:
        return Part(text=sentence.text, label="unjudged", reason=collected.reason("sentences", sentence.id))
    if (mark := collected.mark("sentences", sentence.id)).open:
        return Part(text=sentence.text, label="unjudged", reason=why_open(mark))
    # Where several voted, the mark says how sure the label is.
    sure = None if mark.shares or source.confidence is None else round(source.confidence, 4)
    return Part(
        text=sentence.text,
        label=source.label,
        reason=source.reason,
        confidence=sure,
        judge=mark.judge or None,
        second_opinion=mark.second_opinion,
    )


def _sureness(id: int, collected: Collected) -> float | None:
    label, mark = collected.label("checks", id), collected.mark("checks", id)
    return None if label is None or mark.open else label.confidence


def _sureness_of_parts(parts: Sequence[Part], *, strict: bool) -> float | None:
    """The confidence of the background check: it passes if all sentences come from the background."""
    if _from_background(parts, strict=strict)[0] == "unjudged":
        return None
    against = [part for part in parts if _from_background([part], strict=strict)[0] == 0]
    given = [part.confidence for part in against or parts]
    known = [confidence for confidence in given if confidence is not None]
    if not known or (len(known) < len(given) and not against):
        return None
    return max(known) if against else min(known)


def _mark_of_parts(parts: Sequence[Part], collected: Collected, *, strict: bool) -> Mark:
    """The marks of the sentences as one: as sure as the least sure, and what the check was before a second pass."""
    marks = [collected.mark("sentences", id) for id in range(1, len(parts) + 1)]
    if all(mark is UNMARKED for mark in marks):
        return UNMARKED
    shares = [mark.shares["label"] for mark in marks if "label" in mark.shares]
    before = [
        part.model_copy(update={"label": mark.first["label"]}) if mark.first else part
        for part, mark in zip(parts, marks, strict=True)
    ]
    first, now = (_from_background(given, strict=strict)[0] for given in (before, parts))
    changed = first != now
    return Mark(
        shares={"label": min(shares)} if shares else {},
        open=("label",) if now == "unjudged" and any(mark.open for mark in marks) else (),
        first={"label": first} if changed else {},
        flags=tuple(flag for mark in marks for flag in mark.flags if flag != "not_confirmed" or changed),
        judge=" + ".join(dict.fromkeys(mark.judge for mark in marks if mark.judge)),
    )


def _from_background(parts: Sequence[Part], *, strict: bool) -> tuple[CheckLabel, str]:
    """The answer comes from the background when each of its sentences does; one that says nothing (👍) adds nothing."""
    if not parts:
        return 1, ""
    passes = {"from_background": 1, "benign_extension": 0 if strict else 1, "outside": 0}
    label = conjunction(passes.get(part.label) for part in parts)
    if label is None:
        return "unjudged", next(part.reason for part in parts if part.label == "unjudged")
    against = [part for part in parts if passes.get(part.label) == 0]
    telling = against or [part for part in parts if part.label == "benign_extension"] or parts[:1]
    return (1 if label else 0), " ".join(dict.fromkeys(part.reason for part in telling if part.reason))


def _verdict(
    sample: RagSample,
    found: dict[str, tuple[CheckLabel, str]],
    parts: tuple[Part, ...],
    flags: list[str],
    notes: dict[str, object],
    marks: Mapping[str, Mark] | None = None,
    sure: Mapping[str, float | None] | None = None,
) -> Verdict:
    language = language_of(sample.question, sample.answer)

    def check(id: int, group: str, name: str) -> Check:
        item = Check(
            id=id,
            name=name,
            group=group,
            text=CHECK.names[name].in_language(language),
            label=found[name][0],
            reason=found[name][1],
            parts=parts if name == "from_background" else (),
        )
        return marked(confident(item, (sure or {}).get(name)), (marks or {}).get(name, UNMARKED))

    checks = tuple(check(id, group, name) for id, (group, name) in enumerate(CHECKS, start=1))
    return Verdict(
        id=sample.id,
        protocol="grounded",
        status=status_of(checks),
        scores=grounded_scores(checks),
        items=checks,
        flags=(*flags, *(flag for check in checks for flag in check.flags)),
        notes=notes,
    )


# --- vocabulary ------------------------------------------------------------------------------------

CHECK_LABEL = Aspect(
    "check",
    (
        Label("1", "good", Words("pass", "通过", "通過")),
        Label("0", "bad", Words("fail", "未通过", "未通過")),
    ),
    words=Words("Checks", "检查项", "檢查項目"),
    one=Words("Check", "检查项", "檢查項"),
    ask=Words("Does the answer pass this check?", "回答通过这项检查吗？", "回答通過這項檢查嗎？"),
)
PART = Aspect(
    "part",
    (
        Label("from_background", "good", Words("from the background", "来自背景", "來自背景")),
        Label("benign_extension", "neutral", Words("harmless addition", "无害的补充", "無害的補充")),
        Label("outside", "bad", Words("outside the background", "超出背景", "超出背景")),
    ),
    words=Words("Sentences: source", "句子：来源", "句子：來源"),
)
CHECK = Kind(
    "check",
    (CHECK_LABEL,),
    Words("Checks", "检查项", "檢查項目"),
    listed_as="checks",
    identity="name",
    once=True,
    errors_in=("from_background", "conclusion_correct"),
    parts=PART,
    names={
        "from_background": Words("Comes from the background", "内容来自背景", "內容來自背景"),
        "on_topic": Words("Stays on topic", "没有偏题", "沒有偏題"),
        "answers_question": Words("Answers the question", "回答了问题", "回答了問題"),
        "complete": Words("Is complete", "回答完整", "回答完整"),
        "not_fallback": Words("Is not a fallback reply", "不是兜底回复", "不是婉拒回覆"),
        "conclusion_correct": Words("Reaches the right conclusion", "结论正确", "結論正確"),
        "no_fallacy": Words("Has no logical fallacy", "没有逻辑谬误", "沒有邏輯謬誤"),
    },
)
# People are asked about the checks; what users of an assistant said of a whole answer is compared with this.
ACCURACY = Aspect(
    "accuracy",
    (
        Label("1", "good", Words("accurate", "准确", "準確")),
        Label("0", "bad", Words("not accurate", "不准确", "不準確")),
    ),
    words=Words("Accuracy as a whole", "整体准确性", "整體準確性"),
    one=Words("Accuracy as a whole", "整体准确性", "整體準確性"),
    ask=Words("Is the answer accurate as a whole?", "整体来看，这个回答准确吗？", "整體來看，這個回答準確嗎？"),
    asked=False,
    confidence=None,
)
PROTOCOL = Protocol(
    name="grounded",
    title=Words("Grounded in the background", "相关性与真实性", "相關性與真實性"),
    kind="rag",
    rounds=grounded,
    options=GroundedOptions,
    kinds=(CHECK,),
    whole=(ACCURACY,),
    metrics=(
        Metric(
            "relevance",
            "binary",
            Words("Relevance", "相关性", "相關性"),
            Words(
                "Whether the answer passes all five relevance checks.",
                "五项相关性检查是否全部通过。",
                "五項相關性檢查是否全部通過。",
            ),
            reads=("check",),
            group="relevance",
            never_null=True,
        ),
        Metric(
            "truthfulness",
            "binary",
            Words("Truthfulness", "真实性", "真實性"),
            Words(
                "Whether the answer passes all three truthfulness checks.",
                "三项真实性检查是否全部通过。",
                "三項真實性檢查是否全部通過。",
            ),
            reads=("check",),
            group="truthfulness",
            never_null=True,
        ),
        Metric(
            "accuracy",
            "binary",
            Words("Accuracy", "准确率", "準確性"),
            Words("Whether the answer passes all eight checks.", "八项检查是否全部通过。", "八項檢查是否全部通過。"),
            main=True,
            reads=("check",),
            never_null=True,
        ),
    ),
    tasks=("grounded.judge",),
    transcript="grounded",
    groups={
        "relevance": Words("Relevance", "相关性", "相關性"),
        "truthfulness": Words("Truthfulness", "真实性", "真實性"),
    },
    rescore=lambda verdict: grounded_scores(verdict.items),
    expectations=(
        Expectation(
            "question_answered",
            "check",
            Words("The answer does not pass as an answer to the question", "没有合格地回答问题", "沒有合格地回答問題"),
        ),
    ),
)
