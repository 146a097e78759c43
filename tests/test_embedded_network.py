"""What the network is given: texts as pieces, pieces as rows. Training lays its rows out by the same code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from steelyard.errors import JudgeError
from steelyard.judges.embedded.network import (
    CLAIM,
    FRAME,
    LONGEST,
    LONGEST_CLAIM,
    PASSAGE,
    Network,
    ReaderPair,
    ReaderVocabulary,
)

WORDS = ["<s>", "<pad>", "</s>", "<unk>", *"abcdef", "国", "<", ">", "/", "s", "p"]
BEGIN, END = 0, 2


def tokenizer(*, without: str = "") -> Tokenizer:
    return Tokenizer(models.Unigram([(word, -1.0) for word in WORDS if word != without], 0))


@pytest.fixture
def vocabulary() -> ReaderVocabulary:
    return ReaderVocabulary(tokenizer())


def test_a_row_has_the_claim_first_and_then_the_passages(vocabulary: ReaderVocabulary) -> None:
    """Each part has a mark behind it, which belongs to the part; the one behind the claim belongs to nothing."""
    row = vocabulary.laid_out([[4, 5], [6]], [], [7, 8])
    assert row.pieces == [BEGIN, 7, 8, END, 4, 5, END, 6, END]
    assert row.roles == [FRAME, CLAIM, CLAIM, FRAME, *[PASSAGE] * 5]


def test_what_a_claim_leans_on_stands_before_it(vocabulary: ReaderVocabulary) -> None:
    """It is neither claim nor passage."""
    row = vocabulary.laid_out([[4]], [9, 9], [7])
    assert row.pieces == [BEGIN, 9, 9, END, 7, END, 4, END]
    assert row.roles == [FRAME, FRAME, FRAME, FRAME, CLAIM, FRAME, PASSAGE, PASSAGE]


def test_a_long_row_is_cut(vocabulary: ReaderVocabulary) -> None:
    """The claim keeps its share, and the row ends as any other does."""
    row = vocabulary.laid_out([[4] * 300], [9] * 300, [7] * 300)
    assert (len(row.pieces), len(row.roles), row.pieces[-1]) == (LONGEST, LONGEST, END)
    assert row.roles.count(CLAIM) == LONGEST_CLAIM
    assert row.pieces.count(9) == 48


def test_texts_become_rows(vocabulary: ReaderVocabulary) -> None:
    """A claim beside passages; a sentence beside its question, which stands where the claim does."""
    row = vocabulary.row(ReaderPair(("ab", "c"), "d", "ef"))
    assert row == vocabulary.laid_out([[4, 5], [6]], [7], [8, 9])
    assert vocabulary.level_row("ab", "cd") == vocabulary.laid_out([[6, 7]], [], [4, 5])


def test_characters_are_read_as_simplified(vocabulary: ReaderVocabulary) -> None:
    assert vocabulary.pieces("國") == vocabulary.pieces("国") == (10,)


def test_a_text_cannot_end_its_part(vocabulary: ReaderVocabulary) -> None:
    """Marks that a judged text has in it are left out, so that it does not look like the beginning of another part."""
    assert vocabulary.pieces("ab</s>cd<s><pad>") == (4, 5, 6, 7)


def test_half_a_character_is_read(vocabulary: ReaderVocabulary) -> None:
    assert vocabulary.pieces("a\ud800")[0] == 4


def test_a_vocabulary_without_marks_is_refused(tmp_path: Path) -> None:
    """And one that is none; the file is named."""
    tokenizer(without="</s>").save(str(tmp_path / "reader.json"))
    with pytest.raises(JudgeError, match=r"reader\.json cannot be read: it has no piece </s>"):
        Network(tmp_path).sizes(["a"])
    (tmp_path / "reader.json").write_text("{}")
    with pytest.raises(JudgeError, match=r"reader\.json cannot be read"):
        Network(tmp_path).sizes(["a"])
