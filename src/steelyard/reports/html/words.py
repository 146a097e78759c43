"""The words of one report: what its parts are called in the reader's language, and how an estimate reads."""

from __future__ import annotations

from steelyard.records import Language
from steelyard.reports.blocks import one_line
from steelyard.reports.model import OTHERS, CheckRate, Estimate, Report, check_words, named
from steelyard.text.wording import say

LONGEST_NAME = 60


class PageWords:
    """A report with its language. Tables and figures ask here, so that a thing has one name on the whole page."""

    def __init__(self, report: Report) -> None:
        self.report, self.vocab = report, report.words
        self.language: Language = report.language

    def say(self, key: str) -> str:
        return say(self.language, key)

    def named(self, table: str, name: str) -> str:
        return named(self.language, table, name)

    def metric(self, name: str) -> str:
        return self.vocab.metric_words(name, self.language)

    def metric_about(self, metric: str) -> str:
        return self.vocab.metric_about(metric, self.language)

    def meaning(self, flag: str) -> str:
        return named(self.language, "flag", flag, "")

    @property
    def main(self) -> tuple[str, ...]:
        """The scores that say how good the assistant is; the first carries the bars."""
        return self.vocab.mains(self.report.scores)

    def kind(self, name: str) -> str:
        return self.vocab.kind_words(name, self.language)

    def check(self, check: CheckRate) -> str:
        return check_words(self.report, check)

    def group(self, name: str) -> str:
        """A tag, flag or turn, short enough for a table."""
        return self.say("report.others") if name == OTHERS else one_line(name, LONGEST_NAME)

    def constraint(self, name: str) -> str:
        return self.group(name) if name else self.say("report.no_type")

    def counts(self, estimate: Estimate) -> str:
        """How many stand behind a number, and how many do not."""
        parts = [f"n {estimate.n:,}"]
        if estimate.n_null:
            parts.append(f"{self.say('report.n_null')} {estimate.n_null:,}")
        if estimate.n_unjudged:
            parts.append(f"{self.say('report.n_unjudged')} {estimate.n_unjudged:,}")
        return " · ".join(parts)
