"""The report as a value: what is counted, what is null, what stays bounded."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

import pytest

from report_fixtures import atomic, dialogue, dialogue_sample, grounded, rag, scorecard, some_of
from steelyard.errors import InputError
from steelyard.protocols import vocabulary
from steelyard.records import Sample, Usage, Verdict
from steelyard.reports import Report, ReportBuilder
from steelyard.reports.build import unjudged_code
from steelyard.reports.model import OTHERS, in_language
from steelyard.stats import wilson


def report_of(protocol: str, *entries: Verdict | tuple[Verdict, Sample]) -> Report:
    builder = ReportBuilder(protocol, "en")
    for entry in entries:
        verdict, sample = entry if isinstance(entry, tuple) else (entry, None)
        builder.add(verdict, sample)
    return builder.build()


def failed(protocol: str, *flags: str) -> Verdict:
    names = {"atomic": ("accuracy", "fallback"), "dialogue": ("csr",)}[protocol]
    return Verdict(id="f", protocol=protocol, status="failed", scores=dict.fromkeys(names), flags=flags)


# --- scores ----------------------------------------------------------------------------------------


def test_nothing_judged_is_not_zero() -> None:
    """An empty run has no scores at all, and all statuses at 0."""
    report = ReportBuilder("atomic").build()
    assert (report.n, report.scores, report.statuses) == (0, {}, {"judged": 0, "partial": 0, "failed": 0})
    assert report.atoms is not None
    assert report.atoms.overall.accuracy.value is None
    assert report.language == "en"


def test_null_and_unjudged_are_kept_apart() -> None:
    """A score that does not apply counts as null, one that could not be judged as unjudged; neither as 0."""
    report = report_of(
        "atomic",
        atomic("a", ["correct", "wrong"]),
        atomic("b", ["exempt"]),
        atomic("c", ["unjudged"]),
        atomic("d", [], flags=("unjudged:atoms:timeout",), status="partial"),
        failed("atomic"),
    )
    accuracy = report.scores["accuracy"]
    assert (accuracy.value, accuracy.n, accuracy.n_null, accuracy.n_unjudged) == (0.5, 1, 1, 3)
    assert accuracy.interval is None
    assert report.scores["fallback"].n_unjudged == 1


def test_scorecard_null_is_judged_by_its_own_items() -> None:
    """Without key points completeness does not apply, also when a sentence stayed unjudged."""
    verdict = scorecard("a", [])
    first = verdict.items[0].model_copy(update={"on_topic": "unjudged"})
    partial = verdict.model_copy(update={"items": (first, *verdict.items[1:]), "status": "partial"})
    report = report_of("scorecard", partial)
    completeness = report.scores["completeness"]
    assert (completeness.value, completeness.n_null, completeness.n_unjudged) == (None, 1, 0)


def test_a_score_that_is_not_a_number_is_unjudged() -> None:
    """NaN in a verdict from elsewhere never reaches a mean."""
    report = report_of("atomic", atomic("a", scores={"accuracy": float("nan")}), atomic("b"))
    assert (report.scores["accuracy"].value, report.scores["accuracy"].n_unjudged) == (1.0, 1)


def test_samples_of_one_question_are_one_cluster() -> None:
    """The interval is wider when samples share questions, and the samples must be given to know it."""
    labels = [["correct", "wrong"], ["correct"], ["correct", "correct", "wrong"], ["wrong", "wrong", "correct"]]
    verdicts = [atomic(f"s{n}", labels[n % 4]) for n in range(16)]
    apart = report_of("atomic", *((v, rag(v.id, f"q{n}")) for n, v in enumerate(verdicts)))
    shared = report_of("atomic", *((v, rag(v.id, f"q{n % 4}")) for n, v in enumerate(verdicts)))
    for report in (apart, shared):
        assert report.scores["accuracy"].n == 16
    narrow, wide = apart.scores["accuracy"].interval, shared.scores["accuracy"].interval
    assert narrow is not None
    assert wide is not None
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


def test_order_does_not_matter() -> None:
    """Concurrent runs finish in any order; the report is the same."""
    entries = some_of("atomic")
    assert report_of("atomic", *entries).worst == report_of("atomic", *reversed(entries)).worst
    forward, backward = report_of("atomic", *entries), report_of("atomic", *reversed(entries))
    assert forward.scores["accuracy"].value == pytest.approx(backward.scores["accuracy"].value)
    assert forward.atoms == backward.atoms


# --- the protocols' own parts ----------------------------------------------------------------------


def test_atoms_are_pooled_overall_and_by_level() -> None:
    """Counts and ratios over all atoms, with what is left out of each denominator."""
    labels = ["correct", "wrong", "undetermined", "correct", "exempt", "unjudged"]
    report = report_of("atomic", atomic("a", labels), atomic("b", ["correct"]))
    assert report.atoms is not None
    overall = report.atoms.overall
    assert overall.counts == {
        "n_correct": 3,
        "n_wrong": 1,
        "n_undetermined": 1,
        "n_exempt": 1,
        "n_unjudged": 1,
    }
    assert (overall.accuracy.value, overall.accuracy.n, overall.accuracy.n_unjudged) == (0.75, 4, 1)
    assert (overall.accuracy_strict.value, overall.coverage.value) == (0.6, 0.8)
    assert list(report.atoms.levels) == ["1", "2", "3"]
    assert report.atoms.levels["1"].accuracy.n == 3
    assert report.atoms.levels["3"].accuracy.value is None


def test_pass_rate_of_each_check() -> None:
    """Each of the eight checks has its own rate; the two fallback checks are listed apart."""
    report = report_of("grounded", grounded("a"), grounded("b", [1]), grounded("c", [], [4]), grounded("d"))
    rates = {(c.group, c.name): c.passed for c in report.checks}
    assert len(rates) == 8
    assert rates["relevance", "from_background"].value == 0.75
    assert rates["relevance", "from_background"].interval == pytest.approx(wilson(3, 4))
    complete = rates["relevance", "complete"]
    assert (complete.value, complete.n, complete.n_unjudged) == (1.0, 3, 1)
    assert (report.scores["accuracy"].n, report.scores["accuracy"].n_unjudged) == (3, 1)


def test_band_table() -> None:
    """Each scorecard metric has ten bands from the top down; each sample stands in the band of its score."""
    report = report_of("scorecard", scorecard("a"), scorecard("b", [("covered", "bare")]))
    assert list(report.bands) == ["relevance", "completeness", "accuracy", "faithfulness"]
    completeness = report.bands["completeness"]
    assert [line.band for line in completeness] == list(range(9, -1, -1))
    # Half of three points; and one point hit by name only, held at 89.
    assert {line.scores: line.n for line in completeness if line.n} == {(50, 59): 1, (80, 89): 1}
    assert "89" in completeness[0].description


def test_dialogue_rates_are_pooled() -> None:
    """CSR counts criteria, ISR turns, SSR turns before the first breach; 不确定 counts nowhere."""
    verdicts = [dialogue("a", ["ss", "sv", "s"]), dialogue("b", ["su", "x", "u"])]
    report = report_of("dialogue", *((v, dialogue_sample(v.id)) for v in verdicts))
    d = report.dialogue
    assert d is not None
    assert (d.csr.value, d.csr.n, d.csr.n_null, d.csr.n_unjudged) == (5 / 6, 6, 2, 1)
    assert (d.isr.value, d.isr.n, d.isr.n_null, d.isr.n_unjudged) == (3 / 4, 4, 1, 1)
    assert d.ssr.value == 2 / 4
    assert (d.n_undetermined, d.n_vacuous) == (2, 1)
    assert d.by_rule.value == 5 / 8
    assert {name: rate.n for name, rate in d.by_type.items()} == {"": 2, "内容约束": 4}
    assert {turn: t.csr.n for turn, t in d.by_turn.items()} == {"1": 3, "2": 2, "3": 1}
    assert d.by_turn["2"].isr.n_unjudged == 1


def test_turns_are_listed_in_order() -> None:
    """Turn 10 comes after turn 9."""
    report = report_of("dialogue", dialogue("a", ["s"] * 12))
    assert report.dialogue is not None
    assert list(report.dialogue.by_turn) == [str(n) for n in range(1, 13)]


def test_a_dialogue_without_criteria_is_null() -> None:
    """Zero criteria give null rates, not 0 and not 100 %."""
    report = report_of("dialogue", dialogue("a", []))
    assert report.dialogue is not None
    assert report.dialogue.csr.value is None
    assert report.scores["csr"].n_null == 1


def test_a_strangers_protocol_has_a_report() -> None:
    """A fifth protocol gets means, intervals without bounds, tags and worst samples like the others."""
    verdicts = [Verdict(id=f"s{n}", protocol="politeness", status="judged", scores={"bows": 3.0 + n}) for n in range(4)]
    report = report_of("politeness", *((v, rag(v.id, v.id, tags=("t",))) for v in verdicts))
    assert report.scale == "number"
    assert report.scores["bows"].value == 4.5
    assert report.scores["bows"].interval == pytest.approx((4.5 - 2.054, 4.5 + 2.054), abs=1e-3)
    assert report.worst[0].id == "s0"


# --- breakdowns ------------------------------------------------------------------------------------


def test_by_tag_and_by_flag() -> None:
    """A sample counts under each of its tags once and under each of its flags."""
    verdicts = [atomic("a", ["correct"]), atomic("b", ["wrong"], flags=("fallback",))]
    samples = [rag("a", "p", tags=("x", "y", "x")), rag("b", "q", tags=("y",))]
    report = report_of("atomic", *zip(verdicts, samples, strict=True))
    assert {tag: (g.n, g.scores["accuracy"].value) for tag, g in report.tags.items()} == {
        "x": (1, 1.0),
        "y": (2, 0.5),
    }
    assert report.flags["fallback"].n == 1
    assert report.flags["fallback"].scores["accuracy"].value == 0.0


def test_a_tag_for_every_sample_stays_bounded() -> None:
    """Tags that are really ids do not blow up the report: a hundred are kept, the rest counted together."""
    report = report_of("atomic", *((atomic(f"s{n}"), rag(f"s{n}", tags=(f"t{n}",))) for n in range(150)))
    assert len(report.tags) == 101
    assert list(report.tags)[-1] == OTHERS
    assert sum(group.n for group in report.tags.values()) == 150


def test_absurd_tags_do_not_crash() -> None:
    """A tag of ten thousand digits is a name like any other."""
    report = report_of("atomic", (atomic("a"), rag("a", tags=("9" * 10_000, "²", "٣"))))
    assert len(report.tags) == 3


def test_unjudged_reasons_are_counted() -> None:
    """Every unjudged item counts under its reason, a failed sample once."""
    report = report_of(
        "atomic",
        atomic("a", ["unjudged", "unjudged", "correct"]),
        failed("atomic", "unjudged:atoms:rate_limited"),
        failed("atomic", "too_long"),
        failed("atomic"),
    )
    assert report.unjudged == {"timeout": 2, "rate_limited": 1, "too_long": 1, "unknown": 1}
    assert list(report.flags) == ["too_long"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("timeout", "timeout"),
        ("timeout timeout", "timeout"),
        ("truncated: at 4096 tokens", "truncated"),
        ("my_own_reason", "my_own_reason"),
        ("the judge was unwell", "cannot_tell"),
        ("  ", "unknown"),
        ("", "unknown"),
    ],
)
def test_unjudged_code(reason: str, code: str) -> None:
    """The code stands at the front; prose is what a judge says itself about why it cannot tell."""
    assert unjudged_code(reason) == code


def test_usage_and_judges_are_totalled() -> None:
    """What it cost is summed, who judged is listed with how often."""
    report = report_of("atomic", atomic("a"), atomic("b"), atomic("c", judge="other"))
    assert (report.usage.calls, report.usage.cost) == (6, pytest.approx(0.0012))
    assert report.judges == {"openai:some-model": 2, "other": 1}


def test_bad_rows_are_counted_and_the_first_hundred_listed() -> None:
    """All bad rows count; a hundred are named by file, line and field."""
    builder = ReportBuilder("atomic", "en")
    for line in range(1, 131):
        builder.add_bad_row(InputError("x" * 1000, file="a.jsonl", line=line, field="answer"))
    report = builder.build()
    assert (report.n_bad_rows, len(report.bad_rows)) == (130, 100)
    assert (report.bad_rows[0].file, report.bad_rows[0].line, report.bad_rows[0].field) == ("a.jsonl", 1, "answer")
    assert len(report.bad_rows[0].problem) <= 300


# --- the worst -------------------------------------------------------------------------------------


def test_the_worst_come_first_and_are_twenty() -> None:
    """Lowest score first, more wrong items first among equals, then by id; full marks are never listed."""
    verdicts = [atomic(f"s{n:02d}", ["correct"] * n + ["wrong"]) for n in range(30)]
    verdicts += [atomic("z", ["wrong", "wrong"]), atomic("perfect", ["correct"]), atomic("null", ["exempt"])]
    worst = report_of("atomic", *reversed(verdicts)).worst
    assert len(worst) == 20
    assert [low.id for low in worst[:3]] == ["z", "s00", "s01"]
    assert worst[0].telling is not None
    assert worst[0].telling.more == 1
    assert worst[0].why == "wrong: 贴膜会使亮度下降1 (资料如此说); 1 more like it"
    assert not {"perfect", "null"} & {low.id for low in worst}


def test_the_weakest_metric_explains_the_scorecard() -> None:
    """A scorecard sample is ranked by its weakest metric, and the reason comes from that metric's items."""
    verdict = scorecard("a", [("missing", None)])
    assert vocabulary("scorecard").main_score(verdict.scores) == ("completeness", 0)
    (low,) = report_of("scorecard", verdict).worst
    assert low.why.startswith("missing: 要点1")


def test_a_composite_ranks_where_the_user_gave_weights() -> None:
    """With weights the composite is the main score."""
    verdict = scorecard("a")
    weighted = verdict.model_copy(update={"scores": {**verdict.scores, "composite": 71.5}})
    assert vocabulary("scorecard").main_score(weighted.scores) == ("composite", 71.5)


def test_a_failed_check_is_named_in_the_readers_language() -> None:
    """The name of a check follows the report's language, not the sample's."""
    report = report_of("grounded", grounded("a", [6]))
    assert report.worst[0].why.startswith("fail: Reaches the right conclusion")
    assert in_language(report, "zh-Hant").worst[0].why.startswith("未通過：結論正確")


# --- language, manifest, memory --------------------------------------------------------------------


def test_language_follows_the_majority_of_the_data() -> None:
    """Two English samples outvote one Chinese sample; a given language always wins."""
    english = {"question": "Can I put film on the headlights?", "answer": "No, it dims the light."}
    builder, given = ReportBuilder("atomic"), ReportBuilder("atomic", "zh-Hant")
    for sample in (rag("a"), rag("b", **english), rag("c", **english)):
        builder.add(atomic(sample.id), sample)
        given.add(atomic(sample.id), sample)
    assert builder.build().language == "en"
    assert given.build().language == "zh-Hant"


def test_language_without_samples_comes_from_the_items() -> None:
    """A stored run without its samples is still reported in its language."""
    builder = ReportBuilder("atomic")
    builder.add(atomic("a"))
    assert builder.build().language == "zh-Hans"


def test_another_language_changes_words_and_no_numbers() -> None:
    """Descriptions follow the language; everything counted stays."""
    report = report_of("scorecard", *some_of("scorecard"))
    other = in_language(report, "zh-Hans")
    assert other.bands["accuracy"][0].description != report.bands["accuracy"][0].description
    assert other.scores == report.scores
    assert in_language(other, "en") == report


def test_manifest_is_kept_as_plain_data() -> None:
    """Whatever the manifest holds, the report can be written as JSON."""
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    report = ReportBuilder("atomic").build({"started": moment, "limits": {"rpm": 60}})
    assert report.manifest == {"started": str(moment), "limits": {"rpm": 60}}
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_memory_does_not_grow_with_the_run() -> None:
    """Five thousand further samples, each with its own question, id and reason, need next to no memory."""
    builder = ReportBuilder("atomic", "en")

    def feed(start: int, count: int) -> None:
        for n in range(start, start + count):
            verdict = base.model_copy(update={"id": f"sample {n}"})
            builder.add(verdict, sample.model_copy(update={"question": f"question {n}"}))

    base, sample = atomic("a", ["correct", "wrong"], usage={}), rag("a", tags=("x",))
    feed(0, 5_000)
    tracemalloc.start()
    feed(5_000, 5_000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert builder.build().n == 10_000
    assert grown < 1_500_000


def test_what_a_sample_took() -> None:
    """Time, cost and tokens per sample as quantiles and counts between round amounts; what asked nobody is left out."""
    builder = ReportBuilder("atomic")
    for n in range(1, 101):
        usage = Usage(calls=1, prompt_tokens=1000, cost=n / 1000)
        builder.add(atomic(f"s{n}", usage=usage, notes={"seconds": n / 10}))
    builder.add(atomic("known", usage=Usage()))
    found = builder.build().spending
    assert list(found) == ["seconds", "cost", "tokens"]
    seconds = found["seconds"]
    assert (seconds.n, seconds.most, round(seconds.mean, 2)) == (100, 10.0, 5.05)
    assert seconds.median == pytest.approx(5.0, rel=0.03)
    assert seconds.p95 == pytest.approx(9.5, rel=0.03)
    assert [(b.low, b.high) for b in seconds.bins][:3] == [(0.1, 0.2), (0.2, 0.5), (0.5, 1.0)]
    assert sum(b.n for b in seconds.bins) == 100
    assert [(b.low, b.high, b.n) for b in found["tokens"].bins] == [(1000.0, 2000.0, 100)]
