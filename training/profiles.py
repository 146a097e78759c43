"""Twins of chat lines beside a profile: the same line, and a profile that has another value where the line speaks.

What a line shows of its speaker stays the same; whether the profile bears it out turns with the profile. So nothing can
be learnt from which places or signs are named, only from who is spoken of.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from training.sets import DATA, Part, Row, rows

FROM, SET = "kvpi", "profiles"
SIGNS = "白羊 金牛 双子 巨蟹 狮子 处女 天秤 天蝎 射手 摩羯 水瓶 双鱼".split()
PLACE, SIGN, SEX = "所在地", "星座", "性别"
OTHER_SEX = {"男": "女", "女": "男"}
# Where label and words do not go together, the line speaks of something else than the word that is found.
WITH_MATCH = {"supported": True, "contradicted": False}
TURNED = {"supported": "contradicted", "contradicted": "supported"}


def profiles(part: Part, data: Path = DATA) -> list[Row]:
    """A twin of every line of one part that can have one."""
    own = rows(FROM, part, data)
    places = sorted({value[PLACE] for row in own if (value := _values(row)).get(PLACE, "").strip()})
    return [twin for row in own for twin in _twins(row, places)]


def _twins(row: Row, places: Sequence[str]) -> Iterator[Row]:
    values = _values(row)
    chance = random.Random(hashlib.sha256(f"profile {row.id}".encode()).digest())
    field, value = _other(row, values, places, chance)
    if field is None or value is None or value == values.get(field):
        return
    label = TURNED.get(row.label, row.label)
    passage = "；".join(f"{name}：{value if name == field else held}" for name, held in values.items())
    yield row._replace(set=SET, id=f"{row.id}-twin", passages=(passage,), label=label)


def _other(
    row: Row, values: dict[str, str], places: Sequence[str], chance: random.Random
) -> tuple[str | None, str | None]:
    """The field that the line speaks to, and a value for it: what the line names, or where it is that, another."""
    signs = [sign for sign in SIGNS if sign in row.claim]
    named = [place for place in places if any(part in row.claim for part in place.split() if len(part) > 1)]
    if signs and SIGN in values:
        is_match = values[SIGN].removesuffix("座") in signs
        if is_match is not WITH_MATCH.get(row.label, is_match):
            return None, None
        return SIGN, f"{_one([sign for sign in SIGNS if sign not in signs] if is_match else signs, chance)}座"
    if named and PLACE in values:
        is_match = any(part in row.claim for part in values[PLACE].split())
        if is_match is not WITH_MATCH.get(row.label, is_match):
            return None, None
        taken = {part for place in named for part in place.split()}
        return PLACE, _one([place for place in places if not taken & set(place.split())] if is_match else named, chance)
    if row.label in TURNED and ("男" in row.claim or "女" in row.claim):
        return SEX, OTHER_SEX.get(values.get(SEX, ""))
    return None, None


def _one(of: Sequence[str], chance: random.Random) -> str | None:
    return chance.choice(of) if of else None


def _values(row: Row) -> dict[str, str]:
    return dict(part.split("：", 1) for part in "；".join(row.passages).split("；") if "：" in part)
