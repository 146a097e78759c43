"""How a statement serves the question: answers it, supports an answer, or is beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from steelyard.judges.embedded.claims import is_fallback, kind_of
from steelyard.judges.embedded.meaning import plain, similarity, words
from steelyard.judges.embedded.outright import OUTRIGHT, is_yes
from steelyard.judges.embedded.questions import EXPLANATORY, Question, question_of
from steelyard.judges.embedded.voice import Voice, voice_for
from steelyard.judges.embedded.written import taken_up

Level = Literal[1, 2, 3]

# Strength is cosine and overlap, half each. All chosen on questions written for the purpose, in three scripts.
DIRECT = 0.6
CERTAIN = 0.75
BEST_DIRECT = 0.42
NEARLY_BEST = 0.05
ALONE = 0.33
TELLING = 0.22
TELLING_KINDS = ("price", "how_many", "when")
ON_TOPIC = 0.22
LINKED = 0.38
RELATED = 0.2
NEARBY = 0.17
APART = 0.08
"""The likeness of what is asked and what is said, both without the subject they share."""
TOPIC_SHARE = 0.6
MOST_NAMED = 4


class Graded(NamedTuple):
    level: Level
    reason: str


def level(question: str, atom: str, others: Sequence[str] = (), voice: Voice | None = None) -> Graded:
    """1 answers the question's intent, 2 indirect or explains what does, 3 extra or too thin to inform."""
    asked = question_of(question)
    voice = voice or voice_for(atom, question)
    kind = kind_of(atom, question)
    if asked.kind == "yes_no" and is_yes(atom) is not None:
        return Graded(1, voice("直接回答所问", "speaks directly to what is asked"))
    if kind in ("greeting", "meta", "question") or not words(atom):
        return Graded(3, voice("没有可以回答问题的信息", "tells nothing that could answer the question"))
    if _answers(asked, atom, others):
        shared = _shared(asked, atom, voice)
        if not shared:
            return Graded(1, voice("直接回答所问", "speaks directly to what is asked"))
        return Graded(1, voice("直接回答所问：{shared}", "speaks directly to what is asked: {shared}", shared=shared))
    likeness = _likeness(asked, atom, others)
    if asked.kind in EXPLANATORY:
        # Much can explain why or how; little bears on whether.
        near = (APART if asked.kind in ("why", "how") else NEARBY) <= likeness
        if kind != "opinion" and near and _follows(asked, atom, others):
            return Graded(2, voice("没有直接回答，但对回答作了解释或补充", "explains or adds to the answer"))
        return Graded(3, voice("与所问关系不大", "has little to do with what is asked"))
    if kind != "opinion" and likeness >= RELATED:
        return Graded(2, voice("没有直接回答，但与所问的方面有关", "bears on what is asked without answering it"))
    return Graded(3, voice("所问之外的信息", "is beyond what is asked"))


def _answers(asked: Question, atom: str, others: Sequence[str]) -> bool:
    """Whether an atom offers what is asked for, clearly or better than its neighbours."""
    strength, typed = strength_of(asked, atom), asked.typed(atom)
    if typed is False:
        # Whether and how can be answered in words that no list holds, but not when or how many.
        return asked.kind in EXPLANATORY and strength >= CERTAIN
    rivals = [strength_of(asked, other) for other in others if asked.typed(other) is not False]
    return strength >= DIRECT or BEST_DIRECT <= strength >= max(rivals, default=0.0) - NEARLY_BEST


def answers(question: str, text: str) -> bool:
    """Whether a text that stands alone answers the question; short answers leave out what the question named."""
    asked = question_of(question)
    if asked.kind == "yes_no" and OUTRIGHT.match(plain(text)):
        return True
    typed, strength = asked.typed(text), strength_of(asked, text)
    if typed is False:
        return asked.kind in EXPLANATORY and strength >= CERTAIN
    if typed and asked.kind in TELLING_KINDS:
        # 多少钱？ names nothing that an answer could take up.
        return len(asked.focus) <= 1 or strength >= TELLING
    return strength >= ALONE


def is_about(question: str, text: str) -> bool:
    """Whether a text is about what is asked, whether or not it answers it."""
    return strength_of(question_of(question), text) >= BEST_DIRECT


def on_topic(question: str, sentence: str, others: Sequence[str] = (), answered_by: Sequence[str] = ()) -> bool:
    """Whether a sentence answers the question or helps to; courtesy and what stands apart do not.

    `answered_by` are sentences known to answer it, whatever their words are.
    """
    asked = question_of(question)
    if asked.kind == "yes_no" and OUTRIGHT.match(plain(sentence)):
        return True
    if is_fallback(sentence):
        # 退款多久我不清楚 speaks of what is asked; 我还在学习 could decline any question.
        names_it = bool(set(words(question)) & set(words(sentence)))
        return names_it and (not asked.focus or strength_of(asked, sentence) >= ON_TOPIC)
    kind = kind_of(sentence, question)
    if kind in ("greeting", "meta", "question") or (kind == "opinion" and asked.kind not in EXPLANATORY):
        return False
    if not asked.focus:
        return bool(words(sentence))
    if sentence in answered_by or strength_of(asked, sentence) >= ON_TOPIC:
        return True
    # What goes on about the same thing as an answering sentence is still on the topic.
    answering = [other for other in others if other in answered_by or strength_of(asked, other) >= BEST_DIRECT]
    answering = [other for other in answering if other != sentence]
    return bool(answering) and float(similarity([sentence], answering).max()) >= LINKED


@lru_cache(maxsize=4096)
def strength_of(asked: Question, text: str) -> float:
    """How strongly a text bears on a question: by meaning and by words, half each."""
    cosine = float(similarity([asked.text], [text])[0, 0])
    return (max(cosine, 0.0) + asked.overlap(text)) / 2


def _follows(asked: Question, atom: str, others: Sequence[str]) -> bool:
    """Whether an atom is about the question, or goes on from an atom that is."""
    if strength_of(asked, atom) >= ON_TOPIC / 2:
        return True
    answering = [other for other in others if other != atom and strength_of(asked, other) >= BEST_DIRECT]
    return bool(answering) and float(similarity([atom], answering).max()) >= RELATED


def to_compare(question: str, atoms: Sequence[str], others: Sequence[Sequence[str]]) -> list[str]:
    """All texts whose meanings `level` will compare for these atoms."""
    asked = question_of(question)
    stripped = (text for atom, rest in zip(atoms, others, strict=True) for text in _apart(asked, atom, rest))
    return list(dict.fromkeys((asked.text, *atoms, *(text for rest in others for text in rest), *stripped)))


def _likeness(asked: Question, atom: str, others: Sequence[str]) -> float:
    """How near what is said comes to what is asked once the subject that all atoms share is left out of both."""
    about, said = _apart(asked, atom, others)
    return float(similarity([about], [said])[0, 0])


def _apart(asked: Question, atom: str, others: Sequence[str]) -> tuple[str, str]:
    """What is asked and what is said, without the subject that all atoms share."""
    spoken = [set(words(text)) for text in (atom, *others)]
    common = max(2, TOPIC_SHARE * len(spoken))
    shared = (word for word in asked.focus if word in asked.names or sum(word in said for said in spoken) >= common)
    # The longest first, always in one order: what is taken out may hold the next one.
    topic = sorted(shared, key=lambda word: (-len(word), word))
    said = _without(_own_part(atom, others), topic)
    return _without(asked.about, topic) or asked.about, said if words(said) else atom


def _own_part(atom: str, others: Sequence[str]) -> str:
    """The atom without the beginning it shares with a neighbour: the subject, which every atom repeats."""
    shared = max((_shared_length(atom, other) for other in others if other != atom), default=0)
    rest = atom[shared:].strip()
    return rest if words(rest) else atom


def _shared_length(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _without(text: str, topic: Sequence[str]) -> str:
    text = plain(text)
    for word in topic:
        text = re.sub(rf"\b{re.escape(word)}[a-z]*" if word.isascii() else word, " ", text)
    return " ".join(text.split())


def _shared(asked: Question, atom: str, voice: Voice) -> str:
    """A few words of the question that the atom takes up, as the atom writes them."""
    return ("、" if voice.chinese else " ").join(taken_up(atom, asked.focus)[:MOST_NAMED])
