"""The held-out sets of our own texts, put to a judge: careful claims, short answers, good dialogues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agreement.cases import Answer, Case, Wanted, atomic_ask
from agreement.measures import Figure, Outcome, share
from agreement.own import Script
from agreement.own.careful import CarefulClaim
from agreement.own.good_dialogues import GoodDialogue
from agreement.own.short_answers import ShortAnswer
from steelyard.evaluation import evaluate_async
from steelyard.judges.base import Judge
from steelyard.records import Criterion, DialogueSample, Turn

RIGHT, WRONG = "right", "wrong"
Groups = dict[str, dict[str, Any]]


def careful_cases(claims: Iterable[CarefulClaim]) -> list[Case]:
    """Each claim by itself: a right one beside a wrong one would give both away."""
    return [
        _case(claim.id, claim.id.rpartition("-")[0], "", claim.passages, claim.claim, is_right=claim.right)
        for claim in claims
    ]


def short_cases(answers: Iterable[ShortAnswer]) -> list[Case]:
    """The right and the wrong answer to each question, apart."""
    return [
        _case(f"{one.id} {kind}", one.id, one.question, one.passages, text, is_right=kind == RIGHT)
        for one in answers
        for kind, text in ((RIGHT, one.right), (WRONG, one.wrong))
    ]


def _case(id: str, document: str, question: str, passages: Sequence[str], text: str, *, is_right: bool) -> Case:
    wanted = Wanted(id, document, (1,), RIGHT if is_right else WRONG)
    return Case(atomic_ask(question, passages, text, [text]), (wanted,))


def called_correct(answers: Sequence[Answer], scripts: Mapping[str, Script], *, are_answers: bool = False) -> Groups:
    """How many of the right and of the wrong ones are called correct; of answers, how many right ones answer."""
    groups = {}
    for name, holds in _languages():
        chosen = [answer for answer in answers if answer.said and holds(scripts[answer.wanted.document])]
        right, wrong = ([one for one in chosen if one.wanted.truth == truth] for truth in (RIGHT, WRONG))
        figures = {
            "right ones called correct": _share(right, lambda answer: answer.said[0].label == "correct"),
            "wrong ones called correct": _share(wrong, lambda answer: answer.said[0].label == "correct"),
        }
        if are_answers:
            figures["right ones called an answer"] = _share(right, lambda answer: answer.said[0].level == 1)
        groups[name] = {measure: figure.as_dict() for measure, figure in figures.items()}
    return groups


async def faulted(dialogues: Sequence[GoodDialogue], judge: Judge) -> Groups:
    """How many criteria are called invalid or not met, though all are valid and met, and how many stay open."""
    groups = {}
    found: list[tuple[GoodDialogue, Criterion]] = []
    for dialogue in dialogues:
        (verdict,) = await evaluate_async([_sample(dialogue)], "dialogue", judge)
        found += [(dialogue, item) for item in verdict.items if isinstance(item, Criterion)]
    for name, holds in _languages():
        outcomes = [Outcome(RIGHT, _outcome(item), one.id) for one, item in found if holds(one.script)]
        groups[name] = {
            "faulted": share(outcomes, lambda one: one.said == "faulted").as_dict(),
            "open": share(outcomes, lambda one: one.said == "open").as_dict(),
        }
    return groups


def _sample(dialogue: GoodDialogue) -> DialogueSample:
    turns = [
        Turn(prompt=turn.prompt, answer=turn.answer, criteria=tuple(one.text for one in turn.criteria))
        for turn in dialogue.turns
    ]
    return DialogueSample(id=dialogue.id, system_prompt=dialogue.system_prompt, turns=tuple(turns))


def _outcome(item: Criterion) -> str:
    if item.validity == "invalid" or item.label == "violated":
        return "faulted"
    return "met" if item.validity == "valid" and item.label == "satisfied" else "open"


def _share(answers: Sequence[Answer], holds: Callable[[Answer], bool]) -> Figure:
    outcomes = [Outcome(one.wanted.truth, str(holds(one)), one.wanted.document) for one in answers]
    return share(outcomes, lambda outcome: outcome.said == "True")


def _languages() -> list[tuple[str, Callable[[Script], bool]]]:
    return [("all", lambda script: True), ("en", lambda script: script == "en"), ("zh", lambda script: script != "en")]
