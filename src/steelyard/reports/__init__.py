"""Reports: `build` makes one `Report` from a stream of verdicts; terminal, markdown and json render it."""

from __future__ import annotations

from steelyard.reports.build import ReportBuilder
from steelyard.reports.model import Estimate, Report

__all__ = ["Estimate", "Report", "ReportBuilder"]
