"""The component for Haystack, driven by the real haystack-ai."""

from __future__ import annotations

from typing import Any

import pytest
from haystack import Pipeline

from conftest import RECORDED
from steelyard import ConfigError
from steelyard.integrations.haystack import HaystackEvaluator

SETTINGS = {"protocol": "atomic", "judge": RECORDED, "options": {"date": "2026-03-02"}}


def test_a_pipeline_with_it_can_be_saved_and_run(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """A pipeline with the component goes through YAML and back, and gives a score per answer and their mean."""
    pipeline = Pipeline()
    pipeline.add_component("steelyard", HaystackEvaluator(**SETTINGS))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["steelyard.integrations.haystack"])
    rows = (right, wrong)
    inputs = {
        "questions": [row["question"] for row in rows],
        "predicted_answers": [row["answer"] for row in rows],
        "contexts": [row["references"] for row in rows],
    }
    found = again.run({"steelyard": inputs})["steelyard"]
    assert (found["score"], found["individual_scores"]) == (0.5, [1.0, 0.0])
    assert [one["label"] for one in found["results"]] == ["correct", "wrong"]
    assert found["results"][1]["items"][0]["evidence"]["quote"]


def test_lists_of_different_length_are_refused() -> None:
    """A missing answer is an error, not a shifted pairing."""
    with pytest.raises(ConfigError, match="length"):
        HaystackEvaluator(**SETTINGS).run(questions=["a", "b"], predicted_answers=["c"])
