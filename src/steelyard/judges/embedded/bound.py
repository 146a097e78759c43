"""What a passage says of the very thing that a claim names, and whether it says the opposite.

*The second row has no sockets* names a row and a thing. Where the only clause that speaks of both puts the sockets
there, the claim is turned round, however much else it shares with clauses about other rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.facts import Fact, facts, same
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.weave import Clause, Unit, clauses_in, part_of

# What points back adds nothing: 第二排没有这种接口.
POINTING = re.compile(r"[这那](?:种|个|些|类|一)|该(?!校|国)|此类?|\b(?:such|any|this|that|these|those)\b")
# The share of what is said, by rarity, that a clause must hold too.
SAME_MATTER = 0.5
# Having is said of everything, so a pair of words for it tells nothing by itself.
PAIR_MARK = "~"


def turned(claim: str, source: Source) -> Clash | None:
    """The clause that denies of a row or a floor what the claim affirms of it, or the reverse; none if one agrees."""
    if len(clauses_in(claim)) > 1:
        return None
    named = [fact for fact in facts(claim) if fact.kind == "ordinal"]
    own = part_of(POINTING.sub(" ", claim))
    said = [unit for unit in own.units if not unit.key.startswith(PAIR_MARK) and not _within(unit, named)]
    if not named or not said:
        return None
    told = [clause for clause in source.cloth.clauses if _speaks_of(clause, named, said)]
    if not told or any(_denies(clause, said) == own.denies for clause in told):
        return None
    return Clash("negation", claim.strip(" 。."), told[0].text)


def _within(unit: Unit, named: Iterable[Fact]) -> bool:
    return any(unit.written in fact.text or fact.text in unit.written or unit.key == fact.unit for fact in named)


def _speaks_of(clause: Clause, named: Iterable[Fact], said: list[Unit]) -> bool:
    there = facts(clause.text)
    if not all(any(same(fact, other) for other in there) for fact in named):
        return False
    held = {unit.key for unit in clause.units}
    rarest = max(said, key=lambda unit: unit.weight)
    shared = sum(unit.weight for unit in said if unit.key in held)
    return rarest.key in held and shared >= SAME_MATTER * sum(unit.weight for unit in said)


def _denies(clause: Clause, said: Iterable[Unit]) -> bool:
    return clause.denies and (not clause.denied or any(unit.key in clause.denied for unit in said))
