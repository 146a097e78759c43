"""A real PostgreSQL server in a temporary folder, with a fresh schema for each test.

Debian's package `postgresql` brings the programs; `initdb` refuses to be root, who therefore becomes `postgres` for it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

OWNER = "postgres"
PASSWORD = "p@ss/w#rd"
"""Of the role `member`, who must say it."""
# Quick rather than safe: nothing here outlives the tests. A server that is killed loses nothing, as the system lives.
SETTINGS = ("fsync=off", "full_page_writes=off", "max_connections=60", "shared_buffers=64MB", "wal_level=minimal",
            "max_wal_senders=0", "log_min_messages=fatal", "timezone=UTC")  # fmt: skip


def programs() -> Path:
    """Where the newest installed version has its programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    named = shutil.which("initdb")
    if named is None:
        raise RuntimeError("PostgreSQL is not installed; on Debian: apt install postgresql")
    return Path(named).parent


def as_owner(command: Sequence[str | Path]) -> list[str]:
    words = [str(word) for word in command]
    if os.getuid():
        return words
    account = pwd.getpwnam(OWNER)
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *words]


class PostgresServer:
    """One server on a port of loopback. `stop`, `kill` and `start` do what happens to servers."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="steelyard-pg-"))
        if not os.getuid():
            shutil.chown(self.folder, OWNER)
        self.data = self.folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ("--no-sync", "--username", OWNER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        initdb = as_owner([programs() / "initdb", *options, "--pgdata", self.data])
        subprocess.run(initdb, check=True, capture_output=True, cwd="/")
        rules = "local all all trust\nhost all member 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self.data / "pg_hba.conf").write_text(rules)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()
        with self.connected() as db:
            db.execute(f"CREATE ROLE member LOGIN PASSWORD '{PASSWORD}'")
            db.execute("CREATE EXTENSION pg_trgm")

    def url(self, schema: str = "") -> str:
        path = f"?options={quote(f'-csearch_path={schema},public', safe='')}" if schema else ""
        return f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres{path}"

    def connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(), autocommit=True)

    def schema(self, name: str) -> str:
        """A fresh schema, and the URL of a store in it."""
        with self.connected() as db:
            db.execute(f"CREATE SCHEMA {name}".encode())
        return self.url(name)

    def start(self) -> None:
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        where = ("-D", self.data, "-p", str(self.port), "-k", self.folder, "-h", "127.0.0.1")
        self.process = subprocess.Popen(
            as_owner([programs() / "postgres", *where, *settings]), cwd="/", stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 30
        while True:
            try:
                self.connected().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all connections and the server; SIGQUIT is a crash."""
        if self.process:
            with suppress(ProcessLookupError):
                self.process.send_signal(how)
            self.process.wait(timeout=30)
            self.process = None

    def close(self) -> None:
        # Nothing of it is kept, so nothing need be written first; that takes five seconds.
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
