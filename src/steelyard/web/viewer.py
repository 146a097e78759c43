"""What every handler of the viewer gets: the settings, the store, the language, the token, the jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import HTTPConnection

from steelyard.records import Language
from steelyard.settings import Settings
from steelyard.store import Store, StoreLocation, files_of
from steelyard.web.cache import Known
from steelyard.web.jobs import Evaluations, Jobs

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
    sizes: Sizes = field(default_factory=Sizes)
    known: Known = field(default_factory=Known, repr=False)
    evaluations: Evaluations = field(default_factory=Evaluations, repr=False)
    jobs: Jobs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", Jobs(self.store))

    def store(self) -> Store:
        """The store, opened for one request; close it (`with`) when the request is done.

        Handlers are plain functions, which run in a thread of their own: the database never holds up the others.
        """
        return Store.open(self.store_location)

    @property
    def uploads(self) -> Path:
        """Where uploaded samples are kept, so that their runs can be resumed."""
        return files_of(self.store_location, "uploads")


def viewer_of(connection: HTTPConnection) -> Viewer:
    viewer: Viewer = connection.app.state.viewer
    return viewer
