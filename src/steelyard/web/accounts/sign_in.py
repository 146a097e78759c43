"""From a request to who asks: passwords, sessions and tokens."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response

from steelyard.store import ROLES, AuditEntry, LoginSession, Role, Store, Token, User
from steelyard.web.accounts.access import Access, narrowed
from steelyard.web.accounts.passwords import is_right
from steelyard.web.accounts.proxies import Proxies

if TYPE_CHECKING:
    from steelyard.web.accounts.oidc import OpenIdProvider, Person

TOKEN_PREFIX = "sy_"
SIGN_IN, REFUSED, BLOCKED = "sign in", "sign in refused", "sign in blocked"
TOKEN_REFUSED = "token refused"
LONGEST_TYPED = 200


class SignInRefused(Exception):
    """Wrong name or password, or too many attempts: then, how many seconds to wait."""

    def __init__(self, wait: int | None = None) -> None:
        super().__init__()
        self.wait = wait


class TokenRefused(Exception):
    """A token that is unknown, expired or revoked. Which of them is nobody's business but the log's."""


@dataclass(frozen=True)
class SignInLimits:
    """How many sign-ins may fail within `minutes`: of one name from one address, from one address, of one name."""

    minutes: int = 15
    both: int = 5
    address: int = 30
    name: int = 50


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Accounts:
    """How people sign in to this server."""

    url: str
    """The address that browsers open. With https, cookies are kept off plain HTTP."""
    proxies: Proxies = field(default_factory=Proxies)
    provider: OpenIdProvider | None = None
    attempts: SignInLimits = SignInLimits()
    idle: timedelta = timedelta(hours=8)
    longest: timedelta = timedelta(days=7)
    clock: Callable[[], datetime] = _utc
    # One at a time: a hash takes much memory, and nobody gets ahead of the count of what failed.
    signing_in: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1), repr=False)

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def cookie(self) -> str:
        return self.cookie_name("steelyard_session")

    def cookie_name(self, name: str) -> str:
        """The prefix makes browsers refuse a cookie of that name from another host, or without TLS."""
        return f"__Host-{name}" if self.is_secure else name

    def now(self, ago: timedelta = timedelta()) -> str:
        return (self.clock() - ago).isoformat(timespec="seconds")

    def record(self, store: Store, request: Request, actor: str, action: str, **more: str) -> None:
        address = self.proxies.address_of(request)
        store.add_audit(AuditEntry(time=self.now(), actor=actor, address=address, action=action, **more))

    # --- who asks ---

    def identify(self, store: Store, request: Request) -> Access | None:
        """Who makes this request. A token counts alone: a wrong one is not made up for by a cookie."""
        if (authorization := request.headers.get("authorization")) is not None:
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise TokenRefused
            return self._by_token(store, given.strip())
        if (name := self.proxies.user_of(request)) is not None:
            user = store.user(name)
            return Access(name, store.roles_of(name), True, name) if user and not user.disabled else None
        return self._by_session(store, request.cookies.get(self.cookie, ""))

    def _by_token(self, store: Store, given: str) -> Access:
        token = store.token(digest(given))
        if token is None or token.revoked or token.expires <= self.now():
            raise TokenRefused
        if token.used is None or token.used < self.now(timedelta(minutes=1)):
            store.token_used(token.id, self.now())
        if not token.owner:
            return Access(f"token {token.name}", {token.project: token.role})
        owner = store.user(token.owner)
        if owner is None or owner.disabled:
            raise TokenRefused
        return Access(owner.name, narrowed(store.roles_of(owner.name), token.role, token.project), owner=owner.name)

    def _by_session(self, store: Store, given: str) -> Access | None:
        session = store.session(digest(given)) if given else None
        if session is None:
            return None
        user = store.user(session.member)
        is_over = session.created < self.now(self.longest) or session.seen < self.now(self.idle)
        if is_over or user is None or user.disabled:
            store.end_session(session.digest)
            return None
        if session.seen < self.now(timedelta(minutes=1)):
            store.session_seen(session.digest, self.now())
        return Access(user.name, store.roles_of(user.name), True, user.name)

    # --- signing in and out ---

    def user_of(self, store: Store, request: Request, person: Person) -> User:
        """The user whom an identity provider vouches for. One who comes for the first time is added, and may nothing
        until an administrator says so."""
        with store.all_or_nothing("users"):
            user = store.user_of_subject(person.subject)
            if user is None:
                # A name that somebody here has already is theirs: only the subject says who is who.
                name = person.fallback if store.user(person.name) else person.name
                store.add_user(name, subject=person.subject, created=self.now())
                self.record(store, request, "identity provider", "add user", target=name)
                user = store.user_of_subject(person.subject)
        if user is None or user.disabled:
            raise SignInRefused
        return user

    def check_password(self, store: Store, request: Request, name: str, password: str) -> User:
        """The user, if name and password are right and not too many were wrong before."""
        name, address = shown(name), self.proxies.address_of(request)
        since = self.now(timedelta(minutes=self.attempts.minutes))
        by_name, by_address = {"actor": name}, {"address": address}
        tried = (
            (self.attempts.both, by_name | by_address),
            (self.attempts.address, by_address),
            (self.attempts.name, by_name),
        )
        if any(store.count_audit(REFUSED, since, **of) >= most for most, of in tried):
            if not store.count_audit(BLOCKED, since, **by_name, **by_address):
                self.record(store, request, name, BLOCKED, outcome="refused")
            raise SignInRefused(wait=self.attempts.minutes * 60)
        user = store.user(name)
        # The hash first, whatever else is wrong: how long it takes must not tell which users there are.
        if not is_right(password, user.password if user else "") or user is None or user.disabled:
            self.record(store, request, name, REFUSED, outcome="refused")
            raise SignInRefused
        return user

    def begin(self, store: Store, request: Request, user: User, response: Response) -> None:
        """A new session. The one that the browser had, whoever gave it, ends: nobody can have planted this one."""
        self.end(store, request)
        store.forget_sessions(self.now(self.longest))
        secret = secrets.token_urlsafe(32)
        store.add_session(LoginSession(digest(secret), user.name, self.now(), self.now()))
        self.record(store, request, user.name, SIGN_IN)
        response.set_cookie(
            self.cookie,
            secret,
            max_age=int(self.longest.total_seconds()),
            path="/",
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )

    def end(self, store: Store, request: Request, response: Response | None = None) -> None:
        if given := request.cookies.get(self.cookie):
            store.end_session(digest(given))
        if response is not None:
            response.delete_cookie(self.cookie, path="/", secure=self.is_secure, httponly=True, samesite="lax")

    def record_refusal(self, store: Store, request: Request, action: str, target: str) -> None:
        """So many and no more: nobody fills the log by guessing."""
        address = self.proxies.address_of(request)
        since = self.now(timedelta(minutes=self.attempts.minutes))
        if store.count_audit(action, since, address=address) < self.attempts.address:
            self.record(store, request, "", action, target=shown(target), outcome="refused")


def new_token(
    name: str, role: Role, project: str, created: datetime, lifetime: timedelta, owner: str = ""
) -> tuple[str, Token]:
    """A token as it is shown once, and as it is kept."""
    assert role in ROLES
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    when, until = (moment.isoformat(timespec="seconds") for moment in (created, created + lifetime))
    id = secrets.token_hex(4)
    return secret, Token(id, name, digest(secret), owner, role, project, when, until, None, None)


def digest(secret: str) -> str:
    """Of what is random and long; nothing slower is needed for that."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def shown(typed: str) -> str:
    """A name as it was typed, fit for the log."""
    return "".join(one for one in typed[:LONGEST_TYPED] if one.isprintable()).strip()


def local_address(given: str | None) -> str:
    """Where to go after signing in: an address of this server, whatever was asked for."""
    parts = urlsplit(given) if given and given.isprintable() and "\\" not in given else None
    if parts is None or parts.scheme or parts.netloc or not parts.path.startswith("/") or given is None:
        return "/runs"
    return "/runs" if given.startswith("//") or parts.path.startswith(("//", "/login")) else given
