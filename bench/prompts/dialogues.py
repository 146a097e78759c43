"""Dialogues whose labels are known because they were put together that way."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.records import DialogueSample, Turn

PARTS = Path(__file__).parent / "dialogues.toml"
TURNS = 2
RULES = 4


class Expected(NamedTuple):
    """What is right for one criterion of one turn; `satisfied` is null where the criterion is invalid."""

    turn: int
    criterion: str
    valid: bool
    satisfied: bool | None


class Dialogue(NamedTuple):
    sample: DialogueSample
    expected: tuple[Expected, ...]


def dialogues(language: str, count: int) -> Iterator[Dialogue]:
    """The first `count` dialogues; the same ones every time."""
    parts = tomllib.loads(PARTS.read_text("utf-8"))[language]
    for number in range(count):
        yield _dialogue(parts, language, number)


def _dialogue(parts: Mapping[str, Any], language: str, number: int) -> Dialogue:
    chance = random.Random(f"{language} {number}")
    rules = chance.sample(parts["rules"], RULES)
    listed = "\n".join(f"{index}. {rule['says']}" for index, rule in enumerate(rules, start=1))
    system_prompt = parts["template"].format(role=parts["roles"][number % len(parts["roles"])], rules=listed)
    turns: list[Turn] = []
    expected: list[Expected] = []
    for index in range(1, TURNS + 1):
        turn, labels = _turn(parts, rules, index, chance)
        turns.append(turn)
        expected += labels
    sample = DialogueSample(id=f"{language}-dialogue-{number}", system_prompt=system_prompt, turns=tuple(turns))
    return Dialogue(sample, tuple(expected))


def _turn(
    parts: Mapping[str, Any], rules: list[dict[str, Any]], index: int, chance: random.Random
) -> tuple[Turn, list[Expected]]:
    """One exchange: every second rule or so is broken, and one criterion has no basis, or only half of one."""
    occasions = [rule for rule in rules if "occasion" in rule]
    raised = chance.choice([*occasions, None])
    at = chance.randrange(len(parts["prompts"]))
    prompt = raised["occasion"] if raised else parts["prompts"][at]
    kept = {rule["criterion"]: chance.random() < 0.5 for rule in rules}
    said = [parts["openings"][at]] if not raised else []
    for rule in sorted(rules, key=lambda rule: rule.get("last", False)):
        if "occasion" not in rule or rule is raised:
            said.append(rule["keeps"] if kept[rule["criterion"]] else rule["breaks"])
    asked = chance.sample(rules, 2)
    labels = [
        Expected(index, rule["criterion"], True, kept[rule["criterion"]] or ("occasion" in rule and rule is not raised))
        for rule in asked
    ]
    labels.append(Expected(index, _groundless(parts, asked, chance), False, None))
    chance.shuffle(labels)
    criteria = tuple(label.criterion for label in labels)
    return Turn(prompt=prompt, answer=parts["joined"].join(said), criteria=criteria), labels


def _groundless(parts: Mapping[str, Any], asked: list[dict[str, Any]], chance: random.Random) -> str:
    if chance.random() < 0.5:
        return str(chance.choice(parts["strangers"]))
    content, _, kind = asked[0]["criterion"].rpartition(" | ")
    return f"{content}{parts['addition']} | {kind}"
