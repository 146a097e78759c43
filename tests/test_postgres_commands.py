"""Every command that takes `--store`, over a store in PostgreSQL, as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from command import RAG, RECORDED, Steelyard, fact_server, facts, lines_of, point_to, write_lines
from steelyard.store import Store
from test_batch import answered, by_judge
from viewer import viewing

PAGES = ("", "/samples", "/failures", "/label", "/calibration", "/samples/car-seat")


@pytest.fixture
def url(postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("STEELYARD_STORE", postgres_url)
    monkeypatch.chdir(tmp_path)
    return postgres_url


def test_every_command_works(steelyard: Steelyard, url: str) -> None:
    """Judge, go on, rescore, read, compare, gate, label, calibrate, audit, view, export and import: the store is named
    once, in the environment, and no file is made beside."""
    run = ("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet", "--lang", "en")
    for words, said in (
        (run, "8 = judged 8"),
        ((*run, "--fresh"), "8 = judged 8"),
        (("runs", "list"), "complete"),
        (("report", "1", "--as", "json"), '"n": 8'),
        (("show", "1", "car-seat"), "car-seat"),
        (("resume", "1", "--progress", "quiet"), "8"),
        (("retry", "1", "--progress", "quiet"), "8"),
        (("rescore", "1"), "8"),
        (("runs", "edit", "1", "--name", "first"), ""),
        (("compare", "1", "2", "--lang", "en"), "ccuracy"),
        (("gate", "1", "--require", "accuracy>=0.1", "--baseline", "2"), ""),
        (("sample", "1", "--for-labelling", "4", "-o", "sheet.jsonl"), ""),
    ):
        done = steelyard(*words)
        assert done.code == 0, (words, done.err)
        assert said in done.out + done.err, (words, done.out)
    labelled = [{**line, "label": str(line["choices"]).split(" / ")[0]} for line in lines_of("sheet.jsonl")]
    write_lines(Path("filled.jsonl"), labelled)
    assert steelyard("labels", "import", "filled.jsonl", "--annotator", "ana").code == 0
    assert steelyard("calibrate", "1").code == 0
    assert steelyard("labels", "export", "kept.jsonl").code == 0
    assert len(lines_of("kept.jsonl")) == len(labelled)
    card = ("audit", "embedded", "-p", "atomic", "--no-built-in", "--data", RAG, "--samples", "1", "--repeats", "2")
    assert steelyard(*card, "--only", "stability", "-o", "card.json").code == 0
    assert steelyard("export", "1", "--whole", "--to", "whole.jsonl").code == 0
    assert steelyard("runs", "import", "whole.jsonl", "--store", "file.db").code == 0
    assert (
        steelyard("report", "1", "--as", "json", "--store", "file.db").out
        == steelyard(*("report", "1", "--as", "json")).out
    )
    twice = steelyard("runs", "import", "whole.jsonl")
    assert (twice.code, "is in this store already" in twice.err) == (2, True)
    assert steelyard("runs", "delete", "2", "--yes").code == 0
    with viewing(url) as address, httpx.Client(base_url=address, follow_redirects=True, timeout=30) as client:
        with Store.open(url) as store:
            run = store.run("1").id
        for page in ("/runs", *(f"/runs/{run}{rest}" for rest in PAGES)):
            assert client.get(page).status_code == 200, page
    assert not Path(".steelyard/store.db").exists()


def test_a_batch(steelyard: Steelyard, url: str) -> None:
    """Asks go out as a file and answers come back, in rounds."""
    with fact_server() as server:
        point_to(server)
        assert (
            steelyard("batch", "start", facts(Path("f.jsonl"), 3), "-p", "atomic", "-j", "mine", "-o", "in.jsonl").code
            == 0
        )
        for _ in range(2):
            answered(lines_of("in.jsonl"), by_judge, Path("out.jsonl"))
            done = steelyard("batch", "import", "last", "out.jsonl")
            assert steelyard("batch", "export", "last", "-o", "in.jsonl").code == 0
        assert (done.code, "3 samples finished, 0 asks open" in done.err) == (0, True), done.err
        assert server.requests == []
    assert json.loads(steelyard("report", "last", "--as", "json").out)["n"] == 3
