"""The audit's HTML card in a real browser: alone, quiet, accessible, and safe with hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from audit_judges import judge, obedient
from browser import DESKTOP, PHONE, chromium, tab
from html_page import read_page
from steelyard.records import Language
from steelyard.reports.audit.card import Card
from steelyard.reports.audit.html import render
from steelyard.text.wording import LANGUAGES, say
from steelyard.trust.audit import audit

ATTACK = "<script>window.hacked = 1</script></td></table><img src=x onerror='window.hacked = 2'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def card() -> Card:
    """A card with something in every list, and a hostile text wherever text comes from outside."""
    made = audit(judge(obedient), protocols=["grounded"], repeats=2)
    (part,) = made.parts
    assert part.injection
    assert part.sensitivity
    assert part.stability
    success = part.injection.successes[0].model_copy(update={"text": ATTACK, "base": ATTACK})
    injection = part.injection.model_copy(update={"successes": (success,)})
    return made.model_copy(
        update={
            "judge": f"openai:{ATTACK}",
            "described": {"model": ATTACK},
            "stopped": ATTACK,
            "parts": (part.model_copy(update={"injection": injection}),),
        }
    )


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
@pytest.mark.parametrize("beside", [0, 2])
def test_the_card(
    browser: Browser, tmp_path: Path, card: Card, language: Language, viewport: dict[str, int], scheme: str, beside: int
) -> None:
    """Wide and narrow, light and dark, alone and beside others: quiet, never too wide, accessible, nothing runs."""
    path = tmp_path / "card.html"
    path.write_text(render(card, [card] * beside, language), encoding="utf-8")
    with tab(browser, path.as_uri(), viewport=viewport, color_scheme=scheme) as opened:
        opened.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert opened.overflow <= 0
        assert opened.violations() == []
        assert opened.noises == []
        assert opened.requests == [path.as_uri()]
        assert opened.page.evaluate("typeof window.hacked") == "undefined"
        assert opened.page.locator("main img, script").count() == 0
        assert ATTACK in opened.page.locator("table.cases").first.inner_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_whole(card: Card, language: Language) -> None:
    """Elements balance, ids are unique, links lead somewhere, and each section says its sentence in the language."""
    page = read_page(render(card, [], language))
    ids = [node["id"] for node in page.all() if node.get("id")]
    assert len(ids) == len(set(ids))
    assert all(node.get("href").removeprefix("#") in ("", *ids) for node in page.all())
    (root,) = page.all("html")
    assert root["lang"] == language
    told = [node.text for node in page.all("p", "said")]
    assert len(told) == 3
    assert say(language, "audit.all_noticed").format(n=66) in told[2]
