"""Fixtures that several test files share."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

# Several tests run at once; threads of numeric libraries that wait for one another would only take cores from them.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")

from command import Steelyard
from postgres_server import PostgresServer
from steelyard.store import Store, StoreLocation

# `make integrations` runs these in an environment of their own.
collect_ignore = ["integrations"]

# A busy machine answers late; what never answers is a failure all the same.
for _phase in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _phase, 60.0)

# Generated tests try the same cases every time, and however long one takes on a busy machine. `make fuzz` explores.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("same")
FUZZ_FACTOR = 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `--hypothesis-profile=fuzz`, every generated test gets many times its examples."""
    if settings.get_current_profile_name() != "fuzz":
        return
    for item in items:
        test = getattr(item, "obj", None)
        if own := getattr(test, "_hypothesis_internal_use_settings", None):
            test._hypothesis_internal_use_settings = settings(own, max_examples=own.max_examples * FUZZ_FACTOR)


@pytest.fixture
def steelyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Steelyard:
    """The command line in an empty folder, with no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("STEELYARD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    return Steelyard(monkeypatch, capsys)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of this process; each process of a parallel run has its own."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """An empty schema of a real server."""
    return postgres_server.schema(f"test_{secrets.token_hex(6)}")


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    """Where a new store may be made, of either kind: what is promised of one is promised of both."""
    if request.param == "sqlite":
        return tmp_path / "store.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def any_store(location: StoreLocation) -> Iterator[Store]:
    """An open store of either kind."""
    with Store.open(location) as opened:
        yield opened
