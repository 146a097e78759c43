"""Signing in at an identity provider, asked of a real one on loopback; and what it, or somebody between, may try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from oidc_provider import CLIENT, SECRET, IdentityProvider, identity_provider
from steelyard.errors import ConfigError
from steelyard.store import Store
from steelyard.web.accounts.oidc import OpenIdProvider
from steelyard.web.accounts.sign_in import Accounts
from steelyard.web.app import create_app
from steelyard.web.viewer import Viewer
from viewer import settings

URL = "http://localhost"


@pytest.fixture(scope="module")
def running() -> Iterator[IdentityProvider]:
    with identity_provider(f"{URL}/login/oidc/callback") as provider:
        yield provider


@pytest.fixture
def provider(running: IdentityProvider) -> IdentityProvider:
    running.lies, running.forged, running.told_issuer = {}, "", running.issuer
    return running


@pytest.fixture
def client(provider: IdentityProvider, tmp_path: Path) -> Iterator[TestClient]:
    with browser(provider, tmp_path) as opened:
        yield opened


def browser(provider: IdentityProvider, folder: Path) -> TestClient:
    accounts = Accounts(URL, provider=OpenIdProvider.of(provider.issuer, CLIENT, SECRET, URL))
    viewer = Viewer(settings(), folder / "store.db", language="en", accounts=accounts)
    return TestClient(create_app(viewer), base_url=URL, follow_redirects=False)


def away_and_back(client: TestClient, **query: str) -> str:
    """The address that the provider sends the browser back to."""
    leaving = client.get("/login/oidc", params=query)
    assert leaving.status_code == 303
    return httpx.get(leaving.headers["location"]).headers["location"]


def names(folder: Path) -> list[str]:
    with Store.open(folder / "store.db") as store:
        return [user.name for user in store.users()]


def test_a_user_signs_in(client: TestClient, tmp_path: Path) -> None:
    """Who comes for the first time is added and may nothing; an administrator gives a role; next time it is the same
    user, whatever they are called by then; one who is disabled stays out."""
    back = away_and_back(client, next="/runs?q=a")
    welcome = client.get(back)
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/runs?q=a")
    assert client.get("/api/v1/runs").status_code == 403
    with Store.open(tmp_path / "store.db") as store:
        store.set_role("mei@example.com", "shop", "read")
    assert client.get("/api/v1/runs").status_code == 200
    assert client.get(away_and_back(client)).headers["location"] == "/runs"
    assert names(tmp_path) == ["mei@example.com"]
    with Store.open(tmp_path / "store.db") as store:
        store.set_disabled("mei@example.com", "2026-03-02")
    assert client.get(away_and_back(client)).status_code == 401
    assert client.get("/api/v1/runs").status_code == 401


@pytest.mark.parametrize(
    "lies",
    [{"iss": "http://127.0.0.1:1"}, {"aud": "another client"}, {"aud": [CLIENT, "other"], "azp": "other"},
     {"aud": [CLIENT, "other"]}, {"nonce": "of another sign-in"}, {"nonce": None}, {"exp": 1_000_000_000},
     {"exp": None}, {"sub": None}, {"sub": ""}],
    ids=str,
)  # fmt: skip
def test_an_id_token_that_is_not_for_us(
    client: TestClient, provider: IdentityProvider, tmp_path: Path, lies: dict[str, Any]
) -> None:
    """Of another issuer, for another client, of another sign-in, expired, or about nobody: refused, and logged."""
    provider.lies = lies
    answer = client.get(away_and_back(client))
    assert answer.status_code == 401
    assert "steelyard_session" not in answer.headers.get("set-cookie", "")
    assert names(tmp_path) == []
    with Store.open(tmp_path / "store.db") as store:
        assert [entry.action for entry in store.audit_entries()] == ["sign in refused"]


@pytest.mark.parametrize("forged", ["none", "other key", "shared secret"])
def test_an_id_token_that_the_provider_did_not_sign(
    client: TestClient, provider: IdentityProvider, tmp_path: Path, forged: str
) -> None:
    """Unsigned, signed by somebody else, or with the public key taken for a shared secret."""
    provider.forged = forged
    assert client.get(away_and_back(client)).status_code == 401
    assert names(tmp_path) == []


def test_who_did_not_set_out_does_not_arrive(client: TestClient, provider: IdentityProvider, tmp_path: Path) -> None:
    """The address of somebody else's way back (login CSRF), another state, a second use, another provider's answer."""
    back = away_and_back(client)
    with browser(provider, tmp_path) as victim:
        assert victim.get(back).status_code == 401
        other = away_and_back(victim)
        state = parse_qs(urlsplit(other).query)["state"][0]
        own = parse_qs(urlsplit(back).query)
        # The code of another browser, with one's own state: the code verifier is not the one that it was asked with.
        assert victim.get("/login/oidc/callback", params={"code": own["code"][0], "state": state}).status_code == 401
    assert client.get(back.replace("state=", "state=x")).status_code == 401
    # That attempt is over, also with the right state.
    assert client.get(back).status_code == 401
    again = away_and_back(client)
    assert client.get(again.replace("iss=", "iss=http%3A%2F%2Fevil.example&was=")).status_code == 401
    right = away_and_back(client)
    assert client.get(right).status_code == 303
    assert client.get(right).status_code == 401
    assert names(tmp_path) == ["mei@example.com"]


def test_a_name_that_is_taken_stays_its_owners(client: TestClient, provider: IdentityProvider, tmp_path: Path) -> None:
    """An address that the provider has not verified, or that a user here is called by, makes nobody that user."""
    with Store.open(tmp_path / "store.db") as store:
        store.add_user("mei@example.com", created="2026-03-01")
        store.set_role("mei@example.com", "*", "admin")
        store.add_user("root@example.com", created="2026-03-01")
    client.get(away_and_back(client))
    assert client.get("/api/v1/runs").status_code == 403
    provider.lies = {"sub": "2", "email": "root@example.com", "email_verified": False}
    client.get(away_and_back(client))
    assert len(names(tmp_path)) == 4
    assert client.get("/api/v1/runs").status_code == 403


def test_where_it_leads_and_whom_it_asks(client: TestClient, provider: IdentityProvider) -> None:
    """Back to this server only; and a provider whose own document names another issuer is none."""
    assert client.get(away_and_back(client, next="https://evil.example/")).headers["location"] == "/runs"
    provider.told_issuer = "http://127.0.0.1:1"
    assert client.get("/login/oidc").status_code == 401
    with pytest.raises(ConfigError, match="https"):
        OpenIdProvider.of("http://id.example.com", CLIENT, SECRET, URL)
