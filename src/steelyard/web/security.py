"""The viewer's access checks and content security policy.

Browsers run pages of strangers beside ours. A name that is not ours (DNS rebinding) and posts from elsewhere are
refused; a token, where there is one, is asked of every request; and no page may load or run what is not its own.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.web.errors import problem_response
from steelyard.web.rendering import with_query
from steelyard.web.viewer import Viewer

COOKIE = "steelyard_token"
SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with that, browsers hide the origin of our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """The outermost middleware: checks the host name, the origin, the token and the size of a request."""

    def __init__(self, app: ASGIApp, viewer: Viewer) -> None:
        self.app, self.viewer = app, viewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope, receive)
        answer = self._refusal(request) or self._token(request) or self._too_large(request)
        if answer:
            await answer(scope, receive, sending)
        else:
            await self.app(scope, self._counted(request, receive), sending)

    def _refusal(self, request: Request) -> Response | None:
        host = _hostname(request.headers.get("host", ""))
        if self.viewer.hosts and host not in self.viewer.hosts:
            return problem_response(request, 403, f"this viewer is not called {host!r}", code="wrong_host")
        if request.method not in SAFE and not is_from_here(request):
            return problem_response(request, 403, "this request was made by another site", code="cross_site")
        return None

    def _token(self, request: Request) -> Response | None:
        """Nothing where the token is right or none is needed."""
        token = self.viewer.token
        if not token:
            return None
        if (given := request.query_params.get("token")) and _same(given, token) and request.method in SAFE:
            # Out of the address bar at once, so that it is not passed on with a link.
            welcome = RedirectResponse(with_query(request, token=None), 303)
            welcome.set_cookie(COOKIE, cookie_value(token), httponly=True, samesite="lax")
            return welcome
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), token):
            return None
        if _same(request.cookies.get(COOKIE, ""), cookie_value(token)):
            return None
        wrong = "that token is not right" if given or bearer else "this viewer asks for a token"
        return problem_response(request, 401, wrong, headers={"WWW-Authenticate": "Bearer"})

    def _limit(self, request: Request) -> int:
        is_file = request.headers.get("content-type", "").startswith("multipart/form-data")
        return self.viewer.sizes.upload if is_file else self.viewer.sizes.body

    def _too_large(self, request: Request) -> Response | None:
        announced = request.headers.get("content-length", "0")
        if not announced.isdigit():
            return problem_response(request, 400, "Content-Length is not a number")
        if int(announced) > (limit := self._limit(request)):
            return problem_response(request, 413, _at_most(limit))
        return None

    def _counted(self, request: Request, receive: Receive) -> Receive:
        """The same for bodies that come in pieces and announce nothing."""
        limit, got = self._limit(request), 0

        async def receiving() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > limit:
                raise HTTPException(413, _at_most(limit))
            return message

        return receiving


def cookie_value(token: str) -> str:
    """What a browser keeps instead of the token itself."""
    return hmac.digest(token.encode(), b"steelyard cookie", hashlib.sha256).hex()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _hostname(host: str) -> str:
    """`[::1]:8321` as `::1`; what cannot be read is nobody's name."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_from_here(request: Request) -> bool:
    """Whether no other site made this request. Programs send neither header; browsers send at least one."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:  # `http://[` is nobody
        return False


def _at_most(limit: int) -> str:
    return f"a request may have {limit:,} bytes at most"
