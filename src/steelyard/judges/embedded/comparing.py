"""Comparisons that can be worked out: A costs more than B, where the passages give both prices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.facts import Fact, facts
from steelyard.judges.embedded.fits import denies, short_clauses
from steelyard.judges.embedded.meaning import plain, stem

MONEY = frozenset(("yuan", "dollars", "euros", "sterling", "yen", "won", "hk dollars", "nt dollars"))
LENGTH, WEIGHT, TIME = frozenset(("millimetres",)), frozenset(("grams", "pounds")), frozenset(("months", "seconds"))
# What is said to be more or less, and in which dimensions that is measured.
MORE = {
    "贵": MONEY, "重": WEIGHT, "高": LENGTH, "长": LENGTH | TIME, "久": TIME, "远": LENGTH, "宽": LENGTH, "厚": LENGTH,
    "深": LENGTH, "heavier": WEIGHT, "dearer": MONEY, "pricier": MONEY, "expensive": MONEY, "taller": LENGTH,
    "longer": LENGTH | TIME, "higher": LENGTH | MONEY, "wider": LENGTH, "thicker": LENGTH, "deeper": LENGTH,
    "farther": LENGTH,
}  # fmt: skip
LESS = {
    "便宜": MONEY, "轻": WEIGHT, "矮": LENGTH, "低": LENGTH, "短": LENGTH | TIME, "近": LENGTH, "窄": LENGTH,
    "薄": LENGTH, "浅": LENGTH, "lighter": WEIGHT, "cheaper": MONEY, "shorter": LENGTH | TIME, "lower": LENGTH | MONEY,
    "narrower": LENGTH, "thinner": LENGTH, "shallower": LENGTH, "nearer": LENGTH, "inexpensive": MONEY,
}  # fmt: skip
# A price by the pound or the year, a former price, a distance: figures that do not measure the thing itself.
RATE_OR_OTHER = re.compile(
    r"每|/|原价|现价|押金|定金|距|离|起(?=[，,。；]|\Z)"
    r"|\b(?:per|an? (?:day|week|month|year|hour|night|kilo|pound|head)|was|deposit|from|away|each)\b"
)
COMPARED_ZH = re.compile(
    r"\A(?P<one>[^，,。比]{1,12})比(?P<other>[^，,。]{1,12}?)(?:更|还|要)?(?P<how>"
    + "|".join(word for word in (*MORE, *LESS) if not word.isascii())
    + r")(?:一些|一点|得多|些)?[。！]?\Z"
)
COMPARED_EN = re.compile(
    r"\A(?:the )?(?P<one>[^,;.]{1,40}?) (?:is|are|was|were) (?:much |slightly |a bit |more )?(?P<how>"
    + "|".join(word for word in (*MORE, *LESS) if word.isascii())
    + r") than (?:the )?(?P<other>[^,;.]{1,40})\.?\Z"
)


def worked_out(claim: str, texts: Sequence[str]) -> Clash | None:
    """A comparison that the passages' own figures contradict."""
    low = plain(claim).strip()
    found = COMPARED_ZH.match(low) or COMPARED_EN.match(low)
    if found is None or denies(low):
        return None
    how = found["how"]
    dimensions = MORE.get(how) or LESS[how]
    one, other = (_measured(found[name].strip(), texts, dimensions) for name in ("one", "other"))
    if one is None or other is None or one.unit != other.unit or one.value == other.value:
        return None
    is_more = Fraction(str(one.value[0])) > Fraction(str(other.value[0]))
    if is_more == (how in MORE):
        return None
    return Clash("comparison", low.rstrip(" 。."), f"{found['one']} {one.text}, {found['other']} {other.text}")


def _measured(name: str, texts: Sequence[str], dimensions: frozenset[str]) -> Fact | None:
    """The only figure of a dimension in all that is said of a thing, if it is no rate and nothing tells it apart."""
    wanted = [stem(word) for word in name.split()] if name.isascii() else [name]
    held = [(text, clause) for text in texts for clause in short_clauses(text) if _names(plain(clause), wanted)]
    figures = [fact for _, clause in held for fact in _figures(clause, dimensions)]
    if len(figures) != 1 or any(RATE_OR_OTHER.search(plain(text)) for text, _ in held):
        return None
    return figures[0]


def _figures(clause: str, dimensions: frozenset[str]) -> list[Fact]:
    return [fact for fact in facts(clause) if fact.kind == "quantity" and fact.unit in dimensions]


def _names(clause: str, wanted: Sequence[str]) -> bool:
    words = {stem(word) for word in re.findall(r"[a-z0-9]+", clause)}
    return all(word in words if word.isascii() else word in clause for word in wanted)
