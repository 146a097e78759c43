"""inspect-ai: it has no metrics for RAG, so three of its model graders with templates that ask for them.

Errors do not end the run.
"""

from inspect_ai import Task, eval, eval_retry, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import list_eval_logs
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import Generate, TaskState, solver
from meter import CONCURRENCY, DEADLINE, DOING, KEY, MODEL, URL, measured, report, samples

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


@task
def rag() -> Task:
    return Task(
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


OPTIONS = {"max_connections": CONCURRENCY, "max_samples": CONCURRENCY, "attempt_timeout": round(DEADLINE)}
OPTIONS |= {"fail_on_error": False, "display": "none", "log_level": "error"}

# eval_retry loads this file again to find the task.
if __name__ == "__main__":
    work = rag()
    model = get_model(f"openai/{MODEL}", base_url=URL, api_key=KEY, responses_api=False)
    with measured():
        if DOING == "resume":
            (log,) = eval_retry(list_eval_logs()[0], **OPTIONS)
        else:
            (log,) = eval(work, model=model, **OPTIONS)
    values = {}
    for sample in log.samples or []:
        scores = list((sample.scores or {}).values())
        grades = [GRADES.get(score.value) for score in scores] + [None] * (len(QUESTIONS) - len(scores))
        values[str(sample.id)] = dict(zip(QUESTIONS, grades, strict=True))
    report(values, status=log.status)
