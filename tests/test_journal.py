"""A judge with a memory: written down before it is used, asked once, and found again only by the same question."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from steelyard.engine.journal import JournalledJudge, StoredJudge, reply_key
from steelyard.engine.runs import Judged, VerdictWriter
from steelyard.errors import JudgeError
from steelyard.judges.base import Judge
from steelyard.judges.chat import ChatJudge
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.recorded import RecordedJudge, Recorder
from steelyard.prompts import Prompts
from steelyard.records import Again, Ask, RagSample, Reply, Unjudged, Usage, Verdict
from steelyard.store import Store, StoreLocation
from steelyard.tasks import AtomicData, AtomicReply, Numbered, SplitData, SplitReply, ValidityData, ValidityReply

WHEN = "2026-03-02T10:00:00+00:00"
RUNS = ("run-a", "run-b")
PAID = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cached_tokens=40, cost=0.5)


def ask(answer: str = "Yes.", again: Again | None = None) -> Ask:
    data = SplitData(question="Is it?", answer=answer)
    return Ask(task="atomic.split", language="en", data=data, reply=SplitReply, again=again)


def said(text: str) -> SplitReply:
    return SplitReply.model_validate({"atoms": [{"id": 1, "text": text}]})


class Slow(Judge):
    """A judge that takes its time, counts, and says which call this was."""

    name = "slow"

    def __init__(self, seconds: float = 0.0, then: Exception | Unjudged | None = None) -> None:
        self.seconds, self.then, self.calls = seconds, then, 0

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(self.seconds)
        if isinstance(self.then, Exception):
            raise self.then
        return self.then or Reply(data=said(f"call {number}"), raw=f"call {number}", usage=PAID)


@pytest.fixture
def store(any_store: Store) -> Store:
    """A store of either kind with two runs."""
    for run in ("run-a", "run-b"):
        any_store.create_run(run, "atomic", "slow", WHEN, {"options": {}})
    return any_store


def text(reply: Reply | Unjudged) -> str:
    assert isinstance(reply, Reply)
    found: str = reply.data.atoms[0].text
    return found


# --- asked once -------------------------------------------------------------------------------------------


async def test_a_reply_is_in_the_store_before_it_is_used(store: Store, location: StoreLocation) -> None:
    """When the answer is handed over, another process could read it already."""
    journal = JournalledJudge(Slow(), store, "run-a")
    reply = await journal.answer(ask())
    with Store.open(location) as other:
        stored = other.reply(journal.key(ask()))
    assert stored is not None
    assert (stored.raw, stored.usage, stored.run, stored.judge) == (text(reply), PAID, "run-a", "slow")


async def test_identical_asks_in_flight_are_one_call(store: Store) -> None:
    """Ten at once get the same answer; one of them is charged for it."""
    judge = Slow(0.02)
    journal = JournalledJudge(judge, store, "run-a")
    replies = await asyncio.gather(*(journal.answer(ask()) for _ in range(10)))
    assert judge.calls == 1
    assert {text(reply) for reply in replies} == {"call 1"}
    assert sum(reply.usage.calls for reply in replies) == 1
    assert journal.spent == PAID


async def test_an_equal_ask_later_in_the_run_costs_nothing(store: Store) -> None:
    """The sums of a run are what was paid, however many samples share an ask."""
    judge = Slow()
    journal = JournalledJudge(judge, store, "run-a")
    usages = [(await journal.answer(ask())).usage for _ in range(3)]
    assert usages == [PAID, Usage(), Usage()]
    assert (judge.calls, journal.spent) == (1, PAID)


async def test_a_continued_run_counts_what_it_paid_before_it_was_stopped(store: Store) -> None:
    """The sample that is finished now shows its whole price; another run that uses the reply shows none."""
    await JournalledJudge(Slow(), store, "run-a").answer(ask())
    again = JournalledJudge(Slow(), store, "run-a", continued=True)
    assert ((await again.answer(ask())).usage, again.spent) == (PAID, Usage())
    other = JournalledJudge(Slow(), store, "run-b", continued=True)
    assert (await other.answer(ask())).usage == Usage()


async def test_what_failed_is_not_remembered(store: Store) -> None:
    """An ask without an answer is asked again by the next who needs it; what it cost is counted."""
    judge = Slow(then=Unjudged(reason="timeout", usage=PAID))
    journal = JournalledJudge(judge, store, "run-a")
    assert isinstance(await journal.answer(ask()), Unjudged)
    judge.then = None
    assert text(await journal.answer(ask())) == "call 2"
    assert journal.spent == PAID + PAID


@pytest.mark.parametrize("error", [JudgeError("no key"), RuntimeError("slip")])
async def test_a_failure_reaches_all_who_wait_for_it(store: Store, error: Exception) -> None:
    """Whoever shares the ask learns of it too, and nobody waits for ever."""
    judge = Slow(0.01, then=error)
    journal = JournalledJudge(judge, store, "run-a")
    results = await asyncio.gather(*(journal.answer(ask()) for _ in range(3)), return_exceptions=True)
    assert results == [error] * 3
    assert judge.calls == 1
    judge.then = None
    assert text(await journal.answer(ask())) == "call 2"


async def test_retrying_does_not_take_a_gap_for_an_answer(store: Store) -> None:
    """A reply that left an item out is good enough to resume with, not to retry with."""
    data = AtomicData(
        question="?",
        references=(),
        answer="!",
        date="",
        place="",
        atoms=(Numbered(id=1, text="a"), Numbered(id=2, text="b")),
    )
    wanted = Ask(task="atomic.judge", language="en", data=data, reply=AtomicReply)
    journal = JournalledJudge(Slow(), store, "run-a")
    atom = {"id": 1, "label": "correct", "level": 1}
    gap = AtomicReply.model_validate({"atoms": [atom], "fallback": False})
    journal.keep(journal.key(wanted), wanted, Reply(data=gap))
    assert journal.recall(journal.key(wanted), wanted) is not None
    journal.retrying = True
    assert journal.recall(journal.key(wanted), wanted) is None


async def test_retrying_takes_a_doubt_for_an_answer(store: Store) -> None:
    """A judge that read an item and could not tell would say the same again."""
    data = ValidityData(system_prompt="Be brief.", criteria=(Numbered(id=1, text="a"), Numbered(id=2, text="b")))
    wanted = Ask(task="dialogue.validity", language="en", data=data, reply=ValidityReply)
    journal = JournalledJudge(Slow(), store, "run-a")
    doubt = {"items": "criteria", "id": 2, "reason": "it may mean anything"}
    reply = ValidityReply.model_validate({"criteria": [{"id": 1, "valid": False}], "unsure": [doubt]})
    journal.keep(journal.key(wanted), wanted, Reply(data=reply))
    journal.retrying = True
    assert journal.recall(journal.key(wanted), wanted) is not None


async def test_a_reply_of_another_shape_is_asked_anew(store: Store) -> None:
    """What an older version wrote and this one cannot read is no reason to fail."""
    judge = Slow()
    journal = JournalledJudge(judge, store, "run-a")
    await journal.answer(ask())
    stored = store.reply(journal.key(ask()))
    assert stored is not None
    store.journal([(journal.key(ask()), stored._replace(reply='{"parts": []}'))])
    assert text(await journal.answer(ask())) == "call 2"


# --- fresh, rescored ----------------------------------------------------------------------------------------


async def test_fresh_replies_stand_beside_the_old_ones(store: Store) -> None:
    """Asking afresh does not change what an earlier run was told."""
    judge = Slow()
    await JournalledJudge(judge, store, "run-a").answer(ask())
    fresh = JournalledJudge(judge, store, "run-b", fresh=True)
    assert [text(await fresh.answer(ask())) for _ in range(2)] == ["call 2", "call 2"]
    assert text(await StoredJudge(store, "slow", "run-a").answer(ask())) == "call 1"
    assert text(await StoredJudge(store, "slow", "run-b").answer(ask())) == "call 2"


async def test_a_stored_run_answers_with_what_it_used(store: Store) -> None:
    """Also where another run paid, and where the same judge answered the same ask in other words meanwhile."""
    judge = Slow()
    await JournalledJudge(judge, store, "run-a").answer(ask())
    store.create_run("run-c", "atomic", "slow", WHEN, {})
    await JournalledJudge(judge, store, "run-b", repeat=7).answer(ask())
    await JournalledJudge(judge, store, "run-c").answer(ask())
    assert text(await StoredJudge(store, "slow", "run-c").answer(ask())) == "call 1"
    nothing = await StoredJudge(store, "slow", "run-c").answer(ask("No."))
    assert isinstance(nothing, Unjudged)
    assert nothing.reason == "not_recorded"


async def test_two_runs_of_one_judge_are_not_taken_for_each_other(store: Store) -> None:
    """`recorded:RUN` answers with what that run was told, also when another run of the judge was replayed before."""
    judge = Slow()
    for run in ("run-a", "run-b"):
        await JournalledJudge(judge, store, run, fresh=True).answer(ask())
    told = [text(await JournalledJudge(StoredJudge(store, "slow", run), store).answer(ask())) for run in RUNS]
    assert told == ["call 1", "call 2"]


async def test_another_edition_of_a_recording_is_another_judge(store: Store, tmp_path: Path) -> None:
    """A file that was recorded anew, or one of the same name elsewhere, is read and not remembered."""
    told = []
    for number in (1, 2):
        file = tmp_path / str(number) / "replies.jsonl"
        reply = said(f"edition {number}").model_dump()
        file.parent.mkdir()
        file.write_text(json.dumps({"key": ask().key, "reply": reply}), encoding="utf-8")
        told.append(text(await JournalledJudge(RecordedJudge(file), store).answer(ask())))
    assert told == ["edition 1", "edition 2"]


async def test_a_run_of_the_first_schema_is_answered_as_well_as_can_be(store: Store) -> None:
    """Stores of version 1 did not note what a run used; what it paid for itself goes first."""
    judge = Slow()
    for run, repeat in (("run-a", 1), ("run-b", 2)):
        await JournalledJudge(judge, store, run, repeat).answer(ask())
    store.write("DELETE FROM used")
    assert text(await StoredJudge(store, "slow", "run-a").answer(ask())) == "call 1"
    assert text(await StoredJudge(store, "slow", "run-b").answer(ask())) == "call 2"


# --- the key --------------------------------------------------------------------------------------------------


BASE: dict[str, Any] = {"base_url": "http://localhost/v1", "model": "m", "body": {"temperature": 0}}


def key(ask: Ask, prompts: Prompts | None = None, repeat: int = 0, secret: str = "k", **changes: Any) -> str:
    judge = ChatJudge(Endpoint(**(BASE | changes)), prompts or Prompts.shipped(), key=SecretStr(secret))
    return reply_key(judge, ask, repeat)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "other"},
        {"base_url": "http://localhost/v2"},
        {"body": {"temperature": 1}},
        {"body": {"temperature": 0, "seed": 1}},
        {"structured": "text"},
        {"repeat": 1},
    ],
)
def test_what_may_change_the_answer_changes_the_key(changes: dict[str, Any]) -> None:
    """Model, endpoint, decoding parameters, form of the reply, and the repeat number."""
    assert key(ask(), **changes) != key(ask())


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": "another"},
        {"headers": {"X-Team": "a"}},
        {"timeout": 1.0},
        {"retries": 0},
        {"backoff": 9.0},
        {"price": {"prompt": 1, "completion": 1}},
        {"name": "renamed"},
    ],
)
def test_what_cannot_change_the_answer_leaves_the_key(changes: dict[str, Any]) -> None:
    """A new key, other headers, another patience or price do not make anybody pay again."""
    assert key(ask(), **changes) == key(ask())


def test_words_are_part_of_the_key() -> None:
    """The sample, what was wrong with the last reply, and the prompt's text each make another question."""
    shipped = Prompts.shipped()
    prompt = shipped.get("atomic.split", "en")
    assert key(ask("No.")) != key(ask())
    assert key(ask(again=Again(missing=("1",)))) != key(ask())
    bumped = shipped.with_texts({"mine.md": prompt.text.replace(f"version: {prompt.version}", "version: 99")})
    assert key(ask(), bumped) != key(ask())
    other = shipped.get("atomic.judge", "en")
    unrelated = shipped.with_texts({"mine.md": other.text.replace(f"version: {other.version}", "version: 99")})
    assert key(ask(), unrelated) == key(ask())


async def test_a_recording_changes_no_key_and_holds_all_that_was_told(store: Store, tmp_path: Path) -> None:
    """What the journal answers is recorded as well as what the judge says."""
    judge = Slow()
    await JournalledJudge(judge, store, "run-a").answer(ask())
    recorder = Recorder(JournalledJudge(judge, store, "run-b"), tmp_path / "replies.jsonl")
    await recorder.answer(ask())
    await recorder.answer(ask("No."))
    await recorder.aclose()
    assert judge.calls == 2
    assert len((tmp_path / "replies.jsonl").read_text("utf-8").splitlines()) == 2


async def test_a_follow_up_is_another_ask(store: Store) -> None:
    """An ask that was made from an answered one has a key of its own, so what was missing is really asked for."""
    judge = Slow()
    journalled = JournalledJudge(judge, store, "run-a")
    first = ask()
    await journalled.answer(first)
    follow_up = first.model_copy(update={"again": Again(missing=("atoms 2",))})
    assert follow_up.key != first.key
    assert follow_up.key == ask(again=Again(missing=("atoms 2",))).key
    await journalled.answer(follow_up)
    assert judge.calls == 2


async def test_verdicts_that_come_while_others_are_written_are_written_too() -> None:
    """A store that is slow for a while leaves nothing waiting, also where no further verdict comes."""
    written: list[Judged] = []
    free = threading.Event()

    def keep(judged: Sequence[Judged]) -> None:
        assert free.wait(10)
        written.extend(judged)

    writer = VerdictWriter(keep, in_thread=True)
    one = (
        RagSample(id="s", question="?", answer=".", references=("x",)),
        Verdict(id="s", protocol="atomic", status="judged", scores={}),
    )
    for seq in range(writer.MOST + 5):
        writer.add(seq, *one)
    await asyncio.sleep(0.05)
    writer.add(writer.MOST + 5, *one)
    free.set()
    for _ in range(300):
        if len(written) == writer.MOST + 6:
            break
        await asyncio.sleep(0.01)
    assert [seq for seq, _, _ in written] == list(range(writer.MOST + 6))
