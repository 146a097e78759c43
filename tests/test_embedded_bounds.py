"""The embedded judge is bounded in time and size, whatever a sample holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from steelyard.engine.runner import Runner
from steelyard.judges.embedded import EmbeddedJudge
from steelyard.judges.embedded import judge as judge_module
from steelyard.judges.embedded.worker import Workers
from steelyard.protocols import get_protocol
from steelyard.records import Ask, RagSample, Unjudged, Verdict
from steelyard.tasks import SplitData, SplitReply

# Runs of spaces cost this judge time in their square: 168 seconds for so many of them.
HOSTILE = f"It opens{' ' * 100_000}at nine."


def ask(text: str) -> Ask:
    return Ask(task="atomic.split", language="en", data=SplitData(question="When?", answer=text), reply=SplitReply)


@dataclass
class Begun:
    """How many asks went to a process."""

    count: int = 0


@pytest.fixture
async def judge() -> AsyncIterator[EmbeddedJudge]:
    found = EmbeddedJudge()
    # One process is enough here, also where there is but one core.
    found._workers = Workers(1)
    yield found
    await found.aclose()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    seen, answer = Begun(), Workers.answer

    def counted(self: Workers, ask: Ask, **more: object) -> object:
        seen.count += 1
        return answer(self, ask, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Workers, "answer", counted)
    return seen


async def test_a_text_that_takes_too_long_is_left_open(judge: EmbeddedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is ended, the reason is said, and the next sample is judged as if nothing had been."""
    monkeypatch.setattr(judge_module, "WITHIN", 1.0)
    found = await judge.answer(ask(HOSTILE))
    assert isinstance(found, Unjudged)
    assert found.reason == "timeout"
    assert "1 seconds" in found.detail
    monkeypatch.setattr(judge_module, "WITHIN", 60.0)
    long = await judge.answer(ask("It opens at nine. " * 600))
    assert [atom.text for atom in long.data.atoms] == ["It opens at nine."]  # type: ignore[union-attr]


async def test_what_is_too_long_is_not_begun(judge: EmbeddedJudge, begun: Begun) -> None:
    """A text of more characters than the judge reads is open, with the reason, and no process was asked."""
    found = await judge.answer(ask("It opens. " * 50_000))
    assert isinstance(found, Unjudged)
    assert (found.reason, begun.count) == ("too_long", 0)
    assert "500,005 characters" in found.detail


async def test_without_a_process_less_is_read(judge: EmbeddedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can start, nothing could end a text that takes long: it is open at once, and a short one judged."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert (await judge.answer(ask(HOSTILE))).reason == "too_long"  # type: ignore[union-attr]
    assert not isinstance(await judge.answer(ask("It opens at nine. " * 600)), Unjudged)


async def test_a_short_text_needs_no_process(judge: EmbeddedJudge, begun: Begun) -> None:
    """A handful of samples is judged in this process, as before."""
    assert not isinstance(await judge.answer(ask("It opens at nine.")), Unjudged)
    assert begun.count == 0


async def test_a_sample_that_is_left_open_ends_no_run(judge: EmbeddedJudge) -> None:
    """It fails with the reason; the others of the run are judged."""
    protocol = get_protocol("atomic")
    samples = [
        RagSample(id=id, question="When?", answer=answer, references=("It opens at nine.",))
        for id, answer in (("1", "It opens at nine."), ("2", "It opens. " * 50_000), ("3", "It opens at ten."))
    ]
    verdicts: list[Verdict] = []
    runner = Runner(protocol, protocol.parse_options({"date": "2026-03-02", "max_chars": 10**6}), judge)
    await runner.run(enumerate(samples), lambda _, sample, verdict: verdicts.append(verdict))
    assert [verdict.status for verdict in verdicts] == ["judged", "failed", "judged"]
    assert runner.tally.errors == {"too_long": 1}
