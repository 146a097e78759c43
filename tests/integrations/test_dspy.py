"""The metric for DSPy, driven by the real dspy."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from steelyard import ConfigError
from steelyard.integrations.dspy import DspyMetric
from steelyard.integrations.scorer import AnswerScorer


class Assistant(dspy.Module):
    """Says what the rows say."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__()
        self.rows = {row["question"]: row for row in rows}

    def forward(self, question: str) -> dspy.Prediction:
        row = self.rows[question]
        return dspy.Prediction(answer=row["answer"], context=row["references"])


def test_a_program_is_evaluated(scorer: AnswerScorer, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """`dspy.Evaluate` runs a program over a set and averages our scores."""
    rows = [right, wrong]
    examples = [
        dspy.Example(question=row["question"], answer=row["reference_answer"]).with_inputs("question") for row in rows
    ]
    found = dspy.Evaluate(devset=examples, metric=DspyMetric(scorer), num_threads=2)(Assistant(rows))
    assert found.score == 50.0
    worst = found.results[1][2]
    assert worst.score == 0
    assert "第三排" in worst.feedback


def test_bootstrapping_wants_yes_or_no(scorer: AnswerScorer, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """With a trace, as optimizers that bootstrap call it, the metric says whether the answer is good enough; with the
    name of a predictor too, as those that reflect do, it gives the reasons."""
    metric = DspyMetric(scorer)
    predicted = [dspy.Prediction(answer=row["answer"], context=row["references"]) for row in (right, wrong)]
    given = [dspy.Example(question=row["question"]) for row in (right, wrong)]
    assert [metric(*pair, trace=[]) for pair in zip(given, predicted, strict=True)] == [True, False]
    assert "第三排" in metric(given[1], predicted[1], [], "answering", []).feedback
    with pytest.raises(ConfigError, match="answer"):
        metric(given[0], dspy.Prediction(reply="x"))
