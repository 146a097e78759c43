"""A team's server: who may do what, and how others are kept from it; asked of the whole application."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from command import Steelyard
from steelyard.errors import ConfigError, UnknownRun
from steelyard.store import ROLES, AuditEntry, LoginSession, QueueItem, Role, RunIdentity, Store
from steelyard.text.wording import LANGUAGES, say
from steelyard.web.accounts import passwords
from steelyard.web.accounts.access import Access
from steelyard.web.accounts.permissions import EVERYWHERE, ROLE_OF, every_route, match_rule
from steelyard.web.accounts.proxies import Proxies
from steelyard.web.accounts.sign_in import Accounts, local_address, new_token
from steelyard.web.app import create_app
from steelyard.web.serving import Certificate, Server, listen
from steelyard.web.viewer import Viewer
from viewer import fill, settings

PASSWORD = "correct horse battery"
URL = "http://localhost"
FROM_HERE = {"Origin": URL}
CHEAP = passwords.Cost(4, 8, 1)
START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PEOPLE: dict[str, dict[str, Role]] = {
    **{role: {"shop": role} for role in ROLES},
    "banker": {"bank": "admin"},
    "nobody": {},
    "root": {"*": "admin"},
}


class Clock:
    """The time, as tests want it."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


class Team:
    """A store with a run in each of two projects, its people, and the server before it."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, Clock()
        self._usual: Any = None
        self.shop, self.bank = fill(path, ("atomic", "atomic"))
        cheap = passwords.hashed(PASSWORD, CHEAP)
        with Store.open(path) as store:
            store.edit_run(self.shop, project="shop")
            store.edit_run(self.bank, project="bank")
            # Of the other project first: whoever guesses numbers finds the set of the shop.
            self.set = store.add_to_set("regression", self.shop, ["car-seat"], time="2026-03-01").id
            items = [QueueItem("car-seat", "atom", None, n, 1.0, 2) for n in (1, 2)]
            self.queue = store.add_queue(self.shop, "shop window", items, policy="1", created="2026-03-01")
            store.add_experiment("shop", "shop experiment", "{}", created="2026-03-01")
            store.add_card("shop", "shop judge", "2026-03-01", '{"scope": {"data": "ab"}}')
            for name, roles in PEOPLE.items():
                store.add_user(name, password=cheap, created="2026-03-01")
                for project, role in roles.items():
                    store.set_role(name, project, role)

    def app(self, **more: Any) -> Any:
        """The application; the usual one is made once."""
        if not more and self._usual:
            return self._usual
        accounts = Accounts(**{"url": URL, "clock": self.clock, **more})
        app = create_app(Viewer(settings(), self.path, language="en", accounts=accounts))
        self._usual = self._usual or (None if more else app)
        return app

    def client(self, **more: Any) -> TestClient:
        client = ("192.0.2.7", 40000)
        return TestClient(self.app(**more), base_url=URL, client=client, follow_redirects=False, headers=FROM_HERE)

    def token(self, role: Role = "admin", project: str = "shop", owner: str = "", days: int = 1) -> str:
        secret, token = new_token("test", role, project, self.clock.time, timedelta(days=days), owner)
        with self.store() as store:
            store.add_token(token)
        return secret

    def store(self) -> Store:
        return Store.open(self.path)

    def audited(self, action: str) -> list[str]:
        with self.store() as store:
            return [f"{one.actor}: {one.outcome}" for one in store.audit_entries() if one.action == action]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("team") / "store.db")


@pytest.fixture
def team(made: Team, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """The team at the start of a test: nobody is signed in, and nothing has failed yet."""
    monkeypatch.setattr(passwords, "COST", CHEAP)
    made.clock.time = START
    with made.store() as store:
        store.write("DELETE FROM audit")
        store.write("DELETE FROM sessions")
        store.write("DELETE FROM tokens")
    yield made
    with made.store() as store:
        assert {row.id for row in store.runs()} >= {made.shop, made.bank}


def signed_in(client: TestClient, name: str, password: str = PASSWORD, **more: Any) -> httpx.Response:
    return client.post("/login", data={"name": name, "password": password, **more})


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def address(route: str, run: str) -> str:
    """An address of this kind; the first set, queue and card are the shop's, and no other one is there."""
    number = "9" if run in NOWHERE else "1"
    route = route.replace("{set}", number).replace("{upload}", "x" if run in NOWHERE else "set-1-1")
    route = route.replace(":path}", "}") if "{experiment" in route else route
    route = route.replace("{experiment}", "x" if run in NOWHERE else "facts")
    filled = route.replace("{run}", run).replace("{sample:path}", "1").replace("{sample}", "1")
    filled = filled.replace("{queue:int}", number).replace("{card:int}", number)
    filled = filled.replace("{token}", "none-such").replace("{composed:int}", number)
    return filled.replace("{prompt}", "atomic.judge").replace("{path:path}", "viewer.css")


def plain(route: str) -> str:
    """An address without what its parts are made of."""
    return route.replace(":path", "").replace(":int", "")


# What stands for no run.
NOWHERE = ("", "none-such")

RULED = [(verb, route, action) for verb, route, action in every_route() if action is not None]
# They end when nobody listens any more.
STREAMS = ("/events",)


def test_every_route_has_a_rule(team: Team) -> None:
    """What a new page or operation of the API may be used for has to be said in the table of permissions."""
    app = team.app()
    found = [
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or ()) - {"HEAD"}
    ]
    document = TestClient(app, base_url=URL).get("/api/v1/openapi.json", headers=bearer(team.token("read"))).json()
    found += [(verb.upper(), f"/api/v1{path}") for path, verbs in document["paths"].items() for verb in verbs]
    found = [(verb, route.replace(":int", "")) for verb, route in found]
    ruled = {(verb, plain(route)) for verb, route, _ in every_route()}
    assert [one for one in found if one not in ruled] == []
    assert len(found) > 60
    for verb, route in found:
        numbered = route.replace("{queue}", "{queue:int}").replace("{card}", "{card:int}")
        numbered = numbered.replace("{composed}", "{composed:int}")
        about = match_rule(verb, address(numbered, "20260302-120000-abcd"))
        assert about is not None
        # A wider rule before a narrower one would decide in its place.
        assert plain(about.route) == f"{verb} {route}"


def test_every_action_has_a_name_in_every_language() -> None:
    """The log is read by people."""
    for language in LANGUAGES:
        for action in ROLE_OF:
            assert say(language, f"viewer.accounts.action.{action.replace(' ', '_')}")


def test_the_documentation_has_the_table() -> None:
    """docs/serve.md names each action with the role that it takes."""
    told = (Path(__file__).parent.parent / "docs" / "serve.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([a-z ]+) \| `?(\w+)`? \|", told, re.MULTILINE))
    assert rows.pop("action") == "role"
    assert rows == {action: role or "anyone" for action, role in ROLE_OF.items()}


def test_what_no_rule_names_is_refused(team: Team) -> None:
    """A route that somebody forgot in the table is closed, also to the one who may everything."""
    app = team.app(url="http://127.0.0.1")
    app.router.routes.insert(0, Route("/forgotten", lambda request: pytest.fail("it was reached")))
    client = TestClient(app, base_url=URL, headers=bearer(team.token("admin", "*")))
    assert client.get("/forgotten").status_code == 404


def test_nobody_does_more_than_their_role(team: Team) -> None:
    """Every page and every operation: refused to every role below the one that the table names, passed on to the
    handler from it on."""
    app = team.app()
    tokens = {role: bearer(team.token(role)) for role in ROLES}
    whole = bearer(team.token("admin", "*"))
    with TestClient(app, base_url=URL, follow_redirects=False, headers=FROM_HERE) as client:
        signed_in(client, "nobody")
        for verb, route, action in RULED:
            needed = ROLE_OF[action]
            if needed is None:
                continue
            for role in ROLES[: ROLES.index(needed)]:
                answer = client.request(verb, address(route, team.shop), headers=tokens[role])
                assert answer.status_code == 403, (role, verb, route)
            assert client.request(verb, address(route, team.shop)).status_code == 403
            allowed = tokens[needed]
            if action in EVERYWHERE:
                # The highest role of one project is none in another.
                assert client.request(verb, address(route, team.shop), headers=allowed).status_code == 403, route
                allowed = whole
            if not route.endswith(STREAMS):
                # Asked of a run that is not there: past the gate, and nothing happens.
                answer = client.request(verb, address(route, "none-such"), headers=allowed)
                assert answer.status_code not in (401, 403), (verb, route)
                assert answer.status_code < 500, (verb, route, answer.text)
    for at, role in enumerate(ROLES):
        assert [Access("x", {"shop": role}).may(action, "shop") for action in ("read", "label", "start", "delete")] == [
            at >= least for least in range(len(ROLES))
        ]


@pytest.mark.parametrize(("state", "act"), [("stopped", "resume"), ("failed", "retry")])
def test_nobody_is_offered_what_their_role_refuses(team: Team, state: str, act: str) -> None:
    """Buttons of a run are shown to those who may use them, in the list and on the run's page."""
    with team.store() as store:
        store.write("UPDATE runs SET state = ? WHERE id = ?", state, team.shop)
    try:
        for name, offered in (("read", False), ("label", False), ("run", True)):
            with team.client() as client:
                signed_in(client, name)
                for page in ("/runs", f"/runs/{team.shop}"):
                    text = client.get(page).text
                    assert team.shop in text
                    assert (f"/runs/{team.shop}/{act}" in text) is offered, (name, page)
                assert (f"/runs/{team.shop}/label" in text) is (name != "read")
    finally:
        with team.store() as store:
            store.write("UPDATE runs SET state = 'complete' WHERE id = ?", team.shop)


def test_another_project_is_not_there(team: Team) -> None:
    """An admin of one project gets of another one what anybody gets of a run that does not exist: by no address, in no
    list, search, export, comparison or stream."""
    token = bearer(team.token("admin", "bank"))
    with team.client() as client:
        client.headers.update(token)
        with team.store() as store:
            number = store.run(team.shop).number
        for verb, route, _ in RULED:
            if "{set}" in route:
                answer = client.request(verb, address(route, team.shop))
                assert answer.status_code in (404, 405, 415, 422), (verb, route, answer.status_code)
                assert "regression" not in answer.text
            elif "{queue:int}" in route or "{card:int}" in route or "{composed:int}" in route:
                given = {"label": "correct", "seen": "x", "annotator": "x"} if verb == "POST" else None
                sent = {"json": {}} if route.startswith("/api") else {"data": given}
                answer = client.request(verb, address(route, team.shop), **sent)
                assert answer.status_code in (404, 405), (verb, route, answer.status_code)
                assert "shop" not in answer.text
            elif "{upload}" in route:
                answer = client.request(verb, address(route, team.shop))
                assert answer.status_code == 404, (verb, route)
            elif "{run}" in route:
                for name in (team.shop, str(number), team.shop[:-1]):
                    answer = client.request(verb, address(route, name))
                    assert answer.status_code in (404, 405, 415, 422), (verb, route, answer.status_code)
                    # What was asked for is said back; what it would have been the name of is not.
                    assert name == team.shop or team.shop not in answer.text
            elif verb == "GET" and not route.endswith(STREAMS):
                answer = client.get(address(route, ""), params={"q": team.shop})
                found = answer.text.replace(f"q={team.shop}", "").replace(f'value="{team.shop}"', "")
                assert team.shop not in found, route
                assert "shop window" not in found, route
                assert "shop judge" not in found, route
                assert "shop experiment" not in found, route
        for a, b in ((team.shop, team.bank), (team.bank, team.shop)):
            for path in ("/compare", "/compare.json", "/compare/sample", "/api/v1/compare"):
                given = {"a": a, "b": b, "id": "1", "sample": "1"}
                assert client.get(path, params=given).status_code == 404, path
        assert client.get("/api/v1/labels", params={"run": team.shop}).status_code == 404
        body = {"run": team.shop, "labels": [{"sample": "1", "kind": "atom", "label": "wrong", "annotator": "x"}]}
        assert client.post("/api/v1/labels", json=body).status_code == 404
        assert client.post("/api/v1/queues", json={"run": team.shop, "name": "mine"}).status_code == 404
        assert client.get("/api/v1/queues", params={"run": team.shop}).status_code == 404
        assert [run["id"] for run in client.get("/api/v1/runs").json()["runs"]] == [team.bank]
        assert client.get("/api/v1/runs/last").json()["run"]["id"] == team.bank


def test_a_run_is_started_in_an_own_project_only(team: Team) -> None:
    """The only one without being named; another one is refused, and nothing is kept of it."""
    sample = {"id": "1", "question": "When?", "answer": "At nine.", "references": ["At nine."]}
    body = {"protocol": "atomic", "judge": "recorded", "samples": [sample]}
    with team.client() as client:
        client.headers.update(bearer(team.token("run", "shop")))
        refused = client.post("/api/v1/runs", json={**body, "project": "bank"})
        assert refused.status_code == 422
        made = client.post("/api/v1/runs", json=body).json()["id"]
        with team.store() as store:
            assert store.run(made).project == "shop"
        assert team.audited("start") == ["token test: done", "token test: failed (422)"]
        client.post(f"/api/v1/runs/{made}/stop")
        assert client.delete(f"/api/v1/runs/{made}").status_code == 403


def test_labels_are_given_under_ones_own_name(team: Team) -> None:
    """Whoever may only label cannot speak for somebody else, by form, cookie or API."""
    with team.client() as client:
        signed_in(client, "label")
        sample = client.get(f"/api/v1/runs/{team.shop}/samples").json()["rows"][0]["id"]
        item = client.get(f"/api/v1/runs/{team.shop}/samples/{sample}").json()["result"]["items"][0]
        label = {"sample": sample, "kind": "atom", "item": item["id"], "label": "wrong"}
        for annotator, status in (("run", 403), ("label", 201)):
            body = {"run": team.shop, "labels": [{**label, "annotator": annotator}]}
            answer = client.post("/api/v1/labels", json=body)
            assert answer.status_code == status, answer.text
        client.cookies.set("steelyard_annotator", "run")
        page = client.get(f"/runs/{team.shop}/label.json", params={"n": 1, "kind": "atom"})
        assert page.json()["annotator"] == "label"
    with team.store() as store:
        assert {given.annotator for given in store.labels(team.shop)} == {"label"}


# --- tokens ------------------------------------------------------------------------------------------------


def spoil_nothing(team: Team, token: str) -> None: ...


def revoked(team: Team, token: str) -> None:
    with team.store() as store:
        assert store.revoke_token(store.tokens()[0].id, "2026-03-02")


def expired(team: Team, token: str) -> None:
    team.clock.time += timedelta(days=1)


def without_role(team: Team, token: str) -> None:
    with team.store() as store:
        store.set_role("run", "shop", "read")


def without_user(team: Team, token: str) -> None:
    with team.store() as store:
        store.set_disabled("run", "2026-03-02")


@pytest.mark.parametrize(
    ("spoiled", "read", "stop"),
    [(spoil_nothing, 200, 202), (revoked, 401, 401), (expired, 401, 401), (without_role, 200, 403),
     (without_user, 401, 401)],
)  # fmt: skip
def test_a_token_ends(team: Team, spoiled: Callable[[Team, str], None], read: int, stop: int) -> None:
    """When it is revoked, when it expires, and with what its owner may: at the next request."""
    token = team.token("admin", "shop", owner="run")
    with team.store() as store:
        assert token not in json.dumps([list(row) for row in store.query("SELECT * FROM tokens")])
    try:
        spoiled(team, token)
        with team.client() as client:
            client.headers.update(bearer(token))
            assert client.get(f"/api/v1/runs/{team.shop}").status_code == read
            assert client.post(f"/api/v1/runs/{team.shop}/stop").status_code == stop
            # Its owner runs in that project, and no more than that.
            assert client.delete(f"/api/v1/runs/{team.shop}").status_code in (401, 403)
    finally:
        with team.store() as store:
            store.set_role("run", "shop", "run")
            store.set_disabled("run", None)
    assert ("token refused" in _actions(team)) is (read == 401)


def _actions(team: Team) -> list[str]:
    with team.store() as store:
        return [entry.action for entry in store.audit_entries()]


def test_a_wrong_token_is_not_made_up_for_by_a_cookie(team: Team) -> None:
    """Nor is one in the address or of another scheme ever looked at."""
    with team.client() as client:
        signed_in(client, "root")
        assert client.get("/api/v1/runs").status_code == 200
        for wrong in ("Bearer sy_guessed", "Bearer", "Basic cm9vdDpyb290", ""):
            assert client.get("/api/v1/runs", headers={"Authorization": wrong}).status_code == 401
    with team.client() as client:
        assert client.get("/api/v1/runs", params={"token": team.token()}).status_code == 401


# --- sessions ----------------------------------------------------------------------------------------------


def test_signing_in_makes_a_new_session(team: Team) -> None:
    """A session that somebody planted before is worth nothing afterwards, and the old one of the browser ends."""
    with team.client() as client, team.client() as thief:
        client.cookies.set("steelyard_session", "planted", domain="localhost.local", path="/")
        thief.cookies.set("steelyard_session", "planted", domain="localhost.local", path="/")
        welcome = signed_in(client, "root")
        assert thief.get("/api/v1/runs").status_code == 401
        cookie = welcome.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "path=/" in cookie
        first = re.search(r"steelyard_session=([^;]+)", welcome.headers["set-cookie"])
        assert first
        assert first[1] != "planted"
        with team.store() as store:
            assert first[1] not in json.dumps(list(store.query("SELECT * FROM sessions")))
        again = client.post(
            "/login",
            data={"name": "root", "password": PASSWORD},
            headers={"Cookie": f"steelyard_session={first[1]}"},
        )
        assert again.status_code == 303
        thief.cookies.clear()
        old = thief.get("/api/v1/runs", headers={"Cookie": f"steelyard_session={first[1]}"})
        assert old.status_code == 401


def test_a_session_ends(team: Team) -> None:
    """When the user signs out, is idle for long, or after a week however busy; with the password; with the user."""
    hours = timedelta(hours=1)

    def idle(client: TestClient) -> None:
        team.clock.time += 9 * hours

    def long_after(client: TestClient) -> None:
        for _ in range(25):
            team.clock.time += 7 * hours
            client.get("/api/v1/runs")

    def sign_out(client: TestClient) -> None:
        cookie = client.cookies["steelyard_session"]
        assert client.post("/logout").status_code == 303
        # Also for whoever copied the cookie.
        client.cookies.set("steelyard_session", cookie, domain="localhost.local", path="/")

    def new_password(client: TestClient) -> None:
        with team.store() as store:
            user = store.user("read")
            assert user
            store.set_password("read", user.password)

    def disabled(client: TestClient) -> None:
        with team.store() as store:
            store.set_disabled("read", "2026-03-02")
            store.set_disabled("read", None)

    for ended in (idle, long_after, sign_out, new_password, disabled):
        with team.client() as client:
            signed_in(client, "read")
            team.clock.time += hours
            assert client.get("/api/v1/runs").status_code == 200
            ended(client)
            assert client.get("/api/v1/runs").status_code == 401, ended.__name__
            away = client.get("/runs?q=a")
            assert (away.status_code, away.headers["location"]) == (303, "/login?next=%2Fruns%3Fq%3Da")


def test_cookies_are_kept_off_plain_http(team: Team) -> None:
    """Where browsers come by TLS, the cookie is theirs alone, and they are told never to come otherwise."""
    app = team.app(url="https://localhost")
    with TestClient(app, base_url="https://localhost", follow_redirects=False) as client:
        client.headers.update({"Origin": "https://localhost"})
        welcome = signed_in(client, "root")
        assert welcome.headers["set-cookie"].startswith("__Host-steelyard_session=")
        assert "; secure" in welcome.headers["set-cookie"].lower()
        assert "max-age" in client.get("/runs").headers["strict-transport-security"]


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
     {"Sec-Fetch-Site": "same-site"}, {}],
)  # fmt: skip
def test_another_site_changes_nothing(team: Team, headers: dict[str, str]) -> None:
    """A request with a session that another site made, or that does not say who did, is refused; so is signing in."""
    with team.client() as client:
        signed_in(client, "root")
        client.headers.pop("origin")
        for verb, route, _ in every_route():
            if verb != "GET" and not route.startswith("/login"):
                answer = client.request(verb, address(route, team.shop), headers=headers)
                assert answer.status_code == 403, (verb, route)
        assert client.post("/login", headers=headers).status_code == 403
        assert client.delete(f"/api/v1/runs/{team.shop}", headers=headers).status_code == 403
        assert client.get("/api/v1/runs").status_code == 200
    assert _actions(team)[-1] == "sign in"
    assert {outcome for action in set(_actions(team)) - {"sign in"} for outcome in team.audited(action)} <= {
        "root: refused"
    }


# --- what people write -------------------------------------------------------------------------------------


def test_what_people_write_stays_text(team: Team) -> None:
    """Names of users, tokens, projects and queues, who labels, policies, and notes: shown as they are, on every page
    that shows them; an expression of a template is none."""
    evil = "</title><script>alert({{ 7 * 7 }})</script>\"onfocus='x'"
    with team.client() as client:
        signed_in(client, "root")
        try:
            made = [client.post("/users", data={"name": evil, "password": "1", "role": "label", "project": evil})]
            made.append(client.post("/users/tokens", data={"name": evil, "role": "read", "project": evil, "days": 1}))
            made.append(client.post("/account/tokens", data={"name": evil, "role": "read", "project": "*", "days": 1}))
            queue = {"name": evil, "people": f"{evil}, root, label", "policy": evil, "n": 0, "share": 100}
            made.append(client.post(f"/runs/{team.shop}/queues", data={**queue, "kind": "atom", "blind": "1"}))
            at = made[-1].headers["location"]
            for name, choice in (("label", "correct"), ("root", "wrong")):
                with team.client() as other:
                    signed_in(other, name)
                    shown = other.get(f"{at}/label").text
                    seen = re.search(r'name="seen" value="([^"]+)"', shown)
                    assert seen
                    place = re.search(r'action="([^"]+[?]at=[^"]+)"', shown)
                    assert place
                    given = {"label": choice, "seen": seen[1], "note": evil}
                    made.append(other.post(place[1], data=given))
            assert [answer.status_code for answer in made] == [200, 200, 200, 303, 303, 303]
            pages = ("/users", "/account", "/audit", "/label", f"/runs/{team.shop}/queues", at, f"{at}/label",
                     f"{at}/disagreements", f"/runs/{team.shop}/calibration")  # fmt: skip
            made += [client.get(path) for path in pages]
            refused = client.post("/users/role", data={"name": "root", "role": evil, "project": "*"})
            assert refused.status_code == 422
            shown = [answer.text for answer in (*made, refused) if answer.status_code != 303]
            assert [text for text in shown if "<script>alert" in text or "alert(49)" in text] == []
            # As it is written in an attribute, quotes end nothing.
            assert [text for text in shown if re.search(r"<[^>]*\"onfocus=", text)] == []
            assert sum("&lt;script&gt;alert({{ 7 * 7 }})" in text for text in shown) >= 10
            for name in ("line\nbreak", "\u202egnp", "x" * 5000):
                assert client.post("/users", data={"name": name, "project": "*"}).status_code == 422
                assert client.post(f"/runs/{team.shop}/queues", data={**queue, "name": name}).status_code in (303, 422)
        finally:
            with team.store() as store:
                store.write("DELETE FROM users WHERE name = ?", evil)
                store.write("DELETE FROM queues WHERE id <> ?", team.queue.id)
                store.write("DELETE FROM labels")


def test_a_queue_names_its_own_people(team: Team) -> None:
    """Whoever makes one learns of the members of the project and of no other users; others cannot label."""
    with team.client() as client, team.client() as other:
        signed_in(client, "run")
        page = client.get(f"/runs/{team.shop}/queues").text
        assert "label, root, run" in page
        assert "banker" not in page
        body = {"run": team.shop, "name": "for one", "people": ["run"], "share": 0, "kinds": ["atom"]}
        made = client.post("/api/v1/queues", json=body).json()
        signed_in(other, "label")
        assert other.get(f"/queues/{made['id']}/label").status_code == 403
        assert other.post(f"/queues/{made['id']}/label?at=1", data={"label": "correct"}).status_code == 403
        assert other.post(f"/queues/{made['id']}/close").status_code == 403
        assert other.get(f"/queues/{made['id']}.json").json()["n_disagreements"] is None
        client.post(f"/queues/{made['id']}/close")
        assert client.get(f"/queues/{made['id']}/label").status_code == 422
    with team.store() as store:
        store.write("DELETE FROM queues WHERE id <> ?", team.queue.id)


# --- guessing ----------------------------------------------------------------------------------------------


def test_guessing_is_slowed_down(team: Team) -> None:
    """After five wrong passwords a name waits at that address, also with the right one; others sign in meanwhile."""
    with team.client() as client:
        for _ in range(5):
            assert signed_in(client, "root", "wrong password").status_code == 401
        blocked = signed_in(client, "root")
        assert (blocked.status_code, blocked.headers["retry-after"]) == (429, "900")
        assert "set-cookie" not in blocked.headers
        signed_in(client, "root")
        assert len(team.audited("sign in blocked")) == 1
        assert signed_in(client, "read").status_code == 303
        team.clock.time += timedelta(minutes=16)
        assert signed_in(client, "root").status_code == 303


def test_guessing_many_names_is_slowed_down(team: Team) -> None:
    """One address cannot try a password on everybody, nor learn which names there are."""
    with team.client() as client:
        answers = [signed_in(client, name, "wrong password") for name in ("root", "no such user", "nobody")]
        assert {answer.status_code for answer in answers} == {401}
        assert len({answer.text.replace(n, "") for answer, n in zip(answers, ("root", "no such user", "nobody"),
                                                                    strict=True)}) == 1  # fmt: skip
        codes = [signed_in(client, f"name {n}", "wrong password").status_code for n in range(30)]
        assert codes == [401] * 27 + [429] * 3


def test_passwords_are_kept_as_slow_hashes() -> None:
    """Salted, with the cost beside them; what is no hash opens nothing."""
    one, two = (passwords.hashed("geheim geheim", CHEAP) for _ in range(2))
    assert one != two
    assert passwords.is_right("geheim geheim", one)
    assert not passwords.is_right("geheim gehein", one)
    assert not passwords.is_right("", "")
    assert passwords.hashed("geheim geheim").startswith("scrypt$15$8$3$")


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
     "/\t/evil.example", "evil.example", "http:evil", "///evil.example", "/login?next=/", "", "/\n/evil.example"],
)  # fmt: skip
def test_signing_in_leads_nowhere_else(team: Team, wanted: str) -> None:
    """Whatever an address or a form asks for, one lands on this server."""
    with team.client() as client:
        assert signed_in(client, "root", next=wanted).headers["location"] == "/runs"
        assert (
            "evil"
            not in client.get("/login", params={"next": wanted}).text.partition("<main")[2].partition("</main")[0]
        )
    assert local_address("/runs?q=a%20b&state=failed") == "/runs?q=a%20b&state=failed"


# --- users and tokens by page --------------------------------------------------------------------------


def test_users_are_managed_on_pages(team: Team) -> None:
    """Added with a password that is shown once, given roles, reset, disabled; each is in the log, no secret is."""
    with team.client() as client:
        signed_in(client, "root")
        made = client.post("/users", data={"name": "new", "password": "1", "role": "label", "project": "shop"})
        (first,) = re.findall(r'class="secret-text">([^<]+)<', made.text)
        assert first not in client.get("/users").text
        assert client.post("/users", data={"name": "new", "project": "*"}).status_code == 422
        with team.client() as other:
            assert signed_in(other, "new", first).status_code == 303
            assert other.get("/users").status_code == 403
            client.post("/users/role", data={"name": "new", "project": "shop", "role": "run"})
            roles = other.get("/account.json").json()["roles"]
            assert roles == {"shop": "run"}
            (second,) = re.findall(
                r'class="secret-text">([^<]+)<', client.post("/users/password", data={"name": "new"}).text
            )
            assert other.get("/account").status_code == 303
            assert signed_in(other, "new", second).status_code == 303
            client.post("/users/disable", data={"name": "new"})
            assert signed_in(other, "new", second).status_code == 401
        only = client.post("/users/disable", data={"name": "root"})
        assert only.status_code == 422
        assert "only administrator" in only.text
        assert client.post("/users/role", data={"name": "root", "project": "*", "role": "none"}).status_code == 422
        log = client.get("/api/v1/audit").text
    assert [action for action in reversed(_actions(team)) if action.endswith(("user", "role", "password"))] == [
        "add user", "add user", "set role", "set password", "disable user", "disable user", "set role",
    ]  # fmt: skip
    assert first not in log
    assert second not in log
    with team.store() as store:
        store.write("DELETE FROM users WHERE name = 'new'")


def test_an_admin_of_a_project_manages_its_members_only(team: Team) -> None:
    """By page and API: no role elsewhere or everywhere, no users and tokens of others, no passwords."""
    with team.client() as client:
        signed_in(client, "banker")
        page = client.get("/users.json").json()
        assert [user["name"] for user in page["users"]] == ["banker"]
        for project in ("shop", "*", ""):
            given = {"name": "nobody", "role": "read", "project": project}
            assert client.post("/users/role", data=given).status_code == 422
            assert client.put("/api/v1/users/role", json=given).status_code == 422
            token = {"name": "ci", "role": "read", "project": project, "days": 1}
            assert client.post("/users/tokens", data=token).status_code == 422
            assert client.post("/api/v1/users/tokens", json=token).status_code == 422
        assert client.put("/api/v1/users/role", json={"name": "nobody", "role": "read", "project": "bank"}).is_success
        assert "nobody" in client.get("/users").text
        # Whether there is such a user anywhere else is not told: a name that nobody has is taken alike.
        shown = []
        for name in ("nobody", "nobody at all"):
            given = {"name": name, "role": "label", "project": "bank"}
            answers = [client.put("/api/v1/users/role", json=given), client.post("/users/role", data=given)]
            users = {user["name"]: user for user in client.get("/users.json").json()["users"]}
            people = f"banker, {name}, root" in client.get(f"/runs/{team.bank}/queues").text
            shown.append(([one.status_code for one in answers], {**users[name], "name": ""}, people))
            assert client.put("/api/v1/users/role", json={**given, "role": None}).is_success
        assert shown[0] == shown[1]
        assert shown[0][2]
        team.token("read", "shop", owner="root")
        team.token("read", "shop")
        assert client.get("/api/v1/tokens").json()["tokens"] == []
        with team.store() as store:
            ids = [token.id for token in store.tokens()]
        for id in ids:
            assert client.delete(f"/api/v1/tokens/{id}").status_code == 422
            assert client.post("/account/tokens/revoke", data={"id": id}).status_code == 422
    with team.store() as store:
        assert all(token.revoked is None for token in store.tokens())


def test_ones_own_tokens(team: Team) -> None:
    """Made in a browser, shown once, never for more than one may; a token makes no others, and changes no password."""
    with team.client() as client, team.client() as program:
        signed_in(client, "run")
        assert (
            client.post(
                "/account/tokens", data={"name": "ci", "role": "admin", "project": "shop", "days": "9"}
            ).status_code
            == 422
        )
        made = client.post("/account/tokens", data={"name": "ci", "role": "read", "project": "shop", "days": "9"})
        (secret,) = re.findall(r'class="secret-text">([^<]+)<', made.text)
        assert secret not in client.get("/account").text
        program.headers.update(bearer(secret))
        assert program.get(f"/api/v1/runs/{team.shop}").status_code == 200
        assert program.post(f"/api/v1/runs/{team.shop}/stop").status_code == 403
        body = {"name": "more", "role": "read", "project": "shop", "days": 3000}
        assert program.post("/api/v1/tokens", json=body).status_code == 403
        assert program.post("/account/tokens", data=body).status_code == 403
        changed = {"old": PASSWORD, "new": "another long one", "again": "another long one"}
        assert program.post("/account/password", data=changed).status_code == 403
        (about,) = client.get("/api/v1/tokens").json()["tokens"]
        assert (about["owner"], about["role"], about["project"]) == ("run", "read", "shop")
        client.post("/account/tokens/revoke", data={"id": about["id"]})
        assert program.get(f"/api/v1/runs/{team.shop}").status_code == 401
        assert client.post("/account/password", data={**changed, "old": "not that one"}).status_code == 422
        cookie = client.cookies["steelyard_session"]
        assert client.post("/account/password", data=changed).status_code == 303
        assert client.cookies["steelyard_session"] != cookie
        assert client.get("/account").status_code == 200
        program.headers.pop("authorization")
        program.cookies.set("steelyard_session", cookie, domain="localhost.local", path="/")
        assert program.get("/api/v1/runs").status_code == 401
    with team.store() as store:
        store.write("UPDATE users SET password = ? WHERE name = 'run'", passwords.hashed(PASSWORD, CHEAP))


# --- proxies -----------------------------------------------------------------------------------------------


def test_headers_of_strangers_are_not_believed(team: Team) -> None:
    """A name in a header counts only from a proxy that was named; so does the address that attempts are counted by."""
    spoofed = {"X-Forwarded-User": "root", "X-Forwarded-For": "198.51.100.9"}
    elsewhere = Proxies.of(["203.0.113.0/24"], "X-Forwarded-User")
    for proxies in (Proxies(), Proxies.of(["192.0.2.7"]), elsewhere):
        with team.client(proxies=proxies) as client:
            assert client.get("/api/v1/runs", headers=spoofed).status_code == 401
    with team.client(proxies=elsewhere) as client:
        for n in range(31):
            signed_in(client, f"name {n}", "wrong password")
        client.headers["X-Forwarded-For"] = "198.51.100.10"
        assert signed_in(client, "root").status_code == 429


def test_a_named_proxy_is_believed(team: Team) -> None:
    """It says who the user is and where they are; a user that is unknown, or named twice, is nobody."""
    proxies = Proxies.of(["192.0.2.0/24"], "X-Forwarded-User")
    with team.client(proxies=proxies) as client:
        assert client.get("/api/v1/runs", headers={"X-Forwarded-User": "read"}).status_code == 200
        assert client.get("/api/v1/runs", headers={"X-Forwarded-User": "who"}).status_code == 401
        twice = [("X-Forwarded-User", "read"), ("X-Forwarded-User", "root")]
        assert client.get("/api/v1/runs", headers=twice).status_code == 401
        client.headers.pop("origin")
        assert client.post(f"/runs/{team.shop}/stop", headers={"X-Forwarded-User": "root"}).status_code == 403
        client.headers.update({**FROM_HERE, "X-Forwarded-For": "10.0.0.1, 198.51.100.9"})
        signed_in(client, "root", "wrong password")
    with team.store() as store:
        assert store.audit_entries()[0].address == "198.51.100.9"


# --- the log, the command line, the viewer -----------------------------------------------------------------


def test_what_was_done_is_written_down(team: Team) -> None:
    """Who, what, where, and what came of it: for an admin of a project what happened there, for one of all, all."""
    with team.client() as client:
        signed_in(client, "run", "wrong password")
        signed_in(client, "run")
        client.post(f"/runs/{team.shop}/stop")
        client.post(f"/runs/{team.shop}/delete")
        client.get("/audit")
        client.post("/logout")
        signed_in(client, "root")
        page, whole = client.get("/audit", params={"lang": "zh-Hans"}), client.get("/api/v1/audit").json()["entries"]
        assert page.status_code == 200
        assert "登录被拒" in page.text
        told = [(one["actor"], one["action"], one["target"], one["outcome"]) for one in reversed(whole)]
        assert told == [
            ("run", "sign in refused", "", "refused"),
            ("run", "sign in", "", "done"),
            ("run", "stop", team.shop, "done"),
            ("run", "delete", f"POST /runs/{team.shop}/delete", "refused"),
            ("run", "read audit log", "GET /audit", "refused"),
            ("run", "sign out", "", "done"),
            ("root", "sign in", "", "done"),
        ]
        assert {one["address"] for one in whole} == {"192.0.2.7"}
        client.headers.update(bearer(team.token("admin", "shop")))
        assert [one["action"] for one in client.get("/api/v1/audit").json()["entries"]] == ["delete", "stop"]
        client.headers.update(bearer(team.token("admin", "bank")))
        assert client.get("/api/v1/audit").json()["entries"] == []


def test_the_command_line_makes_users_and_tokens(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is never an argument; a token is shown once; what was done is in the log, without either."""
    monkeypatch.setattr(passwords, "COST", CHEAP)
    assert steelyard("serve").err.startswith("steelyard: there are no users yet")
    monkeypatch.setenv("STEELYARD_PASSWORD", "short")
    assert steelyard("users", "add", "mei").code == 2
    monkeypatch.setenv("STEELYARD_PASSWORD", PASSWORD)
    assert steelyard("users", "add", "mei", "--role", "run", "--project", "shop").code == 0
    assert "already" in steelyard("users", "add", "mei").err
    assert steelyard("users", "role", "mei", "label", "--project", "shop").code == 0
    assert "label in shop" in steelyard("users", "list").out
    made = steelyard("tokens", "create", "ci", "--role", "read", "--project", "shop")
    secret, id = made.out.strip(), made.err.split()[1].rstrip(",")
    assert secret.startswith("sy_")
    assert steelyard("tokens", "revoke", id).code == 0
    assert steelyard("tokens", "revoke", id).code == 2
    assert "revoked" in steelyard("tokens", "list").out
    assert steelyard("users", "password", "mei").code == 0
    assert steelyard("users", "disable", "mei").code == 0
    assert "no user" in steelyard("users", "disable", "me").err
    with Store.open(Path(".steelyard/store.db")) as store:
        log = [(entry.action, entry.target) for entry in reversed(store.audit_entries())]
        held = json.dumps([list(store.query(f"SELECT * FROM {table}")) for table in ("users", "tokens", "audit")])
    assert [action for action, _ in log] == [
        "add user", "set role", "create token", "revoke token", "set password", "disable user",
    ]  # fmt: skip
    assert PASSWORD not in held
    assert secret not in held


def test_ones_own_viewer_asks_nobody(team: Team) -> None:
    """`view` on loopback has no users, no page to sign in, no log, and sees all projects."""
    app = create_app(Viewer(settings(), team.path))
    with TestClient(app, base_url=URL, follow_redirects=False) as client:
        assert {team.shop, team.bank} <= {run["id"] for run in client.get("/api/v1/runs").json()["runs"]}
        assert client.get("/login").status_code == 404
        assert client.get("/audit").status_code == 404
        assert client.post(f"/runs/{team.shop}/stop").status_code == 303
    assert _actions(team) == []


def test_it_is_served_by_tls(team: Team, tmp_path: Path) -> None:
    """With a certificate and its key the server itself speaks TLS, and nothing else."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *subject], check=True, capture_output=True)
    viewer = Viewer(settings(), team.path, accounts=Accounts("https://localhost"))
    ready = threading.Event()
    server = Server(viewer, listen("127.0.0.1", 0), lambda _: ready.set(), Certificate(certificate, key))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(30)
        port = server.listening.getsockname()[1]
        trusting = ssl.create_default_context(cafile=certificate)
        with httpx.Client(base_url=f"https://localhost:{port}", verify=trusting) as client:
            client.headers["Origin"] = f"https://localhost:{port}"
            welcome = client.post("/login", data={"name": "root", "password": PASSWORD})
            assert welcome.status_code == 303
            assert client.get("/api/v1/runs").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{port}/login")
    finally:
        server.should_exit = True
        thread.join(30)
        server.listening.close()


def test_both_databases_keep_accounts(any_store: Store) -> None:
    """Users, roles, tokens, sessions, the log, and which runs are visible: the same in SQLite and PostgreSQL."""
    store = any_store
    when = "2026-03-02T12:00:00+00:00"
    for project in ("shop", "bank", ""):
        identity = RunIdentity(project=project) if project else None
        store.create_run(f"run-{project}", "atomic", "scripted", when, {"options": {}}, identity)
    store.add_user("mei", password="x", subject="issuer 1", created=when)
    with pytest.raises(ConfigError, match="already"):
        store.add_user("mei", created=when)
    for name in ("", "a\nb", " mei", "x" * 201):
        with pytest.raises(ConfigError):
            store.add_user(name, created=when)
    store.set_role("mei", "shop", "read")
    store.set_role("mei", "shop", "run")
    store.set_role("mei", "*", "read")
    store.set_role("mei", "*", None)
    assert store.roles_of("mei") == {"shop": "run"}
    found = store.user_of_subject("issuer 1")
    assert found is not None
    assert found.name == "mei"
    store.add_user("machine", created=when)
    assert store.user_of_subject("") is None
    _, token = new_token("ci", "run", "shop", START, timedelta(days=1))
    store.add_token(token)
    assert store.token(token.digest) == token
    assert store.revoke_token(token.id, when)
    assert not store.revoke_token(token.id, when)
    store.add_session(LoginSession("d", "mei", when, when))
    store.set_password("mei", "y")
    assert store.session("d") is None
    for project in ("shop", "bank"):
        store.add_audit(AuditEntry(time=when, actor="mei", action="stop", project=project))
    assert [entry.project for entry in store.audit_entries()] == ["bank", "shop"]
    assert [entry.project for entry in store.audit_entries(projects=["shop"])] == ["shop"]
    assert store.count_audit("stop", when, actor="mei") == 2
    store.visible = frozenset({"shop"})
    assert [row.id for row in store.runs()] == ["run-shop"]
    assert store.projects() == {"shop": 1}
    for hidden in ("run-bank", "run-b", "2"):
        with pytest.raises(UnknownRun):
            store.run(hidden)
    with pytest.raises(UnknownRun):
        store.delete_run("run-bank")
    with pytest.raises(ConfigError):
        store.edit_run("run-shop", project="bank")
    with pytest.raises(ConfigError):
        store.create_run("run-new", "atomic", "scripted", when, {"options": {}})
    store.visible = None
    assert len(store.runs()) == 3
