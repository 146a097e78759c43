"""The training code: the split, the twins, the planted pairs."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training import planted
from training.profiles import _twins, profiles
from training.sets import FILES, SETS, Row, grouped, load, part_of, part_of_row, rows
from training.slips import SPAN, part_of_text, slips

TOWNS = ["Paris", "Berlin", "Madrid", "Vienna", "Prague", "Oslo", "Dublin", "Warsaw", "Lisbon", "Athens"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the sets' files, tiny and of our own making."""
    claims = []
    for number, town in enumerate(TOWNS * 2):
        story = (
            f"In {1900 + number} the town of {town} opened {number + 3} schools. The mayor of {town} was not present."
        )
        line = {"passages": [story], "question": "What happened?"}
        true, false = f"The town of {town} opened {number + 3} schools.", f"The town of {town} closed 90 hospitals."
        claims.append({**line, "id": f"s{number}", "claim": true, "label": "supported"})
        claims.append({**line, "id": f"u{number}", "claim": false, "label": "unsupported"})
    for name in ("factcheckgpt", "summedits", "begin"):
        _write(tmp_path / FILES[name], claims)
    facts = [("武汉", "supported"), ("上海", "contradicted"), ("天气", "unsupported")]
    persona = "星座：射手座；所在地：湖北 武汉；编号："
    spoken = [
        {"id": f"k{at}{word}", "claim": f"我在{word}呢{at}", "passages": [f"{persona}{at}"], "label": label}
        for at in range(14)
        for word, label in facts
    ]
    _write(tmp_path / FILES["kvpi"], spoken)
    keywords = [{"keyword": "李明", "reasonable": False}, {"keyword": "表示欢迎", "reasonable": True}]
    news = {"answer": "市长李明表示欢迎", "question": "新闻", "keywords": keywords}
    articles = [{**news, "id": f"d{at}", "passages": [f"市长王强{at}日表示欢迎游客。", "完。"]} for at in range(14)]
    _write(tmp_path / FILES["uhgeval"], articles)
    sentences = [{"text": "Paris opened schools.", "support": "supported", "relevance": 1}]
    answer = {"id": "1", "question": "q", "passages": ["Paris opened."], "sentences": sentences}
    _write(tmp_path / FILES["memerag"], [answer])
    return tmp_path


def _write(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")


def twin(claim: str, profile: str, label: str) -> Row:
    (found,) = _twins(Row("kvpi", "k", "d", "", claim, (profile,), label), ["湖北 武汉", "上海 徐汇区", "湖南"])
    return found


def test_the_twin_of_a_chat_line_has_another_profile() -> None:
    """A line that a profile bears out clashes with its twin, and the reverse; one about others speaks to neither."""
    profile = "星座：射手座；所在地：湖北 武汉；性别：女"
    true = twin("我在武汉呢", profile, "supported")
    assert true.label == "contradicted"
    assert "武汉" not in true.passages[0]
    false = twin("上海人路过", profile, "contradicted")
    assert (false.label, false.passages[0].split("；")[1]) == ("supported", "所在地：上海 徐汇区")
    assert twin("你还在武汉吗", profile, "unsupported").label == "unsupported"
    assert "双鱼座" in twin("我们双鱼都这样", profile, "contradicted").passages[0]
    assert twin("我男朋友说的", profile, "supported").passages[0].endswith("性别：男")
    assert not [*_twins(Row("kvpi", "k", "d", "", "我在武汉呢", (profile,), "contradicted"), ["湖北 武汉"])]


def test_twins_stay_in_their_part(tmp_path: Path) -> None:
    """A line that trains has no twin that measures or chooses."""
    data, homes = tmp_path, ["湖北 武汉", "上海 徐汇区"]
    spoken: list[dict[str, object]] = [
        {"id": f"k{at}{home}", "claim": f"我在武汉呢{at}{home}", "passages": [f"所在地：{home}；编号：{at}"]}
        | {"label": "supported" if "武汉" in home else "contradicted"}
        for at in range(30)
        for home in homes
    ]
    _write(data / FILES["kvpi"], spoken)
    lines = {part: {row.claim for row in profiles(part, data)} for part in ("train", "dev", "held_out")}
    assert all(lines[part] <= {row.claim for row in rows("kvpi", part, data)} for part in lines)
    assert all(lines.values())


@given(st.text())
def test_a_document_is_always_in_the_same_part(document: str) -> None:
    """The split depends on nothing but the document."""
    assert part_of(document) == part_of(document)


def test_the_parts_have_the_promised_sizes() -> None:
    """About half of all documents train, 15 % choose, 35 % measure."""
    parts = [part_of(f"document {number}") for number in range(4000)]
    assert parts.count("train") / 4000 == pytest.approx(0.50, abs=0.03)
    assert parts.count("dev") / 4000 == pytest.approx(0.15, abs=0.03)


def test_every_set_is_read_in_one_shape(data: Path) -> None:
    """All sets give rows with a claim, passages and a label."""
    for name in SETS:
        found = load(name, data)
        assert found
        assert all(row.set == name and row.claim and row.passages and row.label for row in found)


def test_what_hangs_together_is_never_split(data: Path) -> None:
    """Rows that share a passage or a claim share a document, and so a part."""
    for name in ("factcheckgpt", "kvpi"):
        found = load(name, data)
        by_passage = {}
        for row in found:
            assert by_passage.setdefault(row.passages, row.document) == row.document
    shared = [Row("x", passage, passage, "", "same claim", (passage,), "supported") for passage in ("p1", "p2")]
    assert len({row.document for row in grouped(shared)}) == 1


def test_what_may_not_be_trained_on_is_held_out(data: Path) -> None:
    """memerag is measured on and never learnt from."""
    assert all(part_of_row(row) == "held_out" for row in load("memerag", data))
    assert rows("memerag", "train", data) == []


def test_key_words_keep_their_context(data: Path) -> None:
    """A labelled key word is the claim; the text it stands in is kept beside it."""
    first = load("uhgeval", data)[0]
    assert (first.claim, first.label, first.context) == ("李明", "unsupported", "市长李明表示欢迎")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "全长35公里。"),
        ("number", "It has 12 rooms."),
        ("date", "会议于3月举行"),
        ("date", "It opened in May."),
        ("ordinal", "坐在第二排"),
        ("ordinal", "the third row"),
        ("negation", "他是医生"),
        ("negation", "He is a doctor."),
        ("negation", "He did not come."),
        ("turned", "销量上升"),
        ("turned", "Prices increased."),
        ("kin", "他的姐姐来了"),
        ("name", "他在北京工作"),
        ("exchanged", "从北京飞往上海"),
    ],
)
def test_a_planted_error_changes_the_sentence(kind: str, text: str) -> None:
    """Each kind of error finds its place and leaves something else standing there."""
    made = planted.ERRORS[kind](text, random.Random(1), planted.Pool([]))
    assert made is not None
    assert made != text


def test_a_sentence_without_a_place_for_an_error_is_left_alone() -> None:
    """No number, no wrong number."""
    assert planted.number("no digits here", random.Random(1), planted.Pool([])) is None
    assert planted.kin("没有亲属", random.Random(1), planted.Pool([])) is None


def test_planted_pairs_are_the_same_every_time(data: Path) -> None:
    """The pairs are seeded, come from documents of their part only, and hold clean and wrong ones."""
    first, second = (list(planted.pairs("train", data)) for _ in range(2))
    assert first == second
    assert {row.is_supported for row in first} == {True, False}
    assert all(part_of(row.document) == "train" for row in first)


def test_slips_come_in_twins_of_one_part() -> None:
    """Every claim has a true and a false form about the same passages, and a text is in one part only."""
    parts = {part: slips(part) for part in ("train", "dev")}
    for part, found in parts.items():
        assert sum(row.is_supported for row in found) * 2 == len(found) > 100
        assert all(part_of_text(row.document) == part for row in found)
        for right, wrong in zip(found[::2], found[1::2], strict=True):
            assert right.passages == wrong.passages
            assert right.is_supported > wrong.is_supported
            assert right.claim != wrong.claim
            assert not SPAN.search(right.claim + wrong.claim)
    assert slips("held_out") == []


def test_a_slip_that_marks_no_span_is_an_error(tmp_path: Path) -> None:
    """A claim with two marked spans, or a mark in a passage, is never silently read."""
    for script in ("en", "zh-Hans", "zh-Hant"):
        (tmp_path / f"{script}.txt").write_text("== a | b?\nText.\nnumber: [[1>2]] and [[3>4]].\n", "utf-8")
    with pytest.raises(ValueError, match="exactly one span"):
        slips("train", tmp_path)
