"""`steelyard runs`: what the store holds, as people type it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from command import DIALOGUE, RAG, RECORDED, Steelyard, fact_server, facts, lines_of, point_to
from endpoint import Loopback, Status
from steelyard.cli.results import ResultsSource
from steelyard.errors import StoreError


def two_runs(steelyard: Steelyard) -> None:
    assert steelyard("run", RAG, "-p", "scorecard", "-j", RECORDED, "--progress", "quiet").code == 0
    assert steelyard("run", DIALOGUE, "-p", "dialogue", "-j", RECORDED, "--progress", "quiet").code == 0


def listed(steelyard: Steelyard) -> list[dict[str, object]]:
    return [json.loads(line) for line in steelyard("runs", "list", "--json").out.splitlines()]


def test_list_shows_what_can_be_typed(steelyard: Steelyard) -> None:
    """Newest first, within 80 columns, each id in full, how many samples and how many of them have gaps."""
    two_runs(steelyard)
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED).code == 0
    ids = [str(run["id"]) for run in listed(steelyard)]
    shown = steelyard("runs", "list").out.splitlines()
    assert all(cell_len(line) <= 80 for line in shown)
    assert [line.split()[:3] for line in shown[1:]] == [
        ["3", ids[0], "atomic"],
        ["2", ids[1], "dialogue"],
        ["1", ids[2], "scorecard"],
    ]
    assert [line.split()[5:] for line in shown[1:]] == [["8"], ["3"], ["8"]]


def test_list_says_where_gaps_are(steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose samples failed is told from one that is whole, also where the judge's name is long."""
    Path("steelyard.toml").write_text(f'[judges.{"long-" * 8}judge]\nmodel = "m"\nretries = 0\n')
    file = facts(tmp_path / "facts.jsonl", 2)
    with Loopback(reply_for=lambda request: Status(500)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert steelyard("run", file, "-p", "atomic", "-j", "long-" * 8 + "judge", "--progress", "quiet").code == 4
    row = steelyard("runs", "list").out.splitlines()[1]
    assert str(listed(steelyard)[0]["id"]) in row
    assert row.split()[-2:] == ["2", "2"]
    assert cell_len(row) <= 80


@pytest.mark.parametrize(
    "command",
    [["runs", "list"], ["runs", "show"], ["runs", "delete", "1", "--yes"], ["export", "1", "--to", "x.csv"]],
)
def test_looking_creates_nothing(steelyard: Steelyard, command: list[str]) -> None:
    """A mistyped store is said to be missing, not made."""
    done = steelyard(*command, "--store", "tpyo.db")
    assert done.code == 5
    assert "tpyo.db" in done.err
    assert not Path("tpyo.db").exists()


def test_show_is_the_manifest(steelyard: Steelyard) -> None:
    """What is needed to tell how a run came about: data, judge, options, prompts, counts."""
    two_runs(steelyard)
    shown = json.loads(steelyard("runs", "show", "1").out)
    assert (shown["protocol"], shown["state"], shown["samples"]) == ("scorecard", "complete", {"judged": 8})
    assert shown["manifest"]["data"][0]["path"] == RAG
    assert {"scorecard.judge.zh", "again.en"} <= shown["manifest"]["prompts"].keys()


def test_what_a_report_reads_is_closed_again(steelyard: Steelyard) -> None:
    """A run's store does not stay open until the process ends."""
    two_runs(steelyard)
    found = ResultsSource("1", None, None)
    store = found.store
    assert next(found.verdicts())
    del found
    with pytest.raises(StoreError, match="closed"):
        store.run("1")


def test_export_delete_import(steelyard: Steelyard) -> None:
    """A whole run goes out, is deleted, comes back, and reports the same; a second time it is refused."""
    two_runs(steelyard)
    before = steelyard("report", "1", "--as", "json").out
    assert steelyard("export", "1", "--to", "run.jsonl", "--whole").code == 0
    assert steelyard("runs", "delete", "1", "--yes").code == 0
    assert [run["number"] for run in listed(steelyard)] == [2]
    assert steelyard("runs", "import", "run.jsonl").code == 0
    assert steelyard("report", "last", "--as", "json").out == before
    again = steelyard("runs", "import", "run.jsonl")
    assert (again.code, "already" in again.err) == (2, True)
    # Replies come along: another store can rescore it.
    assert steelyard("runs", "import", "run.jsonl", "--store", "other.db").code == 0
    rescored = steelyard("rescore", "last", "--store", "other.db", "-o", "rescored.jsonl")
    assert rescored.code == 0
    steelyard("export", "last", "--to", "lines.jsonl")
    assert [line["scores"] for line in lines_of("rescored.jsonl")] == [
        line["scores"] for line in lines_of("lines.jsonl")
    ]


def test_delete_asks_first(steelyard: Steelyard) -> None:
    """Without a terminal to ask on, nothing is deleted unless --yes says so."""
    two_runs(steelyard)
    refused = steelyard("runs", "delete", "last", stdin="")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert len(listed(steelyard)) == 2


def test_items_as_a_table(steelyard: Steelyard) -> None:
    """A row per labelled item, in Chinese that spreadsheets read."""
    two_runs(steelyard)
    assert steelyard("export", "1", "--to", "items.csv", "--items").code == 0
    with open("items.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Path("items.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert {row["kind"] for row in rows} == {"sentence", "key_point", "atom"}
    assert any("儿童座椅" in row["text"] for row in rows)


def test_a_model_is_not_a_judge(steelyard: Steelyard) -> None:
    """Who names a model where a judge is wanted is told how to write it."""
    done = steelyard("run", RAG, "-p", "atomic", "-j", "gpt-4o-mini")
    assert done.code == 2
    assert "-j openai:gpt-4o-mini" in done.err


def test_dry_run_sends_nothing(steelyard: Steelyard, tmp_path: Path) -> None:
    """Calls, tokens and cost are said before anything is sent, and no run is begun."""
    with fact_server() as server:
        point_to(server, model="gpt-4o-mini")
        done = steelyard("run", facts(tmp_path / "facts.jsonl", 5), "-p", "atomic", "-j", "mine", "--dry-run")
        assert server.requests == []
    assert done.code == 0
    told = {line.split("  ")[0]: line.split()[-1] for line in done.out.splitlines()[:2]}
    assert told == {"samples": "5", "calls": "10"}
    assert "cost  " in done.out
    assert "unknown" not in done.out
    assert "nothing was sent" in done.out
    assert not Path(".steelyard").exists()
