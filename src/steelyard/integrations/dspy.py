"""DSPy: a metric for `dspy.Evaluate` and for optimizers, with feedback for those that reflect (GEPA)."""

from __future__ import annotations

from typing import Any

from steelyard.errors import ConfigError, MissingExtra
from steelyard.integrations.scorer import AnswerScorer, answer_sample

try:
    from dspy import Example, Prediction
except ImportError:
    raise MissingExtra("dspy", "dspy", "a metric for DSPy") from None


class DspyMetric:
    """Called with an example and a prediction, gives the score as a share of its scale, and the reasons as feedback.

    `question`, `answer`, `passages` and `expected` are names of fields: question and expected answer are looked for in
    the example, the answer in the prediction, passages in the prediction, then in the example. While an optimizer
    bootstraps (`trace` is given), the result is whether the score reaches `threshold`. An answer that could not be
    judged scores 0, as a metric of DSPy has no other word for it; the feedback says so.
    """

    def __init__(
        self,
        scorer: AnswerScorer | None = None,
        *,
        threshold: float = 1.0,
        question: str = "question",
        answer: str = "answer",
        passages: str = "context",
        expected: str = "answer",
    ) -> None:
        self.scorer, self.threshold = scorer or AnswerScorer(), threshold
        self._question, self._answer, self._passages, self._expected = question, answer, passages, expected

    def __call__(
        self, gold: Example, pred: Prediction, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Prediction | bool:
        answer = getattr(pred, self._answer, None)
        if answer is None:
            raise ConfigError(f"the prediction has no field {self._answer!r}; it has {', '.join(pred.keys())}")
        passages = pred.get(self._passages, None)
        passages = gold.get(self._passages, None) if passages is None else passages
        passages = [passages] if isinstance(passages, str) else passages
        sample = answer_sample(gold.get(self._question, None), str(answer), passages, gold.get(self._expected, None))
        (found,) = self.scorer.score([sample])
        if trace is not None and pred_name is None:
            return found.value is not None and found.value >= self.threshold
        feedback = found.explanation or found.label
        if found.value is None:
            feedback = f"unjudged: {found.unjudged}" if found.unjudged else "this score does not apply here"
        return Prediction(score=found.value or 0.0, feedback=feedback)
