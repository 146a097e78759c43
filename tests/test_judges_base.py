"""What a judge must have, what it may have, and how one of three members becomes a whole one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from steelyard import Judge, ScriptedJudge, evaluate
from steelyard.engine.journal import reply_key
from steelyard.judges import PanelJudge, RoutedJudge, VerifyingJudge
from steelyard.judges.base import as_judge
from steelyard.records import Ask, Reply, Unjudged
from steelyard.store import Store
from steelyard.tasks import SplitData, SplitReply

ASK = Ask(task="atomic.split", language="en", data=SplitData(question="Is it?", answer="Yes."), reply=SplitReply)
RAG = {"question": "Is it?", "answer": "Yes.", "references": ["It is."]}
SPLIT = {"atoms": [{"id": 1, "text": "It is."}]}
LABELS = {"atoms": [{"id": 1, "label": "undetermined", "level": 1}], "fallback": False}


def said(ask: Ask) -> Reply:
    return Reply(data=ask.reply.model_validate(SPLIT if ask.task == "atomic.split" else LABELS))


class OwnJudge(Judge):
    """The least that a subclass has."""

    name = "own"

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        return said(ask)


class ThreeMembers:
    """No base class: a name and two methods."""

    def __init__(self) -> None:
        self.name, self.closed = "three", 0

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        return said(ask)

    async def aclose(self) -> None:
        self.closed += 1


class Talkative(ThreeMembers):
    """Three members and some of the others."""

    caution = "for trying out only"

    def describe(self) -> dict[str, Any]:
        return {"model": "m", "offline": True}

    def fingerprint(self, ask: Ask) -> str:
        return f"edition 2 {ask.key}"


async def test_everything_but_a_name_and_an_answer_has_a_default() -> None:
    """A subclass of `Judge` is whole with two members."""
    judge = OwnJudge()
    assert (judge.describe(), judge.described(), judge.fingerprint(ASK)) == ({}, {"name": "own"}, "own")
    assert (judge.caution, judge.offline, judge.model, judge.price, judge.structured) == ("", False, "", None, None)
    assert [voice.judge for voice in judge.voices()] == [judge]
    await judge.aclose()


def test_a_judge_that_cannot_answer_is_none() -> None:
    """A subclass without `answer` is refused when it is made, not in the middle of a run."""
    with pytest.raises(TypeError, match="answer"):
        type("Mute", (Judge,), {"name": "mute"})()


def test_a_judge_stays_itself() -> None:
    """Only what is no `Judge` is adapted."""
    judge = OwnJudge()
    assert as_judge(judge) is judge


async def test_three_members_are_a_judge() -> None:
    """A judge without the base class gets the defaults; what else it has is reached through the adapter."""
    mine: Any = ThreeMembers()
    judge: Any = as_judge(mine)
    assert isinstance(judge, Judge)
    assert (judge.name, judge.described(), judge.fingerprint(ASK)) == ("three", {"name": "three"}, "three")
    assert (judge.caution, judge.offline, judge.price) == ("", False, None)
    assert isinstance(await judge.answer(ASK), Reply)
    await judge.aclose()
    assert judge.closed == mine.closed == 1
    mine.name = "three, second edition"
    assert judge.name == mine.name


def test_what_a_judge_says_of_itself_is_used() -> None:
    """`describe`, `fingerprint` and `caution` count also without the base class."""
    judge = as_judge(Talkative())
    assert judge.described() == {"name": "three", "model": "m", "offline": True}
    assert judge.fingerprint(ASK) == f"edition 2 {ASK.key}"
    assert (judge.offline, judge.caution) == (True, "for trying out only")


@pytest.mark.parametrize("judge", [OwnJudge(), ThreeMembers()], ids=["subclass", "three members"])
def test_replies_are_found_under_the_keys_of_earlier_versions(judge: Any) -> None:
    """A store of today still answers for a judge that has no fingerprint: its key is of its name and the ask."""
    key = hashlib.sha256("\x00".join((judge.name, ASK.key, "0")).encode()).hexdigest()[:40]
    assert reply_key(as_judge(judge), ASK) == key


@pytest.mark.parametrize("judge", [OwnJudge(), ThreeMembers(), Talkative()], ids=["subclass", "three", "talkative"])
def test_a_judge_of_ones_own_has_a_memory(judge: Any, tmp_path: Path) -> None:
    """With a store, its replies are kept and used again, and the run says who judged."""
    first = evaluate([RAG], protocol="atomic", judge=judge, store=tmp_path / "store.db")
    again = evaluate([RAG], protocol="atomic", judge=judge, store=tmp_path / "store.db")
    assert [verdict.scores for verdict in again] == [verdict.scores for verdict in first]
    with Store.open(tmp_path / "store.db") as store:
        assert {row.judge for row in store.runs()} == {judge.name}
        assert store.runs()[0].manifest["judge"] == as_judge(judge).described()


def test_judges_of_three_members_work_together() -> None:
    """Panels, routes and second looks take them as they are, also as members with a weight."""
    three, scripted = ThreeMembers(), ScriptedJudge({"atomic.split": SPLIT, "atomic.judge": LABELS})
    for judge in (PanelJudge([three, scripted]), RoutedJudge(three, scripted), VerifyingJudge(three, scripted)):
        (verdict,) = evaluate([RAG], protocol="atomic", judge=judge)
        assert verdict.status == "judged"
        assert [voice.judge.name for voice in judge.voices()] == ["three", "scripted"]
        assert judge.fingerprint(ASK) == judge.fingerprint(ASK)
    assert VerifyingJudge(three, three).name == "three, verified by itself"
