"""The accounts of a team's server: users, their roles by project, tokens, sessions, the audit log.

Secrets are never stored: of passwords a slow hash, of tokens and sessions, which are random, their SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

from steelyard.errors import FormRefused
from steelyard.records import Record
from steelyard.store.database import Database, insert, upsert

Role = Literal["read", "label", "run", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
EVERY_PROJECT = "*"
LONGEST_NAME = 200
ADD_USER = insert("users", "name password subject created")
SET_ROLE = upsert("memberships", "member project role", "member project")
TOKEN = "id name digest owner role project created expires revoked used"
ADD_TOKEN = insert("tokens", TOKEN)
ADD_SESSION = insert("sessions", "digest member created seen")
AUDIT = "time actor address action target project outcome"
ADD_AUDIT = insert("audit", AUDIT)


class User(NamedTuple):
    """Somebody who may sign in: by a password, or as the `subject` of an identity provider. Both may be empty."""

    name: str
    password: str
    subject: str
    created: str
    disabled: str | None


class Token(NamedTuple):
    """What a program signs in with. One without an owner belongs to a machine; one with an owner never may more than
    the owner may."""

    id: str
    name: str
    digest: str
    owner: str
    role: Role
    project: str
    created: str
    expires: str
    revoked: str | None
    used: str | None


class LoginSession(NamedTuple):
    """A browser that is signed in."""

    digest: str
    member: str
    created: str
    seen: str


class AuditEntry(Record):
    """Who did what, when, from where, and what came of it."""

    time: str
    actor: str
    address: str = ""
    action: str
    target: str = ""
    project: str = ""
    outcome: str = "done"


class AccountTable(Database):
    """The accounts of a store. Times are ISO 8601 in UTC, so that they sort as texts."""

    # --- users and what they may ---

    def add_user(self, name: str, *, password: str = "", subject: str = "", created: str) -> None:
        check_name(name, "user")
        with self.all_or_nothing("users"):
            if self.user(name):
                raise FormRefused(f"there is a user {name!r} already", "user_exists", field="name", name=name)
            self.write(ADD_USER, name, password, subject, created)

    def user(self, name: str) -> User | None:
        return next(map(User._make, self.query(f"{GET_USERS} WHERE name = ?", name)), None)

    def user_of_subject(self, subject: str) -> User | None:
        found = self.query(f"{GET_USERS} WHERE subject = ? AND subject <> ''", subject)
        return next(map(User._make, found), None)

    def users(self) -> list[User]:
        return [User._make(row) for row in self.query(f"{GET_USERS} ORDER BY name")]

    def set_password(self, name: str, password: str) -> None:
        """Whoever is signed in with the old one is not any more."""
        with self.all_or_nothing("users"):
            self.write("UPDATE users SET password = ? WHERE name = ?", password, name)
            self.end_sessions(name)

    def set_disabled(self, name: str, since: str | None) -> None:
        with self.all_or_nothing("users"):
            self.write("UPDATE users SET disabled = ? WHERE name = ?", since, name)
            self.end_sessions(name)

    def set_role(self, name: str, project: str, role: Role | None) -> None:
        """What a user may do in a project, or in every one (`*`); None takes it away."""
        check_name(project, "project", may_be_empty=True)
        if role is None:
            self.write("DELETE FROM memberships WHERE member = ? AND project = ?", name, project)
        else:
            self.write(SET_ROLE, name, project, role)

    def roles_of(self, name: str) -> dict[str, Role]:
        """What a user may do, by project."""
        return dict(self.query("SELECT project, role FROM memberships WHERE member = ? ORDER BY project", name))

    # --- tokens ---

    def add_token(self, token: Token) -> None:
        check_name(token.name, "token")
        check_name(token.project, "project", may_be_empty=True)
        self.write(ADD_TOKEN, *token)

    def token(self, digest: str) -> Token | None:
        return next(map(Token._make, self.query(f"{GET_TOKENS} WHERE digest = ?", digest)), None)

    def tokens(self) -> list[Token]:
        return [Token._make(row) for row in self.query(f"{GET_TOKENS} ORDER BY created, id")]

    def revoke_token(self, id: str, when: str) -> bool:
        """Says whether there was such a token, still good."""
        return self.write("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", when, id) > 0

    def token_used(self, id: str, when: str) -> None:
        self.write("UPDATE tokens SET used = ? WHERE id = ?", when, id)

    # --- sessions ---

    def add_session(self, session: LoginSession) -> None:
        self.write(ADD_SESSION, *session)

    def session(self, digest: str) -> LoginSession | None:
        found = self.query("SELECT digest, member, created, seen FROM sessions WHERE digest = ?", digest)
        return next(map(LoginSession._make, found), None)

    def session_seen(self, digest: str, when: str) -> None:
        self.write("UPDATE sessions SET seen = ? WHERE digest = ?", when, digest)

    def end_session(self, digest: str) -> None:
        self.write("DELETE FROM sessions WHERE digest = ?", digest)

    def end_sessions(self, member: str) -> None:
        self.write("DELETE FROM sessions WHERE member = ?", member)

    def forget_sessions(self, created_before: str) -> None:
        self.write("DELETE FROM sessions WHERE created < ?", created_before)

    # --- the audit log ---

    def add_audit(self, entry: AuditEntry) -> None:
        self.write(ADD_AUDIT, *(getattr(entry, name) for name in AUDIT.split()))

    def audit_entries(
        self, *, projects: Iterable[str] | None = None, limit: int = 100, offset: int = 0
    ) -> list[AuditEntry]:
        """The log, newest first; of some projects, or of all with what belongs to none."""
        named = list(projects) if projects is not None else None
        if named == []:
            return []
        where = f"WHERE project IN ({', '.join('?' * len(named))})" if named is not None else ""
        sql = f"SELECT {', '.join(AUDIT.split())} FROM audit {where} ORDER BY id DESC LIMIT ? OFFSET ?"
        rows = self.query(sql, *(named or ()), limit, offset)
        return [AuditEntry(**dict(zip(AUDIT.split(), row, strict=True))) for row in rows]

    def count_audit(self, action: str, since: str, **wanted: str) -> int:
        """How often something was logged lately, of one `actor`, from one `address`."""
        where = "".join(f" AND {name} = ?" for name in wanted)
        sql = f"SELECT count(*) FROM audit WHERE action = ? AND time >= ?{where}"
        (found,) = next(self.query(sql, action, since, *wanted.values()))
        return int(found)


GET_USERS = f"SELECT {', '.join(User._fields)} FROM users"
GET_TOKENS = f"SELECT {', '.join(Token._fields)} FROM tokens"


def check_name(name: Any, what: str, *, may_be_empty: bool = False) -> None:
    """Names stand in tables, logs and addresses: one line, nothing invisible."""
    if not isinstance(name, str) or not (name or may_be_empty) or len(name) > LONGEST_NAME:
        problem = f"the name of a {what} has 1 to {LONGEST_NAME} characters"
        raise FormRefused(problem, "name_length", most=LONGEST_NAME)
    if not name.isprintable() or name != name.strip():
        problem = f"{name!r} is not a name for a {what}: it holds characters that cannot be seen"
        raise FormRefused(problem, "name_characters", name=repr(name))
