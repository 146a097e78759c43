"""Users and tokens as pages: for administrators, and for everybody their own account."""

from __future__ import annotations

from pydantic import Field
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import FormRefused
from steelyard.records import Record
from steelyard.store import EVERY_PROJECT, ROLES, Role, Store, Token, User
from steelyard.web.accounts.access import Visit
from steelyard.web.accounts.administration import Administration, new_password
from steelyard.web.accounts.pages import accounts_of
from steelyard.web.accounts.sign_in import SignInRefused
from steelyard.web.forms import posted
from steelyard.web.rendering import page, page_routes
from steelyard.web.viewer import viewer_of

LONGEST = 1000


class UserInfo(Record):
    """A user; of password and provider only whether there is one."""

    name: str
    roles: dict[str, Role] = Field(description="by project; * stands for every project")
    has_password: bool
    has_provider: bool = Field(description="whether an identity provider vouched for the user")
    created: str
    disabled: str | None

    @classmethod
    def of(cls, user: User, roles: dict[str, Role]) -> UserInfo:
        return cls(
            name=user.name,
            roles=roles,
            has_password=bool(user.password),
            has_provider=bool(user.subject),
            created=user.created,
            disabled=user.disabled,
        )


class TokenInfo(Record):
    """A token without what it is recognised by."""

    id: str
    name: str
    owner: str = Field(description="whose it is; empty: a machine's")
    role: Role
    project: str
    created: str
    expires: str
    revoked: str | None
    used: str | None
    is_good: bool

    @classmethod
    def of(cls, token: Token, now: str) -> TokenInfo:
        kept = {name: value for name, value in token._asdict().items() if name != "digest"}
        return cls(**kept, is_good=token.revoked is None and token.expires > now)


class Secret(Record):
    """A secret that is shown once: a user's new password, or a token."""

    name: str
    text: str


class UsersPage(Record):
    users: tuple[UserInfo, ...]
    tokens: tuple[TokenInfo, ...]
    projects: tuple[str, ...] = Field(description="where roles can be given here")
    secret: Secret | None = None


class AccountPage(Record):
    name: str
    roles: dict[str, Role]
    has_password: bool
    tokens: tuple[TokenInfo, ...]
    secret: Secret | None = None
    changed: bool = Field(default=False, description="whether the password was just changed")


def visit_of(request: Request) -> Visit:
    visit = viewer_of(request).visit
    assert visit is not None
    return visit


def administration(request: Request, store: Store) -> Administration:
    """What whoever asks may change, on the whole store: accounts belong to no project."""
    viewer = viewer_of(request)
    return Administration(store, accounts_of(viewer).clock(), visit_of(request).access)


# --- users, for administrators ---------------------------------------------------------------------


def users(request: Request) -> Response:
    return _users(request)


def _users(request: Request, secret: Secret | None = None) -> Response:
    with viewer_of(request).whole_store() as store:
        found = administration(request, store)
        model = UsersPage(
            users=tuple(UserInfo.of(user, roles) for user, roles in found.users()),
            tokens=tuple(TokenInfo.of(token, found.time) for token in found.tokens() if _is_listed(found, token)),
            projects=_projects(request, store),
            secret=secret,
        )
    return page(request, "users.html", model, roles=ROLES)


def _is_listed(found: Administration, token: Token) -> bool:
    return not token.owner or found.access is None or found.access.may("add user")


def _projects(request: Request, store: Store) -> tuple[str, ...]:
    allowed = visit_of(request).access.projects("set role")
    known = {*store.projects(), *(project for user in store.users() for project in store.roles_of(user.name))}
    named = known | {EVERY_PROJECT} if allowed is None else allowed
    return tuple(sorted(named, key=lambda project: (project != EVERY_PROJECT, project)))


def add_user(request: Request, form: FormData) -> Response:
    name, password = text(form, "name"), new_password() if form.get("password") else None
    visit_of(request).target = name
    with viewer_of(request).whole_store() as store:
        administration(request, store).add_user(name, password, role_of(form, "role"), project_of(form))
    return _users(request, Secret(name=name, text=password)) if password else RedirectResponse("/users", 303)


def set_role(request: Request, form: FormData) -> Response:
    name, role, project = text(form, "name"), role_of(form, "role"), project_of(form)
    visit = visit_of(request)
    visit.target, visit.project = f"{name}: {role or 'none'}", project
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_role(name, project, role)
    return RedirectResponse("/users", 303)


def disable(request: Request, form: FormData) -> Response:
    return _set_disabled(request, form, True)


def enable(request: Request, form: FormData) -> Response:
    return _set_disabled(request, form, False)


def _set_disabled(request: Request, form: FormData, disabled: bool) -> Response:
    name = visit_of(request).target = text(form, "name")
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_disabled(name, disabled)
    return RedirectResponse("/users", 303)


def reset_password(request: Request, form: FormData) -> Response:
    name, password = text(form, "name"), new_password()
    visit_of(request).target = name
    with viewer_of(request).whole_store() as store:
        administration(request, store).set_password(name, password)
    return _users(request, Secret(name=name, text=password))


def create_machine_token(request: Request, form: FormData) -> Response:
    return _users(request, _created(request, form, ""))


# --- one's own account -----------------------------------------------------------------------------


def account(request: Request) -> Response:
    return _account(request, changed="changed" in request.query_params)


def _account(request: Request, secret: Secret | None = None, changed: bool = False) -> Response:
    access = visit_of(request).access
    with viewer_of(request).whole_store() as store:
        found = administration(request, store)
        user = store.user(access.owner) if access.owner else None
        own = (token for token in found.tokens() if access.owner and token.owner == access.owner)
        model = AccountPage(
            name=access.name,
            roles=dict(access.roles),
            has_password=bool(user and user.password),
            tokens=tuple(TokenInfo.of(token, found.time) for token in own),
            secret=secret,
            changed=changed,
        )
    return page(request, "account.html", model, roles=ROLES)


def change_password(request: Request, form: FormData) -> Response:
    """With the old one: a browser that somebody left open does not give the account away."""
    viewer, access = viewer_of(request), visit_of(request).access
    if not access.is_browser:
        raise HTTPException(403, "a token cannot change a password; sign in with a browser")
    accounts, fresh = accounts_of(viewer), str(form.get("new", ""))
    visit_of(request).target = access.owner
    if fresh != form.get("again"):
        raise FormRefused("the two passwords differ", "passwords_differ", field="again")
    with viewer.whole_store() as store:
        try:
            user = accounts.check_password(store, request, access.owner, str(form.get("old", "")))
        except SignInRefused as refused:
            if refused.wait:
                raise FormRefused("too many wrong passwords; try again later", "too_many_tries", field="old") from None
            raise FormRefused("that is not your password", "wrong_password", field="old") from None
        administration(request, store).set_password(user.name, fresh)
        response = RedirectResponse("/account?changed=1", 303)
        accounts.begin(store, request, user, response)
    return response


def create_token(request: Request, form: FormData) -> Response:
    owner = visit_of(request).access.owner
    if not owner:
        raise HTTPException(403, "a token cannot create tokens; sign in with a browser")
    return _account(request, _created(request, form, owner))


def _created(request: Request, form: FormData, owner: str) -> Secret:
    name, project, role = text(form, "name"), project_of(form), role_of(form, "role")
    if role is None:
        raise FormRefused("say what the token may do", "token_role", field="role")
    given = str(form.get("days", ""))
    days = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    visit = visit_of(request)
    visit.target, visit.project = f"{name} ({role})", project
    with viewer_of(request).whole_store() as store:
        secret, token = administration(request, store).create_token(name, role, project, days, owner)
    visit.target = f"{token.id} {name} ({role})"
    return Secret(name=name, text=secret)


def revoke_token(request: Request, form: FormData) -> Response:
    visit = visit_of(request)
    visit.target = text(form, "id")[:20]
    with viewer_of(request).whole_store() as store:
        token = administration(request, store).revoke_token(text(form, "id"))
    visit.target, visit.project = f"{token.id} {token.name}", token.project
    return RedirectResponse("/account" if token.owner and token.owner == visit.access.owner else "/users", 303)


# --- forms -----------------------------------------------------------------------------------------


def text(form: FormData, name: str) -> str:
    return str(form.get(name, "")).encode("utf-8", "replace").decode().strip()[:LONGEST]


def role_of(form: FormData, name: str) -> Role | None:
    given = text(form, name)
    if given in ("", "none"):
        return None
    for role in ROLES:
        if given == role:
            return role
    problem = f"there is no role {given!r}; there are {', '.join(ROLES)}"
    raise FormRefused(problem, "no_role", field=name, role=given)


def project_of(form: FormData) -> str:
    if "project" not in form:
        raise FormRefused("name the project; * stands for every project", "no_project", field="project")
    return text(form, "project")


routes = [
    *page_routes("/users", users),
    Route("/users", posted(add_user), methods=["POST"]),
    Route("/users/role", posted(set_role), methods=["POST"]),
    Route("/users/disable", posted(disable), methods=["POST"]),
    Route("/users/enable", posted(enable), methods=["POST"]),
    Route("/users/password", posted(reset_password), methods=["POST"]),
    Route("/users/tokens", posted(create_machine_token), methods=["POST"]),
    *page_routes("/account", account),
    Route("/account/password", posted(change_password), methods=["POST"]),
    Route("/account/tokens", posted(create_token), methods=["POST"]),
    Route("/account/tokens/revoke", posted(revoke_token), methods=["POST"]),
]
