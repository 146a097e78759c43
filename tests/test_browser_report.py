"""The HTML report in a real browser: opened from disk, looked at, hovered, printed, attacked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import DESKTOP, PHONE, chromium, tab
from report_fixtures import atomic, dialogue, dialogue_sample, grounded, rag, retrieval, scorecard
from steelyard.records import Language, Sample, Verdict
from steelyard.reports import ReportBuilder
from steelyard.reports.html import Lowest, render

ATTACK = (
    "<script>window.hacked = 1</script></p></div></script><img src=x onerror='window.hacked = 2'>"
    '<a href="javascript:window.hacked=3">[x](javascript:window.hacked=4)</a></section></details><svg onload=hacked=5>'
)
PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval")


def judged(protocol: str) -> list[tuple[Verdict, Sample]]:
    """A small run with something of everything in it."""
    answer = "不建议给大灯贴膜。亮度下降。大灯很好看。贴膜会使亮度下降1。"
    samples: list[Sample] = [rag(f"s{n}", f"问题{n}", answer=answer, tags=("售前", f"t{n}")) for n in range(4)]
    if protocol == "atomic":
        labels = (["wrong", "correct", "undetermined"], ["correct", "wrong"], ["exempt", "unjudged"], ["correct"])
        return [(atomic(s.id, found), s) for s, found in zip(samples, labels, strict=True)]
    if protocol == "grounded":
        return [(grounded(s.id, failed), s) for s, failed in zip(samples, ([1, 4], [6], [], [2]), strict=True)]
    if protocol == "scorecard":
        return [(scorecard(s.id), s) for s in samples]
    if protocol == "retrieval":
        causes = ("misread", "ignored", "no_failure", "unjudged")
        return [(retrieval(s.id, cause), s) for s, cause in zip(samples, causes, strict=True)]
    turns = (("ss", "sv"), ("vv", "u"), ("ss",), ("sx", "v"))
    return [(dialogue(f"d{n}", words), dialogue_sample(f"d{n}")) for n, words in enumerate(turns)]


def write(path: Path, pairs: list[tuple[Verdict, Sample]], language: Language = "en") -> str:
    """The report as a file; its address."""
    builder, lowest = ReportBuilder(pairs[0][0].protocol, language), Lowest(50)
    for verdict, sample in pairs:
        builder.add(verdict, sample)
        lowest.add(verdict, sample)
    path.write_text(render(builder.build({"python": "3.11"}), lowest.chosen()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_every_page(
    browser: Browser, tmp_path: Path, protocol: str, language: Language, viewport: dict[str, int], scheme: str
) -> None:
    """From disk, wide and light, narrow and dark, in both languages: quiet, alone, never too wide, accessible."""
    address = write(tmp_path / "r.html", judged(protocol), language)
    with tab(browser, f"{address}#s1", viewport=viewport, color_scheme=scheme) as opened:
        assert opened.page.locator("#s1").get_attribute("open") is not None
        assert opened.overflow <= 0
        assert opened.violations() == []
        assert opened.noises == []
        assert {url.partition("#")[0] for url in opened.requests} == {address}


def test_hovering_a_statement_lights_up_its_places(browser: Browser, tmp_path: Path) -> None:
    """Hover or focus: the item, its place in the answer and its quote light up together, then go out."""
    with tab(browser, write(tmp_path / "r.html", judged("atomic")) + "#s1") as opened:
        lit = opened.page.locator("#s1 .lit")
        item = opened.page.locator("#s1 .item").first
        opened.page.mouse.move(0, 0)
        item.hover()
        assert sorted(set(lit.evaluate_all("all => all.map(e => e.tagName)"))) == ["A", "LI", "SPAN"]
        assert opened.page.locator("#s1 aside .m.lit").count() == 1
        assert opened.page.locator("#s1 .answer .m.lit").count() >= 1
        opened.page.mouse.move(0, 0)
        assert lit.count() == 0
        opened.page.locator("#s1 aside .n").first.focus()
        assert opened.page.locator("#s1 .item.lit").count() == 1


def test_links_lead_to_samples_and_back(browser: Browser, tmp_path: Path) -> None:
    """A weak sample of the overview opens with one click; a number in its answer leads to the item."""
    with tab(browser, write(tmp_path / "r.html", judged("scorecard"))) as opened:
        opened.page.locator(".lowest a").first.click()
        sample = opened.page.locator("#s1")
        assert sample.get_attribute("open") is not None
        badge = sample.locator(".answer .n").first
        badge.click()
        target = opened.page.locator(badge.get_attribute("href") or "")
        target.wait_for(state="visible")
        assert "lit" in (target.get_attribute("class") or "")


def test_keyboard_alone_is_enough(browser: Browser, tmp_path: Path) -> None:
    """Samples open with Enter, and the first stop of the Tab key skips to the content."""
    with tab(browser, write(tmp_path / "r.html", judged("atomic"))) as opened:
        opened.page.keyboard.press("Tab")
        assert opened.page.evaluate("document.activeElement.className") == "skip"
        opened.page.locator("#s2 > summary").focus()
        opened.page.keyboard.press("Enter")
        assert opened.page.locator("#s2").get_attribute("open") is not None


def test_the_accessibility_check_can_fail(browser: Browser, tmp_path: Path) -> None:
    """Pale text and an image without a name would be found."""
    with tab(browser, write(tmp_path / "r.html", judged("atomic"))) as opened:
        opened.page.evaluate(
            "() => { document.querySelector('h1').style.color = '#eee';"
            " document.querySelector('svg[role=img]').removeAttribute('aria-label');"
            " document.querySelectorAll('svg[role=img] > title').forEach(title => title.remove()); }"
        )
        assert {line.partition(":")[0] for line in opened.violations()} == {"color-contrast", "svg-img-alt"}


def hostile() -> list[tuple[Verdict, Sample]]:
    verdict = atomic(ATTACK, ["wrong"], text=ATTACK, flags=(ATTACK,), judge=ATTACK)
    sample = rag(ATTACK, ATTACK, answer=ATTACK * 8000, references=(ATTACK,), tags=(ATTACK,))
    return [(verdict, sample)]


def test_a_hostile_sample_is_text(browser: Browser, tmp_path: Path) -> None:
    """Script, links and stray tags in a megabyte of answer are shown, not run; the page stays light and whole."""
    with tab(browser, write(tmp_path / "r.html", hostile()) + "#s1", viewport=PHONE) as opened:
        page = opened.page
        assert page.evaluate("typeof window.hacked") == "undefined"
        assert (opened.noises, opened.overflow) == ([], 0)
        assert page.locator("#s1 .answer .text").inner_text().startswith(ATTACK)
        assert page.locator("img, a[href^=javascript], section svg[onload]").count() == 0
        assert page.locator("footer").count() == 1
        assert (tmp_path / "r.html").stat().st_size < 300_000


def test_no_other_script_can_run(browser: Browser, tmp_path: Path) -> None:
    """Even an element that got into the page somehow is stopped by its policy."""
    with tab(browser, write(tmp_path / "r.html", judged("atomic"))) as opened:
        opened.page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
            " document.body.append(s); document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=hacked=2>'); }"
        )
        opened.page.wait_for_timeout(100)
        assert opened.page.evaluate("typeof window.hacked") == "undefined"
        assert any("Content Security Policy" in noise for noise in opened.noises)


def test_long_texts_fold_and_unfold(browser: Browser, tmp_path: Path) -> None:
    """A long answer starts folded; its button shows all of what the file holds."""
    long: list[tuple[Verdict, Sample]] = [(atomic("s1", ["wrong"], text="别的事"), rag(answer="长文。\n" * 2000))]
    with tab(browser, write(tmp_path / "r.html", long) + "#s1") as opened:
        text = opened.page.locator("#s1 .answer .text")
        button = opened.page.locator("#s1 .answer .fold")
        before = text.bounding_box()
        assert button.get_attribute("aria-expanded") == "false"
        button.click()
        after = text.bounding_box()
        assert before
        assert after
        assert after["height"] > before["height"] * 2
        assert button.get_attribute("aria-expanded") == "true"


def test_without_script_everything_is_readable(browser: Browser, tmp_path: Path) -> None:
    """With JavaScript off, samples open and nothing is folded away."""
    with tab(browser, write(tmp_path / "r.html", hostile()), java_script_enabled=False) as opened:
        opened.page.locator("#s1 > summary").click()
        assert opened.page.locator("#s1 .answer .text").is_visible()
        assert opened.page.locator(".folded").count() == 0


def test_prints_well(browser: Browser, tmp_path: Path) -> None:
    """On paper there is no navigation, dark mode turns light, nothing runs over the edge, and a PDF comes out."""
    with tab(browser, write(tmp_path / "r.html", judged("scorecard")) + "#s1", color_scheme="dark") as opened:
        page = opened.page
        page.set_viewport_size({"width": 720, "height": 1000})
        page.emulate_media(media="print", color_scheme="dark")
        assert not page.locator("nav.contents").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(0, 0, 0)"
        assert opened.overflow <= 0
        assert page.pdf(format="A4").startswith(b"%PDF")
