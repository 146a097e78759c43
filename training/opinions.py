"""Labelled rows of the development parts as two opinions: what the rules say of every claim in them, and the model.

Claims are taken out of a row, and shown to the model, as the judge itself does it.
"""

from __future__ import annotations

import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from steelyard.judges.embedded.completing import completed
from steelyard.judges.embedded.statements import read_statements
from steelyard.judges.embedded.support import Reading, Support, read
from steelyard.judges.local.blend import Language
from steelyard.judges.local.reading import LONGEST_CLAIM, Model, is_record, language, shares
from steelyard.text import sentences
from training.planted import pairs
from training.sets import Row, rows

SETS: Mapping[Language, Sequence[str]] = {
    "zh": ("paraphrased", "planted", "uhgeval", "kvpi"),
    "en": ("paraphrased", "planted", "factcheckgpt", "begin", "summedits"),
}
# Judged sentence by sentence; rows of the other sets are atoms as they stand.
IN_SENTENCES = frozenset(("begin", "summedits"))
PARAPHRASED = Path(__file__).with_name("paraphrased.toml")
LEFT_OUT = frozenset(("no_claim", "unclear"))
SEED = 11


class Part(NamedTuple):
    """One claim: what the rules say of it, and the model's share for yes where it was asked and answered."""

    rules: Support
    share: float | None


class Opinion(NamedTuple):
    """One labelled row. It is supported if all its parts are."""

    set: str
    supported: bool
    parts: tuple[Part, ...]


class Asked(NamedTuple):
    """Rows about one text, with their claims in the order in which the judge looks them up."""

    rows: tuple[Row, ...]
    owners: tuple[int, ...]
    """For each claim, the place of its row."""
    claims: tuple[str, ...]
    rules: tuple[Support, ...]
    checkable: frozenset[int]


def dev_rows(name: str, spoken: Language, n: int, data: Path) -> list[Row]:
    """n rows of a set's development part, half of them supported, the same ones every time."""
    if name == "paraphrased":
        found: Iterable[Row] = paraphrased(spoken)
    else:
        found = pairs("dev", data) if name == "planted" else rows(name, "dev", data)
    kept = [row for row in found if row.label not in LEFT_OUT and language(row.claim) == spoken]
    random.Random(SEED).shuffle(kept)
    halves = [[row for row in kept if row.is_supported is side][: n // 2] for side in (True, False)]
    # In turns, so that a run that is cut short has seen both.
    return [row for pair in zip(*halves, strict=False) for row in pair]


def paraphrased(spoken: Language) -> Iterator[Row]:
    """True and false claims in other words than their passage's."""
    for text in tomllib.loads(PARAPHRASED.read_text("utf-8"))[spoken]:
        passages = (text["passage"],)
        for label, key in (("supported", "true"), ("unsupported", "false")):
            for claim in text[key]:
                yield Row("paraphrased", claim, passages[0], "", claim, passages, label)


def asked_about(found: Sequence[Row]) -> Iterator[Asked]:
    """The rows with their claims; key words of one text are asked about together."""
    groups: dict[object, list[Row]] = defaultdict(list)
    for row in found:
        groups[(row.document, row.context) if row.set == "uhgeval" else id(row)].append(row)
    for group in groups.values():
        first = group[0]
        # What the judge is given as the answer: key words are read in the text that they stand in.
        answer = "" if first.set in IN_SENTENCES else first.context or first.claim
        reading = read(first.passages, first.question, answer)
        looked_up = [entry for at, row in enumerate(group) for entry in _claims(at, row, reading)]
        owners, claims, supports, checkable = zip(*looked_up, strict=True) if looked_up else ((), (), (), ())
        kept = frozenset(at for at, is_checked in enumerate(checkable) if is_checked)
        yield Asked(tuple(group), owners, claims, supports, kept)


def _claims(at: int, row: Row, reading: Reading) -> Iterator[tuple[int, str, Support, bool]]:
    if row.set not in IN_SENTENCES:
        (claim,) = completed([row.claim], row.context if row.set == "uhgeval" else row.claim, row.question)
        yield at, claim, reading.support(claim), True
        return
    for statement in read_statements(sentences(row.claim), row.question, reading, read):
        for text, kind, support in statement.claims:
            yield at, text, support, kind == "claim"


def by_turns(sets: Sequence[Sequence[Asked]]) -> list[Asked]:
    """One of each set, then the next of each: stopped at any time, they have come equally far."""
    return [asked for asked in chain(*zip_longest(*sets)) if asked]


def opinions(asked: Asked, band: tuple[float, float], model: Model) -> Iterator[Opinion]:
    """What both say of the rows. Claims beyond the band are the rules'; a row without an answer is left out."""
    wanted = {
        at
        for at in asked.checkable
        if asked.rules[at].reference is not None
        and band[0] < asked.rules[at].probability < band[1]
        and len(asked.claims[at]) <= LONGEST_CLAIM
        and not is_record(asked.rows[0].passages)
    }
    said = dict(shares(asked.rows[0].passages, asked.claims, wanted, model))
    for place, row in enumerate(asked.rows):
        own = [at for at in sorted(asked.checkable) if asked.owners[at] == place]
        if own and all(said.get(at) is not None for at in own if at in wanted):
            yield Opinion(row.set, row.is_supported, tuple(Part(asked.rules[at], said.get(at)) for at in own))
