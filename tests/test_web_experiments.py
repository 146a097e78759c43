"""Several runs from one page: the experiments of the settings file, and several protocols over one file."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from command import fact_server, facts, judge_facts
from endpoint import Loopback, Request
from steelyard.errors import RunInUse
from steelyard.records import RagSample, Verdict
from steelyard.settings import Settings
from steelyard.store import RunIdentity, Store
from viewer import answer, viewing

GRID = """
[experiments."<b>v/2</b>"]
data = "facts.jsonl"
protocols = ["atomic"]
judges = ["a", "b"]

[experiments."<b>v/2</b>".options.plain]
[experiments."<b>v/2</b>".options.strict]
strict = true
"""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with fact_server() as running:
        yield running


def settings(folder: Path, server: Loopback, more: str = "") -> Settings:
    judges = "".join(
        f'[judges.{name}]\nbase_url = "{server.url}"\nmodel = "model-{name}"\nretries = 0\n' for name in ("a", "b")
    )
    judges += '[judges.keyless]\nkind = "deepseek"\nmodel = "m"\nkey_env = "NOT_SET"\n'
    path = folder / "steelyard.toml"
    path.write_text(f"{judges}{more}", encoding="utf-8")
    return Settings.load(path, {})


def until_done(client: httpx.Client) -> list[dict[str, Any]]:
    """The runs, oldest first, when none is at work any more."""
    while True:
        at_work = [one["run"]["id"] for one in answer(client, "/runs.json")["runs"] if one["progress"]]
        if not at_work:
            return list(reversed(answer(client, "/api/v1/runs")["runs"]))
        with client.stream("GET", f"/api/v1/runs/{at_work[-1]}/events") as events:
            assert "event: end" in "".join(events.iter_text())


def test_an_experiment_from_its_page(tmp_path: Path, server: Loopback) -> None:
    """Its page starts what is missing, one run after the other, so that nothing is asked twice; the table leads to the
    runs; a second start finds nothing to do, and changed data are judged anew."""
    facts(tmp_path / "facts.jsonl", 3)
    config = settings(tmp_path, server, GRID)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        (address,) = re.findall(r'<th scope="row"><a href="([^"]+)"', client.get("/experiments?lang=en").text)
        before = answer(client, f"{address}.json")
        assert [(one["judge"], one["options"], one["state"]) for one in before["runs"]] == [
            ("a", "plain", "pending"),
            ("a", "strict", "pending"),
            ("b", "plain", "pending"),
            ("b", "strict", "pending"),
        ]
        assert client.post(address).headers["location"] == address
        runs = until_done(client)
        assert [run["state"] for run in runs] == ["complete"] * 4
        assert len(server.requests) == 12
        found = answer(client, f"{address}.json")
        assert [one["run"] for one in found["runs"]] == [run["id"] for run in runs]
        assert [run["is_baseline"] for run in found["table"]["runs"]] == [True, False, False, False]
        shown = client.get(address).text
        assert "<b>v" not in shown
        assert all(f'href="/runs/{run["id"]}"' in shown for run in runs)
        assert "<button" not in shown.partition('id="live"')[2].partition("</main>")[0]
        assert client.post(address).status_code == 303
        assert len(until_done(client)) == 4
        facts(tmp_path / "facts.jsonl", 2)
        assert {one["state"] for one in answer(client, f"{address}.json")["runs"]} == {"pending"}
        assert client.post("/experiments/none").status_code == 404


def test_an_experiment_over_the_api(tmp_path: Path, server: Loopback) -> None:
    """Listed, started within a budget, gone on with, and read with its table, under whatever name it has."""
    facts(tmp_path / "facts.jsonl", 3)
    config = settings(tmp_path, server, GRID)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        (listed,) = answer(client, "/api/v1/experiments")["experiments"]
        one = f"/api/v1/experiments/{quote(listed['name'], safe='')}"
        assert {cell["state"] for cell in answer(client, one)["runs"]} == {"pending"}
        assert client.post(one, json={"max_cost": "1"}).status_code == 422
        begun = client.post(one, json={"max_tokens": 1})
        assert (begun.status_code, len(begun.json()["runs"])) == (202, 4)
        assert "stopped" in {run["state"] for run in until_done(client)}
        ids = client.post(one, json={}).json()["runs"]
        until_done(client)
        found = answer(client, one)
        assert {cell["state"] for cell in found["runs"]} == {"complete"}
        assert len(found["table"]["runs"]) == 4
        assert {cell["run"] for cell in found["runs"]} >= set(ids)
        assert client.post(one, json={}).json() == {"runs": []}
        for gone in ("none", "composed/1"):
            assert client.get(f"/api/v1/experiments/{gone}").status_code == 404
            assert client.post(f"/api/v1/experiments/{gone}", json={}).status_code == 404
        assert client.delete("/api/v1/experiments/composed/1").status_code == 404


def test_an_experiment_that_cannot_begin_leaves_nothing(tmp_path: Path, server: Loopback) -> None:
    """A judge without its key is found before the runs of the others are made."""
    facts(tmp_path / "facts.jsonl", 1)
    config = settings(tmp_path, server, GRID.replace('"b"', '"keyless"').replace("<b>v/2</b>", "v"))
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        refused = client.post("/experiments/v")
        assert (refused.status_code, "NOT_SET" in refused.text) == (422, True)
        assert answer(client, "/api/v1/runs")["runs"] == []
        (tmp_path / "facts.jsonl").unlink()
        assert "there is no such file" in client.get("/experiments/v").text
        assert client.post("/experiments/v").status_code == 422


def test_an_experiment_is_composed(tmp_path: Path, server: Loopback) -> None:
    """Two files, two judges and two variants on a form are eight runs; they share one budget, go on where it ended,
    and stay when the experiment is deleted, as do the uploads that they were made from."""
    files = [
        ("file", (name, facts(tmp_path / name, n).read_bytes())) for name, n in (("old.jsonl", 2), ("new.jsonl", 3))
    ]
    form = {
        "name": "<b>grid</b>",
        "project": "shop",
        "protocol": "atomic",
        "judge": ["a", "b"],
        "variants": "plain：\nstrict: strict=true",
    }
    config = settings(tmp_path, server)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        address = client.post("/experiments/composed", data=form, files=files).headers["location"]
        before = answer(client, f"{address}.json")
        assert (len(before["runs"]), {one["state"] for one in before["runs"]}) == (8, {"pending"})
        assert before["experiment"]["data"] == ["old.jsonl", "new.jsonl"]
        assert before["expected"]["runs"] == 8
        # As if nothing that two of them ask alike were shared.
        assert before["expected"]["calls"] >= 2 * 2 * (2 + 3)
        assert "<b>grid" not in client.get(address).text
        assert client.post(address, data={"max_tokens": "many"}).status_code == 422
        assert client.post(address, data={"max_tokens": "600"}).status_code == 303
        states = [run["state"] for run in until_done(client)]
        assert states[0] == "complete"
        assert states[-1] == "stopped"
        asked = len(server.requests)
        assert asked < 12
        assert client.post(address).status_code == 303
        runs = until_done(client)
        assert [run["state"] for run in runs] == ["complete"] * 8
        assert len(server.requests) == 12
        found = answer(client, f"{address}.json")
        assert (found["expected"], len(found["table"]["runs"])) == (None, 8)
        assert [run["is_baseline"] for run in found["table"]["runs"]] == [True, *[False] * 7]
        assert [one["n"] for one in found["runs"]] == [2] * 4 + [3] * 4
        shown = re.findall("<td>([^<]*|<span class=.chip[^<]*</span>)</td></tr>", client.get(f"{address}?lang=en").text)
        assert shown == ["baseline", *["equal"] * 7]
        (listed,) = answer(client, "/experiments.json")["experiments"]
        assert answer(client, f"/api/v1{address}")["experiment"] == listed
        assert (listed["name"], listed["project"], listed["options"]) == ("<b>grid</b>", "shop", ["plain", "strict"])
        uploads = sorted(path.name for path in (tmp_path / "s-uploads").glob("*/*"))
        assert uploads == ["new.jsonl", "old.jsonl"]
        for run in runs[:-1]:
            client.post(f"/runs/{run['id']}/delete")
        # The experiment is made from them still.
        assert sorted(path.name for path in (tmp_path / "s-uploads").glob("*/*")) == uploads
        assert client.post(f"{address}/delete").status_code == 303
        assert [path.name for path in (tmp_path / "s-uploads").glob("*/*")] == ["new.jsonl"]
        assert client.get(address).status_code == 404
        assert len(answer(client, "/api/v1/runs")["runs"]) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"judge": []}, "Choose at least one set or file"),
        ({"judge": ["c"]}, "there is no judge"),
        ({"protocol": ["no"]}, "there is no protocol"),
        ({"protocol": ["/etc/passwd"]}, "there is no protocol"),
        ({"variants": "strict"}, ""),
        ({"variants": "strict: strict"}, "line 1"),
        ({"variants": "a: strict=true\na: strict=true"}, "line 2"),
        ({"variants": "a: colour=red"}, "colour"),
        ({"variants": "\n".join(f"v{n}:" for n in range(300))}, "at most 200 runs"),
        ({"columns": "answer"}, "line 1"),
        ({"columns": "answer=nowhere"}, ""),
        ({"encoding": "klingon"}, "klingon"),
        ({"rubric": "title ="}, "inline"),
        ({"name": ""}, "1 to 200"),
        ({"set": ["7@1"]}, "no set with the number 7"),
    ],
)
def test_what_cannot_be_composed(tmp_path: Path, server: Loopback, changed: dict[str, Any], told: str) -> None:
    """What is wrong is said on the form with all that was entered; nothing is kept, no upload either."""
    form: dict[str, Any] = {"name": "grid", "protocol": ["atomic"], "judge": ["a"], "variants": "", **changed}
    files = {"file": ("facts.jsonl", facts(tmp_path / "facts.jsonl", 1).read_bytes())}
    config = settings(tmp_path, server)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        refused = client.post("/experiments/composed?lang=en", data=form, files=files)
        if not told:
            assert refused.status_code == 303
            return
        assert (refused.status_code, told in html.unescape(refused.text)) == (422, True)
        assert answer(client, "/experiments.json")["experiments"] == []
        assert not list((tmp_path / "s-uploads").glob("*/*"))


def test_an_experiment_over_sets(tmp_path: Path, server: Loopback) -> None:
    """Versions of sets are data too; the runs belong to their project, and a set of another project is refused."""
    config = settings(tmp_path, server)
    with Store.open(tmp_path / "s.db") as store:
        for run, project in (("run-a", "shop"), ("run-b", "bank")):
            store.create_run(run, "atomic", "nobody", "2026-03-02", {}, RunIdentity(project=project))
            samples = [RagSample(id=f"s{n}", answer=f"Fact {n} holds.", references=("Fact.",)) for n in range(3)]
            made = [
                (n, one, Verdict(id=one.id, protocol="atomic", status="judged", scores={}))
                for n, one in enumerate(samples)
            ]
            store.add_verdicts(run, made)
        store.add_to_set("regression", "run-a", ["s0", "s1"], time="2026")
        store.add_to_set("regression", "run-a", ["s2"], time="2026")
        store.add_to_set("regression", "run-b", ["s0"], time="2026")
    form: dict[str, Any] = {"name": "grid", "protocol": "atomic", "judge": "a", "set": ["1@1", "1@2"]}
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        refused = client.post("/experiments/composed?lang=en", data={**form, "set": ["1@1", "2@1"]})
        assert (refused.status_code, "another project" in refused.text) == (422, True)
        address = client.post("/experiments/composed", data=form).headers["location"]
        assert client.post(address).status_code == 303
        runs = until_done(client)[-2:]
        assert [(run["project"], run["state"]) for run in runs] == [("shop", "complete")] * 2
        assert [answer(client, f"/runs/{run['id']}.json")["run"]["statuses"] for run in runs] == [
            {"judged": 2},
            {"judged": 3},
        ]
        assert {one["state"] for one in answer(client, f"{address}.json")["runs"]} == {"complete"}
        client.post("/sets/1/delete")
        assert "no set with the number 1" in client.get(address).text


def test_several_protocols_are_judged_one_after_the_other(tmp_path: Path, server: Loopback) -> None:
    """What two of them ask alike is paid for once; where one cannot be judged, none is begun and the upload waits."""
    config = settings(tmp_path, server)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        with facts(tmp_path / "facts.jsonl", 4).open("rb") as file:
            waiting = client.post("/runs/new", files={"file": ("facts.jsonl", file)}).headers["location"].rstrip("?")
        both = {"protocol": ["atomic", "grounded"], "judge": "a"}
        refused = client.post(waiting, data={**both, "protocol": ["atomic", "dialogue"]})
        assert refused.status_code == 422
        refused = client.post(waiting, data={**both, "judge": "keyless"})
        assert (refused.status_code, "NOT_SET" in refused.text) == (422, True)
        assert (answer(client, "/api/v1/runs")["runs"], server.requests) == ([], [])
        assert client.post(waiting, data=both).status_code == 303
        first, second = until_done(client)
        assert (first["protocol"], second["protocol"]) == ("atomic", "grounded")
        assert first["finished"] <= second["finished"]


def test_a_run_that_waits_is_nobody_elses(tmp_path: Path) -> None:
    """While the first of two runs is at work, another process finds the second in use, and can neither go on with it
    nor delete it; when it is its turn, it is judged."""
    goes_on = threading.Event()

    def slowly(asked: Request) -> dict[str, Any]:
        goes_on.wait(30)
        return judge_facts(asked)

    with (
        Loopback(reply_for=slowly) as slow,
        viewing(tmp_path / "s.db", config=settings(tmp_path, slow)) as served,
        httpx.Client(base_url=served, timeout=60) as client,
        Store.open(tmp_path / "s.db") as elsewhere,
    ):
        with facts(tmp_path / "facts.jsonl", 1).open("rb") as file:
            waiting = client.post("/runs/new", files={"file": ("facts.jsonl", file)}).headers["location"].rstrip("?")
        client.post(waiting, data={"protocol": ["atomic", "grounded"], "judge": "a"})
        second, first = elsewhere.runs()
        try:
            for run in (first, second):
                assert elsewhere.in_use(run.id)
                with pytest.raises(RunInUse):
                    elsewhere.delete_run(run.id)
                with pytest.raises(RunInUse), elsewhere.alone_with(run.id):
                    pass
        finally:
            goes_on.set()
        # This server knows nothing but statements, so that the second fails: it was asked.
        assert [run["state"] for run in until_done(client)] == ["complete", "failed"]
        assert not elsewhere.in_use(second.id)


RUBRIC = """
title = "Tone"

[polite]
ask = "Is the answer polite?"
"""


def test_a_rubric_and_options_on_the_start_page(tmp_path: Path, server: Loopback) -> None:
    """An uploaded rubric stands on the page as text; an option that no protocol has is told, with all that was
    entered."""
    config = settings(tmp_path, server)
    with viewing(tmp_path / "s.db", config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
        with facts(tmp_path / "facts.jsonl", 1).open("rb") as file:
            waiting = client.post("/runs/new", files={"file": ("facts.jsonl", file)}).headers["location"].rstrip("?")
        form = {"protocol": "atomic", "judge": "a", "options": "date=2026-03-02\nstrict=true"}
        checked = client.post(f"{waiting}/check", data=form, files={"rubric_file": ("polite.toml", RUBRIC)})
        assert "Is the answer polite?" in checked.text
        assert "date=2026-03-02\nstrict=true" in checked.text
        wrong = client.post(waiting, data={**form, "rubric": RUBRIC, "options": "colour=red"})
        assert (wrong.status_code, "colour" in wrong.text, "Is the answer polite?" in wrong.text) == (422, True, True)
