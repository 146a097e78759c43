"""`import`, and files of other tools on the command line and over HTTP: from an export to a calibration."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from command import Steelyard, lines_of
from steelyard.protocols import vocabulary
from steelyard.samples import read_samples
from steelyard.store import Store
from viewer import viewing

FILES = Path(__file__).parent / "fixtures" / "importers"
DIFY = FILES / "dify.jsonl.gz"


def test_feedback_calibrates_a_judge(steelyard: Steelyard) -> None:
    """Thumbs of users become labels of the kind that was named, and a judge is compared with them."""
    done = steelyard("import", DIFY, "--label", "accuracy=feedback", "-o", "samples.jsonl")
    assert (done.code, "dify people · 2 samples · feedback" in done.out, "3 labels kept" in done.out) == (0, True, True)
    assert "3 samples, 2 of them with scores; 0 bad rows" in done.err
    judged = steelyard("run", DIFY, "-p", "grounded", "-j", "embedded", "-o", "results.jsonl")
    assert judged.code == 0
    assert [line["id"] for line in lines_of("results.jsonl")] == ["m-1", "m-2", "m-3"]
    found = json.loads(steelyard("calibrate", "last", "--json").out)
    assert (found["n_used"], found["policy"]) == (3, "dify")
    assert [task["task"] for task in found["tasks"]] == ["accuracy"]
    assert set(found["annotators"]) == {"user:u-7", "user:u-8", "admin:acc-1"}


def test_samples_written_are_samples_read(steelyard: Steelyard) -> None:
    """`-o` writes files of our own, with the ids of the tool, and they are read as what was imported."""
    assert steelyard("import", DIFY, "-o", "samples.jsonl").code == 0
    assert list(read_samples(["samples.jsonl"], "rag")) == list(read_samples([DIFY], "rag"))
    assert lines_of("samples.jsonl")[0]["source"]["message_id"] == "m-1"


def test_labels_of_another_judge(steelyard: Steelyard) -> None:
    """What the judge of SysBench said of each criterion is compared with what ours says of the same one."""
    file = FILES / "sysbench.json"
    done = steelyard("import", file, "--as", "dialogue", "--label", "criterion=criterion met")
    assert (done.code, "2 labels kept" in done.out) == (0, True)
    steelyard("run", file, "-p", "dialogue", "-j", "embedded")
    found = json.loads(steelyard("calibrate", "last", "--json").out)
    assert (found["n_used"], found["annotators"]) == (2, {"sysbench": 2})


def test_scores_of_a_tool_are_runs(steelyard: Steelyard) -> None:
    """They are reported, compared and gated as any run; nothing can be judged anew in it."""
    for _ in range(2):
        assert steelyard("import", FILES / "promptfoo.json").code == 0
    report = json.loads(steelyard("report", "last", "--as", "json").out)
    means = {name: score["value"] for name, score in report["scores"].items()}
    assert means == {"pass": 0.5, "score": 0.625, "mentions": 0.5, "icontains": 1, "contains": 0.5}
    compared = json.loads(steelyard("compare", "1", "2", "--json").out)
    assert (compared["n_pairs"], compared["outcome"]) == (4, "undecided")
    assert steelyard("gate", "last", "--require", "pass>=0.4").code in (0, 7)
    assert "was judged by promptfoo" in steelyard("resume", "last").err
    assert "come from another tool" in steelyard("rescore", "last").err


def test_scores_of_two_imports_share_a_name(steelyard: Steelyard) -> None:
    """A score that is 0 or 1 in one file and in between in the next has the wider scale, in any order of reading."""
    rows = [{"user_input": "q", "response": "a", "faithfulness": value} for value in (1, 0, 0.5)]
    for name, part in (("first", rows[:2]), ("second", rows[2:])):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
        assert steelyard("import", f"{name}.jsonl", "--from", "ragas").code == 0
    with Store.open(Path(".steelyard/store.db")) as store:
        for name in ("1", "2"):
            assert vocabulary(store.run(name).protocol).metric("faithfulness").scale == "ratio"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--label", "mood=feedback"], "people cannot label 'mood'; they can label atom"),
        (["--label", "accuracy=stars"], "no sample has a score 'stars'; there are feedback"),
        (["--label", "accuracy"], "--label takes NAME=VALUE"),
        (["--from", "dfy"], "there is no importer 'dfy'"),
    ],
)
def test_slips(steelyard: Steelyard, words: list[str], problem: str) -> None:
    """A name that does not exist is said with those that do, and no run is left behind."""
    done = steelyard("import", DIFY, *words)
    assert done.code == 2
    assert problem in done.err
    if (path := Path(".steelyard/store.db")).exists():
        with Store.open(path) as store:
            assert store.runs() == []


def test_a_score_that_is_no_label(steelyard: Steelyard) -> None:
    """Only a yes or no can be a label; others are counted."""
    done = steelyard("import", FILES / "deepeval.json", "--label", "accuracy=Own")
    assert "0 labels kept" in done.out
    assert "not kept as labels: 2 × Own that is neither 0 nor 1" in done.err


def test_a_run_over_an_export_is_resumed_as_one(steelyard: Steelyard) -> None:
    """The tool that was named is part of the run."""
    done = steelyard("run", FILES / "ragas_results.csv", "--from", "ragas", "-p", "atomic", "-j", "embedded")
    assert done.code == 0
    with Store.open(Path(".steelyard/store.db")) as store:
        assert store.run("last").manifest["importer"] == "ragas"
    assert steelyard("resume", "last").code == 0


def test_validate_says_what_is_not_taken(steelyard: Steelyard) -> None:
    """Before anything is paid for."""
    done = steelyard("validate", FILES / "langfuse_observations.jsonl", "-p", "grounded")
    assert done.code == 3
    assert "1 × trace that failed" in done.err
    assert "2 good, 1 bad" in done.err


def test_over_http(tmp_path: Path) -> None:
    """An export is uploaded as it is, recognised or named; the viewer shows the runs of other tools."""
    path = tmp_path / "store.db"
    with viewing(path) as url, httpx.Client(base_url=url, timeout=60) as client:
        page = client.get("/runs").text
        assert "<option>dify</option>" in page
        assert "<option>huggingface</option>" not in page
        for more in ({}, {"importer": "dify"}):
            with DIFY.open("rb") as file:
                form = {"protocol": "grounded", "judge": "recorded", **more}
                made = client.post("/api/v1/runs", data=form, files={"file": ("dify.jsonl.gz", file)})
            assert made.status_code == 201, made.text
        for name in ("nobody", "huggingface"):
            with DIFY.open("rb") as file:
                form = {"protocol": "grounded", "judge": "recorded", "importer": name}
                refused = client.post("/api/v1/runs", data=form, files={"file": ("dify.jsonl.gz", file)})
            assert refused.status_code == 422, refused.text
            assert name in refused.text
