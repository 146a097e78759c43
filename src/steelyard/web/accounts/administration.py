"""Users, their roles and tokens, as administrators change them: by command line, page and API alike."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.exceptions import HTTPException

from steelyard.errors import FormRefused
from steelyard.store import EVERY_PROJECT, ROLES, Role, Store, Token, User
from steelyard.web.accounts.access import Access
from steelyard.web.accounts.passwords import check_strength, hashed
from steelyard.web.accounts.sign_in import new_token

MOST_DAYS = 3660


@dataclass(frozen=True)
class Administration:
    """Changes of users, roles and tokens that somebody may make; without `access` (the command line), all of them."""

    store: Store
    now: datetime
    access: Access | None = None

    @property
    def time(self) -> str:
        return self.now.isoformat(timespec="seconds")

    # --- users ---

    def users(self) -> list[tuple[User, dict[str, Role]]]:
        """Users with their roles; an administrator of some projects sees the members of these, as such."""
        projects = self.access.projects("read users") if self.access else None
        found = []
        for user in self.store.users():
            roles = self.store.roles_of(user.name)
            if projects is not None:
                roles = {project: role for project, role in roles.items() if project in projects}
            if roles or projects is None:
                found.append((user, roles))
        return found

    def user(self, name: str) -> User:
        if (found := self.store.user(name)) is None:
            raise FormRefused(f"there is no user {name!r}", "no_user", field="name", name=name)
        return found

    def add_user(self, name: str, password: str | None, role: Role | None = None, project: str = EVERY_PROJECT) -> None:
        """Without a password the user signs in at an identity provider or a proxy."""
        if password is not None:
            check_strength(password, name)
        if role is not None:
            self._check_project("set role", project)
        kept = hashed(password) if password is not None else ""
        with self.store.all_or_nothing("users"):
            self.store.add_user(name, password=kept, created=self.time)
            if role is not None:
                self.store.set_role(name, project, role)

    def set_role(self, name: str, project: str, role: Role | None) -> None:
        self._check_project("set role", project)
        self.user(name)
        with self.store.all_or_nothing("users"):
            if project == EVERY_PROJECT and role != "admin":
                self._check_another_admin(name)
            self.store.set_role(name, project, role)

    def set_disabled(self, name: str, disabled: bool) -> None:
        self.user(name)
        with self.store.all_or_nothing("users"):
            if disabled:
                self._check_another_admin(name)
            self.store.set_disabled(name, self.time if disabled else None)

    def set_password(self, name: str, password: str) -> None:
        self.user(name)
        check_strength(password, name)
        self.store.set_password(name, hashed(password))

    # --- tokens ---

    def tokens(self) -> list[Token]:
        """Those that whoever asks may revoke, newest first."""
        return [token for token in reversed(self.store.tokens()) if self._may_revoke(token)]

    def create_token(self, name: str, role: Role, project: str, days: int, owner: str = "") -> tuple[str, Token]:
        """A token of this user, or of a machine; the first of the two is shown this once."""
        if not 1 <= days <= MOST_DAYS:
            raise FormRefused(f"a token is good for 1 to {MOST_DAYS} days", "token_days", field="days", most=MOST_DAYS)
        if self.access:
            if not self.access.is_browser:
                # Else whoever steals a token makes others that outlive it.
                raise HTTPException(403, "a token cannot create tokens; sign in with a browser")
            if owner:
                self._check_own(owner, role, project)
            else:
                self._check_project("create machine token", project)
        secret, token = new_token(name, role, project, self.now, timedelta(days=days), owner)
        self.store.add_token(token)
        return secret, token

    def revoke_token(self, id: str) -> Token:
        found = next((token for token in self.store.tokens() if token.id == id), None)
        if found is None or not self._may_revoke(found) or not self.store.revoke_token(id, self.time):
            raise FormRefused(f"there is no token {id!r} that is still valid", "no_token")
        return found

    def _may_revoke(self, token: Token) -> bool:
        if self.access is None:
            return True
        if token.owner and token.owner == self.access.owner:
            return True
        if token.owner:
            return self.access.may("add user")
        projects = self.access.projects("create machine token")
        return projects is None or token.project in projects

    def _check_own(self, owner: str, role: Role, project: str) -> None:
        assert self.access is not None
        if owner != self.access.owner:
            raise HTTPException(403, "you may create tokens for yourself only")
        own = [has for name, has in self.access.roles.items() if project in (name, EVERY_PROJECT) or name == "*"]
        if not own or ROLES.index(role) > max(map(ROLES.index, own)):
            raise FormRefused("a token may not do more than you may", "token_too_much", field="role")

    # --- what would go too far ---

    def _check_project(self, action: str, project: str) -> None:
        projects = self.access.projects(action) if self.access else None
        if projects is not None and project not in projects:
            raise FormRefused("you are not an administrator of that project", "not_your_project", field="project")

    def _check_another_admin(self, name: str) -> None:
        """Refuse to remove the last administrator."""
        if self.store.roles_of(name).get(EVERY_PROJECT) != "admin":
            return
        others = (user for user in self.store.users() if user.name != name and not user.disabled)
        if not any(self.store.roles_of(user.name).get(EVERY_PROJECT) == "admin" for user in others):
            problem = f"{name} is the only administrator of every project; make another one first"
            raise FormRefused(problem, "last_admin", name=name)


def new_password() -> str:
    """A random password, shown once."""
    return secrets.token_urlsafe(12)
