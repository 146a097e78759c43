"""The HTTP API under /api/v1: the same store, the same validation, for programs."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from steelyard import __version__
from steelyard.web.api import about, evaluating, labels, reading, running
from steelyard.web.api.document import document
from steelyard.web.errors import HANDLERS, ErrorBody, on_unexpected
from steelyard.web.viewer import Viewer

DESCRIPTION = "Judge samples, create and follow runs, read results, post labels by people."
# What any operation may answer besides a success; each adds what is its own.
FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The request cannot be read."},
    401: {"model": ErrorBody, "description": "This viewer asks for a token."},
    403: {"model": ErrorBody, "description": "The request was made by another site, or under another name."},
    404: {"model": ErrorBody, "description": "There is no such thing."},
    405: {"model": ErrorBody, "description": "Not with this method."},
    409: {"model": ErrorBody, "description": "Not now: somebody is at work on the run."},
    413: {"model": ErrorBody, "description": "The request is too large."},
    415: {"model": ErrorBody, "description": "Not in this form."},
    422: {"model": ErrorBody, "description": "Something in the request does not fit; `field` says what."},
}


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
    for module in (about, evaluating, running, reading, labels):
        api.include_router(module.router)
    api.state.viewer = viewer
    plain = api.openapi

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = document(plain(), viewer)
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api
