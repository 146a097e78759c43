"""The middleware of a team's server: checks permissions and writes the audit log."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.errors import NotAllowed, SteelyardError, UnknownExperiment, UnknownQueue, UnknownRun, UnknownSet
from steelyard.text.wording import say
from steelyard.web.accounts.access import Access, Visit
from steelyard.web.accounts.permissions import MatchedRule, match_rule
from steelyard.web.accounts.sign_in import TOKEN_REFUSED, Accounts, TokenRefused
from steelyard.web.errors import on_steelyard_error, problem_response, wants_json
from steelyard.web.rendering import language_of
from steelyard.web.security import SAFE
from steelyard.web.viewer import Viewer

HSTS = "max-age=31536000"


class AccessMiddleware:
    """Who asks, whether they may, and with which store: one that holds only the projects in which they may."""

    def __init__(self, app: ASGIApp, viewer: Viewer, accounts: Accounts) -> None:
        self.app, self.viewer, self.accounts = app, viewer, accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        about = match_rule(request.method, scope["path"])
        try:
            answer = await run_in_threadpool(self._admit, request, about)
        except SteelyardError as error:
            answer = await on_steelyard_error(request, error)
        if answer:
            await answer(scope, receive, self._secured(request, send))
        else:
            await self.app(scope, receive, self._recorded(request, self._secured(request, send)))

    def _admit(self, request: Request, about: MatchedRule | None) -> Response | None:
        """None where the request may pass; then its scope holds the viewer that handlers get."""
        if about and about.action is None:
            return None
        with self.viewer.whole_store() as store:
            try:
                access = self.accounts.identify(store, request)
            except TokenRefused:
                self.accounts.record_refusal(store, request, TOKEN_REFUSED, request.url.path)
                return _sign_in_needed(request, "that token is not right, or not any more")
            if access is None:
                return _sign_in_needed(request, "sign in, or send a token")
            if access.is_browser and request.method not in SAFE and not _names_its_origin(request):
                return self._refused(request, access, "", "this request does not say which site made it", "cross_site")
            if about is None or about.action is None:
                # Whether there is such an address is told to those who are signed in, and nothing else.
                request.scope["viewer"] = self.viewer.shown_to(Visit(access, "read"))
                return problem_response(request, 404, "there is nothing at this address")
            visit = Visit(access, about.action, visible=access.projects(about.action))
            request.scope["viewer"] = self.viewer.shown_to(visit)
            project = None
            store.visible = access.projects("read")
            # One of another project is not there at all, which the handler says.
            if "run" in about.values:
                visit.target = str(about.values["run"])[:200]
                with suppress(UnknownRun):
                    row = store.run(about.values["run"])
                    visit.target, visit.project, project = row.id, row.project, row.project
            elif "set" in about.values:
                visit.target = f"set {about.values['set']}"[:200]
                with suppress(UnknownSet):
                    found = store.sample_set(about.values["set"])
                    visit.target, visit.project, project = f"set {found.name}", found.project, found.project
            elif "queue" in about.values:
                visit.target = f"queue {about.values['queue']}"
                with suppress(UnknownRun, UnknownQueue):
                    row = store.run(store.queue(about.values["queue"]).run)
                    visit.target, visit.project, project = f"{visit.target} of {row.id}", row.project, row.project
            elif "composed" in about.values:
                visit.target = f"experiment {about.values['composed']}"
                with suppress(UnknownExperiment):
                    stored = store.experiment(about.values["composed"])
                    visit.target = f"experiment {stored.name}"[:200]
                    visit.project, project = stored.project, stored.project
            if access.may(about.action, project):
                return None
            message = f"your role does not allow it: {about.action}"
            return self._refused(request, access, about.action, message, project=visit.project)

    def _refused(
        self, request: Request, access: Access, action: str, message: str, code: str = "", project: str = ""
    ) -> Response:
        with self.viewer.whole_store() as store:
            where = f"{request.method} {request.url.path}"[:200]
            more = {"target": where, "project": project, "outcome": "refused"}
            self.accounts.record(store, request, access.name, action or "change", **more)
        refusal = None
        if action:
            named = say(language_of(request), f"viewer.accounts.action.{action.replace(' ', '_')}")
            refusal = NotAllowed(message, "role", action=named)
        return problem_response(request, 403, message, code=code, refusal=refusal)

    def _recorded(self, request: Request, send: Send) -> Send:
        """Writes down what changed something, before the answer goes out."""
        viewer = request.scope.get("viewer")
        if viewer is None or request.method in SAFE:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await run_in_threadpool(partial(self._write_down, request, viewer.visit, message["status"]))
            await send(message)

        return sending

    def _write_down(self, request: Request, visit: Visit, status: int) -> None:
        outcome = "done" if status < 400 else f"failed ({status})"
        with self.viewer.whole_store() as store:
            self.accounts.record(
                store,
                request,
                visit.access.name,
                visit.action,
                target=visit.target,
                project=visit.project,
                outcome=outcome,
            )

    def _secured(self, request: Request, send: Send) -> Send:
        """What is answered to one person is kept by no proxy for another."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "viewer" in request.scope:
                    headers.add_vary_header("Cookie, Authorization")
                    headers.setdefault("Cache-Control", "no-store")
                if self.accounts.is_secure:
                    headers["Strict-Transport-Security"] = HSTS
            await send(message)

        return sending


def _sign_in_needed(request: Request, message: str) -> Response:
    """People are led to the page where they sign in, and back afterwards."""
    if request.method in SAFE and not wants_json(request) and "authorization" not in request.headers:
        back = f"{request.url.path}{'?' if request.url.query else ''}{request.url.query}"
        return RedirectResponse(f"/login?{urlencode({'next': back})}", 303)
    return problem_response(request, 401, message, code="sign_in_needed", headers={"WWW-Authenticate": "Bearer"})


def _names_its_origin(request: Request) -> bool:
    """Browsers do, on every change; what they say was checked before (`Guard`)."""
    return "origin" in request.headers or "sec-fetch-site" in request.headers
