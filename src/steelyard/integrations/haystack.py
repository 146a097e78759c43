"""Haystack: a component that takes the inputs of its own evaluators and gives their outputs."""

from __future__ import annotations

from typing import Any

from steelyard.errors import ConfigError, MissingExtra
from steelyard.integrations.scorer import AnswerScorer, answer_sample

try:
    from haystack import component, default_from_dict, default_to_dict
except ImportError:
    raise MissingExtra("haystack-ai", "haystack", "a component for Haystack") from None


@component
class HaystackEvaluator:
    """Scores answers as shares of the metric's scale; the overall score is the mean of those that have one.

    Its settings are names and plain values, so that a pipeline with it can be saved and loaded.
    """

    def __init__(
        self, protocol: str = "", judge: str | None = None, metric: str = "", options: dict[str, Any] | None = None
    ) -> None:
        self._given = {"protocol": protocol, "judge": judge, "metric": metric, "options": options}
        named = {"protocol": protocol} if protocol else {}
        self.scorer = AnswerScorer(**named, judge=judge, metric=metric, options=options or {})

    @component.output_types(score=float | None, individual_scores=list[float | None], results=list[dict[str, Any]])  # type: ignore[untyped-decorator]
    def run(
        self,
        questions: list[str],
        predicted_answers: list[str],
        contexts: list[list[str]] | None = None,
        ground_truth_answers: list[str] | None = None,
    ) -> dict[str, Any]:
        """Judge the answers; `results` has the label, the explanation and the whole result line of each."""
        count = len(questions)
        passages = contexts if contexts is not None else [[] for _ in questions]
        expected = ground_truth_answers if ground_truth_answers is not None else [None for _ in questions]
        if not count == len(predicted_answers) == len(passages) == len(expected):
            raise ConfigError("questions, predicted_answers, contexts and ground_truth_answers differ in length")
        rows = zip(questions, predicted_answers, passages, expected, strict=True)
        scores = self.scorer.score([answer_sample(*row, id=str(n)) for n, row in enumerate(rows, start=1)])
        known = [one.value for one in scores if one.value is not None]
        return {
            "score": sum(known) / len(known) if known else None,
            "individual_scores": [one.value for one in scores],
            "results": [
                {"label": one.label, "explanation": one.explanation, "unjudged": one.unjudged, **one.verdict.line()}
                for one in scores
            ],
        }

    def to_dict(self) -> dict[str, Any]:
        saved: dict[str, Any] = default_to_dict(self, **self._given)
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackEvaluator:
        loaded: HaystackEvaluator = default_from_dict(cls, data)
        return loaded
