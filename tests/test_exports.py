"""Runs as files, and back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from steelyard.engine import exports
from steelyard.errors import ConfigError, InputError
from steelyard.records import Atom, Evidence, RagSample, Usage, Verdict
from steelyard.store import RunRow, Store, StoredReply
from steelyard.store.labels import HumanLabel


def judged(number: int, label: str = "correct", text: str = "甲") -> tuple[RagSample, Verdict]:
    sample = RagSample(id=f"s{number}", question="问？", answer=text, references=("据",), tags=("车",))
    atom = Atom(id=1, text=text, label=label, level=1, evidence=Evidence(reference=0, quote="据", verified=True))
    scores = {"accuracy": int(label == "correct"), "accuracy_strict": 0.5, "coverage": None, "fallback": 0}
    return sample, Verdict(
        id=sample.id, protocol="atomic", status="judged", scores=scores, items=(atom,), usage=Usage(calls=2, cost=0.1)
    )


@pytest.fixture
def store(any_store: Store) -> Store:
    """A run in a store of either kind."""
    opened = any_store
    opened.create_run("run-a", "atomic", "scripted", "2026-01-01T00:00:00+00:00", {"options": {}})
    for number in range(3):
        opened.add_verdict("run-a", number, *judged(number, "wrong" if number else "correct"))
    opened.add_bad_row("run-a", InputError("is empty", file="a.jsonl", line=4, field="answer"))
    opened.update_run("run-a", state="complete", finished="2026-01-01T00:01:00+00:00", manifest={"options": {}})
    return opened


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def run(store: Store) -> RunRow:
    return store.run("run-a")


def test_lines_are_the_result_lines(store: Store, tmp_path: Path) -> None:
    """A .jsonl export is what -o would have written."""
    assert exports.write(store, run(store), tmp_path / "out.jsonl") == 3
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert lines == [verdict.line() for _, verdict in store.verdicts("run-a")]


def test_csv_has_a_row_per_sample_that_spreadsheets_can_read(store: Store, tmp_path: Path) -> None:
    """UTF-8 with a mark, one row per sample, empty cells where a score does not apply."""
    exports.write(store, run(store), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    rows = cells(tmp_path / "out.csv")
    assert [row["accuracy"] for row in rows] == ["1", "0", "0"]
    assert rows[0]["coverage"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx"])
def test_csv_cells_cannot_become_formulas(store: Store, tmp_path: Path, text: str) -> None:
    """What a spreadsheet would run is written as text."""
    store.add_verdict("run-a", 9, *judged(9, text=text))
    exports.write(store, run(store), tmp_path / "out.csv", items=True)
    assert cells(tmp_path / "out.csv")[-1]["text"] == f"'{text}"


def test_parquet_keeps_types(store: Store, tmp_path: Path) -> None:
    """Scores are numbers by name, and one that does not apply is null."""
    assert exports.write(store, run(store), tmp_path / "out.parquet") == 3
    table = pq.read_table(tmp_path / "out.parquet")
    assert [dict(scores)["accuracy"] for scores in table.column("scores").to_pylist()] == [1, 0, 0]
    assert dict(table.column("scores").to_pylist()[0])["coverage"] is None
    assert table.column("tags").to_pylist() == [["车"]] * 3
    exports.write(store, run(store), tmp_path / "items.parquet", items=True)
    assert pq.read_table(tmp_path / "items.parquet").column("evidence_quote").to_pylist() == ["据"] * 3


def test_an_empty_run_still_makes_a_file(store: Store, tmp_path: Path) -> None:
    """No samples give an empty table, not an error."""
    store.create_run("run-b", "atomic", "scripted", "2026-01-01T00:00:00+00:00", {})
    for name in ("out.jsonl", "out.csv", "out.parquet"):
        assert exports.write(store, store.run("run-b"), tmp_path / name) == 0
        assert (tmp_path / name).exists()


def test_a_whole_run_moves_to_another_store(store: Store, tmp_path: Path) -> None:
    """Export and import give the same run: manifest, samples, verdicts, bad rows, and what it is called; whether it is
    a baseline there is not for the file to say."""
    store.edit_run("run-a", name="first", tags=["nightly"], meta={"commit": "1a"}, baseline=True)
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    with Store.open(tmp_path / "other.db") as other:
        taken = exports.read(other, tmp_path / "whole.jsonl")
        assert (taken.id, taken.state, taken.finished) == ("run-a", "complete", run(store).finished)
        assert list(other.verdicts("run-a")) == list(store.verdicts("run-a"))
        assert [str(bad) for bad in other.bad_rows("run-a")] == ["a.jsonl:4: answer: is empty"]
        assert (taken.name, taken.tags, taken.meta, taken.baseline) == ("first", ("nightly",), {"commit": "1a"}, False)
        with pytest.raises(ConfigError, match="already"):
            exports.read(other, tmp_path / "whole.jsonl")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "a/../../b"}, "run.id"),
        ({"id": None}, "run.id"),
        ({"manifest": 3}, "run.manifest"),
        ({"protocol": "x"}, "x"),
    ],
)
def test_a_run_that_nobody_could_use_is_refused(
    store: Store, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """An id that is no name, a missing manifest, an unknown protocol: one clear error, and nothing is taken over."""
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    head, *lines = (tmp_path / "whole.jsonl").read_text("utf-8").splitlines()
    head = json.dumps({"run": {**json.loads(head)["run"], **change}})
    (tmp_path / "whole.jsonl").write_text("\n".join([head, *lines]), encoding="utf-8")
    with Store.open(tmp_path / "other.db") as other:
        with pytest.raises((ConfigError, InputError), match=said):
            exports.read(other, tmp_path / "whole.jsonl")
        assert other.runs() == []


def test_a_whole_run_takes_its_replies_along(store: Store, tmp_path: Path) -> None:
    """Whoever takes a run over can rescore and resume it without paying again."""
    usage = Usage(calls=1, prompt_tokens=5, cost=0.1)
    mine = StoredReply("ask-1", "atomic.split", "scripted", '{"atoms": []}', "raw", usage, "run-a")
    store.journal([("key-1", mine)])
    store.journal([("key-2", mine._replace(ask="ask-2", run=None))])
    store.use_reply("run-a", "ask-2", "key-2")
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    with Store.open(tmp_path / "other.db") as other:
        exports.read(other, tmp_path / "whole.jsonl")
        assert list(other.used_replies("run-a")) == list(store.used_replies("run-a"))
        assert len(list(other.used_replies("run-a"))) == 2


def test_a_run_keeps_its_replies_beside_others(store: Store, tmp_path: Path) -> None:
    """Where the same judge said something else to the same ask in the other store, each run keeps its own."""
    told = StoredReply("ask-1", "atomic.split", "scripted", '{"atoms": []}', "there", Usage(), "run-a")
    store.journal([("key-1", told)])
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    here = told._replace(reply='{"atoms": [{"id": 1, "text": "乙"}]}', raw="here", run="run-b")
    with Store.open(tmp_path / "other.db") as other:
        other.create_run("run-b", "atomic", "scripted", "2026-01-02T00:00:00+00:00", {"options": {}})
        other.journal([("key-1", here)])
        exports.read(other, tmp_path / "whole.jsonl")
        assert [other.used_reply(name, "ask-1") for name in ("run-a", "run-b")] == [told, here]


def test_a_whole_run_takes_its_labels_along(store: Store, tmp_path: Path) -> None:
    """What people said moves with the run; what the same person has said in the other store stays as it is."""
    labels = [
        HumanLabel(run="run-a", sample="s1", kind="atom", item=item, label="wrong", annotator="ann", weight=2.5)
        for item in (1, 2)
    ]
    fallback = HumanLabel(run="run-a", sample="s1", kind="fallback", label="0", annotator="ben", note="no doubt")
    store.add_labels([*labels, fallback, labels[0].model_copy(update={"run": "run-b"})])
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    said_here = labels[0].model_copy(update={"label": "correct"})
    with Store.open(tmp_path / "other.db") as other:
        other.add_labels([said_here])
        exports.read(other, tmp_path / "whole.jsonl")
        assert list(other.labels()) == [said_here, labels[1], fallback]


def test_a_damaged_export_leaves_the_store_as_it_was(store: Store, tmp_path: Path) -> None:
    """Taking over is all or nothing, and the error names the line."""
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    lines = (tmp_path / "whole.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "whole.jsonl").write_text("\n".join([*lines[:2], '{"sample": {}}', *lines[2:]]), "utf-8")
    with Store.open(tmp_path / "other.db") as other:
        with pytest.raises(InputError, match=r"whole\.jsonl:3"):
            exports.read(other, tmp_path / "whole.jsonl")
        assert other.runs() == []


def test_an_export_that_is_cut_off_is_no_complete_run(store: Store, tmp_path: Path) -> None:
    """A run that says it is complete is taken over with every row of its input, or not at all."""
    store.update_run(
        "run-a", state="complete", finished="2026-01-01T00:01:00+00:00", manifest={"options": {}, "rows": 4}
    )
    exports.write(store, run(store), tmp_path / "whole.jsonl", whole=True)
    lines = (tmp_path / "whole.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(lines[:-1]), "utf-8")
    with Store.open(tmp_path / "other.db") as other:
        with pytest.raises(InputError, match="1 of 4 rows of this complete run are missing"):
            exports.read(other, tmp_path / "cut.jsonl")
        assert other.runs() == []
        assert exports.read(other, tmp_path / "whole.jsonl").state == "complete"


def test_result_lines_are_not_a_whole_run(store: Store, tmp_path: Path) -> None:
    """Importing the wrong kind of file says which kind is wanted."""
    exports.write(store, run(store), tmp_path / "out.jsonl")
    with pytest.raises(InputError, match="--whole"):
        exports.read(store, tmp_path / "out.jsonl")


def test_the_name_must_say_the_form(store: Store, tmp_path: Path) -> None:
    """An unknown suffix is refused with the known ones."""
    with pytest.raises(ConfigError, match=r"\.jsonl, \.csv or \.parquet"):
        exports.write(store, run(store), tmp_path / "out.xlsx")
