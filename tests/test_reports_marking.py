"""Where statements lie in an answer and quotes in a passage."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_fixtures import PASSAGE, atomic
from steelyard.reports.marking import Searched, Segment, TextMark, evidence_marks, segments, shortened
from steelyard.text.likeness import fine_word_pieces

SEAT = "ISOFIX儿童座椅应该装在第三排左右两侧，第二排没有这种接口。安装后请晃动座椅，确认已经锁紧。"
LIBRARY = (
    "On Fridays the Ashby library reading room is open until 10 pm. Lockers are free of charge, "
    "but you need a coin. The café closes at noon."
)


def places(text: str, statement: str, after: int = 0) -> list[str]:
    return [text[start:end] for start, end in Searched(text).statement(statement, after)]


@pytest.mark.parametrize(
    ("text", "statement", "place"),
    [
        (SEAT, "ISOFIX儿童座椅应该装在第三排左右两侧", "ISOFIX儿童座椅应该装在第三排左右两侧"),
        (SEAT, "第二排没有ISOFIX接口", "第二排没有这种接口。"),
        (SEAT, "ISOFIX儿童座椅安装后应晃动座椅确认已经锁紧", "安装后请晃动座椅，确认已经锁紧。"),
        (LIBRARY, "Lockers at the Ashby library cost nothing, they are free of charge.", "Lockers are free of charge"),
        (LIBRARY, "The Ashby library's café closes at noon.", "The café closes at noon."),
        (
            "奧匈帝國存在於1867年至1918年，它的全稱由28個字組成。",
            "奧匈帝國的全稱由28個字組成",
            "它的全稱由28個字組成。",
        ),
    ],
)
def test_a_reworded_statement_is_found(text: str, statement: str, place: str) -> None:
    """A statement with resolved pronouns is placed on the clauses that say it, not on those that share its subject."""
    assert places(text, statement) == [place]


def test_a_shared_subject_is_not_part_of_the_place() -> None:
    """The clause before names the same museum but says something else; it stays outside the mark."""
    text = "白鹭镇博物馆每天10:00开放；所有儿童一律半价；成人票价为35元。"
    assert places(text, "白鹭镇博物馆所有儿童一律半价") == ["所有儿童一律半价"]
    assert places(text, "白鹭镇博物馆成人票价为35元") == ["成人票价为35元。"]


def test_what_the_text_does_not_say_has_no_place() -> None:
    """A statement from elsewhere is not pinned on some clause that shares a word."""
    assert places(SEAT, "轮胎的冷态标准胎压为240 kPa") == []
    assert places(SEAT, "") == places("", "第二排") == places("……", "第二排") == []


def test_equal_places_are_taken_in_order() -> None:
    """Of two places that say the same, the first at or after the last one found is meant."""
    text = "左灯亮了。右灯灭了。左灯亮了。"
    first, second = text.index("左灯"), text.rindex("左灯")
    found = [Searched(text).sentence("左灯亮了。", after) for after in (0, first + 1, second + 1)]
    assert found == [((first, first + 5),), ((second, second + 5),), ((first, first + 5),)]


def test_sentences_keep_their_closing_marks() -> None:
    """A sentence is marked up to its full stop and closing quotation mark."""
    text = "他说：“真的吗？”然后走了。第二句！"
    ((start, end),) = Searched(text).sentence("他说：“真的吗？”然后走了。")
    assert text[start:end] == "他说：“真的吗？”然后走了。"


def test_a_sentence_with_list_marks_left_out_is_found() -> None:
    """Headings join the sentence that follows them; the list mark between them does not hide the place."""
    text = "## 步骤\n1. 先关闭电源总开关\n2. 再打开盖子"
    spans = Searched(text).sentence("步骤 先关闭电源总开关")
    assert spans
    assert "先关闭电源总开关" in text[slice(*spans[0])]


def test_parts_of_a_quote_are_found_in_order() -> None:
    """Parts joined by an ellipsis have a span each; width and punctuation do not matter."""
    found = [PASSAGE[start:end] for start, end in Searched(PASSAGE).quote("照明亮度下降……建议您，不要加装")]
    assert found == ["照明亮度下降", "建议您不要加装"]
    assert [Searched("价格为１２０元").quote("120元"), Searched("abc").quote("……")] == [((3, 7),), ()]


def test_a_number_is_never_cut() -> None:
    """20 is not found inside 120, nor 1 inside 1.5 where a longer number goes on."""
    assert Searched("共有120个").quote("20个") == ()
    text = "共有120个，其中20个是新的"
    ((start, end),) = Searched(text).quote("20个")
    assert (start, text[start:end]) == (text.rindex("20个"), "20个")


@given(st.text(max_size=200), st.text(max_size=60))
def test_spans_lie_inside_the_text(text: str, wanted: str) -> None:
    """Whatever is looked for, spans are ordered and within the text."""
    searched = Searched(text)
    for spans in (searched.quote(wanted), searched.statement(wanted), searched.sentence(wanted, 3)):
        for start, end in spans:
            assert 0 <= start < end <= len(text)


@given(st.text(alphabet="甲乙丙丁戊己庚辛，。abc 12", min_size=12, max_size=80), st.data())
def test_a_copied_piece_is_found_where_it_reads_the_same(text: str, data: st.DataObject) -> None:
    """A piece copied from the text is found, and what is found has the same letters."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    piece = text[start:end]
    for found in Searched(text).quote(piece):
        assert "".join(filter(str.isalnum, text[slice(*found)])) == "".join(filter(str.isalnum, piece))


MARKS = st.lists(st.builds(TextMark, st.sampled_from("abc"), st.integers(-3, 30), st.integers(-3, 30)), max_size=8)


@given(st.text(max_size=24), MARKS)
def test_segments_join_to_the_text(text: str, marks: list[TextMark]) -> None:
    """Cut by any marks, the pieces are the text again, and each says exactly which marks cover it."""
    pieces = segments(text, marks)
    assert "".join(piece.text for piece in pieces) == text
    at = 0
    for piece in pieces:
        covering = {m.key for m in marks if m.start <= at and at + len(piece.text) <= m.end}
        assert set(piece.keys) == covering
        at += len(piece.text)
    ends = [key for piece in pieces for key in piece.ends]
    assert sorted(ends) == sorted({key for piece in pieces for key in piece.keys})


@given(st.text(alphabet="xyz", min_size=1, max_size=400), MARKS, st.integers(20, 200))
def test_shortening_loses_nothing_uncounted(text: str, marks: list[TextMark], longest: int) -> None:
    """What is not shown is counted, what is shown is about as long as allowed, and no end of a mark is lost."""
    whole = segments(text, marks)
    pieces = shortened(whole, longest, context=15)
    assert sum(len(piece.text) + piece.hidden for piece in pieces) == len(text)
    assert sum(len(piece.text) for piece in pieces) <= max(longest + 2, 32 * len(whole))
    assert sorted(k for p in pieces for k in p.ends) == sorted(k for p in whole for k in p.ends)


def test_short_texts_are_left_alone() -> None:
    """Nothing is hidden in a text that is short enough."""
    assert shortened([Segment("短", ("a",), ("a",))], 10) == [Segment("短", ("a",), ("a",))]


def test_the_quote_in_a_long_passage_stays_visible() -> None:
    """A passage of many pages is shown around its quote, not from its beginning alone."""
    passage = "前" * 50_000 + "这是关键的一句话" + "后" * 50_000
    marks = [TextMark("a1", *span) for span in Searched(passage).quote("这是关键的一句话")]
    shown = shortened(segments(passage, marks), 2000)
    assert any(piece.text == "这是关键的一句话" and piece.keys == ("a1",) for piece in shown)
    assert sum(len(piece.text) for piece in shown) < 2100


def test_hostile_lengths_take_no_time() -> None:
    """A megabyte without any punctuation, and one of nothing but clauses, are searched in no time."""
    began = time.thread_time()
    for text in ("亮" * 1_000_000, "亮，" * 300_000, "ab cd, " * 150_000, "\u0301" * 300_000):
        searched = Searched(text)
        for n in range(20):
            searched.statement(f"亮亮亮第{n}条 ab cd")
    assert time.thread_time() - began < 10


def test_wording_reads_mixed_scripts() -> None:
    """Chinese beside Latin letters and numbers is told apart."""
    assert fine_word_pieces("ISOFIX儿童座椅 1,183人") == {"isofi", "儿童", "童座", "座椅", "1,183", "人"}


def test_evidence_marks_merge() -> None:
    """Quotes that overlap are one mark; passages that nobody quotes have none."""
    verdict = atomic(labels=("correct", "wrong"))
    assert [PASSAGE[a:b] for a, b in evidence_marks(PASSAGE, 0, verdict)] == ["灯光的照明亮度下降"]
    assert evidence_marks(PASSAGE, 1, verdict) == ()
