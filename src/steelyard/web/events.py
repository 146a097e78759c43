"""Progress as server-sent events. Every event is a whole picture, so a reader who lost some needs only the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from steelyard.engine.runs import state_of
from steelyard.web.actions import progress_of
from steelyard.web.jobs import RunProgress
from steelyard.web.viewer import Viewer

TICK = 0.5
# Proxies and laptops drop what is silent for long.
PING = 15.0
RETRY_MILLISECONDS = 2000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def run_events(viewer: Viewer, run: str) -> StreamingResponse:
    """One run until it is not at work any more: `progress` events, then one `end`."""

    def look() -> list[RunProgress]:
        with viewer.store() as store:
            return [progress_of(viewer, store, store.run(run))]

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
    told: dict[str, RunProgress] = {}
    last = time.monotonic()
    while not viewer.jobs.closing.is_set():
        for progress in await run_in_threadpool(look):
            if progress != told.get(progress.id):
                told[progress.id] = progress
                last = time.monotonic()
                yield f"event: progress\ndata: {progress.model_dump_json()}\n\n"
            if ends and progress.state != "running":
                yield f"event: end\ndata: {progress.model_dump_json()}\n\n"
                return
        if time.monotonic() - last > PING:
            last = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(TICK)
