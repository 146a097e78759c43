"""Every fault of the matrix against a real server: no sample is lost, no score changes, no secret is kept or shown."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from command import facts, judge_facts
from endpoint import Loopback, Request, Say
from fault_matrix import FAULTS, Fault
from steelyard.engine import runs
from steelyard.engine.inputs import Input
from steelyard.errors import JudgeError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.limiter import Limits
from steelyard.protocols import get_protocol
from steelyard.records import Verdict
from steelyard.settings import Settings, SettingsFile
from steelyard.store import Store
from viewer import viewing

SAMPLES = 2
AT_ONCE = 12
# Of one process on an idle machine; others may be at work on this one.
SECONDS = 60
PATIENT = 20.0
KEY, TOKEN, QUERY, BODY = "sk-key-0a1b2c3d4e", "team-token-5f6a7b8c", "query-key-9d0e1f2a", "body-key-3b4c5d6e"
GIVEN_AWAY = (KEY, TOKEN, QUERY, BODY)
NAMES = [fault.name for fault in FAULTS]


class Ended(NamedTuple):
    """How a run was left: its state, the error that ended it, and its verdicts by the number of their sample."""

    state: str
    error: str
    lines: dict[str, dict[str, Any]]


class Outcome(NamedTuple):
    """A run while the fault lasted, and the same run when it was resumed afterwards."""

    run: str
    faulty: Ended
    mended: Ended


class Matrix(NamedTuple):
    """All outcomes, and whatever was written on the way."""

    outcomes: dict[str, Outcome]
    calm: dict[str, dict[str, Any]]
    store: Path
    log: str
    seconds: float


class FaultyServer:
    """Answers each path with its fault until that is mended."""

    def __init__(self) -> None:
        self.faults = {fault.name: fault for fault in FAULTS}

    def __call__(self, request: Request) -> Any:
        name = request.path.split("/")[2]
        right = Say(judge_facts(original(request)))
        fault = self.faults.get(name)
        if fault is None:
            return right
        # Quoted as it arrived, not as the test knows it.
        headers = {header.lower(): value for header, value in request.headers.items()}
        secrets = f"{headers['authorization']} {headers['x-team-token']} {QUERY} {request.body['service_key']}"
        return fault.behaviour(right.completion("test-model", request.code), secrets.encode())


def original(request: Request) -> Request:
    """The ask, also where it is followed by what was wrong with the first reply."""
    first = next(message for message in request.messages if message["role"] == "user")
    return Request(request.path, request.headers, {**request.body, "messages": [first]})


def config(server: Loopback) -> Settings:
    """A judge for each fault, and one without any."""
    root = server.url.removesuffix("/v1")
    timeouts = {fault.name: fault.timeout for fault in FAULTS}
    judges = {
        name: {
            "base_url": f"{root}/f/{name}/v1?key={QUERY}",
            "model": "test-model",
            "key_env": "MY_KEY",
            "headers": {"X-Team-Token": TOKEN},
            "body": {"service_key": BODY},
            "timeout": timeouts.get(name, PATIENT),
            "retries": 1,
            "backoff": 0.01,
            "corrections": 1,
            "patience": 2,
        }
        for name in [*NAMES, "calm"]
    }
    return Settings(SettingsFile(judges=judges), {"MY_KEY": KEY}, "steelyard.toml")


async def judged(
    known: Settings, store: Store, name: str, samples: Path, resumed: str | None = None
) -> tuple[str, str]:
    """Start a run, or go on with one and ask again for what failed; its id and what ended it."""
    protocol, limiter = get_protocol("atomic"), Limits(concurrency=4).limiter()
    judge = JudgeFactory(known, limiter=limiter).judge(name)
    how = runs.RunSettings(workers=4, limiter=limiter)
    if resumed:
        run = runs.continue_(store, resumed, judge, known.prompts, how)
    else:
        options, data = protocol.parse_options({"date": "2026-03-02"}), Input([str(samples)])
        run = runs.start(store, protocol, options, judge, name, known.prompts, data, how)
    error = ""
    try:
        await run.drive(lambda *_: None, lambda _: None, retry=bool(resumed))
    except JudgeError as unusable:
        error = str(unusable)
    except Exception as unexpected:
        # Told by the test of this fault, not by all.
        error = f"unexpected {type(unexpected).__name__}: {unexpected}"
    finally:
        await run.aclose()
    return run.row.id, error


def left(store: Store, run: str, error: str) -> Ended:
    lines = {verdict.id: without_cost(verdict) for _, verdict in store.verdicts(run)}
    return Ended(store.run(run).state, error, lines)


def without_cost(verdict: Verdict) -> dict[str, Any]:
    return {**verdict.line(), "usage": None, "judge": None}


async def through_all(known: Settings, store: Store, samples: Path, server: FaultyServer, copy: Path) -> list[Outcome]:
    """All faults, each in a run of its own; a copy of the store as it then is; all runs again without a fault."""
    at_once = asyncio.Semaphore(AT_ONCE)

    async def through(name: str, resumed: str | None = None) -> tuple[str, Ended]:
        async with at_once:
            run, error = await judged(known, store, name, samples, resumed)
            return run, left(store, run, error)

    names = ["calm", *NAMES]
    faulty = await asyncio.gather(*map(through, names))
    with closing(sqlite3.connect(copy)) as target, closing(sqlite3.connect(store.path)) as source:
        source.backup(target)
    server.faults.clear()
    mended = await asyncio.gather(*(through(name, run) for name, (run, _) in zip(names, faulty, strict=True)))
    return [Outcome(run, before, after) for (run, before), (_, after) in zip(faulty, mended, strict=True)]


class _Heard(logging.Handler):
    """Everything that anybody logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """All faults at once, each in a run of its own, over one server and one store."""
    folder = tmp_path_factory.mktemp("matrix")
    samples, path = facts(folder / "facts.jsonl", SAMPLES), folder / "store.db"
    faulty, heard = FaultyServer(), _Heard()
    root = logging.getLogger()
    level = root.level
    root.addHandler(heard)
    root.setLevel(logging.INFO)
    began = time.process_time()
    try:
        with Loopback(reply_for=faulty) as server, Store.open(path) as store:
            outcomes = asyncio.run(through_all(config(server), store, samples, faulty, folder / "faulty.db"))
    finally:
        root.removeHandler(heard)
        root.setLevel(level)
    calm = outcomes.pop(0).faulty.lines
    found = dict(zip(NAMES, outcomes, strict=True))
    return Matrix(found, calm, path, "\n".join(heard.lines), time.process_time() - began)


def test_the_matrix_is_large_enough() -> None:
    """At least eighty different faults."""
    assert len(set(NAMES)) == len(NAMES) >= 80


def test_without_a_fault_all_is_judged(matrix: Matrix) -> None:
    """What the others are compared with is a full score."""
    assert [line["scores"]["accuracy"] for line in matrix.calm.values()] == [1.0] * SAMPLES
    assert matrix.seconds < SECONDS


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_while_a_fault_lasts(matrix: Matrix, fault: Fault) -> None:
    """Every sample is judged as without the fault, or failed with its reason and no score, or open in a stopped run."""
    state, error, lines = matrix.outcomes[fault.name].faulty
    if fault.expect == "judged":
        assert (state, error, lines) == ("complete", "", matrix.calm)
        return
    # The judge labelled nothing, and the run does not pretend that it did.
    assert state == "failed"
    if fault.expect == "stopped":
        assert lines == {}
        assert error.startswith(f"{fault.name}: ")
        return
    assert (error, len(lines)) == ("", SAMPLES)
    for line in lines.values():
        assert line["status"] == "failed"
        assert set(line["scores"].values()) == {None}
        assert any(f"unjudged:atoms:{reason}" in line["flags"] for reason in fault.expect.split("|"))


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_when_a_fault_is_over(matrix: Matrix, fault: Fault) -> None:
    """The same run goes on and ends with the results it would have had."""
    state, error, lines = matrix.outcomes[fault.name].mended
    assert (state, error) == ("complete", "")
    assert lines == matrix.calm


def secrets_in(text: str | bytes) -> list[str]:
    text = text if isinstance(text, str) else text.decode("latin-1")
    return [secret for secret in GIVEN_AWAY if secret in text]


def test_no_secret_is_in_the_store(matrix: Matrix) -> None:
    """Neither in a table nor in what SQLite leaves in the file and its log."""
    files = sorted(matrix.store.parent.glob("*.db*"))
    assert len(files) >= 2
    assert {file.name: secrets_in(file.read_bytes()) for file in files} == {file.name: [] for file in files}


def test_no_secret_is_logged_or_said(matrix: Matrix) -> None:
    """Neither in the log nor in what ends a run."""
    assert secrets_in(matrix.log) == []
    assert "Traceback" not in matrix.log
    said = {name: outcome.faulty.error for name, outcome in matrix.outcomes.items()}
    assert {name: error for name, error in said.items() if secrets_in(error)} == {}
    # The masks are there, so the server did quote them.
    assert sum("***" in error for error in said.values()) >= 5
    with Store.open(matrix.store) as store:
        raws = [raw for (raw,) in store.query("SELECT raw FROM replies")]
    assert any("***" in raw for raw in raws)


def test_no_secret_is_on_a_page(matrix: Matrix) -> None:
    """Every failed sample can be looked at, as can every stopped run, and shows nothing that was given away."""
    copy = matrix.store.with_name("faulty.db")
    with viewing(copy) as address, httpx.Client(base_url=address) as client:
        for run, faulty, _ in matrix.outcomes.values():
            path = f"/runs/{run}/samples/fact-1" if faulty.lines else f"/runs/{run}"
            page = client.get(path)
            assert page.status_code == 200, path
            assert secrets_in(page.text) == [], path


def test_no_secret_is_shown_of_the_calls(matrix: Matrix) -> None:
    """The page of a sample's calls shows the reply that quoted the secrets, without them."""
    run = matrix.outcomes["reply-quotes-key"].run
    with viewing(matrix.store.with_name("faulty.db")) as address, httpx.Client(base_url=address) as client:
        page = client.get(f"/runs/{run}/samples/fact-1/asked")
    assert page.status_code == 200
    assert "***" in page.text
    assert secrets_in(page.text) == []


def test_manifests_say_how_without_secrets(matrix: Matrix) -> None:
    """What shaped the answers is there, and what was secret is named as hidden."""
    with Store.open(matrix.store) as store:
        judge = store.runs()[0].manifest["judge"]
    assert judge["body"] == {"service_key": "hidden"}
    assert judge["base_url"].endswith("/v1?key=hidden")
    assert secrets_in(json.dumps(judge)) == []
