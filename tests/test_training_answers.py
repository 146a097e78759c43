"""Texts that the network learns from: short answers, claims that lean on a sentence, graded sentences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from training.answers import answers, servings


@pytest.mark.parametrize("part", ["train", "dev"])
def test_all_texts_can_be_read(part: str) -> None:
    """Every line is a passage, a head or marked; right and wrong are about as many."""
    rows = answers(part)  # type: ignore[arg-type]
    labels = Counter(row.label for row in rows)
    assert labels["supported"] > 700
    assert 0.8 < labels["supported"] / labels["contradicted"] < 1.25
    assert all(row.passages and row.context for row in rows)
    assert Counter(one.level for one in servings(part)).keys() == {1, 2, 3}  # type: ignore[arg-type]


def test_no_text_stands_in_both_parts() -> None:
    """What chooses was not learnt from."""
    assert {row.document for row in answers("train")}.isdisjoint(row.document for row in answers("dev"))


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """With its file and its block."""
    (tmp_path / "en-a.txt").write_text("== en-a-001 ferry\nP: It sails at nine.\nq: When?\n= nine\n", "utf-8")
    with pytest.raises(ValueError, match=r"en-a\.txt, en-a-001: .*= nine"):
        answers("train", tmp_path) + answers("dev", tmp_path)
