"""Labelled rows as the asks that a protocol would put to a judge: one task, its items, and what people said of each."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from training.sets import Row

from agreement.planted import Pair
from steelyard.protocols.atomic import NOT_GIVEN
from steelyard.protocols.atoms import atom_item, is_quoted, lacks_evidence
from steelyard.protocols.common import collect, numbered, prompt_language
from steelyard.records import Ask, Reply, Unjudged
from steelyard.tasks import AtomicData, AtomicReply, ScorecardData, ScorecardReply
from steelyard.text import sentences

T = TypeVar("T")
Task = Literal["atoms", "sentences"]
# What a claim is judged as. Where a set labels whole responses, what counts is what faithfulness counts: sentences.
TASK_OF: Mapping[str, Task] = {
    "memerag": "sentences",
    "memerag relevance": "atoms",
    "factcheckgpt": "atoms",
    "summedits": "sentences",
    "begin": "sentences",
    "uhgeval": "atoms",
    "kvpi": "atoms",
    "planted": "atoms",
}
# People could not decide the first either, and in the second found nothing that could be supported.
LEFT_OUT = frozenset(("unclear", "no_claim"))


class Wanted(NamedTuple):
    """One labelled thing: the items of the ask that make it up, and what people said."""

    id: str
    document: str
    items: tuple[int, ...]
    truth: str


class Case(NamedTuple):
    """One ask with what people said about its items."""

    ask: Ask
    wanted: tuple[Wanted, ...]


class Said(NamedTuple):
    """What the judge said of one item, with the probability that the passages support it where the judge gives one."""

    label: str
    level: int | None = None
    supports: float | None = None


class Answer(NamedTuple):
    """One labelled thing and what the judge said of its items; nothing where it gave no label."""

    wanted: Wanted
    said: tuple[Said, ...]


Judging = Generator[list[Ask], list[Reply | Unjudged], list[Answer]]


# --- rows into cases -------------------------------------------------------------------------------


def cases_of(name: str, rows: Sequence[Row]) -> list[Case]:
    """The cases of one set. Rows that come from the same text (memerag, uhgeval) are asked about together."""
    groups: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        groups[(row.document, row.context) if row.context else row.id].append(row)
    return [_case(name, group) for group in groups.values()]


def _case(name: str, rows: Sequence[Row]) -> Case:
    texts: list[str] = []
    wanted: list[Wanted] = []
    for row in rows:
        parts = sentences(row.claim) if TASK_OF[name] == "sentences" else [row.claim]
        ids = tuple(range(len(texts) + 1, len(texts) + len(parts) + 1))
        texts += parts
        truth = str(row.relevance) if name == "memerag relevance" else truth_of(row)
        wanted.append(Wanted(row.id, row.document, ids, truth))
    first = rows[0]
    answer = first.context or first.claim
    make = atomic_ask if TASK_OF[name] == "atoms" else scorecard_ask
    return Case(make(first.question, first.passages, answer, texts), tuple(wanted))


def measurable(name: str, rows: Iterable[Row]) -> list[Row]:
    """The rows that people gave the label in question."""
    if name == "memerag relevance":
        return [row for row in rows if row.relevance is not None]
    return [row for row in rows if row.label not in LEFT_OUT]


def truth_of(row: Row) -> str:
    return "supported" if row.is_supported else "not supported"


def planted_cases(pairs: Iterable[Pair]) -> list[Case]:
    """Clean claim and planted one, each by itself: seen side by side, they would give each other away."""
    return [
        Case(
            atomic_ask(pair.question, pair.passages, claim, [claim]),
            (Wanted(f"{pair.id} {which}", pair.id, (1,), which),),
        )
        for pair in pairs
        for which, claim in (("clean", pair.clean), ("planted", pair.planted))
    ]


def atomic_ask(question: str, passages: Sequence[str], answer: str, atoms: Sequence[str]) -> Ask:
    language = prompt_language(question, answer)
    data = AtomicData(
        question=question,
        references=tuple(passages),
        answer=answer,
        date=NOT_GIVEN[language],
        place=NOT_GIVEN[language],
        atoms=numbered(atoms),
    )
    return Ask(task="atomic.judge", language=language, data=data, reply=AtomicReply)


def scorecard_ask(question: str, passages: Sequence[str], answer: str, parts: Sequence[str]) -> Ask:
    language = prompt_language(question, answer)
    data = ScorecardData(
        question=question,
        references=tuple(passages),
        date=NOT_GIVEN[language],
        place=NOT_GIVEN[language],
        sentences=numbered(parts),
        key_points=(),
        atoms=(),
    )
    return Ask(task="scorecard.judge", language=language, data=data, reply=ScorecardReply)


# --- judging ---------------------------------------------------------------------------------------


def judging(case: Case) -> Judging:
    """As the protocols do it: what is left out or not proven is asked again, then code applies its rules."""
    said = yield from (_atoms(case.ask) if case.ask.task == "atomic.judge" else _sentences(case.ask))
    return [
        Answer(wanted, tuple(said[id] for id in wanted.items) if all(id in said for id in wanted.items) else ())
        for wanted in case.wanted
    ]


SaidById = Generator[list[Ask], list[Reply | Unjudged], dict[int, Said]]


def _atoms(ask: Ask) -> SaidById:
    assert isinstance(ask.data, AtomicData)
    references = ask.data.references
    collected = yield from collect([ask], lambda _, label: lacks_evidence(label, references))
    said = {}
    for numbered_atom in ask.data.atoms:
        atom = atom_item(numbered_atom, collected, references)
        if atom.label != "unjudged":
            label = collected.label("atoms", atom.id)
            said[atom.id] = Said(atom.label, atom.level, _probability(label))
    return said


def _sentences(ask: Ask) -> SaidById:
    assert isinstance(ask.data, ScorecardData)
    references = ask.data.references

    def unproven(_: str, label: Any) -> bool:
        return label.support in ("supported", "partial") and not is_quoted(label.quote, None, references)

    collected = yield from collect([ask], unproven)
    labels = {part.id: collected.label("sentences", part.id) for part in ask.data.sentences}
    return {id: Said(label.support, None, _probability(label)) for id, label in labels.items() if label}


def _probability(label: Any) -> float | None:
    """Judges need not give one; those that do put it beside the label."""
    found = getattr(label, "probability", None)
    return None if found is None else float(found)


# --- what was said, in the words of a set ----------------------------------------------------------

SUPPORTED = frozenset(("correct", "supported"))
ABSTAINED = frozenset(("undetermined", "exempt", "no_claim"))


def verdict_of(said: Sequence[Said]) -> str:
    """Supported when every part is; a part that claims nothing needs no support unless nothing claims anything."""
    labels = [part.label for part in said]
    claims = [label for label in labels if label != "no_claim"] or labels
    return "supported" if all(label in SUPPORTED for label in claims) else "not supported"


def abstains(said: Sequence[Said]) -> bool:
    """Whether the judge decided nothing: no part found against the claim, and not all parts for it."""
    return verdict_of(said) == "not supported" and all(part.label in SUPPORTED | ABSTAINED for part in said)


def score_of(said: Sequence[Said]) -> float | None:
    """A whole is as probable as its least probable part."""
    found = [part.supports for part in said]
    return None if None in found or not found else min(score for score in found if score is not None)


# --- fewer rows ------------------------------------------------------------------------------------


def sampled(rows: Sequence[T], n: int | None, key: Callable[[T], str], label: Callable[[T], str]) -> list[T]:
    """At most n rows, as many of each label as there are, the same on every machine; in their old order."""
    if n is None or n >= len(rows):
        return list(rows)
    by_label: dict[str, list[T]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: hashlib.sha256(key(row).encode("utf-8", "replace")).digest()):
        by_label[label(row)].append(row)
    turns = [row for turn in range(n) for group in by_label.values() for row in group[turn : turn + 1]]
    chosen = {id(row) for row in turns[:n]}
    return [row for row in rows if id(row) in chosen]
