"""The encoder's forward pass and the network that reads claims beside spans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.judges.embedded.encoder import MOST_WORDS, encoder, read
from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.reader import BEST, CLAIM_WORDS, SPAN_WORDS, WEIGHTS, Shown, laid, network
from steelyard.judges.embedded.support import read as passages

TEXTS = [
    "Dogs may not enter the lounge.",
    "第二排没有这种接口，只有第一排有。",
    "x",
    "A much longer sentence " * 30,
    "…",
]


def test_vectors_are_those_of_the_package() -> None:
    """The encoder is read in our own forward pass; its sentence vectors are what the package itself gives."""
    ours = np.stack([found.vector for found in read(TEXTS)])
    assert np.allclose(ours, encoder().encode(TEXTS), atol=1e-4)


def test_a_text_is_read_alike_whatever_stands_beside_it() -> None:
    """Neither the vector of a text nor those of its words depend on what is read in the same go."""
    among = read(TEXTS)
    for text, found in zip(TEXTS, among, strict=True):
        alone = read([text])[0]
        assert np.allclose(alone.vector, found.vector, atol=1e-5)
        assert (alone.pieces == found.pieces).all()
        assert np.allclose(alone.words, found.words, atol=1e-4)
        assert len(found.pieces) == len(found.words) <= MOST_WORDS


def test_a_word_means_what_it_means_in_its_place() -> None:
    """The same word has another vector after `not` than without it."""
    plain, denied = read(["Dogs are allowed here.", "Dogs are not allowed here."])
    word = plain.pieces[2]
    first, second = plain.words[2], denied.words[list(denied.pieces).index(word)]
    assert not np.allclose(first, second, atol=1e-2)


def test_nothing_at_all_can_be_read() -> None:
    assert read([]) == []
    assert len(read([""])) == 1
    assert network().impressions([], [], np.zeros((0, len(NAMES)))) == []


def _shown(*texts: str) -> list[Shown]:
    return [Shown(rank, found) for rank, found in enumerate(read(texts), BEST)]


def test_weights_for_other_features_are_refused(tmp_path: Path) -> None:
    """Numbers in another order would be read as if they were these."""
    with np.load(WEIGHTS) as held:
        other = {name: held[name] for name in held.files} | {"names": np.array([*NAMES[1:], NAMES[0]])}
    np.savez(tmp_path / "other.npz", **other)
    with pytest.raises(ValueError, match="trained on other features"):
        network(tmp_path / "other.npz")


def test_claims_and_spans_are_cut_to_what_fits() -> None:
    long = read(["word " * 200])[0]
    block = laid([long], [_shown("word " * 200, "another " * 200)])
    assert block.claim.shape[1] == CLAIM_WORDS
    assert block.spans.shape[1] == SPAN_WORDS
    assert set(block.ranks[0]) == {1, 2}


def test_a_claim_is_judged_alike_alone_and_among_others() -> None:
    """What is filled up with zeros to the longest of them says nothing."""
    claims = read(["Dogs may not enter.", "The ticket office on the second floor is closed on Mondays in winter."])
    shown = [_shown("No dogs in the lounge."), _shown("Tickets are sold on the second floor.", "Closed on Mondays.")]
    features = np.random.default_rng(1).normal(size=(2, len(NAMES)))
    both = network().impressions(claims, shown, features)
    for at in range(2):
        alone = network().impressions([claims[at]], [shown[at]], features[at : at + 1])[0]
        assert alone.support == pytest.approx(both[at].support, abs=1e-3)
        assert alone.contradicted == pytest.approx(both[at].contradicted, abs=1e-3)
        assert 0 <= alone.contradicted <= 1


@pytest.mark.parametrize(
    ("passage", "yes", "no"),
    [
        (
            "Dogs travel free but are not allowed on the upper deck.",
            "Dogs must stay off the upper deck.",
            "Dogs may use the upper deck.",
        ),
        ("展厅周一闭馆，其余时间免费开放，参观无需预约。", "参观展厅不用预约。", "参观展厅必须提前预约。"),
    ],
)
def test_of_a_claim_and_its_opposite_the_true_one_is_likelier(passage: str, yes: str, no: str) -> None:
    """Both share their words with the passage; only one is what it says."""
    true, false = passages([passage]).supports([yes, no])
    assert true.probability > false.probability
