"""The tables of a store in PostgreSQL, as numbered steps from nothing to today's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

# Append only: migration n brings a store from version n to n + 1. Texts that are sorted or compared go by code point,
# as in SQLite, whatever the language of the server.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        id TEXT COLLATE "C" PRIMARY KEY,
        number BIGINT NOT NULL UNIQUE,
        protocol TEXT NOT NULL,
        judge TEXT COLLATE "C" NOT NULL,
        state TEXT NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        manifest TEXT NOT NULL
    );
    CREATE TABLE identities (
        run TEXT COLLATE "C" PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        notes TEXT NOT NULL,
        tags TEXT NOT NULL,
        meta TEXT NOT NULL,
        project TEXT COLLATE "C" NOT NULL,
        baseline INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX baselines ON identities (project) WHERE baseline = 1;
    CREATE TABLE samples (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        id TEXT COLLATE "C" NOT NULL,
        sample TEXT NOT NULL,
        status TEXT COLLATE "C",
        verdict TEXT,
        PRIMARY KEY (run, seq)
    );
    CREATE INDEX samples_by_id ON samples USING hash (id);
    CREATE INDEX samples_by_status ON samples (run, status);
    CREATE TABLE bad_rows (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        file TEXT, line BIGINT, field TEXT, problem TEXT NOT NULL
    );
    CREATE INDEX bad_rows_by_run ON bad_rows (run);
    CREATE TABLE replies (
        key TEXT COLLATE "C" PRIMARY KEY,
        ask TEXT COLLATE "C" NOT NULL,
        task TEXT NOT NULL,
        judge TEXT COLLATE "C" NOT NULL,
        reply TEXT NOT NULL,
        raw TEXT NOT NULL,
        usage TEXT NOT NULL,
        run TEXT COLLATE "C"
    );
    CREATE INDEX replies_by_ask ON replies (ask);
    CREATE INDEX replies_by_run ON replies (run);
    CREATE TABLE used (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        ask TEXT COLLATE "C" NOT NULL,
        repeat INTEGER NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        PRIMARY KEY (run, ask, repeat)
    );
    CREATE TABLE unusable (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        key TEXT COLLATE "C" NOT NULL,
        unjudged TEXT NOT NULL,
        PRIMARY KEY (run, key)
    );
    CREATE TABLE labels (
        run TEXT COLLATE "C" NOT NULL,
        sample TEXT COLLATE "C" NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        turn BIGINT NOT NULL,
        item BIGINT NOT NULL,
        annotator TEXT COLLATE "C" NOT NULL,
        policy TEXT COLLATE "C" NOT NULL,
        label TEXT NOT NULL,
        time TEXT NOT NULL,
        about TEXT NOT NULL,
        text TEXT NOT NULL,
        weight DOUBLE PRECISION NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (run, sample, kind, turn, item, annotator, policy)
    );
    CREATE INDEX labels_by_sample ON labels (sample);
    CREATE TABLE wordings (
        sha256 TEXT COLLATE "C" PRIMARY KEY,
        prompt TEXT COLLATE "C" NOT NULL,
        version BIGINT NOT NULL,
        text TEXT NOT NULL
    );
    CREATE TABLE listed (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        id TEXT COLLATE "C" NOT NULL,
        status TEXT COLLATE "C" NOT NULL,
        title TEXT COLLATE "C" NOT NULL,
        scores TEXT NOT NULL,
        flags TEXT NOT NULL,
        tags TEXT NOT NULL,
        labels TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    );
    CREATE TABLE scored (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT COLLATE "C" NOT NULL,
        block BIGINT NOT NULL,
        at INTEGER NOT NULL,
        vals BYTEA NOT NULL,
        PRIMARY KEY (run, name, block)
    );
    CREATE INDEX scored_by_block ON scored (run, block);
    CREATE TABLE faceted (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        what TEXT COLLATE "C" NOT NULL,
        value TEXT COLLATE "C" NOT NULL,
        block BIGINT NOT NULL,
        places BYTEA NOT NULL
    );
    CREATE INDEX faceted_by_what ON faceted (run, what);
    CREATE INDEX faceted_by_block ON faceted (run, block);
    CREATE TABLE texts (place BIGINT PRIMARY KEY, text TEXT COLLATE "C" NOT NULL);
    CREATE TABLE worked_out (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT COLLATE "C" NOT NULL,
        key TEXT NOT NULL,
        value BYTEA NOT NULL,
        PRIMARY KEY (run, name)
    );
    CREATE TABLE unlisted (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        PRIMARY KEY (run, seq)
    );
    CREATE FUNCTION verdicts_are_unlisted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO unlisted SELECT run, seq FROM news
            ON CONFLICT (run, seq) DO UPDATE SET seq = excluded.seq;  -- not NOTHING: whoever lists it must wait for us
        RETURN NULL;
    END $$;
    CREATE TRIGGER new_verdicts_are_unlisted AFTER INSERT ON samples
        REFERENCING NEW TABLE AS news FOR EACH STATEMENT EXECUTE FUNCTION verdicts_are_unlisted();
    CREATE TRIGGER changed_verdicts_are_unlisted AFTER UPDATE ON samples
        REFERENCING NEW TABLE AS news FOR EACH STATEMENT EXECUTE FUNCTION verdicts_are_unlisted();
    CREATE FUNCTION run_takes_its_texts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM texts WHERE place BETWEEN old.number << 32 AND (old.number << 32) + 4294967295;
        RETURN NULL;
    END $$;
    CREATE TRIGGER run_takes_its_texts AFTER DELETE ON runs
        FOR EACH ROW EXECUTE FUNCTION run_takes_its_texts();
    """,
    # Runs that several workers judge together (work_table.py).
    """
    CREATE TABLE quotas (
        run TEXT COLLATE "C" PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        silence DOUBLE PRECISION NOT NULL,
        quota TEXT NOT NULL
    );
    CREATE TABLE queued (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        sample TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    );
    CREATE TABLE workers (
        id TEXT COLLATE "C" PRIMARY KEY,
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        host TEXT NOT NULL,
        process BIGINT NOT NULL,
        joined_at TIMESTAMPTZ NOT NULL,
        heard_at TIMESTAMPTZ NOT NULL,
        left_at TIMESTAMPTZ,
        judged BIGINT NOT NULL DEFAULT 0,
        in_flight BIGINT NOT NULL DEFAULT 0,
        calls BIGINT NOT NULL DEFAULT 0,
        prompt_tokens BIGINT NOT NULL DEFAULT 0,
        completion_tokens BIGINT NOT NULL DEFAULT 0,
        cached_tokens BIGINT NOT NULL DEFAULT 0,
        cost DOUBLE PRECISION,
        cap_cost DOUBLE PRECISION NOT NULL DEFAULT 0,
        cap_tokens DOUBLE PRECISION NOT NULL DEFAULT 0,
        paid BIGINT NOT NULL DEFAULT 0
    );
    CREATE INDEX workers_by_run ON workers (run);
    CREATE TABLE leases (
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        first BIGINT NOT NULL,
        last BIGINT NOT NULL,
        worker TEXT COLLATE "C",
        taken INTEGER NOT NULL DEFAULT 0,
        done_at TIMESTAMPTZ,
        PRIMARY KEY (run, first)
    );
    CREATE INDEX leases_by_worker ON leases (worker);
    CREATE TABLE claims (
        key TEXT COLLATE "C" PRIMARY KEY,
        worker TEXT COLLATE "C" NOT NULL REFERENCES workers(id) ON DELETE CASCADE
    );
    CREATE INDEX claims_by_worker ON claims (worker);
    """,
    # Accounts of a team's server: who may do what in which project, and what was done.
    """
    CREATE TABLE users (
        name TEXT COLLATE "C" PRIMARY KEY,
        password TEXT NOT NULL,
        subject TEXT COLLATE "C" NOT NULL,
        created TEXT NOT NULL,
        disabled TEXT
    );
    CREATE UNIQUE INDEX users_by_subject ON users (subject) WHERE subject <> '';
    CREATE TABLE memberships (
        member TEXT COLLATE "C" NOT NULL REFERENCES users(name) ON DELETE CASCADE,
        project TEXT COLLATE "C" NOT NULL,
        role TEXT NOT NULL,
        PRIMARY KEY (member, project)
    );
    CREATE TABLE tokens (
        id TEXT COLLATE "C" PRIMARY KEY,
        name TEXT NOT NULL,
        digest TEXT COLLATE "C" NOT NULL UNIQUE,
        owner TEXT COLLATE "C" NOT NULL,
        role TEXT NOT NULL,
        project TEXT COLLATE "C" NOT NULL,
        created TEXT NOT NULL,
        expires TEXT NOT NULL,
        revoked TEXT,
        used TEXT
    );
    CREATE TABLE sessions (
        digest TEXT COLLATE "C" PRIMARY KEY,
        member TEXT COLLATE "C" NOT NULL REFERENCES users(name) ON DELETE CASCADE,
        created TEXT COLLATE "C" NOT NULL,
        seen TEXT NOT NULL
    );
    CREATE TABLE audit (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        time TEXT COLLATE "C" NOT NULL,
        actor TEXT COLLATE "C" NOT NULL,
        address TEXT COLLATE "C" NOT NULL,
        action TEXT COLLATE "C" NOT NULL,
        target TEXT NOT NULL,
        project TEXT COLLATE "C" NOT NULL,
        outcome TEXT NOT NULL
    );
    CREATE INDEX audit_by_action ON audit (action, time);
    """,
    # Since when a worker has been heard of without a gap: before that it cannot tell whether others are gone.
    """
    ALTER TABLE workers ADD COLUMN steady_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();
    """,
    # Sets of samples. A version is never changed: what it holds is what was added by then and not yet removed.
    """
    CREATE TABLE sample_sets (
        id INTEGER NOT NULL,
        project TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        PRIMARY KEY (id),
        UNIQUE (project, name)
    );
    CREATE TABLE set_versions (
        sample_set INTEGER NOT NULL REFERENCES sample_sets(id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        time TEXT NOT NULL,
        author TEXT COLLATE "C" NOT NULL,
        note TEXT NOT NULL,
        samples INTEGER NOT NULL,
        PRIMARY KEY (sample_set, version)
    );
    CREATE TABLE set_samples (
        sample_set INTEGER NOT NULL REFERENCES sample_sets(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        id TEXT COLLATE "C" NOT NULL,
        sample TEXT NOT NULL,
        run TEXT COLLATE "C" NOT NULL,
        added_in INTEGER NOT NULL,
        removed_in INTEGER,
        PRIMARY KEY (sample_set, place)
    );
    CREATE INDEX set_samples_held ON set_samples (sample_set, place, added_in, removed_in);
    CREATE INDEX set_samples_by_id ON set_samples USING hash (id);
    """,
    """
    ALTER TABLE labels ADD COLUMN adjudicated INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE labels DROP CONSTRAINT labels_pkey;
    ALTER TABLE labels ADD PRIMARY KEY (run, sample, kind, turn, item, annotator, policy, adjudicated);
    CREATE TABLE queues (
        id INTEGER PRIMARY KEY,
        run TEXT COLLATE "C" NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        people TEXT NOT NULL,
        policy TEXT COLLATE "C" NOT NULL,
        blind INTEGER NOT NULL,
        created TEXT NOT NULL,
        author TEXT COLLATE "C" NOT NULL,
        closed TEXT
    );
    CREATE TABLE queue_items (
        queue INTEGER NOT NULL REFERENCES queues(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        sample TEXT COLLATE "C" NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        turn BIGINT NOT NULL,
        item BIGINT NOT NULL,
        weight DOUBLE PRECISION NOT NULL,
        wanted INTEGER NOT NULL,
        PRIMARY KEY (queue, place)
    );
    CREATE TABLE queue_claims (
        queue INTEGER NOT NULL REFERENCES queues(id) ON DELETE CASCADE,
        sample TEXT COLLATE "C" NOT NULL,
        person TEXT COLLATE "C" NOT NULL,
        time TEXT NOT NULL,
        PRIMARY KEY (queue, sample, person)
    );
    CREATE TABLE judge_cards (
        id INTEGER PRIMARY KEY,
        project TEXT COLLATE "C" NOT NULL,
        judge TEXT NOT NULL,
        made TEXT NOT NULL,
        card TEXT NOT NULL
    );
    """,
    # How far each item of a queue is, kept up with every label: no page has to count labels anew. And experiments that
    # were composed in the viewer.
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
    );
    CREATE TABLE experiments (
        id INTEGER NOT NULL,
        project TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        design TEXT NOT NULL,
        created TEXT NOT NULL,
        author TEXT COLLATE "C" NOT NULL,
        PRIMARY KEY (id)
    );
    CREATE TABLE label_changes (run TEXT COLLATE "C" PRIMARY KEY, n BIGINT NOT NULL);
    INSERT INTO queue_counts SELECT i.queue, i.place, i.wanted,
        (SELECT count(*) FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
            AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 0),
        (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = q.run AND l.sample = i.sample
            AND l.kind = i.kind AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy
            AND l.adjudicated = 0),
        (EXISTS (SELECT 1 FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
            AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 1))::int
        FROM queue_items i JOIN queues q ON q.id = i.queue;
    CREATE FUNCTION item_is_counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO queue_counts SELECT i.queue, i.place, i.wanted,
            (SELECT count(*) FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
                AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 0),
            (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = q.run AND l.sample = i.sample
                AND l.kind = i.kind AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy
                AND l.adjudicated = 0),
            (EXISTS (SELECT 1 FROM labels l WHERE l.run = q.run AND l.sample = i.sample AND l.kind = i.kind
                AND l.turn = i.turn AND l.item = i.item AND l.policy = q.policy AND l.adjudicated = 1))::int
            FROM queue_items i JOIN queues q ON q.id = i.queue WHERE i.queue = new.queue AND i.place = new.place;
        RETURN NULL;
    END $$;
    CREATE TRIGGER item_is_counted AFTER INSERT ON queue_items FOR EACH ROW EXECUTE FUNCTION item_is_counted();
    CREATE FUNCTION count_label(x labels) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        -- First: whoever labels the same run at the same moment waits here, and then sees this label.
        INSERT INTO label_changes VALUES (x.run, 1) ON CONFLICT (run) DO UPDATE SET n = label_changes.n + 1;
        UPDATE queue_counts c SET
            given = (SELECT count(*) FROM labels l WHERE l.run = x.run AND l.sample = x.sample AND l.kind = x.kind
                AND l.turn = x.turn AND l.item = x.item AND l.policy = x.policy AND l.adjudicated = 0),
            different = (SELECT count(DISTINCT l.label) FROM labels l WHERE l.run = x.run AND l.sample = x.sample
                AND l.kind = x.kind AND l.turn = x.turn AND l.item = x.item AND l.policy = x.policy
                AND l.adjudicated = 0),
            settled = (EXISTS (SELECT 1 FROM labels l WHERE l.run = x.run AND l.sample = x.sample AND l.kind = x.kind
                AND l.turn = x.turn AND l.item = x.item AND l.policy = x.policy AND l.adjudicated = 1))::int
            FROM queue_items i JOIN queues q ON q.id = i.queue
            WHERE c.queue = i.queue AND c.place = i.place AND q.run = x.run AND q.policy = x.policy
                AND i.sample = x.sample AND i.kind = x.kind AND i.turn = x.turn AND i.item = x.item;
    END $$;
    CREATE FUNCTION label_is_counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF tg_op = 'DELETE' THEN
            PERFORM count_label(old);
        ELSE
            PERFORM count_label(new);
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER label_is_counted AFTER INSERT OR UPDATE OR DELETE ON labels
        FOR EACH ROW EXECUTE FUNCTION label_is_counted();
    """,
)
VERSION = "steelyard_version"
# In one statement: another process may make all of them between two.
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
# Whoever comes second waits here until the first has made the tables.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/migrations', 0))"


def migrate(db: Connection[Any], name: str, *, create: bool) -> None:
    """Bring the schema to the current version: all migrations or none, whoever else is about to do the same."""
    if _version(db, name, create=create) == len(MIGRATIONS):
        return
    with db.transaction():
        db.execute(ONE_AT_A_TIME)
        version = _version(db, name, create=create)
        if not version:
            db.execute(f"CREATE TABLE IF NOT EXISTS {VERSION} (version INTEGER NOT NULL)")
            db.execute(f"INSERT INTO {VERSION} VALUES (0)")
        for script in MIGRATIONS[version:]:
            db.execute(script.encode())
        db.execute(f"UPDATE {VERSION} SET version = %s", (len(MIGRATIONS),))


def _version(db: Connection[Any], name: str, *, create: bool) -> int:
    """Which version the tables have; 0 where there are none. Refused: a newer one, and tables of another program."""
    if db.execute("SELECT current_schema()").fetchone() == (None,):
        raise StoreError(f"store {name}: the schema that search_path names does not exist; create it first")
    tables = {table for (table,) in db.execute(TABLES)}
    if VERSION not in tables:
        if tables & {"runs", "samples"}:
            raise StoreError(f"{name} holds tables of some other program; name another database or schema")
        if not create:
            raise StoreError(f"there is no store in {name} yet; judge something first, or name another store")
        return 0
    row = db.execute(f"SELECT max(version) FROM {VERSION}").fetchone()
    version = int(row[0] or 0) if row else 0
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{name} was made by a newer Steelyard (schema {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade, or name another store"
        )
    return version
