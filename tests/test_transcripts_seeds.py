"""The seeds' worked examples: their transcripts read to the labels that count, and every slip in them is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.protocols.transcripts import detect, parse, render
from steelyard.records import DialogueSample, RagSample, Verdict

SEEDS = Path(__file__).parent / "fixtures" / "seeds"
RAG = sorted(path.name.removesuffix(".transcript.txt") for path in SEEDS.glob("*.transcript.txt"))
DIALOGUE = "dialogue-angry-assistant"


def transcript(name: str) -> str:
    return (SEEDS / f"{name}.transcript.txt").read_text("utf-8")


def expected(name: str) -> Any:
    return json.loads((SEEDS / f"{name}.expected.json").read_text("utf-8"))


def item(verdict: Verdict, id: int) -> Any:
    return next(item for item in verdict.items if item.id == id)


def test_all_worked_examples_are_there() -> None:
    """Three atomic and two grounded examples, and the dialogue."""
    assert [name.split("-")[0] for name in RAG] == ["atomic"] * 3 + ["grounded"] * 2


@pytest.mark.parametrize("name", RAG)
def test_samples_are_canonical(name: str) -> None:
    """Each example's sample file is a valid sample as it stands."""
    sample = RagSample.model_validate_json((SEEDS / f"{name}.sample.json").read_bytes())
    assert sample.id == name
    assert sample.references


@pytest.mark.parametrize("name", RAG)
def test_labels_that_count(name: str) -> None:
    """Every item of the document's own transcript is read to one of the accepted labels, at its level."""
    verdict, wanted = parse(transcript(name)), expected(name)
    assert (verdict.protocol, verdict.status) == (wanted["protocol"], "judged")
    assert len(verdict.items) == len(wanted["items"])
    for found, want in zip(verdict.items, wanted["items"], strict=True):
        fields = found.model_dump()
        assert fields["label"] in want["labels"], want
        assert {key: fields[key] for key in want if key != "labels"} == {k: v for k, v in want.items() if k != "labels"}
    scores = {"fallback": wanted["fallback"]} if "fallback" in wanted else wanted["scores"]
    assert scores.items() <= dict(verdict.scores).items()


@pytest.mark.parametrize("name", RAG)
def test_worked_examples_render_and_read_back(name: str) -> None:
    """Parse, render, parse: the same items, scores and flags."""
    first = parse(transcript(name), id=name)
    second = parse(render(first), id=name)
    assert (second.items, second.scores, second.flags) == (first.items, first.scores, first.flags)


def test_swapped_ids_are_matched_by_text() -> None:
    """The first example swaps two ids between sections: the first section's stand, and the atoms say so."""
    verdict = parse(transcript("atomic-headlamp-film"))
    assert [atom.text for atom in verdict.items] == [
        "贴膜会使灯光的照明亮度下降",
        "贴膜可能影响行车安全",
        "不建议给大灯贴膜",
    ]
    assert [atom.flags for atom in verdict.items] == [("id_mismatch",), ("id_mismatch",), ()]


def test_missing_score_on_a_stated_error_is_inferred() -> None:
    """错误 without 打分 is wrong, flagged as inferred; the atom's other wording does not lose it."""
    atom = item(parse(transcript("atomic-longest-name")), 6)
    assert atom.label == "wrong"
    assert set(atom.flags) == {"label_inferred", "text_differs"}
    assert atom.text == "它是世界上有史以来最强大的国家。"


@pytest.mark.parametrize("name", ["atomic-longest-name", "atomic-mother-daughter"])
def test_fallback_prose_against_its_bracket(name: str) -> None:
    """Where the prose says 兜底 and the bracket 【0】, the bracket stands and the sample is flagged."""
    verdict = parse(transcript(name))
    assert verdict.scores["fallback"] == 0
    assert verdict.flags[0] == "prose_contradicts_score"


def test_skipped_numbering_is_read_by_label() -> None:
    """真实性评价 starts at (2) in the document; all eight checks are found."""
    verdict = parse(transcript("grounded-headlamp-film"))
    assert [check.label for check in verdict.items] == [1] * 8
    assert verdict.notes["own_answer"].startswith("大灯贴膜会使其照明亮度下降")


def test_stated_totals_that_agree_say_nothing_new() -> None:
    """The three {{}} are what the labels give: nothing is flagged, and nothing stands beside the scores."""
    verdict = parse(transcript("grounded-tray-table"))
    assert (verdict.stated, verdict.flags) == ({}, ())
    assert "stated" not in verdict.line()


# --- the dialogue ----------------------------------------------------------------------------------


def test_dialogue_sample_is_canonical() -> None:
    """The dialogue's criteria are those of the document's report."""
    sample = DialogueSample.model_validate_json((SEEDS / f"{DIALOGUE}.sample.json").read_bytes())
    report = json.loads((SEEDS / f"{DIALOGUE}.report1.json").read_text("utf-8"))["evaluation_report"]
    stated = [[result["content"] for result in entry["criteria_results"]] for entry in report]
    assert [list(turn.criteria) for turn in sample.turns] == stated


@pytest.mark.parametrize(("file", "form"), [("report1.json", "json"), ("report2.md", "markdown")])
def test_dialogue_reports_read_and_render_exactly(file: str, form: Any) -> None:
    """Both reports read to the expected labels, and rendering gives the file back byte for byte."""
    text = (SEEDS / f"{DIALOGUE}.{file}").read_text("utf-8")
    verdict, wanted = parse(text), expected(DIALOGUE)
    assert detect(text) == "dialogue"
    for found, want in zip(verdict.items, wanted["items"], strict=True):
        fields = found.model_dump()
        assert fields["label"] in want["labels"]
        assert {key: fields[key] for key in ("turn", "id", "text", "validity")} == {
            key: want[key] for key in ("turn", "id", "text", "validity")
        }
    assert verdict.scores == wanted["scores"]
    assert render(verdict, form) == text
    if form == "markdown":
        assert all(c.quote and c.quote_verified and c.place and c.reason for c in verdict.items)  # type: ignore[union-attr]


def test_quotes_of_the_markdown_report_stand_in_the_system_prompt() -> None:
    """The invented report is honest: each quote it marks as checked can be found."""
    sample = DialogueSample.model_validate_json((SEEDS / f"{DIALOGUE}.sample.json").read_bytes())
    verdict = parse((SEEDS / f"{DIALOGUE}.report2.md").read_text("utf-8"))
    assert all(c.quote in sample.system_prompt for c in verdict.items)  # type: ignore[union-attr]


def test_report_one_has_no_further_keys() -> None:
    """Report 1 is exactly the document's JSON: these keys, ids that restart, nothing else."""
    verdict = parse((SEEDS / f"{DIALOGUE}.report2.md").read_text("utf-8"))
    report = json.loads(render(verdict, "json"))
    assert report.keys() == {"evaluation_report"}
    for number, entry in enumerate(report["evaluation_report"], start=1):
        assert (entry["round"], entry.keys()) == (number, {"round", "criteria_results"})
        ids = [result["criterion_id"] for result in entry["criteria_results"]]
        assert ids == list(range(1, len(ids) + 1))
        assert all(r.keys() == {"criterion_id", "content", "result"} for r in entry["criteria_results"])
