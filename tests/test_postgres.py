"""A store in PostgreSQL: opened with clear errors, migrated whole, never showing a password, alive after a lost server.

What it shares with SQLite is tested over both: test_store, test_listing, test_journal, test_exports.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from command import RAG, RECORDED, Steelyard, process_environment
from postgres_server import PASSWORD, PostgresServer
from steelyard.engine.journal import JournalledJudge
from steelyard.errors import RunInUse, StoreError
from steelyard.judges.base import Judge
from steelyard.records import Ask, RagSample, Reply, Usage
from steelyard.store import Store, StoredReply, as_location, files_of, postgres, postgres_schema, shown_location
from steelyard.store.postgres import PostgresStore
from steelyard.store.postgres_schema import MIGRATIONS
from steelyard.store.work_table import Quota
from steelyard.tasks import SplitData, SplitReply

WHEN = "2026-03-02T10:00:00+00:00"


def begin(store: Store, id: str = "run-a") -> None:
    store.create_run(id, "atomic", "scripted", WHEN, {"options": {}})


def with_password(server: PostgresServer, password: str) -> str:
    return f"postgresql://member:{quote(password, safe='')}@127.0.0.1:{server.port}/postgres"


# --- addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@host:5432/db?sslmode=require&password=secret", "postgresql://u@host:5432/db"),
        ("postgres://host/db", "postgres://host/db"),
        ("postgresql://u:sec/ret@host/db", "postgresql://…"),
        ("postgresql://u:sec@ret@host/db", "postgresql://…"),
        ("postgresql://host/db?password=sec@ret", "postgresql://…"),
        ("postgresql:///db?service=secret", "postgresql:///db"),
        ("postgresql://a,b:5433/db", "postgresql://a,b:5433/db"),
    ],
)
def test_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    """Whatever stands in it, also where somebody forgot to escape a sign."""
    assert shown_location(url) == shown


def test_what_is_no_store(tmp_path: Path) -> None:
    """Another kind of URL is refused by its scheme, without the rest of it; a path is a path."""
    with pytest.raises(StoreError, match="mysql:// is neither") as told:
        as_location("mysql://u:secret@host/db")
    assert "secret" not in str(told.value)
    assert as_location("a/b.db") == Path("a/b.db")
    assert files_of(tmp_path / "s.db", "uploads") == tmp_path / "s-uploads"
    assert files_of("postgresql://host/team?x=1", "uploads") == Path(".steelyard/team-uploads")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("u:p@127.0.0.1:port/db", "the URL cannot be read"),
        ("u:{password}@127.0.0.1:1/db?connect_timeout=2", "cannot be reached"),
        ("u:{password}@127.0.0.1/db?nonsense=1", "the URL cannot be read"),
        ("member:wrong-{password}@127.0.0.1:{port}/postgres", "does not let this user in"),
        ("member@127.0.0.1:{port}/postgres?passfile=/dev/null", "PGPASSWORD"),
        ("postgres@127.0.0.1:{port}/nosuch", "create it first"),
        ("postgres@127.0.0.1:{port}/postgres?options=-csearch_path%3Dnosuch", "does not exist; create it first"),
    ],
)
def test_a_store_that_cannot_be_opened_says_why(postgres_server: PostgresServer, rest: str, said: str) -> None:
    """Wrong URL, nobody there, wrong or no password, no such database or schema: one line, without the password."""
    url = "postgresql://" + rest.format(password="s3cret", port=postgres_server.port)
    with pytest.raises(StoreError, match=said) as told:
        Store.open(url)
    assert "s3cret" not in str(told.value)
    assert "\n" not in str(told.value)


def test_the_password_comes_from_the_environment(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PGPASSWORD, a password file, a service file, or the URL itself, which then is not shown."""
    address = f"127.0.0.1:{postgres_server.port}"
    with postgres_server.connected() as db:
        db.execute("CREATE SCHEMA IF NOT EXISTS member AUTHORIZATION member")
    with Store.open(with_password(postgres_server, PASSWORD)) as store:
        assert store.name == f"postgresql://member@{address}/postgres"
        begin(store, "run-member")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with Store.open(f"postgresql://member@{address}/postgres") as store:
        assert store.run("run-member").id == "run-member"
    monkeypatch.delenv("PGPASSWORD")
    passfile, services = tmp_path / "pgpass", tmp_path / "services"
    passfile.write_text(f"127.0.0.1:{postgres_server.port}:*:member:{PASSWORD}\n")
    passfile.chmod(0o600)
    services.write_text(f"[team]\nhost=127.0.0.1\nport={postgres_server.port}\nuser=member\ndbname=postgres\n")
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with Store.open("postgresql://?service=team") as store:
        assert store.run("run-member").id == "run-member"


def test_without_the_extra_it_is_named(tmp_path: Path) -> None:
    """Whoever installed the package without it is told which extra to add."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from steelyard.store import Store\nfrom steelyard.errors import MissingExtra\n"
        "try: Store.open('postgresql://host/db')\nexcept MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=process_environment(), capture_output=True, text=True)
    assert "pip install 'steelyard[postgres]'" in done.stdout


def test_a_machine_that_lost_its_power_locks_nothing_for_long(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server never hears that it is gone, and it was in the middle of a transaction: the others wait a moment, not
    until the server's own patience with silent connections ends, which are hours."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 1)
    with PostgresStore.at(postgres_url) as lost, lost.another() as other:
        begin(lost, "run-1")
        lost.queue_run("run-1", [(0, RagSample(id="s", question="q", answer="a"))], Quota())
        for store, worker in ((lost, "a"), (other, "b")):
            store.join("run-1", worker, "host", 1)
        assert lost._db is not None
        lost._db.execute("BEGIN")
        lost._db.execute("INSERT INTO claims (key, worker) VALUES ('k', 'a')")
        assert other.replies_or_claims(["k"], "b") == [True]
        assert lost.replies_or_claims(["k"], "a") == [False]


# --- tables -----------------------------------------------------------------------------------------------


def test_a_store_must_be_there_to_be_read(postgres_url: str) -> None:
    """Without `create`, nothing is made."""
    with pytest.raises(StoreError, match="judge something first"):
        Store.open(postgres_url, create=False)
    with psycopg.connect(postgres_url) as db:
        tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()"
        assert db.execute(tables).fetchone() == (0,)


def test_a_newer_store_and_tables_of_others_are_left_alone(postgres_url: str) -> None:
    """Both are refused with what to do."""
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE TABLE samples (a INT)")
        with pytest.raises(StoreError, match="tables of some other program"):
            Store.open(postgres_url)
        db.execute("DROP TABLE samples")
        Store.open(postgres_url).close()
        db.execute(f"UPDATE steelyard_version SET version = {len(MIGRATIONS) + 1}".encode())
        with pytest.raises(StoreError, match="newer Steelyard"):
            PostgresStore.at(f"{postgres_url}&application_name=later")  # not through a connection that is known


def test_a_migration_that_fails_leaves_the_old_version(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps or none; a later step finds what the earlier version holds."""
    with Store.open(postgres_url) as store:
        begin(store)
    steps = (*MIGRATIONS, "CREATE TABLE whole (a INT)", "CREATE TABLE half (a INT); CREATE TABLE half (b INT);")
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", steps)
    with pytest.raises(StoreError, match="half"):
        Store.open(f"{postgres_url}&application_name=later")
    with psycopg.connect(postgres_url) as db:
        assert db.execute("SELECT to_regclass('whole')").fetchone() == (None,)
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", steps[:-1])
    with Store.open(f"{postgres_url}&application_name=later") as store:
        assert store.run("run-a").state == "running"
        assert next(store.query("SELECT version FROM steelyard_version")) == (len(MIGRATIONS) + 1,)


def test_many_processes_may_open_a_blank_store_at_once(postgres_url: str) -> None:
    """Whoever comes second finds the tables made, not half made."""
    code = f"from steelyard.store import Store; Store.open({postgres_url!r}).close()"
    environment = process_environment()
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE) for _ in range(4)
    ]
    errors = [process.communicate(timeout=60)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 4, errors


def test_what_no_postgres_text_can_hold(postgres_url: str) -> None:
    """A NUL in what a judge said does not cost the reply."""
    with Store.open(postgres_url) as store:
        begin(store)
        store.journal([("key", StoredReply("ask", "t", "j", '{"a": "\\u0000"}', "raw\0words", Usage(), "run-a"))])
        found = store.reply("key")
        assert found is not None
        assert (found.reply, found.raw) == ('{"a": "\\u0000"}', "raw\ufffdwords")
        assert store.spent_by_judge("run-a") == {"j": Usage()}


# --- a server that goes away ------------------------------------------------------------------------------


def cut_off(server: PostgresServer) -> None:
    """End every other connection, as a restart does."""
    with server.connected() as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_a_lost_connection_is_made_again(postgres_server: PostgresServer, postgres_url: str) -> None:
    """Reading and writing go on by themselves, and a run stays in the same hands."""
    with Store.open(postgres_url) as store, Store.open(postgres_url) as other:
        begin(store)
        with store.alone_with("run-a"):
            cut_off(postgres_server)
            store.journal([("key", StoredReply("ask", "t", "j", "{}", "", Usage(), "run-a"))])
            assert store.in_use("run-a")
            with pytest.raises(RunInUse), other.alone_with("run-a"):
                pass
        cut_off(postgres_server)
        assert other.reply("key") is not None
        assert not other.in_use("run-a")


def test_half_of_a_transaction_is_not_kept(postgres_server: PostgresServer, postgres_url: str) -> None:
    """Where the server goes away in the middle of several statements, none of them is done, and that is said."""
    with Store.open(postgres_url) as store:

        def half() -> None:
            with store.all_or_nothing():
                begin(store)
                cut_off(postgres_server)
                begin(store, "run-b")

        with pytest.raises(StoreError, match="went away"):
            half()
        assert store.runs() == []


class Echo(Judge):
    """Answers at once."""

    name = "echo"

    async def answer(self, ask: Ask) -> Reply:
        return Reply(data=SplitReply.model_validate({"atoms": [{"id": 1, "text": "x"}]}), usage=Usage(calls=1))


async def test_replies_are_committed_in_groups(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrives while a transaction is under way goes into the next one; each reply is kept before it is used."""
    groups: list[int] = []
    with Store.open(postgres_url) as store:
        begin(store)
        journalled = store.journal

        def journal(replies: list[tuple[str, StoredReply]], place: int = 0) -> None:
            groups.append(len(replies))
            journalled(replies, place)

        monkeypatch.setattr(store, "journal", journal)
        judge = JournalledJudge(Echo(), store, "run-a")
        asks = [
            Ask(task="atomic.split", language="en", data=SplitData(question="?", answer=f"{n}"), reply=SplitReply)
            for n in range(500)
        ]
        with Store.open(postgres_url) as other:

            async def answered(ask: Ask) -> bool:
                await judge.answer(ask)
                return other.reply(judge.key(ask)) is not None

            assert all(await asyncio.gather(*map(answered, asks)))
    assert sum(groups) == 500
    assert len(groups) < 50


# --- the whole way ----------------------------------------------------------------------------------------


def test_every_command_takes_the_url(steelyard: Steelyard, postgres_url: str, tmp_path: Path) -> None:
    """Judged, listed, edited, rescored, compared, gated, exported and imported: as with a file."""
    where = ("--store", postgres_url)
    run = ("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    assert steelyard(*run, *where, "-o", "pg.jsonl", "--name", "first", "--tag", "x", "--meta", "n=1").code == 0
    assert steelyard(*run, "-o", "file.jsonl").code == 0
    strip = [{**json.loads(line), "usage": None} for line in Path("pg.jsonl").read_text("utf-8").splitlines()]
    assert strip == [{**json.loads(line), "usage": None} for line in Path("file.jsonl").read_text("utf-8").splitlines()]
    assert steelyard("resume", "1", *where, "--progress", "quiet").code == 0
    assert steelyard("retry", "1", *where, "--progress", "quiet").code == 0
    assert steelyard("rescore", "1", *where).code == 0
    assert (
        steelyard("runs", "edit", "1", *where, "--project", "car", "--baseline", "--untag", "x", "--meta", "n=").code
        == 0
    )
    (shown,) = [json.loads(line) for line in steelyard("runs", "list", "--json", *where).out.splitlines()]
    assert (shown["name"], shown["tags"], shown["meta"], shown["project"]) == ("first", [], {}, "car")
    assert "first" in steelyard("runs", "list", *where).out
    assert steelyard("export", "1", "--to", "whole.jsonl", "--whole", *where).code == 0
    assert steelyard("runs", "import", "whole.jsonl", "--store", "copy.db").code == 0
    assert steelyard("export", "1", "--to", "back.jsonl", "--whole", "--store", "copy.db").code == 0
    assert steelyard("runs", "delete", "1", "--yes", *where).code == 0
    assert steelyard("runs", "import", "back.jsonl", *where).code == 0
    assert steelyard("compare", "1", "1", *where).code in (0, 3)
    assert steelyard("show", "1", "car-seat", *where).code == 0
    assert "127.0.0.1" not in steelyard("runs", "show", "1", *where).out


def test_settings_name_the_store(steelyard: Steelyard, postgres_url: str) -> None:
    """[run] store in steelyard.toml may be a URL, and project, tags and meta are those of every run."""
    Path("steelyard.toml").write_text(
        f'[run]\nstore = "{postgres_url}"\nproject = "car"\ntags = ["ci"]\nmeta = {{ branch = "main" }}\n'
    )
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet", "--tag", "x").code == 0
    (shown,) = [json.loads(line) for line in steelyard("runs", "list", "--json", "--project", "car").out.splitlines()]
    assert (shown["tags"], shown["meta"]) == (["ci", "x"], {"branch": "main"})
