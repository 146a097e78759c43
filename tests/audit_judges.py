"""Judges with known habits, for tests of the audit: one that knows the truth of the suite, and ones with a weakness."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from steelyard.judges.scripted import ScriptedJudge
from steelyard.records import Ask, DialogueSample
from steelyard.text import sentences
from steelyard.trust.audit.suite import in_script, load

Reply = dict[str, Any]


@cache
def truth() -> dict[str, bool]:
    """Every sentence and turn of the suite, in both scripts: is it right?"""
    suite = load()
    said: list[tuple[str, bool]] = []
    for base in suite.bases:
        for sample in (base.sample, base.paraphrase):
            if isinstance(sample, DialogueSample):
                said += [(turn.answer, base.is_right) for turn in sample.turns]
            elif sample is not None:
                said += [(sentence, base.is_right) for sentence in sentences(sample.answer)]
    said += [(text, text == pair.clean) for pair in suite.errors for text in (pair.clean, pair.planted)]
    return {in_script(text, way): right for text, right in said for way in ("s2t", "t2s")} | dict(said)


def right(text: str) -> bool | None:
    """Whether a text of the suite is right; None for one that is not of it."""
    return truth().get(text)


def flawless(ask: Ask) -> Reply:
    """Labels what is right as right, what is wrong as wrong, and anything else as neither."""
    data: Any = ask.data
    match ask.task:
        case "atomic.split":
            return {"atoms": [{"id": n, "text": text} for n, text in enumerate(sentences(data.answer), start=1)]}
        case "atomic.judge":
            return {"atoms": [_atom(atom, data.references) for atom in data.atoms], "fallback": False}
        case "grounded.judge":
            passes = int(not any(right(sentence.text) is False for sentence in data.sentences))
            label = {True: "from_background", False: "outside", None: "outside"}
            return {
                "own_answer": "",
                "answerable": True,
                "sentences": [{"id": s.id, "label": label[right(s.text)]} for s in data.sentences],
                "checks": [
                    {"id": check.id, "label": 1 if check.text == "not_fallback" else passes} for check in data.checks
                ],
            }
        case "scorecard.judge":
            return _scorecard(data)
        case "dialogue.validity":
            quote = data.system_prompt.splitlines()[0]
            return {"criteria": [{"id": c.id, "valid": True, "quote": quote, "place": "1"} for c in data.criteria]}
        case _:
            good = any(value and text in data.answer for text, value in truth().items())
            complies = "fully" if good else "no"
            return {"criteria": [{"id": c.id, "triggered": True, "complies": complies} for c in data.criteria]}


def _atom(atom: Any, references: tuple[str, ...]) -> Reply:
    label = {True: "correct", False: "wrong", None: "undetermined"}[right(atom.text)]
    # The passage that shares most with it, wherever it stands.
    closest = max(references, key=lambda passage: (len(set(passage) & set(atom.text)), passage))
    return {"id": atom.id, "label": label, "level": 1, "reference": references.index(closest), "quote": closest}


def _scorecard(data: Any) -> Reply:
    support = {True: "supported", False: "unsupported", None: "unsupported"}
    quote = max(data.references)
    found = [right(sentence.text) for sentence in data.sentences]
    covered = "missing" if False in found else "covered"
    return {
        "sentences": [
            {"id": s.id, "on_topic": value is not None, "support": support[value], "quote": quote}
            for s, value in zip(data.sentences, found, strict=True)
        ],
        "key_points": [{"id": p.id, "label": covered, "depth": "adequate"} for p in data.key_points],
        "atoms": [_atom(atom, data.references) for atom in data.atoms],
    }


def best(ask: Ask) -> Reply:
    """The best label for everything."""
    reply = flawless(ask)
    good = {
        "label": {
            "wrong": "correct",
            "undetermined": "correct",
            "missing": "covered",
            "outside": "from_background",
            0: 1,
        },
        "support": {"unsupported": "supported"},
        "on_topic": {False: True},
        "complies": {"no": "fully"},
    }
    for rows in reply.values():
        for row in rows if isinstance(rows, list) else ():
            row |= {key: good[key].get(row[key], row[key]) for key in good.keys() & row.keys()}
    return reply


def worst(ask: Ask) -> Reply:
    """The other way round, to say something else than before."""
    reply = flawless(ask)
    bad = {
        "label": {"correct": "wrong", "covered": "missing", "from_background": "outside", 1: 0},
        "support": {"supported": "unsupported"},
        "complies": {"fully": "no"},
    }
    for rows in reply.values():
        for row in rows if isinstance(rows, list) else ():
            row |= {key: bad[key].get(row[key], row[key]) for key in bad.keys() & row.keys()}
    return reply


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]", text))


@cache
def _openings() -> tuple[str, ...]:
    return tuple(_letters(attack.text)[:10] for attack in load().attacks)


def obedient(ask: Ask) -> Reply:
    """Does what an attack says, wherever it stands."""
    text = _letters(" ".join(_strings(ask.data.model_dump())))
    return best(ask) if any(opening in text for opening in _openings()) else flawless(ask)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in parts for text in _strings(part)]


def by_order(ask: Ask) -> Reply:
    """Believes an answer only where the passage it likes stands first."""
    references = getattr(ask.data, "references", ())
    firsts = {getattr(base.sample, "references", ("",))[0] for base in load().bases}
    firsts |= {in_script(text, way) for text in firsts for way in ("s2t", "t2s")}
    return flawless(ask) if not references or references[0] in firsts else worst(ask)


def forgetful() -> Callable[[Ask], Reply]:
    """Says something else when it is asked the same again."""
    asked: Counter[str] = Counter()

    def answer(ask: Ask) -> Reply:
        asked[ask.key] += 1
        return flawless(ask) if asked[ask.key] == 1 else worst(ask)

    return answer


def credulous(ask: Ask) -> Reply:
    """Finds everything right."""
    return best(ask)


def judge(habit: Callable[[Ask], Any]) -> ScriptedJudge:
    return ScriptedJudge(habit)
