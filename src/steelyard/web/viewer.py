"""What every handler of the viewer gets: the settings, the store, the language, the token, the jobs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import HTTPConnection

from steelyard.records import Language
from steelyard.settings import Settings
from steelyard.store import Store, StoreLocation, files_of
from steelyard.web.accounts.access import Visit
from steelyard.web.accounts.sign_in import Accounts
from steelyard.web.cache import ResultCache
from steelyard.web.jobs import Evaluations, Jobs
from steelyard.web.trials import Trials

MEGABYTE = 1 << 20
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Sizes:
    """How many bytes a request may have. Files are passed on to disk; everything else is held in memory."""

    upload: int = 512 * MEGABYTE
    body: int = 32 * MEGABYTE
    unpacked: int = 4096 * MEGABYTE
    """The same for what a gzipped file holds: a few kilobytes can unpack to more than any disk."""


@dataclass(frozen=True)
class Viewer:
    """One viewer over one store. `hosts` are the names it may be called by; empty means any, which needs a token."""

    config: Settings
    store_location: StoreLocation
    language: Language | None = None
    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = LOOPBACK
    accounts: Accounts | None = None
    """How people sign in to a team's server; None: this is one person's viewer."""
    visit: Visit | None = None
    """On a team's server: the request that this viewer is for."""
    sizes: Sizes = field(default_factory=Sizes)
    cache: ResultCache = field(default_factory=ResultCache, repr=False)
    evaluations: Evaluations = field(default_factory=Evaluations, repr=False)
    trials: Trials = field(default_factory=Trials, repr=False)
    jobs: Jobs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Runs at work go on whatever becomes of the rights of whoever started them.
        object.__setattr__(self, "jobs", Jobs(self.whole_store))

    def store(self) -> Store:
        """The store, opened for one request; close it (`with`) when the request is done.

        Handlers are plain functions, which run in a thread of their own: the database never holds up the others. On a
        team's server it holds only the projects in which whoever asks may do what they ask for: none, if nobody asked.
        """
        store = self.whole_store()
        if self.accounts:
            store.visible = self.visit.visible if self.visit else frozenset()
        return store

    def whole_store(self) -> Store:
        """The same with everything in it: for what is done on nobody's behalf."""
        return Store.open(self.store_location)

    def shown_to(self, visit: Visit) -> Viewer:
        """This viewer for one request; jobs and what is cached are shared."""
        shown = copy.copy(self)
        object.__setattr__(shown, "visit", visit)
        return shown

    @property
    def person(self) -> str | None:
        """Who is signed in; None: nobody has to."""
        return self.visit.access.name if self.visit else None

    @property
    def own_projects(self) -> list[str] | None:
        """Where whoever asks may start runs; None: anywhere."""
        projects = self.visit.access.projects("start") if self.visit else None
        return None if projects is None else sorted(projects)

    def may(self, action: str, project: str | None = None) -> bool:
        """Whether whoever asks may do that, in this project or in any. Without accounts, everybody may everything."""
        if self.accounts is None:
            return True
        return self.visit is not None and self.visit.access.may(action, project)

    @property
    def uploads(self) -> Path:
        """Where uploaded samples are kept, so that their runs can be resumed."""
        return files_of(self.store_location, "uploads")


def viewer_of(connection: HTTPConnection) -> Viewer:
    viewer: Viewer = connection.scope.get("viewer") or connection.app.state.viewer
    return viewer
