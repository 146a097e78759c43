"""The viewer as people have it: the real application under uvicorn on loopback, over a real store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from command import DIALOGUE, EXAMPLES, RAG
from steelyard.engine import runs
from steelyard.engine.inputs import Input
from steelyard.evaluation.factory import JudgeFactory
from steelyard.protocols import get_protocol
from steelyard.settings import RunDefaults, Settings, SettingsFile
from steelyard.store import Store, StoreLocation
from steelyard.web.accounts.sign_in import Accounts
from steelyard.web.serving import Server, address_of, listen
from steelyard.web.viewer import Viewer

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue")
JUDGES = {"recorded": {"kind": "recorded", "file": str(EXAMPLES / "replies.jsonl")}}


def settings(concurrency: int | None = None, **judges: dict[str, Any]) -> Settings:
    """A configuration whose judges are the recorded one and the given ones."""
    run = RunDefaults(concurrency=concurrency)
    return Settings(SettingsFile(run=run, judges={**JUDGES, **judges}), {}, "steelyard.toml")


def fill(path: Path, protocols: Sequence[str] = PROTOCOLS, file: str | None = None) -> list[str]:
    """One run of each protocol over the examples, judged from their recorded replies; the ids of the runs."""
    given = [(name, file or (DIALOGUE if name == "dialogue" else RAG)) for name in protocols]
    # In a thread of its own: Playwright has a loop in this one.
    with ThreadPoolExecutor(max_workers=1) as alone:
        return [alone.submit(asyncio.run, _run(path, *one)).result() for one in given]


async def _run(path: Path, name: str, file: str) -> str:
    config, protocol = settings(), get_protocol(name)
    judge = JudgeFactory(config).judge("recorded")
    options = protocol.parse_options({"date": "2026-03-02"} if "date" in protocol.options.model_fields else {})
    with Store.open(path) as store:
        how = runs.RunSettings(workers=8)
        run = runs.start(store, protocol, options, judge, "recorded", config.prompts, Input([file]), how)
        await run.drive(lambda sample, verdict: None, lambda bad: None)
        await run.aclose()
        return run.row.id


@contextmanager
def viewing(store: StoreLocation, accounts: Callable[[str], Accounts] | None = None, **more: Any) -> Iterator[str]:
    """The viewer over this store, in a thread; its address. With accounts it is a team's server."""
    listening = listen("127.0.0.1", 0)
    signing_in = accounts(address_of(listening)) if accounts else None
    viewer = Viewer(**{"config": settings(), "store_location": store, "accounts": signing_in, **more})
    ready = threading.Event()
    server = Server(viewer, listening, lambda address: ready.set())
    thread = threading.Thread(target=server.run, name="viewer")
    thread.start()
    try:
        assert ready.wait(60)
        yield address_of(server.listening)
    finally:
        server.should_exit = True
        thread.join(60)
        server.listening.close()


def answer(client: httpx.Client, path: str, **given: Any) -> Any:
    """The JSON at an address, which must be there."""
    found = client.get(path, **given)
    assert found.status_code == 200, found.text
    return found.json()
