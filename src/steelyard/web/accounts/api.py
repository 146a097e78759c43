"""Users, tokens and the audit log over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.exceptions import HTTPException

from steelyard.records import Record
from steelyard.store import EVERY_PROJECT, AuditEntry, Role
from steelyard.web.accounts.administration import MOST_DAYS, new_password
from steelyard.web.accounts.pages import read_audit
from steelyard.web.accounts.users import TokenInfo, UserInfo, administration, visit_of
from steelyard.web.api.bodies import Body
from steelyard.web.viewer import viewer_of

router = APIRouter()
NAME = Field(min_length=1, max_length=200)
PROJECT = Field(default=EVERY_PROJECT, max_length=200, description="* for every project")


class AuditLog(Record):
    entries: tuple[AuditEntry, ...]


class Users(Record):
    users: tuple[UserInfo, ...]


class UserBody(Body):
    name: str = NAME


class NewUserBody(UserBody):
    """A user to add; without a role, nothing is allowed yet."""

    role: Role | None = None
    project: str = PROJECT
    password: bool = Field(
        default=True, description="whether to make a password; false: an identity provider or a proxy signs the user in"
    )


class RoleBody(UserBody):
    """What a user may do in a project; null takes it away."""

    role: Role | None
    project: str = PROJECT


class NewPassword(Record):
    """A password is shown in this one answer."""

    name: str
    password: str | None


class TokenBody(Body):
    """A token to create."""

    name: str = NAME
    role: Role = Field(description="the most that it may do")
    project: str = PROJECT
    days: int = Field(default=90, ge=1, le=MOST_DAYS)


class NewToken(Record):
    """A token is shown in this one answer."""

    token: str
    about: TokenInfo


class Tokens(Record):
    tokens: tuple[TokenInfo, ...]


class Changed(Record):
    name: str


@router.get("/audit", tags=["audit"])
def audit(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> AuditLog:
    """Who did what, newest first: in the projects that you are an admin of."""
    return AuditLog(entries=tuple(read_audit(viewer_of(request), limit, offset)))


# --- users -----------------------------------------------------------------------------------------


@router.get("/users", tags=["users"])
def users(request: Request) -> Users:
    """Users with their roles: all, or the members of the projects that you are an admin of."""
    with viewer_of(request).whole_store() as store:
        return Users(users=tuple(UserInfo.of(*one) for one in administration(request, store).users()))


@router.post("/users", tags=["users"], status_code=201)
def add_user(request: Request, body: NewUserBody) -> NewPassword:
    """Add a user."""
    visit_of(request).target = body.name
    password = new_password() if body.password else None
    with viewer_of(request).whole_store() as store:
        administration(request, store).add_user(body.name, password, body.role, body.project)
    return NewPassword(name=body.name, password=password)


@router.put("/users/role", tags=["users"])
def set_role(request: Request, body: RoleBody) -> Changed:
    """Set the role of a user in a project, or in every one."""
    visit = visit_of(request)
    visit.target, visit.project = f"{body.name}: {body.role or 'none'}", body.project
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_role(body.name, body.project, body.role)
    return Changed(name=body.name)


@router.post("/users/disable", tags=["users"])
def disable(request: Request, body: UserBody) -> Changed:
    """Keep a user out: every session ends, and no token of theirs works."""
    return _set_disabled(request, body.name, True)


@router.post("/users/enable", tags=["users"])
def enable(request: Request, body: UserBody) -> Changed:
    """Let a user in again."""
    return _set_disabled(request, body.name, False)


def _set_disabled(request: Request, name: str, disabled: bool) -> Changed:
    visit_of(request).target = name
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_disabled(name, disabled)
    return Changed(name=name)


@router.post("/users/password", tags=["users"])
def reset_password(request: Request, body: UserBody) -> NewPassword:
    """Give a user a new password, which ends every session of theirs."""
    visit_of(request).target = body.name
    password = new_password()
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_password(body.name, password)
    return NewPassword(name=body.name, password=password)


# --- tokens ----------------------------------------------------------------------------------------


@router.get("/tokens", tags=["tokens"])
def tokens(request: Request) -> Tokens:
    """The tokens that you may revoke: your own, and those of the projects that you are an admin of."""
    with viewer_of(request).whole_store() as store:
        found = administration(request, store)
        return Tokens(tokens=tuple(TokenInfo.of(token, found.time) for token in found.tokens()))


@router.post("/tokens", tags=["tokens"], status_code=201)
def create_token(request: Request, body: TokenBody) -> NewToken:
    """Create a token of your own. Only a browser that is signed in may: a token cannot create tokens."""
    if not (owner := visit_of(request).access.owner):
        raise HTTPException(403, "a token cannot create tokens; sign in with a browser")
    return _created(request, body, owner)


@router.post("/users/tokens", tags=["tokens"], status_code=201)
def create_machine_token(request: Request, body: TokenBody) -> NewToken:
    """Create a token that belongs to nobody, for a machine. A token cannot create tokens."""
    return _created(request, body, "")


def _created(request: Request, body: TokenBody, owner: str) -> NewToken:
    visit = visit_of(request)
    visit.target, visit.project = f"{body.name} ({body.role})", body.project
    with viewer_of(request).whole_store() as store:
        found = administration(request, store)
        secret, token = found.create_token(body.name, body.role, body.project, body.days, owner)
        visit.target = f"{token.id} {token.name} ({token.role})"
        return NewToken(token=secret, about=TokenInfo.of(token, found.time))


@router.delete("/tokens/{token}", tags=["tokens"])
def revoke_token(request: Request, token: Annotated[str, Path(max_length=20)]) -> Changed:
    """Revoke a token, at once."""
    visit = visit_of(request)
    visit.target = token
    with viewer_of(request).whole_store() as store:
        revoked = administration(request, store).revoke_token(token)
    visit.project = revoked.project
    return Changed(name=revoked.name)
