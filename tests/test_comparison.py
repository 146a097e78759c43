"""Two runs: paired by sample, decided or not, refused where they cannot be compared."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import report_fixtures as fixtures
from command import Steelyard, write_lines
from steelyard.errors import ConfigError, NotComparable
from steelyard.reports.comparison import Comparison, MetricChange, blocks, ends, signed
from steelyard.reports.markdown import document
from steelyard.text.wording import LANGUAGES
from steelyard.trust.comparison import Judged, compare
from trust_fixtures import MANIFEST, judged, keep, simulate
from trust_fixtures import Judged as Run


def side(run: Run, name: str = "A", **manifest: Any) -> Judged:
    return Judged(name, lambda: iter(run), MANIFEST | manifest)


def against(a: Run, b: Run, **options: Any) -> Comparison:
    return compare(side(a), side(b, "B"), **options)


def change_of(found: Comparison, metric: str = "accuracy") -> MetricChange:
    return next(change for change in found.metrics if change.metric == metric)


def better(run: Run, share: float, seed: int = 3) -> Run:
    """The same samples with new answers, in which some wrong statements are put right."""
    rng = random.Random(seed)
    found = []
    for sample, verdict in run:
        labels = [item.label for item in verdict.items]
        mended = ["correct" if label == "wrong" and rng.random() < share else label for label in labels]
        found.append(judged(sample.id, mended, answer=f"更好的回答{sample.id}。"))
    return found


# --- figures ---------------------------------------------------------------------------------------


def test_an_improvement_is_decided() -> None:
    """Half of the errors mended: better, with the paired t interval and a p that leaves no doubt."""
    a, _ = simulate(120)
    b = better(a, 0.5)
    found = against(a, b)
    change = change_of(found)
    scores = [[float(verdict.scores["accuracy"]) for _, verdict in run] for run in (a, b)]
    theirs = scipy_stats.ttest_rel(scores[1], scores[0]).confidence_interval()
    assert change.interval == pytest.approx((theirs.low, theirs.high))
    assert (found.outcome, change.outcome) == ("better", "better")
    assert change.p is not None
    assert change.p < 0.001
    assert change.n_fell == 0 < change.n_rose
    assert against(b, a).outcome == "worse"


def test_a_coin_toss_is_not_decided() -> None:
    """Two judgings that differ by chance alone: not decided, with the number of samples that would decide it."""
    found = against(simulate(60, seed=1)[0], simulate(60, seed=2)[0], language="en")
    change = change_of(found)
    assert found.outcome == change.outcome == "undecided"
    text = document(blocks(found))
    assert "Not decided: these samples do not tell whether B is better or worse than A." in text
    assert change.n_to_decide is None or f"about {change.n_to_decide:,} samples like these" in text


def test_only_common_samples_count() -> None:
    """Samples are paired by id, whatever their order; those of one run alone are counted and marked."""
    a, _ = simulate(30)
    b = [*better(a[10:], 0.3)[::-1], judged("new", ["wrong"])]
    found = against(a, b)
    assert (found.n_pairs, found.n_only_a, found.n_only_b) == (20, 10, 1)
    assert ("unpaired", "10 / 1") in found.marks
    assert change_of(found).n == 20


def test_a_score_that_one_side_lacks_is_not_a_zero() -> None:
    """Null on one side leaves the pair out and is counted, whether the judge failed or nothing was said."""
    a = [judged("s1", ["correct"]), judged("s2", ["correct"]), judged("s3", ["correct", "wrong"])]
    b = [judged("s1", ["unjudged"], status="failed"), judged("s2", ["exempt"]), judged("s3", ["correct"])]
    change = change_of(against(a, b))
    assert (change.n, change.n_only_a, change.n_only_b) == (1, 2, 0)
    assert (change.difference, change.interval, change.p) == (0.5, None, None)


def refusing(n: int, silent: int, *, before: str = "correct", after: str = "correct") -> tuple[Run, Run]:
    """A has all right; B says nothing that could be checked in the first so many."""
    a = [judged(f"s{k}", ["correct"] if k < silent else [before]) for k in range(n)]
    b = [judged(f"s{k}", [] if k < silent else [after], answer="new") for k in range(n)]
    return a, b


def test_scores_that_vanish_are_the_headline() -> None:
    """B refuses 60 of 100 samples that A had right and improves on the rest: that is not simply better."""
    found = against(*refusing(100, 60, before="wrong"), language="en")
    assert (change_of(found).outcome, change_of(found).n_only_a, found.outcome) == ("better", 60, "incomplete")
    assert "accuracy" in found.vanished
    text = document(blocks(found))
    first = text.split("\n\n")[1]
    assert first.startswith("Scores that A has are missing in B: Accuracy in 60 of 100 samples")
    assert "Whether B is better cannot be determined; in the samples that have the score in both runs, " in first
    assert "Accuracy rose" in first
    assert "40 (60/0)" in text


def test_a_few_vanished_scores_are_only_counted() -> None:
    """Up to 5 % of A's scores may be missing in B before the headline says so; more than that it does."""
    assert against(*refusing(100, 5, before="wrong")).outcome == "better"
    assert against(*refusing(100, 6, before="wrong")).outcome == "incomplete"
    fell = against(*refusing(100, 60, after="wrong"), language="en")
    assert fell.outcome == "worse"
    assert "Scores that A has are missing in B" in document(blocks(fell)).split("\n\n")[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_that_says_nothing_is_not_merely_undecided(language: Any) -> None:
    """Where B has no score at all that A has, the first sentence and the table say so."""
    found = against(*refusing(12, 12), language=language)
    assert found.outcome == "incomplete"
    assert next((gap.metric, gap.n_a, gap.n_b) for gap in found.missing) == ("accuracy", 12, 0)
    text = document(blocks(found))
    assert {"en": "missing in B", "zh-Hans": "B 缺少的得分", "zh-Hant": "B 缺少的分數"}[language] in text.split("\n\n")[
        1
    ]
    assert "0 (12/0)" in text
    assert (found.main, found.n_improved) == (None, 0), "more refusals are no improvement"


@pytest.mark.parametrize("language", LANGUAGES)
def test_equal_runs_are_called_equal(language: Any) -> None:
    """The same scores in both runs are no difference, not an open question."""
    run, _ = simulate(8)
    text = document(blocks(against(run, run, language=language)))
    told = {"en": "No difference: all 32 paired", "zh-Hans": "没有差异：32", "zh-Hant": "沒有差異：32"}[language]
    assert text.split("\n\n")[1].startswith(told)
    assert {"en": "ot decided", "zh-Hans": "尚无定论", "zh-Hant": "尚無定論"}[language] not in text


def test_samples_of_one_question_are_one_observation() -> None:
    """Ten answers to each of three questions are three observations."""
    a = [judged(f"s{n}", ["wrong"], question=f"q{n % 3}") for n in range(30)]
    b = [judged(f"s{n}", ["correct"], question=f"q{n % 3}", answer="new") for n in range(30)]
    change = change_of(against(a, b))
    assert (change.n, change.clusters) == (30, 3)
    assert change.p == pytest.approx(0.25)
    assert change.outcome == "undecided"


def test_several_scores_are_several_chances() -> None:
    """p is adjusted for the scores that moved; those that moved alike, or nowhere, are no further questions."""
    a = [judged(f"s{n}", ["wrong", "undetermined"]) for n in range(6)]
    b = [judged(f"s{n}", ["correct", "undetermined"], answer="new") for n in range(6)]
    found = against(a, b)
    accuracy, strict, coverage = (change_of(found, name) for name in ("accuracy", "accuracy_strict", "coverage"))
    assert coverage.n_rose == coverage.n_fell == 0
    assert accuracy.p == strict.p == pytest.approx(2 / 2**6)
    assert accuracy.p_adjusted == pytest.approx(2 * accuracy.p)
    alone = change_of(against(a, b, metrics=["accuracy"]))
    assert alone.p_adjusted == alone.p
    assert alone.outcome == "better"


def test_more_refusals_are_neither_good_nor_bad() -> None:
    """A change in fallback replies is told as more or fewer and decides nothing by itself."""
    a = [judged(f"s{n}", ["correct"]) for n in range(12)]
    b = [(s, v.model_copy(update={"scores": {**v.scores, "fallback": 1}})) for s, v in a]
    found = against(a, b)
    assert change_of(found, "fallback").outcome == "more"
    assert found.outcome == "undecided"


def test_better_and_worse_is_mixed() -> None:
    """A gain in one score and a loss in another are both told."""
    a = [judged(f"s{n}", ["wrong", "undetermined"]) for n in range(12)]
    b = [judged(f"s{n}", ["correct", "undetermined", "undetermined", "undetermined"], answer="x") for n in range(12)]
    assert against(a, b, metrics=["accuracy", "coverage"]).outcome == "mixed"


def test_points_are_compared_in_points() -> None:
    """The scorecard's scores differ in points of a hundred; samples are listed by the score that moved most surely."""
    made = [(sample, verdict) for verdict, sample in fixtures.some_of("scorecard") if verdict.status == "judged"]
    lower = [
        (s, v.model_copy(update={"scores": {k: None if x is None else max(0, x - 7) for k, x in v.scores.items()}}))
        for s, v in made
    ]
    found = compare(Judged("A", lambda: made), Judged("B", lambda: lower))
    assert found.scale == "points"
    assert all(-7 <= change.difference <= 0 for change in found.metrics)


# --- samples ---------------------------------------------------------------------------------------


def test_changed_samples_are_listed_with_the_reason() -> None:
    """The largest falls first, each with what is wrong now; rises with what was wrong before."""
    a = [judged("s1", ["correct", "correct"]), judged("s2", ["correct", "correct"]), judged("s3", ["wrong"])]
    b = [judged("s1", ["correct", "wrong"]), judged("s2", ["wrong", "wrong"]), judged("s3", ["correct"])]
    found = against(a, b, language="en")
    assert [change.id for change in found.regressed] == ["s2", "s1"]
    assert found.regressed[1].why.startswith("wrong: 贴膜会使亮度下降2")
    assert [(change.id, change.a, change.b) for change in found.improved] == [("s3", 0.0, 1.0)]
    assert found.improved[0].why.startswith("wrong: ")


def test_long_lists_are_cut_and_counted() -> None:
    """Twenty samples are listed in a document, ten in a terminal; the rest is a number."""
    a = [judged(f"s{n:02d}", ["correct"]) for n in range(35)]
    b = [judged(f"s{n:02d}", ["wrong"], answer="new") for n in range(35)]
    found = against(a, b)
    assert (found.n_regressed, len(found.regressed)) == (35, 20)
    assert "… +15" in document(blocks(found))
    assert "… +25" in document(blocks(found, brief=True))


# --- comparable? -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judge": {"name": "j:m", "model": "other", "base_url": "u"}}, "judge: model"),
        ({"prompts": {"atomic.judge.zh": {"version": 2, "sha256": "bb"}}}, "prompts: atomic.judge.zh"),
        ({"options": {"strict": True, "date": "2026-03-02"}}, "options: strict"),
        ({"protocol": {"name": "atomic", "version": 2}}, "protocol: 1 / 2"),
    ],
)
def test_another_way_of_judging_is_refused(change: dict[str, Any], told: str) -> None:
    """Another model, prompt, option or version: refused by name; `anyway` compares and marks it."""
    run, _ = simulate(20)
    a, b = side(run), side(better(run, 0.5), "B", **change)
    with pytest.raises(ConfigError, match=f"cannot be compared fairly; they differ in .*{told}"):
        compare(a, b)
    found = compare(a, b, anyway=True, language="en")
    assert found.marks[0] == tuple(told.split(": "))
    assert "Beware" in document(blocks(found))


def test_another_judge_is_refused() -> None:
    """Verdicts of different judges are never quietly compared, also in files without a manifest."""
    run = [judged("s1", ["correct"])]
    other = [judged("s1", ["wrong"], judge="x:y")]
    with pytest.raises(ConfigError, match="judge: j:m / x:y"):
        compare(Judged("a.jsonl", lambda: run), Judged("b.jsonl", lambda: other))


def test_other_protocols_and_scales_are_refused() -> None:
    """A share and points out of a hundred are not one scale: refused by name; `anyway` compares shares of both."""
    made = [(sample, verdict) for verdict, sample in fixtures.some_of("scorecard") if verdict.status == "judged"]
    shares = [
        (sample, verdict.model_copy(update={"protocol": "atomic", "scores": {"accuracy": 0.5}}))
        for sample, verdict in made
    ]
    points = [(s, v.model_copy(update={"scores": {"accuracy": 75}})) for s, v in made]
    sides = Judged("A", lambda: shares), Judged("B", lambda: points)
    with pytest.raises(NotComparable) as refused:
        compare(*sides)
    assert [code for code, _ in refused.value.reasons] == ["protocol", "scale"]
    assert refused.value.can_be_forced
    found = compare(*sides, anyway=True)
    assert (found.scale, change_of(found).a, change_of(found).b) == ("ratio", 0.5, 0.75)


def test_runs_without_a_score_in_both_are_not_called_undecided() -> None:
    """Where nothing was measured on one side, the sentence says that, not that the samples do not tell."""
    a = [judged("s1", ["correct"])]
    found = against(a, [judged("s1", ["unjudged"], status="failed")], metrics=["accuracy"], language="en")
    assert "Nothing to compare: no score was measured in both runs." in document(blocks(found))


def test_the_day_and_the_cutting_up_do_not_matter() -> None:
    """Runs of different days, or with another number of items to an ask, are judged alike."""
    run, _ = simulate(5)
    options = {"strict": False, "date": "2027-01-01", "items_per_ask": 5}
    assert compare(side(run), side(run, "B", options=options)).marks == ()


def test_other_questions_are_refused_other_passages_marked() -> None:
    """One id, two questions: not the same sample. New passages are what a new retriever brings."""
    a = [judged("s1", ["correct"]), judged("s2", ["correct"])]
    asked = [judged("s1", ["correct"], question="另一个问题？"), a[1]]
    with pytest.raises(ConfigError, match="questions: s1"):
        against(a, asked)
    sample, verdict = a[0]
    given_ = [(sample.model_copy(update={"references": ("别的资料",)}), verdict), a[1]]
    assert against(a, given_).marks == (("material", "s1"),)


def test_what_cannot_be_paired_is_refused() -> None:
    """No common sample, or one id twice: an error, not an empty table."""
    a = [judged("s1", ["correct"])]
    with pytest.raises(NotComparable, match="no sample in common") as refused:
        against(a, [judged("s2", ["correct"])], anyway=True)
    assert not refused.value.can_be_forced
    with pytest.raises(ConfigError, match="B has two samples 's1'"):
        against(a, a + a)
    with pytest.raises(ConfigError, match="there is no score 'acuracy' to compare; there are accuracy"):
        against(a, a, metrics=["acuracy"])


def test_the_same_texts_are_noticed() -> None:
    """Judging the same answers twice measures the judge, and that is said."""
    run, _ = simulate(8)
    found = against(run, run, language="en")
    assert found.n_same == 8
    assert "every difference comes from the judging" in document(blocks(found))


# --- what is said ----------------------------------------------------------------------------------


def test_each_score_with_its_n() -> None:
    """Every score is told with the samples it is about: in the sentence, beside the number needed, in the table."""
    a = [judged(f"s{n}", ["wrong"] if n else ["exempt"]) for n in range(12)]
    b = [judged(f"s{n}", ["correct"] if n else ["exempt"], answer="new") for n in range(12)]
    text = document(blocks(against(a, b, language="en")))
    assert "Accuracy rose by" in text
    assert "n = 11" in text
    header, *rows = [line for line in text.splitlines() if line.startswith("| ")][:4]
    assert [cell.strip() for cell in header.split("|")][1:4] == ["Score", "n", "A"]
    assert any(row.split("|")[1].strip() == "Accuracy" and row.split("|")[2].strip() == "11" for row in rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_plain_sentence_first(language: Any) -> None:
    """Better, worse or not decided, in each language, before any table."""
    a, _ = simulate(80)
    first = document(blocks(against(a, better(a, 0.6), language=language))).split("\n\n")[1]
    assert {"en": "B is better than A: Accuracy rose by", "zh-Hans": "B 优于 A：准确率上升", "zh-Hant": "B 優於 A："}[
        language
    ] in first
    assert "{" not in first


@settings(deadline=None)
@given(st.floats(-1, 1))
def test_a_difference_is_never_shown_as_none(value: float) -> None:
    """Every difference has its sign; what rounds to nothing but is not nothing is shown as small."""
    shown = signed(value, "ratio")
    if value:
        assert shown.startswith("+" if value > 0 else "\u2212")
        assert shown not in ("+0.0", "\u22120.0")
    assert ends((value, value), "points").count("…") == 1


def test_hostile_ids_stay_text() -> None:
    """Ids come from data: they reach the page escaped."""
    a = [judged("<b>|x", ["correct"])]
    b = [judged("<b>|x", ["wrong"], answer="n")]
    assert "<b>|" not in document(blocks(against(a, b)))


# --- the command -----------------------------------------------------------------------------------


def test_compare_command(steelyard: Steelyard) -> None:
    """Runs by number, files of result lines, JSON, Markdown; a refusal is exit code 2."""
    a, _ = simulate(40)
    b = better(a, 0.7)
    keep(Path(".steelyard/store.db"), a, b)
    shown = steelyard("compare", 1, 2, "--lang", "en", "--markdown", "pr.md")
    assert shown.code == 0
    assert "B is better than A" in shown.out
    assert Path("pr.md").read_text("utf-8").startswith("# B against A")
    asked = json.loads(steelyard("compare", 1, 2, "--json", "--metric", "accuracy").out)
    assert [change["metric"] for change in asked["metrics"]] == ["accuracy"]
    for name, run in (("a", a), ("b", b)):
        write_lines(Path(f"{name}.jsonl"), [verdict.line() for _, verdict in run])
    files = json.loads(steelyard("compare", "a.jsonl", "b.jsonl", "--json").out)
    assert files["marks"] == [["unknown", "a.jsonl, b.jsonl"]]
    assert files["metrics"][0]["difference"] == asked["metrics"][0]["difference"]
    write_lines(Path("c.jsonl"), [verdict.model_copy(update={"judge": "x"}).line() for _, verdict in b])
    refused = steelyard("compare", "a.jsonl", "c.jsonl")
    assert (refused.code, "cannot be compared fairly" in refused.err) == (2, True)
