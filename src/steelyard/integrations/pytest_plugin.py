"""The pytest plugin: a `steelyard` fixture, a marker that makes one test of each sample, and a report of the session.

It is an entry point (`pytest11`), so every session of everybody who has Steelyard installed loads this file. Therefore
it imports nothing heavy, and does nothing until a test uses the fixture, the marker or `steelyard.testing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from steelyard import testing
from steelyard.testing import AnswerAssertion, Bench, Texts, assert_that

if TYPE_CHECKING:
    from steelyard.errors import InputError
    from steelyard.records import Sample, Verdict

__all__ = ["SteelyardFixture", "assert_that"]

FORMS = (".html", ".md", ".jsonl")
ATTRIBUTE = "steelyard_judged"
"""What a test report carries from an xdist worker: the samples and verdicts of its test, as JSON."""
MARKER = (
    "steelyard(file, protocol=…, options=…, fields=…, judge=…, require=…): one test for each sample of the file, "
    "which the `steelyard` fixture holds"
)
SESSION = pytest.StashKey["PluginSession"]()
JUDGED = pytest.StashKey[list[dict[str, Any]]]()
BENCH = pytest.StashKey[Bench]()
OUTER = pytest.StashKey["Bench | None"]()


class MarkedRow(NamedTuple):
    """One row of the file that a marker names, read or not, and what the marker says about judging it."""

    row: Sample | InputError
    how: Mapping[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("steelyard", "Steelyard: judged answers")
    judge = "judge of the session, as -j of the command line; default: as there (STEELYARD_JUDGE, steelyard.toml)"
    store = "where replies are kept, so that nothing is asked twice; default: the store of the command line"
    group.addoption("--steelyard-judge", metavar="JUDGE", help=judge)
    group.addoption("--steelyard-store", metavar="FILE", help=store)
    group.addoption(
        "--steelyard-report", metavar="FILE", help="write all verdicts of the session: .html, .md or .jsonl"
    )
    parser.addini("steelyard_judge", judge)
    parser.addini("steelyard_store", store)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    report = config.getoption("--steelyard-report")
    if report and Path(report).suffix not in FORMS:
        raise pytest.UsageError(f"--steelyard-report {report}: the name must end in {', '.join(FORMS)}")
    judge = config.getoption("--steelyard-judge") or config.getini("steelyard_judge") or None
    store = config.getoption("--steelyard-store") or config.getini("steelyard_store") or None
    config.stash[BENCH], config.stash[OUTER] = Bench(judge, store), testing.bench
    testing.bench = config.stash[BENCH]
    config.stash[SESSION] = PluginSession(config, Path(report).absolute() if report else None)
    config.pluginmanager.register(config.stash[SESSION], "steelyard-session")


def pytest_unconfigure(config: pytest.Config) -> None:
    if OUTER in config.stash:
        testing.bench = config.stash[OUTER]


# --- one test for each sample ----------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("steelyard")
    if marker is None or not marker.args:
        return
    how = _settings_of(marker, metafunc.definition.nodeid)
    if SteelyardFixture.NAME not in metafunc.fixturenames:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: a test of samples takes the fixture 'steelyard'")
    rows = [MarkedRow(row, how) for row in _rows(Path(metafunc.definition.path).parent, marker.args[0], how)]
    ids = [str(getattr(row.row, "id", "") or f"row-{n}") for n, row in enumerate(rows, start=1)]
    metafunc.parametrize(SteelyardFixture.NAME, rows, ids=ids, indirect=True)


KNOWN = ("protocol", "options", "fields", "judge", "require")


def _settings_of(marker: pytest.Mark, where: str) -> Mapping[str, Any]:
    if len(marker.args) > 1:
        raise pytest.UsageError(f"{where}: the steelyard marker takes one file, not {len(marker.args)}")
    if strange := sorted(set(marker.kwargs) - set(KNOWN)):
        raise pytest.UsageError(f"{where}: the steelyard marker has no {strange[0]!r}; it has {', '.join(KNOWN)}")
    return marker.kwargs


def _rows(folder: Path, file: str, how: Mapping[str, Any]) -> Iterator[Sample | InputError]:
    """The samples of a file beside the test; rows that cannot be read become tests that fail."""
    from steelyard.errors import SteelyardError, Surface
    from steelyard.evaluation import rows_of
    from steelyard.protocols import DEFAULT, get_protocol

    try:
        protocol = get_protocol(how.get("protocol", DEFAULT))
        for _, row in rows_of(folder / file, protocol, how.get("fields", {}), Surface.python):
            yield row
    except SteelyardError as error:
        raise pytest.UsageError(f"steelyard: {error}") from error


class SteelyardFixture:
    """The `steelyard` fixture: `assert_that`, and in a test of samples `sample` and `check()`."""

    NAME = "steelyard"

    def __init__(self, bench: Bench, row: MarkedRow | None, how: Mapping[str, Any]) -> None:
        self.bench, self._row, self._how = bench, row, how

    @property
    def sample(self) -> Sample:
        """The sample of this test."""
        from steelyard.errors import InputError

        if self._row is None:
            raise pytest.UsageError("this test has no sample; mark it: @pytest.mark.steelyard('answers.jsonl')")
        if isinstance(self._row.row, InputError):
            pytest.fail(f"the sample cannot be read: {self._row.row}", pytrace=False)
        return self._row.row

    def check(self, answer: str | None = None, *, require: Texts = ()) -> Verdict:
        """Judge the sample, with this answer instead of its own where one is given, as the marker says. Fails where a
        label counts against it, or a score misses what is required."""
        from steelyard.protocols import DEFAULT

        __tracebackhide__ = True
        sample = self.sample if answer is None else self.sample.model_copy(update={"answer": answer})
        return self.bench.check(
            sample,
            self._how.get("protocol", DEFAULT),
            options=self._how.get("options"),
            require=require or self._how.get("require", ()),
        )

    def assert_that(self, answer: str, *, question: str = "", passages: Texts = ()) -> AnswerAssertion:
        """As `steelyard.testing.assert_that`."""
        return self.bench.assert_that(answer, question=question, passages=passages)


@pytest.fixture(name=SteelyardFixture.NAME)
def steelyard_fixture(request: pytest.FixtureRequest) -> SteelyardFixture:
    """Judges answers; in a test that is marked with a file of samples, it holds one of them."""
    marker = request.node.get_closest_marker("steelyard")
    how = _settings_of(marker, request.node.nodeid) if marker else {}
    session = request.config.stash[BENCH]
    bench = Bench(how["judge"], session.store, session.on_judged) if "judge" in how else session
    bench.place = request.node.nodeid
    return SteelyardFixture(bench, getattr(request, "param", None), how)


# --- the report of the session ---------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Verdicts belong to the test that asked for them."""
    bench = item.config.stash[BENCH]
    judged: list[dict[str, Any]] = item.stash.setdefault(JUDGED, [])

    def on_judged(sample: Sample, verdict: Verdict) -> None:
        judged.append({"sample": sample.model_dump(mode="json"), "verdict": verdict.model_dump(mode="json")})

    bench.place, bench.on_judged = item.nodeid, on_judged


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """A report takes the verdicts of its test along: from an xdist worker nothing else comes back."""
    report = yield
    if judged := item.stash.get(JUDGED, None):
        setattr(report, ATTRIBUTE, json.dumps(judged, ensure_ascii=True))
        judged.clear()
    return report


class PluginSession:
    """All verdicts of a session, from this process or from its workers."""

    def __init__(self, config: pytest.Config, report: Path | None) -> None:
        self.config, self.report = config, report
        self.judged: list[tuple[Sample, Verdict]] = []
        self.failed: set[str] = set()

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        verdicts: str | None = getattr(report, ATTRIBUTE, None)
        if verdicts is None or self.is_worker:
            return
        from steelyard.records import Verdict
        from steelyard.store import SAMPLE

        for one in json.loads(verdicts):
            # Two tests may judge a sample of the same id, and one test several answers.
            id = _unlike(f"{report.nodeid}", {verdict.id for _, verdict in self.judged})
            sample = SAMPLE.validate_python({**one["sample"], "id": id})
            self.judged.append((sample, Verdict.model_validate({**one["verdict"], "id": id})))
            if report.failed:
                self.failed.add(id)

    def pytest_sessionfinish(self) -> None:
        if self.report and not self.is_worker:
            self.report.parent.mkdir(parents=True, exist_ok=True)
            self.report.write_text(self._written(self.report.suffix), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.judged:
            return
        usage = sum((verdict.usage for _, verdict in self.judged[1:]), start=self.judged[0][1].usage)
        judges = ", ".join(dict.fromkeys(verdict.judge for _, verdict in self.judged))
        count = f"{len(self.judged)} verdict{'s' * (len(self.judged) > 1)}"
        parts = [f"{count} by {judges}", f"{usage.calls} calls"]
        parts += [f"${usage.cost:.4f}"] if usage.cost is not None else []
        parts += [f"report: {self.report}"] if self.report else []
        terminalreporter.write_line(f"steelyard: {' · '.join(parts)}")

    def _written(self, suffix: str) -> str:
        """The report: result lines, or a page with a summary for each protocol and the samples of failed tests."""
        if suffix == ".jsonl":
            return "".join(json.dumps(verdict.line(), ensure_ascii=False) + "\n" for _, verdict in self.judged)
        from steelyard.reports.layout import Page
        from steelyard.reports.markdown import document
        from steelyard.reports.notebook import page
        from steelyard.reports.results import Results
        from steelyard.reports.sample import sample_blocks

        parts = []
        for protocol in dict.fromkeys(verdict.protocol for _, verdict in self.judged):
            own = [pair for pair in self.judged if pair[1].protocol == protocol]
            report = Results(protocol, own, ()).report()
            parts.append(list(Page(report, brief=True).blocks()))
            failing = [pair for pair in own if pair[1].id in self.failed]
            parts += [list(sample_blocks(verdict, sample, report.language)) for sample, verdict in failing]
        if suffix == ".md":
            return "\n".join(map(document, parts))
        return page("Steelyard · pytest", parts)


def _unlike(id: str, taken: set[str]) -> str:
    """The id, numbered where it is taken."""
    numbered = (f"{id} ({n})" for n in range(2, len(taken) + 3))
    return id if id not in taken else next(one for one in numbered if one not in taken)


def pytest_report_header(config: pytest.Config) -> Sequence[str]:
    judge = config.stash[BENCH].judge
    return [f"steelyard judge: {judge}"] if judge else []
