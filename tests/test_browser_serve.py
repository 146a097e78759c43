"""A team's server in a real browser: signing in by password and at an identity provider, and its pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from audit_judges import judge, obedient
from browser import DESKTOP, PHONE, chromium, tab
from oidc_provider import CLIENT, SECRET, IdentityProvider, identity_provider
from steelyard.reports.audit.card import Card
from steelyard.store import Store
from steelyard.trust.audit import audit
from steelyard.web.accounts import passwords
from steelyard.web.accounts.oidc import OpenIdProvider
from steelyard.web.accounts.sign_in import Accounts
from viewer import fill, viewing

PASSWORD = "correct horse battery"
CHEAP = passwords.Cost(4, 8, 1)
WHEN = "2026-03-01T12:00:00+00:00"


class Team:
    """A server with one administrator, somebody who labels, a run in a project and cards of two judges."""

    def __init__(self, path: Path, address: str, run: str, provider: IdentityProvider) -> None:
        self.path, self.address, self.run, self.provider = path, address, run, provider


@pytest.fixture(scope="module")
def card() -> Card:
    """A real audit, small."""
    return audit(judge(obedient), protocols=["grounded"], only=["injection"])


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, card: Card) -> Iterator[Team]:
    path = tmp_path_factory.mktemp("team") / "store.db"
    (run,) = fill(path, ("atomic",))
    with Store.open(path) as store:
        store.edit_run(run, project="shop")
        for name, project, role in (("root", "*", "admin"), ("mei", "shop", "label"), ("jun", "shop", "label")):
            store.add_user(name, password=passwords.hashed(PASSWORD, CHEAP), created=WHEN)
            store.set_role(name, project, role)  # type: ignore[arg-type]
        for name in (card.judge, "another judge with a name that takes more than one line"):
            store.add_card("", name, card.made, card.model_copy(update={"judge": name}).model_dump_json())
    with identity_provider("") as provider:

        def accounts(address: str) -> Accounts:
            provider.redirect = f"{address}/login/oidc/callback"
            return Accounts(address, provider=OpenIdProvider.of(provider.issuer, CLIENT, SECRET, address))

        with viewing(path, accounts=accounts) as address:
            yield Team(path, address, run, provider)


@pytest.fixture(scope="module")
def browser(team: Team) -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.locator("#name").fill(name)
    page.locator("#password").fill(password)
    page.keyboard.press("Enter")


def test_signing_in_by_password(browser: Browser, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong one is told and the name kept; the right one leads to where one was going; signing out ends it; whoever
    guessed five times waits, also with the right one."""
    monkeypatch.setattr(passwords, "COST", CHEAP)
    wanted = f"{team.address}/runs/{team.run}?lang=en"
    with tab(browser, wanted) as opened:
        page = opened.page
        expect(page.locator("h1")).to_have_text("Sign in")
        assert opened.violations() == []
        sign_in(page, "mei", "wrong horse battery")
        expect(page.get_by_role("alert")).to_be_visible()
        assert page.locator("#name").input_value() == "mei"
        assert page.locator("#password").input_value() == ""
        sign_in(page, "mei")
        page.wait_for_url(wanted)
        expect(page.locator(".person")).to_contain_text("mei")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/login")
        page.goto(wanted)
        page.wait_for_url("**/login?next=**")
        with httpx.Client(base_url=team.address, headers={"Origin": team.address}) as guessing:
            for _ in range(5):
                assert guessing.post("/login", data={"name": "jun", "password": "guessed"}).status_code == 401
        sign_in(page, "jun")
        expect(page.get_by_role("alert")).to_contain_text("Too many")
        assert opened.violations() == []
        # Refusals are said by the console too, and by nothing else.
        assert all("the server responded with a status of 4" in noise for noise in opened.noises)


def test_signing_in_at_a_provider(browser: Browser, team: Team) -> None:
    """Whoever comes for the first time may nothing until given a role, and is told so; a refusal is a page too."""
    with tab(browser, f"{team.address}/login?lang=en&next=/runs") as opened:
        page = opened.page
        page.locator(".sign-in a.button").click()
        page.wait_for_url("**/runs")
        expect(page.get_by_role("alert")).to_contain_text("Your role does not allow this")
        with Store.open(team.path) as store:
            store.set_role("mei@example.com", "shop", "read")
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator(".person")).to_contain_text("mei@example.com")
        team.provider.lies = {"nonce": "of another sign-in"}
        page.goto(f"{team.address}/login")
        page.locator(".sign-in a.button").click()
        page.wait_for_url("**/callback?**")
        expect(page.get_by_role("alert")).to_be_visible()
        assert opened.violations() == []


@pytest.mark.parametrize(("language", "viewport", "scheme"), [("en", DESKTOP, "light"), ("zh-Hans", PHONE, "dark")])
def test_every_page_of_people(
    browser: Browser, team: Team, language: str, viewport: dict[str, int], scheme: str
) -> None:
    """Users, account, log, queues, cards: wide and light, narrow and dark; quiet, never too wide, accessible."""
    with Store.open(team.path) as store:
        queue = max((one.id for one in store.queues()), default=None)
    with tab(browser, f"{team.address}/login?lang={language}", viewport=viewport, color_scheme=scheme) as opened:
        page = opened.page
        sign_in(page, "root")
        page.wait_for_url("**/runs")
        if queue is None:
            page.goto(f"{team.address}/runs/{team.run}/queues")
            page.locator("#name").fill("first week, with a rather long name that has to wrap somewhere")
            page.locator("#people").fill("mei, root")
            page.locator("button.main").click()
            page.wait_for_url("**/queues/1")
        addresses = ["/users", "/account", "/audit", "/label", f"/runs/{team.run}/queues", "/queues/1",
                     "/queues/1/label", "/queues/1/disagreements", "/judges/cards", "/judges/cards/1"]  # fmt: skip
        for address in addresses:
            answer = page.goto(f"{team.address}{address}")
            assert answer
            assert answer.ok, address
            assert page.locator("html").get_attribute("lang") == language
            assert page.locator("h1").count() == 1, address
            assert (address, opened.overflow) == (address, 0)
            assert (address, opened.violations()) == (address, [])
            assert (address, opened.noises) == (address, [])


def test_a_card_is_opened_from_the_list(browser: Browser, team: Team, card: Card) -> None:
    """From the judges to the card and to the file, with the card of the other judge beside it."""
    with tab(browser, f"{team.address}/login?lang=en&next=/judges") as opened:
        page = opened.page
        sign_in(page, "mei")
        page.wait_for_url("**/judges")
        page.locator("a[href='/judges/cards']").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_role("link", name=card.judge, exact=True).click()
        page.wait_for_url("**/judges/cards/1")
        expect(page.locator("main")).to_contain_text("another judge with a name")
        with page.expect_download() as loading:
            page.get_by_role("link", name="Download").click()
        text = Path(loading.value.path()).read_text("utf-8")
        assert loading.value.suggested_filename == "steelyard-card-1.html"
        assert card.judge in text
        shown = page.request.get(f"{team.address}/judges/cards/1.json").json()
        assert Card.model_validate(shown["card"]) == card
        assert shown["beside"] == [2]
        assert page.request.get(f"{team.address}/judges/cards/9").status == 404
