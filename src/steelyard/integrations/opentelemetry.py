"""OpenTelemetry: each score as an event `gen_ai.evaluation.result`, on the span that was judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from steelyard.errors import MissingExtra
from steelyard.integrations.evaluations import Evaluation, JudgedRun, TraceIds
from steelyard.integrations.sending import Delivery, Refused, Request, deliver

try:
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        InMemoryLogRecordExporter,
        LogRecordExportResult,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
except ImportError:
    raise MissingExtra("opentelemetry-sdk", "opentelemetry", "sending to OpenTelemetry") from None

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from opentelemetry.context import Context

EVENT = "gen_ai.evaluation.result"
LOGS = "v1/logs"
NANOSECONDS = 1_000_000_000


def send(run: JudgedRun, request: Request) -> Delivery:
    """To a collector by OTLP over HTTP; without an address, where the OTEL_EXPORTER_OTLP_* variables say."""
    exporter = OTLPLogExporter(endpoint=_endpoint(request.where))
    # The processors of the SDK keep to themselves whether the collector took anything.
    memory = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider(Resource.create({"service.name": "steelyard"}), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(memory))
    logger = provider.get_logger("steelyard")

    def post(batch: Sequence[Evaluation]) -> None:
        emit(batch, logger)
        events = memory.get_finished_logs()
        memory.clear()
        if exporter.export(events) is not LogRecordExportResult.SUCCESS:
            raise Refused("the collector did not take them; the log above says why", final=True)

    try:
        return deliver(run.evaluations(), post, has_ids=_has_ids)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
        provider.shutdown()


def emit(evaluations: Iterable[Evaluation], logger: Logger) -> None:
    """Emit events through a logger of your own; `send` does it with one that leads to a collector."""
    for one in evaluations:
        attributes = {
            "gen_ai.evaluation.name": one.name,
            "gen_ai.evaluation.score.value": one.value,
            "gen_ai.evaluation.score.label": one.label or None,
            "gen_ai.evaluation.explanation": one.explanation or None,
            "gen_ai.response.id": one.ids.response_id or None,
            "error.type": one.error or None,
            # Receivers that know it drop a record that they have already.
            "log.record.uid": one.id,
            **one.details,
        }
        logger.emit(
            timestamp=int(one.time.timestamp() * NANOSECONDS),
            context=_context(one.ids),
            severity_number=SeverityNumber.INFO,
            attributes={name: value for name, value in attributes.items() if value is not None},
            event_name=EVENT,
        )


def _endpoint(where: str) -> str | None:
    """The address of the signal, from that of the collector."""
    if not where:
        return None
    return where if where.endswith(LOGS) else f"{where.rstrip('/')}/{LOGS}"


def _has_ids(evaluation: Evaluation) -> bool:
    return _parent(evaluation.ids) is not None or bool(evaluation.ids.response_id)


def _context(ids: TraceIds) -> Context | None:
    parent = _parent(ids)
    return set_span_in_context(NonRecordingSpan(parent)) if parent else None


def _parent(ids: TraceIds) -> SpanContext | None:
    """The judged span, where both ids are those of OpenTelemetry."""
    try:
        trace, span = int(ids.trace_id, 16), int(ids.span_id, 16)
    except ValueError:
        return None
    parent = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return parent if parent.is_valid else None
