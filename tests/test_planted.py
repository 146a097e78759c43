"""The planted errors: each clean claim has one twin that is wrong beyond every tolerance, the same on every machine."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.records import Tolerance
from steelyard.tasks import Difference
from steelyard.text import language_of
from steelyard.text.quantities import same_magnitude
from steelyard.text.tolerance import ruling
from years import years

BENCH = Path(__file__).parent.parent / "bench"
sys.path.append(str(BENCH))

from agreement import planted  # noqa: E402

ALL = planted.pairs()


def pairs_of(kind: str) -> list[Any]:
    return [pair for pair in ALL if pair.kind == kind]


def changed(pair: Any) -> tuple[str, str]:
    """What differs between the two claims, cut at the first and last difference."""
    clean, wrong = pair.clean, pair.planted
    start = next(i for i, (a, b) in enumerate(zip(clean + "\0", wrong + "\1", strict=False)) if a != b)
    end = 0
    while end < min(len(clean), len(wrong)) - start and clean[-1 - end] == wrong[-1 - end]:
        end += 1
    return clean[start : len(clean) - end], wrong[start : len(wrong) - end]


def test_enough_of_each_kind_and_script() -> None:
    """480 pairs, 80 of each of the six kinds, in both languages and both Chinese scripts."""
    assert Counter(pair.kind for pair in ALL) == dict.fromkeys(planted.KINDS, 80)
    assert Counter(pair.script for pair in ALL) == {"en": 240, "zh-Hans": 192, "zh-Hant": 48}
    assert len({pair.id for pair in ALL}) == len(ALL)


def test_the_same_every_time() -> None:
    """A second reading gives the same pairs."""
    assert planted.pairs() == ALL


def test_one_error_and_nothing_else() -> None:
    """The twins differ, no mark is left in them, and they are in the language of their file."""
    for pair in ALL:
        assert pair.clean != pair.planted
        assert not set("[]<>|") & set(pair.clean + pair.planted + " ".join(pair.passages)), pair
        assert language_of(*pair.passages) == pair.script, pair
        # A copy of a sentence of the passage would make the clean twin too easy.
        assert not any(pair.clean.rstrip(".。") in passage for passage in pair.passages), pair
        assert len(pair.passages) == 3


def test_numbers_are_wrong_beyond_the_tolerance() -> None:
    """No planted number passes as the right order of magnitude."""
    for pair in pairs_of("number"):
        found = [(a, b) for a in _numbers(pair.clean) for b in _numbers(pair.planted) if a != b]
        assert found
        assert any(not same_magnitude(a, b) for a, b in found), pair


def _numbers(text: str) -> list[Fraction]:
    return [
        Fraction(match["digits"].replace(",", "")) * (10_000 if match["unit"] else 1)
        for match in planted.NUMBER.finditer(text)
    ]


def test_years_are_wrong_and_not_in_the_passages() -> None:
    """A planted year is another year, one that the text does not mention."""
    for pair in pairs_of("date"):
        right, wrong = years(pair.clean), years(pair.planted)
        if not right or len(right) != len(wrong):
            assert not any(character.isdigit() for character in changed(pair)[1]) or "月" in pair.planted
        else:
            assert right != wrong
            year = next(word for word in planted.re.findall(r"[12]\d{3}", pair.planted))
            own = [passage for passage in pair.passages if year in passage]
            # The passage of another text may happen to hold it.
            assert len(own) <= 1, pair


def test_units_are_far_apart() -> None:
    """Every pair of units in the table is further apart than the tolerance for quantities."""
    sizes = {
        "seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "months": 30 * 86_400,
        "秒": 1, "分钟": 60, "小时": 3600, "天": 86_400, "个月": 30 * 86_400,
        "分鐘": 60, "小時": 3600, "個月": 30 * 86_400, "公尺": 1, "公分": Fraction(1, 100),
        "metres": 1, "kilometres": 1000, "centimetres": Fraction(1, 100),
        "米": 1, "公里": 1000, "厘米": Fraction(1, 100),
        "grams": 1, "kilograms": 1000, "克": 1, "公斤": 1000,
        "litres": 1000, "millilitres": 1, "升": 1000, "毫升": 1,
    }  # fmt: skip
    for right, wrong in planted.UNITS.items():
        ratio = Fraction(sizes[right]) / Fraction(sizes[wrong])
        assert max(ratio, 1 / ratio) >= 10


def test_clean_spans_stand_in_the_passages() -> None:
    """Numbers, years and ordinals of a clean claim are those of its own text."""
    for script in planted.SCRIPTS:
        for block in planted.read((planted.HERE / f"{script}.txt").read_text("utf-8")):
            own = " ".join(block.passages)
            for kind, claim in block.claims:
                right = planted.SPAN.search(claim)["right"]
                if kind in ("number", "date"):
                    assert right.rstrip("年s").replace("每周", "") in own, (script, block.id, right)
                if kind == "entity":
                    bare = right.removeprefix("the ").strip("“”")
                    assert bare.split()[-1] in own or bare[:2] in own, (script, block.id, right)


@given(st.integers(min_value=3, max_value=10**7), st.sampled_from(["", "万", "萬"]), st.text(max_size=8))
def test_any_number_becomes_a_wrong_one(value: int, unit: str, seed: str) -> None:
    """Whatever the number, the planted one is written as people write it and lies beyond the tolerance."""
    right = f"{value}{unit}"
    wrong = planted.wrong_number(right, "资料" if unit == "万" else "", planted._draws(seed))
    assert ruling(Difference(kind="statistic", claimed=wrong, stated=right), Tolerance()) == "beyond"
    assert "e" not in wrong
    assert not wrong.startswith("0.0")


@given(st.integers(min_value=1000, max_value=2025), st.sampled_from(["", "年"]), st.text(max_size=8))
def test_any_year_becomes_another(year: int, suffix: str, seed: str) -> None:
    """The planted year differs by 4 to 22 and keeps its form."""
    wrong = planted.wrong_date(f"{year}{suffix}", "", planted._draws(seed))
    assert wrong.endswith(suffix)
    assert 4 <= abs(int(wrong.removesuffix("年")) - year) <= 22


@given(st.integers(min_value=1, max_value=200), st.text(max_size=8))
def test_any_ordinal_becomes_another(number: int, seed: str) -> None:
    """29th becomes another well-formed ordinal."""
    right = planted._nth(number)
    wrong = planted.wrong_ordinal(right, right, planted._draws(seed))
    assert wrong != right
    assert wrong == planted._nth(int(wrong[:-2]))


@pytest.mark.parametrize(
    ("number", "written"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (112, "112th"), (23, "23rd"), (40, "40th")],
)
def test_ordinals_are_written_as_in_english(number: int, written: str) -> None:
    """1st, 2nd, 3rd, but 11th."""
    assert planted._nth(number) == written


BLOCK = """== shop | What about the shop?
The shop has 120 shelves and opened in 1999. It is on the second floor.
number: There are [[120]] shelves in the shop.
entity: The shop belongs to [[Ann>Bob]].
"""


def test_a_text_of_ones_own() -> None:
    """The format is plain: a head, passages, claims with one marked span."""
    first, second = planted.pairs_of(BLOCK, "en")
    assert first.id == "shop-number"
    assert first.passages == ("The shop has 120 shelves and opened in 1999. It is on the second floor.",)
    assert second.clean == "The shop belongs to Ann."
    assert second.planted == "The shop belongs to Bob."


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        (("[[120]]", "120"), "exactly one span"),
        (("[[120]]", "[[120]] [[7]]"), "exactly one span"),
        (("[[120]]", "[[a dozen]]"), "write the wrong number down"),
        (("[[Ann>Bob]]", "[[Ann]]"), "write down what 'Ann' becomes"),
        (("number: There", "numbr: There"), "claims that begin with a kind"),
        ((" | What about the shop?", ""), "needs a question"),
    ],
)
def test_slips_in_a_text_are_errors(slip: tuple[str, str], told: str) -> None:
    """A claim that cannot be planted, or is not read as one, is never silently dropped."""
    with pytest.raises(ValueError, match=told):
        list(planted.pairs_of(BLOCK.replace(*slip), "en"))


def test_kinds_that_code_cannot_change_say_so() -> None:
    """Units outside the table, dates that are no year and odd ordinals must be written down."""
    draws = planted._draws("x")
    with pytest.raises(ValueError, match="not in the table"):
        planted.wrong_unit("parsecs", "", draws)
    with pytest.raises(ValueError, match="not a year"):
        planted.wrong_date("October", "", draws)
    with pytest.raises(ValueError, match="cannot be changed"):
        planted.wrong_ordinal("penultimate", "", draws)


def test_a_value_that_cannot_be_made_is_an_error() -> None:
    """Where the passages hold every ordinal, none can be planted."""
    with pytest.raises(ValueError, match="no wrong value"):
        planted.wrong_ordinal("first", " ".join(planted.ENGLISH), planted._draws("x"))


def test_listing_shows_both_twins() -> None:
    """A person can read all pairs in one go."""
    shown = planted.listing(ALL[:2])
    assert ALL[0].clean in shown
    assert ALL[1].planted in shown
