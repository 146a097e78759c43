"""Handlers of forms: the form is read in the loop, the rest is done in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response


def posted(handler: Callable[[Request, FormData], Response]) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        async with request.form(max_files=0, max_fields=100) as form:
            return await run_in_threadpool(handler, request, form)

    return handle
