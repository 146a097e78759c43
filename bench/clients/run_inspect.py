"""inspect-ai: it has no metrics for RAG, so three of its model graders with templates that ask for them."""

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import Generate, TaskState, solver
from meter import CONCURRENCY, KEY, MODEL, URL, measured, report, samples

QUESTIONS = {
    "faithfulness": "Do the passages support every statement of the submission?",
    "relevance": "Does the submission answer the question and nothing else?",
    "recall": "Do the passages contain everything that the expert's answer says?",
}
SHOWN = "\nPassages: {passages}\nQuestion: {question}\nSubmission: {answer}\nExpert: {criterion}\n{instructions}"
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0}


@solver
def as_given():
    """The answer is in the data; nothing is generated."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content(MODEL, state.metadata["given"])
        return state

    return solve


task = Task(
    dataset=MemoryDataset(
        [
            Sample(
                id=row["id"],
                input=row["question"],
                target=row["reference_answer"],
                metadata={"passages": "\n".join(row["references"]), "given": row["answer"]},
            )
            for row in samples()
        ]
    ),
    solver=as_given(),
    scorer=[model_graded_qa(template=question + SHOWN) for question in QUESTIONS.values()],
)
model = get_model(f"openai/{MODEL}", base_url=URL, api_key=KEY, responses_api=False)
with measured():
    (log,) = eval(
        task, model=model, max_connections=CONCURRENCY, max_samples=CONCURRENCY, display="none", log_level="error"
    )
values = {}
for sample in log.samples or []:
    scores = list((sample.scores or {}).values())
    grades = [GRADES.get(score.value) for score in scores] + [None] * (len(QUESTIONS) - len(scores))
    values[str(sample.id)] = dict(zip(QUESTIONS, grades, strict=True))
report(values, status=log.status)
