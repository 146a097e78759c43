"""The list of runs in a real browser: a file is uploaded, its run followed, stopped, resumed and deleted."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser import DESKTOP, PHONE, chromium, tab
from command import RAG, fact_server, facts
from steelyard.records import RagSample, Usage
from steelyard.store.postgres import PostgresStore
from steelyard.store.work_table import Quota
from viewer import fill, settings, viewing


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("viewer") / "store.db"
    fill(store)
    with viewing(store) as served:
        yield served


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_the_page(browser: Browser, address: str, language: str, viewport: dict[str, int], scheme: str) -> None:
    """Wide and light, narrow and dark, in both languages: quiet, alone, never too wide, accessible."""
    with tab(browser, f"{address}/runs?lang={language}", viewport=viewport, color_scheme=scheme) as opened:
        opened.page.locator("details.new summary").click()
        assert opened.page.locator("tbody tr").count() == 4
        assert opened.page.locator("svg.spread").count() == 7
        assert opened.overflow <= 0
        assert opened.violations() == []
        assert opened.noises == []
        assert all(url.startswith(address) for url in opened.requests)


def test_filtering(browser: Browser, address: str) -> None:
    """The list follows what is typed, and so does the address, which can be passed on."""
    with tab(browser, f"{address}/runs?lang=en") as opened:
        page = opened.page
        page.locator("#q").fill("dialogue.jsonl")
        expect(page.locator("tbody tr")).to_have_count(1)
        assert page.url.endswith("/runs?q=dialogue.jsonl")
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator("#q").fill("")
        page.locator("#by-protocol").select_option("atomic")
        expect(page.locator("tbody tr td:nth-child(2)")).to_contain_text(["Atomic"])
        assert opened.noises == []


def test_the_life_of_a_run(browser: Browser, tmp_path: Path) -> None:
    """Uploaded, followed while it is at work, stopped, resumed to its end, deleted only after being asked."""
    samples = facts(tmp_path / "facts.jsonl", 400)
    with fact_server(latency=0.2) as server:
        mine = {"base_url": server.url, "model": "m", "retries": 0, "key_env": "K"}
        config = settings(mine=mine)
        with viewing(tmp_path / "store.db", config=config) as served, tab(browser, f"{served}/runs?lang=en") as opened:
            page = opened.page
            page.locator("#file").set_input_files(samples)
            page.locator("#judge").select_option("mine")
            page.get_by_role("button", name="Start").click()
            row = page.locator("tbody tr")
            expect(row.locator("progress")).to_have_attribute("max", "400")
            expect(row.locator("[data-figures]")).to_contain_text("/s")
            row.get_by_role("button", name="Stop").click()
            expect(row.locator(".state")).to_have_text("stopped", timeout=15_000)
            row.get_by_role("button", name="Resume").click()
            expect(row.locator(".state")).to_have_text("complete", timeout=30_000)
            expect(row.locator(".scores b")).to_have_text("100.0%")
            assert len(server.requests) == 800
            row.get_by_role("button", name="Delete").first.click()
            ask = page.locator(".ask:popover-open")
            expect(ask).to_contain_text("400 samples")
            ask.get_by_role("button", name="Cancel").click()
            expect(row).to_have_count(1)
            row.get_by_role("button", name="Delete").first.click()
            ask.get_by_role("button", name="Delete").click()
            expect(page.locator("#list")).to_contain_text("No runs yet")
            assert opened.noises == []


def test_numbers_of_a_run_at_work(browser: Browser, tmp_path: Path) -> None:
    """On the run's page, by events: samples, pace, score so far and the report below move; Stop stops; Resume goes on;
    at its end the panel is gone and the final report is there, without a new page."""
    samples = facts(tmp_path / "facts.jsonl", 300)
    with fact_server(latency=0.6) as server:
        config = settings(mine={"base_url": server.url, "model": "m", "retries": 0, "key_env": "K"})
        with viewing(tmp_path / "store.db", config=config) as served, tab(browser, f"{served}/runs?lang=en") as opened:
            page = opened.page
            page.locator("#file").set_input_files(samples)
            page.locator("#judge").select_option("mine")
            page.get_by_role("button", name="Start").click()
            page.locator("tbody tr th a").click()
            panel = page.locator("#progress")
            passed = panel.locator("[data-figure=passed]")
            expect(panel.locator("[data-score]")).to_have_text("100.0%", timeout=15_000)
            before = passed.inner_text()
            assert before.endswith(" / 300")
            expect(passed).not_to_have_text(before)
            expect(panel.locator("[data-figure=rate]")).not_to_have_text("–")
            assert opened.violations() == []
            panel.get_by_role("button", name="Stop").click()
            expect(page.locator(".run-head .state")).to_have_text("stopped", timeout=20_000)
            expect(panel).to_have_count(0)
            server.latency = 0.1
            page.get_by_role("button", name="Resume").click()
            page.evaluate("window.same = true")
            expect(page.locator(".run-head .state")).to_have_text("complete", timeout=40_000)
            expect(page.locator(".statuses")).to_contain_text("300 judged", timeout=20_000)
            expect(panel).to_have_count(0)
            assert page.evaluate("window.same")
            asked = [url for url in opened.requests if "/events" in url]
            page.wait_for_timeout(1500)
            assert [url for url in opened.requests if "/events" in url] == asked
            assert opened.noises == []


@pytest.mark.parametrize(
    ("language", "viewport", "scheme", "gone"),
    [("en", DESKTOP, "light", "gone"), ("zh-Hans", DESKTOP, "dark", "已退出"), ("en", PHONE, "dark", "gone")],
)
def test_workers_of_a_run_at_work(
    browser: Browser, postgres_url: str, language: str, viewport: dict[str, int], scheme: str, gone: str
) -> None:
    """The page of a run names its workers, how fast they are and which rows they hold, and follows them."""
    samples = [
        (n, RagSample(id=f"s{n}", question="When?", answer="At ten.", references=("At ten.",))) for n in range(170)
    ]
    with PostgresStore.at(postgres_url) as store:
        store.create_run("run-1", "atomic", "mine", "2026-03-02T00:00:00+00:00", {"options": {}, "data": []})
        quota = store.queue_run("run-1", samples, Quota(silence=60))
        with store.together_with("run-1"):
            for number, worker in enumerate(("node-a-11", "node-b-12"), 11):
                store.join("run-1", worker, worker[:6], number)
                store.take_range("run-1", worker)
                store.beat("run-1", worker, 7, quota)
            how = {"color_scheme": scheme, "viewport": viewport}
            with viewing(postgres_url) as served, tab(browser, f"{served}/runs/run-1?lang={language}", **how) as opened:
                panel = opened.page.locator("#progress")
                expect(panel.locator("[data-workers] tbody tr")).to_have_count(2)
                row = panel.locator("tr", has_text="node-b-12")
                expect(row).to_contain_text("51–100")
                store.take_range("run-1", "node-b-12")
                store.drop_claims([("key", Usage(calls=3, prompt_tokens=10))], "node-b-12", 1)
                expect(row).to_contain_text("51–100, 101–150")
                expect(row.locator("td").nth(4)).to_have_text("3")
                store.give_back("run-1", "node-a-11")
                expect(panel.locator("tr", has_text="node-a-11")).to_contain_text(gone)
                expect(panel.locator("[data-figure=passed]")).to_have_text("0 / 170")
                assert (opened.violations(), opened.noises, max(0, opened.overflow)) == ([], [], 0)


def test_a_wrong_file_is_named(browser: Browser, address: str, tmp_path: Path) -> None:
    """One clear line says what is wrong with it; no run is made."""
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"question": "only"}\n', encoding="utf-8")
    with tab(browser, f"{address}/runs?lang=en") as opened:
        opened.page.locator("details.new summary").click()
        opened.page.locator("#file").set_input_files(wrong)
        opened.page.get_by_role("button", name="Start").click()
        expect(opened.page.get_by_role("alert")).to_contain_text("wrong.jsonl:1")
        opened.page.goto(f"{address}/runs")
        expect(opened.page.locator("tbody tr")).to_have_count(4)


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_odd_columns_are_mapped(
    browser: Browser, tmp_path: Path, language: str, viewport: dict[str, int], scheme: str
) -> None:
    """A CSV whose columns nobody recognises: seen, told by line and field, mapped by hand, estimated, started once."""
    odd = tmp_path / "odd.csv"
    lines = [json.loads(line) for line in facts(tmp_path / "facts.jsonl", 3).read_text(encoding="utf-8").splitlines()]
    with odd.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["asked by user", "bot said", "sources"])
        table.writerows([line["question"], line["answer"], json.dumps(line["references"])] for line in lines)
    with fact_server() as server:
        config = settings(mine={"base_url": server.url, "model": "m", "retries": 0, "key_env": "K"})
        with (
            viewing(tmp_path / "store.db", config=config) as served,
            tab(browser, f"{served}/runs?lang={language}", viewport=viewport, color_scheme=scheme) as opened,
        ):
            page = opened.page
            page.locator("#file").set_input_files(odd)
            page.locator("#judge").select_option("mine")
            page.locator("#name").fill("odd columns")
            page.locator("button[formaction]").click()
            expect(page.locator(".first-rows tbody tr")).to_have_count(3)
            expect(page.locator(".unreadable li").first).to_contain_text("odd.csv:2")
            for field, column in (("question", "asked by user"), ("answer", "bot said"), ("references", "sources")):
                page.locator(f"#column-{field}").select_option(column)
            page.locator("#max_tokens").fill("100000")
            checked = page.url
            page.locator(".start-row button[formaction]").click()
            page.locator(".languages button[lang=zh-Hant]").click()
            expect(page.locator("html")).to_have_attribute("lang", "zh-Hant")
            page.locator(f".languages button[lang={language}]").click()
            expect(page.locator("html")).to_have_attribute("lang", language)
            expect(page.locator(".takes dd").first).to_have_text("3")
            expect(page.locator(".takes > div")).to_have_count(5)
            expect(page.locator("#name")).to_have_value("odd columns")
            expect(page.locator("#max_tokens")).to_have_value("100000")
            assert server.requests == []
            assert opened.overflow <= 0
            assert opened.violations() == []
            page.locator(".start-row button.main").click()
            expect(page.locator("tbody tr .state.complete")).to_be_visible(timeout=20_000)
            expect(page.locator("tbody tr th a")).to_have_text("odd columns")
            assert opened.noises == []
            page.goto(checked)
            expect(page.get_by_role("alert")).to_be_visible()


def test_without_script(browser: Browser, tmp_path: Path) -> None:
    """With JavaScript off a run can be started and deleted all the same."""
    with (
        viewing(tmp_path / "store.db") as served,
        tab(browser, f"{served}/runs?lang=en", java_script_enabled=False) as opened,
    ):
        page = opened.page
        page.locator("#file").set_input_files(RAG)
        page.locator("#judge").select_option("recorded")
        page.get_by_role("button", name="Start").click()
        page.locator("tbody tr").wait_for()
        while page.locator(".state.complete").count() == 0:
            page.reload()
        page.get_by_role("button", name="Delete").first.click()
        page.locator(".ask:popover-open button.main").click()
        expect(page.locator("#list")).to_contain_text("No runs yet")
