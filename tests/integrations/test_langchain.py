"""The evaluator for LangChain, driven by the real langsmith and langchain-core."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langsmith import Client, evaluate
from langsmith.schemas import Example, Run
from urllib3 import Retry

from steelyard import ConfigError
from steelyard.integrations.langchain import LangChainEvaluator
from steelyard.integrations.scorer import AnswerScorer


def example(row: dict[str, Any]) -> Example:
    outputs = {"answer": row["reference_answer"]}
    return Example(
        id=uuid.uuid4(), dataset_id=uuid.UUID(int=1), inputs={"question": row["question"]}, outputs=outputs,
        created_at=datetime.now(UTC),
    )  # fmt: skip


# Theirs: that results may stay here is a beta feature.
@pytest.mark.filterwarnings("ignore:.upload_results. parameter is in beta")
def test_a_chain_is_evaluated(scorer: AnswerScorer, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """`langsmith.evaluate` runs a chain over examples and gets our score, label and reasons for each, offline."""
    rows = {row["question"]: row for row in (right, wrong)}

    def answer(inputs: dict[str, Any]) -> dict[str, Any]:
        row = rows[inputs["question"]]
        documents = [Document(page_content=text) for text in row["references"]]
        return {"answer": AIMessage(row["answer"]), "source_documents": documents}

    chain = RunnableLambda(answer)
    results = evaluate(
        chain.invoke,
        data=[example(row) for row in (right, wrong)],
        evaluators=[LangChainEvaluator(scorer)],
        client=Client(api_key="none", api_url="http://127.0.0.1:1", auto_batch_tracing=False, retry_config=Retry(0)),
        upload_results=False,
        blocking=True,
    )
    found = {}
    for result in results:
        (one,) = result["evaluation_results"]["results"]
        found[result["example"].inputs["question"]] = one
    assert {one.key for one in found.values()} == {"atomic.accuracy"}
    assert found[right["question"]].score == 1
    assert (found[wrong["question"]].score, found[wrong["question"]].value) == (0.0, "wrong")
    assert "第三排" in found[wrong["question"]].comment


async def test_fields_that_are_called_otherwise(scorer: AnswerScorer, wrong: dict[str, Any]) -> None:
    """Names of inputs and outputs can be given; the asynchronous way gives the same score."""
    run = Run(
        id=uuid.uuid4(), name="bot", run_type="chain", start_time=datetime.now(UTC), trace_id=uuid.uuid4(),
        inputs={"ask": wrong["question"], "found": wrong["references"]}, outputs={"reply": wrong["answer"]},
    )  # fmt: skip
    evaluator = LangChainEvaluator(scorer, {"question": "ask", "answer": "reply", "references": "found"})
    assert (await evaluator.aevaluate_run(run)).score == 0
    with pytest.raises(ConfigError, match="reply"):
        LangChainEvaluator(scorer).evaluate_run(run)
