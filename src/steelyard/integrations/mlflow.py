"""MLflow: each score as a feedback assessment of the judged trace, and of its span where that is known."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.errors import MissingExtra
from steelyard.integrations.evaluations import Evaluation, JudgedRun
from steelyard.integrations.sending import Delivery, Refused, Request, deliver

try:
    import mlflow
    from mlflow.entities import AssessmentError, AssessmentSource, AssessmentSourceType, Feedback
    from mlflow.exceptions import MlflowException
except ImportError:
    raise MissingExtra("mlflow-skinny", "mlflow", "sending to MLflow") from None

ID = "steelyard.evaluation_id"


def send(run: JudgedRun, request: Request) -> Delivery:
    """To a tracking server or store; without an address, where MLFLOW_TRACKING_URI says."""
    before = mlflow.get_tracking_uri()
    if request.where:
        mlflow.set_tracking_uri(request.where)
    known: dict[str, dict[str, str]] = {}

    def post(batch: Sequence[Evaluation]) -> None:
        for one in batch:
            trace = one.ids.trace_id
            try:
                if trace not in known:
                    # Scores of a sample come one after another; nobody else's need to be remembered.
                    known.clear()
                    known[trace] = _assessments(trace)
                if already := known[trace].get(one.id):
                    mlflow.update_assessment(trace, already, feedback(one))
                else:
                    logged = mlflow.log_assessment(trace, feedback(one))
                    known[trace][one.id] = str(logged.assessment_id)
            except MlflowException as error:
                raise Refused(f"{trace}: {error}"[:300]) from error

    try:
        return deliver(run.evaluations(), post, has_ids=lambda one: bool(one.ids.trace_id))
    finally:
        mlflow.set_tracking_uri(before)


def feedback(evaluation: Evaluation) -> Feedback:
    error = AssessmentError(error_code=evaluation.error) if evaluation.error else None
    return Feedback(
        name=evaluation.name,
        value=evaluation.value,
        error=error,
        source=AssessmentSource(source_type=AssessmentSourceType.LLM_JUDGE, source_id=evaluation.judge),
        rationale=evaluation.explanation or evaluation.label or None,
        metadata=evaluation.details,
        span_id=evaluation.ids.span_id or None,
    )


def _assessments(trace: str) -> dict[str, str]:
    """The scores of ours that a trace has already: our id and MLflow's."""
    found = mlflow.get_trace(trace, silent=True)
    if found is None:
        raise Refused(f"there is no trace {trace}")
    return {one.metadata[ID]: one.assessment_id for one in found.info.assessments if ID in (one.metadata or {})}
