"""The report as one HTML file that needs nothing else: no network, no other file, no script but its own."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from steelyard.records import Language
from steelyard.reports.html.environment import environment, policy, static
from steelyard.reports.html.page import ReportPage
from steelyard.reports.html.selection import ChosenSample, Lowest
from steelyard.reports.html.views import ViewLimits
from steelyard.reports.model import Report, in_language

__all__ = ["Chosen", "Lowest", "ViewLimits", "render"]


def render(
    report: Report,
    samples: Sequence[ChosenSample] = (),
    language: Language | None = None,
    limits: ViewLimits | None = None,
) -> str:
    """The report as a document; the chosen samples are in it in full, in their order."""
    style, script = static("style.css"), static("report.js")
    page = ReportPage(in_language(report, language), samples, limits)
    return (
        environment()
        .get_template("report.html")
        .render(
            page=page,
            report=page.report,
            say=page.words.say,
            language=page.words.language,
            policy=policy(style, script),
            style=Markup(style),
            script=Markup(script),
        )
    )
