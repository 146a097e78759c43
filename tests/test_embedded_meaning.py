"""What texts have in common: folding, words, rarity and embeddings."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.judges.embedded import meaning
from steelyard.judges.embedded.spans import LONGEST_READ, LONGEST_SPAN, clauses, spans

HOSTILE = ["", " ", "\x00", "\ud800", "😀😀", "。。。！！", "\u202e\u200b", "é" * 10_000, "\n" * 500, "a" * 50_000]


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("ＡＢＣ１２", "abc12"),
        ("臺灣與奧匈帝國", "台湾与奥匈帝国"),
        ("Straße", "strasse"),
        ("a\x00b", "a b"),
        ("①", "1"),
    ],
)
def test_plain_text_forgets_width_case_and_script(written: str, folded: str) -> None:
    """Text that differs only in width, case or Chinese script is the same text."""
    assert meaning.plain(written) == folded


def test_simplified_text_keeps_case() -> None:
    """Names are told by their capital letters, so folding the script leaves them alone."""
    assert meaning.simplified("臺北 Taipei") == "台北 Taipei"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("visits", "visited"),
        ("companies", "company"),
        ("running", "runs"),
        ("increase", "increased"),
        ("stopped", "stop"),
    ],
)
def test_forms_of_a_word_share_a_stem(a: str, b: str) -> None:
    """English forms of one word are compared as one word."""
    assert meaning.stem(a) == meaning.stem(b)


@pytest.mark.parametrize(("a", "b"), [("glass", "glas"), ("bus", "bed"), ("one", "on")])
def test_short_and_double_endings_are_left_alone(a: str, b: str) -> None:
    """A stem is light: different short words stay different."""
    assert meaning.stem(a) != meaning.stem(b)


def test_words_are_content_only() -> None:
    """Function words fall out; Chinese is read in pairs of characters, across scripts alike."""
    assert meaning.words("The films were shown 2,015 times") == ["film", "shown", "2015", "tim"]
    assert meaning.words("奧匈帝國") == meaning.words("奥匈帝国") == ["奥匈", "匈帝", "帝国"]


def test_words_of_nothing_are_none() -> None:
    """Punctuation and emoji have no words."""
    assert meaning.words("。！？ …… 😀") == []


def test_rare_words_are_rarer_than_common_ones() -> None:
    """Rarity orders words as a reader would: a name is rarer than said."""
    assert meaning.rarity("said") < meaning.rarity("salmon") < meaning.rarity("breyerstein") <= meaning.RAREST
    assert meaning.rarity("表示") < meaning.rarity("郑宇")


def test_similarity_has_a_row_per_left_text_and_a_column_per_right_one() -> None:
    """Cosines come as a matrix, and the nearest text is the one that means the same."""
    cosines = meaning.similarity(["The cat sleeps."], ["猫在睡觉。", "Shares fell on Friday.", "The cat sleeps."])
    assert cosines.shape == (1, 3)
    assert cosines[0, 2] == pytest.approx(1.0, abs=1e-4)
    assert cosines[0, 0] > cosines[0, 1]


def test_similarity_of_nothing_is_empty() -> None:
    """No texts give an empty matrix, not an error."""
    assert meaning.similarity([], ["a"]).shape == (0, 1)
    assert meaning.similarity([], []).shape == (0, 0)


@pytest.mark.parametrize("text", HOSTILE)
def test_anything_can_be_encoded(text: str) -> None:
    """Unreadable, empty and endless texts have a vector of unit length too."""
    vector = meaning.encode([text])[0]
    assert vector.shape == (meaning.DIMENSIONS,)
    assert np.isfinite(vector).all()


def test_a_text_has_the_same_vector_whatever_stands_beside_it() -> None:
    """Encoding does not depend on the batch, so verdicts do not depend on their neighbours."""
    alone = meaning.Encoder().encode(["杆秤是一种衡器。"])[0]
    among = meaning.Encoder().encode(["x " * 80, "杆秤是一种衡器。", "another sentence"])[1]
    assert np.allclose(alone, among, atol=1e-5)


def test_a_forgetful_encoder_still_answers() -> None:
    """More texts than are remembered can be asked for at once."""
    encoder = meaning.Encoder(remembered=2)
    texts = [f"sentence {number}" for number in range(6)]
    assert encoder.encode(texts).shape == (6, meaning.DIMENSIONS)
    assert encoder.encode(texts[:1]).shape == (1, meaning.DIMENSIONS)


def test_threads_share_the_encoder() -> None:
    """Several threads may encode at the same time and get the same vectors."""
    texts = [f"第{number}句话。" for number in range(20)]
    expected = meaning.encode(texts)
    results: list[bool] = []

    def work() -> None:
        results.append(bool(np.allclose(meaning.encode(texts), expected)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


# --- spans -----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.text(max_size=400), max_size=4))
def test_spans_are_verbatim(passages: list[str]) -> None:
    """Every span is exactly what stands at its place in its passage."""
    for span in spans(passages):
        assert passages[span.passage][span.start : span.end] == span.text
        assert span.text.strip() == span.text
        assert len(span.text) <= LONGEST_SPAN


def test_sentences_are_cut_where_a_reader_would() -> None:
    """Stops end a span; titles, initials and decimals do not."""
    text = "Dr. Smith paid 3.5 dollars. He left! J. K. Rowling stayed."
    assert [span.text for span in spans([text])] == ["Dr. Smith paid 3.5 dollars.", "He left!", "J. K. Rowling stayed."]
    assert [span.text for span in spans(["Order no. 48 left on Jan. 3 early. See a.b/c?d=1 now? Yes."])] == [
        "Order no. 48 left on Jan. 3 early.",
        "See a.b/c?d=1 now?",
        "Yes.",
    ]
    assert [span.text for span in spans(["你好。他走了！真的\n列表"])] == ["你好。", "他走了！", "真的", "列表"]


def test_a_passage_without_stops_is_cut_at_commas() -> None:
    """Very long sentences come in parts that can be quoted."""
    parts = spans(["一二三四五六七八九十，" * 200])
    assert len(parts) > 5
    assert all(part.text.endswith("，") for part in parts[:-1])


def test_a_megabyte_is_read_only_so_far() -> None:
    """A huge passage costs a bounded amount of work."""
    assert sum(len(span.text) for span in spans(["word " * 250_000, "more"])) <= LONGEST_READ


def test_what_says_nothing_is_no_span() -> None:
    """Rules, emoji and blank lines are left out."""
    assert spans(["-----\n\n***\n😀", ""]) == []


def test_short_clauses_go_with_the_one_before() -> None:
    """A claim is cut into clauses that are long enough to mean something."""
    assert clauses("他生于1980年，后来，搬到了北京市朝阳区。", 8) == ["他生于1980年，后来，", "搬到了北京市朝阳区。"]
    assert clauses("It cost 1,000 dollars in all", 10) == ["It cost 1,000 dollars in all"]
    assert clauses("，。", 8) == []


def test_expected_texts_are_encoded_with_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What will be compared soon costs no encoding of its own, and has the vector it would have had anyway."""
    batches: list[list[str]] = []
    read = meaning.read

    def counted(texts: list[str]) -> object:
        batches.append(list(texts))
        return read(texts)

    monkeypatch.setattr(meaning, "read", counted)
    encoder = meaning.Encoder()
    encoder.expect(["The bridge is long.", "桥很长。"])
    assert batches == []
    encoder.encode(["The river is wide."])
    later = encoder.encode(["桥很长。", "The bridge is long."])
    assert batches == [["The river is wide.", "The bridge is long.", "桥很长。"]]
    alone = [read([text])[0].vector for text in ("桥很长。", "The bridge is long.")]
    assert np.allclose(later, np.stack(alone), atol=1e-5)
