"""Langfuse: each score as a score of the judged observation, or of its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.errors import ConfigError, MissingExtra
from steelyard.integrations.evaluations import Evaluation, JudgedRun
from steelyard.integrations.sending import Delivery, Refused, Request, deliver

try:
    import httpx
    from langfuse.api.client import LangfuseAPI
    from langfuse.api.core.api_error import ApiError
    from langfuse.api.scores.types.create_score_batch_results import CreateScoreBatchResults
    from langfuse.api.scores.types.create_score_request import CreateScoreRequest
except ImportError:
    raise MissingExtra("langfuse", "langfuse", "sending to Langfuse") from None

CLOUD = "https://cloud.langfuse.com"
KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
SECONDS = 60
UNPROCESSABLE = (400, 404, 413, 422)


def send(run: JudgedRun, request: Request) -> Delivery:
    """To a server; without an address, where LANGFUSE_BASE_URL or LANGFUSE_HOST says, else to Langfuse's own."""
    environment = request.environment
    public, secret = _keys(environment)
    address = request.where or environment.get("LANGFUSE_BASE_URL") or environment.get("LANGFUSE_HOST") or CLOUD
    connection = httpx.Client(timeout=SECONDS, follow_redirects=True)
    client = LangfuseAPI(
        base_url=address,
        username=public,
        password=secret,
        x_langfuse_public_key=public,
        httpx_client=connection,
    )

    def post(batch: Sequence[Evaluation]) -> None:
        try:
            answer = client.scores.create(request=[score(one) for one in batch])
        except ApiError as error:
            why = f"{error.status_code} {str(error.body)[:200]}"
            raise Refused(why, final=error.status_code not in UNPROCESSABLE) from error
        except httpx.HTTPError as error:
            raise Refused(f"{address}: {error}", final=True) from error
        if isinstance(answer, CreateScoreBatchResults) and answer.rejected:
            # Those that were accepted replace themselves when the halves are sent again.
            raise Refused("; ".join(error.message for error in answer.errors)[:200] or "no reason given")

    with connection:
        return deliver(run.evaluations(), post, has_ids=lambda one: bool(one.ids.trace_id), needs_score=True)


def score(evaluation: Evaluation) -> CreateScoreRequest:
    """One with the same id and time replaces an earlier one."""
    body = {
        "id": evaluation.id,
        "trace_id": evaluation.ids.trace_id,
        "observation_id": evaluation.ids.span_id or None,
        "name": evaluation.name,
        "value": evaluation.value,
        "data_type": "NUMERIC",
        "comment": evaluation.explanation or evaluation.label or None,
        "metadata": evaluation.details,
        "timestamp": evaluation.time,
    }
    return CreateScoreRequest.model_validate({name: value for name, value in body.items() if value is not None})


def _keys(environment: Mapping[str, str]) -> tuple[str, str]:
    if missing := [name for name in KEYS if not environment.get(name)]:
        raise ConfigError(f"Langfuse needs the keys of a project: set {' and '.join(missing)}")
    return environment[KEYS[0]], environment[KEYS[1]]
