"""Passages cut and counted once, so that many claims can be held against them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from steelyard.judges.embedded.facts import Fact, facts, listed
from steelyard.judges.embedded.meaning import plain, simplified, words
from steelyard.judges.embedded.spans import spans


class Source:
    """What all claims about the same passages share."""

    def __init__(self, passages: Sequence[str], question: str = "") -> None:
        self.passages = passages
        self.question = question
        self.spans = spans(passages)
        self.words = [frozenset(words(span.text)) for span in self.spans]
        self.all_words = frozenset().union(*self.words)
        self.plain = plain("\n".join(span.text for span in self.spans))
        self.entries = tuple(entry for passage in passages for entry in listed(passage))

    @cached_property
    def quantities(self) -> tuple[Fact, ...]:
        """What the passages measure or count."""
        return tuple(fact for span in self.spans for fact in facts(span.text) if fact.kind == "quantity" and fact.unit)

    def in_its_words(self, claim: str) -> str:
        """The claim with its quantities written as the passages write them: 24个月 where they say 两年."""
        text = simplified(claim)
        stated = facts(claim)
        if len(text.lower()) != len(text):
            return text
        for fact in reversed(stated):
            if fact.kind == "quantity" and fact.unit and fact.text not in self.plain:
                same = (one for one in self.quantities if (one.unit, one.value) == (fact.unit, fact.value))
                if twin := next(same, None):
                    text = text[: fact.start] + twin.text + text[fact.end :]
        return text
