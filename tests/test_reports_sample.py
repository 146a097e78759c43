"""One sample in full."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

from report_fixtures import HOSTILE, PASSAGE, atomic, dialogue, dialogue_sample, grounded, rag, scorecard, some_of, term
from steelyard.records import Evidence, Language, Sample, Verdict
from steelyard.reports.sample import coverage_reasoning, evidence_marks, render_sample, sample_markdown
from steelyard.text.wording import LANGUAGES, band_description, say

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval", "pairwise")


def printed(verdict: Verdict, sample: Sample | None, language: Language = "zh-Hans") -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(render_sample(verdict, sample, language))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fits_eighty_columns_and_names_every_item(protocol: str, language: Language) -> None:
    """All items of every protocol are shown with their text, in 80 columns, with and without the sample."""
    for verdict, sample in some_of(protocol):
        for given_sample in (sample, None):
            text = printed(verdict, given_sample, language)
            assert max(map(cell_len, text.splitlines())) <= 80
            for item in verdict.items:
                name = term(language, f"check.{item.text}") if item.kind == "check" else item.text
                assert name in text
            markdown = sample_markdown(verdict, given_sample, language)
            assert markdown.startswith(f"# {term(language, f'protocol.{protocol}')} · ")


def test_atomic_sample() -> None:
    """Question, answer, passages with the evidence marked, and each atom's label, level, reason, evidence."""
    text = printed(atomic("a", ["correct", "wrong", "unjudged"]), rag("a"))
    assert "大灯是否可以贴膜？" in text
    assert "车灯贴膜后会使⟦灯光的照明亮度下降⟧，可能影响行车安全。" in text
    assert "正确 · 1级：直接作答" in text
    assert "证据：灯光的照明亮度下降（资料 1、资料原文、引文已核实）" in text
    assert "理由：评判者未在时限内回复" in text


def test_unverified_evidence_is_said_and_not_marked() -> None:
    """A quote that code did not find is shown as such and marks nothing."""
    verdict = atomic("a", ["correct"])
    doubtful = verdict.items[0].model_copy(
        update={"evidence": Evidence(reference=0, quote="灯光的照明亮度下降"), "flags": ("evidence_unverified",)}
    )
    text = printed(verdict.model_copy(update={"items": (doubtful,)}), rag("a"))
    assert "引文未核实" in text
    assert "⟦" not in text
    assert say("zh-Hans", "flag.evidence_unverified")[:20] in text


def test_grounded_sample() -> None:
    """The judge's own answer, the eight checks in two groups, and the sentences behind the first."""
    text = printed(grounded("a", [6]), rag("a"))
    assert text.index("评判者自己的答案") < text.index("检查项：相关性") < text.index("检查项：真实性")
    assert len(re.findall(r"^ +(?:通过|未通过)$", text, re.MULTILINE)) == 8
    assert re.search(r"6\. 结论正确\n +未通过", text)
    assert "来自背景：不建议给大灯贴膜。（见资料）" in text
    assert "无害的补充：大灯很重要。" in text


def test_dialogue_sample() -> None:
    """Each turn with prompt, answer and criteria; a turn without criteria says so."""
    verdict = dialogue("d", ["sv", "u"])
    text = printed(verdict, dialogue_sample("d", 3))
    assert text.index("第 1 轮") < text.index("你好1") < text.index("1. 以歌词开头 | 内容约束") < text.index("第 2 轮")
    assert "依据：开头要有歌词（引文已核实）" in text
    assert "不确定 · 无效" in text
    assert text.rstrip().endswith(say("zh-Hans", "sample.no_criteria"))


def test_absurd_turn_numbers_do_not_hang() -> None:
    """A transcript that claims round 1000000000 shows one turn of that number, not a billion."""
    verdict = dialogue("d", ["s"])
    far = verdict.items[0].model_copy(update={"turn": 10**9})
    assert "第 1000000000 轮" in printed(verdict.model_copy(update={"items": (far,)}), None)


def test_scores_say_null_and_unjudged() -> None:
    """A score without a value says whether it does not apply or could not be judged."""
    assert re.search("准确率 +– +不适用", printed(atomic("a", ["exempt"]), None))
    assert re.search("准确率 +– +未评判", printed(atomic("a", ["unjudged"]), None))


def test_failed_sample_says_why() -> None:
    """A sample that was never judged shows the reason and what whole lists are missing."""
    verdict = Verdict(
        id="a",
        protocol="atomic",
        status="failed",
        scores={"accuracy": None},
        flags=("unjudged:atoms:timeout", "too_long"),
        notes={"failure": "HTTP 504 from the judge"},
    )
    text = printed(verdict, rag("a"), "en")
    assert "HTTP 504 from the judge" in text
    assert "the statements: the judge did not answer in time" in text
    assert "max_chars" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_scorecard_shows_the_band(language: Language) -> None:
    """Each of the four scores stands beside the description of its band."""
    text = "".join(printed(scorecard("a"), rag("a"), language).split())
    for metric, band in (("relevance", 5), ("completeness", 5), ("accuracy", 9), ("faithfulness", 5)):
        assert band_description(metric, band, language).replace(" ", "")[:12] in text


# --- reasoning -------------------------------------------------------------------------------------


def test_reasoning_lists_points_with_depth() -> None:
    """Hit, partial and missing points with their depth, and one sentence at the end."""
    lines = coverage_reasoning(scorecard("a"), "zh-Hans").split("\n")
    assert lines[0] == "命中（1）：要点1（深度：深入 · 说明）"
    assert lines[1] == "部分命中（1）：要点2（深度：仅提及 · 说明）"
    assert lines[2] == "缺漏（1）：要点3（说明）"
    assert lines[3] == "总的来说：3 个要点中有 1 个讲到位了，读者能明白大意，其余还得另找。"


def test_reasoning_ends_with_the_judges_summary() -> None:
    """A summary by the judge stands at the end, on one line."""
    verdict = scorecard("a", notes={"summary": "讲得不错，\n但不完整。"})
    assert coverage_reasoning(verdict, "en").split("\n")[-1] == "讲得不错， 但不完整。"


@pytest.mark.parametrize(
    ("points", "key"),
    [
        ([("covered", "deep")] * 5, "high"),
        ([("covered", "bare")] * 5, "shallow"),
        ([("covered", "deep")] + [("missing", None)] * 4, "low"),
        ([("unjudged", None)], "open"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_composed_summary(points: list[tuple[str, str | None]], key: str, language: Language) -> None:
    """Without the judge's words the closing sentence follows from the counts."""
    covered = sum(label == "covered" for label, _ in points)
    expected = say(language, f"reasoning.summary_{key}").format(covered=covered, total=len(points))
    assert coverage_reasoning(scorecard("a", points), language).split("\n")[-1] == expected


def test_reasoning_without_points() -> None:
    """Without key points the reasoning says that completeness does not apply."""
    assert coverage_reasoning(scorecard("a", []), "en") == say("en", "reasoning.no_points")


def test_derived_key_points_are_said_to_be() -> None:
    """The reader learns when the key points were drawn by the judge."""
    verdict = scorecard("a")
    items = tuple(
        item.model_copy(update={"keypoints_source": "derived"}) if item.kind == "key_point" else item
        for item in verdict.items
    )
    note = say("zh-Hans", "sample.key_points_derived")
    assert note in printed(verdict.model_copy(update={"items": items}), None)
    assert note not in printed(verdict, None)


# --- evidence marks --------------------------------------------------------------------------------


def quoting(*quotes: str) -> Verdict:
    verdict = atomic("a", ["correct"] * len(quotes))
    items = tuple(
        item.model_copy(update={"evidence": Evidence(reference=0, quote=quote, verified=True)})
        for item, quote in zip(verdict.items, quotes, strict=True)
    )
    return verdict.model_copy(update={"items": items})


def marked(passage: str, *quotes: str) -> list[str]:
    return [passage[start:end] for start, end in evidence_marks(passage, 0, quoting(*quotes))]


def test_marks_ignore_width_case_and_punctuation() -> None:
    """A quote is found although it differs in full-width forms, case and punctuation."""
    assert marked("理想Ｌ９ 的 大灯，很亮。", "l9的大灯很亮") == ["Ｌ９ 的 大灯，很亮"]


def test_marks_of_a_quote_with_an_omission() -> None:
    """Both ends of a quote joined by … are marked, in order."""
    assert marked(PASSAGE, "照明亮度下降…不要加装灯膜") == ["照明亮度下降", "不要加装灯膜"]


def test_overlapping_marks_are_one() -> None:
    """Quotes that overlap are marked once, from the first to the last character."""
    assert marked("甲乙丙丁戊己", "乙丙丁", "丙丁戊", "乙") == ["乙丙丁戊"]


def test_no_marks_for_other_passages_or_empty_quotes() -> None:
    """Punctuation alone marks nothing, nor does a quote from another passage."""
    assert evidence_marks(PASSAGE, 1, quoting("照明亮度下降")) == ()
    assert marked(PASSAGE, "……", "", "并不存在的话") == []


@given(st.text(max_size=40), st.text(max_size=10))
def test_marks_are_ordered_spans(passage: str, quote: str) -> None:
    """Whatever the texts, marks are increasing, disjoint and inside the passage."""
    at = 0
    for start, end in evidence_marks(passage, 0, quoting(quote, passage)):
        assert at <= start < end <= len(passage)
        at = end


# --- hostile text ----------------------------------------------------------------------------------


def hostile() -> tuple[Verdict, Sample]:
    verdict = atomic(HOSTILE, ["correct", "wrong"], text=HOSTILE, judge=HOSTILE, flags=(HOSTILE,))
    return verdict, rag(HOSTILE, HOSTILE, answer=HOSTILE, references=(HOSTILE, PASSAGE), tags=(HOSTILE,))


def test_hostile_sample_in_the_terminal() -> None:
    """Nothing in a sample reaches the terminal as a control sequence or as markup."""
    text = printed(*hostile(), "en")
    assert not set("\x1b\x07\x9b\r\u202e\u202c\u200b") & set(text)
    assert "[red]" in text


def test_hostile_sample_in_markdown() -> None:
    """Nothing in a sample becomes a heading, list, link, image, code or tag of the document."""
    text = sample_markdown(*hostile(), "en")
    parsed = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(text)
    children = [child for token in parsed for child in token.children or []]
    assert not {"image", "link_open", "code_inline", "em_open", "strong_open"} & {c.type for c in children}
    tags = {child.content for child in children if child.type == "html_inline"}
    assert tags <= {"<br>", "<b>", "</b>", "<i>", "</i>"}
    assert not {"fence", "code_block", "html_block", "hr", "ordered_list_open"} & {t.type for t in parsed}
    assert all("script" not in token.content for token in parsed if token.type == "html_block")


def test_a_megabyte_is_shown_in_full() -> None:
    """`show` does not cut the answer, however long."""
    long = "很长的回答。" * 60_000
    text = sample_markdown(atomic("a"), rag("a", answer=long), "en")
    assert long in text
