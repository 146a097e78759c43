"""openevals: three of its prompts; it has no runner, so ours stands in."""

import asyncio
from functools import partial

from langchain_openai import ChatOpenAI
from meter import DEADLINE, MODEL, at_once, by_sample, measured, report, samples
from openevals.llm import create_async_llm_as_judge
from openevals.prompts import CORRECTNESS_PROMPT, RAG_GROUNDEDNESS_PROMPT, RAG_HELPFULNESS_PROMPT

PROMPTS = {
    "groundedness": (RAG_GROUNDEDNESS_PROMPT, {"context": "references", "outputs": "answer"}),
    "helpfulness": (RAG_HELPFULNESS_PROMPT, {"inputs": "question", "outputs": "answer"}),
    "correctness": (
        CORRECTNESS_PROMPT,
        {"inputs": "question", "outputs": "answer", "reference_outputs": "reference_answer"},
    ),
}
judge = ChatOpenAI(model=MODEL, timeout=DEADLINE)
JUDGES = {
    name: create_async_llm_as_judge(prompt=prompt, feedback_key=name, judge=judge, continuous=True)
    for name, (prompt, _) in PROMPTS.items()
}


async def score(name: str, row: dict) -> float:
    _, fields = PROMPTS[name]
    return (await JUDGES[name](**{to: row[source] for to, source in fields.items()}))["score"]


jobs = {(row["id"], name): partial(score, name, row) for row in samples() for name in PROMPTS}
with measured():
    values = asyncio.run(at_once(jobs))
report(by_sample(values))
