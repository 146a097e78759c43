"""Invented verdicts of the shipped protocols, for the tests of reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.protocols import BUILT_IN, vocabulary
from steelyard.protocols.counts import atomic_scores, dialogue_scores, grounded_scores, scorecard_scores
from steelyard.protocols.grounded import CHECK
from steelyard.protocols.pairwise import NAMES
from steelyard.protocols.retrieval_counts import retrieval_scores
from steelyard.records import (
    Atom,
    Check,
    Criterion,
    CustomItem,
    DialogueSample,
    Evidence,
    KeyPoint,
    Language,
    Part,
    RagSample,
    Sample,
    Sentence,
    Turn,
    Usage,
    Verdict,
)

PASSAGE = "车灯贴膜后会使灯光的照明亮度下降，可能影响行车安全。建议您不要加装灯膜。"
HOSTILE = (
    "[red]粗[/red] `code` | cell | <script>alert(1)</script> ![i](http://t.example/x.png) "
    "[l](http://t.example) **b** # h @someone \x1b[31mred\x1b[0m \x07 \u202eevil\u202c \u200b\x9b31m\r\n"
    "| --- |\n# heading\n- list\n1. one\n==="
)
CHECKS = (
    ("relevance", "from_background"),
    ("relevance", "on_topic"),
    ("relevance", "answers_question"),
    ("relevance", "complete"),
    ("relevance", "not_fallback"),
    ("truthfulness", "conclusion_correct"),
    ("truthfulness", "no_fallacy"),
    ("truthfulness", "not_fallback"),
)
USAGE = Usage(calls=2, prompt_tokens=1200, completion_tokens=300, cost=0.0004)


def rag(id: str = "s1", question: str = "大灯是否可以贴膜？", **fields: Any) -> RagSample:
    given = {"answer": "不建议给大灯贴膜。\n大灯很重要。", "references": (PASSAGE, "前挡风玻璃不建议贴膜。")}
    return RagSample(id=id, question=question, **{**given, **fields})


def atomic(id: str = "s1", labels: Sequence[str] = ("correct",), **fields: Any) -> Verdict:
    evidence = Evidence(reference=0, quote="灯光的照明亮度下降", verified=True)
    text = fields.pop("text", "贴膜会使亮度下降")
    atoms = tuple(
        Atom(
            id=n,
            text=f"{text}{n}",
            label=label,
            level=None if label == "unjudged" else (n - 1) % 3 + 1,
            reason="timeout" if label == "unjudged" else "资料如此说",
            evidence=evidence if label in ("correct", "wrong") else None,
        )
        for n, label in enumerate(labels, start=1)
    )
    given: dict[str, Any] = {
        "status": "partial" if "unjudged" in labels else "judged",
        "scores": atomic_scores(atoms, 0),
        "judge": "openai:some-model",
        "usage": USAGE,
    }
    return Verdict(id=id, protocol="atomic", items=atoms, **{**given, **fields})


def grounded(id: str = "s1", failed: Sequence[int] = (), unjudged: Sequence[int] = (), **fields: Any) -> Verdict:
    parts = (
        Part(text="不建议给大灯贴膜。", label="from_background", reason="见资料"),
        Part(text="大灯很重要。", label="benign_extension"),
    )
    checks = tuple(
        Check(
            id=n,
            text=name,
            name=name,
            group=group,
            label="unjudged" if n in unjudged else int(n not in failed),  # type: ignore[arg-type]
            reason="invalid_reply" if n in unjudged else "与背景一致",
            parts=parts if name == "from_background" else (),
        )
        for n, (group, name) in enumerate(CHECKS, start=1)
    )
    given: dict[str, Any] = {
        "status": "partial" if unjudged else "judged",
        "scores": grounded_scores(checks),
        "notes": {"own_answer": "不建议贴膜。"},
    }
    return Verdict(id=id, protocol="grounded", items=checks, **{**given, **fields})


def scorecard(
    id: str = "s1",
    points: Sequence[tuple[str, str | None]] = (("covered", "deep"), ("partial", "bare"), ("missing", None)),
    **fields: Any,
) -> Verdict:
    evidence = Evidence(reference=0, quote="照明亮度下降…不要加装灯膜", verified=True)
    items = (
        Sentence(id=1, text="亮度下降。", on_topic="on_topic", support="supported", evidence=evidence),
        Sentence(id=2, text="大灯很好看。", on_topic="off_topic", support="unsupported", reason="资料没有"),
        *(
            KeyPoint(id=n, text=f"要点{n}", label=label, depth=depth, reason="说明")  # type: ignore[arg-type]
            for n, (label, depth) in enumerate(points, start=1)
        ),
        Atom(id=1, text="亮度下降", label="correct"),
    )
    given: dict[str, Any] = {"status": "judged", "scores": scorecard_scores(items)}
    return Verdict(id=id, protocol="scorecard", items=items, **{**given, **fields})


def retrieval(id: str = "s1", cause: str = "misread", **fields: Any) -> Verdict:
    items = (
        CustomItem(
            kind="cause", id=1, text="大灯能贴膜吗？", label=cause, reason="说的与资料不符", shown_by=["point 1"]
        ),
        CustomItem(kind="point", id=1, text="不建议贴膜", label="found", in_answer="contradicted", passages=[1]),
        CustomItem(kind="passage", id=1, text=PASSAGE, label="answers", use="used", size=len(PASSAGE)),
        CustomItem(kind="passage", id=2, text="雨刮", label="irrelevant", use="unused", size=2),
    )
    given: dict[str, Any] = {"status": "judged", "scores": retrieval_scores(items, 3)}
    return Verdict(id=id, protocol="retrieval", items=items, **{**given, **fields})


def dialogue(id: str = "d1", turns: Sequence[str] = ("ss", "sv"), **fields: Any) -> Verdict:
    """Each turn is a word of s(atisfied), v(iolated), u(ndetermined) and x (unjudged)."""
    labels = {"s": "satisfied", "v": "violated", "u": "undetermined", "x": "unjudged"}
    criteria = tuple(
        Criterion(
            id=n,
            turn=turn,
            text=f"以歌词开头 | {'内容约束' if n == 1 else '风格约束'}",
            type="内容约束" if n == 1 else None,
            validity="invalid" if letter == "u" else "valid",
            quote="" if letter == "u" else "开头要有歌词",
            quote_verified=letter != "u",
            label=labels[letter],  # type: ignore[arg-type]
            decided_by="rule" if n == 1 else "judge",
            flags=("vacuous",) if n == 2 and letter == "s" else (),
            reason="timeout" if letter == "x" else "开头是歌词",
        )
        for turn, word in enumerate(turns, start=1)
        for n, letter in enumerate(word, start=1)
    )
    given: dict[str, Any] = {"status": "judged", "scores": dialogue_scores(criteria)}
    return Verdict(id=id, protocol="dialogue", items=criteria, **{**given, **fields})


def dialogue_sample(id: str = "d1", n: int = 2) -> DialogueSample:
    turns = tuple(Turn(prompt=f"你好{k}", answer="“月亮代表我的心”，你好！") for k in range(1, n + 1))
    return DialogueSample(id=id, system_prompt="你是一位歌手。开头要有歌词。", turns=turns)


def pairwise(id: str = "s1", labels: str = "aabt", **fields: Any) -> Verdict:
    """A letter for each aspect: a or b better, t a tie, i an inconsistent one, u unjudged."""
    names = {"a": "a_better", "b": "b_better", "t": "tie", "i": "tie", "u": "unjudged"}
    given = {"orders": ({"preferred": "first", "reason": "更准确"}, {"preferred": "second", "reason": "更准确"})}
    items = tuple(
        CustomItem(kind="preference", id=n, text=NAMES[aspect].zh_hans, aspect=aspect, label=names[letter],
                   reason="timeout" if letter == "u" else "A 在前 → A 更好：更准确",
                   flags=("inconsistent",) if letter == "i" else (),
                   **({"leans": "first"} if letter == "i" else {}), **({} if letter == "u" else given))
        for n, (aspect, letter) in enumerate(zip(NAMES, labels, strict=True), start=1)
    )  # fmt: skip
    flags = ("inconsistent",) if "i" in labels else ()
    status = "partial" if "u" in labels else "judged"
    verdict = Verdict(id=id, protocol="pairwise", status=status, scores={}, items=items, flags=flags, judge="judge-a")
    rescore = vocabulary("pairwise").rescore
    assert rescore is not None
    return verdict.model_copy(update={"scores": rescore(verdict), **fields})


def some_of(protocol: str) -> list[tuple[Verdict, Sample]]:
    """A small mixed run of one protocol."""
    if protocol == "dialogue":
        words = (("ss", "sv"), ("ss", "ss"), ("su", "xs"), ("v", "s"))
        return [(dialogue(f"d{n}", w), dialogue_sample(f"d{n}")) for n, w in enumerate(words)]
    if protocol == "atomic":
        labels = (["correct"] * 3, ["correct", "wrong"], ["exempt"], ["unjudged"], ["undetermined", "correct"])
        verdicts = [atomic(f"s{n}", found) for n, found in enumerate(labels)]
        verdicts[1] = verdicts[1].model_copy(update={"flags": ("injection_suspected",)})
    elif protocol == "grounded":
        verdicts = [grounded("s0"), grounded("s1", [1]), grounded("s2", [2, 6]), grounded("s3", [], [4])]
    elif protocol == "retrieval":
        causes = ("misread", "retriever_miss", "no_failure", "right_refusal", "unjudged")
        verdicts = [retrieval(f"s{n}", cause) for n, cause in enumerate(causes)]
    elif protocol == "pairwise":
        found = enumerate(("aaaa", "btta", "iitt", "aauu", "bbbi"))
        return [
            (pairwise(f"s{n}", labels),
             rag(f"s{n}", f"大灯是否可以贴膜？{n % 3}", other_answer="可以贴。", model="甲", other_model="乙"))
            for n, labels in found
        ]  # fmt: skip
    else:
        verdicts = [scorecard("s0"), scorecard("s1", [("covered", "bare")]), scorecard("s2", [("missing", None)])]
    return [
        (v, rag(v.id, f"大灯是否可以贴膜？{n % 3}", tags=("售前",) if n % 2 else ("售后", "L9")))
        for n, v in enumerate(verdicts)
    ]


def term(language: Language, key: str) -> str:
    """What the shipped protocols call something: protocol.NAME, metric.NAME, explain.PROTOCOL.NAME, check.NAME."""
    table, *names = key.split(".")
    if table == "protocol":
        return vocabulary(names[0]).title_words(language)
    if table == "explain":
        return vocabulary(names[0]).metric_about(names[1], language)
    if table == "check":
        return CHECK.names[names[0]].in_language(language)
    declared = (vocabulary(name).metric(names[0]).words for name in BUILT_IN)
    return next(filter(None, declared)).in_language(language)
