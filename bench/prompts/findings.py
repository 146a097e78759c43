"""What is wrong with a reply that can be read: in the product's own terms, since it would ask again for the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from steelyard.protocols.atoms import is_quoted, lacks_evidence, uncovered
from steelyard.records import Ask, ReplyData
from steelyard.text import contains_quote

INCOMPLETE = frozenset({"missing ids", "invented ids", "repeated ids", "empty list"})
"""Kinds that make a reply incomplete; the others concern its evidence or, of a split, its coverage."""


def findings(ask: Ask, reply: Any) -> list[str]:
    """The kinds of mistakes, each once."""
    return sorted({*_ids(ask, reply), *_evidence(ask, reply)})


def _ids(ask: Ask, reply: ReplyData) -> Iterator[str]:
    items = ask.data.items()
    for name, wanted in items.items():
        given = Counter(label.id for label in getattr(reply, name))
        asked = {item.id for item in wanted}
        if asked - given.keys():
            yield "missing ids"
        if given.keys() - asked:
            yield "invented ids"
        if any(count > 1 for count in given.values()):
            yield "repeated ids"
    if not items and (made := next((value for _, value in reply if isinstance(value, list)), None)) is not None:
        if not made:
            yield "empty list"
        if len({one.id for one in made}) < len(made):
            yield "repeated ids"


def _evidence(ask: Ask, reply: Any) -> Iterator[str]:
    data: Any = ask.data
    if ask.task == "atomic.split" and reply.atoms and uncovered(data.answer, reply.atoms):
        yield "not covered"
    if ask.task in ("atomic.judge", "scorecard.judge"):
        for atom in reply.atoms:
            if lacks_evidence(atom, data.references):
                yield "quote not found" if atom.quote else "no quote"
    if ask.task == "scorecard.judge":
        for sentence in reply.sentences:
            if sentence.support in ("supported", "partial") and not is_quoted(sentence.quote, None, data.references):
                yield "quote not found" if sentence.quote else "no quote"
    if ask.task == "retrieval.judge":
        for point in reply.key_points:
            if point.label == "found" and not is_quoted(point.quote, None, data.passages):
                yield "quote not found" if point.quote else "no quote"
    if ask.task in ("rubric.judge", "pairwise.judge"):
        for label in reply.criteria:
            if label.quote and not any(contains_quote(text, label.quote) for text in data.quotable):
                yield "quote not found"
    if ask.task == "dialogue.validity":
        for criterion in reply.criteria:
            if criterion.valid and not contains_quote(data.system_prompt, criterion.quote or ""):
                yield "quote not found" if criterion.quote else "no quote"
