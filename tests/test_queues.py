"""Several people label one run: who is given what, what they disagree on, and what counts afterwards."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from browser import PHONE, Tab, chromium, tab
from command import Steelyard
from steelyard.errors import ConfigError, UnknownQueue
from steelyard.people.calibration import calibrate
from steelyard.people.queues import QueueState, labelled_twice
from steelyard.store import QueueItem, RunIdentity, Store
from steelyard.store.labels import HumanLabel
from steelyard.store.queue_table import Claim, QueueTotals
from viewer import fill, viewing

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def label(place: int, who: str, said: str = "correct", **more: object) -> HumanLabel:
    given = {"sample": f"s{place}", "kind": "atom", "item": 1, "label": said, "annotator": who, "policy": "1"}
    return HumanLabel.model_validate({**given, "run": "run-a", "time": f"{place}", **more})


@pytest.fixture
def state(any_store: Store) -> QueueState:
    """A queue of one item of each of four samples, the first of which two people label; in both databases."""
    any_store.create_run("run-a", "atomic", "scripted", "2026-03-02T12:00:00+00:00", {})
    items = [QueueItem(f"s{k}", "atom", None, 1, 1.0, 1 if k else 2) for k in range(4)]
    return QueueState(any_store.add_queue("run-a", "q", items, policy="1", created="2026"), any_store)


def test_everybody_is_given_what_is_theirs(state: QueueState) -> None:
    """Two people share what one labels, both get what two label, and nobody gets more than is wanted."""
    store = state.store
    assert state.next_for("mei", NOW) == 0
    store.add_labels([label(0, "mei")])
    assert (state.next_for("mei", NOW), state.next_for("jun", NOW)) == (1, 0)
    store.claim(state.queue.id, "s1", "jun", NOW.isoformat(timespec="seconds"))
    assert state.next_for("mei", NOW) == 2
    # Whoever went away is not waited for.
    assert state.next_for("mei", NOW + timedelta(hours=2)) == 1
    # Behind the place where one is first, then from the beginning.
    assert state.next_for("jun", NOW, 1) == 2
    assert state.next_for("jun", NOW, 3) == 0
    store.add_labels([label(0, "jun"), *(label(k, "mei") for k in (1, 2))])
    assert state.next_for("ann", NOW) == 3
    assert state.last_of("mei") == 2
    assert state.last_of("ann") is None
    store.remove_label(label(2, "mei"))
    assert state.next_for("ann", NOW) == 2
    assert state.last_of("mei") == 1
    closed, others = state.queue._replace(closed="2026"), state.queue._replace(people=("jun",))
    assert [QueueState(queue, store).next_for("mei", NOW) for queue in (closed, others)] == [None, None]


def test_counts_follow_every_label(state: QueueState) -> None:
    """Given, changed, settled and taken back; labels under another policy or of another run count for nothing, and a
    queue that is made later counts what was given before it."""
    store, queue = state.store, state.queue
    assert QueueState(queue, store).totals == QueueTotals(4, 5, 0, 1, 0, 0)
    store.add_labels([label(0, "mei"), label(0, "jun", "wrong"), label(1, "mei", policy="2"), label(2, "mei", item=9)])
    store.add_labels([label(3, "mei", run="elsewhere")])
    assert QueueState(queue, store).totals == QueueTotals(4, 5, 2, 1, 1, 1)
    assert (state.disagreements(), state.unsettled()) == ([0], [0])
    assert {name: one.label for name, one in state.given(0).items()} == {"jun": "wrong", "mei": "correct"}
    settling = label(0, "lead", adjudicated=True)
    before = store.label_changes("run-a")
    store.add_labels([settling])
    assert store.label_changes("run-a") > before
    assert (state.disagreements(), state.unsettled(), state.settled(0)) == ([0], [], settling)
    assert QueueState(queue, store).totals == QueueTotals(4, 5, 2, 1, 1, 0)
    assert [(share.person, share.n) for share in state.shares()] == [("jun", 1), ("mei", 1)]
    assert [(one.kind, one.n, one.raw.value) for one in state.agreement()] == [("atom", 1, 0.0)]
    items = store.queue_items(queue.id)
    later = store.add_queue("run-a", "later", items[:1], people=("jun", "ann"), policy="1", created="2026")
    assert QueueState(later, store).totals == QueueTotals(1, 2, 2, 1, 1, 0)
    assert [(share.person, share.n) for share in QueueState(later, store).shares()] == [
        ("ann", 0),
        ("jun", 1),
        ("mei", 1),
    ]
    store.add_labels([label(0, "jun")])
    assert QueueState(queue, store).totals == QueueTotals(4, 5, 2, 1, 0, 0)
    assert QueueState(later, store).totals == QueueTotals(1, 2, 2, 1, 0, 0)
    store.remove_label(label(0, "jun"))
    store.remove_label(settling)
    assert QueueState(queue, store).totals == QueueTotals(4, 5, 1, 1, 0, 0)
    store.add_labels([label(place, who) for place in range(4) for who in ("mei", "jun", "ann")])
    assert QueueState(queue, store).totals.done == 5
    assert store.label_counts("run-a") == [
        ("run-a", "ann", "1", 4),
        ("run-a", "jun", "1", 4),
        ("run-a", "mei", "1", 5),
        ("run-a", "mei", "2", 1),
    ]
    assert store.labelled_by("run-a", "ann", "1", ["s0"]) == {("s0", "atom", None, 1)}
    assert store.labelled_by("run-a", "ann", "1", [f"s{n}" for n in range(600)]) == {
        (f"s{place}", "atom", None, 1) for place in range(4)
    }


def test_a_share_is_labelled_twice() -> None:
    """As many samples as asked for, the same with the same seed, at least one where any are wanted."""
    samples = [str(n) for n in range(100)]
    assert len(labelled_twice(samples, 0.2, 1)) == 20
    assert labelled_twice(samples, 0.2, 1) == labelled_twice(list(reversed(samples)), 0.2, 1)
    assert len(labelled_twice(samples, 0.001, 1)) == 1
    assert not labelled_twice(samples, 0, 1)


def test_both_databases_keep_queues_and_cards(any_store: Store) -> None:
    """Items in their order, claims, who settles beside who labelled, what is visible: the same in both."""
    store, when = any_store, "2026-03-02T12:00:00+00:00"
    for run, project in (("run-a", "shop"), ("run-b", "bank")):
        store.create_run(run, "atomic", "scripted", when, {}, RunIdentity(project=project))
    items = [QueueItem(f"s{n}", "atom", n % 2 or None, None if n == 3 else n, 1.5, 2) for n in range(5)]
    queue = store.add_queue("run-a", "周一", items, people=("mei", "jun"), policy="1", created=when, author="lead")
    other = store.add_queue("run-b", "other", items[:1], policy="1", blind=False, created=when)
    assert store.queues() == [other, queue]
    assert store.queues("run-a") == [store.queue(queue.id)] == [queue]
    assert store.queue_items(queue.id) == items
    for time in ("1", "2"):
        store.claim(queue.id, "s1", "mei", time)
    assert store.queue_claims(queue.id, "s1") == [Claim("s1", "mei", "2")]
    given = HumanLabel(sample="s1", kind="atom", item=1, label="wrong", annotator="mei", policy="1", run="run-a")
    settled = given.model_copy(update={"label": "correct", "adjudicated": True})
    store.add_labels([given, settled])
    assert store.remove_label(given)
    assert list(store.labels("run-a")) == [settled]
    for nothing in ([], [QueueItem("s1", "atom", None, 1, 1.0, 1)]):
        with pytest.raises(ConfigError):
            store.add_queue("run-a", "" if nothing else "q", nothing, policy="1", created=when)
    for project, scope in (("shop", '{"data": "ab"}'), ("", '{"data": null}'), ("shop", "{}")):
        store.add_card(project, "scripted", when, f'{{"scope": {scope}}}')
    store.visible = frozenset({"bank"})
    assert store.queues() == [other]
    for hidden in (queue.id, 9, 2**40):
        with pytest.raises(UnknownQueue):
            store.queue(hidden)
    assert [card.id for card in store.cards()] == [3, 2]
    store.visible = None
    store.close_queue(queue.id, when)
    assert store.queue(queue.id).closed == when
    store.delete_run("run-a")
    assert (store.queues(), store.queue_items(queue.id), store.queue_claims(queue.id, "s1")) == ([other], [], [])
    assert len(list(store.labels())) == 1


def test_a_long_queue_is_not_read_whole(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages for labelling look up takes as few rows of 2,000 labelled items as of 20: that keeps them as quick
    with 100,000 samples as with 100 (bench/viewer.py)."""
    store, rows = any_store, Counter[str]()
    states = {}
    for name, n in (("short", 20), ("long", 2000)):
        store.create_run(name, "atomic", "scripted", "2026-03-02T12:00:00+00:00", {})
        items = [QueueItem(f"s{k}", "atom", None, 1, 1.0, 2) for k in range(n)]
        states[name] = QueueState(store.add_queue(name, name, items, policy="1", created="2026"), store)
        every = ((k, who) for who in ("mei", "jun") for k in range(n - (who == "jun")))
        store.add_labels(
            label(k, who, "wrong" if k == 5 and who == "jun" else "correct", run=name, time=f"{k:06}")
            for k, who in every
        )
    queried = store.query

    def counted(sql: str, *values: object) -> Iterator[object]:
        for row in queried(sql, *values):
            rows["read"] += 1
            yield row

    monkeypatch.setattr(store, "query", counted)
    read = {}
    for name, state in states.items():
        rows.clear()
        assert state.totals.unsettled == 1
        assert state.next_for("jun", NOW) == state.totals.items - 1
        assert state.last_of("jun") == state.totals.items - 2
        assert (set(state.given(3)), state.unsettled()) == ({"mei", "jun"}, [5])
        assert store.labelled_by(name, "mei", "1", ["s1", "s2"]) == {("s1", "atom", None, 1), ("s2", "atom", None, 1)}
        assert sum(one.n for one in store.label_counts(name)) == 2 * state.totals.items - 1
        read[name] = rows["read"]
    assert read["long"] == read["short"]


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


def test_a_link_elsewhere_takes_no_sample(tmp_path: Path) -> None:
    """A stranger's page may lead somebody to an item; only our own pages and programs take it from the others."""
    (run,) = fill(tmp_path / "store.db", ("atomic",))
    sent: tuple[dict[str, str], ...] = ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-origin"}, {})
    with viewing(tmp_path / "store.db") as address:
        body = {"run": run, "name": "first", "people": ["mei", "jun", "ann"], "samples": 0, "share": 0}
        httpx.post(f"{address}/api/v1/queues", json=body).raise_for_status()
        taken = []
        for who, headers in zip(body["people"], sent, strict=True):
            cookie = {"Cookie": f"steelyard_annotator={who}"}
            shown = httpx.get(f"{address}/queues/1/label.json", headers=headers | cookie).raise_for_status().json()
            with Store.open(tmp_path / "store.db") as store:
                claims = store.queue_claims(1, shown["item"]["sample"])
            taken.append((shown["item"]["sample"], [claim.person for claim in claims]))
    (first, nobody), (same, jun), (other, ann) = taken
    assert (nobody, jun, ann) == ([], ["jun"], ["ann"])
    assert first == same != other


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
            assert not mei.page.locator(".notice").count()
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


def test_queues_on_the_command_line(steelyard: Steelyard, tmp_path: Path) -> None:
    """Made of a run's samples with a tag, shown with what was labelled, closed and opened again."""
    store = tmp_path / "store.db"
    (run,) = fill(store, ("atomic",))
    where = ("--store", str(store))
    made = steelyard(
        "queues", "make", "last", "--name", "[b]first", "--person", "mei", "--person", "jun", "--samples", "0",
        "--twice", "1", "--tag", "car", "--json", *where,
    )  # fmt: skip
    queue = json.loads(made.out)
    assert (queue["run"], queue["people"], queue["blind"], queue["done"]) == (run, ["mei", "jun"], True, 0)
    with Store.open(store) as opened:
        items = opened.queue_items(queue["id"])
        tags = {sample.id: sample.tags for sample, _ in opened.verdicts(run)}
        assert {item.sample for item in items} == {id for id, own in tags.items() if "car" in own} != set(tags)
        assert queue["wanted"] == 2 * len(items)
        for who, said in (("mei", "correct"), ("jun", "wrong")):
            one = items[0]
            given = {"sample": one.sample, "kind": one.kind, "item": one.item, "policy": "1", "run": run}
            opened.add_labels([HumanLabel.model_validate({**given, "label": said, "annotator": who})])
    assert "disagreements: 1; to settle: 1" in steelyard("queues", "show", "1", *where).out
    assert "[b]first" in steelyard("queues", "list", *where).out
    assert "closed" in steelyard("queues", "close", "1", *where).out
    (listed,) = map(json.loads, steelyard("queues", "list", "--run", "last", "--json", *where).out.splitlines())
    assert (listed["closed"] is not None, listed["done"], listed["unsettled"]) == (True, 2, 1)
    steelyard("queues", "close", "1", "--reopen", *where)
    with Store.open(store) as opened:
        assert opened.queue(1).closed is None
    for wrong in (["show", "9"], ["make", "last", "--name", ""], ["make", "last", "--name", "q", "--kind", "no"],
                  ["make", "last", "--name", "q", "--tag", "nowhere"], ["make", "none", "--name", "q"]):  # fmt: skip
        assert steelyard("queues", *wrong, *where).code == 2
