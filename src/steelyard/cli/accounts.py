"""`users` and `tokens`: who may use a team's server."""

from __future__ import annotations

import getpass
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, console
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.store import Role, Store
    from steelyard.web.accounts.administration import Administration

users = typer.Typer(
    help="Add users of a team's server, and say what they may do.", no_args_is_help=True, rich_markup_mode=None
)
tokens = typer.Typer(
    help="Create, list and revoke tokens, with which programs use a team's server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
PASSWORD_VARIABLE = "STEELYARD_PASSWORD"


class RoleName(StrEnum):
    """Each may do what those before it may."""

    read = "read"
    label = "label"
    run = "run"
    admin = "admin"

    @property
    def role(self) -> Role:
        return self.value


class RoleChoice(StrEnum):
    """The same, and none: take it away."""

    read = "read"
    label = "label"
    run = "run"
    admin = "admin"
    none = "none"


UserName = Annotated[str, typer.Argument(help="Name of the user.")]
ProjectOption = Annotated[str, typer.Option(help="In which project; default: in every one.")]


def open_store(config: Path | None, store: str | None) -> Store:
    from steelyard.settings import Settings
    from steelyard.store import Store

    return Store.open(Settings.load(config).store_location(store))


def _administration(store: Store) -> Administration:
    from steelyard.web.accounts.administration import Administration

    return Administration(store, datetime.now(UTC))


def _log(store: Store, action: str, target: str, project: str = "") -> None:
    from steelyard.store import AuditEntry

    entry = AuditEntry(
        time=_administration(store).time, actor=f"command line: {getpass.getuser()}", action=action, target=target
    )
    store.add_audit(entry.model_copy(update={"project": project}))


def _asked_password(name: str, config: Path | None) -> str:
    """From the environment, a pipe, or typed twice; never from the command line, which others can see."""
    from steelyard.settings import Settings

    if (given := Settings.load(config).environment.get(PASSWORD_VARIABLE)) is None:
        if sys.stdin.isatty():
            given = getpass.getpass(f"Password for {name}: ")
            if given != getpass.getpass("Once more: "):
                raise ConfigError("the two passwords differ")
        else:
            given = sys.stdin.readline().rstrip("\n")
    return given


@users.command("add")
def add(
    name: UserName,
    role: Annotated[RoleName | None, typer.Option(help="What the user may do; default: nothing yet.")] = None,
    project: ProjectOption = "*",
    no_password: Annotated[
        bool, typer.Option("--no-password", help="For users whom an identity provider or a proxy signs in.")
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Add a user. The password is asked for, or read from STEELYARD_PASSWORD or standard input.

    Example:  steelyard users add mei --role run --project shop
    """
    with open_store(config, store) as opened:
        if opened.user(name):
            raise ConfigError(f"there is a user {name!r} already")
        password = None if no_password else _asked_password(name, config)
        _administration(opened).add_user(name, password, role.role if role else None, project)
        _log(opened, "add user", f"{name} ({role.value})" if role else name, project if role else "")
    print(f"added {name}")


@users.command("list")
def list_users(config: ConfigOption = None, store: StoreOption = None) -> None:
    """List users with their roles by project.

    Example:  steelyard users list
    """
    from rich.table import Table

    with open_store(config, store) as opened:
        table = Table("user", "roles", "signs in by", "since")
        for user in opened.users():
            roles = ", ".join(f"{role} in {project or '(no project)'}" for project, role in _roles(opened, user.name))
            way = "password" if user.password else "provider or proxy"
            table.add_row(user.name, roles or "none", "disabled" if user.disabled else way, user.created[:10])
    console().print(table)


def _roles(store: Store, name: str) -> list[tuple[str, str]]:
    from steelyard.store import EVERY_PROJECT

    found = store.roles_of(name).items()
    return [("every project" if project == EVERY_PROJECT else project, role) for project, role in found]


@users.command("role")
def role(
    name: UserName,
    role: Annotated[RoleChoice, typer.Argument(help="read, label, run or admin; none removes the role.")],
    project: ProjectOption = "*",
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Set the role of a user in a project, or in every one.

    Example:  steelyard users role mei label --project shop
    """
    with open_store(config, store) as opened:
        chosen = None if role is RoleChoice.none else RoleName(role.value).role
        _administration(opened).set_role(name, project, chosen)
        _log(opened, "set role", f"{name}: {role.value}", project)
    print(f"{name}: {role.value} in {'every project' if project == '*' else project}")


@users.command("disable")
def disable(
    name: UserName,
    undo: Annotated[bool, typer.Option("--undo", help="Let the user in again.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Disable a user: ends every session, and no token of theirs works.

    Example:  steelyard users disable mei
    """
    with open_store(config, store) as opened:
        _administration(opened).set_disabled(name, not undo)
        _log(opened, "enable user" if undo else "disable user", name)
    print(f"{'enabled' if undo else 'disabled'} {name}")


@users.command("password")
def password(name: UserName, config: ConfigOption = None, store: StoreOption = None) -> None:
    """Set a new password, which ends every session of the user.

    Example:  steelyard users password mei
    """
    with open_store(config, store) as opened:
        _administration(opened).user(name)
        _administration(opened).set_password(name, _asked_password(name, config))
        _log(opened, "set password", name)
    print(f"{name} has a new password")


@tokens.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What the token is for, e.g. nightly-ci.")],
    role: Annotated[RoleName, typer.Option(help="Role of the token: the most that it may do.")],
    project: Annotated[str, typer.Option(help="In which project; * for every one.")],
    user: Annotated[str | None, typer.Option(help="Whose token it is; default: a machine's.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3660, help="For how many days.")] = 90,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Create a token and print it. It is shown this once; only its hash is kept.

    Example:  steelyard tokens create nightly-ci --role run --project shop
    """
    with open_store(config, store) as opened:
        administration = _administration(opened)
        if user is not None:
            administration.user(user)
        secret, token = administration.create_token(name, role.role, project, days, user or "")
        _log(opened, "create token", f"{token.id} {name} ({role.value})", project)
    print(f"token {token.id}, good until {token.expires[:10]}; it is not shown again", file=sys.stderr)
    print(secret)


@tokens.command("list")
def list_tokens(config: ConfigOption = None, store: StoreOption = None) -> None:
    """List tokens: what they may do, until when, when they were last used.

    Example:  steelyard tokens list
    """
    from rich.table import Table

    with open_store(config, store) as opened:
        now = _administration(opened).time
        table = Table("id", "name", "whose", "may", "until", "last used")
        for token in opened.tokens():
            until = "revoked" if token.revoked else "expired" if token.expires <= now else token.expires[:10]
            may = f"{token.role} in {'every project' if token.project == '*' else token.project}"
            table.add_row(token.id, token.name, token.owner or "machine", may, until, (token.used or "never")[:16])
    console().print(table)


@tokens.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(help="The id of the token, as `tokens list` shows it.")],
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Revoke a token, at once.

    Example:  steelyard tokens revoke 1a2b3c4d
    """
    with open_store(config, store) as opened:
        _administration(opened).revoke_token(id)
        _log(opened, "revoke token", id)
    print(f"revoked {id}")
