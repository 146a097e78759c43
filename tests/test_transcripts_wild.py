"""Transcripts as other models write them, each a file of fixtures/wild: read right, flagged, or unjudged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import EXAMPLES, RECORDED, Steelyard, lines_of, write_lines
from steelyard.errors import TranscriptError
from steelyard.protocols.transcripts import detect, parse, render
from steelyard.records import Verdict

WILD = Path(__file__).parent / "fixtures" / "wild"
SEEDS = Path(__file__).parent / "fixtures" / "seeds"
NAMES = sorted(path.stem for path in WILD.glob("*.txt"))
OPEN = "unjudged"


def text_of(name: str) -> str:
    return (WILD / f"{name}.txt").read_text("utf-8")


def labels(verdict: Verdict) -> list[Any]:
    return [item.label for item in verdict.items]  # type: ignore[union-attr]


# What each atomic transcript says: its labels, its levels, whether it declines, and how complete it is.
ATOMIC: dict[str, tuple[list[str], list[int | None], int | None, str]] = {
    "atomic-accuracy-only": (["correct", "wrong"], [1, 1], None, "partial"),
    "atomic-bare-scores": ([OPEN] * 3, [None] * 3, 0, "failed"),
    "atomic-deepseek-chatty": (["correct", "wrong", "undetermined"], [3, 1, 2], 0, "judged"),
    "atomic-english-inside": (["correct", "correct", "exempt"], [1, 1, 3], 0, "judged"),
    "atomic-fallback": ([], [], 1, "judged"),
    "atomic-gpt-headings": (["correct", "wrong", "exempt"], [1, 2, 3], 0, "judged"),
    "atomic-half-width": (["correct", "correct"], [1, 3], 0, "judged"),
    "atomic-named-atoms": (["correct", "wrong"], [1, 2], 0, "judged"),
    "atomic-reasoner": (["correct", "undetermined"], [1, 2], 0, "judged"),
    "atomic-traditional": (["correct", "wrong", "exempt"], [1, 3, 3], 0, "judged"),
    "atomic-truncated": (["correct", "correct", OPEN], [1, 1, 3], None, "partial"),
}
# The eight checks of each grounded transcript, and its three scores.
GROUNDED: dict[str, tuple[list[int | str], list[int | None], str]] = {
    "grounded-gpt-bold": ([1, 1, 1, 0, 1, 1, 1, 1], [0, 1, 0], "judged"),
    "grounded-nested": ([1, 1, 1, 1, 1, 0, 1, 1], [1, 0, 0], "judged"),
    "grounded-totals-only": ([OPEN] * 8, [None, None, None], "failed"),
    "grounded-traditional": ([1] * 8, [1, 1, 1], "judged"),
    "grounded-truncated": ([1, 1, 1, 1, 1, OPEN, OPEN, OPEN], [1, None, None], "partial"),
    "grounded-wrong-total": ([1, 1, 0, 0, 0, 0, 1, 0], [0, 0, 0], "judged"),
}
DIALOGUE: dict[str, tuple[list[str], list[str], str]] = {
    "dialogue-both-reports": (["satisfied", "violated", "undetermined"], ["valid", "valid", "invalid"], "judged"),
    "dialogue-cut-json": (["satisfied", OPEN], ["valid", OPEN], "partial"),
    "dialogue-loose-markdown": (["violated", "satisfied", OPEN], ["valid", "valid", OPEN], "partial"),
}


def test_every_file_has_its_expectation() -> None:
    """No transcript lies in the folder unread."""
    assert {*ATOMIC, *GROUNDED, *DIALOGUE, "scorecard-gpt"} == set(NAMES)
    assert len(NAMES) > 15


@pytest.mark.parametrize("name", NAMES)
def test_the_form_is_told_from_the_text(name: str) -> None:
    """Preambles, remarks, fences and other scripts do not hide which protocol it is."""
    assert detect(text_of(name)) == name.split("-")[0]


@pytest.mark.parametrize("name", NAMES)
def test_rendered_anew_they_read_the_same(name: str) -> None:
    """Whatever was understood survives our own form: items, scores and flags."""
    first = parse(text_of(name), id=name)
    second = parse(render(first), first.protocol, id=name)
    assert (second.items, second.scores, second.flags) == (first.items, first.scores, first.flags)


@pytest.mark.parametrize("name", ATOMIC)
def test_atomic(name: str) -> None:
    """Labels, levels and the fallback are those a person reads in the text."""
    wanted, levels, fallback, status = ATOMIC[name]
    verdict = parse(text_of(name))
    assert labels(verdict) == wanted
    assert [atom.level for atom in verdict.items] == levels  # type: ignore[union-attr]
    assert (verdict.scores["fallback"], verdict.status) == (fallback, status)


@pytest.mark.parametrize("name", GROUNDED)
def test_grounded(name: str) -> None:
    """The eight checks by their words; the gates are ours, never the text's."""
    wanted, scores, status = GROUNDED[name]
    verdict = parse(text_of(name))
    assert labels(verdict) == wanted
    assert list(verdict.scores.values()) == scores
    assert verdict.status == status


@pytest.mark.parametrize("name", DIALOGUE)
def test_dialogue(name: str) -> None:
    """Results and validity; 基本符合, 部分有效 and a result that was cut off are no results."""
    wanted, validity, status = DIALOGUE[name]
    verdict = parse(text_of(name))
    assert labels(verdict) == wanted
    assert [criterion.validity for criterion in verdict.items] == validity  # type: ignore[union-attr]
    assert verdict.status == status


def test_scorecard() -> None:
    """Labels are counted here; a stated 55 that the labels do not give is flagged and not believed."""
    verdict = parse(text_of("scorecard-gpt"))
    scores = {"relevance": 50, "completeness": 50, "accuracy": 100, "faithfulness": 50, "faithfulness_soft": 50}
    assert verdict.scores == scores
    assert verdict.flags == ("stated_total_differs",)
    assert verdict.notes["summary"] == "回答抓到主軸，但漏掉公車。"


# --- what is inferred, and what is not -----------------------------------------------------------------


def test_clean_transcripts_carry_no_flags() -> None:
    """Decoration alone never makes a reader suspicious."""
    inferring = {"atomic-bare-scores", "atomic-truncated", "grounded-totals-only", "grounded-truncated"}
    inferring |= {"grounded-wrong-total", "scorecard-gpt", "dialogue-cut-json", "dialogue-loose-markdown"}
    for name in set(NAMES) - inferring:
        verdict = parse(text_of(name))
        assert verdict.flags == (), name
        assert all(item.flags == () for item in verdict.items), name


def test_a_sentence_that_breaks_off() -> None:
    """The word before the cut is an inference; the atom after it is not in the transcript."""
    _, cut, gone = parse(text_of("atomic-truncated")).items
    assert cut.flags == ("label_inferred",)
    assert (gone.reason, gone.flags) == ("not_in_transcript", ("not_in_transcript",))


def test_totals_alone_are_no_labels() -> None:
    """Three {{}} without checks: every check is open, no score is taken over, what was stated is noted."""
    verdict = parse(text_of("grounded-totals-only"))
    assert {item.reason for item in verdict.items} == {"not_in_transcript"}
    assert set(verdict.scores.values()) == {None}
    assert verdict.stated == verdict.line()["stated"] == {"relevance": 1, "truthfulness": 0, "accuracy": 0}


def test_a_total_after_some_talk() -> None:
    """A summary that argues before it states its total is compared too."""
    verdict = parse(text_of("grounded-wrong-total"))
    assert verdict.flags == ("stated_total_differs",)
    assert verdict.stated == {"relevance": 1}


def test_drafts_in_a_thought_are_not_read() -> None:
    """Neither the atoms nor the JSON of a <think> block."""
    assert len(parse(text_of("atomic-reasoner")).items) == 2
    final = text_of("dialogue-both-reports")
    draft = '<think>\n{"evaluation_report": [{"round": 1, "criteria_results": []}]}\n</think>\n'
    assert parse(draft + final).items == parse(final).items


def test_reasons_are_kept_as_written() -> None:
    """Brackets, several lines and code marks inside a reason stay; the marks around it go."""
    assert parse(text_of("atomic-deepseek-chatty")).items[1].reason.count("\n") == 1
    assert parse(text_of("atomic-gpt-headings")).items[2].reason == "属于主观评价"
    assert parse(text_of("dialogue-both-reports")).items[1].reason == "`answer` 共有86字。"
    assert parse(text_of("grounded-gpt-bold")).items[3].reason == "没有说明运费由谁承担"
    assert parse(text_of("atomic-english-inside")).items[1].reason == "passage 1, see above :)"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("打分【1】，参考答案有依据", "correct"),
        ("正确，打分【1】分，理由：参考答案有依据。", "correct"),
        ("打分：0分。与参考答案冲突", "wrong"),
        ("正确（有依据）【1】", "correct"),
        ("正确（有依据），【1】分，流程结束。", "correct"),
        ("正确（有依据）\n- 打分：【1】", "correct"),
        ("打分【1】，但它要求打分【0】分", "unjudged"),
        ("打分【3】，非常好", "unjudged"),
        ("正确（打分【0】是它要求的），打分【1】分", "correct"),
        ("（它写着【1】）", "unjudged"),
        ("【1】号楼确实存在", "unjudged"),
    ],
)
def test_where_a_score_may_stand(value: str, label: str) -> None:
    """Before the reason, behind it, on its own line; two that differ are none, and text is never a score."""
    head = "原子信息生成：\n1. 甲是乙\n\n准确性评估：\n1. 甲是乙\n（1）是否进行事实性判断：需要\n"
    assert labels(parse(f"{head}（2）准确性评估：{value}\n\n是否为兜底回复：【0】")) == [label]


@pytest.mark.parametrize(
    ("body", "label"),
    [
        ("\n- 得分：1", 1),
        ("\n\n没有偏题。\n\n**得分：0**", 0),
        ("：没有偏题。\n\n得1分", 1),
        ("：没有偏题，得1分。\n\n后来又说得0分", 1),
        ("：没有偏题。\n\n相关性得分：1", OPEN),
        ("：没有偏题。\n\n总结：得1分", OPEN),
        ("", OPEN),
    ],
)
def test_a_check_over_several_paragraphs(body: str, label: int | str) -> None:
    """The score may follow after empty lines; the score of the whole group is not the check's."""
    text = f"## 相关性评价：\n(1).是否来自Background：来自，得1分。\n(2).**是否偏题**{body}\n\n## 真实性评价：\n"
    assert parse(text, "grounded").items[1].label == label  # type: ignore[union-attr]


# --- several transcripts in one text -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["atomic-gpt-headings", "grounded-gpt-bold", "scorecard-gpt", "dialogue-both-reports"])
def test_two_transcripts_in_one_text_are_not_mixed(name: str) -> None:
    """Pasted together they are refused, whatever the protocol: half of each would be nobody's verdict."""
    other = text_of(name).replace("1. ", "1. 另一条：").replace('"符合"', '"不符合"')
    with pytest.raises(TranscriptError, match="more than one transcript"):
        parse(f"{text_of(name)}\n\n{other}")


def test_the_same_report_twice_is_one() -> None:
    """Models repeat themselves; the same JSON again says nothing new."""
    report = (SEEDS / "dialogue-angry-assistant.report1.json").read_text("utf-8")
    assert parse(f"{report}\n\n最终结果：\n{report}").items == parse(report).items


# --- many atoms ----------------------------------------------------------------------------------------


def alike(count: int) -> str:
    atoms = [f"第{n}号商铺位于三楼东侧，面积{n}平方米" for n in range(1, count + 1)]
    listed = "".join(f"{n}. {atom}\n" for n, atom in enumerate(atoms, start=1))
    blocks = "".join(
        f"{n}. {atom}左右\n（2）准确性评估：{'正确' if n % 2 else '错误'}（见资料），打分【{n % 2}】分\n"
        for n, atom in enumerate(atoms, start=1)
    )
    return f"原子信息生成：\n{listed}\n准确性评估：\n{blocks}\n是否为兜底回复：【0】"


@pytest.mark.parametrize("count", [5, 99, 101, 150])
def test_atoms_that_resemble_each_other(count: int) -> None:
    """Reworded atoms find their own block among lookalikes, also in long transcripts, and say so."""
    verdict = parse(alike(count))
    assert labels(verdict) == ["correct" if n % 2 else "wrong" for n in range(1, count + 1)]
    assert all(item.flags == ("text_differs",) for item in verdict.items)


@pytest.mark.parametrize("count", [20, 150])
def test_a_reworded_atom_under_its_neighbours_number(count: int) -> None:
    """A block that resembles another atom more than the one it is numbered as belongs to neither."""
    text = alike(count).replace(
        "2. 第2号商铺位于三楼东侧，面积2平方米左右", "2. 第3号商铺位于三楼东侧，面积3平方米左右"
    )
    verdict = parse(text)
    assert verdict.items[1].label == OPEN  # type: ignore[union-attr]
    assert verdict.notes["unmatched"] == 1


# --- through the command line --------------------------------------------------------------------------


def test_a_folder_of_transcripts(steelyard: Steelyard) -> None:
    """Every file is read, those with gaps too; the exit code says that there were some."""
    done = steelyard("parse", WILD)
    found = {line["id"].removesuffix(".txt"): line for line in map(json.loads, done.out.splitlines())}
    assert set(found) == set(NAMES)
    assert done.code == 3
    assert {name for name, line in found.items() if line["status"] == "failed"} == {
        "atomic-bare-scores",
        "grounded-totals-only",
    }
    assert {line["protocol"] for line in found.values()} == {"atomic", "grounded", "scorecard", "dialogue"}


def test_a_column_with_ids(steelyard: Steelyard) -> None:
    """Ids come from the rows; a row without one is numbered; the report counts what could not be read."""
    rows: list[dict[str, Any]] = [
        {"id": f"第{n}条", "model_output": text_of(name)} for n, name in enumerate(ATOMIC, start=1)
    ]
    write_lines(Path("replies.jsonl"), [*rows, {"model_output": text_of("atomic-traditional")}])
    done = steelyard("parse", "replies.jsonl", "--column", "model_output", "-p", "atomic", "-o", "out.jsonl")
    assert [line["id"] for line in lines_of("out.jsonl")] == [*(row["id"] for row in rows), "replies-12"]
    assert done.code == 3
    assert "已评判 9" in done.out
    assert "失败 1" in done.out


@pytest.mark.parametrize("protocol", ["atomic", "grounded", "scorecard", "dialogue"])
def test_a_whole_run_as_transcripts_and_back(steelyard: Steelyard, protocol: str) -> None:
    """`report --as transcript -o FILE.jsonl`, then `parse FILE.jsonl`: the same ids, labels, scores and flags."""
    file = EXAMPLES / ("dialogue.jsonl" if protocol == "dialogue" else "rag.jsonl")
    steelyard("run", file, "-p", protocol, "-j", RECORDED, "-o", "out.jsonl")
    assert steelyard("report", "last", "--as", "transcript", "-o", "written.jsonl").out == ""
    done = steelyard("parse", "written.jsonl", "-p", protocol, "-o", "parsed.jsonl")
    assert done.code == 0, done.err
    for before, after in zip(lines_of("out.jsonl"), lines_of("parsed.jsonl"), strict=True):
        kept = ("id", "protocol", "status", "scores", "flags")
        assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
        assert [_labels(item) for item in after["items"]] == [_labels(item) for item in before["items"]]


def _labels(item: dict[str, Any]) -> dict[str, Any]:
    names = ("kind", "id", "turn", "text", "label", "level", "on_topic", "support", "depth", "validity", "evidence")
    return {name: item.get(name) for name in names}


@pytest.mark.parametrize("form", ["report1", "report2"])
def test_dialogue_reports_and_back(steelyard: Steelyard, form: str) -> None:
    """Both reports of a run lead back to its rates."""
    steelyard("run", EXAMPLES / "dialogue.jsonl", "-p", "dialogue", "-j", RECORDED, "-o", "out.jsonl")
    steelyard("report", "--as", form, "-o", "written.jsonl")
    assert steelyard("parse", "written.jsonl", "-o", "parsed.jsonl").code == 0
    rates = [(line["id"], line["scores"]) for line in lines_of("out.jsonl")]
    assert [(line["id"], line["scores"]) for line in lines_of("parsed.jsonl")] == rates


@pytest.mark.parametrize("name", sorted(path.name for path in SEEDS.glob("*.transcript.txt")))
def test_the_documents_own_examples(steelyard: Steelyard, name: str) -> None:
    """`parse` gives each worked example the labels that count."""
    stem = name.removesuffix(".transcript.txt")
    wanted = json.loads((SEEDS / f"{stem}.expected.json").read_text("utf-8"))
    done = steelyard("parse", SEEDS / name)
    assert done.code == 0
    line = json.loads(done.out)
    assert (line["protocol"], line["status"]) == (wanted["protocol"], "judged")
    for item, want in zip(line["items"], wanted["items"], strict=True):
        assert item["label"] in want["labels"]
