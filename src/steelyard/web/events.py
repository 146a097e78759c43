"""Progress as server-sent events. Every event is a whole picture, so a reader who lost some needs only the next."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from steelyard.engine.runs import state_of
from steelyard.web.actions import progress_of
from steelyard.web.jobs import RunProgress
from steelyard.web.viewer import Viewer

TICK = 0.5
# Over how many seconds the pace of a run is taken.
WINDOW = 20.0
# Proxies and laptops drop what is silent for long.
PING = 15.0
# On a team's server a reader comes back this often, and is asked again whether they may read.
LONGEST_VISIT = 60.0
RETRY_MILLISECONDS = 2000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventPace:
    """How fast a run goes that another process drives: from how far it was at earlier looks."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, progress: RunProgress) -> RunProgress:
        if progress.rate is not None or progress.state != "running":
            return progress
        now = time.monotonic()
        self._seen.append((now, progress.passed))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()
        began, before = self._seen[0]
        if now - began < TICK:
            return progress
        rate = (progress.passed - before) / (now - began)
        left = None if progress.total is None else max(0, progress.total - progress.passed)
        eta = round(left / rate) if left is not None and rate else None
        return progress.model_copy(update={"rate": round(rate, 3), "eta_seconds": eta})


def run_events(viewer: Viewer, run: str) -> StreamingResponse:
    """One run until it is not at work any more: `progress` events, then one `end`."""

    pace = EventPace()

    def look() -> list[RunProgress]:
        with viewer.store() as store:
            return [pace.of(progress_of(viewer, store, store.run(run)))]

    return _response(_events(viewer, look, ends=True))


def all_events(viewer: Viewer) -> StreamingResponse:
    """Every run at work, for as long as somebody listens; a run that ends is told once more."""
    followed: set[str] = set()

    def look() -> list[RunProgress]:
        with viewer.store() as store:
            rows = store.runs()
            at_work = {row.id for row in rows if viewer.jobs.get(row.id) or state_of(row, store) == "running"}
            shown = [progress_of(viewer, store, row) for row in rows if row.id in at_work | followed]
        followed.clear()
        followed.update(at_work)
        return shown

    return _response(_events(viewer, look, ends=False))


def _response(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


async def _events(viewer: Viewer, look: Callable[[], list[RunProgress]], *, ends: bool) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    sent: dict[str, RunProgress] = {}
    began = last = time.monotonic()
    while not viewer.jobs.closing.is_set() and (viewer.visit is None or time.monotonic() - began < LONGEST_VISIT):
        for progress in await run_in_threadpool(look):
            if progress != sent.get(progress.id):
                sent[progress.id] = progress
                last = time.monotonic()
                yield f"event: progress\ndata: {progress.model_dump_json()}\n\n"
            if ends and progress.state != "running":
                yield f"event: end\ndata: {progress.model_dump_json()}\n\n"
                return
        if time.monotonic() - last > PING:
            last = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(TICK)
