"""How a statement serves a question: levels 1 to 3, what is on the topic, which sentences of the passages answer it.

The network grades a sentence beside the question; a short answer to a question is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.excerpts import cut, words
from steelyard.judges.embedded.kinds import is_fallback, kind_of, yes_or_no
from steelyard.judges.embedded.network import network
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.text.figures import missing

Level = Literal[1, 2, 3]

# The odds of level 1 from which on a sentence answers the question, and of 1 and 2 from which on it is on the topic.
ANSWERS = 0.2
ON_TOPIC = 0.4
# A sentence that has so much of the question, and other words besides, speaks to it whatever the network makes of it.
RESTATED, ODDS_OF_RESTATED = 0.6, (0.6, 0.3, 0.1)
# So many sentences of the passages are graded: those nearest to the question.
GRADED = 16
MOST_SENTENCES = 400
# Two sentences that share this much of their words say the same.
SAME = 0.8
# What one question asks in several parts: 多少钱，在哪里买？ / how much is it and where is it sold?
PARTS = re.compile(
    r"[？?；;]|[，,](?=.{0,12}(?:什么|怎么|如何|哪|多少|几|是否|谁|为何|何时))"
    r"|\band (?=(?:how|what|when|where|who|why|which|is|are|can|does|do)\b)"
)
MOST_PARTS = 4
UNINFORMATIVE = frozenset(("greeting", "meta", "question"))


class Graded(NamedTuple):
    level: Level
    reason: str


class Ranked(NamedTuple):
    """A sentence of a passage, and the odds that it answers the question."""

    text: str
    passage: int
    odds: float


def levels(question: str, atoms: Sequence[str], phrase: Phrasing) -> list[Graded]:
    """1 answers the question's intent, 2 is indirect or explains what does, 3 is extra or too thin to inform."""
    odds = _odds([(question, atom) for atom in atoms])
    return [_graded(question, atom, found, phrase) for atom, found in zip(atoms, odds, strict=True)]


def _odds(pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
    read = network().levels(pairs)
    return [
        ODDS_OF_RESTATED if odds[0] < ODDS_OF_RESTATED[0] and _restates(*pair) else odds
        for pair, odds in zip(pairs, read, strict=True)
    ]


def _restates(question: str, text: str) -> bool:
    asked, said = words(question), words(text)
    return len(asked & said) >= RESTATED * max(len(asked), 1) and not said <= asked


def _graded(question: str, atom: str, odds: Sequence[float], phrase: Phrasing) -> Graded:
    if kind_of(atom, question) in UNINFORMATIVE and yes_or_no(atom) is None:
        return Graded(3, phrase("没有可以回答问题的信息", "tells nothing that could answer the question"))
    if odds[0] + odds[1] < ON_TOPIC:
        return Graded(3, phrase("与所问关系不大", "has little to do with what is asked"))
    if _answers(odds):
        return Graded(1, phrase("直接回答所问", "speaks directly to what is asked"))
    return Graded(2, phrase("没有直接回答，但对回答作了解释或补充", "explains or adds to the answer"))


def answering(questions: Sequence[str], texts: Sequence[str]) -> list[bool]:
    """Whether each text answers one of the questions."""
    if not texts:
        return []
    odds = iter(_odds([(question, text) for text in texts for question in questions]))
    found = [[_answers(next(odds)) for _ in questions] for _ in texts]
    return [any(one) for one in found]


def _answers(odds: Sequence[float]) -> bool:
    return odds[0] >= ANSWERS and odds[0] + odds[1] >= ON_TOPIC


def on_topic(question: str, texts: Sequence[str]) -> list[bool]:
    """Whether each sentence answers the question or helps to; courtesy does not, nor does what stands apart."""
    odds = _odds([(question, text) for text in texts])
    return [_is_on(question, text, found) for text, found in zip(texts, odds, strict=True)]


def _is_on(question: str, text: str, odds: Sequence[float]) -> bool:
    if yes_or_no(text) is not None:
        return True
    if is_fallback(text, question):
        # 退款多久我不清楚 speaks of what is asked; 我还在学习 could decline any question.
        return bool(words(question) & words(text))
    return kind_of(text, question) not in UNINFORMATIVE and odds[0] + odds[1] >= ON_TOPIC


def question_parts(question: str) -> list[str]:
    """The several things that one question asks; none where it asks one."""
    parts = [part.strip() for part in PARTS.split(question) if len(part.strip()) > 3]
    return parts[:MOST_PARTS] if len(parts) > 1 else []


def best_sentences(question: str, passages: Sequence[str], most: int = 2) -> list[Ranked]:
    """The few sentences of the passages that answer the question, best first; none where nothing does."""
    return [one for one in distinct(_ranked(question, passages)) if one.odds >= ANSWERS][:most]


def odds_of_answer(question: str, passage: str) -> float:
    """The odds that some sentence of a passage answers the question."""
    return max((one.odds for one in _ranked(question, [passage])), default=0.0) if question.strip() else 0.0


def _ranked(question: str, passages: Sequence[str]) -> list[Ranked]:
    found: dict[str, int] = {}
    for passage, whole in enumerate(passages):
        for sentence in cut(whole):
            if len(found) < MOST_SENTENCES and words(sentence):
                found.setdefault(sentence, passage)
    texts = _nearest(question, list(found))
    graded = zip(texts, _odds([(question, text) for text in texts]), strict=True)
    return sorted((Ranked(text, found[text], odds[0]) for text, odds in graded), key=lambda one: -one.odds)


def _nearest(question: str, texts: list[str]) -> list[str]:
    asked = words(question)
    return sorted(texts, key=lambda text: -len(words(text) & asked))[:GRADED] if len(texts) > GRADED else texts


def distinct(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Each said once: of two that share nearly all of their words and figures, the first."""
    kept: list[Ranked] = []
    for one in ranked:
        if not any(_say_the_same(one.text, other.text) for other in kept):
            kept.append(one)
    return kept


def _say_the_same(one: str, other: str) -> bool:
    own, others = words(one), words(other)
    return len(own & others) >= SAME * max(len(own), len(others), 1) and not missing(one, [other])
