"""The table of samples: pages, order, search and filters, over verdicts of every protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_fixtures import atomic, dialogue, dialogue_sample, grounded, rag, some_of
from steelyard.errors import ConfigError
from steelyard.records import Sample, Verdict
from steelyard.store import Store, postgres, sqlite
from steelyard.store.listing import (
    Range,
    SampleQuery,
    catch_up,
    index,
    known_summary,
    neighbours,
    searchable,
    summary,
    table,
    unlisted,
)
from steelyard.store.listing.failures import failures, known_failures

RUN = "run-a"


@pytest.fixture
def store(any_store: Store) -> Store:
    """A store of either kind, with a run that has just begun."""
    any_store.create_run(RUN, "atomic", "scripted", "2026-03-02T10:00:00+00:00", {})
    return any_store


def add(store: Store, *judged: tuple[Verdict, Sample]) -> None:
    start = sum(store.judged(RUN).values())
    store.add_verdicts(RUN, [(start + n, sample, verdict) for n, (verdict, sample) in enumerate(judged)])


def ids(store: Store, **query: object) -> list[str]:
    return [row.id for row in table(store, RUN, SampleQuery.model_validate(query)).rows]


def test_a_plain_page_needs_no_listing(store: Store) -> None:
    """The first look reads the page's own verdicts only, and shows what the listing would."""
    add(store, *some_of("atomic"))
    plain = table(store, RUN, SampleQuery())
    assert unlisted(store, RUN) == 5
    catch_up(store, RUN)
    assert unlisted(store, RUN) == 0
    assert sorted(table(store, RUN, SampleQuery(sort="id")).rows, key=lambda row: row.seq) == list(plain.rows)
    assert plain.rows[1].flags == ("injection_suspected",)
    assert plain.rows[1].labels == {"atom:correct": 1, "atom:wrong": 1}
    assert plain.rows[0].title.startswith("大灯是否可以贴膜")


def test_pages(store: Store) -> None:
    """Pages follow each other without a gap in every order; the total is that of all pages."""
    add(store, *[(atomic(f"s{n:02}", ["correct"] * (n % 3) + ["wrong"]), rag(f"s{n:02}")) for n in range(23)])
    for sort in ("seq", "accuracy", "id", "flags"):
        pages = [table(store, RUN, SampleQuery(sort=sort, page=page, per_page=10)) for page in (1, 2, 3, 4)]
        assert [len(page.rows) for page in pages] == [10, 10, 3, 0]
        assert len({row.seq for page in pages for row in page.rows}) == 23
        assert {(page.total, page.n, page.pages) for page in pages} == {(23, 23, 3)}


def test_order(store: Store) -> None:
    """By a score, samples without it are last both ways; what is equal stays in the order of the input."""
    labels = {
        "half": ["correct", "wrong"],
        "none": ["exempt"],
        "full": ["correct"],
        "zero": ["wrong"],
        "also": ["wrong"],
    }
    add(store, *[(atomic(id, found), rag(id)) for id, found in labels.items()])
    assert ids(store, sort="accuracy") == ["zero", "also", "half", "full", "none"]
    assert ids(store, sort="accuracy", descending=True) == ["full", "half", "zero", "also", "none"]
    assert ids(store, descending=True) == list(reversed(labels))
    with pytest.raises(ConfigError, match="no score"):
        ids(store, sort="accuracy') --")


def test_filters(store: Store) -> None:
    """Several values of a filter mean any, several filters mean all."""
    add(store, *some_of("atomic"))
    assert ids(store, flags=["injection_suspected"]) == ["s1"]
    assert ids(store, labels=["atom:wrong", "atom:exempt"]) == ["s1", "s2"]
    assert ids(store, tags=["售前"]) == ["s1", "s3"]
    assert ids(store, tags=["售前"], labels=["atom:wrong"]) == ["s1"]
    assert ids(store, statuses=["partial", "failed"]) == ["s3"]
    assert ids(store, scores={"accuracy": {"low": 0.4, "high": 0.6}}) == ["s1"]
    assert ids(store, scores={"accuracy": Range(low=1)}) == ["s0", "s4"]
    assert ids(store, tags=["售"]) == []


def test_search(store: Store) -> None:
    """Chinese of one character upwards, full and half width, upper and lower case; in question, answer, id and tags."""
    add(
        store,
        (atomic("s-ABC"), rag("s-ABC", "理想Ｌ９的车长？", answer="五米二。")),
        (atomic("s1"), rag("s1", "100%_真的吗", answer="Straße", tags=("售前",))),
        (dialogue("d1"), dialogue_sample("d1")),
    )
    assert ids(store, search="l9") == ids(store, search="米") == ids(store, search="abc") == ["s-ABC"]
    assert ids(store, search="%_") == ids(store, search="STRASSE") == ids(store, search="售前") == ["s1"]
    assert ids(store, search="月亮代表") == ["d1"]
    assert ids(store, search=" ") == ["s-ABC", "s1", "d1"]
    assert ids(store, search="没有这样的话") == []


def test_search_finds_exactly_what_stands_there(store: Store) -> None:
    """With the index and without it: the same samples as looking through every text, whatever is looked for."""
    texts = [
        "不建议给大灯贴膜",
        "建议给大灯",
        'say "yes" AND (no)',
        "x*y:z^2 -w",
        "𠮷野家\0之后",
        "a\ufffeb",
        "NEAR(大灯, 3)",
    ]
    add(store, *[(atomic(f"s{n}"), rag(f"s{n}", text, answer="。")) for n, text in enumerate(texts)])
    store.create_run("run-b", "atomic", "scripted", "2026-03-02T10:00:00+00:00", {})
    store.add_verdict("run-b", 0, rag("other", texts[0]), atomic("other"))
    catch_up(store, "run-b")
    wanted = {
        part
        for text in texts
        for start in range(len(text))
        for part in (text[start:][:1], text[start:][:2], text[start:][:3], text[start:][:5], text[start:])
        if part.strip()
    }
    for part in (*wanted, "大灯 贴", "给大灯贴膜s", "建议给大灯。", '""', "yes' AND", "野家\0之"):
        expected = [n for n, text in enumerate(texts) if searchable(part).strip() in searchable(f"s{n}\n{text}\n。")]
        assert ids(store, search=part) == [f"s{n}" for n in expected], part


def test_without_the_index_every_text_is_looked_through(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that cannot make the index is slower, not poorer; one that can catches up with what is there."""
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "TEXT_INDEX", ("CREATE VIRTUAL TABLE search USING no_such_module(text)",))
        patched.setattr(postgres, "TEXT_INDEX", "no such name")
        add(store, (atomic("s1"), rag("s1", "大灯是否可以贴膜")), (atomic("s2"), rag("s2", "车长？")))
        assert ids(store, search="可以贴膜") == ["s1"]
        assert not store.has_text_index()
    add(store, (atomic("s3"), rag("s3", "尾灯可以贴膜")))
    assert ids(store, search="可以贴膜") == ["s1", "s3"]
    assert store.has_text_index()


def test_the_index_is_used(postgres_url: str) -> None:
    """PostgreSQL looks a piece of text up, Chinese too, instead of reading every text."""
    with postgres.PostgresStore.at(postgres_url) as store:
        store.create_run(RUN, "atomic", "scripted", "2026-03-02T10:00:00+00:00", {})
        add(store, (atomic("s1"), rag("s1", "大灯是否可以贴膜")))
        catch_up(store, RUN)
        store.write("INSERT INTO texts SELECT n, repeat('其他的话 ', 50) || n FROM generate_series(1, 3000) AS g(n)")
        store.write("ANALYZE texts")
        sql, values = store.places_holding("可以贴膜", 0, 1 << 40)
        plan = "\n".join(line for (line,) in store.query(f"EXPLAIN {sql}", *values))
    assert postgres.TEXT_INDEX in plan


def test_more_samples_than_a_block(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks do not show: pages, filters, scores and counts are those of the run, also after some are judged again."""
    monkeypatch.setattr(index, "BLOCK", 4)
    monkeypatch.setattr("steelyard.store.listing.query.BLOCK", 4)
    labels = [["wrong"] if n % 3 else ["correct"] for n in range(11)]
    add(store, *[(atomic(f"s{n:02}", found), rag(f"s{n:02}", f"问题{n}")) for n, found in enumerate(labels)])
    assert ids(store, labels=["atom:correct"]) == ["s00", "s03", "s06", "s09"]
    store.add_verdict(RUN, 5, rag("s05", "问题5"), atomic("s05", ["correct"], flags=("injection_suspected",)))
    assert ids(store, labels=["atom:correct"]) == ["s00", "s03", "s05", "s06", "s09"]
    assert ids(store, sort="flags", descending=True)[:2] == ["s05", "s00"]
    assert ids(store, sort="accuracy", descending=True, per_page=6) == ["s00", "s03", "s05", "s06", "s09", "s01"]
    assert ids(store, scores={"accuracy": {"high": 0.5}}, search="问题1") == ["s01", "s10"]
    assert ids(store, page=3, per_page=4) == ["s08", "s09", "s10"]
    assert (summary(store, RUN).n, summary(store, RUN).labels) == (11, {"atom:wrong": 6, "atom:correct": 5})


def test_a_page_of_many_costs_little_more_than_one_of_few(tmp_path: Path) -> None:
    """Once a run is listed, SQLite's work for a page does not grow with the run: it is counted, not timed."""
    store = sqlite.SqliteStore.at(tmp_path / "store.db")
    store.create_run(RUN, "atomic", "scripted", "2026-03-02T10:00:00+00:00", {})
    store.create_run("few", "atomic", "scripted", "2026-03-02T10:00:00+00:00", {})
    queries = (
        SampleQuery(sort="accuracy"),
        SampleQuery(sort="accuracy", descending=True, page=2),
        SampleQuery(sort="title"),
        SampleQuery(labels=("atom:wrong",), sort="accuracy"),
        SampleQuery(scores={"accuracy": Range(low=0.5)}),
        SampleQuery(search="编号99"),
        SampleQuery(page=2),
    )
    work: dict[str, list[int]] = {}
    for run, n in (("few", 100), (RUN, 3000)):
        add_many(store, run, n)
        work[run] = []
        for query in queries:
            table(store, run, query)
            work[run].append(steps(store, lambda run=run, query=query: table(store, run, query)))
    for query, few, many in zip(queries, work["few"], work[RUN], strict=True):
        assert many <= 3 * few, query
    store.close()


def add_many(store: Store, run: str, n: int) -> None:
    first = (0, rag("s0", "编号0"), atomic("s0", ["wrong"]))
    store.add_verdicts(run, [first])
    store.write(
        "INSERT INTO samples WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "SELECT run, i, 's' || i, json_set(sample, '$.id', 's' || i, '$.question', '编号' || i % 100), status, "
        "json_set(verdict, '$.scores.accuracy', (i % 7) / 7.0) FROM samples, n WHERE run = ? AND seq = 0",
        n - 1,
        run,
    )


def steps(store: sqlite.SqliteStore, look: Callable[[], object]) -> int:
    """How many hundreds of instructions SQLite carries out."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1

    store._db.set_progress_handler(tick, 100)
    look()
    store._db.set_progress_handler(None, 0)
    return done


def test_scores_keep_the_order_of_the_protocol(store: Store) -> None:
    """The columns of the table stand as the protocol names its scores, not by the alphabet."""
    add(store, *some_of("scorecard"))
    assert list(summary(store, RUN).scores) == list(table(store, RUN, SampleQuery()).rows[0].scores)


def test_new_verdicts_show_at_once(store: Store) -> None:
    """What is added or judged again after the table was made is in the next one, and in the counts."""
    add(store, (atomic("a", ["wrong"]), rag("a")))
    assert summary(store, RUN).labels == {"atom:wrong": 1}
    assert known_summary(store, RUN) == summary(store, RUN)
    add(store, (atomic("b", ["correct"]), rag("b")))
    store.add_verdict(RUN, 0, rag("a"), atomic("a", ["correct"]))
    assert known_summary(store, RUN) is None
    assert ids(store, labels=["atom:wrong"]) == []
    assert ids(store, labels=["atom:correct"]) == ["a", "b"]
    assert summary(store, RUN).labels == {"atom:correct": 2}


def test_a_deleted_run_takes_its_table_along(store: Store) -> None:
    """Nothing of it is left behind."""
    add(store, *some_of("atomic"))
    summary(store, RUN)
    add(store, (atomic("late"), rag("late")))
    store.delete_run(RUN)
    for name in ("listed", "scored", "faceted", "texts", "worked_out", "unlisted"):
        assert list(store.query(f"SELECT * FROM {name}")) == []


def test_summary(store: Store) -> None:
    """How many samples have what, the mean of each score with its n, and ten steps from end to end."""
    add(store, *some_of("atomic"))
    found = summary(store, RUN)
    assert (found.n, found.flags, found.tags) == (5, {"injection_suspected": 1}, {"售后": 3, "L9": 3, "售前": 2})
    accuracy = found.scores["accuracy"]
    assert (accuracy.n, accuracy.mean) == (3, pytest.approx(2.5 / 3))
    assert accuracy.bins == (0, 0, 0, 0, 0, 1, 0, 0, 0, 2)


def test_neighbours(store: Store) -> None:
    """Before and after a sample, in the very order of the table."""
    add(store, *some_of("atomic"))
    for query in (
        SampleQuery(),
        SampleQuery(descending=True),
        SampleQuery(sort="accuracy"),
        SampleQuery(tags=("售后",)),
    ):
        order = [None, *(row.seq for row in table(store, RUN, query).rows), None]
        for before, seq, after in zip(order, order[1:], order[2:], strict=False):
            assert neighbours(store, RUN, query, seq or 0) == (before, after)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_part_of_a_text_is_found_in_it(before: str, part: str, after: str) -> None:
    """Whatever stands in a text by itself is found there, however it is written."""
    text = f"{before} {part} {after}"
    assert searchable(part).strip() in searchable(text)


def test_the_worst_come_first(store: Store) -> None:
    """By the main score, a sample without one last; the row has the beginning of its answer."""
    add(
        store,
        (atomic("good"), rag("good")),
        (atomic("open", ["undetermined"]), rag("open")),
        (atomic("half", ["correct", "wrong"]), rag("half", answer="一半" * 400)),
        (atomic("bad", ["wrong"]), rag("bad")),
    )
    found = table(store, RUN, SampleQuery(sort="worst"))
    assert [row.id for row in found.rows] == ["bad", "half", "good", "open"]
    assert found.rows[1].answer == "一半" * 200


def test_of_several_main_scores_the_weakest_ranks(tmp_path: Path) -> None:
    """A sample that fails in one respect is worse than one that is middling in all."""
    scores = (
        {"relevance": 60, "accuracy": 60},
        {"relevance": 100, "accuracy": 20},
        {"relevance": None, "accuracy": 90},
    )
    with Store.open(tmp_path / "store.db") as store:
        store.create_run(RUN, "scorecard", "scripted", "2026-03-02T10:00:00+00:00", {})
        verdicts = [
            Verdict(id=str(n), protocol="scorecard", status="judged", scores=given) for n, given in enumerate(scores)
        ]
        add(store, *((verdict, rag(verdict.id)) for verdict in verdicts))
        assert ids(store, sort="worst") == ["1", "0", "2"]


def test_failures_in_groups(store: Store) -> None:
    """Statements that differ in a number only are one group, other ones another; samples and tags are counted once."""
    several = [(atomic(f"s{n}", ["wrong"], text=f"电池质保为{n}年"), rag(f"s{n}", tags=("售后",))) for n in range(5)]
    add(
        store,
        *several,
        (atomic("other", ["wrong", "wrong"], text="后排屏幕很大"), rag("other")),
        (atomic("fine"), rag("fine")),
    )
    found = failures(store, RUN)
    assert (found.n, found.failing, found.labels) == (7, 6, {"atom:wrong": 6})
    assert [(group.text, group.n, group.samples) for group in found.groups] == [
        ("电池质保为0年1", 5, 5),
        ("后排屏幕很大1", 2, 1),
    ]
    assert [example.sample for example in found.groups[0].examples] == ["s0", "s1", "s2", "s3", "s4"]
    assert (found.tags["售后"].failing, found.tags["售后"].n) == (5, 5)
    assert known_failures(store, RUN) == found
    add(store, (atomic("new", ["wrong"]), rag("new")))
    assert known_failures(store, RUN) is None
    assert failures(store, RUN).failing == 7


def test_named_items_are_grouped_by_name(tmp_path: Path) -> None:
    """A check that fails in several samples is one group, whatever language it is worded in."""
    with Store.open(tmp_path / "store.db") as store:
        store.create_run(RUN, "grounded", "scripted", "2026-03-02T10:00:00+00:00", {})
        add(store, *((grounded(f"s{n}", failed=[2]), rag(f"s{n}")) for n in range(3)))
        (group,) = failures(store, RUN).groups
        assert group.name
        assert group.samples == 3
