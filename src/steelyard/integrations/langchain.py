"""LangChain: an evaluator for `langsmith.evaluate`, which is how LangChain evaluates chains, and for single runs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors import ConfigError, MissingExtra
from steelyard.integrations.scorer import AnswerScore, AnswerScorer, answer_sample
from steelyard.records import RagSample

try:
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langsmith.evaluation import EvaluationResult, RunEvaluator
    from langsmith.schemas import Example, Run
except ImportError:
    raise MissingExtra("langchain-core", "langchain", "an evaluator for LangChain") from None

QUESTION = ("question", "input", "query", "user_input")
ANSWER = ("answer", "output", "response", "result")
PASSAGES = ("references", "contexts", "context", "source_documents", "documents")


class LangChainEvaluator(RunEvaluator):  # type: ignore[misc]
    """Takes question, answer and passages from a run's inputs and outputs, the expected answer from the example.

    `fields` names keys that are called otherwise: `{"answer": "reply"}`. What was retrieved may stand in the outputs
    (as documents or texts) or in the inputs.
    """

    def __init__(self, scorer: AnswerScorer | None = None, fields: Mapping[str, str] | None = None) -> None:
        self.scorer, self._fields = scorer or AnswerScorer(), dict(fields or {})

    @property
    def feedback_keys(self) -> list[str]:
        return [self.scorer.name]

    def evaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: uuid.UUID | None = None
    ) -> EvaluationResult:
        (found,) = self.scorer.score([self._sample(run, example)])
        return _result(found)

    async def aevaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: uuid.UUID | None = None
    ) -> EvaluationResult:
        (found,) = await self.scorer.score_async([self._sample(run, example)])
        return _result(found)

    def _sample(self, run: Run, example: Example | None) -> RagSample:
        given, said = dict(run.inputs or {}), dict(run.outputs or {})
        expected = dict((example.outputs if example else None) or {})
        given = {**dict((example.inputs if example else None) or {}), **given}
        answer = self._found(said, "answer", ANSWER)
        if answer is None:
            raise ConfigError(
                f"the run has no answer among its outputs ({', '.join(said) or 'none'}); name it in fields"
            )
        passages = self._found(said, "references", PASSAGES)
        if passages is None:
            passages = self._found(given, "references", PASSAGES)
        return answer_sample(
            _text(self._found(given, "question", QUESTION)),
            _text(answer),
            _texts(passages),
            _text(self._found(expected, "reference_answer", ("reference_answer", *ANSWER))),
        )

    def _found(self, values: Mapping[str, Any], field: str, usual: Sequence[str]) -> Any:
        names = (self._fields[field],) if field in self._fields else usual
        return next((values[name] for name in names if values.get(name) is not None), None)


def _result(found: AnswerScore) -> EvaluationResult:
    return EvaluationResult(
        key=found.name,
        score=found.value,
        value=f"unjudged: {found.unjudged}" if found.unjudged else found.label or None,
        comment=found.explanation or None,
        metadata={"judge": found.verdict.judge, "flags": list(found.verdict.flags)},
    )


def _text(value: Any) -> str:
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, Document):
        return str(value.page_content)
    return "" if value is None else str(value)


def _texts(value: Any) -> list[str]:
    parts = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [_text(part) for part in parts]
