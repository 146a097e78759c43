"""Gates: a missed threshold fails, what is not measured never passes, and build servers understand it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_fixtures as fixtures
from command import Steelyard
from steelyard.errors import ConfigError
from steelyard.people.calibration import calibrate
from steelyard.reports import Report, ReportBuilder
from steelyard.reports.gate import Gate, blocks, junit
from steelyard.reports.markdown import document
from steelyard.stats import Mean, samples_to_exclude, wilson
from steelyard.store.labels import write_labels
from steelyard.text.wording import LANGUAGES
from steelyard.trust.comparison import Judged, compare
from steelyard.trust.gating import Requirement, gate, outcome_of, parse_drops, parse_requirement, state_of
from trust_fixtures import MANIFEST, judged, keep, labels_of, simulate
from trust_fixtures import Judged as Run


def report_of(run: Run) -> Report:
    builder = ReportBuilder(run[0][1].protocol if run else "atomic", "en")
    for sample, verdict in run:
        builder.add(verdict, sample)
    return builder.build()


def rights(right: int, n: int) -> Run:
    """A run of samples with one statement each, so many of them right."""
    return [judged(f"s{k}", ["correct" if k < right else "wrong"]) for k in range(n)]


def on(scale: Any) -> Callable[[str], Any]:
    """Every metric has this scale."""
    return lambda _: scale


def require(judged_: Run, text: str, /, **options: Any) -> Gate:
    return gate(report_of(judged_), [parse_requirement(text, on("ratio"))], **options)


def first(found: Gate) -> str:
    return found.checks[0].state


# --- what may be asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scale", "bar"),
    [
        ("accuracy>=0.9", "ratio", Requirement("accuracy", ">=", 0.9)),
        (" accuracy ≥ 90 % ", "ratio", Requirement("accuracy", ">=", 0.9)),
        ("fallback<.05", "ratio", Requirement("fallback", "<", 0.05)),
        ("faithfulness>=85", "points", Requirement("faithfulness", ">=", 85)),
        ("faithfulness>=0.85", "points", Requirement("faithfulness", ">=", 85)),
        ("accuracy>0", "points", Requirement("accuracy", ">", 0)),
        ("accuracy>=85%", "points", Requirement("accuracy", ">=", 85)),
        ("cited>=3", "number", Requirement("cited", ">=", 3)),
    ],
)
def test_bars_are_written_as_people_write_them(text: str, scale: Any, bar: Requirement) -> None:
    """Shares, percentages and points mean what they say on the scale of the protocol."""
    found = parse_requirement(text, on(scale))
    assert found[:2] == bar[:2]
    assert found.limit == pytest.approx(bar.limit)


@pytest.mark.parametrize("text", ["accuracy", "accuracy=0.9", ">=0.9", "accuracy>=high", "accuracy>=-1", "a>=b>=1", ""])
def test_what_is_no_bar_is_refused(text: str) -> None:
    """A bar that cannot be read stops the gate instead of passing it."""
    with pytest.raises(ConfigError, match="--require takes"):
        parse_requirement(text, on("ratio"))


def test_a_limit_off_the_scale_is_refused() -> None:
    """90 on a scale of 0 to 1 would fail everything; the hint says how to write it."""
    with pytest.raises(ConfigError, match=r"between 0 and 1; write 0\.9 or 90%"):
        parse_requirement("accuracy>=90", on("ratio"))
    with pytest.raises(ConfigError, match="between 0 and 100"):
        parse_requirement("accuracy>=120", on("points"))
    with pytest.raises(ConfigError, match="--max-drop takes"):
        parse_drops({"accuracy": "-0.1"}, on("ratio"))


@pytest.mark.parametrize(
    ("text", "scale", "drop"),
    [("1", "points", 1), ("0.5", "points", 0.5), ("3%", "points", 3), ("0.02", "ratio", 0.02), ("2%", "ratio", 0.02)],
)
def test_a_drop_is_in_the_unit_of_the_scale(text: str, scale: Any, drop: float) -> None:
    """1 of 100 points is one point, not all of them."""
    assert parse_drops({"accuracy": text}, on(scale)) == pytest.approx({"accuracy": drop})


@pytest.mark.parametrize(("text", "scale"), [("1", "ratio"), ("2", "ratio"), ("100%", "ratio"), ("100", "points")])
def test_a_drop_of_the_whole_scale_is_refused(text: str, scale: Any) -> None:
    """No score could fall further, so such a check could not fail; who meant points is told how to write it."""
    with pytest.raises(ConfigError, match="so none can miss it") as refused:
        parse_drops({"accuracy": text}, on(scale))
    assert ("write 0.02 or 2%" in str(refused.value)) == (text == "2")


# --- a threshold is a threshold --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "state", "outcome", "only_significant"),
    [
        (100, "met", "passed", "passed"),
        (92, "met_not_significant", "passed", "passed"),
        (88, "missed_not_significant", "failed", "undecided"),
        (60, "missed", "failed", "failed"),
    ],
)
def test_when_it_fails(right: int, state: str, outcome: str, only_significant: str) -> None:
    """Of 100 samples so many right, with 0.9 required: 88 % fails although chance may be to blame."""
    run = rights(right, 100)
    assert first(require(run, "accuracy>=0.9")) == state
    assert require(run, "accuracy>=0.9").outcome == outcome
    assert require(run, "accuracy>=0.9", only_significant=True).outcome == only_significant


def test_eighty_percent_of_ten_does_not_reach_ninety() -> None:
    """Ten samples cannot prove it, but 80 % is not 90 %: failed, and the page says that it is not significant."""
    found = require(rights(8, 10), "accuracy>=0.9")
    assert (found.passed, first(found)) == (False, "missed_not_significant")
    text = document(blocks(found))
    assert "Failed · below threshold, not significant" in text
    assert f"about {found.checks[0].n_to_decide} samples would decide it (now 10), if rate and spread stay" in text
    assert "fails, significant or not" in text


def test_undecided_is_neither_passed_nor_failed() -> None:
    """With --only-significant a miss that may be chance is undecided, unless something else fails."""
    found = require(rights(8, 10), "accuracy>=0.9", only_significant=True)
    assert (found.outcome, found.passed) == ("undecided", False)
    text = document(blocks(found))
    assert text.startswith("# Gate: Undecided")
    assert "Undecided: 1." in text
    assert "--only-significant" in text
    assert require(rights(8, 10), "accuracy>=0.9", only_significant=True, finished=False).outcome == "failed"


def test_few_samples_decide_little() -> None:
    """Two right of three do not prove an accuracy below 0.9; fifteen of forty-five do."""
    assert first(require(rights(1, 3), "accuracy>=0.9")) == "missed"
    assert first(require(rights(2, 3), "accuracy>=0.9")) == "missed_not_significant"
    assert first(require(rights(15, 45), "accuracy>=0.9")) == "missed"


def test_exactly_the_limit_holds() -> None:
    """9 of 10 reach 0.9, although 0.9 cannot be written in binary; `>` wants more, and no number of samples helps."""
    assert first(require(rights(9, 10), "accuracy>=0.9")) == "met_not_significant"
    found = require(rights(9, 10), "accuracy>0.9")
    assert (first(found), found.checks[0].n_to_decide) == ("missed_not_significant", None)
    assert "how many samples would decide it cannot be estimated" in document(blocks(found))
    assert state_of(0.1 + 0.2, (0.3, 0.3), "<=", 0.3) == "met"


@given(st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 1), st.sampled_from([">=", ">", "<=", "<"]))
def test_the_number_decides(value: float, reach: float, limit: float, sign: str) -> None:
    """A threshold passes exactly where its number is on the right side; the interval changes only the words."""
    state = state_of(value, (value - reach, value + reach), sign, limit)
    certain = state_of(value, (value, value), sign, limit)
    assert outcome_of("require", state, False) == outcome_of("require", certain, False)
    assert (outcome_of("require", state, True) == "failed") == (state == "missed")


# --- how many samples would decide -----------------------------------------------------------------


def interval_of(values: Sequence[float], copies: int = 1, per_question: int = 1) -> tuple[float, float]:
    """The interval of a report over these scores, so many times over, so many neighbours about one question."""
    mean = Mean()
    for copy in range(copies):
        for at, value in enumerate(values):
            mean.add(value, f"{copy}:{at // per_question}")
    assert mean.interval
    return mean.interval


def needed(values: Sequence[float], limit: float, per_question: int = 1) -> int | None:
    mean = sum(values) / len(values)
    clusters = math.ceil(len(values) / per_question)
    return samples_to_exclude(limit, mean, interval_of(values, 1, per_question), len(values), clusters)


@pytest.mark.parametrize(
    ("values", "per_question", "limit"),
    [
        ([1.0] * 8 + [0.0] * 2, 1, 0.9),
        ([1.0] * 88 + [0.0] * 12, 1, 0.9),
        ([0.0] * 4 + [1.0], 1, 0.1),
        ([1.0] * 6, 1, 0.95),
        ([0.5, 0.9, 0.7, 1.0], 1, 0.9),
        ([0.5, 0.4, 0.6, 0.5], 1, 0.52),
        ([1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0] * 2, 2, 0.9),
        ([0.6, 0.8, 0.7, 0.9] * 5, 2, 0.77),
    ],
)
def test_so_many_samples_decide_it(values: list[float], per_question: int, limit: float) -> None:
    """The same scores over and over: with the number that is told the interval leaves the limit out, with less not."""
    found = needed(values, limit, per_question)
    assert found is not None

    def excluded(copies: int) -> bool:
        low, high = interval_of(values, copies, per_question)
        return not low <= limit <= high

    assert not excluded(1)
    copies = found / len(values)
    assert excluded(math.ceil(copies))
    assert not excluded(math.ceil(copies) - 1)


def test_a_simulation_agrees() -> None:
    """Draws of the number that is told, at the rate that was seen, are significant about every other time."""
    found = needed([1.0] * 16 + [0.0] * 4, 0.9)
    assert found is not None
    rng = random.Random(7)
    hits = 0
    for _ in range(2000):
        right = sum(rng.random() < 0.8 for _ in range(found))
        ends = wilson(right, found)
        assert ends
        hits += ends[1] < 0.9
    assert 0.42 < hits / 2000 < 0.6


def test_where_nothing_can_be_told() -> None:
    """No number is made up: at the limit itself, with an interval over the whole scale, with a hair's breadth."""
    assert samples_to_exclude(0.7, 0.7, (0.4, 0.9), 10, 10) is None
    assert samples_to_exclude(0.9, 0.5, (0.0, 1.0), 2, 2) is None
    assert samples_to_exclude(0.9, 0.9 - 1e-6, (0.7, 0.97), 30, 30) is None


def test_what_was_not_measured_does_not_pass() -> None:
    """A score that applies to no sample is neither reached nor quietly skipped."""
    found = require([judged("s1", ["exempt"]), judged("s2", ["exempt"])], "accuracy>=0.1")
    assert (first(found), found.passed) == ("unmeasured", False)


def test_a_silent_judge_does_not_open_the_gate() -> None:
    """Half of the samples unjudged: failed, unless so much silence is allowed; nothing judged: failed."""
    run = [*rights(10, 10), *(judged(f"u{n}", ["unjudged"], status="failed") for n in range(10))]
    assert not require(run, "accuracy>=0.5").passed
    assert require(run, "accuracy>=0.5", max_unjudged=0.5).passed
    with pytest.raises(ConfigError, match="nothing was judged"):
        require([], "accuracy>=0.5")


def test_an_unfinished_run_does_not_pass() -> None:
    """A run that was stopped half-way is not measured, whatever its scores so far."""
    assert not require(rights(50, 50), "accuracy>=0.5", finished=False).passed


def test_a_gate_without_bars_is_refused() -> None:
    """A gate that checks nothing would always be open."""
    with pytest.raises(ConfigError, match="needs something to check"):
        gate(report_of(rights(1, 1)))
    with pytest.raises(ConfigError, match="there is no score 'acuracy'"):
        require(rights(1, 1), "acuracy>=0.9")


# --- against a baseline ----------------------------------------------------------------------------


def against(a: Run, b: Run, drops: dict[str, float] | None = None, **options: Any) -> Gate:
    pair = [Judged(name, lambda run=run: iter(run), MANIFEST) for name, run in (("A", a), ("B", b))]  # type: ignore[misc]
    return gate(report_of(b), drops=drops, comparison=compare(pair[0], pair[1]), **options)


def test_a_decided_fall_fails() -> None:
    """Twenty of sixty answers lost: failed. One lost: told, and passed."""
    assert not against(rights(60, 60), rights(40, 60)).passed
    one = against(rights(60, 60), rights(59, 60))
    assert one.passed
    assert first(one) == "missed_not_significant"
    assert against(rights(60, 60), rights(59, 60), only_significant=True).outcome == "passed"
    text = document(blocks(one))
    assert "Passed · fell, not significant" in text
    assert "Against the baseline, only a significant fall fails" in text
    assert f"about {one.checks[0].n_to_decide} samples like these (now 60)" in text


def test_a_fall_within_the_tolerance_passes() -> None:
    """What may fall by 50 points may fall by 33; only the named scores are checked then."""
    found = against(rights(60, 60), rights(40, 60), {"accuracy": 0.5})
    assert found.passed
    assert [check.metric for check in found.checks if check.kind == "drop"] == ["accuracy"]
    assert not against(rights(60, 60), rights(40, 60), {"accuracy": 0.02}).passed
    with pytest.raises(ConfigError, match="no score 'faithfulness' in these runs"):
        against(rights(3, 3), rights(3, 3), {"faithfulness": 0.02})
    with pytest.raises(ConfigError, match="--max-drop needs --baseline"):
        gate(report_of(rights(3, 3)), [Requirement("accuracy", ">=", 0.1)], drops={"accuracy": 0.1})


def test_refusals_are_no_regression() -> None:
    """A change in fallback replies is nothing that a gate judges by itself."""
    found = against(rights(9, 9), rights(9, 9))
    assert "fallback" not in {check.metric for check in found.checks}
    assert found.passed


def test_what_the_interval_shows_decides() -> None:
    """Six of six answers lost: each score's own interval closes the gate, however many scores moved."""
    a = [judged(f"s{n}", ["correct", "undetermined"]) for n in range(6)]
    b = [judged(f"s{n}", ["wrong", "undetermined"] if n else ["wrong"], answer="new") for n in range(6)]
    found = against(a, b)
    states = {check.metric: (check.state, check.outcome) for check in found.checks if check.kind == "regression"}
    assert states["accuracy"] == ("missed", "failed")


NO_SCORES = dict.fromkeys(("accuracy", "accuracy_strict", "coverage"))
SILENT: dict[str, tuple[list[str], dict[str, Any]]] = {
    "empty": ([], {}),
    "refused": ([], {"scores": {**NO_SCORES, "fallback": 1}}),
    "failed": (["unjudged"], {"status": "failed", "scores": {**NO_SCORES, "fallback": None}}),
}


def silent(how: str, n: int) -> Run:
    """A run without a single score, for want of answers or of judgements."""
    labels, fields = SILENT[how]
    return [judged(f"s{k}", labels, **fields) for k in range(n)]


@pytest.mark.parametrize("how", ["empty", "refused"])
@pytest.mark.parametrize("drops", [None, {"accuracy": 0.02}])
def test_a_run_that_answers_nothing_does_not_pass(how: str, drops: dict[str, float] | None) -> None:
    """Twelve right answers before, none now: the score is measured in the baseline only, and that fails."""
    found = against(rights(12, 12), silent(how, 12), drops)
    assert found.outcome == "failed"
    assert (first(found), found.checks[0].reason, found.checks[0].metric) == ("unmeasured", "not_in_run", "accuracy")
    assert "12 samples have this score in the baseline, none in this run" in document(blocks(found))
    assert ElementTree.fromstring(junit(found)).attrib["errors"] == str(
        sum(check.state == "unmeasured" for check in found.checks)
    )


def test_a_baseline_without_scores_lets_nothing_pass() -> None:
    """A baseline in which every sample failed, or two runs without any score, cannot be fallen behind."""
    failed = against(silent("failed", 12), rights(12, 12))
    assert (failed.outcome, failed.checks[0].reason) == ("failed", "not_in_baseline")
    nothing = [judged("s1", [], scores={"fallback": 0})]
    with pytest.raises(ConfigError, match="no score to fall behind in"):
        against(nothing, nothing)
    neither = against(silent("refused", 12), silent("refused", 12))
    assert (neither.outcome, neither.checks[0].reason) == ("failed", "not_in_both")


def test_a_scorecard_whose_scores_become_null_does_not_pass() -> None:
    """The same on the scale of 100 points."""
    verdicts = [fixtures.scorecard(f"s{n}") for n in range(12)]
    a = [(fixtures.rag(v.id), v) for v in verdicts]
    b = [(fixtures.rag(v.id), v.model_copy(update={"scores": dict.fromkeys(v.scores), "items": ()})) for v in verdicts]
    found = against(a, b)
    assert found.outcome == "failed"
    assert {check.state for check in found.checks if check.kind == "regression"} == {"unmeasured"}


@pytest.mark.parametrize("n", [2, 5])
def test_a_total_collapse_fails_on_few_samples(n: int) -> None:
    """All right before, all wrong now: the interval leaves no fall out, so it fails."""
    found = against(rights(n, n), rights(0, n))
    assert (found.outcome, first(found)) == ("failed", "missed")


def test_too_few_samples_to_show_any_fall_do_not_pass() -> None:
    """One sample shows nothing, whichever way it went; three show no fall of more than half."""
    for right in (0, 1):
        found = against(rights(1, 1), rights(right, 1))
        assert (found.outcome, first(found), found.checks[0].reason) == ("failed", "unmeasured", "too_few")
    assert "too few samples: not even a fall of all of them" in document(blocks(found))
    assert first(against(rights(3, 3), rights(3, 3), {"accuracy": 0.5})) == "unmeasured"
    assert first(against(rights(4, 4), rights(4, 4), {"accuracy": 0.5})) != "unmeasured"
    assert against(rights(3, 3), rights(3, 3)).passed


def test_a_drop_of_what_is_neither_good_nor_bad_is_refused() -> None:
    """Fewer refusals are no loss and more are no gain: --require says which is wanted."""
    with pytest.raises(ConfigError, match=r"--require 'fallback<=0\.05'"):
        against(rights(9, 9), silent("refused", 9), {"fallback": 0.05})


def test_a_score_of_few_samples_says_so() -> None:
    """One right answer beside 99 refusals reaches 90 %, of one sample of 100; half of them is told without a mark."""
    found = require([*rights(1, 1), *silent("refused", 100)[1:]], "accuracy>=0.9")
    assert (found.checks[0].n, found.checks[0].n_all) == (1, 100)
    text = document(blocks(found))
    assert "1 of 100" in text
    assert "met, not significant · applies to 1 of 100 samples" in text
    assert "applies to 1 of 100 samples" in junit(found)
    half = document(blocks(require([*rights(50, 50), *silent("refused", 100)[50:]], "accuracy>=0.9")))
    assert "50 of 100" in half
    assert "applies to" not in half


def test_scores_that_vanished_are_told_beside_the_outcome() -> None:
    """40 answers as good as before and 60 refusals: no fall, but the line says how many are missing."""
    b = [*silent("refused", 60), *rights(100, 100)[60:]]
    text = document(blocks(against(rights(100, 100), b)))
    assert "40 of 100" in text
    assert "missing in 60 of the baseline's 100" in text


# --- corrected scores ------------------------------------------------------------------------------


def test_bars_by_peoples_measure() -> None:
    """With labels the bar is held against the corrected score; a score without labels does not pass."""
    run, truth = simulate(200)
    found = calibrate(run, labels_of(run, truth, sorted(truth)[::3]))
    bars = [Requirement("accuracy", ">=", 0.74), Requirement("fallback", "<=", 0.5)]
    by_judge = gate(report_of(run), bars[:1])
    by_people = gate(report_of(run), bars, calibration=found)
    assert by_judge.checks[0].state == "missed"
    assert by_people.checks[0].state == "met"
    assert by_people.checks[0].kind == "corrected"
    assert by_people.checks[1].state == "unmeasured"


# --- what is written -------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_in_each_language(language: Any) -> None:
    """The summary for a pull request says passed or failed first, then every check."""
    found = against(rights(60, 60), rights(40, 60)).model_copy(update={"language": language})
    text = document(blocks(found))
    assert text.splitlines()[0].startswith("# ")
    assert text.count("\n| ") == len(found.checks) + 2
    assert "{" not in text
    assert {"en": "Failed", "zh-Hans": "未通过", "zh-Hant": "未通過"}[language] in text.splitlines()[0]


def test_junit_is_what_build_servers_read() -> None:
    """Counts, a failure with its message, an error for what was not measured, passed cases with their figures."""
    run = [*rights(10, 40), judged("x", ["exempt"])]
    found = gate(
        report_of(run), [Requirement("accuracy", ">=", 0.9), Requirement("coverage", ">=", 0.1)], finished=False
    )
    suite = ElementTree.fromstring(junit(found))
    assert suite.attrib | {"name": ""} == {
        "name": "", "tests": "4", "failures": "1", "errors": "1", "skipped": "0", "time": "0",
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["system-out"], ["system-out"], ["error"]]
    assert "25.0%" in cases[0][0].attrib["message"]


def test_junit_skips_what_is_undecided() -> None:
    """Undecided is skipped, with the number of samples that would decide it; without the flag it is a failure."""
    for only_significant, tag, counts in ((True, "skipped", ("0", "1")), (False, "failure", ("1", "0"))):
        suite = ElementTree.fromstring(
            junit(require(rights(8, 10), "accuracy>=0.9", only_significant=only_significant))
        )
        assert (suite.attrib["failures"], suite.attrib["skipped"]) == counts
        case = suite.findall("testcase")[0]
        assert case[0].tag == tag
        assert "below threshold, not significant; about" in case[0].attrib["message"]


def test_junit_survives_hostile_names() -> None:
    """A run named with markup and control characters still gives XML that can be read."""
    found = require(rights(1, 5), "accuracy>=0.9", run=f"{fixtures.HOSTILE}\x00\ufffe")
    assert ElementTree.fromstring(junit(found)).tag == "testsuite"


# --- the command -----------------------------------------------------------------------------------


def test_gate_command(steelyard: Steelyard) -> None:
    """0 where it passes, 6 where it fails, 7 where it is undecided, 2 where it cannot be tried; JUnit and Markdown are
    written either way."""
    keep(Path(".steelyard/store.db"), rights(58, 60), rights(40, 60))
    assert steelyard("gate", 1, "--require", "accuracy>=0.9").code == 0
    failed = steelyard(
        "gate", 2, "--require", "accuracy>=0.9", "--junit", "gate.xml", "--markdown", "gate.md", "--lang", "en"
    )
    assert failed.code == 6
    assert "Failed: 1 of 2 checks passed." in failed.out
    assert ElementTree.parse("gate.xml").getroot().attrib["failures"] == "1"
    assert Path("gate.md").read_text("utf-8").startswith("# Gate: Failed")
    fell = steelyard("gate", 2, "--baseline", 1, "--max-drop", "accuracy=0.02", "--json")
    assert (fell.code, json.loads(fell.out)["passed"]) == (6, False)
    assert steelyard("gate", 2, "--baseline", 1, "--max-drop", "accuracy=60%").code == 0
    assert steelyard("gate", 2, "--require", "accuracy>=0.7", "--lang", "en").code == 6
    open_ = steelyard(
        "gate", 2, "--require", "accuracy>=0.7", "--only-significant", "--json", "--junit", "open.xml", "--lang", "en"
    )
    told = json.loads(open_.out)
    assert (open_.code, told["outcome"], told["passed"]) == (7, "undecided", False)
    assert told["checks"][0]["n_to_decide"] > 60
    assert ElementTree.parse("open.xml").getroot().attrib["skipped"] == "1"
    assert steelyard("gate", 2, "--require", "accuracy>=0.9", "--only-significant").code == 6
    assert steelyard("gate", 1).code == 2
    assert steelyard("gate", 1, "--require", "acuracy>=0.9").code == 2
    assert steelyard("gate", 7, "--require", "accuracy>=0.9").code == 2


def test_gate_command_with_labels(steelyard: Steelyard) -> None:
    """`--labels` holds the bar against the corrected score; `--corrected` takes the labels of the store."""
    run, truth = simulate(150)
    (id,) = keep(Path(".steelyard/store.db"), run)
    write_labels(Path("human.jsonl"), labels_of(run, truth, sorted(truth)[::2], run=id))
    assert steelyard("gate", "last", "--require", "accuracy>=0.76").code == 6
    assert steelyard("gate", "last", "--require", "accuracy>=0.76", "--labels", "human.jsonl").code == 0
    assert steelyard("gate", "last", "--require", "accuracy>=0.76", "--corrected").code == 2
    steelyard("labels", "import", "human.jsonl")
    assert steelyard("gate", "last", "--require", "accuracy>=0.76", "--corrected").code == 0


def line(id: str = "s9", protocol: str = "atomic", **scores: Any) -> str:
    """A result line, with scores as somebody wrote them."""
    verdict = fixtures.atomic(id).line()
    return json.dumps(verdict | {"protocol": protocol, "scores": verdict["scores"] | scores})


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (line(accuracy=5), "lines.jsonl:4: scores.accuracy: 5 does not lie between 0 and 1"),
        (line(accuracy=-0.1), "lines.jsonl:4: scores.accuracy: -0.1 does not lie between 0 and 1"),
        (line(accuracy=math.nan), "lines.jsonl:4: scores.accuracy: nan is no score"),
        (line(accuracy=math.inf), "lines.jsonl:4: scores.accuracy: inf is no score"),
        (line(protocol="grounded"), "lines.jsonl:4: protocol: grounded, but the lines before are of atomic"),
        (line("s1"), "lines.jsonl:4: id: 's1' was used in line 2 already"),
        (line().replace('"accuracy": 1, ', ""), "lines.jsonl:4: scores: 'accuracy' is missing"),
        (line(other=1), "lines.jsonl:4: scores: 'other' is not in the lines before"),
    ],
)
def test_lines_that_make_no_run_are_refused(steelyard: Steelyard, bad: str, told: str) -> None:
    """A gate over a file with impossible or foreign lines names the line; it never takes the mean of them."""
    Path("lines.jsonl").write_text("\n".join([*(line(f"s{n}") for n in range(3)), bad]), encoding="utf-8")
    done = steelyard("gate", "lines.jsonl", "--require", "accuracy>=0.9")
    assert (done.code, told in done.err) == (2, True), done.err
    Path("good.jsonl").write_text("\n".join(line(f"s{n}") for n in range(3)), encoding="utf-8")
    assert steelyard("gate", "good.jsonl", "--require", "accuracy>=0.9").code == 0
    assert steelyard("gate", "good.jsonl", "--baseline", "lines.jsonl").code == 2


def test_an_unfinished_run_fails_the_command(steelyard: Steelyard) -> None:
    """The store knows that a run was stopped; the gate does not overlook it."""
    keep(Path(".steelyard/store.db"), rights(50, 50), state="stopped")
    done = steelyard("gate", "last", "--require", "accuracy>=0.5", "--lang", "en")
    assert (done.code, "the run is finished" in done.out) == (6, True)
