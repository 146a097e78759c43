"""`scorecard`: relevance, completeness, accuracy and faithfulness from 0 to 100, by band."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from pydantic import Field, JsonValue, field_validator

from steelyard.protocols import Protocol
from steelyard.protocols.atomic import NOT_GIVEN
from steelyard.protocols.atoms import (
    ATOM,
    Rules,
    Split,
    atom_item,
    evidence_of,
    finish_split,
    is_quoted,
    lacks_evidence,
    split_ask,
)
from steelyard.protocols.common import (
    Collected,
    Options,
    collect,
    confident,
    has_question,
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
from steelyard.protocols.counts import scorecard_scores, shallow
from steelyard.protocols.key_points import (
    KeyPointsSource,
    can_derive,
    distinct_points,
    key_points_ask,
    wants_key_points,
)
from steelyard.protocols.scoring import Number, composite
from steelyard.protocols.vocabulary import Aspect, Expectation, Kind, Label, Metric, Words
from steelyard.records import (
    AnyItem,
    Ask,
    Evidence,
    KeyPoint,
    Numbered,
    RagSample,
    Reply,
    Rounds,
    Sentence,
    SupportLabel,
    Tolerance,
    TopicLabel,
    Unjudged,
    Verdict,
)
from steelyard.tasks import (
    AtomVerdict,
    KeyPointVerdict,
    ScorecardData,
    ScorecardReply,
    SentenceVerdict,
)
from steelyard.text import language_of, sentences
from steelyard.text.suspicion import shows_injection
from steelyard.text.wording import say

METRICS = ("relevance", "completeness", "accuracy", "faithfulness")
SCORES = (*METRICS, "faithfulness_soft")
WEIGHT: dict[str, JsonValue] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000}
CLAIMS = ("supported", "partial", "unsupported")


class ScorecardOptions(Options):
    """`weights` (metric → weight) asks for a composite score; without them there is none."""

    strict: bool = False
    tolerance: Tolerance = Tolerance()
    derive_key_points: bool = True
    weights: Mapping[str, float] = Field(
        default={}, json_schema_extra={"properties": dict.fromkeys(METRICS, WEIGHT), "additionalProperties": False}
    )
    date: str = ""
    place: str = ""

    @field_validator("weights")
    @classmethod
    def _known_metrics(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        unknown = sorted(weights.keys() - set(METRICS))
        if unknown:
            raise ValueError(f"unknown metric {unknown[0]!r}; weights can be given to {', '.join(METRICS)}")
        if any(weight < 0 or not isfinite(weight) for weight in weights.values()):
            raise ValueError("a weight is a number of 0 or more")
        if weights and not any(weights.values()):
            raise ValueError("at least one weight must be above 0")
        return weights


def scorecard(sample: RagSample, options: ScorecardOptions) -> Rounds:
    flags = ["injection_suspected"] if shows_injection([sample.answer], sample.references) else []
    if not sample.answer.strip():
        return _empty(sample, options, [*flags, "empty_answer"])
    if (size := rag_size(sample)) > options.max_chars:
        return too_long(sample.id, "scorecard", _score_names(options), flags, size)
    checkable = has_text(sample.references)
    if not checkable:
        flags.append("no_references")
    if not has_question(sample):
        flags.append("no_question")
    language = prompt_language(sample.question, sample.answer)

    # First round: what is to be labelled.
    derives = can_derive(sample, options.derive_key_points)
    first: dict[str, Ask] = {}
    if checkable:
        first["atoms"] = split_ask(sample, language)
    if derives:
        first["key_points"] = key_points_ask(sample, language)
    replies = dict(zip(first, (yield list(first.values())), strict=True)) if first else {}
    failures = {name: reply for name, reply in replies.items() if isinstance(reply, Unjudged)}
    flags += [f"unjudged:{name}:{failure.reason}" for name, failure in failures.items()]
    split = Split(())
    if isinstance(atoms := replies.get("atoms"), Reply):
        split = yield from finish_split(first["atoms"], sample.answer, atoms)
    points = sample.key_points or ()
    if isinstance(derived := replies.get("key_points"), Reply):
        points = tuple(point.text for point in derived.data.key_points)
    source: KeyPointsSource = "derived" if derives else "given"

    # Second round: one reading labels everything.
    data = ScorecardData(
        question=sample.question,
        references=sample.references,
        date=sample.date or options.date or NOT_GIVEN[language],
        place=sample.place or options.place or NOT_GIVEN[language],
        sentences=numbered(sentences(sample.answer)),
        key_points=distinct_points(points),
        atoms=split.atoms,
    )
    collected = Collected()
    if data.items():
        judging = Ask(
            task="scorecard.judge", language=language, data=data, reply=ScorecardReply, tolerance=options.tolerance
        )
        collected = yield from collect(
            in_parts(judging, options.part_size),
            lambda _, label: checkable and _unproven(label, sample.references),
        )
    judged = tuple(_sentence(sentence, collected, sample) for sentence in data.sentences)
    rules = Rules(options.strict, options.tolerance)
    items: tuple[AnyItem, ...] = (
        *judged,
        *(_key_point(point, collected, source) for point in data.key_points),
        *(atom_item(atom, collected, sample.references, rules, split.causal_of.get(atom.id)) for atom in data.atoms),
    )
    of_asks, notes = collected.remarks(failures.values())
    if summaries := [reply.summary for reply in collected.replies if reply.summary]:
        notes["summary"] = summaries[0]
    if data.key_points:
        notes["keypoints_source"] = source
    # An answer that claims nothing has no atoms, and should have none.
    if split.uncovered and (split.atoms or any(sentence.support in CLAIMS for sentence in judged)):
        flags.append("answer_not_covered")
        notes["uncovered"] = list(split.uncovered)
    return _verdict(sample, options, items, [*flags, *of_asks], notes, scorecard_scores(items), failures)


def _empty(sample: RagSample, options: ScorecardOptions, flags: list[str]) -> Verdict:
    """The verdict on an empty answer: off topic, every key point missing, nothing to check; no judge is needed."""
    reason = say(language_of(sample.question, *(sample.key_points or ())), "flag.empty_answer")
    items = tuple(
        KeyPoint(id=point.id, text=point.text, label="missing", reason=reason)
        for point in distinct_points(sample.key_points or ())
    )
    scores = scorecard_scores(items, empty_answer=True, asked=has_question(sample))
    if not items and not wants_key_points(sample, options.derive_key_points):
        scores["completeness"] = None
    if not has_question(sample):
        flags.append("no_question")
    return _verdict(sample, options, items, flags, {}, scores)


def _unproven(label: AtomVerdict | SentenceVerdict | KeyPointVerdict, references: Sequence[str]) -> bool:
    if isinstance(label, AtomVerdict):
        return lacks_evidence(label, references)
    if isinstance(label, SentenceVerdict) and label.support in ("supported", "partial"):
        return not is_quoted(label.quote, None, references)
    return False


def _sentence(sentence: Numbered, collected: Collected, sample: RagSample) -> Sentence:
    label: SentenceVerdict | None = collected.label("sentences", sentence.id)
    references, asked = sample.references, has_question(sample)
    if label is None:
        reason, topic = collected.reason("sentences", sentence.id), "unjudged" if asked else None
        return Sentence(id=sentence.id, text=sentence.text, on_topic=topic, support="unjudged", reason=reason)
    mark = collected.mark("sentences", sentence.id)
    support: SupportLabel = "unjudged" if "support" in mark.open else label.support
    on_topic: TopicLabel = "unjudged" if "on_topic" in mark.open else "on_topic" if label.on_topic else "off_topic"
    fields = {"on_topic": "on_topic", "support": "support"} if asked else {"support": "support"}
    flags: tuple[str, ...] = ()
    evidence: Evidence | None = None
    if support not in ("no_claim", "unjudged") and not has_text(references):
        support, flags = "unsupported", ("no_references",)
    if support in ("supported", "partial"):
        evidence = evidence_of(label.quote, None, references)
        flags = () if evidence.verified else ("evidence_unverified",)
    item = Sentence(
        id=sentence.id,
        text=sentence.text,
        on_topic=on_topic if asked else None,
        support=support,
        reason=why_open(mark) if set(mark.open) & fields.keys() else label.reason,
        evidence=evidence,
        flags=flags,
    )
    if "on_topic" in mark.first:
        mark = mark.model_copy(update={"first": {**mark.first, "on_topic": "off_topic"}})
    return marked(confident(item, label.confidence if support == label.support else None), mark, fields=fields)


def _key_point(point: Numbered, collected: Collected, source: KeyPointsSource) -> KeyPoint:
    label: KeyPointVerdict | None = collected.label("key_points", point.id)
    if label is None:
        return KeyPoint(
            id=point.id,
            text=point.text,
            label="unjudged",
            reason=collected.reason("key_points", point.id),
            keypoints_source=source,
        )
    mark = collected.mark("key_points", point.id)
    item = KeyPoint(
        id=point.id,
        text=point.text,
        label="unjudged" if mark.open else label.label,
        depth=label.depth if label.label != "missing" and not mark.open else None,
        reason=why_open(mark) if mark.open else label.reason,
        keypoints_source=source,
    )
    return marked(confident(item, None if mark.open else label.confidence), mark)


def _score_names(options: ScorecardOptions) -> tuple[str, ...]:
    return (*SCORES, "composite") if options.weights else SCORES


def _verdict(
    sample: RagSample,
    options: ScorecardOptions,
    items: tuple[AnyItem, ...],
    flags: list[str],
    notes: dict[str, Any],
    scores: dict[str, Number],
    failures: Iterable[str] = (),
) -> Verdict:
    if options.weights:
        scores["composite"] = composite(scores, options.weights)
    if shallow(items):
        flags.append("shallow_cap")
    return Verdict(
        id=sample.id,
        protocol="scorecard",
        status=status_of(items, failures),
        scores=scores,
        items=items,
        flags=(*flags, *(flag for item in items for flag in item.flags)),
        notes=notes,
    )


def _rescored(verdict: Verdict) -> dict[str, Number]:
    flags = verdict.flags
    return scorecard_scores(verdict.items, empty_answer="empty_answer" in flags, asked="no_question" not in flags)


# --- vocabulary ------------------------------------------------------------------------------------

ON_TOPIC = Aspect(
    "on_topic",
    (
        Label("on_topic", "good", Words("on topic", "切题", "切題")),
        Label("off_topic", "bad", Words("off topic", "离题", "離題")),
    ),
    words=Words("Sentences: topic", "句子：是否切题", "句子：是否切題"),
    one=Words("Sentence: topic", "句子：切题", "句子：切題"),
    ask=Words("Is this sentence about the question?", "这句话切题吗？", "這句話切題嗎？"),
    field="on_topic",
    confidence=None,
)
SUPPORT = Aspect(
    "support",
    (
        Label("supported", "good", Words("supported", "有支持", "有支撐")),
        Label("partial", "half", Words("partly supported", "部分支持", "部分支撐")),
        Label("unsupported", "bad", Words("unsupported", "无支持", "無支撐")),
        Label("no_claim", "neutral", Words("asserts nothing", "无断言", "無主張")),
    ),
    words=Words("Sentences: support", "句子：有无支持", "句子：有無支撐"),
    one=Words("Sentence: support", "句子：依据", "句子：依據"),
    ask=Words("Do the passages support this sentence?", "资料支持这句话吗？", "資料支持這句話嗎？"),
    field="support",
)
SENTENCE = Kind(
    "sentence", (ON_TOPIC, SUPPORT), Words("Sentences", "句子", "句子"), listed_as="sentences", place="sentence"
)
KEY_POINT_LABEL = Aspect(
    "key_point",
    (
        Label("covered", "good", Words("covered", "命中", "命中")),
        Label("partial", "half", Words("partly covered", "部分命中", "部分命中")),
        Label("missing", "bad", Words("missing", "缺漏", "缺漏")),
    ),
    words=Words("Key points", "要点", "關鍵資訊"),
    one=Words("Key point", "要点", "要點"),
    ask=Words("Does the answer contain this point?", "回答包含这个要点吗？", "回答包含這個要點嗎？"),
)
KEY_POINT = Kind(
    "key_point", (KEY_POINT_LABEL,), Words("Key points", "要点", "關鍵資訊"), listed_as="key_points", by_judge=True
)
PROTOCOL = Protocol(
    name="scorecard",
    title=Words("Scorecard", "四项评分", "四項評分"),
    kind="rag",
    rounds=scorecard,
    options=ScorecardOptions,
    kinds=(KEY_POINT, SENTENCE, ATOM),
    metrics=(
        Metric(
            "relevance",
            "points",
            Words("Relevance", "相关性", "相關性"),
            Words(
                "How much of the answer is about the question, sentence by sentence (0–100).",
                "逐句看，回答有多少内容在说题目所问（0–100）。",
                "逐句來看，回答有多少內容在談題目所問（0–100）。",
            ),
            main=True,
            reads=("on_topic",),
            banded=True,
        ),
        Metric(
            "completeness",
            "points",
            Words("Completeness", "完整性", "完整性"),
            Words(
                "How many of the key points it holds; partly covered ones count half (0–100).",
                "必须说到的要点说到了多少，部分命中算一半（0–100）。",
                "必須包含的關鍵資訊涵蓋了多少，部分涵蓋算一半（0–100）。",
            ),
            main=True,
            reads=("key_point",),
            banded=True,
        ),
        Metric(
            "accuracy",
            "points",
            Words("Accuracy", "准确率", "準確性"),
            Words(
                "How many of its decidable statements are correct (0–100).",
                "能判定对错的信息中有多少是正确的（0–100）。",
                "能判定對錯的資訊中有多少是正確的（0–100）。",
            ),
            main=True,
            reads=("atom",),
            banded=True,
        ),
        Metric(
            "faithfulness",
            "points",
            Words("Faithfulness", "忠实度", "忠誠度"),
            Words(
                "How many of its asserting sentences the passages fully support (0–100).",
                "有所断言的句子中，有多少得到资料的完全支持（0–100）。",
                "有所主張的句子中，有多少獲得資料完全支撐（0–100）。",
            ),
            main=True,
            reads=("support",),
            banded=True,
        ),
        Metric(
            "faithfulness_soft",
            "points",
            Words("Faithfulness (soft)", "忠实度（宽松）", "忠誠度（寬鬆）"),
            Words(
                "Faithfulness with partly supported sentences counted half (0–100).",
                "同上，但部分支持的句子算一半（0–100）。",
                "同上，但部分支撐的句子算一半（0–100）。",
            ),
            reads=("support",),
        ),
        Metric(
            "composite",
            "points",
            Words("Composite", "综合分", "綜合分數"),
            Words(
                "The weighted mean of the metrics you gave weights to (0–100).",
                "按您给出的权重对各项加权平均（0–100）。",
                "依您給的權重將各項加權平均（0–100）。",
            ),
            overall=True,
        ),
    ),
    tasks=("atomic.split", "scorecard.key_points", "scorecard.judge"),
    transcript="scorecard",
    one_for_all="accuracy",
    most_severe=("atom", "key_point", "support", "on_topic"),
    sections=("reasoning",),
    rescore=_rescored,
    expectations=(
        Expectation(
            "points_covered",
            "key_point",
            Words("The answer does not cover every point", "回答没有覆盖全部要点", "回答沒有涵蓋所有要點"),
        ),
    ),
    version=2,
    needs_question=False,
)
