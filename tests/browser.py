"""A real Chromium for tests of pages: Debian's package, driven by Playwright; no request leaves the machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

# What is awaited comes late on a busy machine; what never comes is a failure all the same.
expect.set_options(timeout=30_000)

# Root in a container has no sandbox; the rest keeps the browser from talking to anybody.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
NAMES = ("chromium", "chromium-browser", "google-chrome")
GRAVE = ("serious", "critical")
# Contrast takes longer than all other rules together: of texts that look the same on the same ground, one is measured.
AXE = """async () => {
    const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const looks = new Set();
    const marked = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = getComputedStyle(element);
        const look = [own.color, own.fontSize, own.fontWeight, own.textShadow, own.position];
        look.push(element.matches(":disabled"));
        for (let ground = element; ground; ground = ground.parentElement) {
            const style = getComputedStyle(ground);
            look.push(style.backgroundColor, style.backgroundImage, style.opacity);
        }
        if (([...element.childNodes].some(isText) || element.value) && !looks.has(look.join())) {
            looks.add(look.join());
            element.setAttribute("data-one-of-its-look", "");
            marked.push(element);
        }
    }
    axe.configure({rules: [{id: "color-contrast", selector: "[data-one-of-its-look]"}]});
    const result = await axe.run({resultTypes: ["violations"]});
    marked.forEach((element) => element.removeAttribute("data-one-of-its-look"));
    return result.violations;
}"""
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. Where there is none the tests are skipped, except in continuous integration, where they fail."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page with a record of everything it did that a quiet page does not do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.noises: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.noises.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.noises.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.noises.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def violations(self) -> list[str]:
        """What axe-core calls serious or worse, as one line each."""
        # Evaluated from outside, so the page's own policy need not allow it.
        self.page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
        found: list[dict[str, Any]] = self.page.evaluate(AXE)
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            if one["impact"] in GRAVE
            for node in one["nodes"][:5]
        ]


@contextmanager
def tab(browser: Browser, address: str, *, viewport: dict[str, int] = DESKTOP, **settings: Any) -> Iterator[Tab]:
    """An address opened in a fresh profile."""
    context = browser.new_context(viewport=viewport, **settings)  # type: ignore[arg-type]
    try:
        opened = Tab(context.new_page())
        opened.page.goto(address)
        yield opened
    finally:
        context.close()
