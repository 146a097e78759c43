"""`atomic`: the answer in atoms, each graded for relevance and labelled against the references."""

from __future__ import annotations

from steelyard.protocols import Protocol
from steelyard.protocols.atoms import ATOM, Rules, atom_item, finish_split, lacks_evidence, split_ask
from steelyard.protocols.common import (
    WHOLE,
    Options,
    collect,
    has_question,
    has_text,
    in_parts,
    prompt_language,
    rag_size,
    status_of,
    too_long,
)
from steelyard.protocols.counts import atomic_scores
from steelyard.protocols.vocabulary import Aspect, Expectation, Label, Metric, Words
from steelyard.records import Ask, Atom, RagSample, Rounds, Tolerance, Unjudged, Verdict
from steelyard.tasks import AtomicData, AtomicReply
from steelyard.text.suspicion import shows_injection

SCORES = ("accuracy", "accuracy_strict", "coverage", "fallback")


class AtomicOptions(Options):
    """`strict`: labels that rest on the judge's own knowledge become undetermined. `tolerance`: how far values may
    differ."""

    strict: bool = False
    tolerance: Tolerance = Tolerance()
    date: str = ""
    place: str = ""


def atomic(sample: RagSample, options: AtomicOptions) -> Rounds:
    flags = ["injection_suspected"] if shows_injection([sample.answer], sample.references) else []
    if not sample.answer.strip():
        return _verdict(sample, (), 0, [*flags, "empty_answer"])
    if (size := rag_size(sample)) > options.max_chars:
        return too_long(sample.id, "atomic", SCORES, flags, size)
    checkable = has_text(sample.references)
    if not checkable:
        flags.append("no_references")
    if not has_question(sample):
        flags.append("no_question")
    language = prompt_language(sample.question, sample.answer)

    ask = split_ask(sample, language)
    (reply,) = yield [ask]
    if isinstance(reply, Unjudged):
        flags.append(f"unjudged:atoms:{reply.reason}")
        return _verdict(sample, (), None, flags, failure=reply.detail or reply.reason)
    split = yield from finish_split(ask, sample.answer, reply)

    data = AtomicData(
        question=sample.question,
        references=sample.references,
        answer=sample.answer,
        date=sample.date or options.date or NOT_GIVEN[language],
        place=sample.place or options.place or NOT_GIVEN[language],
        atoms=split.atoms,
    )
    judging = Ask(task="atomic.judge", language=language, data=data, reply=AtomicReply, tolerance=options.tolerance)
    collected = yield from collect(
        in_parts(judging, options.part_size),
        lambda _, label: checkable and lacks_evidence(label, sample.references),
    )
    rules = Rules(options.strict, options.tolerance, has_question(sample))
    atoms = tuple(
        atom_item(atom, collected, sample.references, rules, split.causal_of.get(atom.id)) for atom in split.atoms
    )
    replies: list[AtomicReply] = collected.replies
    fallback = int(replies[0].fallback) if replies else None
    if fallback is None and collected.failures:
        flags.append(f"unjudged:fallback:{collected.failures[0].reason}")
    if "fallback" in collected.mark(WHOLE, 0).open:
        fallback = None
        flags.append("unjudged:fallback:split")
    of_asks, notes = collected.remarks()
    # A refusal has no atoms, and should have none.
    if split.uncovered and (split.atoms or not fallback):
        flags.append("answer_not_covered")
        notes["uncovered"] = list(split.uncovered)
    return _verdict(sample, atoms, fallback, [*flags, *of_asks], **notes)


NOT_GIVEN = {"zh": "未提供", "en": "not given"}


def _verdict(
    sample: RagSample, atoms: tuple[Atom, ...], fallback: int | None, flags: list[str], **notes: object
) -> Verdict:
    return Verdict(
        id=sample.id,
        protocol="atomic",
        status=status_of(atoms, ("fallback",) if fallback is None else ()),
        scores=atomic_scores(atoms, fallback),
        items=atoms,
        flags=(*flags, *(flag for atom in atoms for flag in atom.flags)),
        notes=notes,
    )


# --- vocabulary ------------------------------------------------------------------------------------

FALLBACK = Aspect(
    "fallback",
    (
        Label("1", "bad", Words("declines", "推脱", "推託")),
        Label("0", "good", Words("answers", "作答", "作答")),
    ),
    one=Words("Does the answer decline?", "是否为兜底回复", "是否為兜底回覆"),
    ask=Words(
        "Does the answer decline as a whole instead of answering?",
        "回答是否整体在推脱、没有作答？",
        "回答是否整體在推託、沒有作答？",
    ),
)
PROTOCOL = Protocol(
    name="atomic",
    title=Words("Atomic accuracy", "原子信息准确性", "原子資訊準確性"),
    kind="rag",
    rounds=atomic,
    options=AtomicOptions,
    kinds=(ATOM,),
    metrics=(
        Metric(
            "accuracy",
            "ratio",
            Words("Accuracy", "准确率", "準確性"),
            Words(
                "Of the statements that could be decided, the share that is correct.",
                "能判定对错的信息中，正确的占多少。",
                "能判定對錯的資訊中，正確的占多少。",
            ),
            main=True,
            reads=("atom",),
        ),
        Metric(
            "accuracy_strict",
            "ratio",
            Words("Strict accuracy", "严格准确率", "嚴格準確性"),
            Words(
                "The same, with undetermined statements counted as not correct.",
                "同上，但无法判断的信息也算作不正确。",
                "同上，但無法判斷的資訊也視為不正確。",
            ),
            reads=("atom",),
        ),
        Metric(
            "coverage",
            "ratio",
            Words("Coverage", "可判定率", "可判定率"),
            Words(
                "Of the statements that needed checking, the share that could be decided.",
                "需要核查的信息中，能判定对错的占多少。",
                "需要查核的資訊中，能判定對錯的占多少。",
            ),
            reads=("atom",),
        ),
        Metric(
            "fallback",
            "binary",
            Words("Fallback replies", "兜底回复", "婉拒回覆"),
            Words(
                "Whether the answer declines as a whole instead of answering.",
                "整段回答是否都在推脱、没有作答。",
                "整段回答是否都在推託、沒有作答。",
            ),
            direction="neither",
            reads=("fallback",),
            never_null=True,
        ),
    ),
    tasks=("atomic.split", "atomic.judge"),
    transcript="atomic",
    whole=(FALLBACK,),
    sections=("levels",),
    rescore=lambda verdict: atomic_scores(verdict.items, verdict.scores.get("fallback")),
    expectations=(
        Expectation(
            "grounded_in",
            "atom",
            Words("The answer is not grounded in the passages", "回答没有材料依据", "回答沒有資料依據"),
        ),
        Expectation(
            "no_wrong_statement",
            "atom",
            Words("The answer contradicts the passages", "回答与材料矛盾", "回答與資料矛盾"),
            by=("wrong",),
        ),
    ),
    version=2,
    needs_question=False,
)
