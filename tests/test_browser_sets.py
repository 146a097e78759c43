"""Whole tasks in a real browser: a set from a filter, a run over it, a sample's history; the playground."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import DESKTOP, PHONE, Tab, chromium, tab
from command import fact_server, facts
from steelyard.store import Store
from viewer import fill, settings, viewing


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def quiet(opened: Tab) -> None:
    assert (opened.page.url, opened.overflow <= 0) == (opened.page.url, True)
    assert (opened.page.url, opened.violations()) == (opened.page.url, [])
    assert (opened.page.url, opened.noises) == (opened.page.url, [])


def pressed(page: Page, selector: str) -> None:
    """A button or link by the keyboard alone."""
    page.locator(selector).first.focus()
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_from_a_filter_to_a_history(
    browser: Browser, tmp_path: Path, language: str, viewport: dict[str, int], scheme: str
) -> None:
    """What went wrong becomes a set by a filter, one more sample by hand; a run over the set; what became of a sample;
    one is taken out again, and the version that was run over stays."""
    store = tmp_path / "store.db"
    (run,) = fill(store, ("atomic",))
    with (
        viewing(store) as served,
        tab(browser, f"{served}/runs/{run}/samples?lang={language}", viewport=viewport, color_scheme=scheme) as opened,
    ):
        page = opened.page
        page.goto(f"{served}/runs/{run}/samples?label=atom:wrong")
        pressed(page, ".add-to-set summary")
        page.locator("#set-name").fill("<i>wrong</i>")
        quiet(opened)
        pressed(page, "#add-to-set button.main")
        expect(page.locator("h1")).to_have_text("<i>wrong</i>")
        expect(page.locator("table.held tbody tr")).to_have_count(2)
        page.goto(f"{served}/runs/{run}/samples/car-tyre")
        page.locator(".add-to-set summary").click()
        page.locator("#set-name").fill("<i>wrong</i>")
        page.locator("#set-note").fill("by hand")
        quiet(opened)
        page.locator("#add-to-set button.main").click()
        expect(page.locator("table.held tbody tr")).to_have_count(3)
        page.locator("details.fold-away summary").click()
        quiet(opened)
        page.goto(f"{served}/sets")
        quiet(opened)
        pressed(page, "tbody a")
        pressed(page, "a.button.main")
        page.locator("#options").fill("date=2026-03-02")
        page.locator("#meta").fill("version=8")
        page.locator("#name").fill("over the set")
        page.locator("input[value=scorecard]").check()
        page.locator("button[formaction]").click()
        expect(page.locator(".takes")).to_have_count(2)
        quiet(opened)
        page.locator(".start-row button.main").click()
        expect(page.locator("tbody tr .state.complete")).to_have_count(3, timeout=30_000)
        page.goto(f"{served}/runs/{run}/samples/car-seat/history")
        expect(page.locator("table.history tbody tr")).to_have_count(3)
        expect(page.locator("table.history tbody tr").first).to_contain_text("over the set")
        quiet(opened)
        page.goto(f"{served}/sets/1")
        page.locator("input[value=car-tyre]").check()
        pressed(page, "#remove button")
        expect(page.locator("table.held tbody tr")).to_have_count(2)
        lines = httpx.get(f"{served}/sets/1/samples.jsonl?version=2").text.splitlines()
        assert ["car-tyre" in line for line in lines] == [False, False, True]
    with Store.open(store) as kept:
        made = [row for row in kept.runs() if row.name == "over the set"]
        assert {row.protocol for row in made} == {"atomic", "scorecard"}
        assert all(row.meta == {"version": "8"} and kept.judged(row.id) == {"judged": 3} for row in made)
        assert len({row.manifest["group"] for row in made}) == 1


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hant", PHONE, "dark")])
def test_the_playground(browser: Browser, tmp_path: Path, language: str, viewport: dict[str, int], scheme: str) -> None:
    """An edited prompt is sent as it was edited, the labels stand side by side, and nothing is kept; saved, it becomes
    a run without another call."""
    store = tmp_path / "store.db"
    with fact_server() as server:
        config = settings(mine={"base_url": server.url, "model": "m", "retries": 0})
        with viewing(store, config=config) as served, httpx.Client(base_url=served, timeout=60) as client:
            form = {"protocol": "atomic", "judge": "mine"}
            with facts(tmp_path / "facts.jsonl", 2).open("rb") as file:
                client.post("/runs", data=form, files={"file": ("facts.jsonl", file)})
            run = client.get("/api/v1/runs").json()["runs"][0]["id"]
            with client.stream("GET", f"/api/v1/runs/{run}/events") as events:
                assert "event: end" in "".join(events.iter_text())
            before = kept(store)
            calls = len(server.requests)
            address = f"{served}/runs/{run}/samples/fact-1/try?lang={language}"
            with tab(browser, address, viewport=viewport, color_scheme=scheme) as opened:
                page = opened.page
                quiet(opened)
                page.locator("details.fold-away summary").last.click()
                prompt = page.locator("textarea").last
                prompt.fill(prompt.input_value().replace("<!-- sample -->", "Be kind: 玉米.\n<!-- sample -->", 1))
                pressed(page, "form button.main")
                expect(page.locator("table.changes tbody tr")).to_have_count(1)
                assert "玉米" in str(server.requests[-1].body)
                assert (len(server.requests) > calls, kept(store)) == (True, before)
                expect(page.locator("textarea").last).to_have_value(re.compile("玉米"))
                quiet(opened)
                calls = len(server.requests)
                pressed(page, "form[action$=save] button")
                page.wait_for_url(re.compile("/runs/[^/]+$"))
                assert len(server.requests) == calls
                assert opened.noises == []
            saved = client.get("/api/v1/runs").json()["runs"][0]
            assert saved["id"] != run
            assert saved["statuses"] == {"judged": 1}
            assert client.post(f"/runs/{run}/samples/fact-2/try/save", data={"trial": "0" * 16}).status_code == 404


def kept(store: Path) -> tuple[int, int, int]:
    """How many runs, samples and replies the store holds."""
    with Store.open(store) as opened:
        runs, samples, replies = (
            next(opened.query(f"SELECT count(*) FROM {table}"))[0] for table in ("runs", "samples", "replies")
        )
        return runs, samples, replies
