"""A gate's outcome as one frozen value: for the terminal, for a pull request (Markdown), for build servers (JUnit)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal
from xml.etree import ElementTree

from pydantic import Field, computed_field

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Direction, Scale
from steelyard.records import Language, Record
from steelyard.reports.blocks import NOT_APPLICABLE, Block, Heading, Lines, Table, Tone, TonedText, interval, number
from steelyard.reports.blocks import one_line as short
from steelyard.reports.build_servers import xml_text
from steelyard.reports.comparison import MOST_VANISHED, Comparison, ComparisonPage, ends, signed
from steelyard.reports.layout import Page
from steelyard.reports.markdown import document, inert
from steelyard.reports.model import Report
from steelyard.stats import Interval
from steelyard.text.wording import say

State = Literal["met", "met_not_significant", "missed_not_significant", "missed", "unmeasured"]
"""On which side of its limit a number lies. Significant: the whole 95 % interval lies there too."""
Outcome = Literal["passed", "failed", "undecided"]
Reason = Literal["", "not_in_run", "not_in_baseline", "not_in_both", "too_few"]
"""Why a difference from a baseline could not be measured."""
CHANGES = ("drop", "regression")
"""The kinds of checks that are about a difference from a baseline."""


class GateCheck(Record):
    """One requirement and its outcome. `kind` is require, corrected, drop, regression, unjudged or unfinished."""

    kind: str
    metric: str
    sign: str
    limit: float
    value: float | None
    interval: Interval | None
    n: int
    n_all: int | None = Field(
        default=None, description="samples in all, with the score or without; against a baseline, those in both runs"
    )
    n_lost: int = Field(default=0, description="samples that have the score in the baseline only")
    scale: Scale = "ratio"
    direction: Direction = "up"
    state: State
    reason: Reason = Field(default="", description="why it could not be measured against the baseline")
    outcome: Outcome
    n_to_decide: int | None = Field(
        default=None,
        description="where it is not significant: samples that would make it so, at the same rate and spread",
    )


class Gate(Record):
    """All checks of a gate. It passes when every one does; it is undecided when none failed and one is undecided."""

    run: str
    baseline: str | None
    protocol: str = ""
    language: Language
    only_significant: bool
    outcome: Outcome
    checks: tuple[GateCheck, ...]
    marks: tuple[tuple[str, str], ...] = Field(default=(), description="what makes run and baseline less comparable")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


# --- the page ---------------------------------------------------------------------------------------

TONES: dict[Outcome, Tone] = {"passed": "good", "undecided": "open", "failed": "bad"}


class _Words:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def say(self, key: str, **values: object) -> str:
        return say(self.gate.language, f"gate.{key}").format(**values)

    def report(self, key: str) -> str:
        return say(self.gate.language, f"report.{key}")

    def title(self, check: GateCheck) -> str:
        limit = number(check.limit, check.scale)
        metric = vocabulary(self.gate.protocol).metric_words(check.metric, self.gate.language)
        return self.say(check.kind, metric=metric, sign=check.sign, limit=limit)

    def value(self, check: GateCheck) -> str:
        if check.kind in CHANGES and check.value is not None:
            return signed(-check.value if check.direction == "up" else check.value, check.scale)
        return number(check.value, check.scale)

    def interval(self, check: GateCheck) -> str:
        """A score that fell behind is told by its change, with its sign."""
        if check.kind in CHANGES and check.interval is not None:
            fell = (-check.interval[1], -check.interval[0])
            return ends(fell if check.direction == "up" else check.interval, check.scale)
        return interval(check.interval, check.scale)

    def state(self, check: GateCheck) -> str:
        """Which side of its limit it is on, by name: below a least value, above a greatest one, a fall. Then, where
        the score is missing in many samples, in how many."""
        side = "fell" if check.kind in CHANGES else "below" if check.sign.startswith(">") else "above"
        return " · ".join((self.say(f"state.{check.state.replace('missed', side)}"), *self._gaps(check)))

    def _gaps(self, check: GateCheck) -> Iterator[str]:
        if check.reason:
            return
        n_before = check.n + check.n_lost
        if check.kind in CHANGES and check.n_lost > MOST_VANISHED * n_before:
            yield self.say("lost", n=f"{check.n_lost:,}", of=f"{n_before:,}")
        elif check.n_all and 2 * check.n < check.n_all:
            yield self.say("applies", n=f"{check.n:,}", of=f"{check.n_all:,}")

    def n(self, check: GateCheck) -> str:
        """How many samples have the score, of all."""
        if check.n_all is None:
            return f"{check.n:,}"
        return self.say("n_of_all", n=f"{check.n:,}", of=f"{check.n_all:,}")

    def outcome(self, check: GateCheck) -> TonedText:
        return TonedText(f"{self.say(check.outcome)} · {self.state(check)}", TONES[check.outcome])

    def to_decide(self, check: GateCheck) -> str:
        """How many samples would decide what is not significant, or why a difference was not measured; nothing where
        it is significant, or where no limit is missed."""
        if check.reason:
            return self.say(f"reason.{check.reason}", n=f"{check.n_lost:,}")
        if check.state != "missed_not_significant":
            return ""
        if check.n_to_decide is None:
            return self.say("no_number" if check.interval else "too_few")
        key = {"corrected": "to_decide_labelled", "regression": "to_decide_fall"}.get(check.kind, "to_decide")
        return self.say(key, n=f"{check.n_to_decide:,}", now=f"{check.n:,}")

    def summary(self) -> str:
        counts = Counter(check.outcome for check in self.gate.checks)
        outcome = self.say(self.gate.outcome)
        summary = self.say("summary", outcome=outcome, passed=counts["passed"], all=len(self.gate.checks))
        return summary + (self.say("summary_undecided", n=counts["undecided"]) if counts["undecided"] else "")

    def notes(self) -> tuple[str, ...]:
        """By which rule thresholds and differences from the baseline were decided."""
        kinds = {check.kind for check in self.gate.checks}
        rule = "note_only_significant" if self.gate.only_significant else "note_threshold"
        keys = ((rule, ("require", "corrected")), ("note_baseline", CHANGES))
        return tuple(self.say(key) for key, about in keys if not kinds.isdisjoint(about))


def blocks(gate: Gate) -> Iterator[Block]:
    """The page, for a terminal or as Markdown."""
    words = _Words(gate)
    colon = words.report("colon")
    yield Heading(f"{words.say('title')}{colon}{words.say(gate.outcome)}", 1)
    yield Lines((words.summary(),))
    facts = [words.say("run") + colon + short(gate.run, 80)]
    if gate.baseline is not None:
        facts.append(words.say("baseline") + colon + short(gate.baseline, 80))
    yield Lines(tuple(facts))
    beware = say(gate.language, "compare.beware")
    marks = [say(gate.language, f"compare.mark.{code}") + colon + short(detail, 200) for code, detail in gate.marks]
    if marks:
        yield Lines(tuple(beware + colon + mark for mark in marks), listed=True)
    yield Table(
        (words.say("check"), words.say("value"), words.report("interval"), "n", words.say("outcome")),
        "lrrrl",
        tuple(
            (
                words.title(check),
                words.value(check),
                words.interval(check),
                words.n(check),
                words.outcome(check),
            )
            for check in gate.checks
        ),
    )
    colon = words.report("colon")
    marks = [f"{words.title(check)}{colon}{line}" for check in gate.checks if (line := words.to_decide(check))]
    if marks:
        yield Lines(tuple(marks), listed=True)
    yield Lines(words.notes())


LONGEST_COMMENT = 60_000
"""GitHub takes 65,536 characters."""
WORST_LISTED = 5


def comment(gate: Gate, report: Report, comparison: Comparison | None = None) -> str:
    """The gate as a comment below a change: the verdict, the checks with their intervals, the lowest samples.

    The first line is the mark by which the comment is found again (`steelyard.integrations.code_hosts`).
    """
    words = _Words(gate)
    title, *rest = blocks(gate)
    assert isinstance(title, Heading)
    page: list[Block] = [Heading(f"Steelyard · {title.text} · {report.words.title_words(gate.language)}", 3)]
    if comparison is not None:
        page.append(Lines((ComparisonPage(comparison).sentence(),)))
    page += [block for block in rest if block != Lines(words.notes())]
    lowest = report.model_copy(update={"worst": report.worst[:WORST_LISTED]})
    page += [
        replace(block, level=4) if isinstance(block, Heading) else block for block in Page(lowest, brief=False).worst()
    ]
    page.append(Page(report, brief=True).summary())
    mark = f"<!-- steelyard:{re.sub('[^a-z0-9]+', '-', gate.protocol.lower())} -->"
    kept: list[str] = []
    for block in page:
        written = inert(document([block]))
        if sum(map(len, kept)) + len(written) < LONGEST_COMMENT:
            kept.append(written)
    return "\n".join([mark, *kept])


def junit(gate: Gate) -> str:
    """One test case per check: a failure where a limit was missed, an error where nothing could be measured, skipped
    where it is undecided."""
    words = _Words(gate)
    kinds = Counter(map(_element, gate.checks))
    suite = ElementTree.Element(
        "testsuite",
        name="steelyard gate",
        tests=str(len(gate.checks)),
        failures=str(kinds["failure"]),
        errors=str(kinds["error"]),
        skipped=str(kinds["skipped"]),
        time="0",
    )
    for check in gate.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"steelyard.gate.{check.kind}", name=xml_text(words.title(check)), time="0"
        )
        details = f"{words.value(check)} ({words.interval(check)}), n = {words.n(check)}: {words.state(check)}"
        details = "; ".join(filter(None, (details, words.to_decide(check))))
        kind = _element(check)
        if kind == "system-out":
            ElementTree.SubElement(case, kind).text = xml_text(details)
            continue
        found = ElementTree.SubElement(case, kind, message=xml_text(details))
        if kind != "skipped":
            found.set("type", check.state)
        found.text = xml_text(f"{gate.run} {NOT_APPLICABLE} {words.title(check)}: {details}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _element(check: GateCheck) -> str:
    if check.outcome == "failed":
        return "error" if check.state == "unmeasured" else "failure"
    return "skipped" if check.outcome == "undecided" else "system-out"
