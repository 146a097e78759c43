"""The judges that need no model: scripted, recorded, and the recorder."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.judges.base import Judge
from steelyard.judges.recorded import RecordedJudge, Recorder
from steelyard.judges.scripted import ScriptedJudge
from steelyard.records import Ask, Reply, Unjudged, Usage
from steelyard.tasks import SplitData, SplitReply, ValidityData, ValidityReply

ONE = {"atoms": [{"id": 1, "text": "一"}]}
TWO = {"atoms": [{"id": 2, "text": "二"}]}


def split(answer: str = "一") -> Ask:
    return Ask(task="atomic.split", language="zh", data=SplitData(question="?", answer=answer), reply=SplitReply)


def validity() -> Ask:
    data = ValidityData(system_prompt="be brief", criteria=())
    return Ask(task="dialogue.validity", language="en", data=data, reply=ValidityReply)


async def texts(judge: Judge, *asks: Ask) -> list[str]:
    """The first atom of each reply, or the reason there is none."""
    answers = [await judge.answer(ask) for ask in asks]
    return [answer.data.atoms[0].text if isinstance(answer, Reply) else answer.reason for answer in answers]


# --- scripted --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"atomic.split": ONE}, ["一", "一"]),
        ({"atomic.split": [ONE, TWO]}, ["一", "二"]),
        ({"atomic.split": [ONE]}, ["一", "not_scripted"]),
        ({"atomic.split": []}, ["not_scripted", "not_scripted"]),
        ({"atomic.split": SplitReply.model_validate(TWO)}, ["二", "二"]),
        ({"atomic.split": lambda ask: {"atoms": [{"id": 1, "text": ask.data.answer}]}}, ["甲", "乙"]),
        ({"atomic.split": [Unjudged(reason="timeout"), lambda ask: ONE]}, ["timeout", "一"]),
        ({"atomic.split": {"atoms": "none"}}, ["invalid_reply", "invalid_reply"]),
        ({}, ["not_scripted", "not_scripted"]),
        (lambda ask: ONE if ask.data.answer == "甲" else None, ["一", "not_scripted"]),
    ],
)
async def test_a_script_answers_by_task(script: Any, expected: list[str]) -> None:
    """A dict, a model, a function, a list of those consumed in order, or one function for all."""
    assert await texts(ScriptedJudge(script), split("甲"), split("乙")) == expected


async def test_a_scripted_judge_keeps_what_it_was_asked() -> None:
    """Tests can look at the asks; a task that is not in the script is said so."""
    judge = ScriptedJudge({"atomic.split": ONE})
    asks = [split(), validity()]
    answers = [await judge.answer(ask) for ask in asks]
    assert judge.asks == asks
    assert isinstance(answers[1], Unjudged)
    assert "dialogue.validity" in answers[1].detail
    assert isinstance(judge, Judge)
    await judge.aclose()


# --- recorded --------------------------------------------------------------------------------------


async def record(path: Path, script: Any, *asks: Ask) -> None:
    recorder = Recorder(ScriptedJudge(script), path)
    await asyncio.gather(*(recorder.answer(ask) for ask in asks))
    await recorder.aclose()


async def test_a_recording_answers_the_same_asks(tmp_path: Path) -> None:
    """Record, replay: the same reply, at no cost; another ask is not guessed at."""
    path = tmp_path / "deep" / "demo.jsonl"
    await record(path, {"atomic.split": ONE}, split())
    judge = RecordedJudge(path)
    assert isinstance(judge, Judge)
    assert (judge.name, len(judge)) == ("recorded:demo", 1)
    reply = await judge.answer(split())
    assert isinstance(reply, Reply)
    assert reply.data == SplitReply.model_validate(ONE)
    assert reply.usage == Usage()
    other = await judge.answer(split("另"))
    assert isinstance(other, Unjudged)
    assert other.reason == "not_recorded"
    assert "atomic.split" in other.detail
    assert "steelyard run … --record FILE" in other.detail
    assert "Recorder" in other.detail
    await judge.aclose()


async def test_each_line_says_who_said_what(tmp_path: Path) -> None:
    """A recording can be read by people: key, code, task, judge, reply, usage, in their own characters."""
    path = tmp_path / "r.jsonl"
    await record(path, {"atomic.split": ONE}, split())
    (line,) = path.read_text("utf-8").splitlines()
    assert "一" in line
    entry = json.loads(line)
    assert list(entry) == ["key", "code", "task", "judge", "reply", "usage"]
    assert (entry["key"], entry["task"], entry["judge"]) == (split().key, "atomic.split", "scripted")
    assert entry["usage"]["calls"] == 1


async def test_nothing_is_recorded_twice_and_failures_never(tmp_path: Path) -> None:
    """Concurrent and repeated recording keeps one line for each key; what was unjudged is left for another time."""
    path = tmp_path / "r.jsonl"
    asks = [split(str(number % 5)) for number in range(50)]
    await record(path, {"atomic.split": ONE}, *asks, validity())
    await record(path, {"atomic.split": TWO}, *asks)
    keys = [json.loads(line)["key"] for line in path.read_text("utf-8").splitlines()]
    assert sorted(keys) == sorted({ask.key for ask in asks})
    assert await texts(RecordedJudge(path), split("0")) == ["一"]


async def test_replies_are_on_disk_at_once(tmp_path: Path) -> None:
    """A run that is killed keeps what it has recorded."""
    recorder = Recorder(ScriptedJudge({"atomic.split": ONE}), tmp_path / "r.jsonl")
    await recorder.answer(split())
    assert len(RecordedJudge(tmp_path / "r.jsonl")) == 1
    await recorder.aclose()


@pytest.mark.parametrize(("ending", "kept"), [("", ["一", "二"]), (None, ["二", "二"])], ids=["no newline", "torn"])
async def test_recording_goes_on_after_a_torn_line(tmp_path: Path, ending: str | None, kept: list[str]) -> None:
    """Half a line left by a killed process is dropped; a whole line without its line break is kept."""
    path = tmp_path / "r.jsonl"
    await record(path, {"atomic.split": ONE}, split("甲"))
    whole = path.read_bytes().rstrip(b"\n")
    path.write_bytes(whole if ending == "" else whole[: len(whole) // 2])
    await record(path, {"atomic.split": TWO}, split("甲"), split("乙"))
    assert await texts(RecordedJudge(path), split("甲"), split("乙")) == kept


async def test_blank_lines_marks_and_later_lines(tmp_path: Path) -> None:
    """Blank lines and a byte order mark are skipped; a later line of the same key stands."""
    path = tmp_path / "r.jsonl"
    lines = [json.dumps({"key": split().key, "reply": reply}) for reply in (ONE, TWO)]
    path.write_text("\n\n".join(["", *lines, "  ", ""]), "utf-8-sig")
    assert await texts(RecordedJudge(path), split()) == ["二"]


async def test_a_reply_that_no_longer_fits_is_named_by_its_line(tmp_path: Path) -> None:
    """An edited recording does not crash a run."""
    path = tmp_path / "r.jsonl"
    path.write_text("\n" + json.dumps({"key": split().key, "reply": {"atoms": 3}}), "utf-8")
    answer = await RecordedJudge(path).answer(split())
    assert isinstance(answer, Unjudged)
    assert answer.reason == "invalid_reply"
    assert "r.jsonl:2" in answer.detail


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("{", "r.jsonl:2: not a JSON object"),
        ("[]", "r.jsonl:2: not a JSON object"),
        ('{"reply": {}}', "r.jsonl:2: key"),
        ('{"key": "k"}', "r.jsonl:2: reply"),
        ('{"key": 5, "reply": {}}', "r.jsonl:2: key"),
        ("\udcff", "r.jsonl:2: not a JSON object"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str, place: str) -> None:
    """Errors in a recording name file, line and field."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"key": "k", "reply": {}}\n' + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(InputError) as caught:
        RecordedJudge(path)
    assert place in str(caught.value)


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A wrong path is one clear line."""
    with pytest.raises(InputError, match=r"gone\.jsonl"):
        RecordedJudge(tmp_path / "gone.jsonl")
