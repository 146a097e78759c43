"""Signing in and out, and the audit log."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from anyio import to_thread
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.records import Record
from steelyard.store import AuditEntry
from steelyard.web.accounts import oidc
from steelyard.web.accounts.sign_in import REFUSED, Accounts, SignInRefused, local_address
from steelyard.web.rendering import page, page_routes, with_query
from steelyard.web.viewer import Viewer, viewer_of

PER_PAGE = 100
AWAY, AWAY_SECONDS = "steelyard_away", 600


class LoginPage(Record):
    """The form, and what was wrong with what was sent before."""

    next: str
    name: str = ""
    problem: str | None = Field(default=None, description="not_right, too_many or no_entry")
    provider: str | None = Field(default=None, description="where one can sign in without a password here")


class AuditPage(Record):
    """One page of the log, newest first."""

    entries: tuple[AuditEntry, ...]
    page: int
    has_more: bool


def accounts_of(viewer: Viewer) -> Accounts:
    assert viewer.accounts is not None
    return viewer.accounts


def login(request: Request) -> Response:
    return _form(request, request.query_params.get("next"))


def _form(request: Request, back: str | None, status: int = 200, **more: Any) -> Response:
    provider = accounts_of(viewer_of(request)).provider
    model = LoginPage(next=local_address(back), provider=provider.name if provider else None, **more)
    away = f"/login/oidc?{urlencode({'next': model.next})}"
    return page(request, "login.html", model, status=status, away=away)


async def give_password(request: Request) -> Response:
    accounts = accounts_of(viewer_of(request))
    async with request.form(max_files=0, max_fields=10) as form:
        name, password, back = (str(form.get(field, "")) for field in ("name", "password", "next"))
    # A browser says where the form was; what says nothing is no browser, and has tokens.
    if "origin" not in request.headers and "sec-fetch-site" not in request.headers:
        raise HTTPException(403, "this request does not say which site made it")

    def sign_in() -> Response:
        with viewer_of(request).whole_store() as store:
            user = accounts.check_password(store, request, name, password)
            response = RedirectResponse(local_address(back), 303)
            accounts.begin(store, request, user, response)
            return response

    try:
        return await to_thread.run_sync(sign_in, limiter=accounts.signing_in)
    except SignInRefused as refused:
        if refused.wait is None:
            return await run_in_threadpool(_form, request, back, 401, name=name, problem="not_right")
        response = await run_in_threadpool(_form, request, back, 429, name=name, problem="too_many")
        response.headers["Retry-After"] = str(refused.wait)
        return response


# --- at an identity provider -----------------------------------------------------------------------


async def leave_for_provider(request: Request) -> Response:
    accounts, provider = _provider(request)
    leaving = oidc.PendingSignIn.new(request.query_params.get("next"))
    try:
        response = RedirectResponse(await provider.departure(leaving), 303)
    except oidc.ProviderRefused as refused:
        return await run_in_threadpool(_refuse_sign_in, request, str(refused))
    response.set_cookie(
        accounts.cookie_name(AWAY),
        leaving.packed(),
        max_age=AWAY_SECONDS,
        secure=accounts.is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


async def return_from_provider(request: Request) -> Response:
    accounts, provider = _provider(request)
    cookie = accounts.cookie_name(AWAY)

    def sign_in(person: oidc.Person, back: str) -> Response:
        with viewer_of(request).whole_store() as store:
            user = accounts.user_of(store, request, person)
            response = RedirectResponse(back, 303)
            accounts.begin(store, request, user, response)
            return response

    try:
        left = oidc.PendingSignIn.unpacked(request.cookies.get(cookie, ""))
        person = await provider.arrival(left, dict(request.query_params))
        response = await run_in_threadpool(sign_in, person, left.next)
    except oidc.ProviderRefused as refused:
        response = await run_in_threadpool(_refuse_sign_in, request, str(refused))
    except SignInRefused:
        response = await run_in_threadpool(_refuse_sign_in, request, "the user is disabled")
    # Good for one attempt, whatever came of it.
    response.delete_cookie(cookie, secure=accounts.is_secure, httponly=True, samesite="lax")
    return response


def _provider(request: Request) -> tuple[Accounts, oidc.OpenIdProvider]:
    accounts = accounts_of(viewer_of(request))
    if accounts.provider is None:
        raise HTTPException(404, "nobody signs in elsewhere for this server")
    return accounts, accounts.provider


def _refuse_sign_in(request: Request, why: str) -> Response:
    viewer = viewer_of(request)
    with viewer.whole_store() as store:
        accounts_of(viewer).record_refusal(store, request, REFUSED, why)
    return _form(request, None, 401, problem="no_entry")


def logout(request: Request) -> Response:
    viewer = viewer_of(request)
    response = RedirectResponse("/login", 303)
    with viewer.whole_store() as store:
        accounts_of(viewer).end(store, request, response)
    return response


def audit(request: Request) -> Response:
    given = request.query_params.get("page", "")
    at = int(given) if given.isascii() and given.isdigit() and 0 < len(given) < 7 else 1
    entries = read_audit(viewer_of(request), PER_PAGE + 1, (max(1, at) - 1) * PER_PAGE)
    model = AuditPage(entries=tuple(entries[:PER_PAGE]), page=max(1, at), has_more=len(entries) > PER_PAGE)
    return page(request, "audit.html", model, turn=lambda to: with_query(request, page=to))


def read_audit(viewer: Viewer, limit: int, offset: int) -> list[AuditEntry]:
    """What an admin of some projects, or of all, may know."""
    with viewer.store() as store:
        return store.audit_entries(projects=store.visible, limit=limit, offset=offset)


routes = [
    Route("/login", login, methods=["GET"]),
    Route("/login", give_password, methods=["POST"]),
    Route("/login/oidc", leave_for_provider, methods=["GET"]),
    Route("/login/oidc/callback", return_from_provider, methods=["GET"]),
    Route("/logout", logout, methods=["POST"]),
    *page_routes("/audit", audit),
]
