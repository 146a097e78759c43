"""`replay`: the one way a protocol is driven, whoever answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import steelyard
from steelyard import RagSample, ScriptedJudge
from steelyard.engine.runner import Runner, replay
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Reply, Unjudged, Usage, Verdict

SAMPLE = RagSample(id="1", question="When does it open?", answer="At nine.", references=("It opens at nine.",))
SCRIPT = {
    "atomic.split": {"atoms": [{"id": 1, "text": "It opens at nine."}]},
    "atomic.judge": {
        "atoms": [{"id": 1, "label": "correct", "level": 1, "reference": 0, "quote": "opens at nine"}],
        "fallback": False,
    },
}
PROTOCOL = get_protocol("atomic")
OPTIONS = PROTOCOL.parse_options({"date": "2026-03-02"})


async def test_it_gives_the_verdict_of_the_answers() -> None:
    """The rounds in their order, what all replies cost, and the same verdict as a run of the same judge has."""
    judge = ScriptedJudge(SCRIPT)
    rounds: list[list[str]] = []

    async def answer(asks: list[Ask]) -> list[Reply | Unjudged]:
        rounds.append([ask.task for ask in asks])
        return [await judge.answer(ask) for ask in asks]

    verdict = await replay(PROTOCOL, SAMPLE, answer, OPTIONS)
    assert rounds == [["atomic.split"], ["atomic.judge"]]
    assert (verdict.scores["accuracy"], verdict.usage, verdict.judge) == (1, Usage(calls=2), "")
    judged: list[Verdict] = []
    await Runner(PROTOCOL, OPTIONS, judge).run([(0, SAMPLE)], lambda seq, sample, found: judged.append(found))
    # A runner also notes how long it took.
    assert [one.model_copy(update={"notes": {}}) for one in judged] == [
        verdict.model_copy(update={"judge": "scripted"})
    ]


async def test_who_cannot_answer_ends_it() -> None:
    """What `answer` raises comes out as it is: a batch file without the reply, a run that was told to stop."""

    async def answer(asks: list[Ask]) -> list[Reply | Unjudged]:
        raise LookupError(asks[0].task)

    with pytest.raises(LookupError, match=r"atomic\.split"):
        await replay(PROTOCOL, SAMPLE, answer, OPTIONS)


def test_nothing_else_drives_a_protocol() -> None:
    """Generators of protocols are advanced in one place."""
    folder = Path(steelyard.__file__).parent
    driving = re.compile(r"rounds\.send\(|next\(rounds\)")
    assert [str(file.relative_to(folder)) for file in folder.rglob("*.py") if driving.search(file.read_text())] == [
        "engine/runner.py"
    ]


def test_one_function_is_called_drive() -> None:
    """`Run.drive` is the only one."""
    folder = Path(steelyard.__file__).parent
    found = [line for file in folder.rglob("*.py") for line in re.findall(r"def _?drive\(", file.read_text())]
    assert len(found) == 1
