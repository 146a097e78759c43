"""Arbitrary text: reading never breaks, never takes more than linear time, and never invents a label."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.errors import TranscriptError
from steelyard.protocols.transcripts import parse, render
from steelyard.protocols.transcripts.lines import escape

SEEDS = Path(__file__).parent / "fixtures" / "seeds"
FORMS = {
    path.name: path.read_text("utf-8")
    for pattern in ("*.transcript.txt", "*.report1.json", "*.report2.md")
    for path in sorted(SEEDS.glob(pattern))
}
FORMS["scorecard"] = (
    "## 1️⃣ 相關性 (Relevance)\n\n1. 甲。\n   判定：【On-Topic】\n貼題比例 p = 1\n分數：100 分\n\n"
    "## 2️⃣ 完整性 (Completeness)\n\n1. 乙\n   判定：【Covered】，深度：【深入】（推導）\n   理由：有\n\n"
    "## 3️⃣ 準確性 (Accuracy)\n\n1. 甲\n   判定：【正確】\n   因果：本条是第2条的原因\n\n"
    "## 4️⃣ 忠誠度 (Faithfulness)\n\n1. 甲。\n   判定：【Supported】\n   依据：参考[1]“甲”（已核对）\n總結：好\n标记：x\n"
)
PROTOCOLS = ["atomic", "grounded", "scorecard", "dialogue", None]
PIECES = sorted({line for text in FORMS.values() for line in text.split("\n")})
quietly = settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))


def read(text: str, protocol: str | None) -> None:
    """Read, and if that succeeded the result must be renderable and readable again."""
    try:
        verdict = parse(text, protocol)
    except TranscriptError:
        return
    again = parse(render(verdict), verdict.protocol)
    assert again.items == verdict.items
    assert again.scores == verdict.scores
    assert again.flags == verdict.flags


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A worked example with pieces cut out, doubled, swapped or filled with noise."""
    text = draw(st.sampled_from(list(FORMS.values())))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        noise = draw(
            st.sampled_from(["", text[start:end] * 2, "\n", "【1】", "（", "）", "\\", *PIECES]) | st.text(max_size=5)
        )
        text = text[:start] + noise + text[end:]
    return text


@quietly
@given(
    st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("\n".join),
    st.sampled_from(PROTOCOLS),
)
def test_arbitrary_text(text: str, protocol: str | None) -> None:
    """Any text either reads to a verdict that survives a round trip or is a TranscriptError."""
    read(text, protocol)


@settings(quietly, max_examples=600)
@given(mutated(), st.sampled_from(PROTOCOLS))
def test_mutated_transcripts(text: str, protocol: str | None) -> None:
    """The same for transcripts that were once in order."""
    read(text, protocol)


@quietly
@given(st.sampled_from([name for name in FORMS if name.startswith("atomic")]), st.data())
def test_a_cut_transcript_never_gains_a_label(name: str, data: st.DataObject) -> None:
    """Truncation may leave items unjudged, but no item gets a label that the whole does not give it."""
    text = FORMS[name]
    whole = {atom.id: atom.label for atom in parse(text).items}  # type: ignore[union-attr]
    cut = text[: data.draw(st.integers(30, len(text)))]
    labels = {atom.id: atom.label for atom in parse(cut, "atomic").items}  # type: ignore[union-attr]
    assert all(label in ("unjudged", whole[id]) for id, label in labels.items() if id in whole)


HEAD = "原子信息生成：\n1. 甲\n\n准确性评估：\n1. 甲\n"
GROUND = "## 相关性评价：\n"
TALK = '### 第1轮对话分析\n* 评估细则 1: "甲"\n'
CARD = "## 1️⃣ 相關性 (Relevance)\n"
FLOODS: dict[str, Callable[[int], str]] = {
    "open parentheses": lambda n: HEAD + "（2）准确性评估：正确" + "（" * n,
    "closed parentheses": lambda n: HEAD + "（2）准确性评估：正确（" + "）" * n + "，打分【1】分",
    "scores": lambda n: HEAD + "（2）准确性评估：正确" + "，打分【1】分" * (n // 7),
    "asterisks": lambda n: "*" * n + "x",
    "spaces": lambda n: HEAD + " " * n + "x",
    "decorated heading": lambda n: "原子信息生成" + "* " * (n // 2) + "x",
    "brackets": lambda n: HEAD + "【" * n,
    "atoms": lambda n: "原子信息生成：\n" + "".join(f"{i}. 甲{i}\n" for i in range(n // 8)),
    "alike atoms": lambda n: "原子信息生成：\n" + "".join(f"{i}. 甲乙丙丁戊己庚辛{i}\n" for i in range(n // 30))
    + "\n准确性评估：\n" + "".join(f"{i}. 甲乙丙丁戊己庚辛变{i}\n" for i in range(n // 30)),
    "same atom": lambda n: "原子信息生成：\n" + "1. 甲\n2. 甲\n1. 乙\n" * (n // 15),
    "level notes": lambda n: "相关性等级划分：\n1. 甲" + "（等级划分：【1】级" * (n // 9),
    "blocks": lambda n: HEAD + "1. 甲\n（2）准确性评估：正确（x），打分【1】分\n" * (n // 30),
    "wrapped lines": lambda n: HEAD + "（2）准确性评估：正确（\n" + "x\n" * (n // 2),
    "checks": lambda n: GROUND + "(1).是否偏题：得1分。\n" * (n // 15),
    "one check": lambda n: GROUND + "(1).是否偏题：" + "得分为1，因此" * (n // 8),
    "braces": lambda n: GROUND + "总结：相关性得分: " + "{" * n,
    "rounds": lambda n: "第1轮\n" * (n // 4) + TALK,
    "criteria": lambda n: TALK + '* 评估细则 1: "甲"\n* 理由: “' * (n // 25),
    "quotes": lambda n: TALK + "* 有效性分析: 有效\n* 依据/出处: " + "“" * n,
    "reports": lambda n: '{"evaluation_report": ' * (n // 22),
    "deep": lambda n: '{"evaluation_report": ' + "[" * n,
    "open objects": lambda n: "{" * n + '"evaluation_report"',
    "labels": lambda n: CARD + "1. 甲\n判定：【" + "x" * n,
    "items": lambda n: CARD + "".join(f"{i}. 甲\n判定：【On-Topic】\n" for i in range(n // 20)),
    "backslashes": lambda n: HEAD + "（2）准确性评估：正确（" + "\\u{" * (n // 3),
    "combining marks": lambda n: "原子信息生成：\n1. a" + "\u0315\u0327" * (n // 2),
    "thinking": lambda n: "<think>" * (n // 7),
    "thoughts": lambda n: "<think>\n" * (n // 8) + "</think>\n",
    "table rows": lambda n: HEAD + "| 编号 | 原子信息 | 准确性 |\n|---|---|---|\n" + "| 1 | 甲 | 正确 |\n" * (n // 14),
    "wide table": lambda n: HEAD + "|" * n + "\n" + "-|" * n,
    "tables": lambda n: HEAD + "是否为兜底回复：0\n" + "| 原子信息 | 准确性 |\n|-|-|\n| 甲 | 错 |\n\n" * (n // 40),
    "ruled cells": lambda n: "|a|\n|" + "-" * n + "x|\n",
    "transcripts": lambda n: "原子信息生成：\n1. 甲\n准确性评估：\n1. 甲\n准确性评估：正确\n" * (n // 40),
    "rules": lambda n: "- 相关性评分:\n(1).是否偏题：检查答案，如果偏题得0分。\n" * (n // 35),
    "totals": lambda n: "准确性得分：{{1}}\n" * (n // 12),
    "inline": lambda n: HEAD + "1. 甲：" + "（打分【1】）" * (n // 8),
    "level leads": lambda n: "相关性等级划分：\n1. 甲" + "，等级" * (n // 3),
    "english": lambda n: "Accuracy assessment:\n" + "Relevance level 1 (" * (n // 19),
    "closed reports": lambda n: '{"evaluation_report": []}\n' * (n // 26),
    "open reports": lambda n: '{"evaluation_report": ["\n' * (n // 26),
}  # fmt: skip


def seconds(text: str) -> float:
    start = time.process_time()
    with contextlib.suppress(TranscriptError):
        parse(text)
    return time.process_time() - start


@pytest.mark.parametrize("flood", FLOODS)
def test_time_grows_with_length(flood: str) -> None:
    """Four times the text takes nowhere near sixteen times as long."""
    small, large = FLOODS[flood](60_000), FLOODS[flood](240_000)
    parse_small, parse_large = (min(seconds(text) for _ in range(2)) for text in (small, large))
    # Quadratic growth would be sixteenfold; the constant keeps noise on fast cases out of it.
    assert parse_large < 10 * parse_small + 0.5


def test_a_megabyte_on_one_line() -> None:
    """A megabyte of judged text in one atom is written and read back."""
    long = "贴膜（见【1】）打分【1】分，结束。\n" * 50_000
    text = FORMS["atomic-headlamp-film.transcript.txt"].replace("贴膜可能影响行车安全", escape(long))
    verdict = parse(text)
    assert verdict.items[1].text == long
    assert [atom.label for atom in verdict.items] == ["correct"] * 3  # type: ignore[union-attr]
    assert parse(render(verdict)).items == verdict.items
