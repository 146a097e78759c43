"""The store: opened from any age, never half changed, never taken from under somebody else."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import process_environment
from steelyard.errors import ConfigError, InputError, StoreError
from steelyard.records import RagSample, Unjudged, Usage, Verdict
from steelyard.store import RunRow, Store, StoredReply, StoreLocation, identity_of, run_identity
from steelyard.store import sqlite as sqlite_module
from steelyard.store import sqlite_schema as schema_module
from steelyard.store.sqlite import SqliteStore
from steelyard.store.sqlite_schema import MIGRATIONS

QUEUES = {"v11": [(2, 4, 2, 2, 1, 1)], "v12": [(2, 4, 2, 2, 1, 1)]}
STORES = Path(__file__).parent / "fixtures" / "stores"
LISTING = {"listed", "scored", "faceted", "texts", "worked_out", "unlisted"}
WHEN = "2026-03-02T10:00:00+00:00"


@pytest.fixture
def store(any_store: Store) -> Store:
    """A store of either kind."""
    return any_store


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.at(tmp_path / "store.db") as opened:
        yield opened


def begin(store: Store, id: str) -> RunRow:
    return store.create_run(id, "atomic", "scripted", WHEN, {"options": {}})


def sample(number: int) -> RagSample:
    return RagSample(id=f"s{number}", question="问？", answer="答。", references=("据",))


def verdict(number: int, status: str = "judged") -> Verdict:
    return Verdict(id=f"s{number}", protocol="atomic", status=status, scores={"accuracy": 1.0})


def reply(run: str | None, ask: str = "ask", said: str = "{}") -> StoredReply:
    usage = Usage(calls=1, prompt_tokens=7, cached_tokens=3, cost=0.25)
    return StoredReply(ask, "atomic.split", "mine:model", said, "raw", usage, run)


def schema(path: Path) -> list[tuple[str, str]]:
    """Tables and indexes, without the layout of their text."""
    db = sqlite3.connect(path)
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    db.close()
    return [(name, " ".join(sql.split())) for name, sql in rows]


# --- opening and migrating ------------------------------------------------------------------------------


def test_a_blank_store_gets_the_newest_schema(sqlite_store: SqliteStore) -> None:
    """A new file has all tables, says its version, and is in WAL mode."""
    db = sqlite3.connect(sqlite_store.path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
    tables = {name for name, sql in schema(sqlite_store.path) if sql.startswith("CREATE TABLE")}
    assert (
        tables
        == {"runs", "identities", "samples", "bad_rows", "replies", "used", "unusable", "labels", "wordings"}
        | {"sample_sets", "set_versions", "set_samples"}
        | {"queues", "queue_items", "queue_claims", "queue_counts", "label_changes", "judge_cards", "experiments"}
        | {"quotas", "queued", "leases", "workers", "claims"}
        | {"users", "memberships", "tokens", "sessions", "audit"}
        | LISTING
    )


def test_every_older_version_has_its_dump() -> None:
    """Whoever adds a migration leaves a store of the version before it, for the test below."""
    dumps = sorted(int(path.stem.removeprefix("v")) for path in STORES.glob("v*.sql"))
    assert dumps == list(range(1, len(MIGRATIONS)))


@pytest.mark.parametrize("dump", sorted(STORES.glob("v*.sql")), ids=lambda path: path.stem)
def test_an_older_store_is_brought_up_with_all_it_holds(tmp_path: Path, dump: Path) -> None:
    """Runs, verdicts and replies of every older version are there after opening; the schema is that of a new store."""
    old = tmp_path / "old.db"
    db = sqlite3.connect(old)
    db.executescript(dump.read_text("utf-8"))
    before = {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in ("runs", "samples", "replies")}
    assert db.execute("PRAGMA user_version").fetchone() == (int(dump.stem.removeprefix("v")),)
    db.close()
    with Store.open(old) as opened:
        (run,) = opened.runs()
        judged = list(opened.verdicts(run.id))
        assert [found.status for _, found in judged] == ["judged", "judged"]
        assert opened.finished(run.id) == bytearray([1, 1])
        assert all(opened.reply(row[0]) for row in before["replies"])
        opened.add_unusable(run.id, "key", Unjudged(reason="truncated"))
        assert run.name == ("nightly" if dump.stem in ("v7", "v8", "v9", "v10", "v11", "v12") else "")
        # What was listed under an older layout is listed anew.
        assert next(opened.query("SELECT count(*) FROM unlisted")) == (2,)
        # What was given in a queue before it was counted is counted.
        assert [tuple(opened.queue_totals(queue.id)) for queue in opened.queues()] == QUEUES.get(dump.stem, [])
    Store.open(tmp_path / "new.db").close()
    assert schema(old) == schema(tmp_path / "new.db")
    db = sqlite3.connect(old)
    assert all(db.execute(f"SELECT * FROM {table}").fetchall() == rows for table, rows in before.items())
    db.close()


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps or none: a store is never between two versions."""
    Store.open(tmp_path / "store.db").close()
    before = schema(tmp_path / "store.db")
    broken = "CREATE TABLE half (a); CREATE TABLE half (b);"
    monkeypatch.setattr(schema_module, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE whole (a)", broken))
    with pytest.raises(StoreError, match="half"):
        Store.open(tmp_path / "store.db")
    assert schema(tmp_path / "store.db") == before
    monkeypatch.setattr(schema_module, "MIGRATIONS", MIGRATIONS)
    Store.open(tmp_path / "store.db").close()


def test_a_newer_store_is_not_touched(tmp_path: Path) -> None:
    """Not one byte of a file that a newer version made is changed, nor are files left beside it."""
    path = tmp_path / "new.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE later (a)")
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer Steelyard"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["new.db"]


@pytest.mark.parametrize("version", [0, 1])
def test_another_programs_database_is_not_touched(tmp_path: Path, version: int) -> None:
    """A database that is no store is refused, whatever version it claims, and stays as it is."""
    path = tmp_path / "places.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url)")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="some other program"):
        Store.open(path)
    assert path.read_bytes() == before


def test_many_processes_may_open_a_blank_store_at_once(tmp_path: Path) -> None:
    """Whoever comes second finds the tables made, not half made."""
    code = "import sys; from pathlib import Path; from steelyard.store import Store; Store.open(Path('s.db')).close()"
    running = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=process_environment(), stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    errors = [process.communicate(timeout=30)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 6, errors


def test_a_store_must_be_there_to_be_read(tmp_path: Path) -> None:
    """Without `create`, a mistyped path makes no file."""
    with pytest.raises(StoreError, match="judge something first"):
        Store.open(tmp_path / "nosuch.db", create=False)
    assert list(tmp_path.iterdir()) == []


# --- several at once ------------------------------------------------------------------------------------


def test_a_reader_sees_the_store_while_another_writes(store: Store, location: StoreLocation) -> None:
    """Reading never waits for a writer, and sees what is committed, no more."""
    begin(store, "run-a")
    with Store.open(location) as reader:
        with store.all_or_nothing():
            store.add_verdict("run-a", 0, sample(0), verdict(0))
            assert list(reader.verdicts("run-a")) == []
        assert len(list(reader.verdicts("run-a"))) == 1


def test_a_stream_of_verdicts_goes_on_while_others_are_added(store: Store) -> None:
    """Verdicts can be read and written through one store at the same time."""
    begin(store, "run-a")
    for number in range(3):
        store.add_verdict("run-a", number, sample(number), verdict(number))
    stream = store.verdicts("run-a")
    assert next(stream)[1].id == "s0"
    store.add_verdict("run-a", 0, sample(0), verdict(0, "partial"))
    assert [found.id for _, found in stream] == ["s1", "s2"]


def test_a_locked_store_says_so(sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that never ends is waited for, then named; what was written before stays."""
    begin(sqlite_store, "run-a")
    monkeypatch.setattr(sqlite_module, "BUSY_SECONDS", 0.1)
    busy = pytest.raises(StoreError, match=r"another process has been writing to it for 0\.1 seconds")
    with Store.open(sqlite_store.path) as other, sqlite_store.all_or_nothing(), busy:
        other.add_verdict("run-a", 0, sample(0), verdict(0))
    assert sqlite_store.run("run-a").state == "running"


def test_a_run_is_in_one_pair_of_hands(store: Store, location: StoreLocation) -> None:
    """Two that go on with one run would pay twice; the second is refused until the first is done."""
    begin(store, "run-a")
    begin(store, "run-b")
    with Store.open(location) as other, store.alone_with("run-a"):
        with pytest.raises(StoreError, match="run-a is in the hands of another process"), other.alone_with("run-a"):
            pass
        with pytest.raises(StoreError, match="in the hands"):
            other.delete_run("run-a")
        with other.alone_with("run-b"):
            pass
    with store.alone_with("run-a"):
        pass
    assert isinstance(location, str) or not list(location.parent.glob("*.lock"))


def test_hands_are_freed_by_a_failure(store: Store) -> None:
    """An exception lets go of the run."""
    with pytest.raises(RuntimeError), store.alone_with("run-a"):
        raise RuntimeError
    with store.alone_with("run-a"):
        pass


# --- runs -------------------------------------------------------------------------------------------------


def test_runs_are_found_by_what_is_convenient(store: Store) -> None:
    """Id, number, a unique beginning, or `last`; a number goes before a beginning that looks like one."""
    first, second = begin(store, "20260302-100000-aaaa"), begin(store, "20260302-100001-bbbb")
    assert (first.number, second.number) == (1, 2)
    assert store.run("last") == store.run("2") == store.run("20260302-100001") == second
    assert store.run(first.id) == store.run("1") == first
    with pytest.raises(StoreError, match=r"may mean 20260302-100001-bbbb, 20260302-100000-aaaa"):
        store.run("20260302")


@pytest.mark.parametrize("name", ["", "3", "2", "0", "2027", "LAST", "%"])
def test_what_names_no_run_is_refused(store: Store, name: str) -> None:
    """Nothing, too, names no run: an unset variable in a script must not delete the only one."""
    begin(store, "20260302-100000-aaaa")
    with pytest.raises(StoreError, match="there is no run"):
        store.run(name)


def test_an_empty_store_has_no_last_run(store: Store) -> None:
    """The message says that there is none yet."""
    with pytest.raises(StoreError, match="none yet"):
        store.run("last")


def test_numbers_are_given_once_even_at_the_same_moment(store: Store, location: StoreLocation) -> None:
    """Processes that start runs together get different numbers."""

    def start(name: str) -> None:
        with Store.open(location) as own:
            for number in range(10):
                begin(own, f"{name}-{number}")

    threads = [threading.Thread(target=start, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run.number for run in store.runs()) == list(range(1, 31))


def test_deleting_a_run_keeps_the_replies(store: Store) -> None:
    """Samples, verdicts and bad rows go; what was paid for stays."""
    begin(store, "run-a")
    begin(store, "run-b")
    store.add_verdict("run-a", 0, sample(0), verdict(0))
    store.add_bad_row("run-a", InputError("is empty", file="a.jsonl", line=1))
    store.journal([("key", reply("run-a"))])
    store.delete_run("run-a")
    assert [run.id for run in store.runs()] == ["run-b"]
    assert (list(store.verdicts("run-a")), store.bad_rows("run-a")) == ([], [])
    assert store.used_reply("run-a", "ask") is None
    assert store.reply("key") == reply("run-a")


# --- what people call a run -----------------------------------------------------------------------------


def test_a_run_is_called_what_people_like(store: Store) -> None:
    """Name, notes, tags, values and project are kept from the start, and each can be changed by itself."""
    named = run_identity(
        {"name": "v7", "notes": "新提示词", "tags": ["nightly", "a b"], "meta": {"n": 3}, "project": "客服"}
    )
    created = store.create_run("run-a", "atomic", "scripted", WHEN, {}, named)
    assert identity_of(created) == named
    changed = store.edit_run("run-a", name="v8", tags=[])
    assert identity_of(changed) == named.model_copy(update={"name": "v8", "tags": ()})
    assert identity_of(begin(store, "run-b")) == run_identity({})
    assert store.edit_run("run-b", notes="later").notes == "later"


def test_runs_of_a_project_and_with_a_tag(store: Store) -> None:
    """Listed by project, by tag, or both; runs without a project are in the one without a name."""
    for id, project, tags in (("run-a", "shop", ["x"]), ("run-b", "shop", ["x", "y"]), ("run-c", "", ["y"])):
        store.create_run(id, "atomic", "scripted", WHEN, {}, run_identity({"project": project, "tags": tags}))
    begin(store, "run-d")
    assert store.projects() == {"": 2, "shop": 2}
    assert [run.id for run in store.runs(project="shop")] == ["run-b", "run-a"]
    assert [run.id for run in store.runs(tag="y")] == ["run-c", "run-b"]
    assert [run.id for run in store.runs(project="", tag="y")] == ["run-c"]


def test_a_project_has_one_baseline(store: Store) -> None:
    """The run that was named last; of another project it is another one; deleted, there is none."""
    for id, project in (("run-a", "shop"), ("run-b", "shop"), ("run-c", "car")):
        store.create_run(id, "atomic", "scripted", WHEN, {}, run_identity({"project": project, "baseline": True}))
    shop, car = store.baseline("shop"), store.baseline("car")
    assert (shop and shop.id, car and car.id, store.baseline()) == ("run-b", "run-c", None)
    assert [run.baseline for run in store.runs()] == [True, True, False]
    assert store.edit_run("run-c", project="shop").baseline
    shop = store.baseline("shop")
    assert (shop and shop.id, store.baseline("car")) == ("run-c", None)
    store.delete_run("run-c")
    assert store.baseline("shop") is None


@pytest.mark.parametrize(
    "given", [{"name": "x" * 201}, {"tags": [" "]}, {"meta": {"a": {"b": 1}}}, {"meta": "a=b"}, {"unknown": 1}]
)
def test_what_a_run_cannot_be_called(given: dict[str, object]) -> None:
    """One line that names the field."""
    with pytest.raises(ConfigError, match=next(iter(given))):
        run_identity(given)


# --- samples ----------------------------------------------------------------------------------------------


def test_finished_says_which_places_are_settled(store: Store) -> None:
    """One byte per place; retrying opens the partial and the failed ones again."""
    begin(store, "run-a")
    assert store.finished("run-a") == bytearray()
    for number, status in ((0, "judged"), (2, "partial"), (5, "failed")):
        store.add_verdict("run-a", number, sample(number), verdict(number, status))
    assert store.finished("run-a") == bytearray([1, 0, 1, 0, 0, 1])
    assert store.finished("run-a", retry=True) == bytearray([1, 0, 0, 0, 0, 0])
    assert store.judged("run-a") == {"judged": 1, "partial": 1, "failed": 1}


def test_a_later_verdict_takes_the_place_of_an_earlier_one(store: Store) -> None:
    """Retrying a sample does not list it twice."""
    begin(store, "run-a")
    store.add_verdict("run-a", 0, sample(0), verdict(0, "failed"))
    store.add_verdict("run-a", 0, sample(0), verdict(0))
    assert [found.status for _, found in store.verdicts("run-a")] == ["judged"]
    found = store.verdict("run-a", "s0")
    assert found is not None
    assert found[1].status == "judged"
    assert store.verdict("run-a", "s1") is None


def test_all_or_nothing(store: Store) -> None:
    """A failure in the middle takes back what came before it, and the store goes on working."""
    begin(store, "run-a")

    def half() -> None:
        with store.all_or_nothing():
            store.add_verdict("run-a", 0, sample(0), verdict(0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert list(store.verdicts("run-a")) == []
    with store.all_or_nothing():
        store.add_verdict("run-a", 0, sample(0), verdict(0))
    assert len(list(store.verdicts("run-a"))) == 1


def test_verdicts_of_a_run_that_does_not_exist(store: Store) -> None:
    """They are refused, not kept where nobody finds them."""
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        store.add_verdict("nosuch", 0, sample(0), verdict(0))


def test_a_full_disk_is_named_and_what_was_there_stays(sqlite_store: SqliteStore) -> None:
    """The write that does not fit fails alone; freed space is used again."""
    begin(sqlite_store, "run-a")
    sqlite_store.add_verdict("run-a", 0, sample(0), verdict(0))
    (pages,) = sqlite_store._db.execute("PRAGMA page_count").fetchone()
    sqlite_store._db.execute(f"PRAGMA max_page_count = {pages}")
    big = sample(1).model_copy(update={"answer": "长" * 50_000})
    with pytest.raises(StoreError, match="the disk is full: free some space, then resume"):
        sqlite_store.add_verdict("run-a", 1, big, verdict(1))
    assert [found.id for _, found in sqlite_store.verdicts("run-a")] == ["s0"]
    sqlite_store._db.execute(f"PRAGMA max_page_count = {pages + 200}")
    sqlite_store.add_verdict("run-a", 1, big, verdict(1))
    assert len(list(sqlite_store.verdicts("run-a"))) == 2


# --- replies ------------------------------------------------------------------------------------------------


def test_replies_come_back_as_they_were(store: Store) -> None:
    """Data, words, cost with cached tokens, and who paid."""
    begin(store, "run-a")
    assert store.reply("key") is None
    store.journal([("key", reply("run-a", said='{"atoms": []}'))])
    assert store.reply("key") == reply("run-a", said='{"atoms": []}')
    assert store.replies_to("ask") == [reply("run-a", said='{"atoms": []}')]


def test_a_run_remembers_which_reply_it_used(store: Store) -> None:
    """Two runs may have been given different replies to the same ask; each keeps its own."""
    for run, key in (("run-a", "key-a"), ("run-b", "key-b")):
        begin(store, run)
        store.journal([(key, reply(run, said=f'"{key}"'))])
    begin(store, "run-c")
    store.use_reply("run-c", "ask", "key-a")
    said = [found.reply for run in "abc" if (found := store.used_reply(f"run-{run}", "ask"))]
    assert said == ['"key-a"', '"key-b"', '"key-a"']
    assert [(key, repeat) for key, repeat, _ in store.used_replies("run-c")] == [("key-a", 0)]


def test_a_reply_without_a_run_is_kept_too(store: Store) -> None:
    """The journal works outside a run."""
    store.journal([("key", reply(None))])
    assert store.reply("key") == reply(None)


def test_unusable_answers_are_kept_with_their_run(store: Store) -> None:
    """Another run may try the same ask again."""
    begin(store, "run-a")
    unjudged = Unjudged(reason="truncated", detail="cut off", usage=Usage(calls=1))
    store.add_unusable("run-a", "key", unjudged)
    assert store.unusable("run-a", "key") == unjudged
    assert store.unusable("run-b", "key") is None
