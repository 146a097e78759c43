"""Which sentences of the passages are read beside a claim."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reading import FixedReader
from steelyard.judges.embedded.excerpts import LEAD, LONGEST_SENTENCE, MOST_LOOKED_AT, Passages, cut, words

GUIDE = (
    "Harbour Museum. It was founded in 1931 by a retired captain. The collection holds about 40,000 objects. "
    "Tickets are sold at the pier. Admission costs 12 euros. Children under ten enter free."
)
FILLER = [f"Chapter {number} tells of a storm and a ship that left at dawn." for number in range(60)]


def passages(*texts: str) -> Passages:
    return Passages(texts, FixedReader().sizes)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The museums opened", "museum opens"),
        ("圖書館開放時間", "图书馆开放时间"),
        ("K2", "the k2"),
        ("It costs 3.5", "3.5"),
    ],
)
def test_words_are_shared_in_any_form_and_script(one: str, other: str) -> None:
    """Stems, pairs of characters in either script, numbers and codes as one word."""
    assert words(one) >= words(other) or words(other) >= words(one)
    assert words(one) & words(other)


def test_words_of_nothing_are_none() -> None:
    assert words("") == words("。，！ \x00") == words("the of a") == frozenset()


@given(st.text(max_size=400))
def test_a_passage_is_cut_into_its_own_words(text: str) -> None:
    """No piece is longer than can be read, none is empty, and no letter is lost or made up."""
    found = cut(text)
    assert all(0 < len(piece) <= LONGEST_SENTENCE for piece in found)
    assert set("".join(found)) - set(text) <= {" ", "\n"}


def test_a_sentence_without_a_stop_is_cut_at_a_comma() -> None:
    """Where there is none, anywhere."""
    assert all(piece.endswith(",") for piece in cut("one and 12,000 others, " * 50)[:-1])
    assert [len(piece) for piece in cut("a" * 500)] == [220, 220, 60]


def test_what_fits_is_read_whole() -> None:
    found = passages(GUIDE, "Dogs stay outside.").excerpt(words("anything"), 100)
    assert found.is_whole
    assert found.parts() == (GUIDE, "Dogs stay outside.")


def test_the_telling_sentence_is_read_with_the_opening_of_its_passage() -> None:
    """In the order of the passages; the opening tells what the passage is about."""
    found = passages(" ".join(FILLER), GUIDE).excerpt(words("Admission to the museum costs 15 euros"), 20)
    assert not found.is_whole
    (part,) = found.parts()
    assert part.startswith("Harbour Museum. Admission costs 12 euros.")
    assert [one.place for one in found.sentences] == sorted(one.place for one in found.sentences)


def test_a_long_opening_is_only_begun() -> None:
    """Of an opening that has nothing to do with the claim a few words are enough."""
    opening = "A history of the town " * 9 + "."
    found = passages(f"{opening} {' '.join(FILLER)} Admission costs 12 euros.").excerpt(words("admission costs"), 12)
    assert found.parts() == (f"{opening[:LEAD]} Admission costs 12 euros.",)


def test_the_budget_is_kept_and_something_is_always_read() -> None:
    """Sentences are taken while there is room; without a word in common one is read all the same."""
    told = FixedReader()
    cut_up = passages(*FILLER)
    for claim in ("a storm and a ship", "dumplings", ""):
        found = cut_up.excerpt(words(claim), 30)
        assert found.sentences
        assert sum(one.size for one in found.sentences) <= 30
    assert told.sizes([FILLER[0]]) == [cut_up.sentences[0].size]
    assert passages().excerpt(words("x"), 10).parts() == ()
    assert passages("", "。", "\x00").excerpt(words("x"), 10).parts() == ()


def test_the_other_half_of_a_claim_is_read_too() -> None:
    """Words that a first sentence has already count little for the next."""
    texts = ["The red bus stops here.", "The red bus stops there.", "The blue ferry sails.", *FILLER]
    found = passages(*texts).excerpt(words("red bus, blue ferry"), 12)
    assert found.parts() == ("The red bus stops here.", "The blue ferry sails.")


def test_the_order_of_sets_changes_nothing() -> None:
    """Python orders sets otherwise in every process: sums of weights are the same to the last digit."""
    code = (
        "from reading import FixedReader; from steelyard.judges.embedded.excerpts import Passages, words;"
        "p = Passages(['alpha beta gamma delta %d epsilon zeta eta' % n for n in range(40)], FixedReader().sizes);"
        "print(p.excerpt(words('zeta eta alpha gamma beta delta epsilon'), 40).parts())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    "sentence",
    ["The cat sat on the mat, said the dog to the cat and to the mat. ", "猫坐在垫子上。" * 30 + "\n", "cat,", "1 "],
)
def test_a_long_passage_is_searched_in_linear_time(sentence: str) -> None:
    """Also where no sentence fits beside the first: only the best ones are tried."""
    found = passages("cat. " + sentence * (200_000 // len(sentence)))
    began = time.thread_time()
    for _ in range(5):
        found.excerpt(words("the cat sat on the mat 猫坐在垫子上 1"), 3)
    assert time.thread_time() - began < 5
    assert MOST_LOOKED_AT < 100
