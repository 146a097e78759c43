"""Criteria of a rubric: yes-or-no questions about form that code can decide. The rest is left open."""

from __future__ import annotations

import re
from typing import Literal

from steelyard.protocols.rules import Ruling, rule_on
from steelyard.tasks import RubricData, RubricDialogueData, RubricReply, RubricVerdict, Unsure

PLAIN = re.compile(r"(.+) [|] (?:labels: |标签：)yes; no", re.DOTALL)
# A question as the demand that the rules read. English asks with the verb in front, Chinese with 是否 or 吗.
QUESTIONS = (
    (
        re.compile(r"(?:Is|Are) (the answer|it|all answers|the answers) (.+?)[?？]?", re.IGNORECASE),
        r"The answer must be \2",
    ),
    (
        re.compile(r"(?:Does|Do) (the answer|it|all answers|the answers) (.+?)[?？]?", re.IGNORECASE),
        r"The answer must \2",
    ),
    (re.compile(r"(回答|答案)?是否(.+?)[?？]?"), r"回答\2"),
    (re.compile(r"(回答|答案)(.+?)吗[?？]?"), r"回答\2"),
)
BEYOND = {
    "en": "this judge decides only questions of form, such as lengths, counts, words and JSON",
    "zh": "本评判者只判断形式问题，如长度、数量、用词和 JSON",
}


def judge(data: RubricData, language: Literal["zh", "en"], _: object = None) -> RubricReply:
    return _reply(data, (data.answer,), language)


def dialogue(data: RubricDialogueData, language: Literal["zh", "en"], _: object = None) -> RubricReply:
    return _reply(data, tuple(turn.answer for turn in data.turns), language)


def _reply(
    data: RubricData | RubricDialogueData, answers: tuple[str, ...], language: Literal["zh", "en"]
) -> RubricReply:
    verdicts: list[RubricVerdict] = []
    open_: list[Unsure] = []
    for criterion in data.criteria:
        rulings = [_ruling(criterion.text, answer) for answer in answers]
        known = [ruling for ruling in rulings if ruling]
        if not known or len(known) < len(rulings):
            open_.append(Unsure(items="criteria", id=criterion.id, reason=BEYOND[language]))
            continue
        # One answer of a dialogue that does not do it decides.
        decisive = next((ruling for ruling in known if not ruling.satisfied), known[0])
        label = "yes" if decisive.satisfied else "no"
        verdicts.append(RubricVerdict(id=criterion.id, reason=decisive.reason, label=label, confidence=1.0))
    return RubricReply(criteria=verdicts, unsure=open_)


def _ruling(criterion: str, answer: str) -> Ruling | None:
    plain = PLAIN.fullmatch(criterion)
    if not plain:
        return None
    for question, demand in QUESTIONS:
        if asked := question.fullmatch(plain[1]):
            return rule_on(asked.expand(demand), answer)
    return None
