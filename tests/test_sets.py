"""Sets of samples: their versions in both databases, what survives, and who sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import RAG, RECORDED, Steelyard, lines_of
from steelyard.errors import ConfigError, UnknownRun, UnknownSet
from steelyard.records import RagSample, Verdict
from steelyard.store import Store, StoreLocation, run_identity
from steelyard.store.rescue import rescue
from steelyard.store.sqlite import SqliteStore

WHEN = "2026-03-02T10:00:00+00:00"


def judge(store: Store, run: str, *ids: str, answer: str = "答。", project: str = "") -> None:
    """A run that judged these samples."""
    store.create_run(run, "atomic", "scripted", WHEN, {"options": {}}, run_identity({"project": project}))
    for seq, id in enumerate(ids):
        sample = RagSample(id=id, question="问？", answer=answer, references=("据",))
        store.add_verdict(run, seq, sample, Verdict(id=id, protocol="atomic", status="judged", scores={}))


def held(store: Store, name: str, version: int) -> list[tuple[str, str]]:
    """Ids and answers of a version."""
    found = store.set_named(name)
    return [(one.sample.id, one.sample.answer) for one in store.set_samples(found.id, version)]


def test_each_change_makes_a_version_and_earlier_ones_stay(any_store: Store) -> None:
    """What a version holds never changes, whatever is added, replaced or removed later, or deleted with its run."""
    store = any_store
    judge(store, "run-a", "s1", "s2", "s3")
    judge(store, "run-b", "s2", "s4", answer="new")
    first = store.add_to_set("regression", "run-a", ["s3", "s1", "s3"], time=WHEN, author="ann", note="first")
    assert (first.name, first.project, first.version) == ("regression", "", 1)
    assert store.add_to_set("regression", "run-a", ["s2"], time=WHEN).version == 2
    assert store.add_to_set("regression", "run-b", ["s2", "s4"], time=WHEN).version == 3
    assert store.remove_from_set(first.id, ["s3"], time=WHEN, note="wrong").version == 4
    store.delete_run("run-a")
    assert held(store, "regression", 1) == [("s3", "答。"), ("s1", "答。")]
    assert held(store, "regression", 2) == [("s3", "答。"), ("s1", "答。"), ("s2", "答。")]
    assert held(store, "regression", 3) == [("s3", "答。"), ("s1", "答。"), ("s2", "new"), ("s4", "new")]
    assert held(store, "regression", 4) == [("s1", "答。"), ("s2", "new"), ("s4", "new")]
    told = [(one.version, one.author, one.note, one.samples) for one in store.set_versions(first.id)]
    assert told == [(4, "", "wrong", 3), (3, "", "", 4), (2, "", "", 3), (1, "ann", "first", 2)]
    assert [one.run for one in store.set_samples(first.id, 4)] == ["run-a", "run-b", "run-b"]


def test_what_changes_nothing_makes_no_version(any_store: Store) -> None:
    """Adding the same sample twice leaves the set as it is; one that was removed can come back."""
    judge(any_store, "run-a", "s1")
    made = any_store.add_to_set("regression", "run-a", ["s1"], time=WHEN)
    assert any_store.add_to_set("regression", "run-a", ["s1"], time=WHEN) == made
    any_store.remove_from_set(made.id, ["s1"], time=WHEN)
    assert any_store.set_version(made.id).samples == 0
    assert any_store.add_to_set("regression", "run-a", ["s1"], time=WHEN).version == 3
    assert held(any_store, "regression", 3) == [("s1", "答。")]


def test_what_is_refused_leaves_nothing_behind(any_store: Store) -> None:
    """An unknown sample, run, set or version, and a name that cannot be written with a version."""
    judge(any_store, "run-a", "s1")
    with pytest.raises(ConfigError, match="no sample 's9'"):
        any_store.add_to_set("regression", "run-a", ["s1", "s9"], time=WHEN)
    with pytest.raises(ConfigError, match="at least one"):
        any_store.add_to_set("regression", "run-a", [], time=WHEN)
    with pytest.raises(UnknownRun):
        any_store.add_to_set("regression", "nowhere", ["s1"], time=WHEN)
    for name in ("", " x", "a\nb", "regression@2"):
        with pytest.raises(ConfigError):
            any_store.add_to_set(name, "run-a", ["s1"], time=WHEN)
    assert any_store.sets() == []
    made = any_store.add_to_set("regression", "run-a", ["s1"], time=WHEN)
    with pytest.raises(ConfigError, match="holds no sample 's2'"):
        any_store.remove_from_set(made.id, ["s1", "s2"], time=WHEN)
    with pytest.raises(UnknownSet, match="no version 2; its newest is 1"):
        any_store.set_version(made.id, 2)
    with pytest.raises(UnknownSet, match="there are: regression"):
        any_store.set_named("regresion")


def test_sets_of_other_projects_are_not_there(any_store: Store) -> None:
    """A set belongs to the project of its run; one name may stand in several projects, and each sees its own."""
    judge(any_store, "run-a", "s1", project="shop")
    judge(any_store, "run-b", "s2", project="bank")
    shop = any_store.add_to_set("regression", "run-a", ["s1"], time=WHEN)
    bank = any_store.add_to_set("regression", "run-b", ["s2"], time=WHEN)
    with pytest.raises(UnknownSet, match="name the project"):
        any_store.set_named("regression")
    assert any_store.set_named("regression", "bank") == bank
    any_store.visible = frozenset({"shop"})
    assert any_store.sets() == [shop]
    assert any_store.set_named("regression") == shop
    with pytest.raises(UnknownSet):
        any_store.set_versions(bank.id)
    with pytest.raises(UnknownSet):
        list(any_store.set_samples(bank.id, 1))
    with pytest.raises(UnknownSet):
        any_store.remove_from_set(bank.id, ["s2"], time=WHEN)
    with pytest.raises(UnknownRun):
        any_store.add_to_set("regression", "run-b", ["s2"], time=WHEN)


def test_two_who_add_at_once_make_two_versions(location: StoreLocation) -> None:
    """Versions are numbered one after the other, also through two connections."""
    with Store.open(location) as one, Store.open(location) as two:
        judge(one, "run-a", "s1", "s2", "s3")
        made = [store.add_to_set("r", "run-a", [id], time=WHEN).version for store, id in ((one, "s1"), (two, "s2"))]
        assert [*made, one.add_to_set("r", "run-a", ["s3"], time=WHEN).version] == [1, 2, 3]


def test_sets_are_rescued(tmp_path: Path) -> None:
    """A store whose first page is gone gives its sets back with all their versions."""
    path = tmp_path / "store.db"
    ids = [f"s{n}" for n in range(200)]
    with Store.open(path) as store:
        judge(store, "run-a", *ids)
        made = store.add_to_set("regression", "run-a", ids, time=WHEN, note="all")
        store.remove_from_set(made.id, ids[:50], time=WHEN)
        before = [held(store, "regression", version) for version in (1, 2)]
        versions = store.set_versions(made.id)
    content = bytearray(path.read_bytes())
    content[:4096] = b"\xa5" * 4096
    path.write_bytes(content)
    rescue(path, tmp_path / "new.db")
    with Store.open(tmp_path / "new.db") as store:
        assert [held(store, "regression", version) for version in (1, 2)] == before
        assert store.set_versions(made.id) == versions


def test_a_set_on_the_command_line(steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made from a filter, shown, written to a file, judged by its version and judged again, changed and deleted."""
    monkeypatch.chdir(tmp_path)
    judged = ("-p", "atomic", "-j", RECORDED, "--date", "2026-03-02", "--progress", "quiet")
    assert steelyard("run", RAG, *judged).code == 0
    assert steelyard("sets", "add", "wrong", "last", "--label", "atom:wrong").err == "wrong@1: 2 samples\n"
    assert steelyard("sets", "add", "wrong", "last", "car-tyre", "--note", "by hand").err == "wrong@2: 3 samples\n"
    assert steelyard("sets", "add", "wrong", "last", "--score", "accuracy=..0.4").err == "wrong@2: 3 samples\n"
    shown = json.loads(steelyard("sets", "show", "wrong@1", "--json").out)
    assert [one["id"] for one in shown["held"]] == ["car-seat", "library-friday"]
    assert [one["note"] for one in shown["versions"]] == ["by hand", ""]
    assert steelyard("sets", "export", "wrong", "-o", "wrong.jsonl").code == 0
    assert [line["id"] for line in lines_of("wrong.jsonl")] == ["car-seat", "library-friday", "car-tyre"]
    assert "samples                         2" in steelyard("run", "--set", "wrong@1", *judged, "--dry-run").out
    for given, line in (("wrong.jsonl", 3), ("--set=wrong", 3), ("--set=wrong@1", 2)):
        assert steelyard("run", given, *judged, "-o", "out.jsonl").code == 0
        assert len(lines_of("out.jsonl")) == line
        Path("out.jsonl").unlink()
    assert steelyard("sets", "remove", "wrong", "car-tyre").err == "wrong@3: 2 samples\n"
    # The version that it was made from is what a run goes on with.
    assert steelyard("retry", "last").code == 0
    dialogue = steelyard("run", "--set", "wrong", "-p", "dialogue", "-j", RECORDED)
    assert (dialogue.code, "judges dialogues" in dialogue.err) == (2, True)
    for wrong in (("--set=wrong@9",), ("--set=wrong@x",), ("--set=wrnog",), ("--set=wrong", RAG), ()):
        assert steelyard("run", *wrong, *judged).code == 2
    assert steelyard("sets", "add", "wrong", "last").code == 2
    assert steelyard("sets", "delete", "wrong", "--yes").code == 0
    assert "was made from a set" in steelyard("retry", "last").err
    assert steelyard("sets", "list", "--json").out == ""


def test_a_large_set_stays_quick(any_store: Store) -> None:
    """A page of a set and the history of a sample read what they show: not the texts of a set of thousands."""
    sample, n = RagSample(id="", question="问？", answer="答" * 2000, references=()), 3000
    verdict = Verdict(id="", protocol="atomic", status="judged", scores={})
    for run in ("run-a", "run-b"):
        any_store.create_run(run, "atomic", "scripted", WHEN, {"options": {}})
        any_store.add_verdicts(
            run,
            [
                (at, sample.model_copy(update={"id": f"s{at}"}), verdict.model_copy(update={"id": f"s{at}"}))
                for at in range(n)
            ],
        )
    made = any_store.add_to_set("all", "run-a", places=range(n), time=WHEN)
    assert made.samples == n
    page = list(any_store.set_samples(made.id, 1, start=n - 50, limit=50))
    assert [one.sample.id for one in page] == [f"s{at}" for at in range(n - 50, n)]
    assert list(any_store.history("s7", ["run-a", "run-b", "none"])) == ["run-a", "run-b"]
    assert [one.name for one in any_store.sets_holding("", "s2999")] == ["all"]
    if isinstance(any_store, SqliteStore):
        places = "SELECT place FROM set_samples WHERE sample_set = 1 AND added_in <= 1 AND (removed_in IS NULL OR "
        plan = any_store.query(f"EXPLAIN QUERY PLAN {places} removed_in > 1) ORDER BY place LIMIT 50 OFFSET 2950")
        assert "COVERING INDEX set_samples_held" in str(list(plan))
