"""The HTTP API under /api/v1: the same store, the same validation, for programs."""

from __future__ import annotations

from fastapi import FastAPI

from steelyard import __version__
from steelyard.web.errors import HANDLERS
from steelyard.web.viewer import Viewer


def create_api(viewer: Viewer) -> FastAPI:
    # The usual documentation pages load scripts from elsewhere; the document itself is at /api/v1/openapi.json.
    api = FastAPI(
        title="Steelyard", version=__version__, docs_url=None, redoc_url=None, exception_handlers=dict(HANDLERS)
    )
    api.state.viewer = viewer
    return api
