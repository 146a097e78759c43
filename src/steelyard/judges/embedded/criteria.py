"""The tasks `rubric.judge`, `rubric.dialogue` and `pairwise.judge`: what can be told by code or by reading passages.

Of a rubric, yes-or-no questions about form; of two answers, which one the passages contradict. The rest is left open.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from steelyard.judges.embedded.atomic import atom_verdicts
from steelyard.judges.embedded.network import Reader
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.support import PassageReading
from steelyard.protocols.rules import Ruling, rule_on
from steelyard.records import Numbered
from steelyard.tasks import (
    AtomVerdict,
    PairData,
    PairReply,
    PairVerdict,
    RubricData,
    RubricDialogueData,
    RubricReply,
    RubricVerdict,
    Unsure,
)

# --- a user's own criteria -------------------------------------------------------------------------

PLAIN = re.compile(r"(.+) [|] (?:labels: |标签：)yes; no", re.DOTALL)
# A question as the demand that the rules read. English asks with the verb in front, Chinese with 是否 or 吗.
ASKED_EN = "(the answer|it|all answers|the answers) (.+?)[?？]?"
QUESTIONS = (
    (re.compile(f"(?:Is|Are) {ASKED_EN}", re.IGNORECASE), r"The answer must be \2"),
    (re.compile(f"(?:Does|Do) {ASKED_EN}", re.IGNORECASE), r"The answer must \2"),
    (re.compile(r"(回答|答案)?是否(.+?)[?？]?"), r"回答\2"),
    (re.compile(r"(回答|答案)(.+?)吗[?？]?"), r"回答\2"),
)
NOT_FORM = {
    "en": "this judge decides only questions of form, such as lengths, counts, words and JSON",
    "zh": "本评判者只判断形式问题，如长度、数量、用词和 JSON",
}


def rubric(data: RubricData | RubricDialogueData, language: PromptLanguage, reader: Reader | None) -> RubricReply:
    answers = (data.answer,) if isinstance(data, RubricData) else tuple(turn.answer for turn in data.turns)
    verdicts: list[RubricVerdict] = []
    open_: list[Unsure] = []
    for criterion in data.criteria:
        rulings = [ruling for answer in answers if (ruling := _ruling(criterion.text, answer))]
        if not rulings or len(rulings) < len(answers):
            open_.append(Unsure(items="criteria", id=criterion.id, reason=NOT_FORM[language]))
            continue
        # One answer of a dialogue that does not do it decides.
        decisive = next((ruling for ruling in rulings if not ruling.satisfied), rulings[0])
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


# --- two answers -----------------------------------------------------------------------------------

# How the aspect begins that can be decided by reading.
CORRECTNESS = ("correctness", "正确性")
NOT_CONTRADICTED = (
    "本评判者只在参考资料与其中一个回答矛盾时比较正确性，其余不判断",
    "this judge compares correctness only, and only where the passages contradict one of the answers",
)


class _Checked(NamedTuple):
    """An answer, its statements that the passages contradict, and whether they support any."""

    answer: str
    texts: dict[int, str]
    wrong: list[AtomVerdict]
    is_supported: bool


def pairwise(data: PairData, language: PromptLanguage, reader: Reader | None) -> PairReply:
    phrase = Phrasing(language, data.question, data.first, data.second, sources=data.references)
    wanted = [one.id for one in data.criteria if one.text.startswith(CORRECTNESS)] if data.references else []
    found = _compared(data, phrase, reader) if wanted else None
    given = [found.model_copy(update={"id": id}) for id in wanted if found]
    told = {one.id for one in given}
    reason = phrase(*NOT_CONTRADICTED)
    open_ = [Unsure(items="criteria", id=one.id, reason=reason) for one in data.criteria if one.id not in told]
    return PairReply(criteria=given, unsure=open_)


def _compared(data: PairData, phrase: Phrasing, reader: Reader | None) -> PairVerdict | None:
    """Which of the two is more correct, where exactly one of them is contradicted and the other one supported."""
    reading = PassageReading(data.references, phrase, reader)
    first, second = (_checked(answer, data.question, reading, phrase) for answer in (data.first, data.second))
    if second.wrong and not first.wrong and first.is_supported:
        return _preferred("first", second, phrase)
    if first.wrong and not second.wrong and second.is_supported:
        return _preferred("second", first, phrase)
    return None


def _preferred(better: Literal["first", "second"], other: _Checked, phrase: Phrasing) -> PairVerdict:
    seen = other.wrong[0]
    claim = other.texts[seen.id]
    said = phrase("另一个回答说“{claim}”：", 'the other answer says "{claim}": ', claim=claim)
    quote = claim if claim in other.answer else None
    return PairVerdict(id=0, quote=quote, reason=said + seen.reason, label=better, confidence=seen.confidence)


def _checked(answer: str, question: str, reading: PassageReading, phrase: Phrasing) -> _Checked:
    atoms = [Numbered(id=atom.id, text=atom.text) for atom in split(answer, question)]
    verdicts = atom_verdicts(atoms, answer, question, reading, phrase)
    wrong = [one for one in verdicts if one.label == "wrong"]
    return _Checked(
        answer, {atom.id: atom.text for atom in atoms}, wrong, any(one.label == "correct" for one in verdicts)
    )
