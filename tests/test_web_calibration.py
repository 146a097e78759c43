"""`calibrate`'s result in the browser: the same figures as on the command line, for whoever may read the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from steelyard.people.calibration import calibrate
from steelyard.people.label_targets import slots_of
from steelyard.protocols.vocabulary import UNJUDGED
from steelyard.store import Store
from steelyard.store.labels import HumanLabel, digest
from viewer import answer, fill, viewing

HOSTILE = "<script>alert(1)</script>"


def labelled(path: Path, run: str, annotator: str, policy: str, kind: str = "atom") -> int:
    """Somebody agrees with the judge everywhere."""
    with Store.open(path) as store:
        made = [
            HumanLabel(sample=verdict.id, kind=kind, turn=slot.turn, item=slot.item, label=slot.judge, run=run,
                       annotator=annotator, policy=policy, about=digest(sample), text=slot.text)
            for sample, verdict in store.verdicts(run)
            for slot in slots_of(verdict)
            if slot.kind == kind and slot.judge != UNJUDGED
        ]  # fmt: skip
        return store.add_labels(made)


@pytest.fixture
def run(tmp_path: Path) -> str:
    (found,) = fill(tmp_path / "store.db", ("atomic",))
    return found


@pytest.fixture
def client(tmp_path: Path, run: str) -> Iterator[httpx.Client]:
    with viewing(tmp_path / "store.db", language="en") as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


def test_the_page_has_the_figures_of_the_command(tmp_path: Path, run: str, client: httpx.Client) -> None:
    """One model behind both; and labels that come later are counted at the next look."""
    path = tmp_path / "store.db"
    n = labelled(path, run, "mei", "1")
    shown = answer(client, f"/runs/{run}/calibration.json")
    with Store.open(path) as store:
        wanted = calibrate(store.verdicts(run), list(store.labels(run)), run=run, language="en")
    assert shown["calibration"] == wanted.model_dump(mode="json")
    assert shown["calibration"]["n_used"] == n > 0
    labelled(path, run, "li", "1")
    assert answer(client, f"/runs/{run}/calibration.json")["calibration"]["n_used"] == 2 * n
    assert client.get(f"/runs/{run}/calibration").status_code == 200


def test_without_labels_it_says_so(run: str, client: httpx.Client) -> None:
    """Nobody has labelled: no figures, and the way to the page where one labels."""
    assert answer(client, f"/runs/{run}/calibration.json")["calibration"] is None
    assert f'href="/runs/{run}/label"' in client.get(f"/runs/{run}/calibration").text


def test_policies_do_not_mix(tmp_path: Path, run: str, client: httpx.Client) -> None:
    """Each version is compared by itself; one that nobody labelled under is named as such."""
    n = labelled(tmp_path / "store.db", run, "mei", "1")
    labelled(tmp_path / "store.db", run, "li", "a&b=2")
    for policy in ("1", "a&b=2"):
        found = answer(client, f"/runs/{run}/calibration.json", params={"policy": policy})
        assert (found["policy"], found["calibration"]["n_labels"]) == (policy, n)
    assert "policy=a%26b%3D2" in client.get(f"/runs/{run}/calibration").text
    none = answer(client, f"/runs/{run}/calibration.json", params={"policy": "9"})
    assert none["calibration"] is None
    assert "policy 9" in none["problem"]


def test_names_and_policies_are_text(tmp_path: Path, run: str, client: httpx.Client) -> None:
    """Whatever an annotator or a policy is called, the page runs nothing of it."""
    labelled(tmp_path / "store.db", run, HOSTILE, HOSTILE)
    labelled(tmp_path / "store.db", run, "mei", "1")
    for policy in (HOSTILE, f'"><img src=x onerror="alert(1)">{HOSTILE}'):
        text = client.get(f"/runs/{run}/calibration", params={"policy": policy}).text
        assert "<script>alert" not in text
        assert "<img" not in text
