"""The transformers that read claims beside spans: how text is cut, laid out and read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.pairs import (
    CLAIM_PIECES,
    SPAN_PIECES,
    WEIGHTS,
    Language,
    common_language,
    laid,
    network,
    paired,
)
from steelyard.judges.embedded.pieces import Pieces
from steelyard.judges.embedded.readers import readings
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


@pytest.mark.parametrize("language", WEIGHTS)
@settings(deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_can_be_cut(language: Language, text: str) -> None:
    """Whatever an answer holds, it becomes numbers of the vocabulary."""
    assert all(number >= 0 for number in network(language).pieces.of(text))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "本馆位于第二层，2024年3月起每周一闭馆，请提前预约；iPhone 15 可用。"),
        ("zh", "The café's second-floor gallery (opened in 2024) costs £12.50, doesn't it?"),
        ("en", "The café's second-floor gallery (opened in 2024) costs £12.50, doesn't it?"),
        ("en", "Xylographers' antediluvian zeugmas — 3½ km away; e-mail: a_b@c.org"),
    ],
)
def test_common_words_are_known(language: Language, text: str) -> None:
    """What is left out of the shipped vocabulary is rare: ordinary text has no unknown words."""
    pieces = network(language).pieces
    assert pieces.of("\ue000")[0] not in pieces.of(text)


# --- layout ----------------------------------------------------------------------------------------


def test_a_claim_stands_before_its_spans_in_the_order_of_the_passages() -> None:
    """Spans come best first; they are read as they follow each other in the text."""
    pair = laid([7], [(5, [8]), (2, [9, 10])], SOME)
    assert pair.numbers == [SOME.begin, 7, SOME.end, 9, 10, 8, SOME.end]
    assert pair.claim == 1
    assert laid([7, 7], [], SOME).numbers == [SOME.begin, 7, 7, SOME.end, SOME.end]


def test_what_does_not_fit_is_left_out_worst_first() -> None:
    """The best span is read whole; what comes last in rank is cut."""
    pair = laid([7] * 500, [(9, [8] * 60), (1, [9] * 60)], SOME)
    assert pair.claim == CLAIM_PIECES
    assert pair.numbers.count(8) == 60
    assert pair.numbers.count(9) == SPAN_PIECES - 60
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


@pytest.mark.parametrize(("language", "most"), [("zh", 9_000_000), ("en", 12_000_000)])
def test_the_weights_stay_small(language: Language, most: int) -> None:
    """The networks are a small part of what is installed."""
    assert WEIGHTS[language].stat().st_size < most


# --- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "claims"),
    [
        ("zh", ["狗不能进入。", "二楼售票处冬季每周一不营业，其他时间照常，老年人凭证免费入场。"]),
        ("en", ["No dogs.", "In winter the ticket office on the second floor is closed every Monday, otherwise open."]),
    ],
)
def test_a_claim_is_judged_alike_alone_and_among_others(language: Language, claims: list[str]) -> None:
    """What a shorter claim is filled up with says nothing."""
    held = network(language)
    spans = [Beside(1, 0, "No dogs in the lounge. 休息室不许带狗。"), Beside(2, 3, "Tickets: second floor. 二楼售票。")]
    pairs = [paired(claim, spans, held.pieces) for claim in claims]
    both = held.impressions(pairs)
    for pair, among in zip(pairs, both, strict=True):
        alone = held.impressions([pair])[0]
        assert alone.support == pytest.approx(among.support, abs=2e-3)
        assert alone.contradicted == pytest.approx(among.contradicted, abs=2e-3)
        assert 0 <= alone.contradicted <= 1
    assert held.impressions([]) == []


def test_a_claim_in_another_language_than_its_passages_is_left_to_the_smaller_network() -> None:
    """No transformer ever saw a Chinese claim beside an English passage, or the reverse."""
    english, chinese = [Beside(1, 0, "The gallery is closed on Mondays.")], [Beside(1, 0, "展厅周一闭馆。")]
    assert common_language("展厅周一闭馆。", chinese) == "zh"
    assert common_language("The gallery is closed on Mondays.", english) == "en"
    assert common_language("The gallery is closed on Mondays.", [*english, *english, *chinese]) == "en"
    assert common_language("展厅周一闭馆。", english) is None
    assert common_language("The gallery is closed on Mondays.", chinese) is None
    assert common_language("展厅周一闭馆。", []) is None
    features = np.zeros((3, len(NAMES)))
    mixed, same, none = readings(
        [
            ("The gallery is closed on Mondays.", chinese),
            ("The gallery is closed on Mondays.", english),
            ("展厅周一闭馆。", english),
        ],
        features,
    )
    assert mixed.small == mixed.large
    assert none.small == none.large
    assert same.small != same.large
    assert readings([], features[:0]) == []


def test_only_what_is_wanted_of_the_last_layer_is_worked_out() -> None:
    """The vectors of the first pieces are the same, whether the others are asked for or not."""
    held = network("zh")
    texts = [
        paired(claim, [Beside(1, 0, "二楼售票，周一闭馆。")], held.pieces).numbers for claim in ("周一闭馆。", "免费")
    ]
    seconds, sizes = [3, 3], [len(text) for text in texts]
    few, all_ = (held.body.states(texts, seconds, wanted) for wanted in ([2, 1], sizes))
    for some, whole, size in zip(few, all_, [2, 1], strict=True):
        assert some.shape == (size, whole.shape[1])
        assert np.allclose(some, whole[:size], atol=1e-5)


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
