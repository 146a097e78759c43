"""Several runs from one page: the experiments of the settings file, and several protocols over one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from command import fact_server, facts
from endpoint import Loopback
from steelyard.settings import Settings
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
        (address,) = re.findall(r'href="(/experiments/[^"]+)"', client.get("/experiments?lang=en").text)
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
