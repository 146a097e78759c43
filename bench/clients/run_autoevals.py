"""autoevals: four scorers; its runner is a hosted service, so ours stands in.

A scorer may ask several things at once, so that the limit on requests is set where it can be: in the HTTP client.
"""

import asyncio
from functools import partial

import httpx2
import openai
from autoevals import Factuality, init
from autoevals.ragas import AnswerRelevancy, ContextRecall, Faithfulness
from meter import CONCURRENCY, DEADLINE, MODEL, at_once, by_sample, measured, report, samples

limits = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
init(openai.AsyncOpenAI(timeout=DEADLINE, http_client=openai.DefaultAsyncHttpxClient(limits=limits)))
SCORERS = {kind.__name__: kind(model=MODEL) for kind in (Faithfulness, AnswerRelevancy, ContextRecall, Factuality)}


async def score(name: str, row: dict) -> float | None:
    extra = {} if name == "Factuality" else {"context": row["references"]}
    given = {"input": row["question"], "output": row["answer"], "expected": row["reference_answer"]}
    return (await SCORERS[name].eval_async(**given, **extra)).score


jobs = {(row["id"], name): partial(score, name, row) for row in samples() for name in SCORERS}
with measured():
    values = asyncio.run(at_once(jobs))
report(by_sample(values))
