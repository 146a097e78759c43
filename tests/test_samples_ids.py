"""Ids are given, claimed once and remembered without memory; however long a file is, reading it takes no more."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_rows import ROW, good, rag, read, write
from steelyard.errors import InputError, StoreError
from steelyard.samples import samples_from
from steelyard.samples.files import Place
from steelyard.samples.ids import Ids

# --- ids -------------------------------------------------------------------------------------------


def test_derived_ids_follow_the_content() -> None:
    """The same content has the same id everywhere, whatever its columns are called; other content another."""
    first = rag(question="大灯是否可以贴膜", references=["会变暗。"], answer="不建议。")
    assert first.id == rag(user_input="大灯是否可以贴膜", question=None, contexts="['会变暗。']", answer="不建议。").id
    assert first.id == "90c02a4aee71"
    assert first.id != rag(question="大灯是否可以贴膜", references=["会变暗。"], answer="建议。").id
    assert rag(id="").id == rag(id=None).id == rag().id


@pytest.mark.parametrize(("given_id", "expected"), [(7, "7"), (7.0, "7"), (" x ", " x "), (10**30, "1" + "0" * 30)])
def test_given_ids_become_text(given_id: object, expected: str, tmp_path: Path) -> None:
    """Numbers become text, also large ones, and in every reader alike."""
    assert rag(id=given_id).id == expected
    row = {"id": given_id, "question": "q", "answer": "a"}
    assert good(read(write(tmp_path / "a.json", json.dumps([row]))))[0].id == expected


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_number_of_a_billion_digits_is_not_written_out(tmp_path: Path, suffix: str) -> None:
    """An id like 1e999999999 costs neither time nor memory."""
    (sample,) = good(read(write(tmp_path / f"a.{suffix}", '{"id": 1e999999999, "question": "q", "answer": "a"}')))
    assert sample.id == "inf"


def test_a_second_use_of_an_id_is_an_error(tmp_path: Path) -> None:
    """A repeated id is reported with the place of its first use, also from another file."""
    a = write(
        tmp_path / "a.jsonl", "", {"id": 1, "question": "q", "answer": "a"}, {"id": "1", "question": "q", "answer": "b"}
    )
    b = write(tmp_path / "b.jsonl", ROW, {"id": "1", "question": "q", "answer": "c"}, ROW)
    rows = read(a, b)
    said = [str(row) for row in rows if isinstance(row, InputError)]
    assert said == [
        f"{a}:3: id: '1' was used on line 2 already; ids must differ",
        f"{b}:2: id: '1' was used on line 2 of {a} already; ids must differ",
        f"{b}:3: id: 'a' was used on line 1 already; ids must differ",
    ]


def test_equal_rows_without_ids_are_all_kept(tmp_path: Path) -> None:
    """Equal rows are all judged; their derived ids get -2, -3 and stay unique."""
    row = {"question": "q", "answer": "a"}
    samples = good(read(write(tmp_path / "a.jsonl", *[row] * 40)))
    stem = rag().id
    assert [s.id for s in samples] == [stem, *(f"{stem}-{n}" for n in range(2, 41))]


def test_mappings_in_memory_get_the_same_care() -> None:
    """`samples_from` reads dicts like rows: errors in their place, ids unique."""
    rows = list(
        samples_from([{"question": "q", "answer": "a"}, {"question": "q"}, {"question": "q", "answer": "a"}], "rag")
    )
    assert isinstance(rows[1], InputError)
    assert str(rows[1]).endswith("(item 2)")
    assert [r.id for r in rows if not isinstance(r, InputError)] == [rag().id, f"{rag().id}-2"]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9), st.text(max_size=2))))
def test_ids_agree_with_a_dict(claims: list[tuple[str, int, str]]) -> None:
    """The compact table says of every id where it was first used, as a dict would."""
    first = dict[str, Place]()
    counted = {file: 0 for file, _, _ in claims}
    with Ids() as ids:
        for file, step, id in sorted(claims, key=lambda claim: claim[0]):
            counted[file] += step
            place = Place(file, counted[file], "line")
            assert ids.claim(id, place) == first.get(id)
            first.setdefault(id, place)
            assert id in ids


def test_ids_take_no_memory() -> None:
    """Three hundred thousand ids take less than ten bytes each, as they lie in a file; none is mistaken for another."""
    code = """
        import resource
        from steelyard.samples.files import Place
        from steelyard.samples.ids import Ids

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        count, step = 300_000, 7919
        with Ids() as ids:
            for n in range(count):
                assert ids.claim(f"{n * step % count:032x}", Place("f", n + 1, "line")) is None
                if n == 100:
                    before = peak()
            assert ids.claim(f"{step:032x}", Place("f", count + 1, "line")) == Place("f", 2, "line")
            assert f"{count:032x}" not in ids
            assert peak() - before < 10 * count, (peak(), before)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_ids_that_find_no_room_are_an_error_that_says_what_to_do() -> None:
    """A temporary folder that cannot be written to ends in one line, not in a traceback of SQLite."""
    with Ids() as ids:
        ids._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="TMPDIR"):
            all(ids.claim(f"{n:032}", Place("f", n + 1, "line")) is None for n in range(10_000))


# --- size ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_memory_stays_flat(tmp_path: Path, suffix: str) -> None:
    """Reading a file ten times as long takes hardly more memory; rows are never gathered."""
    code = """
        import csv, json, resource, sys
        from pathlib import Path
        from steelyard.samples import read_samples
        folder, suffix = Path(sys.argv[1]), sys.argv[2]

        def rows(n):
            return ({"id": i, "question": f"问题{i}", "answer": "答" * 300, "note": "x" * 2000} for i in range(n))

        def write(path, n):
            if suffix == "parquet":
                import pyarrow as pa, pyarrow.parquet as pq
                first = pa.Table.from_pylist(list(rows(1)))
                with pq.ParquetWriter(path, first.schema, compression="none", use_dictionary=False) as out:
                    for start in range(0, n, 500):
                        part = [row | {"id": start + row["id"]} for row in rows(500)]
                        out.write_table(pa.Table.from_pylist(part, first.schema))
                return
            with open(path, "w", encoding="utf-8", newline="") as out:
                if suffix == "csv":
                    table = csv.DictWriter(out, ["id", "question", "answer", "note"])
                    table.writeheader()
                    for row in rows(n): table.writerow(row)
                else:
                    for i, row in enumerate(rows(n)):
                        out.write("" if suffix == "jsonl" else "," if i else "[")
                        out.write(json.dumps(row) + "\\n")
                    if suffix == "json": out.write("]")

        def peak(n):
            path = folder / f"{n}.{suffix}"
            write(path, n)
            assert sum(not isinstance(s, Exception) for s in read_samples([path], "rag")) == n
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        small, large = peak(1000), peak(10_000)
        print(large - small, (folder / f"10000.{suffix}").stat().st_size // 1024)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), suffix],
        capture_output=True,
        text=True,
        check=True,
    )
    grown, size = map(int, done.stdout.split())
    assert size > 25_000
    assert grown < 10_000
