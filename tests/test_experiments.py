"""Experiments: every combination is judged once, a stopped one goes on, and one table compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import RAG, RECORDED, Steelyard, fact_server, facts, judge_facts
from endpoint import Loopback, Request, Status
from html_page import read_page


@pytest.fixture
def server() -> Iterator[Loopback]:
    with fact_server() as running:
        yield running


def settings(server: Loopback, experiment: str, *, price: str = "") -> None:
    """Two judges of different models at one endpoint, and an experiment."""
    judges = "".join(
        f'[judges.{name}]\nbase_url = "{server.url}"\nmodel = "model-{name}"\nretries = 0\ntimeout = 5\n'
        for name in ("a", "b")
    )
    Path("steelyard.toml").write_text(f"{judges}{price}{experiment}", encoding="utf-8")


GRID = """
[experiments.facts]
data = "facts.jsonl"
protocols = ["atomic"]
judges = ["a", "b"]

[experiments.facts.options.plain]
[experiments.facts.options.strict]
strict = true
"""


def table(said: str) -> dict[str, Any]:
    return json.loads(said)


def test_every_combination_is_a_run_and_is_judged_once(steelyard: Steelyard, server: Loopback) -> None:
    """Two judges and two variants make four runs; what two of them ask alike is asked once, and a second time nothing
    is asked at all."""
    facts(Path("facts.jsonl"), 3)
    settings(server, GRID)
    done = steelyard("experiment", "facts", "--json", "--progress", "quiet")
    assert done.code == 0, done.err
    runs = table(done.out)["runs"]
    assert [(run["judge"], run["options"], run["state"]) for run in runs] == [
        ("a", "plain", "complete"),
        ("a", "strict", "complete"),
        ("b", "plain", "complete"),
        ("b", "strict", "complete"),
    ]
    assert [run["is_baseline"] for run in runs] == [True, False, False, False]
    assert len(server.requests) == 12
    again = steelyard("experiment", "facts", "--json", "--progress", "quiet")
    assert [run["run"] for run in table(again.out)["runs"]] == [run["run"] for run in runs]
    assert len(server.requests) == 12


def test_a_run_of_the_same_kind_counts(steelyard: Steelyard, server: Loopback) -> None:
    """What `steelyard run` judged in the same way is part of the experiment; another day does not matter."""
    facts(Path("facts.jsonl"), 2)
    settings(server, GRID)
    steelyard("run", "facts.jsonl", "-p", "atomic", "-j", "a", "--date", "2020-01-01", "--progress", "quiet")
    done = steelyard("experiment", "facts", "--dry-run")
    assert re.findall(r"^  (\w+)", done.err, re.MULTILINE) == ["complete", "pending", "pending", "pending"]
    assert (done.out, len(server.requests)) == ("", 4)


def test_changed_data_are_judged_anew(steelyard: Steelyard, server: Loopback) -> None:
    """A run over another version of the file is not taken for this one."""
    facts(Path("facts.jsonl"), 1)
    settings(server, GRID.replace('["a", "b"]', '"a"'))
    before = table(steelyard("experiment", "facts", "--json", "--progress", "quiet").out)["runs"]
    facts(Path("facts.jsonl"), 2)
    after = table(steelyard("experiment", "facts", "--json", "--progress", "quiet").out)["runs"]
    assert not {run["run"] for run in before} & {run["run"] for run in after}
    assert [run["n"] for run in after] == [2, 2]


def test_a_stopped_experiment_goes_on_and_pays_nothing_twice(steelyard: Steelyard, server: Loopback) -> None:
    """After a budget is spent the table shows how far it came; the same command finishes it."""
    facts(Path("facts.jsonl"), 6)
    prices = "".join(f'[prices."model-{name}"]\nprompt = 1000\ncompletion = 1000\n' for name in ("a", "b"))
    settings(server, GRID, price=prices)
    stopped = steelyard("experiment", "facts", "--max-cost", 0.5, "-c", 1, "--json", "--progress", "quiet")
    assert stopped.code == 3
    assert "the same command goes on" in stopped.err
    states = [run["state"] for run in table(stopped.out)["runs"]]
    assert states[0] == "stopped"
    assert states[1:] == ["pending"] * 3
    asked = len(server.requests)
    assert 0 < asked < 24
    done = steelyard("experiment", "facts", "--json", "--progress", "quiet")
    assert done.code == 0, done.err
    assert len(server.requests) == 24
    assert table(done.out)["runs"][0]["run"] == table(stopped.out)["runs"][0]["run"]


def test_a_judge_that_cannot_be_used_does_not_end_the_others(steelyard: Steelyard, server: Loopback) -> None:
    """Its rows say why; when it is mended, only they are judged."""
    facts(Path("facts.jsonl"), 2)
    settings(server, GRID.replace('"a", "b"', '"b", "a"').partition("\n[experiments.facts.options")[0])

    def only_a(request: Request) -> Any:
        return Status(401, "no such key") if request.body["model"] == "model-b" else judge_facts(request)

    server.reply_for = only_a
    failed = steelyard("experiment", "facts", "--lang", "en", "--progress", "quiet")
    assert failed.code == 4
    assert "Runs: 1 of 2 complete" in failed.out
    assert "no such key" in failed.out
    server.reply_for = judge_facts
    done = steelyard("experiment", "facts", "--json", "--progress", "quiet")
    assert done.code == 0, done.err
    assert [run["state"] for run in table(done.out)["runs"]] == ["complete", "complete"]
    assert sum(request.body["model"] == "model-a" for request in server.requests) == 4


def test_the_table_compares_with_the_first_run_in_every_form(steelyard: Steelyard) -> None:
    """Differences are paired, with their decision; terminal, Markdown, HTML and JSON tell the same."""
    worse = [json.loads(line) for line in Path(RAG).read_text("utf-8").splitlines()]
    Path("b.jsonl").write_text("\n".join(json.dumps(row | {"id": row["id"]}) for row in worse[:-1]), encoding="utf-8")
    Path("a.jsonl").write_text(Path(RAG).read_text("utf-8"), encoding="utf-8")
    Path("steelyard.toml").write_text(
        '[experiments."<b>v2</b>"]\ndata = ["a.jsonl", "b.jsonl"]\nprotocols = ["atomic", "scorecard"]\n'
        f'judges = ["{RECORDED}"]\n'
    )
    name = "<b>v2</b>"
    done = steelyard(
        "experiment", name, "--lang", "en", "--markdown", "t.md", "--html", "t.html", "--progress", "quiet"
    )
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert "equal" in done.out
    written = Path("t.md").read_text("utf-8")
    assert "| a.jsonl | atomic | Accuracy | 70.0% |" in written
    page = read_page(Path("t.html").read_text("utf-8"))
    assert "<b>v2" not in Path("t.html").read_text("utf-8")
    assert "70.0%" in page.text
    runs = table(steelyard("experiment", name, "--json", "--progress", "quiet").out)["runs"]
    # All four main scores of a scorecard are compared, for the second file only.
    compared = {(run["data"], run["protocol"]): [s["n_pairs"] for s in run["scores"]] for run in runs}
    assert compared[("a.jsonl", "scorecard")] == [0, 0, 0, 0]
    assert all(n > 0 for n in compared[("b.jsonl", "scorecard")])


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('data = "facts.jsonl"\nprotocols = []', "experiments.x.protocols: "),
        ('protocols = ["atomic"]', "experiments.x.data: Field required"),
        ('data = "facts.jsonl"\nprotocols = ["atomic"]\ncolour = 1', "experiments.x.colour: "),
        ('data = "facts.jsonl"\nprotocols = ["atomik"]', "experiments.x.protocols: there is no protocol 'atomik'"),
        ('data = "nowhere.jsonl"\nprotocols = "atomic"', "experiments.x.data: nowhere.jsonl: there is no such file"),
        (
            'data = ["facts.jsonl", "facts.jsonl"]\nprotocols = "atomic"',
            "experiments.x.data: 'facts.jsonl' is named twice",
        ),
        ('data = "facts.jsonl"\nprotocols = "atomic"\njudges = ["c"]', "experiments.x.judges: there is no judge 'c'"),
        (
            'data = "facts.jsonl"\nprotocols = "atomic"\n[experiments.x.options.odd]\ncolour = 1',
            "experiments.x.options.odd: atomic has no option 'colour'",
        ),
    ],
)
def test_an_error_names_the_table_and_the_key(steelyard: Steelyard, written: str, told: str) -> None:
    """Whatever is wrong is said before anything is judged."""
    facts(Path("facts.jsonl"), 1)
    Path("steelyard.toml").write_text(f"[experiments.x]\n{written}\n", encoding="utf-8")
    done = steelyard("experiment", "x")
    assert done.code == 2
    assert f"steelyard: steelyard.toml: {told}" in done.err


def test_an_unknown_experiment_is_told_with_the_known_ones(steelyard: Steelyard, server: Loopback) -> None:
    """A slip in the name is not an empty experiment."""
    settings(server, GRID)
    assert "no table [experiments.fact]; there are facts" in steelyard("experiment", "fact").err
