"""The HTTP API under /api/v1: the same store, the same validation, for programs."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from steelyard import __version__
from steelyard.web.accounts import api as accounts
from steelyard.web.api import about, evaluating, experiments, labels, queues, reading, running, sets
from steelyard.web.api.document import document
from steelyard.web.errors import FAILURES, HANDLERS, on_unexpected
from steelyard.web.viewer import Viewer

DESCRIPTION = "Judge samples, create and follow runs, read results, post labels by people."


def create_api(viewer: Viewer) -> FastAPI:
    # The usual documentation pages load scripts from elsewhere; the document itself is at /api/v1/openapi.json.
    api = FastAPI(
        title="Steelyard",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=FAILURES,
        exception_handlers={**HANDLERS, Exception: on_unexpected},
        redirect_slashes=False,
    )
    modules = [about, evaluating, running, reading, labels, queues, sets, experiments]
    modules += [accounts] if viewer.accounts else []
    for module in modules:
        api.include_router(module.router)
    api.state.viewer = viewer
    plain = api.openapi

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = document(plain(), viewer)
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api
