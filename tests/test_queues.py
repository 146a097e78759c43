"""Several people label one run: who is given what, what they disagree on, and what counts afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import PHONE, Tab, chromium, tab
from steelyard.people.calibration import calibrate
from steelyard.people.queues import QueueState, labelled_twice
from steelyard.store import LabelQueue, QueueItem, Store
from steelyard.store.labels import HumanLabel
from steelyard.store.queue_table import Claim
from viewer import fill, viewing

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def state(n: int = 4, twice: int = 1, given: dict[str, list[int]] | None = None, **more: object) -> QueueState:
    """A queue of one item per sample, the first of which two people label."""
    items = [QueueItem(f"s{k}", "atom", None, 1, 1.0, 2 if k < twice else 1) for k in range(n)]
    queue = LabelQueue(1, "run", "q", (), "1", True, "", "", None)
    labels = [
        HumanLabel(sample=f"s{k}", kind="atom", item=1, label="correct", annotator=who, policy="1", time=f"{k}")
        for who, places in (given or {}).items()
        for k in places
    ]
    return QueueState(queue, items, labels, more.get("claims", ()))  # type: ignore[arg-type]


def test_everybody_is_given_what_is_theirs() -> None:
    """Two people share what one labels, both get what two label, and nobody gets more than is wanted."""
    assert state().next_for("mei", NOW) == 0
    assert state(given={"mei": [0]}).next_for("jun", NOW) == 0
    assert state(given={"mei": [0], "jun": [0]}).next_for("ann", NOW) == 1
    assert state(given={"mei": [0, 1, 2, 3]}).next_for("mei", NOW) is None
    assert state(given={"mei": [0, 1, 2, 3]}).done == 4
    claim = [Claim("s1", "jun", NOW.isoformat(timespec="seconds"))]
    assert state(given={"mei": [0]}, claims=claim).next_for("mei", NOW) == 2
    # Whoever went away is not waited for.
    assert state(given={"mei": [0]}, claims=claim).next_for("mei", NOW + timedelta(hours=2)) == 1
    closed = state()
    assert QueueState(closed.queue._replace(closed="2026"), closed.items, ()).next_for("mei", NOW) is None
    assert QueueState(closed.queue._replace(people=("jun",)), closed.items, ()).next_for("mei", NOW) is None


def test_a_share_is_labelled_twice() -> None:
    """As many samples as asked for, the same with the same seed, at least one where any are wanted."""
    samples = [str(n) for n in range(100)]
    assert len(labelled_twice(samples, 0.2, 1)) == 20
    assert labelled_twice(samples, 0.2, 1) == labelled_twice(list(reversed(samples)), 0.2, 1)
    assert len(labelled_twice(samples, 0.001, 1)) == 1
    assert not labelled_twice(samples, 0, 1)


@contextmanager
def named(browser: Browser, address: str, who: str, **settings: object) -> Iterator[Tab]:
    """A browser of somebody who labels under this name."""
    with tab(browser, f"{address}/label", **settings) as opened:  # type: ignore[arg-type]
        opened.page.context.add_cookies([{"name": "steelyard_annotator", "value": who, "url": address}])
        yield opened


def labelled(opened: Tab, queue: str, keys: list[str]) -> int:
    """Label by keys alone until nothing is left; how many labels were given."""
    page = opened.page
    page.goto(f"{queue}/label")
    given = 0
    while page.locator(".choices").count():
        before = page.locator("#labelling").inner_text()
        page.keyboard.press(keys[given % len(keys)])
        page.wait_for_function("before => document.getElementById('labelling').innerText !== before", arg=before)
        given += 1
    return given


def test_two_people_label_and_a_disagreement_is_settled(browser: Browser, tmp_path: Path) -> None:
    """Ten items and more on a desk by keys and on a phone; what they disagree on is settled on a page, and that label
    counts when the judge is compared with people."""
    (run,) = fill(tmp_path / "store.db", ("atomic",))
    with viewing(tmp_path / "store.db", language="en") as address, named(browser, address, "lead") as lead:
        page = lead.page
        page.goto(f"{address}/runs/{run}/queues")
        page.get_by_label("Name", exact=True).fill("first <b>week</b>")
        page.get_by_label("Who labels").fill("mei, jun")
        page.get_by_label("How many samples").fill("0")
        page.get_by_label("Per cent of samples").fill("100")
        assert lead.violations() == []
        page.get_by_role("button", name="Make queue").click()
        page.wait_for_url("**/queues/1")
        queue = page.url
        with named(browser, address, "mei") as mei:
            n = labelled(mei, queue, ["1"])
            assert n >= 10
            assert not mei.page.locator(".told").count()
        with named(browser, address, "jun", viewport=PHONE, has_touch=True) as jun:
            jun.page.goto(f"{queue}/label")
            assert jun.violations() == []
            assert jun.overflow <= 0
            jun.page.locator(".choices button").nth(1).tap()
            jun.page.wait_for_url("**after=**")
            assert labelled(jun, queue, ["1"]) == n - 1
        with named(browser, address, "ann") as ann:
            answer = ann.page.goto(f"{queue}/label")
            assert answer
            assert answer.status == 403
        page.goto(queue)
        assert lead.violations() == []
        assert f"{2 * n} of {2 * n}" in page.inner_text("main")
        assert "first <b>week</b>" in page.inner_text("h1")
        page.get_by_role("link", name=re.compile("Settle")).click()
        page.wait_for_selector(".sides")
        assert page.locator(".side").count() == 2
        assert lead.violations() == []
        page.fill("#note", "<script>alert(1)</script>")
        page.keyboard.press("Escape")
        page.locator("h1").click()
        page.keyboard.press("2")
        page.wait_for_function("() => document.body.innerText.includes('All disagreements are settled')")
        page.goto(f"{queue}/disagreements?at=1")
        assert "<script>alert(1)</script>" in page.inner_text("main")
        assert lead.noises == []
        page.goto(f"{address}/runs/{run}/calibration")
        page.wait_for_selector("table")
        assert "two people" in page.inner_text("main")
    with Store.open(tmp_path / "store.db") as store:
        labels = list(store.labels(run))
        (settled,) = (label for label in labels if label.adjudicated)
        assert settled.annotator == "lead"
        assert len(labels) == 2 * n + 1
        with_it = calibrate(store.verdicts(run), labels)
        without = calibrate(store.verdicts(run), [label for label in labels if not label.adjudicated])
    assert sum(task.n_split for task in without.tasks) == 1
    assert sum(task.n_split for task in with_it.tasks) == 0
    # What was settled replaces neither of the two labels: people still agree as little as they did.
    assert with_it.tasks[0].person_person == without.tasks[0].person_person
    people = {label.label: label.n_people for label in with_it.tasks[0].by_label}
    assert people[settled.label] == 1
