"""What the package knows of its judges' agreement with people: figures by name or pattern, one line for reports."""

from __future__ import annotations

from pathlib import Path

from steelyard.reports.agreement import AgreementSummary, figures_for


def test_a_template_is_filled_literally() -> None:
    """A judge named like a placeholder is no placeholder, and unknown or unclosed braces stay."""
    named = AgreementSummary(judge="{n}", balanced_accuracy=1.0, sets=("a",), n=10, date="d")
    assert named.fill("{judge} {unknown} {n} {") == "{n} {unknown} 10 {"
    assert named.fill("{balanced_accuracy}") == "1.00"


def test_patterns_name_families_of_judges(tmp_path: Path) -> None:
    """A hand-written pattern serves all judges it fits, whatever their case."""
    file = tmp_path / "agreement.toml"
    entry = '[[figures]]\njudge = "local:*1.5B*"\nset = "kvpi"\nmeasure = "balanced accuracy"\nvalue = 0.8\nn = 9\n'
    file.write_text(entry + 'date = "2026-01-01"\n', "utf-8")
    assert len(figures_for("local:Qwen2.5-1.5b-q4", file)) == 1
    assert figures_for("local:qwen-7b", file) == []


def test_shipped_figures_are_valid() -> None:
    """What ships can be read, and every share is one."""
    for figure in figures_for("embedded"):
        assert figure.set == "speed" or 0 <= figure.value <= 1
        assert figure.low is None or figure.low <= figure.value <= figure.high
