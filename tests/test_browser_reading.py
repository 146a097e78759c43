"""The reading pages in a real browser: the main paths, both languages, dark and narrow, hostile and huge samples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browser import DESKTOP, PHONE, chromium, tab
from command import RAG
from reading_store import ODD_ID, add_run, filled
from report_fixtures import atomic, rag
from steelyard.settings import Experiment, Settings, SettingsFile
from steelyard.store import Store
from steelyard.web.accounts.permissions import RULES, match_rule
from steelyard.web.addresses import sample_address
from viewer import JUDGES, viewing

HEAVIEST = 300_000
# What the page and everything it loaded take, uncompressed.
WEIGHT = """["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""


class Site(NamedTuple):
    """A viewer that can be opened: its address, its store, its runs by what they are."""

    address: str
    store: Path
    runs: dict[str, str]

    def at(self, run: str, path: str = "") -> str:
        return f"{self.address}/runs/{self.runs[run]}{path}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    store = tmp_path_factory.mktemp("reading") / "store.db"
    runs = filled(store)
    given = Experiment(data=(RAG,), protocols=("grounded",), judges=("recorded",))
    config = Settings(SettingsFile(judges=JUDGES, experiments={"facts": given}), {}, "steelyard.toml")
    with viewing(store, config=config) as address:
        yield Site(address, store, runs)


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[Browser]:
    """After the site: Playwright runs a loop in this thread, and judging needs one of its own."""
    with chromium() as opened:
        yield opened


def named(page: Page, site: Site, name: str) -> None:
    """Label under this name from now on."""
    page.context.add_cookies([{"name": "steelyard_annotator", "value": name, "url": site.address}])


# --- every page ------------------------------------------------------------------------------------


def pages(site: Site) -> list[str]:
    pair = f"a={site.runs['atomic']}&b={site.runs['other']}&anyway=true"
    return [
        site.at("atomic"),
        site.at("grounded"),
        site.at("scorecard"),
        site.at("dialogue"),
        site.at("atomic", "/samples?sort=accuracy"),
        site.at("scorecard", "/samples?label=key_point:missing"),
        site.at("atomic", "/samples/car-seat"),
        site.at("grounded", "/samples/car-seat"),
        site.at("scorecard", "/samples/car-seat"),
        site.at("dialogue", "/samples/guide-xiaoyan"),
        site.at("markdown", "/samples/md"),
        site.at("markdown", "/failures"),
        site.at("atomic", "/failures"),
        site.at("grounded", "/failures"),
        site.at("atomic", "/samples/car-seat/asked"),
        f"{site.address}/compare?a={site.runs['atomic']}",
        f"{site.address}/compare?{pair}",
        f"{site.address}/compare/sample?{pair}&id=car-seat",
        f"{site.address}/compare?a={site.runs['atomic']}&b={site.runs['scorecard']}",
        f"{site.address}/compare?a={site.runs['atomic']}&b={site.runs['secret']}",
        f"{site.address}/label",
        site.at("scorecard", "/label"),
        site.at("dialogue", "/label?n=0"),
        f"{site.address}/judges",
        f"{site.address}/prompts",
        f"{site.address}/prompts/atomic.judge.zh",
        site.at("hostile"),
        site.at("hostile", "/samples"),
        f"{site.address}/sets",
        f"{site.address}/sets/1",
        f"{site.address}/runs/new/set-1-1",
        site.at("hostile", "/samples/long/history"),
        site.at("atomic", "/samples/car-seat/try"),
        site.at("atomic", "/calibration"),
        site.at("atomic", "/queues"),
        f"{site.address}/queues/1",
        f"{site.address}/queues/1/label",
        f"{site.address}/queues/1/disagreements",
        f"{site.address}/trends",
        f"{site.address}/compare/runs?run={site.runs['atomic']}&run={site.runs['other']}",
        f"{site.address}/experiments",
        f"{site.address}/experiments/composed/new",
        f"{site.address}/experiments/composed/1",
        f"{site.address}/experiments/facts",
        f"{site.address}/runs/new/set-1-1/check",
    ]


# What `test_browser_serve.py` looks at in the same way.
LOOKED_AT_ELSEWHERE = ("/users", "/audit", "/account", "/judges/cards", "/judges/cards/{card:int}")


def test_no_page_is_left_out(site: Site) -> None:
    """Every page that the table of permissions knows is one of those that are looked at below."""
    seen = {about.route for address in pages(site) if (about := match_rule("GET", urlsplit(address).path))}
    named = [one.removeprefix("PAGE ") for rule in RULES for one in rule.routes if one.startswith("PAGE ")]
    # The list of runs is where each of them begins.
    assert {f"GET {route}" for route in (*named,) if route not in (*LOOKED_AT_ELSEWHERE, "/runs")} == seen


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_every_page(browser: Browser, site: Site, language: str, viewport: dict[str, int], scheme: str) -> None:
    """Wide and light, narrow and dark, in both languages: quiet, alone, light, never too wide, accessible."""
    with tab(browser, f"{site.address}/runs?lang={language}", viewport=viewport, color_scheme=scheme) as opened:
        named(opened.page, site, "Ana")
        for address in pages(site):
            answer = opened.page.goto(address, wait_until="load")
            assert answer is not None
            assert answer.ok, address
            expect(opened.page.locator(".waiting[role=status]")).to_have_count(0, timeout=30_000)
            assert opened.page.locator("html").get_attribute("lang") == language
            assert opened.page.locator("h1").count() == 1, address
            assert (address, opened.overflow) == (address, 0)
            assert (address, opened.violations()) == (address, [])
            assert (address, opened.noises) == (address, [])
            assert (address, opened.page.evaluate(WEIGHT) < HEAVIEST) == (address, True)
        assert all(url.startswith(site.address) for url in opened.requests)


# --- from the number to the passage ----------------------------------------------------------------


def test_from_the_headline_to_the_quote(browser: Browser, site: Site) -> None:
    """The overview names what fails; two clicks further the statement and the passage that prove it light up."""
    with tab(browser, site.at("atomic", "?lang=en")) as opened:
        page = opened.page
        expect(page.locator(".headline .big")).to_have_text("70.0%")
        page.locator(".weak li a", has_text="wrong").first.click()
        page.wait_for_url("**/samples?label=atom%3Awrong")
        assert page.locator("tbody tr").count() == 2
        page.locator("tbody a", has_text="car-seat").click()
        page.locator(".item").first.hover()
        assert page.locator(".answer .m.lit").count() == 1
        assert page.locator("aside .m.lit").count() == 1
        assert opened.noises == []


def test_previous_and_next_keep_to_the_filter(browser: Browser, site: Site) -> None:
    """n and p walk the filtered table in its order; u returns to it."""
    with tab(browser, site.at("atomic", "/samples/car-seat?label=atom%3Awrong&lang=en")) as opened:
        page = opened.page
        assert page.locator("a[rel=prev]").count() == 0
        page.keyboard.press("n")
        expect(page.locator("h1")).to_have_text("library-friday")
        assert page.locator("a[rel=next]").count() == 0
        page.keyboard.press("p")
        expect(page.locator("h1")).to_have_text("car-seat")
        page.keyboard.press("u")
        expect(page.locator("tbody tr")).to_have_count(2)


def test_asks_and_replies_are_loaded_when_opened(browser: Browser, site: Site) -> None:
    """What the judge was asked and said comes in when its part is opened, not before."""
    with tab(browser, site.at("atomic", "/samples/car-seat?lang=en")) as opened:
        page = opened.page
        assert not [url for url in opened.requests if url.endswith("/asked")]
        page.locator("details.lazy summary").first.click()
        expect(page.locator(".exchange")).to_have_count(2)
        expect(page.locator(".exchange").first).to_contain_text("atomic.split")
        expect(page.locator(".exchange").last).to_contain_text("ISOFIX儿童座椅固定接口位于第二排左右两侧座椅")


def test_copied_as_markdown(browser: Browser, site: Site) -> None:
    """One button puts the sample on the clipboard as Markdown, which has an address of its own."""
    permissions = ["clipboard-read", "clipboard-write"]
    with tab(browser, site.at("atomic", "/samples/car-seat?lang=en"), permissions=permissions) as opened:
        opened.page.locator("button.copy").click()
        expect(opened.page.locator("button.copy")).to_have_text("Copied")
        copied = opened.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("# Atomic accuracy")
        assert "ISOFIX" in copied


# --- the table -------------------------------------------------------------------------------------


def test_the_table_by_keyboard(browser: Browser, site: Site) -> None:
    """/ searches (Chinese too), j and k walk, Enter opens, ? shows the keys; everything is in the address."""
    with tab(browser, site.at("atomic", "/samples?lang=en")) as opened:
        page = opened.page
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        page.keyboard.type("图书馆")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(1)
        assert "q=%E5%9B%BE%E4%B9%A6%E9%A6%86" in page.url
        page.goto(site.at("atomic", "/samples"))
        for key in ("j", "j", "j", "k"):
            page.keyboard.press(key)
        expect(page.locator("tr.here a").first).to_have_text("library-friday")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("library-friday")


def test_sorting_and_filters(browser: Browser, site: Site) -> None:
    """A heading sorts, a second press turns it round; chosen filters narrow the table and can be taken off."""
    with tab(browser, site.at("atomic", "/samples?lang=en")) as opened:
        page = opened.page
        page.locator("thead a", has_text="Accuracy").first.click()
        expect(page.locator("tbody tr").first).to_contain_text("car-seat")
        expect(page.locator("th[aria-sort=ascending]")).to_have_text("Accuracy ↑")
        page.locator("thead a", has_text="Accuracy").first.click()
        expect(page.locator("tbody tr").first).to_contain_text("100.0%")
        page.locator("select[name=tag]").select_option("library")
        expect(page.locator("tbody tr")).to_have_count(2)
        page.locator("input[name=high]").fill("0.6")
        page.locator(".filters button").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator(".active .chip", has_text="library").click()
        expect(page.locator("tbody tr")).to_have_count(2)


def test_the_worst_sample_and_its_proof(browser: Browser, site: Site) -> None:
    """By keys alone, on a phone: the first row is the worst; its wrong statement leads to the quote that proves it."""
    with tab(browser, site.at("atomic", "/samples?lang=en"), viewport=PHONE) as opened:
        page = opened.page
        expect(page.locator("select[name=sort]")).to_have_value("worst")
        expect(page.locator("tbody tr .about").first).to_contain_text("ISOFIX")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("car-seat")
        page.locator(".item.bad .evidence a.jump").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".right .m.lit").first).to_be_in_viewport()
        assert opened.overflow == 0
        page.keyboard.press("u")
        expect(page.locator("tbody tr").first).to_contain_text("car-seat")
        assert opened.noises == []


def test_a_filter_is_saved_in_this_browser(browser: Browser, site: Site) -> None:
    """Under a name, for the tables of all runs; what is stored there is text, never markup; the link can be copied."""
    with tab(
        browser, site.at("atomic", "/samples?lang=en"), permissions=["clipboard-read", "clipboard-write"]
    ) as opened:
        page = opened.page
        expect(page.locator("[data-save]")).to_be_hidden()
        page.locator("select[name=label]").select_option("atom:wrong")
        page.locator("[data-save]").click()
        page.locator("#save-name").fill("<b>wrong</b>")
        page.keyboard.press("Enter")
        page.goto(site.at("other", "/samples"))
        saved = page.locator(".saving .chip a")
        expect(saved).to_have_text("<b>wrong</b>")
        saved.click()
        expect(page).to_have_url(site.at("other", "/samples?label=atom%3Awrong"))
        page.locator("[data-share]").click()
        expect(page.locator("[data-share]")).to_have_text("Link copied")
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        page.locator(".saving .chip button").click()
        expect(saved).to_have_count(0)
        assert opened.noises == []


def test_failures_lead_to_samples(browser: Browser, site: Site) -> None:
    """Labels and groups of like statements with their numbers; a label opens the table, a group its samples."""
    with tab(browser, site.at("atomic", "/failures?lang=en")) as opened:
        page = opened.page
        page.locator(".groups summary").first.focus()
        page.keyboard.press("Enter")
        page.locator(".groups details[open] a").first.click()
        expect(page.locator(".item.bad").first).to_be_visible()
        page.go_back()
        page.locator(".counts a", has_text="wrong").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        assert opened.noises == []


# --- compare ---------------------------------------------------------------------------------------


def test_from_two_runs_to_a_changed_label(browser: Browser, site: Site) -> None:
    """Chosen in a form; refused for another judge; compared anyway: a sentence first, the other judge marked loudly,
    then who moved, then the label that did, and back without being refused again."""
    with tab(browser, f"{site.address}/compare?a={site.runs['atomic']}&lang=en") as opened:
        page = opened.page
        page.locator("select[name=b]").select_option(site.runs["other"])
        page.locator("button.main").click()
        expect(page.locator("h1")).to_have_text("These runs are not compared")
        expect(page.locator(".beware")).to_contain_text("different judges")
        page.locator("a.button", has_text="Compare anyway").click()
        expect(page.locator("h1")).to_contain_text("Not decided")
        expect(page.locator(".beware")).to_contain_text("different judges")
        assert page.locator(".differences .point").count() == 4
        page.locator("#moved .tabs a", has_text="improved").click()
        page.locator("#moved tbody a", has_text="car-seat").click()
        expect(page.locator("tr.changed")).to_have_count(3)
        expect(page.locator("tr.changed").first).to_contain_text("wrong")
        expect(page.locator(".side").nth(1)).to_contain_text("strict:model")
        page.locator(".crumbs a").click()
        expect(page.locator("h1")).to_contain_text("Not decided")
        assert opened.noises == []


def test_a_comparison_that_fails_is_not_followed_for_ever(browser: Browser, site: Site) -> None:
    """A page that still counts and then hears that it cannot be: it shows what the server says, and asks no more."""
    pair = f"a={site.runs['atomic']}&b={site.runs['other']}&anyway=true"
    with tab(browser, f"{site.address}/runs?lang=en") as opened:
        page = opened.page
        answers = iter((202, 422))
        body = (
            '<html><main id="main"><div id="live" data-live><h1>Compare</h1></div></main>'
            '<script src="/static/reading.js"></script></html>'
        )
        refused = "<html><h1>no</h1></html>"

        def answer(route: Route) -> None:
            status = next(answers, 422)
            route.fulfill(status=status, content_type="text/html", body=body if status == 202 else refused)

        page.route("**/compare?**", answer)
        page.goto(f"{site.address}/compare?{pair}")
        expect(page.locator("h1")).to_have_text("no", timeout=10_000)
        before = len(opened.requests)
        page.wait_for_timeout(3000)
        assert len(opened.requests) == before


# --- label -----------------------------------------------------------------------------------------


def test_labelled_by_keys_alone(browser: Browser, site: Site) -> None:
    """A name, then one key per label; s skips, u takes back, n begins a note; each label is kept at once."""
    with tab(browser, site.at("atomic", "/label?lang=en")) as opened:
        page = opened.page
        page.locator("#annotator").fill("李 Ana")
        page.locator("#n").fill("0")
        page.locator("#annotator").press("Enter")
        expect(page.locator(".progress-row")).to_contain_text("0 of 25 labelled")
        # The text is there before the script that listens for keys.
        page.wait_for_load_state()
        page.evaluate("window.same = true")
        first = page.locator("h1").inner_text()
        page.keyboard.press("n")
        page.keyboard.type("in doubt")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        expect(page.locator(".progress-row")).to_contain_text("1 of 25 labelled")
        page.keyboard.press("s")
        expect(page).to_have_url(re.compile("at=3$"))
        page.keyboard.press("1")
        expect(page.locator(".progress-row")).to_contain_text("2 of 25 labelled")
        page.keyboard.press("u")
        expect(page.locator(".progress-row")).to_contain_text("1 of 25 labelled")
        expect(page).to_have_url(re.compile("at=3$"))
        # The next item takes the place of the last one: no page was loaded anew.
        assert page.evaluate("window.same")
        assert opened.noises == []
    with Store.open(site.store) as store:
        (label,) = [label for label in store.labels(site.runs["atomic"]) if label.annotator == "李 Ana"]
    assert (label.label, label.note, label.text, label.policy) == ("wrong", "in doubt", first, "1")
    assert label.about
    assert label.time


def test_people_on_the_sample_and_the_run(browser: Browser, site: Site) -> None:
    """What people said stands on the sample's page, by name."""
    with tab(browser, site.at("atomic", "/label?n=0&lang=en")) as opened:
        named(opened.page, site, "Bo")
        opened.page.reload()
        opened.page.keyboard.press("3")
        expect(opened.page.locator(".progress-row")).to_contain_text("1 of 25")
        opened.page.goto(site.at("atomic", "/samples/car-tyre"))
        expect(opened.page.locator(".people")).to_contain_text("Bo")
        expect(opened.page.locator(".people")).to_contain_text("undetermined")


# --- judges ---------------------------------------------------------------------------------------


def test_a_judge_is_checked_in_place(browser: Browser, site: Site) -> None:
    """The button asks the judge and says what came of it on the same page."""
    with tab(browser, f"{site.address}/judges?lang=en") as opened:
        opened.page.locator("tr", has_text="recorded").get_by_role("button").click()
        expect(opened.page.locator(".health")).to_contain_text("Not fit as it is")
        expect(opened.page.locator(".health")).to_contain_text("recorded")
        assert opened.page.url.endswith("/judges?lang=en")
        assert opened.noises == []


# --- live ------------------------------------------------------------------------------------------


def test_the_overview_follows_a_running_run(browser: Browser, site: Site) -> None:
    """A verdict that is added shows up without a new page, and what was unfolded stays so."""
    with Store.open(site.store) as store:
        run = add_run(store, "20990101-000000-live", "judge", [(rag("s1"), atomic("s1"))], {}, state="running")
        with store.alone_with(run), tab(browser, f"{site.address}/runs/{run}?lang=en") as opened:
            page = opened.page
            expect(page.locator(".statuses")).to_contain_text("1 Samples")
            page.locator(".fold-away summary").click()
            page.evaluate("window.same = true")
            store.add_verdict(run, 1, rag("s2"), atomic("s2", ["wrong"]))
            expect(page.locator(".statuses")).to_contain_text("2 Samples", timeout=20_000)
            expect(page.locator(".headline .big")).to_have_text("50.0%")
            assert page.locator(".fold-away").get_attribute("open") is not None
            assert page.evaluate("window.same")
        store.delete_run(run)


# --- hostile ---------------------------------------------------------------------------------------


def test_a_hostile_sample_is_text(browser: Browser, site: Site) -> None:
    """Scripts, links and broken tags in every field, and an id full of signs, are shown and do nothing."""
    run = site.runs["hostile"]
    address = site.address + sample_address(run, ODD_ID)
    pair = f"/compare/sample?a={run}&b={run}&id="
    with tab(browser, f"{site.address}/runs/{run}/samples?lang=en") as opened:
        page = opened.page
        named(page, site, "Eve")
        page.locator("tbody th a", has_text="编号").click()
        expect(page).to_have_url(address)
        expect(page.locator("h1")).to_have_text(ODD_ID)
        expect(page.locator(".answer .text").first).to_contain_text("<script>window.hacked = 1</script>")
        for other in (
            f"{address}/asked",
            f"{site.address}{pair}{'%61' + ODD_ID[1:].replace('#', '%23').replace('&', '%26')}",
        ):
            page.goto(other)
            expect(page.locator("main")).to_contain_text(ODD_ID)
        page.goto(f"{site.address}/runs/{run}/label?n=0")
        expect(page.locator(".answer .text")).to_contain_text("<script>")
        assert page.evaluate("window.hacked") is None
        assert page.locator("a[href^='javascript']").count() == 0
        assert opened.noises == []


def test_markdown_is_rendered_and_does_nothing(browser: Browser, site: Site) -> None:
    """Tables, lists and code are there with their marks; scripts, handlers, addresses and pictures stay text; the raw
    text is a press away, and a link into the answer brings the rendered one back."""
    with tab(browser, site.at("markdown", "/samples/md?lang=en")) as opened:
        page = opened.page
        answer = page.locator(".answer .md")
        expect(answer.locator("td")).to_have_text(["b"])
        expect(answer.locator("pre").first).to_contain_text("```nested")
        expect(answer).to_contain_text("<img src=x onerror=")
        expect(answer).to_contain_text("<!-- comment -->")
        assert answer.locator("a:not(.n), img, svg, script, iframe, form").count() == 0
        expect(answer.locator("li .m.bad")).to_have_text(["Plain fact", "number 1"])
        page.locator(".answer .raw summary").click()
        expect(answer).to_be_hidden()
        expect(page.locator(".answer .raw .text")).to_contain_text("- **Plain fact** number 1")
        page.locator(".item .jump", has_text="in the answer").first.click()
        expect(answer).to_be_visible()
        page.emulate_media(media="print")
        expect(page.locator(".masthead")).to_be_hidden()
        expect(answer).to_be_visible()
        page.emulate_media(media="screen")
        named(page, site, "Ana")
        page.goto(site.at("markdown", "/label?lang=en&n=0"))
        answer = page.locator(".answer .md")
        expect(answer.locator("td")).to_have_text(["b"])
        expect(answer.locator("li mark")).to_have_text(["Plain fact", "number 1"])
        assert answer.locator("a, img, svg, script, iframe, form").count() == 0
        pair = f"a={site.runs['markdown']}&b={site.runs['markdown']}&id=md"
        page.goto(f"{site.address}/compare/sample?{pair}")
        expect(page.locator(".side .md td")).to_have_text(["b", "b"])
        assert page.evaluate("window.hacked") is None
        assert all(url.startswith(site.address) for url in opened.requests)
        assert opened.noises == []


def test_a_megabyte_of_answer(browser: Browser, site: Site) -> None:
    """A page shows the beginning of a huge text and says how much it leaves out."""
    with tab(browser, site.at("hostile", "/samples/long?lang=en")) as opened:
        # A busy machine takes its time over a megabyte.
        expect(opened.page.locator(".answer .gap").first).to_contain_text("characters left out", timeout=30_000)
        assert len(opened.page.content()) < HEAVIEST
        assert json.loads(opened.page.request.get(site.at("hostile", "/samples/long.json")).text())["id"] == "long"
        named(opened.page, site, "Eve")
        opened.page.goto(site.at("hostile", "/label?n=0&at=4"))
        expect(opened.page.locator(".answer .gap")).to_contain_text("characters left out", timeout=30_000)
