"""arize-phoenix-evals: three evaluators over a frame. Its 5 requests a second are lifted; errors do not end the run."""

import asyncio
import json

import pandas
from meter import CONCURRENCY, DEADLINE, MODEL, measured, report, samples
from phoenix.evals import LLM, async_evaluate_dataframe
from phoenix.evals.metrics import CorrectnessEvaluator, DocumentRelevanceEvaluator, FaithfulnessEvaluator

llm = LLM(
    provider="openai",
    model=MODEL,
    client="openai",
    initial_per_second_request_rate=10_000.0,
    async_client_kwargs={"timeout": DEADLINE},
)
rows = samples()
frame = pandas.DataFrame(
    [
        {
            "input": row["question"],
            "output": row["answer"],
            "context": "\n".join(row["references"]),
            "document_text": "\n".join(row["references"]),
            "reference": row["reference_answer"],
        }
        for row in rows
    ]
)
evaluators = [kind(llm=llm) for kind in (FaithfulnessEvaluator, CorrectnessEvaluator, DocumentRelevanceEvaluator)]
with measured():
    judged = asyncio.run(
        async_evaluate_dataframe(
            dataframe=frame, evaluators=evaluators, concurrency=CONCURRENCY, hide_tqdm_bar=True, exit_on_error=False
        )
    )


def score(cell: object) -> float | None:
    said = json.loads(cell) if isinstance(cell, str) else cell
    return said.get("score") if isinstance(said, dict) else None


columns = [name for name in judged.columns if name.endswith("_score")]
report(
    {
        row["id"]: {name: score(line[name]) for name in columns}
        for row, (_, line) in zip(rows, judged.iterrows(), strict=True)
    }
)
