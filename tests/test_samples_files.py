"""Files become samples: every format, every way a row can be bad."""

from __future__ import annotations

import codecs
import datetime
import gzip
import io
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_rows import ROW, SEED_DIALOGUE, good, read, write
from steelyard.errors import ConfigError, InputError, MissingExtra
from steelyard.records import DialogueSample, RagSample
from steelyard.samples import read_samples
from steelyard.samples.documents import elements

# --- files -----------------------------------------------------------------------------------------

ROWS = [
    {"id": str(n), "question": f"问题{n}", "answer": f"答{n}\n第二行", "references": ["p", f"段{n}"]}
    for n in range(1, 6)
]
EXPECTED = [
    RagSample(id=str(n), question=f"问题{n}", answer=f"答{n}\n第二行", references=("p", f"段{n}")) for n in range(1, 6)
]


def csv_text(rows: list[dict[str, object]], delimiter: str = ",") -> str:
    import csv

    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for k, v in row.items()})
    return out.getvalue()


JSONL = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
CONTENTS = {
    "a.jsonl": JSONL,
    "a.ndjson": JSONL + "\n\n",
    "crlf.jsonl": JSONL.replace("\n", "\r\n"),
    "a.json": json.dumps(ROWS),
    "pretty.json": json.dumps(ROWS, indent=2, ensure_ascii=False),
    "lines.json": JSONL,
    "array.jsonl": json.dumps(ROWS, indent=1),
    "samples.json": json.dumps({"version": 1, "meta": {"data": []}, "samples": ROWS}),
    "data.json": json.dumps({"data": ROWS}, indent=2),
    "seed.json": json.dumps({"评估数据": ROWS}, ensure_ascii=False),
    "a.csv": csv_text(ROWS),
    "semicolon.csv": csv_text(ROWS, ";"),
    "a.tsv": csv_text(ROWS, "\t"),
    "CAPS.CSV": csv_text(ROWS),
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("bom", [False, True], ids=["", "bom"])
@pytest.mark.parametrize("name", CONTENTS)
def test_text_formats(tmp_path: Path, name: str, bom: bool, zipped: bool) -> None:
    """Every text format gives the same samples, also gzipped, with a byte order mark, or under another's suffix."""
    data = (codecs.BOM_UTF8 if bom else b"") + CONTENTS[name].encode()
    path = tmp_path / (name + ".gz" if zipped else name)
    path.write_bytes(gzip.compress(data) if zipped else data)
    assert good(read(path)) == EXPECTED


def test_parquet(tmp_path: Path) -> None:
    """Parquet rows come with lists, dates and numbers as Python values; bad ones by their row number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    days = [datetime.date(2024, 1, n) for n in range(1, 6)]
    table = pa.Table.from_pylist(
        [row | {"date": day, "id": n} for n, (row, day) in enumerate(zip(ROWS, days, strict=True))]
    )
    pq.write_table(table, tmp_path / "a.parquet")
    samples = good(read(tmp_path / "a.parquet"))
    assert [s.id for s in samples] == ["0", "1", "2", "3", "4"]
    assert samples[4].references == ("p", "段5")  # type: ignore[union-attr]
    assert samples[4].date == "2024-01-05"  # type: ignore[union-attr]

    pq.write_table(pa.table({"question": ["q", "q"], "answer": ["a", None]}), tmp_path / "b.parquet")
    _, error = read(tmp_path / "b.parquet")
    assert isinstance(error, InputError)
    assert (error.line, error.field) == (2, "answer")
    assert str(error).endswith("(row 2)")

    write(tmp_path / "c.parquet", "PAR1 but not really")
    (error,) = read(tmp_path / "c.parquet")
    assert isinstance(error, InputError)
    assert "not Parquet" in str(error)


def test_parquet_without_pyarrow(tmp_path: Path) -> None:
    """Without pyarrow the error names the extra to install, before anything is read."""
    code = """
        import sys; sys.modules["pyarrow"] = None
        import importlib.util as u; find = u.find_spec
        u.find_spec = lambda name, *rest: None if name == "pyarrow" else find(name, *rest)
        from steelyard.errors import MissingExtra
        from steelyard.samples import read_samples
        try: read_samples(["a.jsonl", "b.parquet"], "rag")
        except MissingExtra as error: print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "pip install 'steelyard[parquet]'" in done.stdout
    assert issubclass(MissingExtra, Exception)


def test_a_single_object_is_a_sample(tmp_path: Path) -> None:
    """A JSON file may be one sample, also under the seed's own heading."""
    assert good(read(write(tmp_path / "one.json", json.dumps(ROW, indent=2))))[0].id == "a"
    assert good(read(write(tmp_path / "items.json", json.dumps(ROW | {"items": [1]}, indent=2))))[0].id == "a"
    path = write(tmp_path / "seed.json", json.dumps({"评估数据": SEED_DIALOGUE}, ensure_ascii=False, indent=2))
    (sample,) = good(read(path, kind="dialogue"))
    assert isinstance(sample, DialogueSample)
    assert len(sample.turns) == 2


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.jsonl.gz"])
def test_an_empty_file_has_no_samples(tmp_path: Path, name: str, content: str) -> None:
    """Nothing in, nothing out."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read(tmp_path / name) == []


def stdin_read(data: bytes, *options: str) -> list[str]:
    code = f"""
        from steelyard.samples import read_samples
        for row in read_samples(["-"], "rag", {", ".join(options)}):
            print(getattr(row, "id", None) or row)
        import sys; assert not sys.stdin.buffer.closed
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], input=data, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


@pytest.mark.parametrize("name", ["a.jsonl", "pretty.json", "data.json", "a.csv", "a.tsv"])
def test_standard_input_is_recognised(name: str) -> None:
    """`-` finds out what it is given, zipped or not."""
    ids = ["1", "2", "3", "4", "5"]
    assert stdin_read(CONTENTS[name].encode()) == ids
    assert stdin_read(gzip.compress(CONTENTS[name].encode())) == ids


def test_standard_input_errors_and_format() -> None:
    """Errors on standard input say so; a format can be given; Parquet cannot come through a pipe."""
    assert stdin_read(b'{"question": "q"}\n')[0].startswith("stdin:1: answer: not in this row")
    assert stdin_read(b"[1]", "format='jsonl'")[0].startswith("stdin:1: expected an object")
    assert "pipe" in stdin_read(b"PAR1", "format='parquet'")[0]


# --- bad files, bad rows ---------------------------------------------------------------------------


def test_bad_lines_do_not_stop_the_rest(tmp_path: Path) -> None:
    """Every bad line of a JSONL file is reported with file, line and field, in its place."""
    path = write(tmp_path / "a.jsonl", ROW, "", "{broken", "[1]", "7", {"question": "q"}, ROW | {"id": "b"})
    rows = read(path)
    assert [row.id for row in rows if not isinstance(row, InputError)] == ["a", "b"]
    errors = [row for row in rows if isinstance(row, InputError)]
    assert [(e.file, e.line, e.field) for e in errors] == [
        (str(path), line, field) for line, field in ((3, None), (4, None), (5, None), (6, "answer"))
    ]
    assert str(errors[0]).startswith(f"{path}:3: not JSON: ")
    assert all(error.__traceback__ is None for error in errors)


def test_bad_encoding_costs_one_row(tmp_path: Path) -> None:
    """Undecodable bytes spoil the row they stand in, in every text format, and the message helps."""
    spoilt = "坏".encode("gb18030")
    (tmp_path / "a.jsonl").write_bytes(JSONL.encode().replace("答2".encode(), spoilt))
    (tmp_path / "a.json").write_bytes(json.dumps(ROWS, ensure_ascii=False).encode().replace("答2".encode(), spoilt))
    (tmp_path / "a.csv").write_bytes(csv_text(ROWS).encode().replace("答2".encode(), spoilt))
    for name, line in (("a.jsonl", 2), ("a.json", 2), ("a.csv", 4)):
        rows = read(tmp_path / name)
        (error,) = [row for row in rows if isinstance(row, InputError)]
        assert [row for row in rows if not isinstance(row, InputError)] == [EXPECTED[0], *EXPECTED[2:]]
        assert error.line == line
        assert "encoding=" in str(error)
    assert error.field == "answer"


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["a.jsonl", "pretty.json", "a.csv"])
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    """A named encoding is used; UTF-16 with its mark is recognised without being named."""
    (tmp_path / name).write_bytes(CONTENTS[name].encode(encoding))
    assert good(read(tmp_path / name, encoding=encoding)) == EXPECTED
    if encoding == "utf-16":
        assert good(read(tmp_path / name)) == EXPECTED


def test_broken_utf16_is_an_error(tmp_path: Path) -> None:
    """An encoding that cannot go on after an error ends the file with one, and says which."""
    (tmp_path / "a.jsonl").write_bytes(codecs.BOM_UTF16_LE + b"\x00\xdc\x00")
    (error,) = read(tmp_path / "a.jsonl", encoding="utf-16")
    assert "utf-16" in str(error)


@pytest.mark.parametrize(
    "options", [{"encoding": "klingon"}, {"encoding": "hex"}, {"format": "xls"}, {"format": "csv:1"}]
)
def test_unknown_options_raise_at_once(options: dict[str, str]) -> None:
    """An encoding or format that does not exist is the caller's mistake, told before reading."""
    with pytest.raises(ConfigError, match=f"unknown .*{next(iter(options.values()))}"):
        read_samples(["a.jsonl"], "rag", **options)  # type: ignore[arg-type]


def test_unreadable_files_are_values(tmp_path: Path) -> None:
    """A missing file, an unknown suffix and a cut gzip are reported, and the others are read."""
    write(tmp_path / "a.docx", "x")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(JSONL.encode() * 9)[:-20])
    rows = read(
        tmp_path / "none.jsonl",
        tmp_path / "a.docx",
        write(tmp_path / "a.jsonl", ROW),
        tmp_path / "cut.jsonl.gz",
    )
    said = [str(row) for row in rows if isinstance(row, InputError)]
    assert said[0] == f"{tmp_path / 'none.jsonl'}: no such file"
    assert "format=" in said[1]
    assert f"{tmp_path / 'cut.jsonl.gz'}: cannot be read" in said[-1]
    assert rows[2] == RagSample(**ROW)  # type: ignore[arg-type]


def test_a_path_alone_is_one_source(tmp_path: Path) -> None:
    """A single name instead of a list is not taken apart into letters."""
    path = write(tmp_path / "a.jsonl", ROW)
    assert len(good(list(read_samples(str(path), "rag")))) == 1
    assert len(good(list(read_samples(path, "rag")))) == 1  # type: ignore[arg-type]


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    """`--format` reads a file of any name."""
    assert good(read(write(tmp_path / "export.txt", JSONL), format="jsonl")) == EXPECTED


def test_truncated_array_keeps_what_was_whole(tmp_path: Path) -> None:
    """A JSON array that breaks off gives its whole elements, then one error that counts on."""
    text = json.dumps(ROWS, ensure_ascii=False)
    for end in (text.index('"id": "4"'), text.index("段3") + 1):
        rows = read(write(tmp_path / "a.json", text[:end]))
        whole = EXPECTED[: len(rows) - 1]
        assert rows[:-1] == whole
        assert isinstance(rows[-1], InputError)
        assert rows[-1].line == len(whole) + 1
        assert f"(item {len(whole) + 1})" in str(rows[-1])


def test_array_elements_are_counted(tmp_path: Path) -> None:
    """In a JSON array the number is the element's, and the message says so."""
    rows = read(write(tmp_path / "a.json", json.dumps([ROW, 5, {"question": "q"}, ROW | {"id": "z"}])))
    assert str(rows[1]).endswith("got a number (item 2)")
    assert isinstance(rows[2], InputError)
    assert (rows[2].line, rows[2].field) == (3, "answer")
    assert not isinstance(rows[3], InputError)


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_strange_characters(tmp_path: Path, suffix: str) -> None:
    """NUL, control characters and lone surrogates in JSON strings neither crash nor get lost."""
    escapes = r"\ud800 \ud83d\ude00 \\ud800 \u0000 \udc00\ud800 " + "\x00\x07‮"
    line = '{"question": "q", "answer": "' + escapes + '"}'
    (sample,) = good(read(write(tmp_path / f"a.{suffix}", f"[{line}]" if suffix == "json" else line)))
    assert sample.answer == "\ufffd 😀 \\ud800 \x00 \ufffd\ufffd \x00\x07‮"  # type: ignore[union-attr]


class Dribble(io.StringIO):
    """A stream that hands out a few characters at a time."""

    step = 1

    def read(self, size: int | None = -1) -> str:
        return super().read(self.step)


PIECES = st.sampled_from([r"\ud83d\ude00", r"\ud800", r"\udc00", r"\\", r"\n", r"\u0041", r"\"", "x", "长", "ud800"])


@given(st.lists(PIECES).map("".join), st.integers(1, 20))
def test_escapes_survive_any_chunk_boundary(escaped: str, step: int) -> None:
    """However a document is cut into reads, its strings are what `json` makes of them."""
    text = Dribble(f'[["{escaped}"], {{"a": "{escaped}"}}]')
    text.step = step
    expected = re.sub("[\ud800-\udfff]", "\ufffd", json.loads(f'"{escaped}"'))
    assert list(elements(text)) == [([expected], False), ({"a": expected}, False)]


def test_csv_counts_the_line_a_row_starts_on(tmp_path: Path) -> None:
    """Embedded newlines do not shift the numbers; short, long and badly quoted rows are named."""
    text = 'question,answer\r\n"a\nb\nc",x\r\nonly\r\nq,a,surplus\r\n,,,\r\nq,"a"b\r\nq2,\r\n"never closed,x\r\ny'
    (tmp_path / "a.csv").write_text(text, newline="")
    rows = read(tmp_path / "a.csv")
    assert [(e.line, e.field) for e in rows if isinstance(e, InputError)] == [
        (5, "answer"),
        (6, None),
        (8, None),
        (10, None),
    ]
    assert [r.answer for r in rows if isinstance(r, RagSample)] == ["x", ""]
    assert "never closed" in str(rows[-1])


def test_csv_with_huge_cells_and_nul(tmp_path: Path) -> None:
    """A cell of a megabyte and a NUL byte are read."""
    big = "长" * 400_000 + "\x00"
    (tmp_path / "a.csv").write_text(csv_text([{"question": "q", "answer": big}]), encoding="utf-8", newline="")
    assert good(read(tmp_path / "a.csv"))[0].answer == big  # type: ignore[union-attr]


def test_csv_with_two_equal_columns(tmp_path: Path) -> None:
    """Two columns of one name would hide each other, so the file is refused."""
    rows = read(write(tmp_path / "a.csv", "question,answer,answer", "q,a,b"))
    assert len(rows) == 1
    assert "same name: answer" in str(rows[0])


def test_csv_dialogue(tmp_path: Path) -> None:
    """Turns stand in a CSV cell as JSON."""
    turns = json.dumps(SEED_DIALOGUE["待评估对话"], ensure_ascii=False)
    row: dict[str, object] = {"system_prompt": "s\nt", "turns": turns, "tags": "a,b"}
    (tmp_path / "a.csv").write_text(csv_text([row]), encoding="utf-8", newline="")
    (sample,) = good(read(tmp_path / "a.csv", kind="dialogue"))
    assert isinstance(sample, DialogueSample)
    assert len(sample.turns) == 2
    assert sample.tags == ("a", "b")
