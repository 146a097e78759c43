"""Runs that are kept: nothing is asked twice, what was stopped goes on, and the store says what is wrong with it."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import (
    RAG,
    RECORDED,
    Steelyard,
    fact_server,
    facts,
    judge_facts,
    lines_of,
    point_to,
    process_environment,
    write_lines,
)
from endpoint import Loopback, Request, Status
from steelyard.engine import runs
from steelyard.engine.inputs import Input
from steelyard.errors import StoreError
from steelyard.judges.base import Judge
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Reply, Unjudged
from steelyard.store import Store
from steelyard.store.sqlite_schema import MIGRATIONS

MINE = ("-p", "atomic", "-j", "mine")


@pytest.fixture
def samples(steelyard: Steelyard) -> Path:
    """Six samples in the test's folder; judging them takes twelve calls."""
    return facts(Path("facts.jsonl"), 6)


def accuracies(path: str = "out.jsonl") -> list[float | None]:
    return [line["scores"]["accuracy"] for line in lines_of(path)]


def asked(server: Loopback) -> list[tuple[str | None, str]]:
    """What the server was asked, to see that nothing was asked twice."""
    return [(request.task, request.user) for request in server.requests]


# --- the journal -----------------------------------------------------------------------------------------


def test_the_same_command_again_makes_no_call(steelyard: Steelyard, samples: Path) -> None:
    """A second run over the same data is answered by the store, costs nothing, and says the same."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE, "-o", "first.jsonl").code == 0
        assert len(server.requests) == 12
        assert steelyard("run", samples, *MINE, "-o", "second.jsonl").code == 0
        assert len(server.requests) == 12
    first, second = lines_of("first.jsonl"), lines_of("second.jsonl")
    assert [line["usage"]["calls"] for line in first] == [2] * 6
    assert [line["usage"]["calls"] for line in second] == [0] * 6
    assert [{**line, "usage": None} for line in first] == [{**line, "usage": None} for line in second]


def test_equal_samples_are_asked_once(steelyard: Steelyard) -> None:
    """Two samples with the same text share the asks, even at the same moment."""
    (row,) = lines_of(facts(Path("one.jsonl"), 1))
    write_lines(Path("twice.jsonl"), [row, {**row, "id": "again"}])
    with fact_server(latency=0.05) as server:
        point_to(server)
        assert steelyard("run", "twice.jsonl", *MINE, "-o", "out.jsonl").code == 0
        assert len(server.requests) == 2
    assert sum(line["usage"]["calls"] for line in lines_of("out.jsonl")) == 2


def test_another_model_or_prompt_is_another_question(steelyard: Steelyard, samples: Path) -> None:
    """What one model said is never taken for another's answer, nor under another prompt."""
    mine = steelyard("prompts", "print", "atomic.split.en").out.replace("You split", "Kindly split")
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        point_to(server, model="other-model")
        assert steelyard("run", samples, *MINE).code == 0
        assert len(server.requests) == 24
        Path("atomic.split.en.md").write_text(mine, "utf-8")
        assert steelyard("run", samples, *MINE, "--prompts", "atomic.split.en.md").code == 0
        assert len(server.requests) == 30  # the splits; what is asked about the atoms is the same


def test_fresh_asks_again_and_keeps_the_answers(steelyard: Steelyard, samples: Path) -> None:
    """`--fresh` trusts no earlier reply, and its own replies are journalled like any other."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        assert steelyard("run", samples, *MINE, "--fresh").code == 0
        assert len(server.requests) == 24
        assert steelyard("rescore", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == 24
    assert accuracies() == [1.0] * 6


def test_a_stopped_fresh_run_stays_fresh(steelyard: Steelyard, samples: Path) -> None:
    """Resuming a fresh run does not fall back on the replies it was to ignore, nor ask twice itself."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        assert steelyard("run", samples, *MINE, "--fresh", "--max-tokens", 400, "-c", 1).code == 3
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == 24
    assert accuracies() == [1.0] * 6


def test_recorded_run(steelyard: Steelyard, samples: Path) -> None:
    """`recorded:RUN` answers from an earlier run, under the name of the judge that really judged."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
    for name in ("1", "last"):
        done = steelyard("run", samples, "-p", "atomic", "-j", f"recorded:{name}", "-o", "out.jsonl")
        assert done.code == 0, done.err
        assert accuracies() == [1.0] * 6
        assert lines_of("out.jsonl")[0]["judge"] == "mine:test-model"


# --- stopping and resuming ---------------------------------------------------------------------------------


def test_max_tokens_stops_and_resume_asks_only_what_is_left(steelyard: Steelyard, samples: Path) -> None:
    """A run that reached its budget says so, exits with 3, and goes on without asking anything twice."""
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", samples, *MINE, "--max-tokens", 500, "-c", 1, "-o", "out.jsonl")
        assert done.code == 3
        assert "--max-tokens 500 reached; go on with: steelyard resume" in done.err
        assert len(server.requests) == 5
        assert len(lines_of("out.jsonl")) == 2
        assert steelyard("resume", "-o", "out.jsonl").code == 0
        assert len(asked(server)) == len(set(asked(server))) == 12
    assert [line["id"] for line in lines_of("out.jsonl")] == [f"fact-{n}" for n in range(1, 7)]
    assert [line["usage"]["calls"] for line in lines_of("out.jsonl")] == [2] * 6


def test_a_small_budget_always_gets_further(steelyard: Steelyard, samples: Path) -> None:
    """What earlier commands paid does not use up the budget of this one, so repeated resuming ends."""
    with fact_server() as server:
        point_to(server)
        codes = [steelyard("run", samples, *MINE, "--max-tokens", 100).code]
        while codes[-1] == 3 and len(codes) < 12:
            codes.append(steelyard("resume", "--max-tokens", 100).code)
        assert codes[-1] == 0
        assert len(asked(server)) == len(set(asked(server))) == 12


def test_max_time_stops(steelyard: Steelyard, samples: Path) -> None:
    """A time limit ends the run politely; what was in flight is kept."""
    with fact_server(latency=0.15) as server:
        point_to(server)
        done = steelyard("run", samples, *MINE, "--max-time", 0.4, "-c", 1)
        assert (done.code, "--max-time 0.4s reached" in done.err) == (3, True)
        assert 0 < len(server.requests) < 12
        server.latency = 0
        assert steelyard("resume", "-o", "out.jsonl").code == 0
        assert len(asked(server)) == len(set(asked(server))) == 12
    assert accuracies() == [1.0] * 6


def test_max_cost_stops(steelyard: Steelyard, samples: Path) -> None:
    """With prices, money is counted and limited."""
    with fact_server() as server:
        point_to(server)
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write("[judges.mine.price]\nprompt = 10000\ncompletion = 0\n")
        done = steelyard("run", samples, *MINE, "--max-cost", 2.5, "-c", 1, "-o", "out.jsonl")
        assert (done.code, "--max-cost 2.5 reached" in done.err) == (3, True)
        assert len(server.requests) == 3
    assert lines_of("out.jsonl")[0]["usage"]["cost"] == pytest.approx(2.0)


def process(*words: object, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "steelyard", *map(str, words)]
    return subprocess.Popen(
        command, cwd=cwd, env=process_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_requests(server: Loopback, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(server.requests) < count:
        assert time.monotonic() < deadline, "the process asked nothing"
        time.sleep(0.02)


def test_interrupt_is_polite(steelyard: Steelyard, samples: Path, tmp_path: Path) -> None:
    """Ctrl-C lets what is in flight finish, reports, exits with 130, and the run can be resumed."""
    with fact_server(latency=0.3) as server:
        point_to(server)
        running = process("run", samples, *MINE, "-c", 2, "-o", "out.jsonl", cwd=tmp_path)
        wait_for_requests(server, 3)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert running.returncode == 130, err
        assert "finishing what is in flight" in err
        assert "stopped: interrupted; go on with: steelyard resume" in err
        assert "Traceback" not in err
        assert out.startswith("Report")
        assert len(server.requests) < 12
        server.latency = 0
        assert steelyard("resume", "-o", "out.jsonl").code == 0
        assert len(asked(server)) == len(set(asked(server))) == 12
    assert accuracies() == [1.0] * 6


def test_two_interrupts_stop_at_once(steelyard: Steelyard, samples: Path, tmp_path: Path) -> None:
    """A second Ctrl-C does not wait for a judge that hangs."""
    with fact_server(latency=300) as server:
        point_to(server, timeout=300)
        running = process("run", samples, *MINE, cwd=tmp_path)
        wait_for_requests(server, 1)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        while "finishing" not in running.stderr.readline():
            assert time.monotonic() - began < 60
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert running.returncode == 130, err
        assert "Traceback" not in err
        assert time.monotonic() - began < 120


def test_a_killed_run_loses_nothing(steelyard: Steelyard, samples: Path, tmp_path: Path) -> None:
    """After kill -9, every reply that had come is there; resuming asks only the rest."""
    with fact_server(latency=0.2) as server:
        point_to(server)
        running = process("run", samples, *MINE, "-c", 1, cwd=tmp_path)
        wait_for_requests(server, 6)
        running.kill()
        running.communicate(timeout=30)
        server.latency = 0
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        # The one that was on its way when the process died is the only one that may be asked again.
        assert len(set(asked(server))) == 12
        assert len(asked(server)) <= 13
    assert accuracies() == [1.0] * 6


def test_resume_of_a_complete_run(steelyard: Steelyard, samples: Path) -> None:
    """There is nothing left to ask; the report is shown again."""
    with fact_server() as server:
        point_to(server)
        steelyard("run", samples, *MINE)
        done = steelyard("resume", "last", "-o", "out.jsonl")
        assert (done.code, len(server.requests)) == (0, 12)
        assert "6/6" in done.err
    assert accuracies() == [1.0] * 6


def test_resume_refuses_other_data(steelyard: Steelyard, samples: Path) -> None:
    """A run goes on over the same data or not at all."""
    with fact_server() as server:
        point_to(server)
        steelyard("run", samples, *MINE, "--max-tokens", 300, "-c", 1)
        original = samples.read_bytes()
        samples.write_bytes(original + b"\n")
        done = steelyard("resume")
        assert (done.code, "has changed since" in done.err) == (5, True)
        samples.unlink()
        done = steelyard("resume")
        assert (done.code, "not there any more" in done.err) == (5, True)
        samples.write_bytes(original)
        done = steelyard("resume", "-j", RECORDED)
        assert (done.code, "was judged by mine:test-model" in done.err) == (2, True)
        assert steelyard("resume").code == 0


def test_stdin_cannot_be_resumed(steelyard: Steelyard, samples: Path) -> None:
    """What came by a pipe is gone; the same command again costs nothing for what was answered."""
    text = samples.read_text("utf-8")
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", "-", *MINE, "--max-tokens", 300, "-c", 1, stdin=text).code == 3
        done = steelyard("resume")
        assert (done.code, "standard input" in done.err) == (5, True)
        assert steelyard("run", "-", *MINE, stdin=text).code == 0
        assert len(asked(server)) == len(set(asked(server))) == 12


# --- failures, retrying, rescoring -----------------------------------------------------------------------------


def test_retry_asks_for_what_failed(steelyard: Steelyard, samples: Path) -> None:
    """A sample whose asks failed is judged again; the others are left alone."""
    with fact_server() as server:
        point_to(server)
        server.script(Status(500))
        done = steelyard("run", samples, *MINE, "-c", 1, "-o", "out.jsonl")
        assert done.code == 3
        assert [line["status"] for line in lines_of("out.jsonl")] == ["failed"] + ["judged"] * 5
        before = len(server.requests)
        assert steelyard("retry", "-o", "out.jsonl").code == 0
        assert len(server.requests) == before + 2
    assert accuracies() == [1.0] * 6


def test_retry_asks_again_for_items_left_out(steelyard: Steelyard, samples: Path) -> None:
    """A reply that leaves an item out is journalled, but retrying does not take it for an answer."""

    def forgetful(request: Request) -> dict[str, Any]:
        if request.task == "atomic.judge" and "Fact 3 holds" in request.user:
            return {"atoms": [], "fallback": False}
        return judge_facts(request)

    with fact_server() as server:
        server.reply_for = forgetful
        point_to(server)
        assert steelyard("run", samples, *MINE, "-o", "out.jsonl").code == 3
        assert lines_of("out.jsonl")[2]["items"][0]["label"] == "unjudged"
        server.reply_for = judge_facts
        assert steelyard("resume").code == 3
        before = len(server.requests)
        assert steelyard("retry", "-o", "out.jsonl").code == 0
        assert len(server.requests) == before + 1
    assert accuracies() == [1.0] * 6


def test_an_endpoint_that_is_down(steelyard: Steelyard, samples: Path) -> None:
    """Without a server the run stops after some tries, no sample fails for it, and later it can be resumed."""
    with fact_server() as server:
        point_to(server, backoff=0.01)
        port = server.port
    done = steelyard("run", samples, *MINE, "-o", "out.jsonl")
    assert done.code == 4
    assert "no answer from" in done.err
    assert lines_of("out.jsonl") == []
    with fact_server(port=port) as server:
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
    assert accuracies() == [1.0] * 6


def test_an_endpoint_that_is_lost_midway(steelyard: Steelyard, samples: Path) -> None:
    """A run that loses its endpoint stops instead of failing what is left, and resumes with the same results."""
    with fact_server() as server:
        point_to(server, backoff=0.01)
        port = server.port
        server.reply_for = lambda request: server.stop_listening() or judge_facts(request)
        done = steelyard("run", samples, *MINE, "-c", 1, "-o", "out.jsonl")
    assert done.code == 4
    assert not [line for line in lines_of("out.jsonl") if line["status"] != "judged"]
    with fact_server(port=port) as server:
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == 11
    assert accuracies() == [1.0] * 6


def test_a_pause_beyond_patience_stops_the_run(steelyard: Steelyard, samples: Path) -> None:
    """A daily limit ends the run with its reason; nothing fails, and `resume` goes on where it was."""

    def limited(request: Request) -> Any:
        return (
            Status(429, "daily limit", headers={"Retry-After": "7200"})
            if len(server.requests) > 4
            else judge_facts(request)
        )

    with fact_server() as server:
        point_to(server, patience=60)
        server.reply_for = limited
        done = steelyard("run", samples, *MINE, "-c", 1, "-o", "out.jsonl")
        assert done.code == 4
        assert "asks to wait 2 hours (Retry-After), and patience is 60 s (HTTP 429: daily limit)" in done.err
        # Four answers finish one sample or two, whichever had their turn.
        assert {line["status"] for line in lines_of("out.jsonl")} == {"judged"}
        assert json.loads(steelyard("runs", "show").out)["state"] == "stopped"
        before, server.reply_for = len(server.requests), judge_facts
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == before + 12 - 4
    assert accuracies() == [1.0] * 6


def test_a_key_that_is_revoked_midway(steelyard: Steelyard, samples: Path) -> None:
    """The run stops with exit code 4; what was judged until then is written out and not asked again."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = _revoked_after(server, 5)
        done = steelyard("run", samples, *MINE, "-c", 1, "-o", "out.jsonl")
        assert done.code == 4
        assert "MY_KEY" in done.err
        # Five answers finish two samples, whichever two of them had their turn.
        assert [line["status"] for line in lines_of("out.jsonl")] == ["judged"] * 2
        before, server.reply_for = len(server.requests), judge_facts
        assert steelyard("resume", "-o", "out.jsonl").code == 0
        assert len(server.requests) - before == 7
    assert accuracies() == [1.0] * 6


def _revoked_after(server: Loopback, count: int) -> Callable[[Request], Any]:
    return lambda request: judge_facts(request) if len(server.requests) <= count else Status(401, "revoked")


def test_rescore(steelyard: Steelyard) -> None:
    """Scores are computed anew from stored replies, with other options, without changing the run."""
    assert steelyard("run", RAG, "-p", "grounded", "-j", RECORDED, "-o", "out.jsonl").code == 0
    done = steelyard("rescore", "last", "-O", "strict=true", "-o", "strict.jsonl")
    assert done.code == 0
    assert sum(line["scores"]["accuracy"] for line in lines_of("out.jsonl")) == 2
    assert sum(line["scores"]["accuracy"] for line in lines_of("strict.jsonl")) == 1
    report = json.loads(steelyard("report", "last", "--as", "json").out)
    assert report["scores"]["accuracy"]["value"] == 0.25


def warm_up() -> None:
    """Another temperature for the judge `mine`."""
    with Path("steelyard.toml").open("a", encoding="utf-8") as file:
        file.write("body = { temperature = 1 }\n")


def test_rescoring_takes_the_replies_that_the_run_was_given(steelyard: Steelyard, samples: Path) -> None:
    """Though the same judge has answered the same asks otherwise since: under other parameters, or afresh."""

    def contrary(request: Request) -> dict[str, Any]:
        reply = judge_facts(request)
        wrong = {"label": "wrong", "quote": None, "reference": None, "source": "own_knowledge"}
        return reply if request.task == "atomic.split" else {**reply, "atoms": [{**reply["atoms"][0], **wrong}]}

    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        server.reply_for = contrary
        assert steelyard("run", samples, *MINE, "--fresh").code == 0
        warm_up()
        assert steelyard("run", samples, *MINE).code == 0
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        assert len(server.requests) == 36
    for run, accuracy in (("1", 1.0), ("2", 0.0), ("3", 0.0), ("4", 1.0)):
        assert steelyard("rescore", run, "-o", "out.jsonl").code == 0
        assert accuracies() == [accuracy] * 6


def test_a_run_goes_on_in_the_same_words(steelyard: Steelyard, samples: Path) -> None:
    """Forgotten --prompts, or another temperature, would mix two ways of judging in one run; nothing is asked."""
    text = steelyard("prompts", "print", "atomic.split.en").out.replace("You split", "Kindly split")
    Path("own.en.md").write_text(text, "utf-8")
    with fact_server() as server:
        point_to(server)
        words = ("--prompts", "own.en.md")
        assert steelyard("run", samples, *MINE, *words, "--max-tokens", 300, "-c", 1).code == 3
        before = len(server.requests)
        done = steelyard("resume")
        assert (done.code, "the prompt atomic.split.en is not what it was" in done.err) == (2, True)
        warm_up()
        done = steelyard("resume", *words)
        assert (done.code, "body is not what it was" in done.err) == (2, True)
        assert len(server.requests) == before
        point_to(server, timeout=9, retries=1)
        assert steelyard("resume", *words).code == 0
        assert len(asked(server)) == len(set(asked(server))) == 12


def test_recording_does_not_make_anybody_pay_again(steelyard: Steelyard, samples: Path) -> None:
    """With `--record` or without, it is the same question; the recording holds what the journal knew, too."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE).code == 0
        assert steelyard("run", samples, *MINE, "--record", "replies.jsonl").code == 0
        assert len(server.requests) == 12
        manifests = [json.loads(steelyard("runs", "show", run).out)["manifest"]["judge"] for run in ("1", "2")]
    assert manifests[0] == manifests[1]
    assert steelyard("run", samples, "-p", "atomic", "-j", "recorded:replies.jsonl", "-o", "out.jsonl").code == 0
    assert accuracies() == [1.0] * 6


def test_equal_samples_far_apart_are_paid_once_in_the_sums(steelyard: Steelyard) -> None:
    """A repeated sample is free, and the run says so: its sum is what the server was asked."""
    rows = lines_of(facts(Path("some.jsonl"), 4))
    write_lines(Path("twice.jsonl"), [*rows, *({**row, "id": f"again-{row['id']}"} for row in rows)])
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", "twice.jsonl", *MINE, "-c", 1, "-o", "out.jsonl", "--progress", "json")
        assert len(server.requests) == 8
    assert sum(line["usage"]["calls"] for line in lines_of("out.jsonl")) == 8
    assert json.loads([line for line in done.err.splitlines() if line.startswith("{")][-1])["calls"] == 8


def test_a_run_that_fails_says_how_to_go_on(steelyard: Steelyard, samples: Path) -> None:
    """Whoever has paid for something is told that it is kept, and the command that uses it."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = _revoked_after(server, 3)
        done = steelyard("run", samples, *MINE, "-c", 1)
        assert done.code == 4
        assert "kept: 1 verdicts and 3 replies in .steelyard/store.db; go on with: steelyard resume" in done.err


def test_complete_means_that_every_row_is_accounted_for(steelyard: Steelyard, samples: Path) -> None:
    """A verdict that got lost on its way into the store is noticed when the run is called complete, and resumed."""
    with fact_server() as server:
        point_to(server)
        with Store.open(Path(".steelyard/store.db")) as store:
            store._db.execute(
                "CREATE TRIGGER lose AFTER INSERT ON samples WHEN new.seq = 2 BEGIN "
                "DELETE FROM samples WHERE run = new.run AND seq = new.seq; END"
            )
        done = steelyard("run", samples, *MINE)
        assert done.code == 3
        assert "stopped: 1 of 6 rows have neither a verdict nor an error; go on with: steelyard resume" in done.err
        assert json.loads(steelyard("runs", "show").out)["state"] == "stopped"
        with Store.open(Path(".steelyard/store.db")) as store:
            store._db.execute("DROP TRIGGER lose")
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert json.loads(steelyard("runs", "show").out)["manifest"]["rows"] == 6
        assert len(server.requests) == 12
    assert accuracies() == [1.0] * 6


class Poisoned(Judge):
    """Judges all but one sample, for which it gives a reason that no file can hold."""

    name = "poisoned"

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if "Fact 3 " in ask.data.model_dump_json():
            return Unjudged(reason="\ud800")
        data = judge_facts(Request("", {}, {"messages": [{"role": "user", "content": ask.data.model_dump_json()}]}))
        if ask.task == "atomic.split":
            data = {"atoms": [{"id": 1, "text": "Fact holds."}]}
        return Reply(data=ask.reply.model_validate(data), raw="")


def test_one_verdict_that_cannot_be_written_keeps_no_other_out(samples: Path, tmp_path: Path) -> None:
    """A judge of your own may say anything: its failure is raised, after all other verdicts are in the store."""
    protocol = get_protocol("atomic")
    options, data = protocol.parse_options({"date": "2026-03-02"}), Input([str(samples)])
    with Store.open(tmp_path / "store.db") as store:
        run = runs.start(store, protocol, options, Poisoned(), "poisoned", Prompts.shipped(), data, runs.RunSettings())
        with pytest.raises(ValueError, match="surrogates"):
            asyncio.run(run.drive(lambda *_: None, lambda _: None))
        assert [verdict.id for _, verdict in store.verdicts(run.row.id)] == [f"fact-{n}" for n in (1, 2, 4, 5, 6)]
        assert store.run(run.row.id).state == "stopped"


# --- the store -----------------------------------------------------------------------------------------------------


def test_a_store_of_a_newer_version(steelyard: Steelyard) -> None:
    """It is left alone, and the user is told to upgrade."""
    with sqlite3.connect("new.db") as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    for words in (["report"], ["run", RAG, "-p", "atomic", "-j", RECORDED]):
        done = steelyard(*words, "--store", "new.db")
        assert done.code == 5
        assert "newer Steelyard" in done.err
        assert done.err.count("\n") == 1


def test_a_store_that_is_no_database(steelyard: Steelyard) -> None:
    """Some other file is not touched."""
    Path("notes.txt").write_text(
        "This is not a database, and it is long enough to be read as a header.\n" * 20, "utf-8"
    )
    before = Path("notes.txt").read_bytes()
    done = steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--store", "notes.txt")
    assert done.code == 5
    assert "not a Steelyard store" in done.err
    assert Path("notes.txt").read_bytes() == before


def test_a_store_in_an_impossible_place(steelyard: Steelyard) -> None:
    """A folder, or a path below a file, is one line with exit code 5."""
    Path("file").touch()
    for place in (".", "file/store.db"):
        done = steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--store", place)
        assert (done.code, done.err.count("\n")) == (5, 1), done.err


def test_a_store_that_may_not_be_written(tmp_path: Path) -> None:
    """SQLite's refusal to write becomes one line that says what to do."""
    with Store.open(tmp_path / "store.db") as store:
        # Root may write everywhere, so the database itself is made to refuse.
        store._db.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be opened for writing"):
            store.create_run("run", "atomic", "nobody", "2026-01-01", {})


def test_runs_are_found_by_number_id_and_beginning(steelyard: Steelyard) -> None:
    """A run is named by what is convenient; what is ambiguous or unknown is said with the ids there are."""
    for _ in range(2):
        assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED).code == 0
    with Store.open(Path(".steelyard/store.db")) as store:
        second, first = store.runs()
    assert (first.number, second.number) == (1, 2)
    for name in ("1", first.id, "last"):
        assert steelyard("report", name).code == 0
    ambiguous = steelyard("report", first.id[:6])
    assert (ambiguous.code, first.id in ambiguous.err) == (2, True)
    unknown = steelyard("report", "17")
    assert (unknown.code, second.id in unknown.err) == (2, True)


def test_the_manifest_says_how_the_run_came_about(steelyard: Steelyard, samples: Path) -> None:
    """Protocol, options, prompts, judge, data and packages are kept with the run; secrets are not."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE, "-O", "place=Ashby").code == 0
    with Store.open(Path(".steelyard/store.db")) as store:
        run = store.run("last")
    manifest = run.manifest
    assert run.state == "complete"
    assert manifest["protocol"] == {"name": "atomic", "version": 2}
    assert manifest["options"]["place"] == "Ashby"
    assert {"atomic.split.en", "atomic.judge.zh"} <= manifest["prompts"].keys()
    assert manifest["judge"]["model"] == "test-model"
    assert manifest["data"][0]["bytes"] == samples.stat().st_size
    assert "pydantic" in manifest["packages"]
    assert "headers" not in json.dumps(manifest)


def test_runs_of_the_same_second_have_ids_of_their_own() -> None:
    """A server starts hundreds at once, and so do several machines; two random bytes were not enough."""
    assert len({runs.new_run_id() for _ in range(300)}) == 300
