"""pydantic-evals: three rubrics through Dataset.evaluate."""

from meter import CONCURRENCY, DEADLINE, KEY, MODEL, URL, measured, report, samples
from pydantic_ai import ModelSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import LLMJudge

RUBRICS = {
    "faithfulness": "The passages in the input support every statement of the output",
    "relevance": "The output answers the question in the input",
    "correctness": "The output agrees with the expected output",
}
model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key=KEY))
judges = [
    LLMJudge(
        rubric,
        model,
        include_input=True,
        include_expected_output=name == "correctness",
        model_settings=ModelSettings(timeout=DEADLINE),
        score={"evaluation_name": name, "include_reason": True},
        assertion=False,
    )
    for name, rubric in RUBRICS.items()
]
rows = samples()
answers = {row["question"]: row["answer"] for row in rows}
cases = [
    Case(
        name=row["id"],
        inputs={"question": row["question"], "passages": row["references"]},
        expected_output=row["reference_answer"],
    )
    for row in rows
]


async def as_given(inputs: dict) -> str:
    return answers[inputs["question"]]


data = Dataset(name="bench", cases=cases, evaluators=judges)
with measured():
    result = data.evaluate_sync(as_given, max_concurrency=CONCURRENCY, progress=False)
report(
    {
        case.name: {name: case.scores[name].value if name in case.scores else None for name in RUBRICS}
        for case in result.cases
    }
)
