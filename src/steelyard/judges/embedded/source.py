"""Passages cut and counted once, so that many claims can be checked against them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from steelyard.judges.embedded.facts import Fact, facts, is_written, listed, same
from steelyard.judges.embedded.meaning import HAN_RUN, plain, simplified, words
from steelyard.judges.embedded.spans import STOP, spans
from steelyard.judges.embedded.weave import Cloth, clauses_in, part_of, woven

# A phrase that is longer, or more of its sentence than this, speaks for itself.
LONGEST_PHRASE, WHOLE = 14, 0.5


class Place(NamedTuple):
    """Where a phrase stands in an answer: its clause and sentence, what the sentence says before it, how far in."""

    clause: str
    sentence: str
    before: str
    share: float


class Source:
    """What all claims about the same passages share. `answer` is what the claims were taken from, if known."""

    def __init__(self, passages: Sequence[str], question: str = "", answer: str = "") -> None:
        self.passages = passages
        self.question = question
        self.answer = answer
        self.spans = spans(passages)
        self.words = [frozenset(words(span.text)) for span in self.spans]
        self.all_words = frozenset().union(*self.words)
        self.plain = plain("\n".join(span.text for span in self.spans))
        self._woven: dict[str, dict[str, float]] = {}
        self.entries = tuple(entry for passage in passages for entry in listed(passage))

    @cached_property
    def cloth(self) -> Cloth:
        """The passages' words, laid out for comparison."""
        return Cloth(self.spans)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The words of the question."""
        return frozenset(unit.key for text in clauses_in(self.question) for unit in part_of(text).units)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(fact for span in self.spans for fact in facts(span.text))

    def holds(self, fact: Fact) -> bool:
        """Whether the passages state this number, date or ordinal, in whatever form."""
        return any(same(fact, other) for other in self.facts) or is_written(fact, self.plain)

    def place_of(self, phrase: str) -> Place | None:
        """Where a phrase stands in the answer; None for what is a sentence by itself, or not there."""
        is_phrase = 0 < len(phrase) <= LONGEST_PHRASE and HAN_RUN.search(phrase)
        at = self.answer.find(phrase) if self.answer and is_phrase else -1
        if at < 0:
            return None
        start = max((match.end() for match in STOP.finditer(self.answer, 0, at)), default=0)
        stop = STOP.search(self.answer, at + len(phrase))
        sentence = self.answer[start : stop.start() if stop else len(self.answer)]
        if len(phrase) > WHOLE * len(sentence.strip()):
            return None
        clause = next((part for part in clauses_in(sentence) if phrase in part), sentence)
        return Place(clause, sentence, self.answer[start:at], at / len(self.answer))

    def woven_answer(self, text: str) -> dict[str, float]:
        """How a part of the answer lies in the passages; looked up once."""
        if text not in self._woven:
            self._woven[text] = woven(text, self.cloth, self.asked).features
        return self._woven[text]

    @cached_property
    def quantities(self) -> tuple[Fact, ...]:
        """What the passages measure or count, and their times of day."""
        return tuple(fact for span in self.spans for fact in facts(span.text) if _has_measure(fact))

    def in_its_words(self, claim: str) -> str:
        """The claim with its quantities written as the passages write them: 24个月 where they say 两年."""
        text = simplified(claim)
        stated = facts(claim)
        if len(text.lower()) != len(text):
            return text
        for fact in reversed(stated):
            if _has_measure(fact) and fact.text not in self.plain:
                same = (one for one in self.quantities if (one.unit, one.value) == (fact.unit, fact.value))
                if twin := next(same, None):
                    text = text[: fact.start] + twin.text + text[fact.end :]
        return text


def _has_measure(fact: Fact) -> bool:
    return (fact.kind == "quantity" and bool(fact.unit)) or fact.unit == "clock"
