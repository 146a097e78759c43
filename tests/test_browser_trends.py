"""Runs with names in a real browser: edited, found, followed over time, compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from browser import DESKTOP, PHONE, chromium, tab
from reading_store import ATTACK
from steelyard import RagSample, ScriptedJudge, evaluate
from steelyard.records import Ask
from steelyard.store import RunIdentity, Store, StoreLocation
from steelyard.trust.comparison.word_diff import word_changes
from trust_fixtures import MANIFEST, judged
from viewer import answer, viewing

DROP = 4
"""The run in which the assistant got worse."""


def history(path: StoreLocation, n: int, *, samples: int = 40) -> None:
    """Runs of one project over the same samples, a day apart; from `DROP` on the assistant is worse."""
    with Store.open(path) as store:
        for number in range(1, n + 1):
            chance = random.Random(number)
            right = 0.92 if number < DROP else 0.6
            opens = "nine" if number < DROP else "ten"
            called = {"name": f"prompt {number}", "project": "shop", "baseline": number == 2}
            known = RunIdentity(**called, tags=("nightly",), meta={"version": f"1.{number}"})
            moment = f"2026-{(number - 1) // 28 + 1:02d}-{(number - 1) % 28 + 1:02d}T10:00:00+00:00"
            run = store.create_run(f"run-{number}", "atomic", "j:m", moment, MANIFEST, known)
            rows = []
            for seq in range(samples):
                labels = ["correct" if chance.random() < right else "wrong" for _ in range(3)]
                rows.append((seq, *judged(f"q{seq}", labels, answer=f"The shop opens at {opens}. 周末照常营业。")))
            store.add_verdicts(run.id, rows)
            store.update_run(run.id, state="complete", finished=moment, manifest=MANIFEST)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("trends") / "store.db"
    history(store, 5)
    with viewing(store) as served:
        yield served


def test_a_run_is_given_a_name(browser: Browser, tmp_path: Path) -> None:
    """Name, project, tags, metadata and notes are edited on the run's page, shown on every page of it, and found in
    the list; the one baseline of a project moves to the run that is pinned last."""
    history(tmp_path / "store.db", 2, samples=3)
    with viewing(tmp_path / "store.db") as served, tab(browser, f"{served}/runs/run-1?lang=en") as opened:
        page = opened.page
        page.locator("details.edit summary").click()
        page.locator("#run-name").fill("检索 v7")
        page.locator("#run-tags").fill("candidate，nightly")
        page.locator("#run-meta").fill("commit=1a2b3c\nversion=7")
        page.locator("#run-notes").fill("With the new retriever.")
        page.locator("[name=baseline]").check()
        page.get_by_role("button", name="Save").click()
        expect(page.locator("h1")).to_have_text("检索 v7")
        expect(page.locator(".identity .notes")).to_have_text("With the new retriever.")
        for part in ("samples", "failures", "label"):
            page.goto(f"{served}/runs/run-1/{part}")
            expect(page.locator(".crumbs")).to_contain_text("检索 v7")
        page.goto(f"{served}/runs?q=retriever+commit%3D1a")
        expect(page.locator("tbody th a").first).to_have_text("检索 v7")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.goto(f"{served}/runs?project=shop")
        expect(page.locator("tbody tr", has_text="Baseline")).to_have_count(1)
        page.locator("#by-tag").select_option("candidate")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.goto(f"{served}/runs/run-1")
        page.locator("details.edit summary").click()
        page.locator("#run-meta").fill("no equals sign")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("main")).to_contain_text("line 1 is not of the form key=value")
    with Store.open(tmp_path / "store.db") as store:
        assert store.run("run-1").meta == {"commit": "1a2b3c", "version": "7"}


def test_identity_over_the_api(tmp_path: Path) -> None:
    """PATCH changes what is given and leaves the rest; a number stays one when the form is saved; what is not valid is
    refused and nothing is changed; a form of another site is refused."""
    history(tmp_path / "store.db", 1, samples=3)
    with viewing(tmp_path / "store.db") as served, httpx.Client(base_url=served) as client:
        changed = client.patch("/api/v1/runs/run-1", json={"name": "new", "meta": {"k": 8, "prompt": "p"}})
        assert (changed.status_code, changed.json()["name"], changed.json()["project"]) == (200, "new", "shop")
        assert client.patch("/api/v1/runs/run-1", json={"tags": [" "]}).status_code == 422
        form = {"name": "newer", "meta": "k=8\nprompt=q"}
        assert client.post("/runs/run-1/identity", data=form, headers={"Origin": "http://evil"}).status_code == 403
        assert answer(client, "/api/v1/runs/run-1")["run"]["name"] == "new"
        assert client.post("/runs/run-1/identity", data=form).status_code == 303
        sample = {"id": "1", "question": "When?", "answer": "At nine.", "references": ["At nine."]}
        new = {"protocol": "atomic", "judge": "embedded", "samples": [sample], "name": "v8", "meta": {"version": 8}}
        assert client.post("/api/v1/runs", json=new).status_code == 201
        begun = answer(client, "/api/v1/runs/last")["run"]
        assert (begun["name"], begun["meta"]) == ("v8", {"version": 8})
        assert answer(client, "/api/v1/runs/run-1")["run"]["meta"] == {"k": 8, "prompt": "q"}


def test_hostile_names(browser: Browser, tmp_path: Path) -> None:
    """Markup in name, notes, tags, metadata and project is text on every page that shows a run."""
    history(tmp_path / "store.db", 2, samples=3)
    with Store.open(tmp_path / "store.db") as store:
        for run in ("run-1", "run-2"):
            given = {"name": ATTACK[:200], "notes": ATTACK, "project": ATTACK[:200]}
            store.edit_run(run, **given, tags=[ATTACK], meta={ATTACK: ATTACK})
    pages = ("runs", "runs/run-1", "runs/run-1/samples", "label", "compare", "compare?a=run-1&b=run-2", "trends")
    pages += ("compare/runs?run=run-1&run=run-2&to=run-1", "compare/sample?a=run-1&b=run-2&id=q1")
    with viewing(tmp_path / "store.db") as served, tab(browser, f"{served}/runs?lang=en") as opened:
        for path in pages:
            opened.page.goto(f"{served}/{path}")
            assert opened.page.evaluate("typeof window.hacked") == "undefined"
            assert opened.overflow <= 0, path
        assert opened.noises == []


def test_a_regression_is_noticed(browser: Browser, address: str) -> None:
    """Over five runs: the one significant drop is told in words, marked in the chart, told by hovering, and a click
    opens its run; the words lead to the comparison with the run before. Versions order it as well as time does."""
    with tab(browser, f"{address}/trends?lang=en") as opened:
        page = opened.page
        news = page.locator(".news li.bad")
        expect(news).to_have_count(1, timeout=15_000)
        expect(news).to_contain_text("prompt 4: Accuracy fell by")
        marks = page.locator(".trend-figure.wide .mark.bad")
        assert marks.count() == 1
        point = page.locator(".trend-figure.wide a", has=page.locator(".mark.bad"))
        told = point.get_attribute("aria-label") or ""
        assert told.startswith("prompt 4 · 2026-01-04")
        assert "against prompt 3, significant" in told
        expect(page.locator("figcaption").first).to_contain_text("Baseline")
        news.locator("a").click()
        expect(page.locator("h1")).to_contain_text("worse")
        page.goto(f"{address}/trends?lang=en&by=version")
        page.locator(".trend-figure.wide a", has=page.locator(".mark.bad")).click()
        expect(page.locator("h1")).to_have_text("prompt 4")
        assert opened.noises == []


def test_trends_of_few_and_odd_runs(location: StoreLocation) -> None:
    """One run is no trend, and the page says so; runs that another judge labelled are not compared and no line joins
    them; metadata orders versions as people count. In either kind of store."""
    history(location, 1, samples=4)
    with viewing(location) as served, httpx.Client(base_url=served) as client:
        assert "A trend begins with the second run" in client.get("/trends?lang=en").text
        with Store.open(location) as store:
            known = RunIdentity(project="shop", meta={"version": "1.10"})
            other = {**MANIFEST, "judge": {"name": "other", "model": "m2"}}
            store.create_run("run-2", "atomic", "other", "2026-01-02T10:00:00+00:00", other, known)
            store.add_verdicts("run-2", [(0, *judged("q0", ["wrong"], judge="other"))])
            store.update_run("run-2", state="complete", finished=None, manifest=other)
            store.edit_run("run-1", meta={"version": "1.9"})
        found = answer(client, "/trends.json?by=version")
        assert [run["at"] for run in found["runs"]] == ["1.9", "1.10"]
        assert "judge" in dict(found["runs"][1]["refused"])
        page = client.get("/trends?lang=en").text
        assert "Not comparable with the run before: different judges" in page
        assert "line round" not in page


def test_several_runs_are_compared(browser: Browser, address: str) -> None:
    """Ticked in the list: each run against the baseline, or against the one that is chosen instead, with its interval
    and decision; from there to two runs, to the samples that moved, and from one of them to the next."""
    with tab(browser, f"{address}/runs?lang=en") as opened:
        page = opened.page
        for number in (1, 2, 4):
            page.get_by_label(f"Select prompt {number} to compare").check()
        page.get_by_role("button", name="Compare selected").click()
        rows = page.locator("table.differences tbody tr")
        expect(rows.locator(".chip")).to_have_text(["not decided", "⚑ Baseline", "worse"])
        page.locator("#to").select_option("run-4")
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(rows.nth(0).locator(".chip")).to_have_text("better")
        assert opened.overflow <= 0
        assert opened.violations() == []
        page.goto(f"{address}/compare?a=run-2&b=run-4&lang=en")
        page.locator("#moved tbody a").first.click()
        expect(page.locator(".reworded del")).to_have_text("nine")
        expect(page.locator(".reworded ins")).to_have_text("ten")
        first = page.locator("h1").inner_text()
        page.keyboard.press("n")
        expect(page.locator("h1")).not_to_have_text(first)
        page.get_by_role("link", name="Previous").click()
        expect(page.locator("h1")).to_have_text(first)
        assert opened.noises == []


def test_preference_between_two_runs(tmp_path: Path) -> None:
    """Where a run compared the answers of both with each other, the comparison shows how often each was preferred."""
    history(tmp_path / "store.db", 2, samples=4)

    def for_first_run(ask: Ask) -> dict[str, object]:
        label = "first" if ask.data.first == "one" else "second"
        return {"criteria": [{"id": item.id, "reason": "r", "label": label} for item in ask.data.items()["criteria"]]}

    names = ("prompt 1", "prompt 2")
    pairs = [RagSample(id=f"q{n}", answer="one", other_answer=f"two {n}", answer_of=names) for n in range(4)]
    with viewing(tmp_path / "store.db") as served, httpx.Client(base_url=served) as client:
        assert answer(client, "/compare.json?a=run-1&b=run-2")["preference"] is None
        evaluate(pairs, "pairwise", ScriptedJudge(for_first_run), store=tmp_path / "store.db")
        with Store.open(tmp_path / "store.db") as store:
            row = store.run("last")
            manifest = {**row.manifest, "data": [{"path": "runs", "runs": ["run-1", "run-2"]}]}
            store.update_run(row.id, state=row.state, finished=row.finished, manifest=manifest)
        found = answer(client, "/compare.json?a=run-2&b=run-1")["preference"]
        assert [(one["name"], one["win_rate"]["value"]) for one in found["ranking"]] == [(names[0], 1), (names[1], 0)]
        assert "prompt 1 100.0%" in client.get("/compare?a=run-1&b=run-2&lang=en").text


@pytest.mark.parametrize(
    ("a", "b", "removed", "added"),
    [
        ("上午九点开门", "上午十点开门", ["九"], ["十"]),
        ("opens at nine", "opens at half past nine", [], ["half past "]),
        ("big red bus", "small blue bus", ["big red"], ["small blue"]),
        ("", "new", [], ["new"]),
        ("same", "same", [], []),
    ],
)
def test_words_that_differ(a: str, b: str, removed: list[str], added: list[str]) -> None:
    """Words, and Chinese characters, that one answer has and the other has not; the pieces make up the answers."""
    found = word_changes(a, b)
    assert found is not None
    assert ["".join(piece.text for piece in side) for side in found] == [a, b]
    assert [[piece.text for piece in side if piece.is_changed] for side in found] == [removed, added]
    assert word_changes("x " * 4000, "y") is None


def test_pages_at_every_width(browser: Browser, address: str) -> None:
    """Wide and light, narrow and dark: never too wide, accessible, quiet."""
    narrow, wide = (PHONE, "dark", "zh-Hans"), (DESKTOP, "light", "en")
    for path, (viewport, scheme, language) in (("runs/run-3", narrow), ("trends", wide)):
        with tab(browser, f"{address}/{path}", viewport=viewport, color_scheme=scheme, locale=language) as opened:
            if path == "runs/run-3":
                opened.page.locator("details.edit summary").click()
            assert opened.overflow <= 0, path
            assert opened.violations() == []
            opened.page.set_viewport_size({"width": 320, "height": 800})
            assert opened.overflow <= 0, path
            assert opened.noises == []
