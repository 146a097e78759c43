"""The evaluator for LlamaIndex, driven by the real llama-index-core."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.schema import NodeWithScore, TextNode

from steelyard.integrations.llama_index import LlamaIndexEvaluator
from steelyard.integrations.scorer import AnswerScorer


def response(row: dict[str, Any]) -> Response:
    nodes = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in row["references"]]
    return Response(response=row["answer"], source_nodes=nodes)


def test_a_response_is_evaluated(scorer: AnswerScorer, wrong: dict[str, Any]) -> None:
    """A response of a query engine is judged against the nodes it came from."""
    found = LlamaIndexEvaluator(scorer, threshold=0.8).evaluate_response(wrong["question"], response(wrong))
    assert (found.score, found.passing, found.invalid_result) == (0.0, False, False)
    assert "第三排" in str(found.feedback)


# Theirs: the runner calls what they deprecated.
@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
async def test_batch_runner_takes_it(scorer: AnswerScorer, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """LlamaIndex's own batch runner works with it beside its own evaluators."""
    runner = BatchEvalRunner({"atomic": LlamaIndexEvaluator(scorer)}, workers=2)
    rows = (right, wrong)
    found = await runner.aevaluate_responses(
        queries=[row["question"] for row in rows], responses=[response(row) for row in rows]
    )
    assert [(one.score, one.passing) for one in found["atomic"]] == [(1.0, True), (0.0, False)]


async def test_what_was_not_judged_is_invalid(scorer: AnswerScorer) -> None:
    """An answer that the judge could not label has no score, and the result says why."""
    found = await LlamaIndexEvaluator(scorer).aevaluate("When?", "At nine.", ["It opens at nine."])
    assert (found.score, found.passing, found.invalid_result, found.invalid_reason) == (
        None,
        None,
        True,
        "not_recorded",
    )
