"""The signed-in user and their permissions by project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.errors import ConfigError
from steelyard.store import EVERY_PROJECT, ROLES, Role
from steelyard.web.accounts.permissions import EVERYWHERE, ROLE_OF


@dataclass(frozen=True)
class Access:
    """Somebody who is signed in. `roles` are by project; `*` stands for every project."""

    name: str
    roles: Mapping[str, Role]
    is_browser: bool = False
    """Whether the browser says so by itself (cookie, proxy), also on requests that another site made it send."""
    owner: str = ""
    """The user who asks, also by a token; empty for a machine."""

    def projects(self, action: str) -> frozenset[str] | None:
        """Where they may do that; None: everywhere."""
        role = ROLE_OF[action]
        if role is None:
            return frozenset()
        least = ROLES.index(role)
        found = frozenset(name for name, has in self.roles.items() if ROLES.index(has) >= least)
        return None if EVERY_PROJECT in found else found

    def may(self, action: str, project: str | None = None) -> bool:
        """In this project, or, where none is named, in any."""
        if ROLE_OF[action] is None:
            return True
        projects = self.projects(action)
        if projects is None or action in EVERYWHERE:
            return projects is None
        return bool(projects) if project is None else project in projects


def narrowed(roles: Mapping[str, Role], most: Role, project: str) -> dict[str, Role]:
    """What is left of a user's roles for a token of theirs: at most this role, and only in this project."""

    def lesser(role: Role) -> Role:
        return min(role, most, key=ROLES.index)

    if project == EVERY_PROJECT:
        return {name: lesser(role) for name, role in roles.items()}
    own = [role for name, role in roles.items() if name in (project, EVERY_PROJECT)]
    return {project: lesser(max(own, key=ROLES.index))} if own else {}


@dataclass
class Visit:
    """A request of a signed-in user; handlers add what the audit log should record about it."""

    access: Access
    action: str
    target: str = ""
    project: str = ""
    visible: frozenset[str] | None = field(default_factory=frozenset)

    def project_of_new_run(self, given: str | None) -> str:
        """The project that a new run belongs to: as named, else the only one there is."""
        projects = self.access.projects("start")
        if given is None and projects is not None and len(projects) == 1:
            (given,) = projects
        if given is None and projects is None:
            given = ""
        if given is None:
            raise ConfigError(f"name the project of the run: {', '.join(sorted(projects or ()))}")
        if projects is not None and given not in projects:
            raise ConfigError(f"there is no project {given!r} in which you may start runs")
        self.project = given
        return given
