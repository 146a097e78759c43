"""Changes to a sample before it is judged again, with the new places of its parts. Pure.

A change that cannot be made to a sample (one passage has no other order) gives None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from steelyard.records import DialogueSample, RagSample, Sample, Turn
from steelyard.text import language_of, script_votes, sentences
from steelyard.trust.audit.suite import Harmless, Place, in_script

CriterionAt = tuple[int, int]
"""The number of a turn, and of a criterion in it."""


@dataclass(frozen=True)
class Variant:
    """A sample as the judge sees it. Its parts are named by their numbers in the original; what is new has none."""

    sample: Sample
    sentences: tuple[int | None, ...] = ()
    passages: tuple[int | None, ...] = ()
    criteria: tuple[tuple[CriterionAt, CriterionAt], ...] = ()


def plain(sample: Sample) -> Variant:
    """The sample as it is."""
    if isinstance(sample, DialogueSample):
        return Variant(sample, criteria=_criteria(sample))
    return Variant(sample, tuple(range(len(sentences(sample.answer)))), tuple(range(len(sample.references))))


def _criteria(sample: DialogueSample, shift: int = 0) -> tuple[tuple[CriterionAt, CriterionAt], ...]:
    return tuple(
        ((turn, id), (turn - shift, id))
        for turn, exchange in enumerate(sample.turns, start=1)
        for id in range(1, len(exchange.criteria) + 1)
    )


def _matched(own: Sequence[str], now: Sequence[str]) -> tuple[int | None, ...]:
    """Which of one's own sentences each of these is, in order."""
    found: list[int | None] = []
    at = 0
    for sentence in now:
        is_own = at < len(own) and sentence == own[at]
        found.append(at if is_own else None)
        at += is_own
    return tuple(found)


# --- a text put into it: attacks, and harmless ones of the same size -------------------------------


def with_text(sample: Sample, text: str, place: Place, at: Literal["start", "end"]) -> Variant | None:
    """The sample with a text in its answer, in its first passage, or in its question.

    In a dialogue it is the first turn that has criteria; a passage or question is there what the user says. Only a
    dialogue has a system prompt, and criteria, of which the text becomes one more.
    """

    def joined(whole: str) -> str:
        return f"{text}\n{whole}" if at == "start" else f"{whole}\n{text}"

    if isinstance(sample, DialogueSample):
        number = next((n for n, turn in enumerate(sample.turns) if turn.criteria), None)
        if number is None:
            return None
        if place == "system_prompt":
            changed_prompt = joined(sample.system_prompt)
            return Variant(sample.model_copy(update={"system_prompt": changed_prompt}), criteria=_criteria(sample))
        turn, criteria = sample.turns[number], _criteria(sample)
        if place == "criterion":
            changed = turn.model_copy(
                update={"criteria": (text, *turn.criteria) if at == "start" else (*turn.criteria, text)}
            )
            if at == "start":
                criteria = tuple((_after(now, number + 1), own) for now, own in criteria)
        else:
            field = "answer" if place == "answer" else "prompt"
            changed = turn.model_copy(update={field: joined(getattr(turn, field))})
        turns = (*sample.turns[:number], changed, *sample.turns[number + 1 :])
        return Variant(sample.model_copy(update={"turns": turns}), criteria=criteria)
    if place in ("system_prompt", "criterion"):
        return None
    before = plain(sample)
    if place == "answer":
        answer = joined(sample.answer)
        places = _matched(sentences(sample.answer), sentences(answer))
        return Variant(sample.model_copy(update={"answer": answer}), places, before.passages)
    if place == "question":
        return Variant(
            sample.model_copy(update={"question": joined(sample.question)}), before.sentences, before.passages
        )
    if not sample.references:
        return None
    references = (joined(sample.references[0]), *sample.references[1:])
    return Variant(sample.model_copy(update={"references": references}), before.sentences, before.passages)


def _after(at: CriterionAt, turn: int) -> CriterionAt:
    """Where a criterion stands once there is one more before those of a turn."""
    return (at[0], at[1] + 1) if at[0] == turn else at


def harmless_text(like: str, harmless: Harmless) -> str:
    """Harmless sentences about as long as this text, never shorter."""
    gap = "" if language_of(harmless.answer) != "en" else " "
    found: list[str] = []
    while len(gap.join(found)) < len(like):
        found.append(harmless.sentences[len(found) % len(harmless.sentences)])
    return gap.join(found)


# --- what should change no label -------------------------------------------------------------------


def reordered(sample: Sample, harmless: Harmless) -> Variant | None:
    """Passages in the opposite order; in a dialogue the criteria of each turn."""
    if isinstance(sample, DialogueSample):
        if all(len(turn.criteria) < 2 for turn in sample.turns):
            return None
        turns = tuple(turn.model_copy(update={"criteria": turn.criteria[::-1]}) for turn in sample.turns)
        criteria = tuple(
            ((turn, id), (turn, len(exchange.criteria) + 1 - id))
            for turn, exchange in enumerate(sample.turns, start=1)
            for id in range(1, len(exchange.criteria) + 1)
        )
        return Variant(sample.model_copy(update={"turns": turns}), criteria=criteria)
    if len(sample.references) < 2:
        return None
    before = plain(sample)
    return Variant(
        sample.model_copy(update={"references": sample.references[::-1]}), before.sentences, before.passages[::-1]
    )


def padded(sample: Sample, harmless: Harmless) -> Variant | None:
    """Passages about something else around one's own; in a dialogue an earlier exchange about something else."""
    if isinstance(sample, DialogueSample):
        turns = (Turn(prompt=harmless.prompt, answer=harmless.answer), *sample.turns)
        changed = sample.model_copy(update={"turns": turns})
        return Variant(changed, criteria=_criteria(changed, shift=1))
    if not sample.references:
        return None
    first, *rest = harmless.passages
    references = (first, *sample.references, *rest)
    places = (None, *range(len(sample.references)), *(None for _ in rest))
    return Variant(sample.model_copy(update={"references": references}), plain(sample).sentences, places)


def padded_answer(sample: Sample, harmless: Harmless) -> Variant | None:
    """Two sentences about something else after the answer. In a dialogue they could break a criterion by themselves."""
    if isinstance(sample, DialogueSample):
        return None
    gap = "" if language_of(harmless.answer) != "en" else " "
    return with_text(sample, gap.join(harmless.sentences[:2]), "answer", "end")


def reworded(sample: Sample, words: Sample) -> Variant | None:
    """The same sentences in other words, one for one."""
    if isinstance(sample, DialogueSample) or isinstance(words, DialogueSample):
        return plain(words)
    if len(sentences(words.answer)) != len(sentences(sample.answer)):
        return None
    return plain(words)


WIDE = {ord("0") + n: ord("０") + n for n in range(10)}


def resurfaced(sample: Sample, harmless: Harmless) -> Variant | None:
    """For samples that nobody paraphrased: every sentence on a line of its own, digits full-width in Chinese.

    A line or a wide digit may be what a criterion is about, so dialogues are left alone.
    """
    if isinstance(sample, DialogueSample):
        return None
    said = sentences(sample.answer)
    answer = "\n".join(said)
    if language_of(sample.answer) != "en":
        answer = answer.translate(WIDE)
    if answer == sample.answer or len(sentences(answer)) != len(said):
        return None
    return Variant(sample.model_copy(update={"answer": answer}), tuple(range(len(said))), plain(sample).passages)


def in_other_script(sample: Sample, harmless: Harmless) -> Variant | None:
    """Simplified Chinese in Traditional characters, or the other way round: all of it, also the question."""
    votes = script_votes(sample.model_dump_json(exclude={"id", "tags", "model"}))
    if not any(votes):
        return None
    said = sample.model_dump(exclude={"id", "tags", "model"})
    kept = {"id": sample.id, "tags": sample.tags, "model": sample.model}
    changed = type(sample).model_validate(
        in_script(said, "t2s" if votes.traditional > votes.simplified else "s2t") | kept
    )
    return reworded(sample, changed)


# --- a single error, planted by code ---------------------------------------------------------------

# Where a number stands for a quantity that the passage states in the very same words, and nothing else.
QUANTITY = re.compile(
    r"(?<![A-Za-z0-9_.,:/#第-])(\d{1,6}(?:,\d{3})*(?:\.\d+)?)(?=[ \u3400-\u9fff%])(?! ?[号號月日点點时時年世届屆期版])"
)
# Line 3, Article 12: part of a name.
NAME_BEFORE = re.compile(r"(?<![A-Za-z])[a-z]*+[A-Z][A-Za-z]*+[ -]\Z")
LONGEST_NAME = 60
# Every error is a sample of its own; so many sentences have enough for one answer, whatever its length.
MOST_SENTENCES = 100
YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20[0-4]\d)(?=年|[ .,;)]|$)")
UNITS = {
    "kilometres": "metres", "kilometers": "meters", "km": "mm", "kilograms": "grams", "kg": "mg", "hours": "seconds",
    "litres": "millilitres", "liters": "milliliters", "公里": "毫米", "千米": "毫米", "公斤": "毫克", "千克": "毫克",
    "小时": "秒钟", "小時": "秒鐘", "分钟": "年", "分鐘": "年",
}  # fmt: skip
UNIT = re.compile(rf"(?<=\d)( ?)({'|'.join(sorted(UNITS, key=len, reverse=True))})(?![A-Za-z])")


def planted(sample: RagSample) -> list[tuple[str, int, RagSample]]:
    """Errors that code can plant safely: kind, sentence, and the sample with that sentence changed.

    Only what a passage states in the same words is changed: a year by 37, a number by a factor of 1,000, a unit
    into one that is at least a thousand times as large or small.
    """
    found: list[tuple[str, int, RagSample]] = []
    whole, own = "\n".join(sample.references), sentences(sample.answer)
    for number, sentence in enumerate(own[:MOST_SENTENCES]):
        wrongs = _wrong(sentence, whole)
        if not wrongs or sample.answer.count(sentence) != 1:
            continue
        for kind, wrong in wrongs:
            answer = sample.answer.replace(sentence, wrong)
            if len(sentences(answer)) == len(own):
                found.append((kind, number, sample.model_copy(update={"answer": answer})))
    return found


def _wrong(sentence: str, passages: str) -> list[tuple[str, str]]:
    found = []
    if (year := YEAR.search(sentence)) and year[0] in passages:
        shifted = int(year[0]) - 37
        found.append(("date", sentence[: year.start()] + str(shifted) + sentence[year.end() :]))
    for number in QUANTITY.finditer(sentence):
        around = sentence[number.start() : number.end() + 2]
        if YEAR.match(number[0]) or around not in passages or _follows_name(sentence, number.start()):
            continue
        grown = f"{float(number[1].replace(',', '')) * 1000:.0f}"
        found.append(("number", sentence[: number.start()] + grown + sentence[number.end() :]))
        break
    if (unit := UNIT.search(sentence)) and sentence[max(0, unit.start() - 3) : unit.end()] in passages:
        found.append(("unit", sentence[: unit.start(2)] + UNITS[unit[2]] + sentence[unit.end() :]))
    return found


def _follows_name(sentence: str, at: int) -> bool:
    return bool(NAME_BEFORE.search(sentence, max(0, at - LONGEST_NAME), at))
