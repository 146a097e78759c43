"""Real stores, really damaged: they say so, and what can be read of them is copied into a new one."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, fact_server, facts, lines_of, point_to, write_lines
from steelyard.errors import ConfigError, InputError, StoreError
from steelyard.store import QueueItem, Store, sqlite_schema
from steelyard.store.labels import HumanLabel
from steelyard.store.rescue import Rescue, rescue
from steelyard.store.rescue.pages import Pages

MINE = ("-p", "atomic", "-j", "mine", "--progress", "quiet")
COUNT = 60
STORE = Path("damaged.db")


def results(path: str) -> list[dict[str, Any]]:
    return [{**line, "usage": None} for line in lines_of(path)]


@pytest.fixture
def filled(steelyard: Steelyard) -> list[dict[str, Any]]:
    """A store with one complete run of sixty samples, which took 120 calls; its result lines."""
    samples = facts(Path("facts.jsonl"), COUNT)
    # Longer than a page, so that records go on in overflow pages.
    rows = lines_of(samples)
    for n, row in enumerate(rows):
        row["references"].append("unrelated " * (40 * n))
    write_lines(samples, rows)
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", samples, *MINE, "-o", "calm.jsonl", "--store", STORE)
        assert done.code == 0, done.err
    return results("calm.jsonl")


def counted(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        (n,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(n)


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as db:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))


# --- ways to damage a file ------------------------------------------------------------------------------------


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 3 // 5])


def overwrite_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    draw = random.Random(7)
    pages = len(content) // 4096
    for number in draw.sample(range(2, pages), pages // 3):
        content[number * 4096 : (number + 1) * 4096] = draw.randbytes(4096)
    path.write_bytes(content)


def garble_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:100] = b"\xa5" * 100
    path.write_bytes(content)


def garble_first_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:4096] = random.Random(1).randbytes(4096)
    path.write_bytes(content)


def drop_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE used")
        db.commit()


def forget_table(path: Path) -> None:
    """The table is not in the schema any more, while its rows are still in the file."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = 'replies' OR tbl_name = 'replies'")
        db.commit()


def garble_verdicts(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE samples SET verdict = substr(verdict, 1, 40) WHERE seq % 3 = 0")
        db.commit()


def garble_text(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE samples SET sample = CAST(x'7b22ff' AS TEXT) WHERE seq = 5")
        db.commit()


DAMAGES = {
    damage.__name__: damage
    for damage in (
        truncate,
        overwrite_pages,
        garble_header,
        garble_first_page,
        drop_table,
        forget_table,
        garble_verdicts,
        garble_text,
    )
}
# Nothing of these is gone from the file.
HARMLESS = {"garble_header", "garble_first_page", "forget_table"}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_store_says_so_and_can_be_rescued(
    steelyard: Steelyard, filled: list[dict[str, Any]], name: str
) -> None:
    """Exit code 5 and the command that helps; what it saves is not paid for again, and the results are the same."""
    DAMAGES[name](STORE)
    before = STORE.read_bytes()
    done = steelyard("report", "last", "--store", STORE)
    assert done.code == 5
    (complaint,) = done.err.splitlines()
    assert "store damaged.db is damaged (" in complaint
    assert "steelyard runs rescue damaged.db -o" in complaint
    assert "name another" not in complaint

    done = steelyard("runs", "rescue", STORE, "-o", "new.db")
    assert done.code == 0, done.err
    assert STORE.read_bytes() == before
    assert is_sound(Path("new.db"))
    runs, verdicts, replies, labels = map(int, re.findall(r" (\d+) (?:runs|verdicts|replies|labels)", done.out))
    assert (runs, labels) == (1, 0)
    assert (verdicts, replies) == (counted(Path("new.db"), "samples"), counted(Path("new.db"), "replies"))
    if name in HARMLESS:
        assert (verdicts, replies) == (COUNT, 2 * COUNT)
    else:
        assert verdicts + replies > COUNT

    with fact_server() as server:
        point_to(server)
        gone_on = steelyard("run", "facts.jsonl", *MINE, "--store", "new.db", "-o", "out.jsonl")
        # Another server is another endpoint; its address is part of what a reply answers.
        assert gone_on.code == 0
    assert results("out.jsonl") == filled


def test_a_rescued_run_goes_on(steelyard: Steelyard) -> None:
    """`resume` judges what was lost, from rescued replies where there are any, and only then is it complete."""
    samples = facts(Path("facts.jsonl"), COUNT)
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE, "-o", "calm.jsonl", "--store", STORE).code == 0
        garble_verdicts(STORE)
        assert steelyard("runs", "rescue", STORE, "-o", "new.db").code == 0
        with Store.open(Path("new.db")) as store:
            (run,) = store.runs()
            assert (run.state, run.manifest["stopped"]) == ("stopped", "rescued from a damaged store")
            assert store.unaccounted(run.id, COUNT) == COUNT // 3
        assert steelyard("resume", "last", "--store", "new.db", "-o", "out.jsonl").code == 0
        assert len(server.requests) == 2 * COUNT
        with Store.open(Path("new.db")) as store:
            assert store.runs()[0].state == "complete"
    assert results("out.jsonl") == results("calm.jsonl")


def test_what_lies_in_the_log_is_rescued(steelyard: Steelyard, filled: list[dict[str, Any]]) -> None:
    """What was committed and not yet moved into the file, as after kill -9, is read from its log."""
    live = Path("live.db")
    with Store.open(live) as store, Store.open(STORE) as other:
        for run in other.runs():
            store.create_run(run.id, run.protocol, run.judge, run.started, run.manifest)
            store.add_verdicts(run.id, ((seq, *judged) for seq, judged in enumerate(other.verdicts(run.id))))
        for end in ("", "-wal"):
            shutil.copyfile(f"{live}{end}", f"dead.db{end}")
    assert Path("dead.db-wal").stat().st_size > Path("dead.db").stat().st_size
    Path("dead.db").write_bytes(b"\xa5" * Path("dead.db").stat().st_size)
    assert rescue(Path("dead.db"), Path("new.db"))[:2] == (1, COUNT)


def test_labels_by_people_and_bad_rows_are_rescued(tmp_path: Path) -> None:
    """They are dear; a store whose first page is gone gives them back as they were, each once."""
    path = tmp_path / "store.db"
    labels = [HumanLabel(sample=f"s{n}", kind="atom", item=n, label="correct", weight=1 + n / 2) for n in range(50)]
    with Store.open(path) as store:
        store.create_run("run-a", "atomic", "nobody", "2026-03-02", {})
        store.add_labels(labels)
        for n in range(200):
            store.add_bad_row("run-a", InputError("is empty", file="a.jsonl", line=n))
    garble_first_page(path)
    rescue(path, tmp_path / "new.db")
    with Store.open(tmp_path / "new.db") as store:
        assert sorted(store.labels(), key=lambda label: label.item or 0) == labels
        assert sorted(bad.line or 0 for bad in store.bad_rows("run-a")) == list(range(200))


def test_queues_and_cards_are_rescued(tmp_path: Path) -> None:
    """What people were given to label, who is at it, and the cards of judges: as they were."""
    path, new = tmp_path / "store.db", tmp_path / "new.db"
    items = [QueueItem(f"s{n}", "atom", None, n, 1.5, 2) for n in range(50)]
    with Store.open(path) as store:
        store.create_run("run-a", "atomic", "nobody", "2026-03-02", {})
        queue = store.add_queue("run-a", "周一", items, people=("mei", "jun"), policy="1", created="2026-03-02")
        store.claim(queue.id, "s1", "mei", "2026-03-03")
        store.add_card("shop", "nobody", "2026-03-02", '{"scope": {"data": "ab"}}')
        store.add_labels([HumanLabel(sample="s1", kind="atom", item=1, label="wrong", run="run-a", policy="1")])
        claims, cards = store.queue_claims(queue.id, "s1"), store.cards()
    for damage in (garble_header, garble_first_page):
        damage(path)
        rescue(path, new)
        with Store.open(new) as store:
            assert store.queues() == [queue]
            assert (store.queue_items(queue.id), store.queue_claims(queue.id, "s1")) == (items, claims)
            assert store.cards() == cards
            # What is worked out from them is not taken over, but worked out anew.
            assert store.queue_totals(queue.id).done == 1
        new.unlink()


@pytest.mark.parametrize("damage", [None, garble_first_page])
def test_labels_of_older_stores_are_rescued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None] | None
) -> None:
    """Those of a store from before disagreements were settled: none of them settles one."""
    path, steps = tmp_path / "store.db", sqlite_schema.MIGRATIONS
    before = steps[: next(n for n, step in enumerate(steps) if "adjudicated" in step)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db, monkeypatch.context() as older:
        older.setattr(sqlite_schema, "MIGRATIONS", before)
        sqlite_schema.migrate(db)
        row = ("run-a", "s1", "atom", -1, 2, "mei", "1", "correct", "2026-03-02", "", "at nine", 2.5, "sure")
        db.execute(f"INSERT INTO labels VALUES ({', '.join('?' * len(row))})", row)
    if damage:
        damage(path)
    rescue(path, tmp_path / "new.db")
    with Store.open(tmp_path / "new.db") as store:
        (label,) = store.labels()
    given = {"sample": "s1", "kind": "atom", "item": 2, "label": "correct", "annotator": "mei", "policy": "1"}
    more = {"time": "2026-03-02", "run": "run-a", "text": "at nine", "weight": 2.5, "note": "sure"}
    assert label == HumanLabel(**given, **more)


def test_a_sound_store_is_copied_whole(steelyard: Steelyard, filled: list[dict[str, Any]]) -> None:
    """Rescuing more than is needed does no harm: a complete run stays complete, a deleted one deleted."""
    with Store.open(STORE) as store:
        (run,) = store.runs()
    assert rescue(STORE, Path("new.db")) == Rescue(1, COUNT, 2 * COUNT, 0, 0, 0)
    with Store.open(Path("new.db")) as store:
        assert store.runs() == [run]
        store.delete_run(run.id)
    assert rescue(Path("new.db"), Path("newer.db")) == Rescue(0, 0, 2 * COUNT, 0, 0, 0)


@pytest.mark.parametrize(
    "make", [lambda path: path.write_text("notes " * 5000), lambda path: path.write_bytes(b"\0" * 9000)]
)
def test_what_never_was_a_store(steelyard: Steelyard, make: Callable[[Path], object]) -> None:
    """Another file is not called damaged, and rescuing it gives an empty store, not an error of ours."""
    make(Path("notes.txt"))
    done = steelyard("report", "last", "--store", "notes.txt")
    assert (done.code, "is not a Steelyard store" in done.err) == (5, True)
    assert rescue(Path("notes.txt"), Path("new.db")) == Rescue(0, 0, 0, 0, 0, 0)


def test_what_cannot_be_rescued_from_or_into(steelyard: Steelyard) -> None:
    """A file that is not there, and one that is there already, are refused before anything is written."""
    with pytest.raises(StoreError, match="there is no store"):
        rescue(Path("nosuch.db"), Path("new.db"))
    Path("new.db").write_text("mine", "utf-8")
    Path("old.db").touch()
    with pytest.raises(ConfigError, match="exists already"):
        rescue(Path("old.db"), Path("new.db"))
    assert Path("new.db").read_text("utf-8") == "mine"


@pytest.mark.parametrize("seed", range(30))
def test_no_damage_makes_the_reader_stumble(tmp_path: Path, seed: int) -> None:
    """Random bytes, truncation, wrong pointers: rows or nothing, never an exception or an endless loop."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a TEXT, b INTEGER, c REAL, d)")
        db.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [("x" * (n * 37 % 9000), n, n / 3, None) for n in range(300)]
        )
        db.commit()
    whole = [cell.values for cell in Pages.of(path).cells() if cell.has_rowid and len(cell.values) == 4]
    assert sorted(row[1] for row in whole) == list(range(300))
    draw = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(200):
        content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(content[: draw.randrange(len(content) // 2, len(content))])
    found = [cell.values for cell in Pages.of(path).cells()]
    assert len(found) < 5000
