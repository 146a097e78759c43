"""Samples from folders, globs and object stores; results as partitioned Parquet. The object store is fsspec's own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import fsspec
import jsonschema
import pandas
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from command import DIALOGUE, PAIRS, RAG, RECORDED, Steelyard
from steelyard.engine import datasets
from steelyard.engine.inputs import Input
from steelyard.errors import ConfigError, InputError, MissingExtra
from steelyard.reports.files import line_schema
from steelyard.reports.parquet import COLUMNS
from steelyard.samples import count_samples, locations, read_samples
from steelyard.store import Store

ROOT = Path(__file__).parent.parent
ROWS = [json.loads(line) for line in Path(RAG).read_text("utf-8").splitlines()]


@pytest.fixture
def bucket() -> Iterator[Any]:
    """An object store that forgets everything afterwards."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield store
    store.store.clear()


def parquet(rows: list[dict[str, Any]], **given: Any) -> bytes:
    data = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), data, **given)
    return data.getvalue()


def plain(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"s{number}", "question": "When?", "answer": "At nine.", "references": ["It opens at nine."], **more}


def fill(bucket: Any) -> None:
    """A dataset as Spark writes it: partitions, a marker file, a folder of its own."""
    bucket.pipe_file("/b/answers/model=x/part-0.parquet", parquet([plain(n) for n in range(5)], row_group_size=2))
    bucket.pipe_file("/b/answers/model=y%20z/part-0.parquet", parquet([plain(5), plain(6, answer=None)]))
    bucket.pipe_file("/b/answers/_SUCCESS", b"")
    bucket.pipe_file("/b/answers/_temporary/part-9.parquet", parquet([plain(9)]))
    bucket.pipe_file("/b/answers/notes.txt", b"not samples")


# --- samples ---------------------------------------------------------------------------------------


def test_a_dataset_in_an_object_store(bucket: Any) -> None:
    """Every row of every data file, in the order of the names; partition folders are columns; a bad row is named by
    file, row and field; how many there are is known from the files' metadata."""
    fill(bucket)
    for name in ("memory://b/answers/", "memory://b/answers", "memory://b/answers/model=*/*.parquet"):
        rows = list(read_samples([name], "rag"))
        assert [row.id for row in rows if not isinstance(row, InputError)] == [f"s{n}" for n in range(6)]
        assert [row.model for row in rows if not isinstance(row, InputError)] == ["x"] * 5 + ["y z"]
        assert str(rows[6]).startswith("memory:///b/answers/model=y%20z/part-0.parquet:2: answer: is null")
        assert count_samples([name], None) == 7


def test_local_folders_and_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or glob needs no fsspec; formats may differ; the same name twice is found across files."""
    monkeypatch.chdir(tmp_path)
    Path("in/deep").mkdir(parents=True)
    Path("in/a.jsonl").write_text(json.dumps(plain(1)), "utf-8")
    Path("in/deep/b.parquet").write_bytes(parquet([plain(2), plain(1)]))
    Path("in/.hidden.jsonl").write_text("{", "utf-8")
    *good, bad = read_samples(["in"], "rag")
    assert [row.id for row in good] == ["s1", "s2"]
    assert "in/deep/b.parquet:2: id: 's1' was used" in str(bad)
    assert [row.id for row in read_samples(["in/**/*.parquet"], "rag")] == ["s2", "s1"]
    assert count_samples(["in/*.jsonl"], None) == 1
    with pytest.raises(InputError, match=r"in/\*\.csv: there is no file of samples"):
        read_samples(["in/*.csv"], "rag")


def test_row_groups_are_read_one_at_a_time(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first samples are there before the rest of the file was asked for."""
    rows = [plain(n, answer=f"{n:06} " * 300) for n in range(4000)]
    data = parquet(rows, row_group_size=200, compression="none", use_dictionary=False)
    bucket.pipe_file("/b/big.parquet", data)
    read = 0
    original = locations.RemoteFile.readinto

    def counted(self: locations.RemoteFile, buffer: Any) -> int:
        nonlocal read
        read += (n := original(self, buffer))
        return n

    monkeypatch.setattr(locations.RemoteFile, "readinto", counted)
    found = read_samples(["memory://b/big.parquet"], "rag")
    assert next(found)
    assert read < len(data) / 4
    assert sum(1 for _ in found) == 3999
    assert read < len(data) * 1.5


@pytest.mark.parametrize(
    ("url", "kind", "told"),
    [
        ("s3://b/answers/", MissingExtra, "reading s3:// needs s3fs: pip install s3fs"),
        ("gs://b/answers/", MissingExtra, "needs gcsfs: pip install gcsfs"),
        ("oss://b/answers/", MissingExtra, "needs ossfs: pip install ossfs"),
        ("nonsense://b", ConfigError, "nonsense:// is not known"),
        ("memory://nothing/", InputError, "memory://nothing/: there is no such file"),
    ],
)
def test_what_cannot_be_reached_is_told(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, url: str, kind: Any, told: str
) -> None:
    """The package to install is named; so is an address that leads nowhere."""
    for package in ("s3fs", "gcsfs", "ossfs"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(kind, match=told):
        read_samples([url], "rag")


def test_without_fsspec(tmp_path: Path) -> None:
    """Without the extra, files are read as ever, and a URL names the extra."""
    (tmp_path / "a.jsonl").write_text(json.dumps(plain(1)), "utf-8")
    code = """if True:
        import sys; sys.modules["fsspec"] = None
        from steelyard.samples import read_samples
        print(len(list(read_samples(["."], "rag"))))
        try: read_samples(["s3://b/x"], "rag")
        except Exception as error: print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "1\nreading s3:// needs fsspec: pip install 'steelyard[lake]'\n"


@pytest.mark.parametrize(
    "url", ["s3://AKIA:hush-hush@b/x", "https://h/a.jsonl?X-Amz-Signature=hush-hush", "s3://A:hush-hush/+@b/x"]
)
def test_credentials_in_an_address_are_refused(url: str) -> None:
    """They would stand in manifests and messages; the refusal does not repeat them."""
    with pytest.raises(ConfigError, match="must hold no credentials") as refused:
        read_samples([url], "rag")
    assert "hush" not in str(refused.value)


def test_messages_of_an_object_store_hold_no_secret() -> None:
    """Settings of the file system, signatures and passwords in addresses are cut out of what it says."""

    store = SimpleNamespace(storage_options={"secret": "hush-hush", "client_kwargs": {"token": "hush-too"}})
    error = OSError("403 for hush-hush at https://me:pw@h/x?X-Amz-Signature=abc (hush-too)\nmore")
    assert locations.error_text(error, store) == "OSError: 403 for *** at https://…h/x… (***)"


# --- runs ------------------------------------------------------------------------------------------


def test_a_run_over_an_object_store_can_be_resumed(bucket: Any, steelyard: Steelyard) -> None:
    """The manifest says what was read; a store that fails midway stops the run without moving a row; when the files
    have changed, the run is not continued."""
    bucket.pipe_file("/b/in/0.jsonl", "\n".join(json.dumps(row) for row in ROWS[:4]).encode())
    bucket.pipe_file("/b/in/1.jsonl", "\n".join(json.dumps(row) for row in ROWS[4:]).encode())
    run = ("run", "memory://b/in/", "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    opened = type(bucket)._open

    def failing(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("1.jsonl"):
            raise OSError("503 Slow Down")
        return opened(self, path, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(bucket), "_open", failing)
        failed = steelyard(*run)
    assert failed.code == 2
    assert "memory:///b/in/1.jsonl: cannot be reached: OSError: 503 Slow Down" in failed.err
    assert "go on with: steelyard resume" in failed.err
    assert steelyard("resume", "last", "--progress", "quiet", "-o", "out.jsonl").code in (0, 3)
    lines = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in ROWS]
    with Store.open(Path(".steelyard/store.db")) as store:
        (data,) = store.run("last").manifest["data"]
    assert data == {"path": "memory://b/in/", "files": 2, "bytes": bucket.du("/b/in"), "sha256": data["sha256"]}
    bucket.pipe_file("/b/in/2.jsonl", b"{}")
    changed = steelyard("resume", "last")
    assert changed.code != 0
    assert "memory://b/in/ has changed since run" in changed.err


# --- results ---------------------------------------------------------------------------------------


def test_results_as_partitioned_parquet(steelyard: Steelyard) -> None:
    """Runs of any protocols in one folder are one dataset with the documented columns, for pyarrow, DuckDB and pandas
    alike; every verdict and item is in it."""
    steelyard("run", RAG, "-p", "scorecard,retrieval", "-j", RECORDED, "-o", "lake/", "--progress", "quiet")
    steelyard("run", DIALOGUE, "-p", "dialogue", "-j", RECORDED, "-o", "lake/", "--progress", "quiet")
    with Store.open(Path(".steelyard/store.db")) as store:
        kept = {(run.id, verdict.id): verdict for run in store.runs() for _, verdict in store.verdicts(run.id)}
    for table, columns in COLUMNS.items():
        dataset = ds.dataset(f"lake/{table}", partitioning="hive")
        types = {name: str(dataset.schema.field(name).type) for name in columns}
        assert [*dataset.schema.names] == [*columns, "run"]
        assert {name: kind.split("<")[0] for name, kind in types.items()} == {
            n: t.split("<")[0] for n, t in columns.items()
        }
    found = duckdb.sql("SELECT run, id, scores FROM read_parquet('lake/verdicts/*/*.parquet', hive_partitioning=true)")
    assert {(run, id): scores for run, id, scores in found.fetchall()} == {
        key: dict(verdict.scores) for key, verdict in kept.items()
    }
    items = pandas.read_parquet("lake/items")
    assert len(items) == sum(len(verdict.items) for verdict in kept.values())
    wrong = duckdb.sql(
        "SELECT count(*) FROM read_parquet('lake/items/*/*.parquet') WHERE labels['support'] = 'unsupported'"
    ).fetchall()
    asked = sum(getattr(item, "support", "") == "unsupported" for v in kept.values() for item in v.items)
    assert wrong == [(asked,)]
    assert asked
    turns = items[items.kind == "criterion"].turn
    assert turns.min() == 1


def test_export_to_an_object_store_replaces_the_run(
    bucket: Any, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of the same run that are left from before are removed; other runs stay."""
    for _ in range(2):
        steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    monkeypatch.setattr(datasets, "PART_ROWS", 3)
    for run in ("1", "2"):
        assert steelyard("export", run, "--to", "memory://b/out/").code == 0
    assert len(bucket.glob("/b/out/verdicts/*/part-*.parquet")) == 2 * -(-len(ROWS) // 3)
    monkeypatch.setattr(datasets, "PART_ROWS", 1000)
    done = steelyard("export", "2", "--to", "memory://b/out/")
    assert f"{len(ROWS)} verdicts" in done.err
    assert len(bucket.glob("/b/out/verdicts/*/part-*.parquet")) == 1 + -(-len(ROWS) // 3)
    table = ds.dataset("/b/out/verdicts", filesystem=bucket, partitioning="hive").to_table()
    assert table.num_rows == 2 * len(ROWS)


def test_results_never_go_into_the_input(steelyard: Steelyard) -> None:
    """A folder that is read is not written to."""
    Path("in").mkdir()
    Path("in/a.jsonl").write_text(Path(RAG).read_text("utf-8"), "utf-8")
    done = steelyard("run", "in/", "-p", "atomic", "-j", RECORDED, "-o", "in/results/")
    assert (done.code, "lies in the input" in done.err) == (2, True)


# --- the schema of result lines --------------------------------------------------------------------


def test_the_schema_of_result_lines(steelyard: Steelyard) -> None:
    """It is in the docs and on the command line as the records have it; lines of every protocol satisfy it, and a
    label that does not exist breaks it."""
    published = json.loads((ROOT / "docs" / "result-line.schema.json").read_text("utf-8"))
    assert published == line_schema(), "write it anew: steelyard export --schema > docs/result-line.schema.json"
    assert json.loads(steelyard("export", "--schema").out) == published
    validator = jsonschema.Draft202012Validator(published)
    seen = set()
    for file, protocols in ((RAG, "atomic,grounded,scorecard,retrieval"), (DIALOGUE, "dialogue"), (PAIRS, "pairwise")):
        steelyard("run", file, "-p", protocols, "-j", RECORDED, "--progress", "quiet")
    with Store.open(Path(".steelyard/store.db")) as store:
        lines = [verdict.line() for run in store.runs() for _, verdict in store.verdicts(run.id)]
    for line in lines:
        validator.validate(line)
        seen |= {item["kind"] for item in line["items"]}
    assert {"atom", "check", "sentence", "key_point", "criterion", "passage"} <= seen
    line = next(line for line in lines if line["items"] and line["items"][0]["kind"] == "atom")
    line["items"][0]["label"] = "splendid"
    assert not validator.is_valid(line)


def test_inputs_in_python(bucket: Any) -> None:
    """What Python is given is described as what the command line is given."""
    fill(bucket)
    data = Input(["memory://b/answers/"])
    assert data.total == 7
    assert data.described[0]["files"] == 2
