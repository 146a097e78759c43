"""The viewer as one application: pages, static files, the API, and the guard before them."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from steelyard.web import pages
from steelyard.web.accounts import pages as account_pages
from steelyard.web.accounts import users
from steelyard.web.accounts.gate import AccessGate
from steelyard.web.api import create_api
from steelyard.web.errors import HANDLERS, Unexpected
from steelyard.web.security import Guard
from steelyard.web.viewer import Viewer


def create_app(viewer: Viewer) -> Starlette:
    # Style sheet and script of the report, then those of the viewer.
    static = StaticFiles(packages=[("steelyard.reports.html", "static"), ("steelyard.web", "static")])
    routes = [*pages.routes(), Mount("/static", static, name="static"), Mount("/api/v1", create_api(viewer))]
    middleware = [Middleware(Guard, viewer=viewer), Middleware(Unexpected)]
    if viewer.accounts:
        routes = [*account_pages.routes, *users.routes, *routes]
        middleware.append(Middleware(AccessGate, viewer=viewer, accounts=viewer.accounts))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers=HANDLERS,
    )
    app.state.viewer = viewer
    return app
