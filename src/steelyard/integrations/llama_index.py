"""LlamaIndex: a `BaseEvaluator`, beside its own for faithfulness and relevancy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.errors import MissingExtra
from steelyard.integrations.scorer import AnswerScorer, answer_sample

try:
    from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
    from llama_index.core.prompts.mixin import PromptDictType
except ImportError:
    raise MissingExtra("llama-index-core", "llama-index", "an evaluator for LlamaIndex") from None


class LlamaIndexEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Passes where the score, as a share of its scale, is at least `threshold`."""

    def __init__(self, scorer: AnswerScorer | None = None, *, threshold: float = 1.0) -> None:
        self.scorer, self.threshold = scorer or AnswerScorer(), threshold

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        (found,) = await self.scorer.score_async([answer_sample(query, response, contexts, reference)])
        return EvaluationResult(
            query=query,
            response=response,
            contexts=list(contexts or ()),
            score=found.value,
            passing=None if found.value is None else found.value >= self.threshold,
            feedback=found.explanation or found.label or None,
            invalid_result=bool(found.unjudged),
            invalid_reason=found.unjudged or None,
        )

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Steelyard's prompts are files with versions (docs/prompts.md); none can be replaced from here."""
