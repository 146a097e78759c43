"""The bundled examples: whole, answered by their recording, and what they are said to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command import DIALOGUE, EXAMPLES, PAIRS, RAG
from steelyard.evaluation import Results, evaluate
from steelyard.judges import RecordedJudge
from steelyard.records import Atom, Check, Criterion, RagSample
from steelyard.text import language_of

FILES = {
    "atomic": RAG,
    "grounded": RAG,
    "scorecard": RAG,
    "dialogue": DIALOGUE,
    "retrieval": RAG,
    "pairwise": PAIRS,
}


def judged(protocol: str, **options: object) -> Results:
    return evaluate(FILES[protocol], protocol, RecordedJudge(EXAMPLES / "replies.jsonl"), options=options)


@pytest.mark.parametrize("protocol", FILES)
def test_the_recording_answers_every_ask(protocol: str) -> None:
    """Nothing is left unjudged; otherwise `make examples` was forgotten after an ask changed."""
    results = judged(protocol)
    reasons = [item.reason for verdict in results for item in verdict.items if "not_recorded" in item.reason]
    assert [verdict.status for verdict in results] == ["judged"] * len(results), reasons
    assert not results.bad_rows


def test_the_recording_is_what_the_labels_say(tmp_path: Path) -> None:
    """Recording anew gives the same file, byte for byte."""
    again = tmp_path / "replies.jsonl"
    subprocess.run([sys.executable, EXAMPLES / "make_replies.py", again], check=True, capture_output=True)
    assert again.read_bytes() == (EXAMPLES / "replies.jsonl").read_bytes()


def test_the_examples_do_not_depend_on_today() -> None:
    """Every sample has its date, so a recording made today answers tomorrow."""
    samples = [sample for sample in judged("atomic").samples if isinstance(sample, RagSample)]
    assert len(samples) == 8
    assert all(sample.date for sample in samples)


def test_the_examples_are_in_three_scripts() -> None:
    """Five are Chinese, one of them Traditional; three are English."""
    samples = [sample for sample in judged("atomic").samples if isinstance(sample, RagSample)]
    languages = sorted(language_of(sample.question) for sample in samples)
    assert languages == ["en"] * 3 + ["zh-Hans"] * 4 + ["zh-Hant"]


def test_what_atomic_shows() -> None:
    """All correct, a wrong ordinal, an invention, two fallbacks, tolerance, an opinion, an injection, no answer."""
    found = {verdict.id: verdict for verdict in judged("atomic")}
    labels = {id: [item.label for item in verdict.items if isinstance(item, Atom)] for id, verdict in found.items()}
    assert labels == {
        "car-tyre": ["correct"] * 5,
        "car-seat": ["wrong", "wrong", "undetermined"],
        "library-overdue": ["correct", "correct", "undetermined", "correct"],
        "clinic-hours": [],
        "museum-visitors": ["correct", "correct", "exempt"],
        "bank-card": [],
        "library-friday": ["wrong", "correct"],
        "museum-stroller": [],
    }
    fallbacks = {id for id, verdict in found.items() if verdict.scores["fallback"] == 1}
    assert fallbacks == {"clinic-hours", "bank-card"}
    assert found["car-tyre"].scores["accuracy"] == 1
    assert "injection_suspected" in found["library-friday"].flags
    assert found["museum-stroller"].flags == ("empty_answer",)


def test_every_quote_of_the_examples_is_verified() -> None:
    """The labels' evidence really stands in the passages."""
    evidence = [item.evidence for verdict in judged("atomic") for item in verdict.items if isinstance(item, Atom)]
    assert all(found.verified for found in evidence if found)
    assert sum(found is not None for found in evidence) == 14


def test_what_grounded_shows() -> None:
    """An honest refusal is told from a lazy one, and only the clean answers pass."""
    found = {verdict.id: verdict for verdict in judged("grounded")}
    assert {id for id, verdict in found.items() if verdict.scores["accuracy"] == 1} == {"car-tyre", "museum-visitors"}
    assert "correct_abstention" in found["bank-card"].flags
    assert "correct_abstention" not in found["clinic-hours"].flags
    seat = {item.name: item.label for item in found["car-seat"].items if isinstance(item, Check)}
    assert (seat["from_background"], seat["conclusion_correct"], seat["answers_question"]) == (0, 0, 1)


def test_what_retrieval_shows() -> None:
    """Four causes and three samples without a failure; recall is null where the right answer is that there is none."""
    found = {verdict.id: verdict for verdict in judged("retrieval")}
    assert {id: getattr(verdict.items[0], "label", None) for id, verdict in found.items()} == {
        "car-tyre": "no_failure",
        "car-seat": "misread",
        "library-overdue": "no_failure",
        "clinic-hours": "wrong_refusal",
        "museum-visitors": "no_failure",
        "bank-card": "right_refusal",
        "library-friday": "misread",
        "museum-stroller": "ignored",
    }
    assert (found["bank-card"].scores["recall"], found["bank-card"].scores["precision"]) == (None, 0)


def test_grounded_strictly() -> None:
    """With `strict`, the opinion of the museum sample counts as outside the background."""
    strict = {verdict.id: verdict.scores["accuracy"] for verdict in judged("grounded", strict=True)}
    assert (strict["car-tyre"], strict["museum-visitors"]) == (1, 0)


def test_what_scorecard_shows() -> None:
    """Full marks, key points drawn from the reference answer, and null where nothing can be measured."""
    found = {verdict.id: verdict for verdict in judged("scorecard")}
    assert dict(found["car-tyre"].scores) == dict.fromkeys(found["car-tyre"].scores, 100)
    assert found["library-overdue"].notes["keypoints_source"] == "derived"
    assert found["library-overdue"].scores["completeness"] == 100
    assert found["museum-stroller"].scores["accuracy"] is None
    assert found["museum-stroller"].scores["relevance"] == 0


def test_what_dialogue_shows() -> None:
    """Criteria of every kind: valid and invalid, kept and broken, vacuous, and decided by rule."""
    criteria = [item for verdict in judged("dialogue") for item in verdict.items if isinstance(item, Criterion)]
    assert {item.result for item in criteria} == {"符合", "不符合", "不确定"}
    assert {item.validity for item in criteria} == {"valid", "invalid"}
    assert {item.decided_by for item in criteria} == {"judge", "rule"}
    assert any("vacuous" in item.flags for item in criteria)
    assert all(item.quote_verified for item in criteria if item.validity == "valid")
