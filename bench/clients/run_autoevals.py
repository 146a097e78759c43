"""autoevals: four scorers; its runner is a hosted service, so ours stands in."""

import asyncio
from functools import partial

import openai
from autoevals import Factuality, init
from autoevals.ragas import AnswerRelevancy, ContextRecall, Faithfulness
from meter import MODEL, at_once, by_sample, measured, report, samples

init(openai.AsyncOpenAI())
SCORERS = {kind.__name__: kind(model=MODEL) for kind in (Faithfulness, AnswerRelevancy, ContextRecall, Factuality)}


async def score(name: str, row: dict) -> float | None:
    extra = {} if name == "Factuality" else {"context": row["references"]}
    given = {"input": row["question"], "output": row["answer"], "expected": row["reference_answer"]}
    return (await SCORERS[name].eval_async(**given, **extra)).score


jobs = {(row["id"], name): partial(score, name, row) for row in samples() for name in SCORERS}
with measured():
    values = asyncio.run(at_once(jobs))
report(by_sample(values))
