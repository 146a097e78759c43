"""Calibration, comparison and gates together: every protocol, whole paths, and whatever data may come."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

import report_fixtures as fixtures
from command import DIALOGUE, RAG, RECORDED, Steelyard, lines_of, process_environment, write_lines
from steelyard.errors import ConfigError
from steelyard.people.calibration import calibrate
from steelyard.people.label_targets import slots_of
from steelyard.people.labelling import candidates, draw, labels_in, sheet, write_sheet
from steelyard.protocols.counts import scorecard_scores
from steelyard.records import Sample, Sentence, Verdict
from steelyard.reports import ReportBuilder
from steelyard.reports.blocks import Block
from steelyard.reports.calibration.page import blocks as calibration_page
from steelyard.reports.comparison import blocks as comparison_page
from steelyard.reports.gate import blocks as gate_page
from steelyard.reports.gate import junit
from steelyard.reports.markdown import document
from steelyard.reports.terminal import renderable
from steelyard.store.labels import HumanLabel, allowed
from steelyard.text.wording import LANGUAGES
from steelyard.trust.comparison import Judged, compare
from steelyard.trust.gating import Requirement, gate
from trust_fixtures import Judged as Run
from trust_fixtures import judged, labels_of, simulate

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue")
LABELS = ("correct", "wrong", "undetermined", "exempt", "unjudged")


def rendered(page: list[Block]) -> str:
    """The page as Markdown; and in a terminal, where it must not fail either."""
    shown = io.StringIO()
    Console(width=80, file=shown).print(renderable(page))
    return document(page) + shown.getvalue()


# --- whole paths -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_from_answers_to_a_gated_number(steelyard: Steelyard, protocol: str) -> None:
    """Run, draw, label, calibrate, compare, gate: each protocol's items, labels and scores go the whole way."""
    data = DIALOGUE if protocol == "dialogue" else RAG
    assert steelyard("run", data, "-p", protocol, "-j", RECORDED, "-o", "out.jsonl", "--progress", "quiet").code == 0
    assert steelyard("sample", "last", "--for-labelling", 99, "-o", "sheet.csv", "--annotator", "ana").code == 0
    said = {
        (verdict.id, slot.kind, slot.turn, slot.item): slot.judge
        for verdict in (Verdict.model_validate(line) for line in lines_of("out.jsonl"))
        for slot in slots_of(verdict)
    }
    rows = list(read_sheet(Path("sheet.csv")))
    assert rows
    for row in rows:
        place = row["sample"], row["kind"], int(row["turn"]) if row["turn"] else None, int(row["item"] or 0) or None
        row["label"] = said[place]
        assert row["label"] in row["choices"].split(" / ")
    write_sheet(Path("filled.csv"), rows)
    found = json.loads(steelyard("calibrate", "last", "--labels", "filled.csv", "--json").out)
    assert found["unmatched"] == {}
    assert all(task["raw"]["value"] == 1 for task in found["tasks"])
    # People who say what the judge said find the judge's scores.
    corrected = [score for score in found["scores"] if score["value"] is not None]
    assert corrected
    assert all(score["value"] == pytest.approx(score["judge"]) for score in corrected)
    assert steelyard("compare", "last", "last", "--lang", "en").code == 0
    metric = corrected[0]["metric"]
    assert steelyard("gate", "last", "--require", f"{metric}>=0", "--labels", "filled.csv").code == 0
    assert steelyard("gate", "last", "--baseline", "last").code == 0


def read_sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{name: cell.removeprefix("'") for name, cell in row.items()} for row in csv.DictReader(file)]


def test_two_sheets_are_two_people(steelyard: Steelyard) -> None:
    """Sheets that do not say who labelled are told apart by their names; together they show the ceiling."""
    run, truth = simulate(20)
    write_lines(Path("results.jsonl"), [verdict.line() for _, verdict in run])
    for name in ("ana", "bo"):
        rows = [label.model_dump() for label in labels_of(run, truth, sorted(truth)[:10], annotator="", about="")]
        write_lines(Path(f"{name}.jsonl"), rows)
    found = json.loads(
        steelyard("calibrate", "results.jsonl", "-l", "ana.jsonl", "-l", "bo.jsonl", "--json", "--policy", "1").out
    )
    assert found["annotators"] == {"ana": 30, "bo": 30}
    assert found["tasks"][0]["person_person"]["raw"]["value"] == 1


def test_another_judge_as_the_yardstick(steelyard: Steelyard) -> None:
    """A file of result lines serves as labels: how well does a cheap judge follow a dear one?"""
    run, truth = simulate(30)
    strong = [judged(sample.id, truth[sample.id], judge="strong") for sample, _ in run]
    for name, side in (("cheap", run), ("strong", strong)):
        write_lines(Path(f"{name}.jsonl"), [verdict.line() for _, verdict in side])
    found = json.loads(steelyard("calibrate", "cheap.jsonl", "--labels", "strong.jsonl", "--json").out)
    assert list(found["annotators"]) == ["strong"]
    accuracy = next(score for score in found["scores"] if score["metric"] == "accuracy")
    # Everything is labelled, so the strong judge's own mean stands.
    assert accuracy["value"] == pytest.approx(np.mean([labels.count("correct") / 3 for labels in truth.values()]))


@pytest.mark.parametrize("stratify", [None, "score", "tag"])
def test_any_draw_estimates_the_same_number(stratify: Any) -> None:
    """Over many seeds the corrected accuracy is right on average, whether drawn at random or by strata."""
    run, truth = simulate(150, seed=12)
    real = np.mean([labels.count("correct") / 3 for labels in truth.values()])
    errors = []
    for seed in range(12):
        drawn = draw(candidates(run, stratify=stratify, kinds=("atom",)), 30, seed=seed)
        labels = [
            HumanLabel(**{**row, "label": truth[row["sample"]][row["item"] - 1]})
            for row in sheet(run, drawn, kinds=("atom",))
        ]
        found = calibrate(run, labels)
        accuracy = next(score for score in found.scores if score.metric == "accuracy")
        assert accuracy.value is not None
        errors.append(accuracy.value - real)
        assert found.weighted == (stratify is not None and len(set(drawn.weights.values())) > 1)
        assert not found.skewed
    assert abs(np.mean(errors)) < 0.025


def test_points_stay_points() -> None:
    """The scorecard's corrected scores and their intervals are on the scale of 0 to 100."""
    rng = random.Random(3)
    run: Run = []
    labels: list[HumanLabel] = []
    for n in range(30):
        topics = [rng.choice(["on_topic", "off_topic"]) for _ in range(4)]
        verdict = sentences(f"c{n}", topics)
        run.append((fixtures.rag(f"c{n}", f"q{n}"), verdict))
        if n < 15:
            labels += [
                HumanLabel(sample=f"c{n}", kind="on_topic", item=k, label=label if rng.random() < 0.9 else "on_topic")
                for k, label in enumerate(topics, start=1)
            ]
    found = calibrate(run, labels)
    relevance = next(score for score in found.scores if score.metric == "relevance")
    assert relevance.value is not None
    assert relevance.interval is not None
    assert 0 < relevance.interval[0] < relevance.value < relevance.interval[1] < 100
    assert relevance.interval[1] > 1
    assert {score.metric for score in found.scores if score.value is not None} == {"relevance"}


def sentences(id: str, topics: list[str]) -> Verdict:
    items = tuple(
        Sentence(id=n, text=f"s{n}", on_topic=topic, support="supported")  # type: ignore[arg-type]
        for n, topic in enumerate(topics, start=1)
    )
    return Verdict(id=id, protocol="scorecard", status="judged", scores=scorecard_scores(items), items=items, judge="j")


# --- whatever may come -----------------------------------------------------------------------------

atoms = st.lists(st.sampled_from(LABELS), max_size=4)
runs = st.lists(atoms, min_size=1, max_size=6)
said = st.tuples(
    st.integers(0, 6), st.integers(1, 4), st.sampled_from(LABELS[:4]), st.sampled_from(["ana", "bo", "cy"]),
    st.floats(0.1, 50),
)  # fmt: skip


def run_of(rows: list[list[str]], **fields: Any) -> Run:
    found = []
    for n, labels in enumerate(rows):
        status = "failed" if labels and set(labels) == {"unjudged"} else "partial" if "unjudged" in labels else "judged"
        found.append(judged(f"s{n}", labels, question=f"q{n % 3}", status=status, **fields))
    return found


def no_nonsense(text: str) -> None:
    assert "NaN" not in text
    assert "nan%" not in text
    assert "Infinity" not in text
    assert "None" not in text


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(runs, st.lists(said, max_size=25), st.sampled_from(LANGUAGES))
def test_any_labels_give_figures_or_a_reason(rows: list[list[str]], given_labels: list[Any], language: Any) -> None:
    """However few, contradictory or beside the point the labels: a page without nonsense, or one line that says why."""
    run = run_of(rows)
    labels = [
        HumanLabel(sample=f"s{n}", kind="atom", item=item, label=label, annotator=who, weight=weight)
        for n, item, label, who, weight in given_labels
    ]
    fitting = {(sample.id, item.id) for sample, verdict in run for item in verdict.items}
    if not any((label.sample, label.item) in fitting for label in labels):
        with pytest.raises(ConfigError, match="labels"):
            calibrate(run, labels, language=language)
        return
    found = calibrate(run, labels, language=language)
    no_nonsense(rendered(list(calibration_page(found))))
    no_nonsense(found.model_dump_json())
    for task in found.tasks:
        for figure in (task.raw, task.kappa, task.alpha, task.balanced_accuracy):
            if figure.interval is not None and figure.value is not None:
                assert figure.interval[0] - 1e-9 <= figure.interval[1]
                assert -1 <= figure.interval[0] <= figure.interval[1] <= 1
    for score in found.scores:
        if score.value is not None:
            assert math.isfinite(score.value)
            assert 0 <= score.value <= 1


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(runs, runs, st.sampled_from(LANGUAGES))
def test_any_two_runs_can_be_compared(a: list[list[str]], b: list[list[str]], language: Any) -> None:
    """Whatever is null, unjudged or missing: a comparison and a gate without nonsense."""
    sides = [Judged(name, lambda rows=rows: iter(run_of(rows))) for name, rows in (("A", a), ("B", b))]  # type: ignore[misc]
    found = compare(sides[0], sides[1], language=language)
    no_nonsense(rendered(list(comparison_page(found))))
    assert json.loads(found.model_dump_json())
    for change in found.metrics:
        assert change.n_rose + change.n_fell <= change.n
        assert change.p is None or 0 <= change.p <= (change.p_adjusted or 0) <= 1
    builder = ReportBuilder("atomic", language)
    for sample, verdict in run_of(b):
        builder.add(verdict, sample)
    closed = gate(builder.build(), [Requirement("accuracy", ">=", 0.5)], comparison=found)
    no_nonsense(rendered(list(gate_page(closed))))
    no_nonsense(junit(closed))


def test_result_lines_need_no_samples() -> None:
    """Files of result lines have no samples, so no questions and no digests: everything still works."""
    run, truth = simulate(12)
    bare: list[tuple[Sample | None, Verdict]] = [(None, verdict) for _, verdict in run]
    found = calibrate(bare, labels_of(run, truth, sorted(truth)))
    assert found.n_used == 36
    comparison = compare(Judged("a", lambda: bare), Judged("b", lambda: bare))
    assert comparison.n_pairs == 12
    assert comparison.n_same == 0


def test_every_label_of_every_kind_can_be_given() -> None:
    """The choices of a sheet are exactly the labels that a judge can give, `unjudged` aside."""
    for protocol in PROTOCOLS:
        for verdict, _ in fixtures.some_of(protocol):
            for slot in slots_of(verdict):
                assert slot.judge in (*allowed(slot.kind), "unjudged")


def test_a_sheet_that_was_not_filled_in(tmp_path: Path) -> None:
    """An empty sheet holds no labels, and calibrating with it says how to begin."""
    run = [judged("s1", ["correct"])]
    write_sheet(tmp_path / "sheet.jsonl", sheet(run, draw(candidates(run), 1)))
    labels = list(labels_in(tmp_path / "sheet.jsonl"))
    assert labels == []
    with pytest.raises(ConfigError, match="there are no labels yet"):
        calibrate(run, labels)


def test_commands_start_light(tmp_path: Path) -> None:
    """Having these commands costs the others nothing: numpy and the statistics wait until one of them runs."""
    code = (
        "import sys; from steelyard.cli import calibrate, compare, gate, labelling\n"
        "print([name for name in sys.modules if name in ('numpy', 'scipy')"
        " or name.startswith('steelyard.people.calibration') "
        " or name in ('steelyard.trust.gating', 'steelyard.people.labelling', 'steelyard.reports')])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=process_environment(), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
