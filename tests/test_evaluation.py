"""`steelyard.evaluate`: samples in any form, judges by object or name, verdicts out as records, dicts or frames."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import steelyard
from command import DIALOGUE, EXAMPLES, RAG, RECORDED, fact_server, facts, judge_facts, lines_of, point_to
from endpoint import Status
from steelyard import ConfigError, InputError, JudgeError, RagSample, RecordedJudge, ScriptedJudge, Unjudged
from steelyard.judges.chat import ChatJudge
from steelyard.prompts import Prompts
from steelyard.protocols.atomic import AtomicOptions
from steelyard.records import Ask, DialogueSample, Turn

SCORES = ["accuracy", "accuracy_strict", "coverage", "fallback"]


@pytest.fixture
def recorded() -> RecordedJudge:
    return RecordedJudge(EXAMPLES / "replies.jsonl")


# --- samples -----------------------------------------------------------------------------------------


def test_a_path(recorded: RecordedJudge) -> None:
    """A file is named by a string or a path; the verdicts stand in its order."""
    for path in (RAG, Path(RAG)):
        results = steelyard.evaluate(path, protocol="atomic", judge=recorded)
        assert [verdict.id for verdict in results] == [row["id"] for row in lines_of(RAG)]
        assert all(verdict.status == "judged" for verdict in results)


def test_dicts_records_and_generators_give_the_same(recorded: RecordedJudge) -> None:
    """However the samples come, the verdicts are equal."""
    rows = lines_of(RAG)
    records = [RagSample.model_validate(row) for row in rows]

    def stream() -> Iterator[dict[str, Any]]:
        yield from rows

    expected = steelyard.evaluate(RAG, "grounded", recorded).to_dicts()
    for samples in (rows, records, tuple(rows), stream(), [*rows[:4], *records[4:]]):
        assert steelyard.evaluate(samples, "grounded", recorded).to_dicts() == expected


def test_one_sample_alone(recorded: RecordedJudge) -> None:
    """A single dict or record is one sample, not an iterable of its fields."""
    row = lines_of(RAG)[0]
    for sample in (row, RagSample.model_validate(row)):
        (verdict,) = steelyard.evaluate(sample, "atomic", recorded)  # type: ignore[arg-type]
        assert verdict.id == "car-tyre"


def test_fields_of_other_tools(recorded: RecordedJudge) -> None:
    """Known aliases are understood; any other column is mapped."""
    row = lines_of(RAG)[0]
    theirs = {"user_input": row["question"], "retrieved_contexts": row["references"], "date": row["date"]}
    mine = [{**theirs, "out": {"text": row["answer"]}}]
    (verdict,) = steelyard.evaluate(mine, "atomic", recorded, fields={"answer": "out.text"})
    assert verdict.scores["accuracy"] == 1


def test_bad_rows_are_beside_the_verdicts(recorded: RecordedJudge) -> None:
    """A row that cannot be read does not stop the others and is told by its place and field."""
    good = lines_of(RAG)[0]
    samples = [{"question": "?"}, good, "nonsense", DialogueSample(id="d", system_prompt="s")]
    results = steelyard.evaluate(samples, "atomic", recorded)  # type: ignore[arg-type]
    assert [verdict.id for verdict in results] == ["car-tyre"]
    assert [(bad.line, bad.field) for bad in results.bad_rows] == [(1, "answer"), (3, None), (4, None)]
    assert results.report().n_bad_rows == 3
    assert repr(results) == "<Results: 1 atomic verdicts, 3 bad rows>"


def test_ids_are_unique_as_in_files(recorded: RecordedJudge) -> None:
    """An id that is used twice is a bad row, whether a dict or a record has it; rows without an id get one each."""
    row = lines_of(RAG)[0]
    anonymous = {name: value for name, value in row.items() if name != "id"}
    samples = [row, row, anonymous, RagSample.model_validate(row), anonymous, RagSample(**{**row, "id": ""})]
    results = steelyard.evaluate(samples, "atomic", recorded)
    derived = results[1].id
    assert [verdict.id for verdict in results] == ["car-tyre", derived, f"{derived}-2", f"{derived}-3"]
    assert [(bad.line, bad.field) for bad in results.bad_rows] == [(2, "id"), (4, "id")]
    assert "item 1" in str(results.bad_rows[0])


@pytest.mark.parametrize(
    ("protocol", "broken", "field"),
    [
        ("atomic", RagSample(id="x", question="?", answer="a \ud800"), "answer"),
        ("scorecard", RagSample(id="x", question="?", answer="a", references=("ok", "\udfff")), "references"),
        ("grounded", RagSample(id="\ud800", question="?", answer="a"), "id"),
        ("dialogue", DialogueSample(id="x", system_prompt="s", turns=(Turn(prompt="\ud800", answer=""),)), "turns"),
    ],
)
def test_a_record_that_is_no_text(protocol: str, broken: Any, field: str, recorded: RecordedJudge) -> None:
    """A record with half a surrogate pair, which nothing can send or store, is a bad row and stops nobody."""
    kind = type(broken)
    good = kind.model_validate(lines_of(RAG if kind is RagSample else DIALOGUE)[0])
    results = steelyard.evaluate([broken, good], protocol, recorded)
    assert [verdict.id for verdict in results] == [good.id]
    assert [(bad.line, bad.field) for bad in results.bad_rows] == [(1, field)]


def test_nothing(recorded: RecordedJudge) -> None:
    """No samples give no verdicts, and a report that says so."""
    results = steelyard.evaluate([], "atomic", recorded)
    assert (len(results), results.to_dicts(), results.report().n) == (0, [], 0)


def test_a_file_that_is_not_there(recorded: RecordedJudge) -> None:
    """A mistyped path is an error, not an empty result."""
    with pytest.raises(InputError, match=r"nosuch\.jsonl: there is no such file"):
        steelyard.evaluate("nosuch.jsonl", "atomic", recorded)


def test_dialogue(recorded: RecordedJudge) -> None:
    """Dialogues are samples like any other."""
    (row, *_) = lines_of(EXAMPLES / "dialogue.jsonl")
    turns = tuple(Turn.model_validate(turn) for turn in row["turns"])
    sample = DialogueSample(id="mine", system_prompt=row["system_prompt"], turns=turns)
    (verdict,) = steelyard.evaluate([sample], "dialogue", recorded)
    assert (verdict.id, verdict.status) == ("mine", "judged")


# --- options and judges -----------------------------------------------------------------------------------


def test_options(recorded: RecordedJudge) -> None:
    """Options are given by name or as the protocol's own; a wrong one is an error that lists the right ones."""
    (museum,) = [row for row in lines_of(RAG) if row["id"] == "museum-visitors"]
    (verdict,) = steelyard.evaluate([museum], "grounded", recorded, options={"strict": True})
    assert verdict.scores["accuracy"] == 0
    (verdict,) = steelyard.evaluate([museum], "atomic", recorded, options=AtomicOptions(strict=True))
    assert verdict.scores["accuracy"] == 1
    with pytest.raises(ConfigError, match="no option 'strct'"):
        steelyard.evaluate([museum], "grounded", recorded, options={"strct": True})


def test_unknown_protocol(recorded: RecordedJudge) -> None:
    """The error lists the protocols there are."""
    with pytest.raises(ConfigError, match="atomic, grounded, scorecard, dialogue"):
        steelyard.evaluate(RAG, "nosuch", recorded)


def test_a_judge_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge is named as on the command line: a recording, or a table of steelyard.toml."""
    monkeypatch.chdir(tmp_path)
    assert steelyard.evaluate(RAG, "atomic", RECORDED)[0].scores["accuracy"] == 1
    with fact_server() as server:
        point_to(server)
        (verdict,) = steelyard.evaluate(facts(tmp_path / "f.jsonl", 1), "atomic", "mine")
    assert (verdict.judge, verdict.scores["accuracy"], verdict.usage.calls) == ("mine:test-model", 1, 2)


def test_no_such_judge() -> None:
    """With an unknown judge, the error says how to name one."""
    with pytest.raises(ConfigError, match="openai:"):
        steelyard.evaluate(RAG, "atomic", "nosuch")


def test_no_judge_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names none and has no key gets the judge in the box."""
    monkeypatch.chdir(tmp_path)
    for variable in ("STEELYARD_JUDGE", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    results = steelyard.evaluate(RAG, "atomic")
    assert {verdict.judge for verdict in results} == {"embedded"}
    assert all(verdict.status == "judged" for verdict in results)


def test_an_object_that_is_no_judge() -> None:
    """What cannot judge is refused with what a judge needs."""
    with pytest.raises(ConfigError, match=r"object is not a judge: it needs a name, answer\(ask\) and aclose\(\)"):
        steelyard.evaluate(RAG, "atomic", object())  # type: ignore[arg-type]


def test_an_unusable_judge_raises() -> None:
    """A refused key is an exception: there is no result to mistake for one."""
    with fact_server(key="right") as server:
        judge = steelyard.ChatJudge(server.endpoint(), _prompts())
        with pytest.raises(JudgeError, match="key"):
            steelyard.evaluate([{"question": "?", "answer": "Fact 1 holds."}], "atomic", judge)


def _prompts() -> Any:
    from steelyard.prompts import Prompts

    return Prompts.shipped()


def test_a_judge_that_breaks(recorded: RecordedJudge) -> None:
    """A bug in somebody's judge is that bug, not a group of wrapped ones."""

    def broken(ask: Ask) -> None:
        raise ZeroDivisionError("a bug of mine")

    with pytest.raises(ZeroDivisionError, match="a bug of mine"):
        steelyard.evaluate(RAG, "atomic", ScriptedJudge(broken))


def test_unjudged_is_a_value() -> None:
    """A judge without an answer gives a failed verdict with the reason, and no number."""
    silent = ScriptedJudge(lambda ask: Unjudged(reason="refused", detail="not today"))
    (verdict,) = steelyard.evaluate([{"id": "x", "question": "?", "answer": "某个回答。"}], "atomic", silent)
    assert verdict.status == "failed"
    assert verdict.scores["accuracy"] is None
    assert "unjudged:atoms:refused" in verdict.flags


# --- event loops --------------------------------------------------------------------------------------------


async def test_async_form(recorded: RecordedJudge) -> None:
    """`evaluate_async` is awaited in the caller's own loop."""
    results = await steelyard.evaluate_async(RAG, "atomic", recorded)
    assert len(results) == 8


async def test_inside_a_running_loop(recorded: RecordedJudge) -> None:
    """`evaluate` works in a notebook, where a loop is running already; errors come through as well."""
    assert len(steelyard.evaluate(RAG, "atomic", recorded)) == 8
    with pytest.raises(ConfigError):
        steelyard.evaluate(RAG, "nosuch", recorded)


async def test_two_at_once() -> None:
    """Two evaluations share a loop without mixing their results."""
    with fact_server(latency=0.02) as server:
        judge = steelyard.ChatJudge(server.endpoint(), _prompts())
        rows = [
            {"id": n, "question": "?", "references": [f"Fact {n} holds."], "answer": f"Fact {n} holds."}
            for n in range(6)
        ]
        first, second = await asyncio.gather(
            steelyard.evaluate_async(rows[:3], "atomic", judge), steelyard.evaluate_async(rows[3:], "atomic", judge)
        )
        await judge.aclose()
    assert [verdict.id for verdict in (*first, *second)] == ["0", "1", "2", "3", "4", "5"]
    assert all(verdict.scores["accuracy"] == 1 for verdict in (*first, *second))


def test_one_judge_for_several_calls() -> None:
    """A judge serves one call after the other, though each has an event loop of its own; nothing stays open."""
    with fact_server() as server:
        judge = steelyard.ChatJudge(server.endpoint(), _prompts())
        for n in (1, 2):
            sample = {"question": "?", "references": [f"Fact {n} holds."], "answer": f"Fact {n} holds."}
            assert steelyard.evaluate([sample], "atomic", judge)[0].scores["accuracy"] == 1


def test_concurrency_is_respected() -> None:
    """No more samples are in work at once than allowed."""
    with fact_server(latency=0.02) as server:
        judge = steelyard.ChatJudge(server.endpoint(), _prompts())
        rows = [{"question": "?", "references": [f"Fact {n} holds."], "answer": f"Fact {n} holds."} for n in range(8)]
        steelyard.evaluate(rows, "atomic", judge, concurrency=2)
        assert server.max_in_flight <= 2
        assert len(server.requests) == 16


# --- results --------------------------------------------------------------------------------------------------


def test_results_are_a_sequence(recorded: RecordedJudge) -> None:
    """Length, index, slice and iteration are those of a list; the samples stand beside."""
    results = steelyard.evaluate(RAG, "atomic", recorded)
    assert results[0].id == results.samples[0].id == "car-tyre"
    assert results[-1].id == "museum-stroller"
    assert [verdict.id for verdict in results[1:3]] == ["car-seat", "library-overdue"]


def test_to_dicts_is_what_the_command_line_writes(recorded: RecordedJudge) -> None:
    """The API and `-o` share one shape, and it is plain JSON."""
    dicts = steelyard.evaluate(RAG, "atomic", recorded).to_dicts()
    assert [*dicts[0]] == ["id", "protocol", "status", "scores", "items", "flags", "judge", "usage"]
    assert json.loads(json.dumps(dicts)) == dicts


@pytest.mark.parametrize("protocol", ["atomic", "grounded", "scorecard"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(recorded: RecordedJudge, protocol: str, library: str) -> None:
    """One row per sample with a column per score; with `items`, one row per item."""
    results = steelyard.evaluate(RAG, protocol, recorded)
    frame, items = (getattr(results, f"to_{library}")(items=wanted) for wanted in (False, True))
    assert len(frame) == 8
    assert {"id", "status", "accuracy", "flags", "cost"} <= set(frame.columns)
    assert len(items) == sum(len(verdict.items) for verdict in results)
    assert {"sample", "kind", "text", "label"} <= set(items.columns)


def test_frames_of_nothing(recorded: RecordedJudge) -> None:
    """No samples give empty frames."""
    results = steelyard.evaluate([], "atomic", recorded)
    assert len(results.to_pandas()) == len(results.to_polars()) == len(results.to_polars(items=True)) == 0


def test_a_missing_frame_library(recorded: RecordedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pandas the error says which install brings it."""
    results = steelyard.evaluate([], "atomic", recorded)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(steelyard.MissingExtra, match=r"pip install 'steelyard\[pandas\]'"):
        results.to_pandas()


def test_report(recorded: RecordedJudge) -> None:
    """The report of the API is the one the command line shows."""
    report = steelyard.evaluate(RAG, "atomic", recorded).report("en")
    assert report.n == 8
    assert report.scores["accuracy"].value == pytest.approx(0.7)
    assert list(report.scores) == SCORES


def test_the_fact_judge_is_understood() -> None:
    """What these tests' server replies is what the protocol expects: two calls, all correct."""
    with fact_server() as server:
        judge = steelyard.ChatJudge(server.endpoint(), _prompts())
        (verdict,) = steelyard.evaluate(
            [{"question": "?", "references": ["Fact 1 holds."], "answer": "Fact 1 holds."}], "atomic", judge
        )
        assert judge_facts(server.requests[0]) == {"atoms": [{"id": 1, "text": "Fact 1 holds."}]}
    assert verdict.scores["accuracy"] == 1


def test_an_unusable_judge_leaves_what_was_judged(tmp_path: Path) -> None:
    """Nothing is kept elsewhere, so the error has the results until then."""
    with fact_server() as server:
        answers = server.reply_for
        server.reply_for = lambda request: answers(request) if len(server.requests) <= 4 else Status(401, "revoked")
        judge = ChatJudge(server.endpoint(), Prompts.shipped())
        with pytest.raises(JudgeError, match="revoked") as stopped:
            steelyard.evaluate(facts(tmp_path / "facts.jsonl", 5), "atomic", judge, concurrency=1)
    assert [verdict.scores["accuracy"] for verdict in stopped.value.results] == [1.0, 1.0]
