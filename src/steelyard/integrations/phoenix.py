"""Phoenix: each score as an OpenInference annotation of the judged span, or of its trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.errors import MissingExtra
from steelyard.integrations.evaluations import Evaluation, JudgedRun
from steelyard.integrations.sending import Delivery, Refused, Request, deliver

try:
    import httpx
    from phoenix.client import Client
except ImportError:
    raise MissingExtra("arize-phoenix-client", "phoenix", "sending to Phoenix") from None

UNPROCESSABLE = (400, 404, 422)
"""What the server says of the annotations rather than of the caller: 404 is a span that it does not have."""


def send(run: JudgedRun, request: Request) -> Delivery:
    """To a server; without an address, where the PHOENIX_* variables say, with the key they name."""
    client = Client(base_url=request.where or None)

    def post(batch: Sequence[Evaluation]) -> None:
        spans = [annotation(one) for one in batch if one.ids.span_id]
        traces = [annotation(one) for one in batch if not one.ids.span_id]
        try:
            # Synchronously, or spans that the server does not have would be dropped in silence.
            if spans:
                client.spans.log_span_annotations(span_annotations=spans, sync=True)
            if traces:
                client.traces.log_trace_annotations(trace_annotations=traces, sync=True)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            why = f"{status} {error.response.text[:200].strip()}"
            raise Refused(why, final=status not in UNPROCESSABLE) from error
        except httpx.HTTPError as error:
            raise Refused(f"{error.request.url}: {error}", final=True) from error

    # The client has no way to close its connections but this.
    with client._client:
        return deliver(run.evaluations(), post, has_ids=lambda one: bool(one.ids.span_id or one.ids.trace_id))


def annotation(evaluation: Evaluation) -> Any:
    """The body that `/v1/span_annotations` and `/v1/trace_annotations` take. One with the same target, name and
    identifier replaces an earlier one."""
    ids = evaluation.ids
    unjudged = f"unjudged: {evaluation.error}" if evaluation.error else ""
    result = {
        "score": evaluation.value,
        "label": evaluation.label or unjudged,
        "explanation": evaluation.explanation or unjudged,
    }
    return {
        **({"span_id": ids.span_id} if ids.span_id else {"trace_id": ids.trace_id}),
        "name": evaluation.name,
        "annotator_kind": "LLM",
        "result": {name: value for name, value in result.items() if value not in (None, "")},
        "metadata": evaluation.details,
        "identifier": f"steelyard:{evaluation.run or evaluation.id}",
    }
