"""The tables of a store in SQLite, as numbered steps from nothing to today's."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import StoreError

# Append only: migration n brings a store from version n to n + 1.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        number INTEGER NOT NULL UNIQUE,
        protocol TEXT NOT NULL,
        judge TEXT NOT NULL,
        state TEXT NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        manifest TEXT NOT NULL
    );
    CREATE TABLE samples (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        id TEXT NOT NULL,
        sample TEXT NOT NULL,
        status TEXT,
        verdict TEXT,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE INDEX samples_by_id ON samples (run, id);
    CREATE TABLE bad_rows (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        file TEXT, line INTEGER, field TEXT, problem TEXT NOT NULL
    );
    CREATE TABLE replies (
        key TEXT PRIMARY KEY,
        ask TEXT NOT NULL,
        task TEXT NOT NULL,
        judge TEXT NOT NULL,
        reply TEXT NOT NULL,
        raw TEXT NOT NULL,
        usage TEXT NOT NULL,
        run TEXT
    ) WITHOUT ROWID;
    CREATE INDEX replies_by_ask ON replies (ask);
    """,
    # Which reply a run was given to an ask, and which asks of a run the judge answered uselessly.
    """
    CREATE TABLE used (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        ask TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        key TEXT NOT NULL,
        PRIMARY KEY (run, ask, repeat)
    ) WITHOUT ROWID;
    CREATE TABLE unusable (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        unjudged TEXT NOT NULL,
        PRIMARY KEY (run, key)
    ) WITHOUT ROWID;
    """,
    # What people say. No reference to runs: labels are dear, and outlive the run they were made on.
    """
    CREATE TABLE labels (
        run TEXT NOT NULL,
        sample TEXT NOT NULL,
        kind TEXT NOT NULL,
        turn INTEGER NOT NULL,
        item INTEGER NOT NULL,
        annotator TEXT NOT NULL,
        policy TEXT NOT NULL,
        label TEXT NOT NULL,
        time TEXT NOT NULL,
        about TEXT NOT NULL,
        text TEXT NOT NULL,
        weight REAL NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (run, sample, kind, turn, item, annotator, policy)
    ) WITHOUT ROWID;
    CREATE INDEX labels_by_sample ON labels (sample);
    """,
    # Replies in the order they came: kept sorted by their hashes, rows of this size took twice the time to write.
    """
    CREATE TABLE arrived (
        key TEXT PRIMARY KEY,
        ask TEXT NOT NULL,
        task TEXT NOT NULL,
        judge TEXT NOT NULL,
        reply TEXT NOT NULL,
        raw TEXT NOT NULL,
        usage TEXT NOT NULL,
        run TEXT
    );
    INSERT INTO arrived SELECT key, ask, task, judge, reply, raw, usage, run FROM replies;
    DROP TABLE replies;
    ALTER TABLE arrived RENAME TO replies;
    """,
    # How many samples of a run have which status is read from the index alone: the table is as large as all texts.
    # Samples as tables show them, filled when somebody looks (listing.py); writing only notes what is new.
    """
    CREATE INDEX samples_by_status ON samples (run, status);
    CREATE TABLE listed (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        id TEXT NOT NULL,
        status TEXT NOT NULL,
        title TEXT NOT NULL,
        scores TEXT NOT NULL,
        flags TEXT NOT NULL,
        tags TEXT NOT NULL,
        labels TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE TABLE searched (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE TABLE summaries (
        run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        summary TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE unlisted (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    INSERT INTO unlisted SELECT run, seq FROM samples;
    CREATE TRIGGER verdict_is_unlisted AFTER INSERT ON samples BEGIN
        INSERT OR IGNORE INTO unlisted VALUES (new.run, new.seq);
    END;
    """,
    # The words of the prompts that runs were judged by, so that a later version can be compared with them.
    """
    CREATE TABLE wordings (
        sha256 TEXT PRIMARY KEY,
        prompt TEXT NOT NULL,
        version INTEGER NOT NULL,
        text TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    # The table of samples by column, a block of samples to a row, and what was worked out from it and holds until it
    # changes: counts, orders, the report (listing/keeping.py).
    # Texts lie at the number of their run and their place in it, so that an index needs to know nothing else.
    """
    DROP TABLE searched;
    CREATE TABLE scored (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        block INTEGER NOT NULL,
        at INTEGER NOT NULL,
        vals BLOB NOT NULL,
        PRIMARY KEY (run, name, block)
    ) WITHOUT ROWID;
    CREATE INDEX scored_by_block ON scored (run, block);
    CREATE TABLE faceted (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        what TEXT NOT NULL,
        value TEXT NOT NULL,
        block INTEGER NOT NULL,
        places BLOB NOT NULL,
        PRIMARY KEY (run, what, value, block)
    ) WITHOUT ROWID;
    CREATE INDEX faceted_by_block ON faceted (run, block);
    CREATE TABLE texts (place INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE TRIGGER run_takes_its_texts AFTER DELETE ON runs BEGIN
        DELETE FROM texts WHERE place BETWEEN old.number << 32 AND (old.number << 32) + 4294967295;
    END;
    DROP TABLE summaries;
    CREATE TABLE worked_out (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID;
    INSERT OR IGNORE INTO unlisted SELECT run, seq FROM samples;
    """,
    # What people call a run and note about it. A verdict that takes the place of another is listed anew.
    """
    CREATE TABLE identities (
        run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        notes TEXT NOT NULL,
        tags TEXT NOT NULL,
        meta TEXT NOT NULL,
        project TEXT NOT NULL,
        baseline INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX baselines ON identities (project) WHERE baseline = 1;
    INSERT INTO identities
        SELECT id, json_extract(manifest, '$.name'), '', '[]', '{}', '', 0 FROM runs
        WHERE json_type(manifest, '$.name') = 'text';
    DROP TRIGGER verdict_is_unlisted;
    CREATE TRIGGER new_verdict_is_unlisted AFTER INSERT ON samples BEGIN
        INSERT INTO unlisted SELECT new.run, new.seq
            WHERE NOT EXISTS (SELECT 1 FROM unlisted WHERE run = new.run AND seq = new.seq);
    END;
    CREATE TRIGGER changed_verdict_is_unlisted AFTER UPDATE ON samples BEGIN
        INSERT INTO unlisted SELECT new.run, new.seq
            WHERE NOT EXISTS (SELECT 1 FROM unlisted WHERE run = new.run AND seq = new.seq);
    END;
    """,
    # Accounts of a team's server: who may do what in which project, and what was done.
    """
    CREATE TABLE users (
        name TEXT PRIMARY KEY,
        password TEXT NOT NULL,
        subject TEXT NOT NULL,
        created TEXT NOT NULL,
        disabled TEXT
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX users_by_subject ON users (subject) WHERE subject <> '';
    CREATE TABLE memberships (
        member TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
        project TEXT NOT NULL,
        role TEXT NOT NULL,
        PRIMARY KEY (member, project)
    ) WITHOUT ROWID;
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        digest TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        role TEXT NOT NULL,
        project TEXT NOT NULL,
        created TEXT NOT NULL,
        expires TEXT NOT NULL,
        revoked TEXT,
        used TEXT
    ) WITHOUT ROWID;
    CREATE TABLE sessions (
        digest TEXT PRIMARY KEY,
        member TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
        created TEXT NOT NULL,
        seen TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        time TEXT NOT NULL,
        actor TEXT NOT NULL,
        address TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT NOT NULL,
        project TEXT NOT NULL,
        outcome TEXT NOT NULL
    );
    CREATE INDEX audit_by_action ON audit (action, time);
    """,
    # Sets of samples. A version is never changed: what it holds is what was added by then and not yet removed.
    """
    CREATE TABLE sample_sets (
        id INTEGER NOT NULL,
        project TEXT NOT NULL,
        name TEXT NOT NULL,
        PRIMARY KEY (id),
        UNIQUE (project, name)
    ) WITHOUT ROWID;
    CREATE TABLE set_versions (
        sample_set INTEGER NOT NULL REFERENCES sample_sets(id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        time TEXT NOT NULL,
        author TEXT NOT NULL,
        note TEXT NOT NULL,
        samples INTEGER NOT NULL,
        PRIMARY KEY (sample_set, version)
    ) WITHOUT ROWID;
    CREATE TABLE set_samples (
        sample_set INTEGER NOT NULL REFERENCES sample_sets(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        id TEXT NOT NULL,
        sample TEXT NOT NULL,
        run TEXT NOT NULL,
        added_in INTEGER NOT NULL,
        removed_in INTEGER,
        PRIMARY KEY (sample_set, place)
    ) WITHOUT ROWID;
    CREATE INDEX set_samples_held ON set_samples (sample_set, place, added_in, removed_in);
    CREATE INDEX set_samples_by_id ON set_samples (sample_set, id);
    """,
    # What several people label, who decided where they differ, and the cards of judges. A label that settles a
    # disagreement stands beside those it settles, also of whoever gave one of them.
    """
    CREATE TABLE judged_by_people (
        run TEXT NOT NULL,
        sample TEXT NOT NULL,
        kind TEXT NOT NULL,
        turn INTEGER NOT NULL,
        item INTEGER NOT NULL,
        annotator TEXT NOT NULL,
        policy TEXT NOT NULL,
        adjudicated INTEGER NOT NULL,
        label TEXT NOT NULL,
        time TEXT NOT NULL,
        about TEXT NOT NULL,
        text TEXT NOT NULL,
        weight REAL NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (run, sample, kind, turn, item, annotator, policy, adjudicated)
    ) WITHOUT ROWID;
    INSERT INTO judged_by_people SELECT run, sample, kind, turn, item, annotator, policy, 0, label, time, about, text,
        weight, note FROM labels;
    DROP TABLE labels;
    ALTER TABLE judged_by_people RENAME TO labels;
    CREATE INDEX labels_by_sample ON labels (sample);
    CREATE TABLE queues (
        id INTEGER NOT NULL,
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        people TEXT NOT NULL,
        policy TEXT NOT NULL,
        blind INTEGER NOT NULL,
        created TEXT NOT NULL,
        author TEXT NOT NULL,
        closed TEXT,
        PRIMARY KEY (id)
    ) WITHOUT ROWID;
    CREATE TABLE queue_items (
        queue INTEGER NOT NULL REFERENCES queues(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        sample TEXT NOT NULL,
        kind TEXT NOT NULL,
        turn INTEGER NOT NULL,
        item INTEGER NOT NULL,
        weight REAL NOT NULL,
        wanted INTEGER NOT NULL,
        PRIMARY KEY (queue, place)
    ) WITHOUT ROWID;
    CREATE TABLE queue_claims (
        queue INTEGER NOT NULL REFERENCES queues(id) ON DELETE CASCADE,
        sample TEXT NOT NULL,
        person TEXT NOT NULL,
        time TEXT NOT NULL,
        PRIMARY KEY (queue, sample, person)
    ) WITHOUT ROWID;
    CREATE TABLE judge_cards (
        id INTEGER NOT NULL,
        project TEXT NOT NULL,
        judge TEXT NOT NULL,
        made TEXT NOT NULL,
        card TEXT NOT NULL,
        PRIMARY KEY (id)
    ) WITHOUT ROWID;
    """,
    # How far each item of a queue is, kept up with every label: no page has to count labels anew. Experiments that were
    # composed in the viewer. And roles of names that no user has yet: whoever gives one does not learn who there is.
    """
    CREATE INDEX queues_by_run ON queues (run, policy);
    CREATE INDEX queue_items_by_sample ON queue_items (sample, kind, turn, item);
    CREATE INDEX labels_by_person ON labels (run, annotator, policy, adjudicated, time);
    CREATE TABLE queue_counts (
        queue INTEGER NOT NULL REFERENCES queues(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        wanted INTEGER NOT NULL,
        given INTEGER NOT NULL,
        different INTEGER NOT NULL,
        settled INTEGER NOT NULL,
        PRIMARY KEY (queue, place)
    ) WITHOUT ROWID;
    CREATE TABLE experiments (
        id INTEGER NOT NULL,
        project TEXT NOT NULL,
        name TEXT NOT NULL,
        design TEXT NOT NULL,
        created TEXT NOT NULL,
        author TEXT NOT NULL,
        PRIMARY KEY (id)
    ) WITHOUT ROWID;
    CREATE TABLE roles (
        member TEXT NOT NULL,
        project TEXT NOT NULL,
        role TEXT NOT NULL,
        PRIMARY KEY (member, project)
    ) WITHOUT ROWID;
    INSERT INTO roles SELECT member, project, role FROM memberships;
    DROP TABLE memberships;
    ALTER TABLE roles RENAME TO memberships;
    CREATE TABLE label_changes (run TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO queue_counts SELECT i.queue, i.place, i.wanted,
        (SELECT count(*) FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
            AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 0),
        (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = q.run AND l.sample = i.sample
            AND l.kind = i.kind AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy
            AND l.adjudicated = 0),
        EXISTS (SELECT 1 FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
            AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 1)
        FROM queue_items i JOIN queues q ON q.id = i.queue;
    CREATE TRIGGER item_is_counted AFTER INSERT ON queue_items BEGIN
        INSERT INTO queue_counts SELECT i.queue, i.place, i.wanted,
            (SELECT count(*) FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
                AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 0),
            (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = q.run AND l.sample = i.sample
                AND l.kind = i.kind AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy
                AND l.adjudicated = 0),
            EXISTS (SELECT 1 FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
                AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 1)
            FROM queue_items i JOIN queues q ON q.id = i.queue WHERE i.queue = new.queue AND i.place = new.place;
    END;
    CREATE TRIGGER new_label_is_counted AFTER INSERT ON labels BEGIN
        UPDATE queue_counts SET
            given = (SELECT count(*) FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 0),
            different = (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 0),
            settled = EXISTS (SELECT 1 FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 1)
            WHERE (queue, place) IN (SELECT i.queue, i.place FROM queue_items i JOIN queues q ON q.id = i.queue
                WHERE i.sample = new.sample AND i.kind = new.kind AND i.turn = new.turn AND i.item = new.item
                AND q.run = new.run AND q.policy = new.policy);
        INSERT INTO label_changes VALUES (new.run, 1) ON CONFLICT (run) DO UPDATE SET n = n + 1;
    END;
    CREATE TRIGGER changed_label_is_counted AFTER UPDATE ON labels BEGIN
        UPDATE queue_counts SET
            given = (SELECT count(*) FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 0),
            different = (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 0),
            settled = EXISTS (SELECT 1 FROM labels l WHERE l.run = new.run AND l.sample = new.sample
                AND l.kind = new.kind AND l.turn = new.turn AND l.item = new.item AND l.policy = new.policy
                AND l.adjudicated = 1)
            WHERE (queue, place) IN (SELECT i.queue, i.place FROM queue_items i JOIN queues q ON q.id = i.queue
                WHERE i.sample = new.sample AND i.kind = new.kind AND i.turn = new.turn AND i.item = new.item
                AND q.run = new.run AND q.policy = new.policy);
        INSERT INTO label_changes VALUES (new.run, 1) ON CONFLICT (run) DO UPDATE SET n = n + 1;
    END;
    CREATE TRIGGER removed_label_is_counted AFTER DELETE ON labels BEGIN
        UPDATE queue_counts SET
            given = (SELECT count(*) FROM labels l WHERE l.run = old.run AND l.sample = old.sample
                AND l.kind = old.kind AND l.turn = old.turn AND l.item = old.item AND l.policy = old.policy
                AND l.adjudicated = 0),
            different = (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = old.run AND l.sample = old.sample
                AND l.kind = old.kind AND l.turn = old.turn AND l.item = old.item AND l.policy = old.policy
                AND l.adjudicated = 0),
            settled = EXISTS (SELECT 1 FROM labels l WHERE l.run = old.run AND l.sample = old.sample
                AND l.kind = old.kind AND l.turn = old.turn AND l.item = old.item AND l.policy = old.policy
                AND l.adjudicated = 1)
            WHERE (queue, place) IN (SELECT i.queue, i.place FROM queue_items i JOIN queues q ON q.id = i.queue
                WHERE i.sample = old.sample AND i.kind = old.kind AND i.turn = old.turn AND i.item = old.item
                AND q.run = old.run AND q.policy = old.policy);
        INSERT INTO label_changes VALUES (old.run, 1) ON CONFLICT (run) DO UPDATE SET n = n + 1;
    END;
    """,
    # Runs that several processes judge together (work_table.py). Times are seconds since 1970.
    """
    CREATE TABLE quotas (
        run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        silence REAL NOT NULL,
        quota TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE queued (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        sample TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE TABLE workers (
        id TEXT PRIMARY KEY,
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        host TEXT NOT NULL,
        process INTEGER NOT NULL,
        joined_at REAL NOT NULL,
        heard_at REAL NOT NULL,
        left_at REAL,
        judged INTEGER NOT NULL DEFAULT 0,
        in_flight INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0,
        cached_tokens INTEGER NOT NULL DEFAULT 0,
        cost REAL,
        cap_cost REAL NOT NULL DEFAULT 0,
        cap_tokens REAL NOT NULL DEFAULT 0,
        paid INTEGER NOT NULL DEFAULT 0,
        steady_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX workers_by_run ON workers (run);
    CREATE TABLE leases (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        worker TEXT,
        taken INTEGER NOT NULL DEFAULT 0,
        done_at REAL,
        PRIMARY KEY (run, first)
    ) WITHOUT ROWID;
    CREATE INDEX leases_by_worker ON leases (worker);
    CREATE TABLE claims (
        key TEXT PRIMARY KEY,
        worker TEXT NOT NULL REFERENCES workers(id) ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE INDEX claims_by_worker ON claims (worker);
    """,
)


# How SQLite says that a file is not what it wrote.
DAMAGE = ("malformed", "not a database", "no such table", "no such column", "Could not decode")
FIRST_TABLES = frozenset({"runs", "samples", "bad_rows", "replies"})
# What replies and the schema leave in a file whose beginning is gone; binary, unlike a file of result lines.
TRACES = (b"CREATE TABLE runs", b'{"calls":')


def damaged(path: Path, why: str) -> StoreError:
    """What to do about a store that cannot be read any more, or not all of it."""
    return StoreError(
        f"store {path} is damaged ({why}); copy what can be read into a new one with: "
        f"steelyard runs rescue {path} -o NEW.db"
    )


def has_traces(path: Path) -> bool:
    """Whether a file that SQLite does not take for a database was once a store."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return b"\x00" in content and any(trace in content for trace in TRACES)


def table_names() -> frozenset[str]:
    """The tables of today's schema."""
    names: set[str] = set()
    for verb, name, new in re.findall(r"(CREATE|DROP|ALTER) TABLE (\w+)(?: RENAME TO (\w+))?", "\n".join(MIGRATIONS)):
        names = names | {name} if verb == "CREATE" else names - {name}
        if new:
            names.add(new)
    return frozenset(names)


def check_ours(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a store of a newer version, a damaged one, and a database that some other program made."""
    # The tables first: another process may make them and set the version between the two looks.
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was made by a newer Steelyard (schema {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade, or name another store"
        )
    if not tables:
        return
    if len(tables & FIRST_TABLES) < 2:
        raise StoreError(f"{path} is a database of some other program; name another store")
    wanted = table_names() if version == len(MIGRATIONS) else FIRST_TABLES
    if missing := sorted(wanted - tables):
        raise damaged(path, f"the table {missing[0]} is missing")
    if not version:
        raise damaged(path, "its version is missing")


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema to the current version: all migrations or none, whoever else is about to do the same."""
    if db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have been first.
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for script in MIGRATIONS[version:]:
            for statement in statements(script):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger is one, whatever stands in it."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
