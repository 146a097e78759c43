"""A gate for people (terminal, Markdown for a pull request) and for build servers (JUnit XML)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from steelyard.gating import Gate, GateCheck, State
from steelyard.reports.blocks import NOT_APPLICABLE, Block, Heading, Lines, Table, Tone, Toned, clean, interval, number
from steelyard.reports.blocks import one_line as short
from steelyard.reports.model import Scale, named
from steelyard.wording import say

TONES: dict[State, Tone] = {
    "held": "good",
    "barely_held": "good",
    "barely_missed": "open",
    "missed": "bad",
    "unmeasured": "bad",
}


CHANGES = ("drop", "regression")


class _Words:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def say(self, key: str, **values: object) -> str:
        return say(self.gate.language, f"gate.{key}").format(**values)

    def report(self, key: str) -> str:
        return say(self.gate.language, f"report.{key}")

    def scale(self, check: GateCheck) -> Scale:
        return "ratio" if check.kind == "unjudged" else self.gate.scale

    def title(self, check: GateCheck) -> str:
        limit = number(check.limit, self.scale(check))
        metric = named(self.gate.language, "metric", check.metric)
        return self.say(check.kind, metric=metric, sign=check.sign, limit=limit)

    def value(self, check: GateCheck) -> str:
        if check.kind in CHANGES and check.value is not None:
            from steelyard.comparison.page import signed

            return signed(-check.value, self.gate.scale)
        return number(check.value, self.scale(check))

    def interval(self, check: GateCheck) -> str:
        """Falls are told as changes of the score, with their sign."""
        if check.kind in CHANGES and check.interval is not None:
            from steelyard.comparison.page import ends

            return ends((-check.interval[1], -check.interval[0]), self.gate.scale)
        return interval(check.interval, self.scale(check))

    def outcome(self, check: GateCheck) -> Toned:
        tone: Tone = "bad" if not check.passed else TONES[check.state]
        passed = self.say("open" if check.passed else "closed")
        return Toned(f"{passed} · {self.say(check.state)}", tone)

    def summary(self) -> str:
        failed = sum(not check.passed for check in self.gate.checks)
        outcome = self.say("open" if self.gate.passed else "closed")
        return self.say("summary", outcome=outcome, failed=failed, all=len(self.gate.checks))


def blocks(gate: Gate) -> Iterator[Block]:
    """The page, for a terminal or as Markdown."""
    words = _Words(gate)
    colon = words.report("colon")
    yield Heading(f"{words.say('title')}{colon}{words.say('open' if gate.passed else 'closed')}", 1)
    yield Lines((words.summary(),))
    facts = [words.say("run") + colon + short(gate.run, 80)]
    if gate.baseline is not None:
        facts.append(words.say("baseline") + colon + short(gate.baseline, 80))
    yield Lines(tuple(facts))
    beware = say(gate.language, "compare.beware")
    told = [say(gate.language, f"compare.mark.{code}") + colon + short(detail, 200) for code, detail in gate.marks]
    if told:
        yield Lines(tuple(beware + colon + mark for mark in told), listed=True)
    yield Table(
        (words.say("check"), words.say("value"), words.report("interval"), "n", words.say("outcome")),
        "lrrrl",
        tuple(
            (
                words.title(check),
                words.value(check),
                words.interval(check),
                str(check.n),
                words.outcome(check),
            )
            for check in gate.checks
        ),
    )
    yield Lines((words.say(f"note_{gate.fail_on}"),))


def junit(gate: Gate) -> str:
    """One test case per check: failed where a bar was missed, an error where nothing could be measured."""
    words = _Words(gate)
    failures = [check for check in gate.checks if not check.passed and check.state != "unmeasured"]
    errors = [check for check in gate.checks if not check.passed and check.state == "unmeasured"]
    suite = ElementTree.Element(
        "testsuite",
        name="steelyard gate",
        tests=str(len(gate.checks)),
        failures=str(len(failures)),
        errors=str(len(errors)),
        skipped="0",
        time="0",
    )
    for check in gate.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"steelyard.gate.{check.kind}", name=_xml(words.title(check)), time="0"
        )
        told = f"{words.value(check)} ({words.interval(check)}), n = {check.n}: " + words.say(check.state)
        if check.passed:
            ElementTree.SubElement(case, "system-out").text = _xml(told)
        else:
            kind = "error" if check.state == "unmeasured" else "failure"
            ElementTree.SubElement(case, kind, message=_xml(told), type=check.state).text = _xml(
                f"{gate.run} {NOT_APPLICABLE} {words.title(check)}: {told}"
            )
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    # XML has no way at all to write most control characters.
    return clean(text).replace("\ufffe", "").replace("\uffff", "")
