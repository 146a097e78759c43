"""Where a user meets the tolerance: flags, files and reports, the viewer; and samples without a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from command import EXAMPLES, RAG, RECORDED, Steelyard, lines_of
from feeding import RAG as SAMPLE
from feeding import judge, respond
from steelyard.errors import InputError, NoReadableRow
from steelyard.evaluation import evaluate
from steelyard.records import Atom, Sentence
from steelyard.reports.html import render as html
from steelyard.reports.markdown import render as markdown
from viewer import fill, viewing

VALUES = ("120萬人次", "1,183,400人次")


def museum(path: Path) -> dict[str, Any]:
    line = next(line for line in lines_of(path) if line["id"] == "museum-visitors")
    found: dict[str, Any] = next(item for item in line["items"] if item["kind"] == "atom")
    return found


# --- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["atomic", "scorecard"])
def test_flags_and_settings_choose_the_policy(steelyard: Steelyard, protocol: str) -> None:
    """By default the round number of visitors passes, flagged with both values; a flag or steelyard.toml forbids it."""
    out = Path("out.jsonl")
    command = ("run", RAG, "-p", protocol, "-j", RECORDED, "-o", out, "--progress", "quiet", "--lang", "en")
    shown = steelyard(*command)
    assert shown.code == 0
    atom = museum(out)
    assert (atom["label"], atom["flags"]) == ("correct", ["within_tolerance"])
    assert atom["difference"] == {"kind": "statistic", "claimed": VALUES[0], "stated": VALUES[1]}
    assert "correct only within the tolerance" in " ".join(shown.out.split())

    assert steelyard(*command, "--tolerance-quantities", "exact").code == 0
    assert (museum(out)["label"], museum(out)["flags"]) == ("wrong", ["beyond_tolerance"])
    assert steelyard(*command, "-O", "tolerance.quantities=5%").code == 0
    assert museum(out)["label"] == "correct"
    assert steelyard(*command, "-O", "tolerance.quantities=1%").code == 0
    assert museum(out)["label"] == "wrong"

    Path("steelyard.toml").write_text(f'[options.{protocol}.tolerance]\nquantities = "exact"\n')
    assert steelyard(*command).code == 0
    assert museum(out)["label"] == "wrong"
    assert steelyard(*command, "--tolerance-dates", "year").code == 0
    assert museum(out)["label"] == "wrong", "a flag for dates leaves the setting for quantities alone"
    refused = steelyard(*command, "--tolerance-quantities", "loose")
    assert refused.code != 0
    assert "tolerance.quantities" in refused.err


def test_rescoring_under_another_policy_asks_nobody(steelyard: Steelyard) -> None:
    """Stored replies are counted anew; the option has a dotted name."""
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet").code == 0
    out = Path("again.jsonl")
    assert steelyard("rescore", "last", "-O", "tolerance.quantities=exact", "-o", out).code == 0
    assert museum(out)["label"] == "wrong"


def test_recordings_of_earlier_versions_stay_readable(steelyard: Steelyard) -> None:
    """They name the kind `quantity`, which is read as a specification; the magnitude policy counts it as before."""
    replies = (EXAMPLES / "replies.jsonl").read_text("utf-8")
    assert '"kind": "statistic"' in replies
    Path("old.jsonl").write_text(replies.replace('"kind": "statistic"', '"kind": "quantity"'), encoding="utf-8")
    out = Path("out.jsonl")
    command = ("run", RAG, "-p", "atomic", "-j", "recorded:old.jsonl", "-o", out, "--progress", "quiet")
    assert steelyard(*command).code == 0
    assert (museum(out)["label"], museum(out)["difference"]["kind"]) == ("wrong", "specification")
    assert steelyard(*command, "--tolerance-quantities", "magnitude").code == 0
    assert museum(out)["label"] == "correct"


# --- reports and viewer ----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["atomic", "scorecard"])
def test_reports_count_what_only_the_tolerance_made_correct(protocol: str) -> None:
    """In the numbers, in the text and on the page."""
    results = evaluate(RAG, protocol, RECORDED, options={"date": "2026-03-02"})
    report = results.report("en")
    assert report.within_tolerance == 1
    assert "correct only within the tolerance" in markdown(report)
    assert "correct only within the tolerance" in html(report)
    assert "11 条正确的原子信息中，有 1 条" in markdown(results.report("zh-Hans"))
    assert "11 則正確的原子資訊中，有 1 則" in markdown(results.report("zh-Hant"))
    exact = evaluate(RAG, protocol, RECORDED, options={"date": "2026-03-02", "tolerance": {"quantities": "exact"}})
    assert exact.report().within_tolerance == 0
    assert "within the tolerance" not in markdown(exact.report("en"))


@pytest.mark.parametrize("protocol", ["atomic", "scorecard"])
def test_the_viewer_has_a_sign_and_a_filter(tmp_path: Path, protocol: str) -> None:
    """≈ and both values on the sample's page; the table finds such samples by label and by flag, and shows the sign."""
    (run,) = fill(tmp_path / "store.db", [protocol])
    with viewing(tmp_path / "store.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        for query in ("label=tolerance:within", "flag=within_tolerance"):
            found = client.get(f"/runs/{run}/samples.json?{query}").json()
            assert [row["id"] for row in found["table"]["rows"]] == ["museum-visitors"], found
        table = client.get(f"/runs/{run}/samples?label=tolerance:within").text
        assert "≈" in table
        page = client.get(f"/runs/{run}/samples/museum-visitors").text
        assert "≈" in page
        assert all(value in page for value in VALUES)
        other = client.get(f"/runs/{run}/samples/car-seat").text
        assert "≈" not in other


# --- no question -----------------------------------------------------------------------------------

SUMMARY = {"id": "sum", "answer": SAMPLE.answer, "references": list(SAMPLE.references)}


@pytest.mark.parametrize("question", [{}, {"question": ""}, {"question": None}, {"question": "  "}])
def test_a_question_is_optional_where_it_can_be(question: dict[str, Any], tmp_path: Path) -> None:
    """A row without one is read for atomic and scorecard; grounded names the row and the field."""
    row = {**SUMMARY, **question}
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    for protocol in ("atomic", "scorecard"):
        for given in ([row], file):
            results = evaluate(given, protocol, "embedded")
            assert not results.bad_rows
            assert results[0].status == "judged"
            assert "no_question" in results[0].flags
    with pytest.raises(NoReadableRow) as refused:
        evaluate(file, "grounded", "embedded")
    (bad,) = refused.value.bad_rows
    assert (bad.file, bad.line, bad.field) == (str(file), 1, "question")


def test_grounded_names_the_sample_that_has_no_question() -> None:
    """A record in memory has no line; its id is told."""
    with pytest.raises(NoReadableRow) as refused:
        evaluate([SAMPLE.model_copy(update={"id": "sum-7", "question": " "})], "grounded", "embedded")
    (bad,) = refused.value.bad_rows
    assert isinstance(bad, InputError)
    assert bad.field == "question"
    assert "'sum-7'" in bad.problem


def test_validate_knows_which_protocol_needs_a_question(steelyard: Steelyard, tmp_path: Path) -> None:
    """The same file is good for scorecard and bad for grounded; a mapped column must be there."""
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(SUMMARY, ensure_ascii=False) + "\n", encoding="utf-8")
    assert steelyard("validate", file, "-p", "scorecard").code == 0
    refused = steelyard("validate", file, "-p", "grounded")
    assert refused.code != 0
    assert "question" in refused.out
    assert steelyard("validate", file, "-p", "scorecard", "--map", "question=asked").code != 0


def test_scorecard_without_a_question() -> None:
    """Accuracy and faithfulness as ever, relevance null; completeness needs given key points or a reference answer."""
    bare = SAMPLE.model_copy(update={"question": "", "key_points": None})
    fed = judge("scorecard", bare)
    scores = fed.verdict.scores
    assert (scores["accuracy"], scores["faithfulness"]) == (100, 100)
    assert (scores["relevance"], scores["completeness"]) == (None, None)
    assert fed.verdict.status == "judged"
    assert "scorecard.key_points" not in fed.tasks
    sentences = [item for item in fed.verdict.items if isinstance(item, Sentence)]
    assert sentences
    assert {sentence.on_topic for sentence in sentences} == {None}

    given = judge("scorecard", bare.model_copy(update={"key_points": ("自习室在第二层",)}))
    assert given.verdict.scores["completeness"] == 100
    drawn = judge("scorecard", bare.model_copy(update={"reference_answer": "在第二层。"}))
    assert "scorecard.key_points" in drawn.tasks
    assert drawn.verdict.scores["completeness"] is not None


def test_without_a_question_off_topic_is_no_finding() -> None:
    """A judge that calls a sentence off topic all the same lowers nothing."""
    bare = SAMPLE.model_copy(update={"question": "", "key_points": None})
    fed = judge("scorecard", bare, otherwise=_off_topic)
    assert fed.verdict.scores["relevance"] is None
    assert fed.verdict.scores["accuracy"] == 100


def _off_topic(ask: Any) -> dict[str, Any]:
    return respond(ask, sentences={1: {"on_topic": False}}) if ask.task == "scorecard.judge" else respond(ask)


def test_an_empty_summary_has_no_relevance() -> None:
    """An empty answer is off topic only where something was asked."""
    empty = SAMPLE.model_copy(update={"question": "", "answer": ""})
    verdict = evaluate([empty], "scorecard", "embedded")[0]
    assert (verdict.scores["relevance"], verdict.scores["completeness"]) == (None, 0)


def test_samples_without_a_question_are_not_one_cluster() -> None:
    """An interval over many summaries is that of many samples: a blank question is nothing that they share."""
    rows = [{**SUMMARY, "id": str(n)} for n in range(4)]
    report = evaluate(rows, "atomic", "embedded").report("en")
    assert report.scores["accuracy"].n == 4
    assert report.scores["accuracy"].interval is not None


def test_levels_are_null_in_lines_and_reports() -> None:
    """Atoms without a level are in the counts of all levels and in none of the three."""
    results = evaluate([SUMMARY], "atomic", "embedded")
    atoms = [item for item in results[0].items if isinstance(item, Atom)]
    assert atoms
    report = results.report("en")
    assert report.atoms
    assert report.atoms.overall.counts["n_correct"] == len([a for a in atoms if a.label == "correct"])
    assert all(not any(group.counts.values()) for group in report.atoms.levels.values())
