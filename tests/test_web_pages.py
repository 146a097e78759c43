"""The viewer's pages in a real browser, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from browser import DESKTOP, PHONE, chromium, tab
from viewer import fill, viewing


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


def test_runs_as_json(address: str) -> None:
    """Each page has the same as JSON beside it."""
    found = httpx.get(f"{address}/runs.json").json()
    assert [listed["run"]["protocol"] for listed in found["runs"]] == ["dialogue", "scorecard", "grounded", "atomic"]


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_runs_page(browser: Browser, address: str, language: str, viewport: dict[str, int], scheme: str) -> None:
    """Wide and light, narrow and dark, in both languages: quiet, alone, never too wide, accessible."""
    with tab(browser, f"{address}/runs?lang={language}", viewport=viewport, color_scheme=scheme) as opened:
        assert opened.page.locator("tbody tr").count() == 4
        assert opened.overflow <= 0
        assert opened.violations() == []
        assert opened.noises == []
        assert all(url.startswith(address) for url in opened.requests)
