"""Files of other tools: RAGChecker's results, Volcengine Ark's, Excel workbooks."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.cell.cell import WriteOnlyCell

from steelyard.errors import InputError, Surface
from steelyard.records import RagSample, Sample
from steelyard.samples import read_samples


def read(*files: Path, **how: Any) -> list[Sample | InputError]:
    return list(read_samples([str(file) for file in files], "rag", **how))


def written(path: Path, document: object, indent: int | None = None) -> Path:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")
    return path


# --- RAGChecker ------------------------------------------------------------------------------------

CHECKED = {
    "query_id": "000",
    "query": "When does it open?",
    "gt_answer": "At nine.",
    "response": "It opens at nine.",
    "response_claims": [["It", "opens", "at nine"]],
    "retrieved_context": [{"doc_id": "7", "text": "It opens at nine."}, {"doc_id": "8", "text": "Closed on Monday."}],
}


@pytest.mark.parametrize(
    ("name", "indent"), [("in.json", None), ("in.json", 2), ("in.jsonl", None), ("in.txt", None), ("in.txt", 2)]
)
def test_ragchecker(tmp_path: Path, name: str, indent: int | None) -> None:
    """Its inputs and outputs are an object with `results`, on one line or on many, whatever the file is called."""
    file = written(tmp_path / name, {"results": [CHECKED, CHECKED | {"query_id": "001"}], "metrics": {}}, indent)
    first, second = read(file, format="json" if name == "in.txt" else None)
    assert isinstance(first, RagSample)
    assert first == RagSample(
        id="000",
        question="When does it open?",
        answer="It opens at nine.",
        references=("It opens at nine.", "Closed on Monday."),
        reference_answer="At nine.",
    )
    assert isinstance(second, RagSample)
    assert second.id == "001"


def test_a_sample_with_results_of_its_own_is_a_sample(tmp_path: Path) -> None:
    """A row that has a question and an answer is not taken apart for a list called `results` in it."""
    rows = [{"id": n, "question": "q", "answer": "a", "results": [{"question": "x"}]} for n in (1, 2)]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [sample.id for sample in read(file) if isinstance(sample, RagSample)] == ["1", "2"]


# --- Volcengine Ark --------------------------------------------------------------------------------

ARK = {
    "system": "请完成下面的计算题",
    "prompt": "0+1",
    "answer": "1",
    "parameters": {"top_k": 1},
    "response": "等于一",
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    "error": "",
}


def test_ark(tmp_path: Path) -> None:
    """In a result file of Ark, `response` is the answer and `answer` the reference; that is said once for each file."""
    notes: list[str] = []
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for n, file in enumerate(files):
        rows = [ARK | {"id": f"{n}-{row}"} for row in range(3)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = read(*files, on_note=notes.append, surface=Surface.flags)
    assert len(found) == 6
    for sample in found:
        assert isinstance(sample, RagSample)
        assert (sample.question, sample.answer, sample.reference_answer) == ("0+1", "等于一", "1")
    told = "read as a file of 火山方舟 Volcengine Ark; to read its columns by their names: --from plain"
    assert notes == [
        f"{files[0]}: {told}",
        f"{files[1]}: {told}",
        f"{files[0]}, {files[1]}: not taken: 6 × system prompt (single answers have none)",
    ]


def test_ark_with_its_newer_names(tmp_path: Path) -> None:
    """`query` and `reference_response` leave nothing to guess."""
    row = {"session_id": 1, "endpoint_id": "ep-1", "query": "0+1", "reference_response": "1", "response": "等于一"}
    (sample,) = read(written(tmp_path / "a.jsonl", row))
    assert isinstance(sample, RagSample)
    assert (sample.answer, sample.reference_answer) == ("等于一", "1")


@pytest.mark.parametrize("response", [None, "", " "])
def test_ark_where_nothing_was_answered(tmp_path: Path, response: str | None) -> None:
    """A response that failed at the platform is a bad row with the platform's words, not an empty answer."""
    (bad,) = read(written(tmp_path / "a.jsonl", ARK | {"response": response, "error": "AccountOverdue"}))
    assert isinstance(bad, InputError)
    assert (bad.field, "AccountOverdue" in bad.problem) == ("response", True)


@pytest.mark.parametrize("without", ["usage", "prompt", "response"])
def test_what_only_looks_a_little_like_ark_is_not_guessed(tmp_path: Path, without: str) -> None:
    """Where a column of the shape is missing, the usual rules hold: two different answers are an error."""
    row = {name: value for name, value in ARK.items() if name != without} | {"question": "0+1"}
    (found,) = read(written(tmp_path / "a.jsonl", row))
    if without == "response":
        assert isinstance(found, RagSample)
        assert (found.answer, found.reference_answer) == ("1", None)
    else:
        assert isinstance(found, InputError)
        assert "either could be meant" in found.problem


def test_a_mapping_says_otherwise(tmp_path: Path) -> None:
    """Whoever maps `answer` is believed."""
    notes: list[str] = []
    (sample,) = read(written(tmp_path / "a.jsonl", ARK), fields={"answer": "answer"}, on_note=notes.append)
    assert isinstance(sample, RagSample)
    assert (sample.answer, sample.reference_answer, notes) == ("1", None, [])


# --- Excel -----------------------------------------------------------------------------------------


def workbook(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


HEADER = ["id", "question", "answer", "references", "date"]


def test_a_workbook(tmp_path: Path) -> None:
    """The first row is the header; numbers and dates are the text that a reader sees; empty rows are no rows."""
    rows = [
        HEADER,
        [1, "几点开门？", "九点。", '["九点开门。"]', datetime.date(2026, 3, 2)],
        [None, None, "", "  ", None],
        [2.0, "6乘7？", 42, None, "2026-03-03"],
        ["x", "真的？", True, None, None],
        ["y", "how much?", 0.1 + 0.2, "one passage", datetime.datetime(2026, 3, 2, 9, 30)],
        ["z", "line\nbreak", None, None, None],
    ]
    notes: list[str] = []
    found = read(workbook(tmp_path / "a.xlsx", ("Sheet", rows)), on_note=notes.append)
    assert all(isinstance(sample, RagSample) for sample in found), found
    told = [(s.id, s.question, s.answer, s.references, s.date) for s in found if isinstance(s, RagSample)]
    assert told == [
        ("1", "几点开门？", "九点。", ("九点开门。",), "2026-03-02"),
        ("2", "6乘7？", "42", (), "2026-03-03"),
        ("x", "真的？", "TRUE", (), None),
        ("y", "how much?", "0.3", ("one passage",), "2026-03-02 09:30:00"),
        ("z", "line\nbreak", "", (), None),
    ]
    assert notes == []


def test_a_percentage_stays_one(tmp_path: Path) -> None:
    """A cell that shows 85% holds 0.85; the answer is what the person saw."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(["question", "answer"])
    for value, form in ((0.85, "0%"), (0.8512, "0.00%"), (0.85, "General")):
        cell = WriteOnlyCell(sheet, value)
        cell.number_format = form
        sheet.append(["how many?", cell])
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx")
    assert [sample.answer for sample in found if isinstance(sample, RagSample)] == ["85%", "85.12%", "0.85"]


def test_the_sheet(tmp_path: Path) -> None:
    """Of several sheets the first visible one is read, which is said; another is named after the format."""
    rows = {name: [["question", "answer"], ["q", name]] for name in ("hidden", "first", "第二")}
    path = workbook(tmp_path / "a.xlsx", *rows.items())
    book = openpyxl.load_workbook(path)
    book["hidden"].sheet_state = "hidden"
    book.save(path)
    notes: list[str] = []
    assert [s.answer for s in read(path, on_note=notes.append) if isinstance(s, RagSample)] == ["first"]
    assert notes == [f"{path}: the sheet 'first' is read, the first of 2; another one: format=xlsx:第二"]
    for name in ("第二", "hidden"):
        assert [s.answer for s in read(path, format=f"xlsx:{name}") if isinstance(s, RagSample)] == [name]
    (bad,) = read(path, format="xlsx:none")
    assert "has no sheet 'none'; it has first, 第二" in str(bad)


def test_formulas_give_what_was_saved(tmp_path: Path) -> None:
    """A formula is its value as the spreadsheet saved it; one without a value, and an error, are bad rows by cell."""
    path = workbook(
        tmp_path / "a.xlsx",
        ("Sheet", [["question", "answer"], ["q", "=1+1"], ["q", "=2+2"], ["q", "#N/A"], ["q", "good"]]),
    )
    # openpyxl calculates nothing; what a spreadsheet program would have saved is put in here.
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    parts[name] = (
        parts[name].replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>").replace(b"<f>1+1</f><v/>", b"<f>1+1</f><v>2</v>")
    )
    assert b"<v>2</v>" in parts[name]
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    first, second, third, fourth = read(path)
    assert isinstance(first, RagSample)
    assert first.answer == "2"
    assert str(second) == f"{path}:3: B3 is a formula that was never calculated; open the file and save it (row 3)"
    assert str(third) == f"{path}:4: B4 holds the error #N/A (row 4)"
    assert isinstance(fourth, RagSample)


def test_a_wrong_size_is_not_believed(tmp_path: Path) -> None:
    """Some programs write that a sheet is one cell large; its rows are read all the same."""
    path = workbook(tmp_path / "a.xlsx", ("Sheet", [["question", "answer"], ["q", "a"], ["q2", "b"]]))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    assert b'ref="A1:B3"' in parts[name]
    parts[name] = parts[name].replace(b'ref="A1:B3"', b'ref="A1"', 1)
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    assert [sample.answer for sample in read(path) if isinstance(sample, RagSample)] == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([["question", "answer", "answer"], ["q", "a", "b"]], "two columns have the same name: answer (row 1)"),
        ([["question", "answer"], ["q", "a", "stray"]], "3 cells under 2 columns (row 2)"),
    ],
)
def test_bad_rows_of_a_workbook(tmp_path: Path, rows: list[list[str]], says: str) -> None:
    """What cannot be read is told by its row, as the spreadsheet numbers it."""
    (bad,) = read(workbook(tmp_path / "a.xlsx", ("Sheet", rows)))
    assert isinstance(bad, InputError)
    assert says in str(bad)


def test_what_is_no_workbook(tmp_path: Path) -> None:
    """A file that is none, an old .xls and a pipe say what to do; the other files are read."""
    (tmp_path / "a.xlsx").write_bytes(b"PK but no archive")
    (tmp_path / "b.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    good = workbook(tmp_path / "c.xlsx", ("Sheet", [["question", "answer"], ["q", "a"]]))
    first, second, third = read(tmp_path / "a.xlsx", tmp_path / "b.xls", good)
    assert "is not an .xlsx file that can be read" in str(first)
    assert "save it as .xlsx" in str(second)
    assert isinstance(third, RagSample)
    (piped,) = read(Path("-"), format="xlsx")
    assert "cannot be read from a pipe" in str(piped)


def test_a_workbook_without_openpyxl(tmp_path: Path) -> None:
    """The missing extra is named before anything is read."""
    path = workbook(tmp_path / "a.xlsx", ("Sheet", [["question", "answer"], ["q", "a"]]))
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'openpyxl' else find(name, *rest)\n"
        f"from steelyard.samples import read_samples; read_samples([{str(path)!r}], 'rag')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "reading Excel files needs openpyxl: pip install 'steelyard[xlsx]'" in done.stderr
