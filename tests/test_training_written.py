"""The texts of our own that the embedded judge learns from."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from training.written import HERE, part_of_text, written

BLOCK = """== inn | When is the inn open?
P: The inn opens at six.
Q: The inn opens at nine.
+- The inn is open from six o'clock.
-+ number | Doors open at nine.
?? The inn has a garden.
"""


def test_a_block_gives_every_claim_with_either_version(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text(BLOCK, "utf-8")
    found = written(part_of_text("inn"), tmp_path)
    assert [(row.passages[0][-5:], row.claim[:4], row.label) for row in found] == [
        (" six.", "The ", "supported"),
        (" six.", "Door", "contradicted"),
        (" six.", "The ", "unsupported"),
        ("nine.", "The ", "contradicted"),
        ("nine.", "Door", "supported"),
        ("nine.", "The ", "unsupported"),
    ]
    assert [row.context for row in found[:3]] == ["", "number", "beyond"]
    assert {row.document for row in found} == {"inn"}
    assert written("held_out", tmp_path) == []


@pytest.mark.parametrize("line", ["+ one mark only", "* no mark", "P:nothing"])
def test_a_line_of_no_known_form_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.txt").write_text(BLOCK + line, "utf-8")
    with pytest.raises(ValueError, match=r"bad\.txt, inn"):
        written("train", tmp_path)


def test_nothing_can_be_told_from_the_claims_alone() -> None:
    """Most claims are supported by one version of their text and not by the other."""
    labels = defaultdict(set)
    for part in ("train", "dev"):
        for row in written(part):  # type: ignore[arg-type]
            labels[row.document, row.claim].add(row.is_supported)
    assert Counter(len(both) for both in labels.values())[2] / len(labels) > 0.8


def test_no_text_stands_in_two_parts_and_no_id_twice() -> None:
    train, dev = written("train"), written("dev")
    ids = [row.id for row in (*train, *dev)]
    assert len(ids) == len(set(ids))
    assert not {row.document for row in train} & {row.document for row in dev}
    assert len(list(HERE.glob("en-*.txt"))) >= 5
    assert len(list(HERE.glob("zh-*.txt"))) >= 5
