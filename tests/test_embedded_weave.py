"""How a claim's words lie in the passages: words that mean the same, clauses that deny, names in another role."""

from __future__ import annotations

import pytest

from steelyard.judges.embedded.missing import han_words
from steelyard.judges.embedded.polarity import polar, sides
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.spans import spans
from steelyard.judges.embedded.weave import WEAVE, Cloth, clauses_in, with_markup

PARK = (
    "Greyfen reserve has a café by the gate. Dogs are forbidden from March to July. "
    "Cyclists must register, but walkers need no permit. Ines Calder keeps the birds; Tam Reddick mends the paths."
)
SHOP = "书店二楼不卖新书，只卖旧书。检修班长是何小蓉，缆车由顾建平负责运营。会员逾期不罚款，朗读会免费。"


@pytest.mark.parametrize(
    ("clause", "denies"),
    [
        ("Dogs are forbidden here", True),
        ("You may not bring a dog", True),
        ("Dogs are welcome", False),
        ("It is not forbidden to sing", False),
        ("not only singers came", False),
        ("禁止吸烟", True),
        ("可以吸烟", False),
        ("无需预约", True),
        ("必须预约", False),
        ("不得不承认", False),
    ],
)
def test_a_clause_denies_or_affirms(clause: str, denies: bool) -> None:
    """Negators and words that deny by themselves count, and two of them cancel out."""
    assert polar(clause).denies is denies


@pytest.mark.parametrize(
    ("claim", "denied"),
    [
        ("Dogs are welcome in May.", True),
        ("You may not bring dogs in May.", False),
        ("Walkers have to get a permit.", True),
        ("Walkers do without a permit.", False),
    ],
)
def test_the_clause_a_claim_is_about_tells_whether_it_is_denied(claim: str, denied: bool) -> None:
    """The same matter affirmed here and denied there is seen in other words than the passage's."""
    assert (with_markup(claim, Cloth(spans([PARK]))).features["polar_best"] > 0) is denied


@pytest.mark.parametrize(
    ("passage", "right", "wrong"),
    [
        (PARK, "The paths are mended by Tam Reddick.", "The paths are mended by Ines Calder."),
        (SHOP, "检修班由何小蓉带领。", "检修班由顾建平带领。"),
    ],
)
def test_a_name_in_another_role_stands_apart_from_the_rest(passage: str, right: str, wrong: str) -> None:
    """The rest of the claim fits a clause that has another name, and the clause with this name fits it less."""
    cloth = Cloth(spans([passage]))
    assert with_markup(wrong, cloth).features["gap_name"] > with_markup(right, cloth).features["gap_name"]
    assert with_markup(wrong, cloth).foreign is not None


def test_words_of_one_meaning_meet() -> None:
    """A synonym counts for most of the word, and a word of another meaning for nothing."""
    cloth = Cloth(spans(["The doctor purchased a vehicle."]))
    near = with_markup("A physician bought a car.", cloth).features["w_sentence"]
    assert near > 0.6
    assert with_markup("A bridge shouted at the moon.", cloth).features["w_sentence"] < 0.2


def test_opposites_have_sides() -> None:
    """A word tells a side of its pair; both sides of a pair tell nothing, and 多 only where it compares."""
    assert sides("Prices rose") == frozenset((pair, 1 - side) for pair, side in sides("Prices fell"))
    assert not sides("Prices rose and fell") & sides("Prices rose")
    assert sides("比去年多") != sides("比去年少")
    assert not sides("许多人")


def test_chinese_is_cut_into_words_and_names() -> None:
    """Names of people are one word; what the vocabulary holds is another."""
    words = han_words("检修班由何小蓉带领")
    assert [word.written for word in words] == ["检修班", "何小蓉", "带领"]
    assert [word.is_name for word in words] == [False, True, False]


def test_lists_and_names_in_apposition_are_no_clauses() -> None:
    """Commas that separate single words do not cut."""
    assert clauses_in("buses, cyclists and walkers may use it, but cars may not") == (
        "buses, cyclists and walkers may use it",
        "but cars may not",
    )


def test_nothing_to_compare_gives_zeros() -> None:
    """A claim without words, or passages without any, are no error."""
    assert with_markup("……", Cloth(spans([PARK]))).features == dict.fromkeys(WEAVE, 0.0)
    assert with_markup("Dogs are welcome.", Cloth([])).features == dict.fromkeys(WEAVE, 0.0)


def test_a_phrase_is_read_in_its_sentence() -> None:
    """A short phrase of an answer has a place there; a sentence by itself, or what is not there, has none."""
    source = Source(["市长王强表示欢迎。"], "", "市长李明昨天在会上表示热烈欢迎各位游客。会后大家合影。")
    place = source.place_of("李明")
    assert place is not None
    assert place.before == "市长"
    assert "欢迎" in place.sentence
    assert source.place_of("会后大家合影") is None
    assert source.place_of("赵四") is None
