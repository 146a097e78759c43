"""Harvesting scores: the forms as LLMs vary them, many transcripts in a file, totals without items, and speed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, lines_of, write_lines
from steelyard.protocols.transcripts import detect, parse, parse_all, render
from steelyard.records import Verdict
from steelyard.text import converted

HARVEST = Path(__file__).parent / "fixtures" / "harvest"
SEEDS = Path(__file__).parent / "fixtures" / "seeds"
WILD = Path(__file__).parent / "fixtures" / "wild"
DOCUMENTS = {"000_3089f041ab6a2b31": 3, "001_39c51bcde849f0de": 2}
OPEN = "unjudged"
C, W, U, X = "correct", "wrong", "undetermined", "exempt"

# Labels, levels, fallback, stated totals, status.
ATOMIC: dict[str, tuple[list[str], list[int | None], int | None, dict[str, float], str]] = {
    "atomic-bold-headings": ([C, W], [1, 2], 0, {}, "judged"),
    "atomic-brace-scores": ([C, W], [None, None], 0, {}, "judged"),
    "atomic-broken-row": ([C, OPEN], [None, None], 0, {}, "partial"),
    "atomic-bullets": ([C, U], [1, 3], 0, {}, "judged"),
    "atomic-corner-headings": ([C, W, X], [1, 2, 3], 0, {}, "judged"),
    "atomic-english-translated": ([C, C], [2, 1], 0, {}, "judged"),
    "atomic-english-fields": ([C, W], [1, 2], 0, {}, "judged"),
    "atomic-fields": ([W, C], [1, 2], 0, {}, "judged"),
    "atomic-english": ([C, W, X], [1, 2, 3], 0, {}, "judged"),
    "atomic-english-headings": ([C, U], [1, 3], 0, {}, "judged"),
    "atomic-english-table": ([C, W, X], [1, 2, 3], 0, {}, "judged"),
    "atomic-fallback-only": ([], [], 0, {}, "failed"),
    "atomic-fallback-word": ([], [], 1, {}, "judged"),
    "atomic-hash-headings": ([C, U], [1, 2], 0, {}, "judged"),
    "atomic-one-table": ([C, W, U, X], [1, 2, 3, 3], 0, {}, "judged"),
    "atomic-parenthesis-scores": ([C, W], [1, 2], 0, {}, "judged"),
    "atomic-ratio-differs": ([C, W], [None, None], 0, {"accuracy": 1}, "judged"),
    "atomic-ratio-only": ([], [], 0, {"accuracy": 0.67}, "failed"),
    "atomic-section-tables": ([C, W], [1, 3], 0, {}, "judged"),
    "atomic-steps": ([C, W], [1, 3], 0, {}, "judged"),
    "atomic-table-word-only": ([C, W], [1, 2], 0, {}, "judged"),
}
# The eight checks, the three scores, stated totals, status.
GROUNDED: dict[str, tuple[list[Any], list[int | None], dict[str, float], str]] = {
    "grounded-accuracy-total-only": ([OPEN] * 8, [None] * 3, {"accuracy": 1}, "failed"),
    "grounded-bold-sections": ([1, 1, 1, 1, 1, 0, 1, 1], [1, 0, 0], {}, "judged"),
    "grounded-braces": ([OPEN] * 8, [None] * 3, {"relevance": 1, "truthfulness": 0, "accuracy": 0}, "failed"),
    "grounded-english": ([1, 1, 1, 0, 1, 1, 1, 1], [0, 1, 0], {}, "judged"),
    "grounded-english-bold": ([1] * 8, [1, 1, 1], {}, "judged"),
    "grounded-english-table": ([1, 1, 1, 1, OPEN, 0, 1, OPEN], [None, 0, 0], {"relevance": 1}, "partial"),
    "grounded-english-translated": ([0, 0, 0, 0, 1, 0, 1, 1], [0, 0, 0], {}, "judged"),
    "grounded-one-table": ([1, 1, 1, 1, 1, 0, 1, 1], [1, 0, 0], {}, "judged"),
    "grounded-plain-totals": ([1] * 8, [1, 1, 1], {}, "judged"),
    "grounded-table": ([1, 1, 1, 0, 1, 1, 1, 1], [0, 1, 0], {}, "judged"),
}
TOTALS = {"relevance": 90, "completeness": 80, "accuracy": 100, "faithfulness": 70}
# On topic, support, key points, atoms, stated totals, status.
SCORECARD: dict[str, tuple[list[str], list[str], list[str], list[str], dict[str, float], str]] = {
    "scorecard-english": (
        ["on_topic", "off_topic"], ["supported", "no_claim"], ["covered", "partial"], [C], {}, "judged"
    ),
    "scorecard-signs": (["on_topic"], ["unsupported"], [], [], {}, "judged"),
    "scorecard-simplified": (["on_topic"], ["unsupported"], ["partial"], [W], {}, "judged"),
    "scorecard-tables": (
        ["on_topic", "off_topic"], ["supported", "unsupported"], ["covered", "missing"], [C], {}, "judged"
    ),
    "scorecard-totals-english": ([], [], [], [], TOTALS, "failed"),
    "scorecard-totals-lines": ([], [], [], [], TOTALS, "failed"),
    "scorecard-totals-table": (
        [], [], [], [], {"relevance": 92, "completeness": 75, "accuracy": 88, "faithfulness": 95}, "failed"
    ),
}  # fmt: skip
# Turn, label and text of each criterion, status.
DIALOGUE: dict[str, tuple[list[tuple[int, str, str]], str]] = {
    "dialogue-english": (
        [(1, "satisfied", "Starts with a greeting | content"), (1, "violated", "At most 20 words | length"),
         (2, U, "Uses French | language")],
        "judged",
    ),
    "dialogue-english-json": (
        [(1, "satisfied", "Starts with a greeting | content"), (1, "violated", "At most 20 words | length")], "judged"
    ),
    "dialogue-nothing-read": ([], "failed"),
    "dialogue-one-table": ([(1, "satisfied", "先问候用户"), (2, "violated", "给出链接")], "judged"),
    "dialogue-plain-headings": ([(1, "satisfied", "称呼用户为老板"), (2, "violated", "结尾附上免责声明")], "judged"),
    "dialogue-signs": ([(1, "violated", "用英文回答")], "judged"),
    "dialogue-table": (
        [(1, "satisfied", "用文言文回答 | 风格约束"), (1, "violated", "不超过三句 | 数量约束"),
         (2, U, "使用英文 | 语言约束")],
        "judged",
    ),
}  # fmt: skip
NAMES = sorted([*ATOMIC, *GROUNDED, *SCORECARD, *DIALOGUE])
CHINESE = [name for name in NAMES if "english" not in name]
VARIANTS = [(name, "as written") for name in NAMES] + [(name, "s2t") for name in CHINESE]


def text_of(name: str, script: str = "as written") -> str:
    text = (HARVEST / f"{name}.txt").read_text("utf-8")
    return converted(text, "s2t") if script == "s2t" else text


def labels(verdict: Verdict, kind: str, field: str = "label") -> list[Any]:
    return [getattr(item, field) for item in verdict.items if item.kind == kind]


def test_every_file_has_its_expectation() -> None:
    """No transcript lies in the folder unread, and there are many."""
    assert {path.stem for path in HARVEST.glob("*.txt")} == set(NAMES)
    assert len(VARIANTS) > 60


@pytest.mark.parametrize(("name", "script"), VARIANTS)
def test_what_a_person_reads(name: str, script: str) -> None:
    """Labels, scores, stated totals and status of every variant, in Simplified and in OpenCC's Traditional."""
    text = text_of(name, script)
    assert detect(text) == name.partition("-")[0]
    verdict = parse(text)
    if name in ATOMIC:
        found, levels, fallback, stated, status = ATOMIC[name]
        assert (labels(verdict, "atom"), labels(verdict, "atom", "level")) == (found, levels)
        assert verdict.scores["fallback"] == fallback
    elif name in GROUNDED:
        found, scores, stated, status = GROUNDED[name]
        assert labels(verdict, "check") == found
        assert list(verdict.scores.values()) == scores
    elif name in SCORECARD:
        topics, support, points, atoms, stated, status = SCORECARD[name]
        assert labels(verdict, "sentence", "on_topic") == topics
        assert labels(verdict, "sentence", "support") == support
        assert (labels(verdict, "key_point"), labels(verdict, "atom")) == (points, atoms)
    else:
        criteria, status = DIALOGUE[name]
        stated = {}
        texts = [converted(text, "s2t") if script == "s2t" else text for _, _, text in criteria]
        assert labels(verdict, "criterion", "text") == texts
        assert labels(verdict, "criterion", "turn") == [turn for turn, _, _ in criteria]
        assert labels(verdict, "criterion") == [label for _, label, _ in criteria]
    assert (verdict.stated, verdict.status) == (stated, status)


@pytest.mark.parametrize(("name", "script"), VARIANTS)
def test_what_was_read_survives_our_own_form(name: str, script: str) -> None:
    """Rendered and read again: the same items, scores and flags."""
    first = parse(text_of(name, script))
    second = parse(render(first), first.protocol)
    assert (second.items, second.scores, second.flags) == (first.items, first.scores, first.flags)


CLEAN = sorted(set(NAMES) - {"atomic-broken-row", "atomic-ratio-differs", "dialogue-english-json"})


@pytest.mark.parametrize("name", CLEAN)
def test_decoration_raises_no_flag(name: str) -> None:
    """Only what is missing is flagged: a table, bold type, brackets of another kind or English are not odd."""
    assert set(parse(text_of(name)).flags) <= {"not_in_transcript"}


# --- the fallback line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            (form, 0)
            for form in ("0", "0分", "否", "**0**", "（0）", "(0)", "[0]", "{{0}}", "０", "不是", "No", "得分：0")
        ),
        *((form, 1) for form in ("1", "1分", "是", "**1**", "（1）", "【1】", "{{1}}", "１", "Yes", "是，内容为拒答")),
        *((form, None) for form in ("2", "0或1", "否则为1", "-1", "", "【0】【1】", "无法判断")),
    ],
)
def test_ways_to_write_the_fallback(written: str, value: int | None) -> None:
    """`0`, `0分`, `否`, `**0**` and `（0）` count like 【0】; what is neither 0 nor 1 is not read."""
    text = "原子信息生成：\n1. 甲\n\n准确性评估：\n1. 甲\n（2）准确性评估：正确，打分【1】\n\n是否为兜底回复："
    for script in ("as written", "s2t"):
        whole = converted(text, "s2t") if script == "s2t" else text
        verdict = parse(whole + written)
        assert verdict.scores["fallback"] == value, script
        assert verdict.status == ("partial" if value is None else "judged")


# --- many transcripts in one text --------------------------------------------------------------------


@pytest.mark.parametrize("script", ["as written", "s2t"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_source_documents_whole(steelyard: Steelyard, tmp_path: Path, name: str, script: str) -> None:
    """Instructions, questions and transcripts in one file: every worked example, with its labels, and nothing else."""
    text = (SEEDS / f"{name}.txt").read_text("utf-8")
    file = tmp_path / f"{name}.txt"
    file.write_text(converted(text, "s2t") if script == "s2t" else text, "utf-8")
    done = steelyard("parse", file)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert [line["id"] for line in found] == [f"{name}#{n}" for n in range(1, DOCUMENTS[name] + 1)]
    order = {
        "000_3089f041ab6a2b31": ["atomic-headlamp-film", "atomic-longest-name", "atomic-mother-daughter"],
        "001_39c51bcde849f0de": ["grounded-headlamp-film", "grounded-tray-table"],
    }[name]
    for line, example in zip(found, order, strict=True):
        wanted = json.loads((SEEDS / f"{example}.expected.json").read_text("utf-8"))
        assert line["status"] == "judged"
        for item, want in zip(line["items"], wanted["items"], strict=True):
            assert item["label"] in want["labels"]
            assert item.get("level") == want.get("level")
        alone = parse((SEEDS / f"{example}.transcript.txt").read_text("utf-8"))
        assert (line["scores"], line["flags"]) == (dict(alone.scores), list(alone.flags))


def essence(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.items, verdict.scores, verdict.stated, verdict.flags, verdict.status


@pytest.mark.parametrize(
    "names",
    [
        ["atomic-bold-headings", "atomic-one-table", "atomic-hash-headings", "atomic-english"],
        ["atomic-section-tables"] * 3,
        ["grounded-table", "grounded-plain-totals", "grounded-english", "grounded-bold-sections"],
        ["scorecard-tables", "scorecard-english", "scorecard-simplified"],
        ["scorecard-totals-english"] * 3,
        ["dialogue-english", "dialogue-table", "dialogue-plain-headings", "dialogue-english-json"],
        ["dialogue-nothing-read", "dialogue-english"],
    ],
)
def test_transcripts_one_after_another(names: list[str]) -> None:
    """Each reads as it does alone, whatever form its neighbours have."""
    together = parse_all("\n\n问题：下一题\n\n".join(text_of(name) for name in names), names[0].partition("-")[0])
    if names[0] == "dialogue-nothing-read":
        # A heading without a criterion, and then the same round again: one report.
        assert [essence(verdict)[0] for verdict in together] == [parse(text_of(names[1])).items]
        return
    assert [verdict.id for verdict in together] == [f"transcript#{n}" for n in range(1, len(names) + 1)]
    assert [essence(verdict) for verdict in together] == [essence(parse(text_of(name))) for name in names]


@pytest.mark.parametrize("name", sorted(path.stem for path in WILD.glob("*.txt")))
def test_three_of_the_same(name: str) -> None:
    """Any transcript three times over is three times that transcript, unless nothing tells where it ends."""
    text = (WILD / f"{name}.txt").read_text("utf-8")
    found = parse_all("\n\n".join([text] * 3), name.partition("-")[0])
    # The same JSON again says nothing new, and a list without an end cannot be told from a longer one.
    merged = {"dialogue-cut-json", "atomic-accuracy-only"}
    assert len(found) == (1 if name in merged else 3)
    if name not in merged:
        assert [essence(verdict) for verdict in found] == [essence(parse(text))] * 3


def test_thoughts_between_transcripts_are_not_read() -> None:
    """A <think> block before each reply: its drafts are no transcripts."""
    reply = text_of("atomic-bold-headings")
    found = parse_all(f"<think>\n{reply}\n</think>\n{reply}\n<think>\n{reply}\n</think>\n{reply}")
    assert len(found) == 2
    assert len(parse_all(f"{reply}\n<think>\n{reply}")) == 2


def test_a_row_with_several_transcripts(steelyard: Steelyard) -> None:
    """The row's id, numbered; a row with one keeps its id as it is."""
    one, other = text_of("grounded-table"), text_of("grounded-english")
    write_lines(Path("rows.jsonl"), [{"id": "a", "output": f"{one}\n\n{other}"}, {"id": "b", "output": one}])
    assert steelyard("parse", "rows.jsonl", "-o", "out.jsonl").code == 0
    assert [line["id"] for line in lines_of("out.jsonl")] == ["a#1", "a#2", "b"]


# --- tables and judged text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "打分【1】分，结束。",
        "正确",
        "【1】",
        "是否为兜底回复：【1】",
        "<br>准确性评估：<br>正确，打分【1】",
        "原子信息生成：",
    ],
)
def test_judged_text_in_a_cell_is_text(text: str) -> None:
    """Whatever an atom's cell says, its label is that of the label's column."""
    verdict = parse(
        f"| 编号 | 原子信息 | 等级 | 准确性 | 理由 |\n|---|---|---|---|---|\n| 1 | {text} | 2 | 错误 | {text} |\n\n"
        "是否为兜底回复：0"
    )
    assert [(atom.label, atom.level) for atom in verdict.items] == [(W, 2)]  # type: ignore[union-attr]
    assert verdict.scores["fallback"] == 0


@pytest.mark.parametrize(
    ("accuracy", "score", "label", "flags"),
    [
        ("正确", "0", W, ("prose_contradicts_score",)),
        ("正确", "2", OPEN, ("score_out_of_range",)),
        ("", "", OPEN, ("score_missing",)),
        ("大致如此", "-", OPEN, ("score_missing",)),
        ("错误", "-", W, ()),
        ("-", "-1", U, ()),
    ],
)
def test_cells_that_disagree_or_say_nothing(accuracy: str, score: str, label: str, flags: tuple[str, ...]) -> None:
    """The score stands against the word, as in the other forms; nothing usable is unjudged."""
    text = "原子信息生成：\n1. 甲\n2. 乙\n\n准确性评估：\n| 编号 | 原子信息 | 准确性 | 打分 |\n|---|---|---|---|\n"
    verdict = parse(f"{text}| 1 | 甲 | {accuracy} | {score} |\n| 2 | 乙 | 正确 | 1 |\n\n是否为兜底回复：0")
    assert (verdict.items[0].label, verdict.items[0].flags) == (label, flags)  # type: ignore[union-attr]
    assert verdict.flags == flags


def test_a_table_under_each_level() -> None:
    """The heading above a table gives its rows their level."""
    head = "| 原子信息 | 准确性 |\n|---|---|\n"
    verdict = parse(
        f"准确性评估：\n### 等级1\n{head}| 甲 | 正确 |\n### 等级2\n{head}| 乙 | 错误 |\n\n是否为兜底回复：0"
    )
    assert [(atom.label, atom.level) for atom in verdict.items] == [(C, 1), (W, 2)]  # type: ignore[union-attr]


def test_a_table_of_something_else_is_passed_over() -> None:
    """The score table of the source document, or a table in a reason, is no list of items."""
    table = "| 命中率 | 分數區間 | 等級說明 |\n|---|---|---|\n| 0.9 | 90 - 100 分 | 完整 |\n"
    text = text_of("scorecard-english")
    assert parse(text.replace("## 2. Completeness\n", f"## 2. Completeness\n\n{table}\n")).items == parse(text).items
    answer = text_of("grounded-table").replace("快递一般3天送达。", f"见下表：\n\n{table}\n")
    assert parse(answer).notes["own_answer"].startswith("见下表：\n\n| 命中率")
    assert parse(render(parse(answer))).notes == parse(answer).notes


# --- totals, failures, flags -----------------------------------------------------------------------------


def test_totals_without_items_stand_beside_null(steelyard: Steelyard) -> None:
    """A line whose items could not be read has null scores, what the transcript states, and status failed."""
    done = steelyard("parse", HARVEST / "grounded-accuracy-total-only.txt", HARVEST / "scorecard-totals-table.txt")
    one, four = (json.loads(line) for line in done.out.splitlines())
    assert done.code == 3
    assert (one["status"], one["scores"]["accuracy"], one["stated"]) == ("failed", None, {"accuracy": 1})
    assert set(four["scores"].values()) == {None}
    assert four["stated"]["completeness"] == 75


def test_lines_with_stated_totals_are_results_like_others(steelyard: Steelyard) -> None:
    """`report` and `show` read them back."""
    steelyard("parse", HARVEST / "grounded-accuracy-total-only.txt", "-o", "out.jsonl")
    assert steelyard("report", "out.jsonl", "--as", "json").code == 0
    shown = json.loads(steelyard("show", "out.jsonl", "grounded-accuracy-total-only", "--as", "json").out)
    assert shown["stated"] == {"accuracy": 1}


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        ("原子信息生成：\n（略）\n\n兜底回复：\n是否为兜底回复：【0】", "atomic"),
        ("原子信息生成：\n\n准确性评估：\n都正确。", "atomic"),
        ("## 1️⃣ 相關性 (Relevance)\n分數：90 分\n", "scorecard"),
        ("## 相关性评价：\n都很好。\n", "grounded"),
        ("### 第1轮对话分析\n\n都符合。\n", "dialogue"),
        ('{"evaluation_report": [{"round": 1, "criteria_results": ["符合"]}]}', "dialogue"),
        ('{"evaluation_report": ["符合"]}', "dialogue"),
    ],
)
def test_nothing_read_is_failed(text: str, protocol: str) -> None:
    """A form without anything in it is never `judged`."""
    for given in (protocol, None):
        verdict = parse(text, given)
        assert (verdict.status, verdict.items) == ("failed", ())


def test_flags_of_items_reach_the_sample_and_the_report(steelyard: Steelyard) -> None:
    """What an item is flagged with stands in the sample's flags, and the report counts the samples that have it."""
    names = ["atomic-headlamp-film", "atomic-longest-name", "atomic-mother-daughter"]
    files = [SEEDS / f"{name}.transcript.txt" for name in names]
    done = steelyard("parse", *files, "-o", "out.jsonl", "--lang", "en")
    first, second, _ = lines_of("out.jsonl")
    assert first["flags"] == ["id_mismatch"]
    assert second["flags"] == ["prose_contradicts_score", "text_differs", "label_inferred"]
    for flag in ("id_mismatch", "text_differs", "label_inferred"):
        assert f"{flag} " in done.out
    report = json.loads(steelyard("report", "out.jsonl", "--as", "json").out)
    assert {flag: group["n"] for flag, group in report["flags"].items()} == {
        "id_mismatch": 1, "text_differs": 1, "label_inferred": 1, "prose_contradicts_score": 2,
    }  # fmt: skip


# --- speed -----------------------------------------------------------------------------------------------


def test_a_thousand_transcripts_take_seconds(steelyard: Steelyard) -> None:
    """A folder of a thousand, of all protocols and scripts: a few seconds of work, every one of them read."""
    folder = Path("replies")
    folder.mkdir()
    variants = [text_of(name, script) for name, script in VARIANTS]
    for number in range(1000):
        (folder / f"{number:04}.txt").write_text(variants[number % len(variants)], "utf-8")
    start = time.process_time()
    done = steelyard("parse", folder, "-o", "out.jsonl")
    assert time.process_time() - start < 10
    assert (done.err, len(lines_of("out.jsonl"))) == ("", 1000)


@pytest.mark.parametrize("name", ["atomic-one-table", "grounded-table", "scorecard-english", "dialogue-english"])
def test_time_grows_with_the_number_of_transcripts_in_a_file(name: str) -> None:
    """Four times as many in one text take about four times as long."""
    took = []
    for count in (100, 400):
        text = "\n\n".join([text_of(name)] * count)
        start = time.process_time()
        assert len(parse_all(text)) == count
        took.append(time.process_time() - start)
    assert took[1] < 10 * took[0] + 0.5
