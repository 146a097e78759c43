"""Draws docs/images/viewer-*.png: pages of `steelyard view` over the bundled examples, judged by the judge in the box.

Run it from the project's root, with the development dependencies and a Chromium installed.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests")

from playwright.sync_api import Page

from browser import chromium
from steelyard.engine import runs
from steelyard.engine.inputs import Input
from steelyard.evaluation.factory import JudgeFactory
from steelyard.protocols import get_protocol
from steelyard.settings import Settings, SettingsFile
from steelyard.store import Store
from test_browser_trends import history
from viewer import viewing

FOLDER = Path("docs/images")
SIZE = {"width": 1180, "height": 800}
ODD = """asked by user,bot said,sources
When does the library open?,At nine.,The library opens at nine on working days.
Is the pool heated?,"Yes, to 27 degrees.",The pool is heated to 27 °C from May on.
May I bring a dog?,Dogs are welcome everywhere.,Dogs are welcome in the garden and not in the house.
"""
SHOTS = {"viewer-run.png": "", "viewer-sample.png": "/samples/library-friday"}


async def judged(path: Path, config: Settings) -> str:
    """A run of the examples; its id."""
    protocol = get_protocol("atomic")
    options = protocol.parse_options({"date": "2026-03-02"})
    judge = JudgeFactory(config).judge("embedded")
    with Store.open(path) as store:
        data = Input(["examples/rag.jsonl"])
        run = runs.start(store, protocol, options, judge, "embedded", config.prompts, data, runs.RunSettings())
        await run.drive(lambda sample, verdict: None, lambda bad: None)
        await run.aclose()
        return run.row.id


def composed(page: Page, address: str) -> None:
    """Two protocols over the examples, with and without an option, judged and compared."""
    page.goto(f"{address}/experiments/composed/new?lang=en")
    page.locator("#name").fill("How strict?")
    page.locator("#file").set_input_files("examples/rag.jsonl")
    for name in ("atomic", "grounded"):
        page.locator(f"input[name=protocol][value={name}]").check()
    page.locator("#variants").fill("usual:\nstrict: strict=true")
    page.locator("form button.main").click()
    page.locator(".takes").wait_for()
    page.locator("form button.main").click()
    page.locator("#live .state.complete").nth(3).wait_for(timeout=120_000)
    page.locator("table.experiment").wait_for(timeout=60_000)
    page.screenshot(path=FOLDER / "viewer-experiment.png")


def main() -> None:
    config = Settings(SettingsFile(), {}, "steelyard.toml")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        run = asyncio.run(judged(store, config))
        with viewing(store, config=config) as address, chromium() as browser:
            page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
            for name, path in SHOTS.items():
                page.goto(f"{address}/runs/{run}{path}?lang=en")
                page.locator(".headline, .view").first.wait_for()
                page.screenshot(path=FOLDER / name)
            composed(page, address)
        runs_of_a_project = Path(folder) / "project.db"
        history(runs_of_a_project, 5)
        with viewing(runs_of_a_project, config=config) as address, chromium() as browser:
            page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
            page.goto(f"{address}/trends?lang=en")
            page.locator(".news li").first.wait_for()
            page.screenshot(path=FOLDER / "viewer-trends.png")
            with Store.open(runs_of_a_project) as kept:
                rows = kept.runs()
                sample = next(kept.verdicts(rows[0].id))[0].id
            page.goto(f"{address}/runs/{rows[0].id}/samples/{sample}/history")
            page.screenshot(path=FOLDER / "viewer-history.png")
            page.goto(f"{address}/compare?a={rows[-1].id}&b={rows[0].id}")
            page.locator(".outcome, table").first.wait_for()
            page.screenshot(path=FOLDER / "viewer-compare.png")
            page.goto(f"{address}/runs")
            page.locator("details.new summary").click()
            page.locator("#file").set_input_files(
                {"name": "export.csv", "mimeType": "text/csv", "buffer": ODD.encode("utf-8")}
            )
            page.locator("button[formaction]").click()
            page.locator("#column-question").select_option("asked by user")
            page.locator("#column-answer").select_option("bot said")
            page.locator("#column-references").select_option("sources")
            page.locator("button[formaction]").click()
            page.locator(".takes").first.wait_for()
            page.screenshot(path=FOLDER / "viewer-start.png")


if __name__ == "__main__":
    main()
