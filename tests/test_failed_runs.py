"""Runs whose judge labelled nothing: failed everywhere, with the reason and what to do, until they are retried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import Done, Steelyard, fact_server, facts, judge_facts, lines_of, point_to
from endpoint import Status
from steelyard.store import Store

MINE = ("-p", "atomic", "-j", "mine")


@pytest.fixture
def samples(steelyard: Steelyard) -> Path:
    """Six samples in the test's folder."""
    return facts(Path("facts.jsonl"), 6)


def listed(steelyard: Steelyard) -> list[dict[str, Any]]:
    return [json.loads(line) for line in steelyard("runs", "list", "--json").out.splitlines()]


def run_in_vain(steelyard: Steelyard, samples: Path, *more: str) -> Done:
    """A run against a server that fails every call."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = lambda request: Status(500, "overloaded")
        return steelyard("run", samples, *MINE, *more)


def test_an_endpoint_that_fails_every_call(steelyard: Steelyard, samples: Path) -> None:
    """Every sample fails, each says why, and nothing is scored: the run failed, with exit code 4, and report, list
    and standard error say why and what to do before anything else. Resuming does not make it better."""
    done = run_in_vain(steelyard, samples, "-o", "out.jsonl", "--lang", "en")
    assert done.code == 4
    assert [line["scores"]["accuracy"] for line in lines_of("out.jsonl")] == [None] * 6
    assert all("unjudged:atoms:server_error" in line["flags"] for line in lines_of("out.jsonl"))
    told = " ".join(done.out.split())
    assert told.startswith(
        "Report · Atomic accuracy This run failed: the judge labelled nothing. Most frequent reason: "
    )
    assert "the judge's server failed (6 of 6 samples, HTTP 500: overloaded" in told
    assert told.index("status page") < told.index("Samples: 6")
    for told in (done.out, done.err, steelyard("runs", "list").out, steelyard("report", "--lang", "en").out):
        assert "the judge's server failed" in told
        assert "status page" in told
    (row,) = listed(steelyard)
    assert (row["state"], row["failure"]["reason"], row["failure"]["n"]) == ("failed", "server_error", 6)
    assert json.loads(steelyard("report", "--as", "json").out)["failure"]["reason"] == "server_error"
    assert steelyard("resume").code == 4
    assert listed(steelyard)[0]["failure"] == row["failure"]


def test_a_failed_run_that_is_retried_is_whole(steelyard: Steelyard, samples: Path) -> None:
    """A server that fails every call and then recovers: failed first, complete after retry, and nothing says failed."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = lambda request: Status(500, "overloaded")
        first = steelyard("run", samples, *MINE, "--lang", "en")
        assert (first.code, listed(steelyard)[0]["state"]) == (4, "failed")
        assert "overloaded" in first.err
        server.reply_for = judge_facts
        assert steelyard("retry", "--lang", "en").code == 0
    (row,) = listed(steelyard)
    assert (row["state"], row["failure"], "failure" in row["manifest"]) == ("complete", None, False)
    assert "failed:" not in steelyard("report", "--lang", "en").out


def test_every_call_failed_although_a_sample_needed_none(steelyard: Steelyard, samples: Path) -> None:
    """An empty answer is judged without a call. A run whose calls all failed is failed all the same."""
    with samples.open("a") as file:
        file.write(json.dumps({"id": "empty", "question": "And?", "references": ["Yes."], "answer": ""}) + "\n")
    with fact_server() as server:
        point_to(server)
        server.reply_for = lambda request: Status(500, "overloaded")
        done = steelyard("run", samples, *MINE, "--lang", "en")
        assert done.code == 4
        assert "(6 of 7 samples" in done.out
        (row,) = listed(steelyard)
        assert (row["state"], row["samples"]) == ("failed", {"failed": 6, "judged": 1})
        assert steelyard("resume").code == 4
        assert listed(steelyard)[0]["state"] == "failed"


def test_one_answer_is_enough_not_to_fail(steelyard: Steelyard, samples: Path) -> None:
    """A run in which some samples were judged has gaps; it did not fail."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = lambda request: (
            judge_facts(request) if "Fact 1 holds" in request.user else Status(500, "overloaded")
        )
        assert steelyard("run", samples, *MINE).code == 3
    assert (listed(steelyard)[0]["state"], listed(steelyard)[0]["failure"]) == ("complete", None)


def test_a_refused_key_fails_the_run(steelyard: Steelyard, samples: Path) -> None:
    """A judge that cannot be used at all: the run failed, and the list says what the endpoint said."""
    with fact_server() as server:
        point_to(server)
        server.reply_for = lambda request: Status(401, "bad key")
        assert steelyard("run", samples, *MINE).code == 4
    (row,) = listed(steelyard)
    assert (row["state"], row["failure"]["reason"]) == ("failed", "unusable")
    assert "check the environment variable MY_KEY" in steelyard("runs", "list").out
    assert "check the environment variable MY_KEY" in steelyard("report", "--lang", "en").out


def test_a_failed_run_of_an_earlier_version(steelyard: Steelyard, samples: Path) -> None:
    """It says complete and notes no reason; its samples tell that it failed, and why. So do its result lines."""
    run_in_vain(steelyard, samples, "-o", "out.jsonl")
    with Store.open(Path(".steelyard/store.db")) as store:
        row = store.run("last")
        manifest = {name: value for name, value in row.manifest.items() if name != "failure"}
        store.update_run(row.id, state="complete", finished=row.finished, manifest=manifest)
    (row_,) = listed(steelyard)
    assert (row_["state"], row_["failure"]["reason"]) == ("failed", "server_error")
    for source in ("last", "out.jsonl"):
        told = json.loads(steelyard("report", source, "--as", "json", "--lang", "en").out)["failure"]
        assert (told["reason"], told["n"], told["of"]) == ("server_error", 6, 6)
        assert "status page" in told["remedy"]


def test_a_failed_run_does_not_pass_a_gate(steelyard: Steelyard, samples: Path) -> None:
    """It is finished, but nothing was measured: the gate fails, and does not call it unfinished."""
    run_in_vain(steelyard, samples)
    done = steelyard("gate", "last", "--require", "accuracy>=0.1", "--json")
    assert done.code == 6
    assert [check["kind"] for check in json.loads(done.out)["checks"]] == ["require", "unjudged"]


def test_a_judge_without_its_key_makes_no_run(
    steelyard: Steelyard, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable to set is named, with exit code 2; neither alone nor as one of several does it leave a run behind.
    What it would take can be estimated without."""
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    for judge in ("deepseek:deepseek-chat", "embedded>deepseek:deepseek-chat"):
        done = steelyard("run", samples, "-p", "atomic", "-j", judge)
        assert (done.code, "set DEEPSEEK_API_KEY" in done.err) == (2, True)
    assert listed(steelyard) == []
    assert steelyard("run", samples, "-p", "atomic", "-j", "deepseek:deepseek-chat", "--dry-run").code == 0
