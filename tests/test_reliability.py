"""How far a judge's confidence can be relied on, from people's labels: curves, thresholds, pages, files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard
from html_page import read_page
from steelyard.errors import ConfigError
from steelyard.judges.panel_settings import thresholds_for
from steelyard.people.calibration import calibrate
from steelyard.people.calibration.reliability import Point, sure_from, thresholds
from steelyard.people.label_targets import slots_of
from steelyard.records import Criterion, Sentence, Verdict
from steelyard.reports.calibration.page import blocks
from steelyard.reports.html.document import html_document
from steelyard.reports.markdown import document
from steelyard.store.labels import write_labels
from steelyard.text.wording import LANGUAGES
from trust_fixtures import FLIPPED, Judged, judged, keep, labels_of

Truth = dict[str, list[str]]


def surely(labels: list[str], sure: list[float | None], id: str, **more: Any) -> Any:
    """One sample whose atoms carry these labels with these probabilities."""
    sample, verdict = judged(id, labels)
    items = tuple(
        item.model_copy(update={"confidence": given, "confidence_kind": "probability", **more})
        for item, given in zip(verdict.items, sure, strict=True)
    )
    return sample, verdict.model_copy(update={"items": items})


def drawn(n: int, seed: int = 3) -> tuple[Judged, Truth]:
    """A judge that is right about as often as it says, apart from what it calls correct below .8: that is wrong."""
    rng = random.Random(seed)
    run: Judged = []
    truth: Truth = {}
    for number in range(n):
        sure = [round(rng.uniform(0.5, 1), 2) for _ in range(3)]
        said = [rng.choice(["correct", "wrong"]) for _ in sure]
        right = [
            rng.random() < (0.0 if label == "correct" and s < 0.8 else s) for s, label in zip(sure, said, strict=True)
        ]
        id = f"s{number:04d}"
        truth[id] = [label if good else FLIPPED[label] for label, good in zip(said, right, strict=True)]
        run.append(surely(said, list(sure), id))
    return run, truth


def test_a_curve_by_hand() -> None:
    """Bins of a tenth with counts, share right and mean confidence; the error is their mean distance, by size."""
    run = [surely(["correct"] * 4, [0.95, 0.97, 0.62, 1.0], "a"), surely(["wrong", "wrong"], [0.65, None], "b")]
    truth = {"a": ["correct", "wrong", "wrong", "correct"], "b": ["wrong", "wrong"]}
    (curve,) = calibrate(run, labels_of(run, truth, ["a", "b"])).reliability
    assert (curve.judge, curve.task, curve.source, curve.n) == ("j:m", "atom", "probability", 5)
    told = [(b.low, b.high, b.n, round(b.confidence, 4), round(b.right, 4)) for b in curve.bins]
    assert told == [(0.6, 0.7, 2, 0.635, 0.5), (0.9, 1.0, 3, 0.9733, 0.6667)]
    assert curve.error == pytest.approx((2 * 0.135 + 3 * (0.97333 - 0.66667)) / 5, abs=1e-4)
    assert curve.right == pytest.approx(0.6)
    # Too few to say from where on a label can be relied on.
    assert [(s.label, s.least, s.of) for s in curve.sure_from] == [("correct", None, 4), ("wrong", None, 1)]


def test_where_a_label_is_right_often_enough() -> None:
    """The lowest confidence at and above which the share of right labels is reached, with at least twenty of them."""
    points = [Point(0.9 + n / 1000, True, "correct", 1.0) for n in range(40)]
    points += [Point(0.7, n % 2 == 0, "correct", 1.0) for n in range(10)]
    found = sure_from("correct", points, 0.95)
    assert (found.least, found.n, found.of, found.precision) == (0.9, 40, 50, 1.0)
    assert found.interval is not None
    assert found.interval[0] < 0.95
    assert sure_from("correct", points, 0.9).least == 0.7
    assert sure_from("correct", [p._replace(is_right=False) for p in points], 0.5).least is None
    assert sure_from("correct", points[:19], 0.95).least is None


def test_each_judge_and_kind_has_its_own() -> None:
    """In a routed run the labels of the two judges are told apart; without confidences there is no curve."""
    run = [
        surely(["correct", "correct"], [0.9, 0.8], "a"),
        surely(["correct", "wrong"], [0.9, 0.8], "b", judge="other"),
    ]
    truth = {"a": ["correct", "correct"], "b": ["correct", "wrong"]}
    found = calibrate(run, labels_of(run, truth, ["a", "b"]))
    assert [(curve.judge, curve.n) for curve in found.reliability] == [("j:m", 2), ("other", 2)]
    assert found.votes == ()
    plain: Judged = [judged("a", ["correct", "wrong"])]
    without = calibrate(plain, labels_of(plain, {"a": ["correct", "wrong"]}, ["a"]))
    assert without.reliability == ()
    assert "confidence" not in document(blocks(without)).lower()


def test_votes_have_a_curve_too() -> None:
    """The share of a panel's votes is a confidence as well, and the page says which it is."""
    sample, verdict = surely(["correct", "wrong"], [1.0, 0.6667], "a", confidence_kind="votes")
    found = calibrate([(sample, verdict)], labels_of([(sample, verdict)], {"a": ["correct", "wrong"]}, ["a"]))
    assert [curve.source for curve in found.reliability] == ["votes"]
    assert len(found.votes) == 2
    assert "得票率" in document(blocks(found))


def test_a_probability_is_about_one_label() -> None:
    """Of a sentence's two labels it is that of its support; a criterion has one for each."""
    sentence = Sentence(
        id=1, text="t", on_topic="on_topic", support="supported", confidence=0.8, confidence_kind="probability"
    )
    criterion = Criterion(id=1, text="c", turn=1, validity="valid", label="satisfied", confidence=0.7,
                          confidence_kind="probability", validity_confidence=0.9)  # fmt: skip
    invalid = criterion.model_copy(update={"validity": "invalid", "label": "undetermined", "confidence": 0.9})
    answer = Verdict(id="x", protocol="scorecard", status="judged", scores={}, items=(sentence,))
    dialogue = Verdict(id="x", protocol="dialogue", status="judged", scores={}, items=(criterion, invalid))
    told = [(slot.kind, slot.confidence) for verdict in (answer, dialogue) for slot in slots_of(verdict)]
    assert told == [
        ("on_topic", None), ("support", 0.8),
        ("criterion", 0.7), ("validity", 0.9),
        ("criterion", None), ("validity", 0.9),
    ]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages(language: Any) -> None:
    """Text and HTML have every bin and threshold; the HTML draws the curve, loads nothing and escapes names."""
    run, truth = drawn(60)
    hostile = [(s, v.model_copy(update={"judge": "<b>j</b>"})) for s, v in run]
    found = calibrate(hostile, labels_of(hostile, truth, sorted(truth)), language=language)
    (curve,) = found.reliability
    text = document(blocks(found))
    page = read_page(html_document(blocks(found), found.language))
    for each in curve.bins:
        assert f"{each.low:.1f}–{each.high:.1f}" in text
        assert f"{each.low:.1f}–{each.high:.1f}" in page.text
    source = html_document(blocks(found), found.language)
    assert source.count("<svg") == 1
    assert source.count("<circle") == len(curve.bins)
    assert "<b>j</b>" not in source
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert not [link for link in ("http://", "https://", "src=") if link in source.replace("http-equiv", "")]


def test_on_the_command_line(steelyard: Steelyard) -> None:
    """JSON has the curves; the thresholds that are written are those a routed judge reads."""
    run, truth = drawn(150)
    keep(Path(".steelyard/store.db"), run)
    write_labels(Path("people.jsonl"), labels_of(run, truth, sorted(truth)))
    words = ("calibrate", "last", "--labels", "people.jsonl", "--precision", "0.85")
    done = steelyard(*words, "--json", "--write-thresholds", "sure.json", "--html", "page.html")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    (curve,) = told["reliability"]
    assert told["precision"] == 0.85
    assert curve["n"] == 450
    least = {each["label"]: each["least"] for each in curve["sure_from"]}
    assert thresholds_for("j:m", Path("sure.json")) == {f"atom.{label}": value for label, value in least.items()}
    # Where it is always wrong below .8, it must be surer to be right as often.
    assert least["correct"] > least["wrong"] > 0.5
    assert "<svg" in Path("page.html").read_text("utf-8")
    shown = steelyard(*words, "--lang", "en")
    assert "How far its confidence can be relied on" in shown.out
    assert "expected calibration error" in " ".join(shown.out.split())


def test_nothing_to_write(steelyard: Steelyard) -> None:
    """Thresholds of a run without confidences are an error, as is a precision that is no share."""
    plain: Judged = [judged("a", ["correct", "wrong"])]
    keep(Path(".steelyard/store.db"), plain)
    people = labels_of(plain, {"a": ["correct", "wrong"]}, ["a"])
    write_labels(Path("people.jsonl"), people)
    done = steelyard("calibrate", "last", "--labels", "people.jsonl", "--write-thresholds", "sure.json")
    assert "no label that people gave has a confidence" in done.err
    assert not Path("sure.json").exists()
    with pytest.raises(ConfigError, match="wanted precision"):
        calibrate(plain, people, precision=1.5)


def test_labels_too_few_keep_the_default() -> None:
    """A label that people gave seldom is left out of the file, one that is never right enough is null in it."""
    run, truth = drawn(60)
    found = calibrate(run, labels_of(run, truth, sorted(truth)), precision=1.0)
    (curve,) = found.reliability
    few = curve.model_copy(
        update={"sure_from": (*curve.sure_from, curve.sure_from[0].model_copy(update={"label": "exempt", "of": 3}))}
    )
    written = thresholds(found.model_copy(update={"reliability": (few,)}))["judges"]
    assert written == {"j:m": {f"atom.{each.label}": each.least for each in curve.sure_from}}


def test_weights_of_a_stratified_draw() -> None:
    """A label that stands for more samples counts for more."""
    run = [surely(["correct"], [0.9], "a"), surely(["correct"], [0.9], "b")]
    often, seldom = labels_of(run, {"a": ["correct"]}, ["a"], weight=3.0), labels_of(run, {"b": ["wrong"]}, ["b"])
    (curve,) = calibrate(run, [*often, *seldom]).reliability
    assert curve.right == pytest.approx(0.75)
