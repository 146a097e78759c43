"""How far a run is, for people and for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, fact_server, facts, judge_facts, point_to, write_lines
from endpoint import Status
from steelyard.engine import progress
from steelyard.engine.progress import ProgressLine, line, snapshot
from steelyard.engine.runner import Tally
from steelyard.records import Usage, Verdict


def tally(**changes: Any) -> Tally:
    made = Tally(total=10, skipped=2, bad_rows=1, usage=Usage(calls=9, prompt_tokens=900, cost=0.5))
    for status in ("judged", "judged", "partial", "failed"):
        made.count(Verdict(id="s", protocol="atomic", status=status, scores={}))
    made.errors["timeout"] += 2
    for name, value in changes.items():
        setattr(made, name, value)
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_snapshot_adds_up() -> None:
    """Done, skipped and bad rows are told apart; what is left is divided by the rate of what was judged now."""
    state = snapshot(tally(), 2.0, 3)
    assert (state["done"], state["judged"], state["partial"], state["failed"]) == (4, 2, 1, 1)
    assert (state["rate"], state["eta_seconds"], state["in_flight"]) == (2.0, 2, 3)
    assert (state["calls"], state["cost"], state["errors"]) == (9, 0.5, {"timeout": 2})


@pytest.mark.parametrize(
    ("changes", "seconds", "eta"),
    [({"total": None}, 2.0, None), ({"done": 0}, 2.0, None), ({"total": 3}, 2.0, 0), ({}, 0.0, None)],
)
def test_an_eta_is_given_only_where_there_is_one(changes: dict[str, Any], seconds: float, eta: int | None) -> None:
    """Unknown totals, nothing done, no time passed: null, never a negative or endless number."""
    assert snapshot(tally(**changes), seconds, None)["eta_seconds"] == eta


def test_the_line_says_it_in_one_line() -> None:
    """Done of total, rate, time left, in flight, calls, money, errors by kind."""
    assert line(snapshot(tally(), 2.0, 3)) == "7/10 · 2.0/s · 0:02 left · 3 in flight · 9 calls · $0.5000 · 2 timeout"
    unknown = line(snapshot(tally(total=None, usage=Usage()), 2.0, None))
    assert unknown == "7/? · 2.0/s · 0 calls · 2 timeout"


def shown(style: Any, stream: io.StringIO, ticks: int = 3) -> str:
    with ProgressLine(style, tally(), lambda: 1, stream) as running:
        for _ in range(ticks):
            running.tick()
    return stream.getvalue()


def test_quiet_is_silent() -> None:
    """Not one character."""
    assert shown("quiet", Terminal()) == ""


def test_a_terminal_gets_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: live on a terminal; the last state stays, with a line break."""
    monkeypatch.setitem(progress.SECONDS_BETWEEN, "live", 0.0)
    text = shown("auto", Terminal())
    assert (text.count("\r\x1b[2K"), text.count("\n"), text[-1]) == (4, 1, "\n")


def test_a_pipe_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: whole lines without control characters where nobody watches."""
    monkeypatch.setitem(progress.SECONDS_BETWEEN, "plain", 0.0)
    text = shown("auto", io.StringIO())
    assert text.count("\n") == 4
    assert text.isprintable() or not set(text) & set("\r\x1b")


def test_lines_are_not_too_many() -> None:
    """Ticks come ten times a second; a log gets a line every few seconds, and always the last state."""
    assert shown("plain", io.StringIO(), ticks=500).count("\n") == 1
    assert shown("json", io.StringIO(), ticks=500).count("\n") == 1


def test_json_lines_end_with_the_totals(steelyard: Steelyard) -> None:
    """Each line is an object of the same shape; the last one says how the run ended, errors by kind."""
    rows = [*map(json.loads, facts(Path("facts.jsonl"), 4).read_text("utf-8").splitlines()), {"id": "bad"}]
    write_lines(Path("mixed.jsonl"), rows)
    with fact_server(latency=0.3) as server:
        server.reply_for = lambda request: Status(500) if "Fact 2 " in request.user else judge_facts(request)
        point_to(server)
        words = ("run", "mixed.jsonl", "-p", "atomic", "-j", "mine", "-c", 1, "--progress", "json")
        done = steelyard(*words)
    states = [json.loads(text) for text in done.err.splitlines() if text.startswith("{")]
    assert len(states) >= 2
    assert len({tuple(state) for state in states}) == 1
    last = states[-1]
    assert (last["done"], last["total"], last["bad_rows"]) == (4, 5, 1)
    assert (last["judged"], last["failed"], last["errors"]) == (3, 1, {"server_error": 1})
    # A call that the server refused is an error, not a call that was paid for.
    assert (last["calls"], last["in_flight"], last["eta_seconds"]) == (6, 0, 0)
    assert [state["done"] for state in states] == sorted(state["done"] for state in states)
