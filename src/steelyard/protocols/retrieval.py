"""`retrieval`: relevance of the retrieved passages, the key points they hold, and the cause of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from steelyard.protocols import Protocol
from steelyard.protocols.atoms import evidence_of, is_quoted
from steelyard.protocols.common import (
    WHOLE,
    Collected,
    Options,
    collect,
    confident,
    has_question,
    has_text,
    in_parts,
    marked,
    prompt_language,
    rag_size,
    status_of,
    too_long,
    why_open,
)
from steelyard.protocols.key_points import KeyPointsSource, can_derive, distinct_points, key_points_ask
from steelyard.protocols.retrieval_counts import Blame, blame, declines_as_expected, retrieval_scores
from steelyard.protocols.scoring import Number
from steelyard.protocols.vocabulary import UNJUDGED, Aspect, Kind, Label, Metric, Tone, Words
from steelyard.records import AnyItem, Ask, CustomItem, Numbered, RagSample, Reply, Rounds, Unjudged, Verdict
from steelyard.tasks import PassageVerdict, PointVerdict, RetrievalData, RetrievalReply
from steelyard.text import language_of
from steelyard.text.suspicion import shows_injection

SCORES = ("recall", "precision", "precision_at_k", "ndcg", "mrr", "noise", "use")
DEFAULT_K = 3
# Enough to tell a passage by; the whole of it stands in the sample.
LONGEST_TEXT = 300


class RetrievalOptions(Options):
    """`k`: how many of the first passages `precision_at_k` looks at."""

    k: int = Field(default=DEFAULT_K, ge=1)
    derive_key_points: bool = True


def retrieval(sample: RagSample, options: RetrievalOptions) -> Rounds:
    flags = ["injection_suspected"] if shows_injection([sample.answer], sample.references) else []
    if (size := rag_size(sample)) > options.max_chars:
        return too_long(sample.id, "retrieval", SCORES, flags, size)
    # A blank passage keeps its number, but there is nothing in it to label.
    passages = tuple(
        Numbered(id=id, text=f"passage {id}") for id, text in enumerate(sample.references, start=1) if text.strip()
    )
    answered = bool(sample.answer.strip())
    flags += ["empty_answer"] * (not answered) + ["no_references"] * (not passages)
    flags += ["no_question"] * (not has_question(sample))
    language = prompt_language(sample.question, sample.answer)

    # First round: which key points the passages should hold.
    points: Sequence[str] = sample.key_points or ()
    source: KeyPointsSource = "given"
    failures: list[Unjudged] = []
    if can_derive(sample, options.derive_key_points):
        (derived,) = yield [key_points_ask(sample, language)]
        source = "derived"
        if isinstance(derived, Reply):
            points = tuple(point.text for point in derived.data.key_points)
            flags += ["points_from_passages"] * (not sample.reference_answer)
        else:
            failures.append(derived)
            flags.append(f"unjudged:key_points:{derived.reason}")

    # Second round: one reading labels everything.
    data = RetrievalData(
        question=sample.question,
        passages=sample.references,
        answer=sample.answer,
        retrieved=passages if has_question(sample) or answered else (),
        key_points=distinct_points(points),
    )
    collected = Collected()
    if data.items():
        judging = Ask(task="retrieval.judge", language=language, data=data, reply=RetrievalReply)
        collected = yield from collect(
            in_parts(judging, options.part_size),
            lambda _, label: bool(passages) and _unproven(label, sample.references),
        )
    items: tuple[AnyItem, ...] = (
        *(_point(point, collected, sample, source) for point in data.key_points),
        *(_passage(passage, collected, sample) for passage in data.retrieved),
    )
    return _verdict(sample, options, items, flags, collected, failures)


def _unproven(label: PassageVerdict | PointVerdict, references: Sequence[str]) -> bool:
    return isinstance(label, PointVerdict) and label.label == "found" and not is_quoted(label.quote, None, references)


def _passage(passage: Numbered, collected: Collected, sample: RagSample) -> CustomItem:
    """A passage with the labels that apply: none of relevance without a question, none of use without an answer."""
    label: PassageVerdict | None = collected.label("retrieved", passage.id)
    text = sample.references[passage.id - 1]
    fields = [*(["label"] if has_question(sample) else []), *(["use"] if sample.answer.strip() else [])]
    mark = collected.mark("retrieved", passage.id)
    said = {name: _said(label, name, mark.open) for name in fields}
    reason = collected.reason("retrieved", passage.id) if label is None else label.reason
    if label and UNJUDGED in said.values():
        reason = why_open(mark)
    brief = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    item = CustomItem(kind="passage", id=passage.id, text=brief, reason=reason, size=len(text), **said)
    decided = label.confidence if label and said.get("label") == label.label else None
    return marked(confident(item, decided), mark, fields={name: name for name in fields})


def _point(point: Numbered, collected: Collected, sample: RagSample, source: KeyPointsSource) -> CustomItem:
    label: PointVerdict | None = collected.label("key_points", point.id)
    mark = collected.mark("key_points", point.id)
    said = {name: _said(label, name, mark.open) for name in ("label", "in_answer")}
    # What code knows better: nothing is found in no passages, and nothing is said in no answer.
    if label is not None and not has_text(sample.references):
        said["label"] = "not_found"
    if label is not None and not sample.answer.strip():
        said["in_answer"] = "absent"
    reason = collected.reason("key_points", point.id) if label is None else label.reason
    if label and UNJUDGED in said.values():
        reason = why_open(mark)
    extra: dict[str, Any] = {"passages": [], "keypoints_source": source}
    flags: tuple[str, ...] = ()
    if label is not None and said["label"] == "found":
        evidence = evidence_of(label.quote, None, sample.references)
        holding = {number for number in label.passages if 0 < number <= len(sample.references)}
        if evidence.reference is not None:
            holding.add(evidence.reference + 1)
        extra |= {"passages": sorted(holding), "evidence": evidence}
        flags = () if evidence.verified else ("evidence_unverified",)
    item = CustomItem(kind="point", id=point.id, text=point.text, reason=reason, flags=flags, **said, **extra)
    decided = label.confidence if label and said["label"] == label.label else None
    return marked(confident(item, decided), mark, fields={"label": "label", "in_answer": "in_answer"})


def _said(label: PassageVerdict | PointVerdict | None, field: str, left_open: Sequence[str]) -> str:
    return UNJUDGED if label is None or field in left_open else str(getattr(label, field))


def _refuses(collected: Collected, answered: bool) -> bool | None:
    """Whether the answer declines; None where nobody could say, or the votes are split."""
    if not answered:
        return False
    if not collected.replies or "refuses" in collected.mark(WHOLE, 0).open:
        return None
    return bool(collected.replies[0].refuses)


def _verdict(
    sample: RagSample,
    options: RetrievalOptions,
    items: tuple[AnyItem, ...],
    flags: list[str],
    collected: Collected,
    failures: Sequence[Unjudged],
) -> Verdict:
    refuses = _refuses(collected, bool(sample.answer.strip()))
    if refuses:
        flags.append("fallback")
    if declines_as_expected(items, refuses):
        flags.append("unanswerable")
    # Without key points that should be there, nobody knows what the answer lacks.
    found = Blame(UNJUDGED, reason=failures[0].reason) if failures else blame(items, refuses)
    if found:
        shown = CAUSE.leading.label(found.cause)
        reason = found.reason or MEANINGS.get(shown.name, Words()).in_language(
            language_of(sample.question, sample.answer)
        )
        # The same text in every run over this sample: it is what two runs are compared by.
        text = (sample.question.strip() or sample.answer.strip())[:LONGEST_TEXT]
        by = [f"{item.kind} {item.id}" for item in found.shown_by]
        items = (CustomItem(kind="cause", id=1, text=text, reason=reason, label=found.cause, shown_by=by), *items)
    of_asks, notes = collected.remarks(failures)
    verdict = Verdict(
        id=sample.id,
        protocol="retrieval",
        status=status_of(items, (failure.reason for failure in failures)),
        scores=dict.fromkeys(SCORES),
        items=items,
        flags=(*flags, *of_asks, *(flag for item in items for flag in item.flags)),
        notes={"k": options.k, **notes},
    )
    return verdict.model_copy(update={"scores": _scores(verdict)})


def _scores(verdict: Verdict) -> dict[str, Number]:
    """Recall is null where key points come from the passages, where there are none, where nothing is to be found."""
    known = not {"points_from_passages", "unanswerable", "no_references"} & set(verdict.flags)
    return retrieval_scores(verdict.items, int(verdict.notes.get("k", DEFAULT_K)), with_recall=known)


# --- vocabulary ------------------------------------------------------------------------------------

RELEVANCE = Aspect(
    "passage",
    (
        Label("answers", "good", Words("answers", "能回答", "能回答")),
        Label("helps", "half", Words("helps", "有帮助", "有幫助"), against=False),
        Label("irrelevant", "bad", Words("irrelevant", "无关", "無關")),
    ),
    words=Words("Passages: relevance", "资料：是否相关", "資料：是否相關"),
    one=Words("Passage: relevance", "资料：相关性", "資料：相關性"),
    ask=Words("Does this passage answer the question?", "这段资料能回答问题吗？", "這段資料能回答問題嗎？"),
)
USE = Aspect(
    "passage_use",
    (
        Label("used", "neutral", Words("used", "用到", "用到")),
        Label("unused", "neutral", Words("not used", "未用到", "未用到")),
    ),
    words=Words("Passages: use", "资料：是否用到", "資料：是否用到"),
    one=Words("Passage: use", "资料：用到与否", "資料：用到與否"),
    ask=Words("Does the answer use this passage?", "回答用到这段资料了吗？", "回答用到這段資料了嗎？"),
    field="use",
    confidence=None,
)
PASSAGE = Kind("passage", (RELEVANCE, USE), Words("Passages", "资料", "資料"), listed_as="retrieved", identity="text")
HELD = Aspect(
    "point",
    (
        Label("found", "good", Words("found", "已检索到", "已檢索到")),
        Label("not_found", "bad", Words("not found", "未检索到", "未檢索到")),
    ),
    words=Words("Key points: in the passages", "要点：资料中有无", "要點：資料中有無"),
    one=Words("Key point: in the passages", "要点：资料中", "要點：資料中"),
    ask=Words("Do the passages hold this point?", "资料里有这个要点吗？", "資料裡有這個要點嗎？"),
)
IN_ANSWER = Aspect(
    "in_answer",
    (
        Label("stated", "good", Words("stated", "已说到", "已說到")),
        Label("contradicted", "bad", Words("contradicted", "说错", "說錯")),
        Label("absent", "bad", Words("left out", "没说到", "沒說到")),
    ),
    words=Words("Key points: in the answer", "要点：回答中有无", "要點：回答中有無"),
    one=Words("Key point: in the answer", "要点：回答中", "要點：回答中"),
    ask=Words("Does the answer state this point?", "回答说到这个要点了吗？", "回答說到這個要點了嗎？"),
    field="in_answer",
    confidence=None,
)
POINT = Kind("point", (HELD, IN_ANSWER), Words("Key points", "要点", "要點"), listed_as="key_points", by_judge=True)
MEANINGS = {
    "retriever_miss": Words(
        "The passages lack it, and the answer leaves it out.",
        "资料里没有，回答也没有说到。",
        "資料裡沒有，回答也沒有說到。",
    ),
    "ignored": Words(
        "The passages have it, but the answer does not use it.",
        "资料里有，回答却没有用上。",
        "資料裡有，回答卻沒有用上。",
    ),
    "misread": Words(
        "The answer uses the passage and says something else.",
        "回答用了这段资料，说的却与资料不符。",
        "回答用了這段資料，說的卻與資料不符。",
    ),
    "made_up": Words(
        "The answer says something that no passage holds.",
        "回答的说法在资料中找不到出处。",
        "回答的說法在資料中找不到出處。",
    ),
    "noise_followed": Words(
        "The answer follows an irrelevant passage.", "回答采信了无关的资料。", "回答採信了無關的資料。"
    ),
    "wrong_refusal": Words(
        "The answer declines although the passages hold what is asked.",
        "资料里有答案，回答却拒答。",
        "資料裡有答案，回答卻拒答。",
    ),
    "right_refusal": Words(
        "The answer declines, and the passages do not hold what is asked.",
        "资料里没有答案，回答如实拒答。",
        "資料裡沒有答案，回答如實拒答。",
    ),
}
CAUSES: tuple[tuple[str, Tone, Words], ...] = (
    ("retriever_miss", "bad", Words("retriever missed it", "检索遗漏", "檢索遺漏")),
    ("ignored", "bad", Words("passage ignored", "资料未用上", "資料未用上")),
    ("misread", "bad", Words("passage misread", "误读资料", "誤讀資料")),
    ("made_up", "bad", Words("made up", "凭空编造", "憑空編造")),
    ("noise_followed", "bad", Words("followed noise", "被无关资料误导", "被無關資料誤導")),
    ("wrong_refusal", "bad", Words("refused wrongly", "误拒", "誤拒")),
    ("right_refusal", "neutral", Words("refused rightly", "合理拒答", "合理拒答")),
    ("no_failure", "good", Words("no failure found", "未发现问题", "未發現問題")),
)
CAUSE_LABEL = Aspect(
    "cause",
    tuple(Label(name, tone, words, follows=True) for name, tone, words in CAUSES),
    words=Words("Causes of failure", "失败原因", "失敗原因"),
    one=Words("Cause of failure", "失败原因", "失敗原因"),
    ask=Words("What does this sample fail by?", "这条样本失败在哪里？", "這筆樣本失敗在哪裡？"),
    asked=False,
    confidence=None,
)
CAUSE = Kind("cause", (CAUSE_LABEL,), Words("Causes of failure", "失败原因", "失敗原因"), identity="text")
PROTOCOL = Protocol(
    name="retrieval",
    title=Words("Retrieval", "检索评测", "檢索評測"),
    kind="rag",
    rounds=retrieval,
    options=RetrievalOptions,
    kinds=(CAUSE, POINT, PASSAGE),
    metrics=(
        Metric(
            "recall",
            "ratio",
            Words("Recall", "召回率", "召回率"),
            Words(
                "The share of key points that the passages hold.", "要点中资料里有的比例。", "要點中資料裡有的比例。"
            ),
            main=True,
            reads=("point",),
        ),
        Metric(
            "precision",
            "ratio",
            Words("Precision", "精确率", "精確率"),
            Words(
                "The share of passages that answer the question or help to.",
                "能回答问题或有帮助的资料所占比例。",
                "能回答問題或有幫助的資料所占比例。",
            ),
            main=True,
            reads=("passage",),
        ),
        Metric(
            "precision_at_k",
            "ratio",
            Words("Precision@k", "精确率@k", "精確率@k"),
            Words(
                "The same of the first k passages (option k, 3 by default).",
                "同上，只看前 k 段资料（选项 k，默认 3）。",
                "同上，只看前 k 段資料（選項 k，預設 3）。",
            ),
            reads=("passage",),
        ),
        Metric(
            "ndcg",
            "ratio",
            Words("nDCG", "nDCG", "nDCG"),
            Words(
                "How near the order of the passages comes to the best one; answering ones count 2, helping ones 1.",
                "资料的排序离最佳排序有多近；能回答的计 2，有帮助的计 1。",
                "資料的排序離最佳排序有多近；能回答的計 2，有幫助的計 1。",
            ),
            reads=("passage",),
        ),
        Metric(
            "mrr",
            "ratio",
            Words("MRR", "MRR", "MRR"),
            Words(
                "1 over the place of the first passage that answers or helps.",
                "第一段能回答或有帮助的资料，其名次的倒数。",
                "第一段能回答或有幫助的資料，其名次的倒數。",
            ),
            reads=("passage",),
        ),
        Metric(
            "noise",
            "ratio",
            Words("Noise", "噪声", "雜訊"),
            Words(
                "The share of the retrieved text that stands in irrelevant passages; less is better.",
                "检索到的文字中，无关资料所占的比例；越低越好。",
                "檢索到的文字中，無關資料所占的比例；越低越好。",
            ),
            direction="down",
            reads=("passage",),
        ),
        Metric(
            "use",
            "ratio",
            Words("Use", "利用率", "利用率"),
            Words(
                "The share of the passages that answer or help that the answer uses.",
                "能回答或有帮助的资料中，回答用到的比例。",
                "能回答或有幫助的資料中，回答用到的比例。",
            ),
            reads=("passage_use", "passage"),
        ),
    ),
    tasks=("scorecard.key_points", "retrieval.judge"),
    one_for_all="recall",
    most_severe=("cause", "point", "in_answer", "passage"),
    outcome="cause",
    rescore=_scores,
    needs_question=False,
)
