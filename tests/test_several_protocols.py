"""Several protocols in one go, as a user has them: the command line and Python over a real server that counts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from command import RAG, Steelyard, lines_of, point_to, write_lines
from endpoint import Loopback, Request
from steelyard import ConfigError, evaluate
from steelyard.judges.chat import ChatJudge
from steelyard.prompts import Prompts
from steelyard.store import Store
from viewer import viewing

BOTH = "scorecard,retrieval"
FACT = "The ferry leaves from the second pier."
ROWS = [
    {"id": "right", "question": "Which pier?", "answer": FACT, "references": [FACT], "reference_answer": FACT},
    {
        "id": "wrong",
        "question": "Which pier is it?",
        "answer": "The ferry leaves from the third pier.",
        "references": ["The café serves soup.", FACT],
        "reference_answer": FACT,
        "tags": ["harbour"],
    },
]
ITEM = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


def reply(request: Request) -> dict[str, Any]:
    """What a model that reads says of these rows."""
    answer = next(row["answer"] for row in ROWS if f"\n{row['question']}\n" in request.user)
    wrong = "third" in answer
    if request.task == "scorecard.key_points":
        return {"key_points": [{"id": 1, "text": FACT}]}
    if request.task == "atomic.split":
        return {"atoms": [{"id": 1, "text": answer}]}
    if request.task == "scorecard.judge":
        return {
            "sentences": [{"id": 1, "quote": FACT, "reason": "r", "on_topic": True, "support": "supported"}],
            "key_points": [{"id": 1, "reason": "r", "label": "missing" if wrong else "covered", "depth": None}],
            "atoms": [
                {"id": 1, "quote": FACT, "reason": "r", "label": "wrong" if wrong else "correct", "source": "reference"}
            ],
            "summary": "s",
        }
    asked = request.user.partition("<retrieved ")[2].partition("</retrieved ")[0]
    ids = [int(number) for number, _ in ITEM.findall(asked)]
    good, poor = {"label": "answers", "use": "used"}, {"label": "irrelevant", "use": "unused"}
    return {
        "retrieved": [{"id": id, "reason": "r", **(good if id == ids[-1] else poor)} for id in ids],
        "key_points": [
            {"id": 1, "passages": ids[-1:], "quote": FACT, "reason": "r", "label": "found",
             "in_answer": "contradicted" if wrong else "stated"}
        ],
        "refuses": False,
    }  # fmt: skip


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(reply_for=reply) as running:
        yield running


@pytest.fixture
def desk(steelyard: Steelyard, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    monkeypatch.setenv("MY_KEY", "key")
    point_to(server)
    write_lines(Path("rows.jsonl"), ROWS)
    return steelyard


def run(desk: Steelyard, protocol: str, *more: object, code: int = 0) -> Any:
    done = desk("run", "rows.jsonl", "-p", protocol, "-j", "mine", "--lang", "en", *more)
    assert done.code == code, done.err
    return done


def tasks(server: Loopback) -> Counter[str | None]:
    return Counter(request.task for request in server.requests)


def test_both_together_cost_less_than_each_alone(desk: Steelyard, server: Loopback) -> None:
    """Key points are drawn once for both: 4 calls a sample instead of 3 and 2."""
    alone = 0
    for name in BOTH.split(","):
        run(desk, name, "--store", f"{name}.db")
        alone, server.requests[:] = alone + len(server.requests), []
    done = run(desk, BOTH, "-o", "out.jsonl")
    assert (alone, len(server.requests)) == (10, 8)
    assert tasks(server) == {"scorecard.key_points": 2, "atomic.split": 2, "scorecard.judge": 2, "retrieval.judge": 2}
    assert "Report · Scorecard" in done.out
    assert "Report · Retrieval" in done.out
    assert "2 runs over the same samples: scorecard, retrieval" in done.err
    for name in BOTH.split(","):
        lines = [(line["protocol"], line["id"]) for line in lines_of(f"out.{name}.jsonl")]
        assert lines == [(name, row["id"]) for row in ROWS]
    assert not Path("out.jsonl").exists()
    with Store.open(Path(".steelyard/store.db")) as store:
        assert [row.protocol for row in store.runs()] == ["retrieval", "scorecard"]
        assert len({row.manifest["group"] for row in store.runs()}) == 1


@pytest.mark.parametrize("order", [BOTH, "retrieval,scorecard"])
def test_fresh_replies_are_shared_too(desk: Steelyard, server: Loopback, order: str) -> None:
    """`--fresh` trusts nothing from before, but what one run of the command was answered serves the next."""
    run(desk, order)
    run(desk, order, "--fresh")
    assert len(server.requests) == 16


def test_what_was_stopped_goes_on_together(desk: Steelyard, server: Loopback) -> None:
    """A budget that ends in the first run leaves the second for `resume`, and nothing is asked twice."""
    stopped = run(desk, BOTH, "--max-tokens", "300", "-c", "1", code=3)
    assert "go on with: steelyard resume" in stopped.err
    assert "Report · Retrieval" not in stopped.out
    done = desk("resume", "last", "--lang", "en", "-o", "out.jsonl")
    assert done.code == 0, done.err
    assert "Report · Scorecard" in done.out
    assert "Report · Retrieval" in done.out
    assert len(server.requests) == 8
    assert [len(lines_of(f"out.{name}.jsonl")) for name in BOTH.split(",")] == [2, 2]
    again = desk("resume", "last", "--lang", "en")
    assert again.code == 0
    assert "Report · Scorecard" not in again.out, "only what is not finished goes on"


def test_a_budget_is_one_for_all(desk: Steelyard, server: Loopback) -> None:
    """What the first run spends is not there for the second."""
    # The first run takes 6 calls of 120 tokens.
    run(desk, BOTH, "--max-tokens", "800", "-c", "1", code=3)
    assert tasks(server)["retrieval.judge"] < 2
    assert tasks(server)["scorecard.judge"] == 2


def test_in_python_with_and_without_a_store(server: Loopback, tmp_path: Path) -> None:
    """A list of protocols gives results by protocol, from any kind of samples, and shares asks in either case."""

    def judge() -> ChatJudge:
        return ChatJudge(server.endpoint(), Prompts.shipped())

    results = evaluate(iter(ROWS), ["scorecard", "retrieval"], judge())
    assert len(server.requests) == 8
    assert list(results) == ["scorecard", "retrieval"]
    assert [verdict.scores["accuracy"] for verdict in results["scorecard"]] == [100, 0]
    assert [verdict.scores["recall"] for verdict in results["retrieval"]] == [1, 1]
    kept = evaluate(iter(ROWS), ("scorecard", "retrieval"), judge(), store=tmp_path / "s.db")
    assert len(server.requests) == 16
    lines = [[verdict.line() for verdict in one] for one in results.values()]
    assert [[verdict.line() for verdict in one] for one in kept.values()] == lines
    assert evaluate(ROWS, ["retrieval"], judge(), store=tmp_path / "s.db").keys() == {"retrieval"}
    assert len(server.requests) == 16


def test_options_go_to_whom_they_belong(desk: Steelyard, server: Loopback) -> None:
    """An option that only one of them has is for that one; one that none has is an error before any call."""
    run(desk, BOTH, "-O", "k=1", "--strict")
    with Store.open(Path(".steelyard/store.db")) as store:
        by_protocol = {row.protocol: row.manifest["options"] for row in store.runs()}
    assert by_protocol["retrieval"]["k"] == 1
    assert by_protocol["scorecard"]["strict"] is True
    server.requests.clear()
    failed = run(desk, BOTH, "-O", "kk=1", code=2)
    assert "none of the protocols scorecard, retrieval has an option 'kk'" in failed.err
    assert server.requests == []


@pytest.mark.parametrize(
    ("protocol", "more", "said"),
    [
        ("retrieval,retrieval", (), "named twice"),
        ("retrieval,dialogue", (), "different kinds of samples"),
        ("retrieval,nope", (), "there is no protocol 'nope'"),
        (BOTH, ("--template", "p.txt"), "--template is for one protocol"),
    ],
)
def test_what_cannot_go_together(desk: Steelyard, protocol: str, more: tuple[str, ...], said: str) -> None:
    """It is refused with the reason, and no run is left behind."""
    assert said in run(desk, protocol, *more, code=2).err
    assert not Path(".steelyard/store.db").exists()


def test_standard_input_is_for_one(desk: Steelyard) -> None:
    """It could not be read a second time."""
    done = desk("run", "-", "-p", BOTH, "-j", "mine", "--format", "jsonl")
    assert "standard input can be read only once" in done.err
    with pytest.raises(ConfigError, match="empty list"):
        evaluate(ROWS, [], "embedded")


def test_causes_lead_to_the_samples(desk: Steelyard) -> None:
    """The run's page begins with the causes, each with its count and interval, leading to the samples that have it;
    the report as a file has the same table."""
    run(desk, "retrieval")
    with viewing(Path(".steelyard/store.db")) as address, httpx.Client(base_url=address, timeout=60) as client:
        page = client.get("/runs/last", headers={"accept-language": "en"}, follow_redirects=True).text
        report = client.get("/api/v1/runs/last").json()["report"]
        href = re.search(r'href="([^"]*label=cause[^"]*misread[^"]*)"', page)
        assert href
        listed = client.get(href[1].replace("&amp;", "&"), headers={"accept-language": "en"}).text
    assert 'id="outcomes"' in page
    assert page.index('id="outcomes"') < page.index('id="scores"')
    assert report["outcomes"][0]["label"] == "misread"
    assert report["outcomes"][0]["n"] == 1
    assert report["outcomes"][0]["share"]["interval"]
    assert "/samples/wrong" in listed
    assert "/samples/right" not in listed


def test_a_judge_that_cannot_be_reopened_answers_for_all(steelyard: Steelyard) -> None:
    """The judge is closed once, after the last run: `embedded` gives its processes back then."""
    done = steelyard("run", RAG, "-p", "grounded,retrieval", "-j", "embedded", "--progress", "quiet")
    assert done.code in (0, 3), done.err
    assert "shutdown" not in done.err
    states = [json.loads(line)["state"] for line in steelyard("runs", "list", "--json").out.splitlines()]
    assert states == ["complete", "complete"]
