"""The transformer that reads Chinese claims beside spans: how text is cut, laid out and read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judges.embedded.chinese import (
    CLAIM_PIECES,
    SPAN_PIECES,
    WEIGHTS,
    block,
    is_chinese,
    laid,
    network,
    paired,
)
from steelyard.judges.embedded.pieces import Pieces
from steelyard.judges.embedded.spans import Beside
from steelyard.judges.embedded.support import read
from steelyard.judges.embedded.transformer import SHARED, packed

# --- pieces ----------------------------------------------------------------------------------------

SOME = Pieces(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##lock", "##ed", "unlock", "第", "二", "2", "##0", ".", "cafe"]
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("unlocked", [7, 6]),
        ("Unlock.", [7, 12]),
        ("Café", [13]),
        ("第二", [8, 9]),
        ("20", [10, 11]),
        ("第2二x", [8, 10, 9, 1]),
        ("  \n", []),
        ("u" * 500, [1]),
    ],
)
def test_a_word_is_cut_into_the_longest_pieces(text: str, numbers: list[int]) -> None:
    """Whole where the vocabulary has it, else its longest beginning and so on; a Chinese character is a word."""
    assert SOME.of(text) == numbers


@given(text=st.text(max_size=60))
def test_any_text_can_be_cut(text: str) -> None:
    """Whatever an answer holds, it becomes numbers of the vocabulary."""
    assert all(number >= 0 for number in network().pieces.of(text))


@pytest.mark.parametrize(
    "text",
    [
        "本馆位于第二层，2024年3月起每周一闭馆，请提前预约；iPhone 15 可用。",
        "The café's second-floor gallery (opened in 2024) costs £12.50, doesn't it?",
    ],
)
def test_common_words_are_known(text: str) -> None:
    """What is left out of the shipped vocabulary is rare: ordinary text has no unknown words."""
    pieces = network().pieces
    assert pieces.of("\ue000")[0] not in pieces.of(text)


# --- layout ----------------------------------------------------------------------------------------


def test_a_claim_stands_before_its_spans_in_the_order_of_the_passages() -> None:
    """Spans come best first; they are read as they follow each other in the text."""
    pair = laid([7], [(5, [8]), (2, [9, 10])], SOME)
    assert pair.numbers == [SOME.begin, 7, SOME.end, 9, 10, 8, SOME.end]
    read_as = block([pair, laid([7, 7], [], SOME)])
    assert read_as.is_claim.tolist()[0] == [False, True, False, False, False, False, False]
    assert read_as.kinds.tolist()[0] == [0, 0, 0, 1, 1, 1, 1]
    assert read_as.is_text.sum(axis=1).tolist() == [7, 5]


def test_what_does_not_fit_is_left_out_worst_first() -> None:
    """The best span is read whole; what comes last in rank is cut."""
    pair = laid([7] * 500, [(9, [8] * 100), (1, [9] * 100)], SOME)
    assert pair.claim == CLAIM_PIECES
    assert pair.numbers.count(8) == 100
    assert pair.numbers.count(9) == SPAN_PIECES - 100
    assert pair.numbers.index(9) < pair.numbers.index(8)


# --- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 64), (5, 312), (2, 2)])
def test_four_bits_hold_a_weight_within_a_fourteenth_of_the_largest_beside_it(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    found = packed(values)
    assert found.lines().shape == shape
    assert np.abs(found.lines() - values).max() <= np.abs(values).max() / 14 * 1.01
    assert np.array_equal(found.lines(np.array([1, 1, 0])), found.lines()[[1, 1, 0]])
    assert found.halves.nbytes * 2 == values.size
    assert shape[1] / found.scales.shape[1] <= SHARED


def test_nothing_is_packed_as_nothing() -> None:
    assert not packed(np.zeros((2, 32), dtype=np.float32)).lines().any()


def test_the_weights_stay_small() -> None:
    """The network is a small part of what is installed."""
    assert WEIGHTS.stat().st_size < 9_000_000


# --- reading ---------------------------------------------------------------------------------------


def test_a_claim_is_judged_alike_alone_and_among_others() -> None:
    """What a shorter claim is filled up with says nothing."""
    held = network()
    claims = ["狗不能进入。", "二楼售票处冬季每周一不营业，其他时间照常，老年人凭证免费入场。"]
    spans = [Beside(1, 0, "No dogs in the lounge. 休息室不许带狗。"), Beside(2, 3, "Tickets: second floor. 二楼售票。")]
    pairs = [paired(claim, spans, held.pieces) for claim in claims]
    both = held.impressions(pairs)
    for pair, among in zip(pairs, both, strict=True):
        alone = held.impressions([pair])[0]
        assert alone.support == pytest.approx(among.support, abs=2e-3)
        assert alone.contradicted == pytest.approx(among.contradicted, abs=2e-3)
        assert 0 <= alone.contradicted <= 1
    assert held.impressions([]) == []


def test_what_stands_in_two_languages_is_not_read_as_chinese() -> None:
    """The transformer never saw a Chinese claim beside an English passage; that is left to the other network."""
    english, chinese = [Beside(1, 0, "The gallery is closed on Mondays.")], [Beside(1, 0, "展厅周一闭馆。")]
    assert is_chinese("展厅周一闭馆。", chinese)
    assert not is_chinese("展厅周一闭馆。", english)
    assert not is_chinese("The gallery is closed on Mondays.", chinese)
    assert not is_chinese("展厅周一闭馆。", [])


@pytest.mark.parametrize(
    ("passage", "yes", "no"),
    [
        ("展厅周一闭馆，其余时间免费开放，参观无需预约。", "参观展厅不用预约。", "参观展厅必须提前预约。"),
        (
            "ISOFIX儿童座椅固定接口位于第二排左右两侧座椅。第三排座椅没有该接口。",
            "第三排没有ISOFIX接口。",
            "第二排没有ISOFIX接口。",
        ),
        (
            "Power sockets are found on the second floor. The third floor has no sockets.",
            "There are no sockets on the third floor.",
            "There are no sockets on the second floor.",
        ),
    ],
)
def test_of_a_claim_and_its_opposite_the_true_one_is_likelier(passage: str, yes: str, no: str) -> None:
    """Both share their words with the passage; only one is what it says."""
    true, false = read([passage]).supports([yes, no])
    assert true.probability > false.probability
    assert false.label != "supported"
