"""The embedded judge on `retrieval.judge`: what it can tell, and what it leaves open with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from reading import FixedReader, instead_of_the_network
from steelyard import evaluate
from steelyard.records import Verdict

SEAT = "ISOFIX anchors are in the second row. The third row has none."
ROW: dict[str, Any] = {
    "question": "In which row are the ISOFIX anchors?",
    "references": ["The washer fluid tank is on the left of the engine bay.", SEAT],
    "answer": "The ISOFIX anchors are in the second row.",
    "key_points": ["The ISOFIX anchors are in the second row"],
}


def judged(**changes: Any) -> Verdict:
    (verdict,) = evaluate([{**ROW, **changes}], "retrieval", "embedded")
    return verdict


def labels(verdict: Verdict, kind: str, field: str = "label") -> list[str]:
    return [getattr(item, field) for item in verdict.items if item.kind == kind]


def test_what_is_plain_is_told() -> None:
    """The passage that holds the point answers, the other one is irrelevant, and the answer uses the right one."""
    verdict = judged()
    assert verdict.status == "judged"
    assert labels(verdict, "passage") == ["irrelevant", "answers"]
    assert labels(verdict, "passage", "use") == ["unused", "used"]
    assert (labels(verdict, "point"), labels(verdict, "point", "in_answer")) == (["found"], ["stated"])
    assert labels(verdict, "cause") == ["no_failure"]


def test_causes_in_both_languages() -> None:
    """A misread ordinal, a refusal that is wrong, and a passage that was not retrieved."""
    assert labels(judged(answer="The ISOFIX anchors are in the third row."), "cause") == ["misread"]
    assert labels(judged(answer="I am sorry, I do not know."), "cause") == ["wrong_refusal"]
    assert labels(judged(references=ROW["references"][:1], answer="The seats are soft."), "point") == ["not_found"]
    chinese = judged(
        question="ISOFIX接口在第几排？",
        references=["雨刮喷水壶位于发动机舱左侧。", "ISOFIX接口位于第二排座椅。"],
        answer="ISOFIX接口位于第三排座椅。",
        key_points=["ISOFIX接口位于第二排座椅"],
    )
    assert labels(chinese, "cause") == ["misread"]


def test_what_it_cannot_tell_is_open_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A passage near the question that holds no key point may be worth something or not: this judge does not guess."""
    instead_of_the_network(FixedReader(), monkeypatch)
    verdict = judged(
        question="What is the monthly fee of the Heron Platinum card?",
        references=["The Heron Basic card has no monthly fee."],
        answer="The Heron Platinum card has a monthly fee of 12 pounds.",
        key_points=["The Heron Platinum card has a monthly fee of 12 pounds"],
    )
    (passage,) = (item for item in verdict.items if item.kind == "passage")
    assert labels(verdict, "passage") == ["unjudged"]
    assert passage.reason == "cannot tell whether it bears on the question"
    assert (labels(verdict, "point"), labels(verdict, "point", "in_answer")) == (["not_found"], ["stated"])
    assert (verdict.status, labels(verdict, "cause")) == ("partial", ["unjudged"])
