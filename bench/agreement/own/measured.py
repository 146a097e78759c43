"""What a judge makes of our own three sets: shares, each beside the errors it stands against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agreement.asking import Progress, Reasons, answers_to
from agreement.cases import Case, Wanted, atomic_ask
from agreement.measures import Figure, Outcome, share
from steelyard.evaluation import evaluate_async
from steelyard.judges.base import Judge
from steelyard.records import Atom, Criterion, DialogueSample, RagSample, Turn, Verdict

from .careful import careful_claims
from .good_dialogues import good_dialogues
from .short_answers import short_answers

Result = dict[str, Any]
DATE = "2026-03-02"


async def short_answers_measured(judge: Judge, workers: int, progress: Progress, reasons: Reasons) -> Result:
    """Right short answers found right (every statement correct, and one that answers), and wrong ones passed."""
    asked = list(short_answers())
    samples = [
        RagSample(id=f"{one.id} {side}", question=one.question, references=one.passages, answer=answer)
        for one in asked
        for side, answer in (("right", one.right), ("wrong", one.wrong))
    ]
    verdicts = await evaluate_async(samples, "atomic", judge, options={"date": DATE}, concurrency=workers)
    by_id = {verdict.id: verdict for verdict in verdicts}
    groups = {}
    for name, own in _by_language(asked, lambda one: one.script):
        groups[name] = _dicts({
            "right ones found right": _share([_is_right(by_id[f"{one.id} right"]) for one in own]),
            "right ones called on topic": _share([_answers(by_id[f"{one.id} right"]) for one in own]),
            "wrong ones passed": _share([_is_right(by_id[f"{one.id} wrong"]) for one in own]),
        })  # fmt: skip
    return {"n": len(samples), "groups": groups}


def _is_right(verdict: Verdict) -> bool:
    atoms = [item for item in verdict.items if isinstance(item, Atom)]
    return bool(atoms) and all(atom.label == "correct" for atom in atoms) and _answers(verdict)


def _answers(verdict: Verdict) -> bool:
    return any(item.level == 1 for item in verdict.items if isinstance(item, Atom))


async def careful_measured(judge: Judge, workers: int, progress: Progress, reasons: Reasons) -> Result:
    """Right claims in other words, and wrong ones in the passages' own, that are called correct."""
    claims = list(careful_claims())
    cases = [
        Case(
            atomic_ask(one.subject, one.passages, one.claim, [one.claim]),
            (Wanted(one.id, one.id, (1,), one.error or "right"),),
        )
        for one in claims
    ]
    answers = await answers_to(cases, judge, workers, progress, reasons)
    said = {answer.wanted.id: answer.said[0].label if answer.said else "unjudged" for answer in answers}
    groups = {}
    for name, own in _by_language(claims, lambda one: one.script):
        groups[name] = _dicts({
            "right ones called correct": _share([said[one.id] == "correct" for one in own if one.right]),
            "wrong ones called correct": _share([said[one.id] == "correct" for one in own if not one.right]),
        })  # fmt: skip
    return {"n": len(claims), "groups": groups}


async def dialogues_measured(judge: Judge, workers: int, progress: Progress, reasons: Reasons) -> Result:
    """Criteria of good dialogues that are called violated or baseless; all are valid and met."""
    dialogues = list(good_dialogues())
    samples = [
        DialogueSample(
            id=one.id,
            system_prompt=one.system_prompt,
            turns=tuple(
                Turn(prompt=turn.prompt, answer=turn.answer, criteria=tuple(each.text for each in turn.criteria))
                for turn in one.turns
            ),
        )
        for one in dialogues
    ]
    verdicts = {
        verdict.id: verdict for verdict in await evaluate_async(samples, "dialogue", judge, concurrency=workers)
    }
    groups = {}
    for name, own in _by_language(dialogues, lambda one: one.script):
        found = [item for one in own for item in verdicts[one.id].items if isinstance(item, Criterion)]
        groups[name] = _dicts({
            "violated or baseless": _share([item.result in ("不符合", "不确定") for item in found]),
            "left open": _share([item.result is None for item in found]),
        })  # fmt: skip
    return {"n": sum(len(verdict.items) for verdict in verdicts.values()), "groups": groups}


MEASURED = {
    "short answers": short_answers_measured,
    "careful claims": careful_measured,
    "good dialogues": dialogues_measured,
}


def _by_language(found: Sequence[Any], script: Callable[[Any], str]) -> list[tuple[str, list[Any]]]:
    english = [one for one in found if script(one) == "en"]
    return [("all", list(found)), ("en", english), ("zh", [one for one in found if script(one) != "en"])]


def _share(found: Sequence[bool]) -> Figure:
    return share([Outcome("", str(one), str(at)) for at, one in enumerate(found)], lambda one: one.said == "True")


def _dicts(figures: dict[str, Figure]) -> Result:
    return {name: found.as_dict() for name, found in figures.items()}
