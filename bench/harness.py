"""Starts the stub, drives one client at a time as a process of its own, and says what that took."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from environments import BARE, CLIENTS, HERE, OWN, PROJECT, python_of
from samples import samples

# Nobody phones home from here, and nobody waits for an answer from there.
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "CONFIDENT_TRACE_FLUSH": "NO",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_COLOR": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "TRULENS_OTEL_TRACING": "0",
}
JUDGE = '[judges.stub]\nkind = "openai"\nmodel = "stub"\nbase_url = "{url}"\ntimeout = {deadline}\n'


@dataclass(frozen=True)
class Load:
    """How much, how many at once, how slow, how faulty."""

    samples: int
    concurrency: int = 32
    latency_ms: float = 200
    faults: dict[str, float] = field(default_factory=dict)
    deadline: float = 120
    """For one attempt, in seconds."""

    @property
    def seconds_ideally(self) -> float:
        return self.latency_ms / 1000 / self.concurrency


@dataclass
class Measured:
    """One client under one load. `wall_s` and `cpu_s` are of the judging, `whole_…` of the process.

    `reported` is false where the client did not come to its end; then the former two are those of the process.
    """

    client: str
    load: Load
    ended: str
    reported: bool
    wall_s: float
    cpu_s: float
    whole_wall_s: float
    whole_cpu_s: float
    peak_mb: float
    stub: dict[str, Any]
    values: dict[str, dict[str, float | None]] = field(default_factory=dict, repr=False)
    log: str = field(default="", repr=False)

    @property
    def calls(self) -> int:
        return self.stub.get("requests", 0)

    @property
    def all_calls(self) -> int:
        return self.calls + self.stub.get("embedding_requests", 0)

    @property
    def prompt_tokens(self) -> int:
        return self.stub.get("prompt_chars", 0) // 4

    @property
    def uncached_tokens(self) -> int:
        """Those that no provider's prompt cache holds: what a sample really costs."""
        return self.stub.get("uncached_chars", 0) // 4

    @property
    def cpu_ms_per_call(self) -> float:
        return 1000 * self.cpu_s / max(1, self.all_calls)

    @property
    def of_ideal(self) -> float:
        """Calls × latency ÷ concurrency, over the time it took: 1 is the physical limit."""
        return self.all_calls * self.load.seconds_ideally / self.wall_s if self.wall_s else 0.0

    @property
    def scored(self) -> int:
        """Samples that have every value."""
        return sum(bool(scores) and None not in scores.values() for scores in self.values.values())


class Lab:
    """A stub and a working folder. `python` stands in for Steelyard's own environment in tests."""

    def __init__(self, python: Path | None = None) -> None:
        self._python = python
        self._folder = tempfile.TemporaryDirectory(prefix="steelyard-bench-")
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Self:
        command = [sys.executable, str(HERE / "stub.py"), "--port", "0"]
        self._stub = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._stub.stdout
        found = re.search(r":(\d+)", self._stub.stdout.readline())
        assert found, "the stub did not start"
        self.url = f"http://127.0.0.1:{found[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stub.terminate()
        self._stub.communicate()
        self._folder.cleanup()

    def own(self) -> tuple[str, dict[str, str]]:
        """The interpreter that Steelyard runs in, and the variables it needs."""
        if self._python:
            return str(self._python), {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
        return str(python_of(OWN)), dict(os.environ)

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats") as reply:
            return json.load(reply)

    def control(self, **change: Any) -> None:
        urllib.request.urlopen(f"{self.url}/control", json.dumps(change).encode()).close()

    def data(self, count: int) -> Path:
        """The samples as a file, written once."""
        path = self.folder / f"samples-{count}.jsonl"
        if not path.exists():
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(sample) + "\n" for sample in samples(count))
        return path

    def calls(self, count: int) -> Path:
        """The bodies of what Steelyard asks for these samples, recorded once."""
        path = self.folder / f"calls-{count}.jsonl"
        if not path.exists():
            self._recorded(count, path)
        return path

    def run(
        self,
        client: str,
        load: Load,
        *,
        work: Path | None = None,
        told: dict[str, Any] | None = None,
        kill_when: Callable[[dict[str, Any]], bool] | None = None,
        keep_counting: bool = False,
        seconds: float = 900,
    ) -> Measured:
        """Judge with this client in a fresh folder, or go on in `work`."""
        extra = {"calls": str(self.calls(load.samples))} if client == BARE else {}
        work = work or Path(tempfile.mkdtemp(dir=self.folder))
        if not keep_counting:
            self.control(reset=True, latency_ms=load.latency_ms, **load.faults)
        process, report = self._start(CLIENTS[client].script, client, load, work, extra | (told or {}))
        ended, usage, took = self._wait(process, kill_when, seconds)
        said = json.loads(report.read_text("utf-8")) if report.exists() else {}
        cpu = usage.ru_utime + usage.ru_stime
        return Measured(
            client=client,
            load=load,
            ended=ended,
            reported=bool(said),
            wall_s=said.get("wall_s", took),
            cpu_s=said.get("cpu_s", cpu),
            whole_wall_s=took,
            whole_cpu_s=cpu,
            peak_mb=usage.ru_maxrss / 1024,
            stub=self.stats(),
            values=said.get("values", {}),
            log=(work / "log").read_text("utf-8", "replace")[-2000:],
        )

    def _recorded(self, count: int, path: Path) -> None:
        self.control(reset=True, latency_ms=50)
        load, work = Load(count), Path(tempfile.mkdtemp(dir=self.folder))
        process, _ = self._start("record_calls.py", BARE, load, work, {"calls": str(path)})
        ended, _, _ = self._wait(process, None, 900)
        if ended != "exit 0":
            raise RuntimeError(f"recording failed ({ended}):\n{(work / 'log').read_text('utf-8')[-2000:]}")

    def _start(
        self, script: str, client: str, load: Load, work: Path, told: dict[str, Any]
    ) -> tuple[subprocess.Popen[bytes], Path]:
        environment = CLIENTS[client].environment
        config, report = work / "steelyard.toml", work / "report.json"
        config.write_text(JUDGE.format(url=f"{self.url}/v1", deadline=load.deadline))
        report.unlink(missing_ok=True)
        told = {
            "url": f"{self.url}/v1",
            "data": str(self.data(load.samples)),
            "concurrency": load.concurrency,
            "deadline": load.deadline,
            "report": str(report),
            "environment": str(python_of(environment).parent.parent),
            **told,
        }
        python, variables = (str(python_of(environment)), dict(os.environ)) if CLIENTS[client].is_peer else self.own()
        variables |= QUIET | {"OPENAI_API_KEY": "sk-stub", "STEELYARD_CONFIG": str(config)}
        with (work / "log").open("wb") as log:
            process = subprocess.Popen(
                [python, str(HERE / "clients" / script), json.dumps(told)],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=work,
                env=variables,
                start_new_session=True,  # so that a kill reaches what the client has started
            )
        return process, report

    def _wait(
        self, process: subprocess.Popen[bytes], kill_when: Callable[[dict[str, Any]], bool] | None, seconds: float
    ) -> tuple[str, Any, float]:
        began = time.perf_counter()
        ended = ""
        while True:
            if self._stub.poll() is not None:
                os.killpg(process.pid, signal.SIGKILL)
                raise RuntimeError(f"the stub has ended by itself ({self._stub.returncode}); nothing can be measured")
            # Asking the stub for its counters costs it time, so only where something hangs on it.
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid:
                if kill_when and kill_when(self.stats()):
                    self.control(killed=True)
                    ended = "killed"
                elif time.perf_counter() - began > seconds:
                    ended = f"not done after {seconds:.0f} s"
                if not ended:
                    time.sleep(0.01)
                    continue
                os.killpg(process.pid, signal.SIGKILL)
                pid, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return ended or f"exit {process.returncode}", usage, time.perf_counter() - began
