"""Ray: the workers of a run as actors of a cluster.

An actor is what `steelyard worker` is: it reads samples from the store and writes verdicts to it. Between driver and
actors go only the order to work and how it ended; keys and PGPASSWORD come from the environment of each node.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from steelyard.engine.workers import Worker
from steelyard.errors import ConfigError, MissingExtra, SteelyardError
from steelyard.evaluation.joining import join_run
from steelyard.prompts import Prompts
from steelyard.settings import Settings, SettingsFile

# Before the import, which reads it. Nobody is told about runs; who wants that can say so.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray
except ImportError:
    raise MissingExtra("ray", "ray", "--engine ray") from None

# Ray itself waits for minutes and then ends the process.
CONNECT_SECONDS = 5.0
# An actor that has not heard so far that it should leave is not at work.
HEARD_SECONDS = 10.0
# Longer than the slowest call.
LEAVE_SECONDS = 120.0
# A node may be lost now and then; an actor that dies again and again would do so forever.
RESTARTS = 20


class WorkOrder(NamedTuple):
    """The settings with which a node joins a run."""

    store: str
    run: str
    settings: SettingsFile
    source: str
    prompts: Mapping[str, str]
    """The user's own, source → text; the shipped ones are part of the package there."""

    @classmethod
    def of(cls, settings: Settings, prompts: Prompts, store: str, run: str) -> WorkOrder:
        shipped = set(Prompts.shipped())
        own = {prompt.source: prompt.text for prompt in prompts if prompt not in shipped}
        return cls(store, run, settings.file, settings.source, own)


class RunActor:
    """One worker on a node of the cluster. Ray starts it again elsewhere when its node dies."""

    def __init__(self, order: WorkOrder) -> None:
        self._order, self._leaving = order, False
        self._worker: Worker | None = None

    async def work(self) -> str | None:
        """Judge until nothing is left; why that was not possible."""
        from steelyard.store import Store

        order = self._order
        try:
            settings = Settings(order.settings, os.environ, order.source)
            with Store.open(order.store, create=False) as store:
                prompts = Prompts.shipped().with_texts(order.prompts)
                worker, judge, _ = join_run(settings, prompts, store, order.run, order.store)
                self._worker = worker
                if self._leaving:
                    worker.leave()
                try:
                    await worker.work()
                finally:
                    await judge.aclose()
        except SteelyardError as error:
            return str(error)
        return None

    async def leave(self) -> None:
        """Finish the calls in flight and hand the other samples back."""
        self._leaving = True
        if self._worker:
            self._worker.leave()


class ActorGroup:
    """The actors of one run."""

    def __init__(self, order: WorkOrder, count: int) -> None:
        remote = ray.remote(RunActor).options(
            num_cpus=1, max_restarts=RESTARTS, max_task_retries=-1, scheduling_strategy="SPREAD"
        )
        self._actors = [remote.remote(order) for _ in range(count)]
        self._working: dict[Any, Any] = {actor.work.remote(): actor for actor in self._actors}
        self.failures: list[str] = []

    def are_done(self) -> bool:
        """Whether none of them is at work or will be."""
        return not self._wait(list(self._working), 0)

    def leave(self) -> None:
        """Stop gracefully: all finish what is in flight; actors that never started are not waited for."""
        asked = {actor.leave.remote(): work for work, actor in self._working.items()}
        if asked:
            heard, _ = ray.wait(list(asked), num_returns=len(asked), timeout=HEARD_SECONDS)
            self._wait([asked[one] for one in heard], LEAVE_SECONDS)

    def end(self) -> None:
        for actor in self._actors:
            ray.kill(actor)

    def _wait(self, waited: Sequence[Any], seconds: float) -> int:
        """Wait for these, keep why some failed, and say how many are still at work."""
        done = ray.wait(waited, num_returns=len(waited), timeout=seconds)[0] if waited else ()
        for work in done:
            del self._working[work]
            try:
                failure = ray.get(work)
            except ray.exceptions.RayError as error:
                failure = str(error).strip()
            if failure:
                self.failures.append(failure)
        return len(self._working)


class RayCluster:
    """A cluster that this process is connected to."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def cpus(self) -> int:
        return int(ray.cluster_resources().get("CPU", 0))

    @contextmanager
    def actors(self, order: WorkOrder, count: int) -> Iterator[ActorGroup]:
        """Actors at work on a run; whatever happens, none is left behind."""
        group = ActorGroup(order, count)
        try:
            yield group
        finally:
            group.end()


@contextmanager
def connected(address: str | None) -> Iterator[RayCluster]:
    """The cluster at this address, else at RAY_ADDRESS, else one that is started here for as long as it is needed."""
    chosen = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_reachable(chosen)
    more = {"include_dashboard": False} if chosen == "local" else {}
    try:
        ray.init(address=chosen, log_to_driver=False, configure_logging=False, **more)
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        raise ConfigError(f"--address {chosen}: Ray cannot connect: {str(error).strip()}") from error
    try:
        yield RayCluster(chosen)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        if address in ("local", "auto"):
            return
        raise ConfigError(f"--address {address}: name a cluster as HOST:PORT, or auto for the one on this machine")
    with suppress(OSError, ValueError, OverflowError):
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        return
    raise ConfigError(f"--address {address}: no Ray cluster answers there; ray status shows whether one runs")
