"""The report for programs: the `Report` value as JSON, keys as in `reports/model.py`."""

from __future__ import annotations

from steelyard.records import Language
from steelyard.reports.model import Report, in_language


def render(report: Report, language: Language | None = None) -> str:
    """The report as indented JSON; numbers are unrounded, what does not apply is null."""
    return in_language(report, language).model_dump_json(indent=2) + "\n"
