"""The particulars of a claim: exact things, its wording, and how it stands to a list of facts."""

from __future__ import annotations

import re

from steelyard.judges.embedded.denials import negators
from steelyard.judges.embedded.differences import exchanges
from steelyard.judges.embedded.facts import facts, is_han_name, names, same
from steelyard.judges.embedded.lexicon import found, lexicon
from steelyard.judges.embedded.meaning import HAN_RUN, plain, terms
from steelyard.judges.embedded.missing import uncovered
from steelyard.judges.embedded.source import Source

# --- exact things ----------------------------------------------------------------------------------


def exact(claim: str, source: Source, window: str) -> dict[str, float]:
    stated = facts(claim)
    near = facts(window)
    far = [fact for fact in stated if not any(same(fact, other) for other in near)]
    nowhere = [fact for fact in far if fact.text not in source.plain]
    unheld = [fact for fact in far if not source.holds(fact)]
    called = [plain(name) for name in names(claim)]
    unknown = [name for name in called if any(part not in source.plain for part in name.split())]
    exchanged = exchanges(claim, window)
    return {
        "facts": float(len(stated)),
        "facts_far": float(len(far)),
        "facts_nowhere": float(len(nowhere)),
        "facts_unheld": float(len(unheld)),
        "names_unknown": float(len(unknown)),
        "exchanged": float(len(exchanged)),
        "han_names_unknown": float(
            any(
                is_han_name(stretch)
                for run in HAN_RUN.findall(plain(claim))
                for stretch in uncovered(run, source.plain)
            )
        ),
    }


# --- wording ---------------------------------------------------------------------------------------

FIRST_PERSON = re.compile(r"我|咱|\b(?:i|my|me|we|our)\b")
SECOND_PERSON = re.compile(r"你|您|\byou(?:r)?\b")
ASKS = re.compile(r"[?？]|吗|呢")


def wording(claim: str, source: Source, best: int, window: str) -> dict[str, float]:
    tables, low, near = lexicon(), plain(claim), plain(source.spans[best].text)
    said, there = negators(low), negators(near)
    extreme_unknown = [match for match in found(tables.extremes, low) if match.group() not in plain(window)]
    return {
        "negators_differ": float(abs(min(said, 2) - min(there, 2))),
        "extremes_unknown": float(len(extreme_unknown)),
        "first_person": float(bool(FIRST_PERSON.search(low))),
        "second_person": float(bool(SECOND_PERSON.search(low))),
        "asks": float(bool(ASKS.search(low))),
        "chinese": float(bool(HAN_RUN.search(low))),
        "claim_words": float(min(60, len(terms(claim)))),
    }


# --- listed values ---------------------------------------------------------------------------------

NO_LIST = dict.fromkeys(
    (
        "listed",
        "value_named",
        "value_share",
        "value_self",
        "other_sign",
        "other_place",
        "gender_same",
        "gender_other",
        "gender_female",
    ),
    0.0,
)


def beside_list(claim: str, source: Source) -> dict[str, float]:
    """How a claim stands to a list of facts: which of its values it names, which others of the same kind."""
    if not source.entries:
        return NO_LIST
    tables, low = lexicon(), plain(claim)
    values = [part for _, value in source.entries for part in value.split() if len(part) > 1]
    named = [value for value in values if _stemmed(value) in low]
    known = " ".join(value for _, value in source.entries)
    gender = next((value for _, value in source.entries if value in ("男", "女")), "")
    same, other = ("female", "male") if gender == "女" else ("male", "female")
    return {
        "listed": 1.0,
        "value_named": float(len(named)),
        "value_share": max((len(_stemmed(value)) / max(1, len(low)) for value in named), default=0.0),
        "value_self": float(
            any(
                re.search(rf"(?:我|咱|在|回|来)[^你他她，。]{{0,4}}{re.escape(_stemmed(value))}", low)
                for value in named
            )
        ),
        "other_sign": float(_others(tables.values["sign"], low, known)),
        "other_place": float(_others(tables.values["place"], low, known)),
        "gender_same": float(bool(gender) and bool(tables.values[same].search(low))),
        "gender_other": float(bool(gender) and bool(tables.values[other].search(low))),
        "gender_female": float(gender == "女"),
    }


def _stemmed(value: str) -> str:
    return value[:-1] if len(value) > 2 and value[-1] in "座省市区县州" else value


def _others(pattern: re.Pattern[str], claim: str, known: str) -> int:
    return len(
        {match.group() for match in pattern.finditer(claim)} - {match.group() for match in pattern.finditer(known)}
    )
