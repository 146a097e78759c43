"""A real notebook, executed by a real kernel: results, one sample, a comparison and progress are shown there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import steelyard
from command import RAG, RECORDED, process_environment
from steelyard.engine.progress import ProgressLine, bar, in_notebook, snapshot
from steelyard.engine.runner import Tally
from steelyard.errors import InputError

CELLS = (
    f"import steelyard\nrows = {RAG!r}\nbefore = steelyard.evaluate(rows, 'atomic', {RECORDED!r}, progress=True)",
    "before",
    "before.show('car-seat')",
    "from steelyard.trust.comparison import compare\ncompare(before, before, language='en')",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What each cell shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    folder = tmp_path_factory.mktemp("notebook")
    client.execute(cwd=str(folder), env=process_environment() | {"IPYTHONDIR": str(folder)})
    return [cell.outputs for cell in notebook.cells]


def html_of(output: Any) -> str:
    return "".join(output.data["text/html"])


def test_results_are_a_report_with_the_lowest_samples_to_open(outputs: list[list[Any]]) -> None:
    """The cell shows scores with intervals, and the lowest samples folded below."""
    (shown,) = outputs[1]
    page = html_of(shown)
    assert "70.0%" in page
    assert "<summary>car-seat</summary>" in page
    assert shown.data["text/plain"].startswith("<Results: 8 atomic verdicts")


def test_one_sample_has_its_evidence_marked(outputs: list[list[Any]]) -> None:
    """Items with labels and reasons; the quoted part of the passage is marked."""
    page = html_of(outputs[2][0])
    assert '<span class="bad">✗ ' in page
    assert re.search(r"<mark>ISOFIX儿童座椅固定接口位于第二排", page)


def test_a_comparison_says_which_is_better(outputs: list[list[Any]]) -> None:
    """Two results are compared without a store."""
    assert "No difference: all" in html_of(outputs[3][0])


def test_progress_is_one_bar_that_is_drawn_over(outputs: list[list[Any]]) -> None:
    """A kernel gets a bar, updated in place, and no lines on standard error."""
    shown = [output for output in outputs[0] if output.output_type == "display_data"]
    assert [output.output_type for output in outputs[0]] == ["display_data"]
    assert '<progress value="8" max="8">' in html_of(shown[0])


def test_outside_a_notebook_nothing_changes() -> None:
    """In a terminal or a pipe progress is text, whether or not IPython is installed."""
    assert not in_notebook()
    assert ProgressLine("auto", Tally(total=1), lambda: None).style in ("live", "plain")
    assert "<progress>" in bar(snapshot(Tally(), 1.0, None))


def test_what_a_cell_shows_loads_nothing_and_runs_nothing() -> None:
    """Judged text is escaped everywhere: ids, texts, passages, reasons; there is no script, no link, no address."""
    evil = "<script>alert(1)</script><a href=http://evil.example>x</a>"
    row = {
        "id": evil,
        "question": evil,
        "answer": f"It opens at ten. {evil}",
        "references": [f"It opens at nine. {evil}"],
    }
    results = steelyard.evaluate([row], "atomic", "embedded")
    for page in (results._repr_html_(), results.show(0)._repr_html_()):
        assert not re.search(r"<(script|a|img|link|iframe)\b", page)
        assert not re.search(r"(href|src|url\(|@import)\s*=?['\"(]", page)
        assert "&lt;script&gt;" in page
    assert "It opens at nine." in str(results.show(0))
    with pytest.raises(InputError, match="there is no sample 'x'"):
        results.show("x")


def test_colours_follow_the_theme() -> None:
    """No colour of text or background is fixed: each is mixed with what the notebook has."""
    page = steelyard.evaluate(
        [json.loads(Path(RAG).read_text("utf-8").splitlines()[0])], "atomic", RECORDED
    )._repr_html_()
    style = page.partition("<style>")[2].partition("</style>")[0]
    colours = re.findall(r"(?<![\w-])(?:color|background): ([^;}]+)", style)
    assert colours
    assert all(re.match(r"inherit|none|color-mix\(in srgb, currentColor|rgba\(.*, \.\d+\)", one) for one in colours)
