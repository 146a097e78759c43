"""`export`: scores of a run in other tools, with the tools' own packages, over real sockets and real files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from command import DIALOGUE, RAG, RECORDED, Steelyard, lines_of, write_lines
from receiver import Received, Receiver
from steelyard import MissingExtra, evaluate
from steelyard.integrations.evaluations import JudgedRun, moment
from steelyard.integrations.opentelemetry import emit
from steelyard.integrations.sending import export

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OTHER_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SOURCES: dict[str, dict[str, Any]] = {
    "car-tyre": {"tool": "langfuse", "trace_id": TRACE, "span_id": SPAN},
    "car-seat": {"tool": "langfuse", "trace_id": OTHER_TRACE},
    "library-overdue": {"tool": "app", "response_id": "chatcmpl-7"},
}


def judged(steelyard: Steelyard, sources: Mapping[str, Mapping[str, Any]] = SOURCES) -> list[dict[str, Any]]:
    """A run over the examples, some of which say where they come from; returns the rows."""
    rows = [row | ({"source": sources[row["id"]]} if row["id"] in sources else {}) for row in lines_of(RAG)]
    file = write_lines(Path("traced.jsonl"), rows)
    assert steelyard("run", file, "-p", "atomic", "-j", RECORDED, "--progress", "quiet").code == 0
    return rows


# --- OpenTelemetry ---------------------------------------------------------------------------------


def collected(receiver: Receiver) -> list[Any]:
    """The log records that arrived, as the protocol's own messages."""
    requests = [ExportLogsServiceRequest.FromString(request.body) for request in receiver.requests]
    return [
        record
        for request in requests
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]


def attributes(record: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}


def test_events_arrive_at_a_collector(steelyard: Steelyard) -> None:
    """Each score is an event on the judged span, with value, label, explanation and the judge's fingerprint; a sample
    with a response id only has that; samples without ids are counted; a second export repeats the same ids."""
    judged(steelyard)
    with Receiver(lambda _: (200, b"")) as collector:
        done = steelyard("export", "last", "--to", f"opentelemetry:{collector.url}")
        first = collected(collector)
        steelyard("export", "last", "--to", f"opentelemetry:{collector.url}/v1/logs")
        again = collected(collector)[len(first) :]
    assert {request.path for request in collector.requests} == {"/v1/logs"}
    assert done.code == 0
    # car-seat has a trace and no span: events have nowhere to go without one.
    assert "8 scores sent" in done.err
    assert "without trace or span ids" in done.err
    assert {record.event_name for record in first} == {"gen_ai.evaluation.result"}
    on_span = [record for record in first if record.span_id]
    assert {(record.trace_id.hex(), record.span_id.hex()) for record in on_span} == {(TRACE, SPAN)}
    told = {attributes(record)["gen_ai.evaluation.name"]: attributes(record) for record in on_span}
    assert set(told) == {f"atomic.{name}" for name in ("accuracy", "accuracy_strict", "coverage", "fallback")}
    accuracy = told["atomic.accuracy"]
    assert accuracy["gen_ai.evaluation.score.value"] == 1.0
    assert accuracy["gen_ai.evaluation.score.label"] == "correct"
    assert accuracy["gen_ai.evaluation.explanation"] == "5 correct"
    assert (accuracy["steelyard.judge"], accuracy["steelyard.sample"]) == ("recorded:replies", "car-tyre")
    assert len(accuracy["steelyard.judge.fingerprint"]) == 32
    by_response = [attributes(record) for record in first if not record.span_id]
    assert {one["gen_ai.response.id"] for one in by_response} == {"chatcmpl-7"}
    ids = [attributes(record)["log.record.uid"] for record in first]
    assert len(set(ids)) == len(ids)
    assert ids == [attributes(record)["log.record.uid"] for record in again]
    assert [record.time_unix_nano for record in first] == [record.time_unix_nano for record in again]


def test_events_join_the_span_of_an_application() -> None:
    """In Python, events go through a logger of one's own, to the trace that the application's SDK recorded; what could
    not be judged is an error and has no value."""
    with TracerProvider().get_tracer("app").start_as_current_span("chat") as span:
        ids = span.get_span_context()
    source = {"tool": "app", "trace_id": f"{ids.trace_id:032x}", "span_id": f"{ids.span_id:016x}"}
    sample = {"id": "1", "question": "When?", "answer": "At nine.", "references": ["At nine."], "source": source}
    results = evaluate([sample], "atomic", RECORDED)
    kept, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
    run = JudgedRun("r", "atomic", moment(None), lambda: zip(results.samples, results, strict=True))
    emit(run.evaluations(), provider.get_logger("test"))
    records = [one.log_record for one in kept.get_finished_logs()]
    assert {(one.trace_id, one.span_id) for one in records} == {(ids.trace_id, ids.span_id)}
    assert {one.attributes["error.type"] for one in records} == {"not_recorded"}
    assert not any("gen_ai.evaluation.score.value" in one.attributes for one in records)


def test_a_collector_that_refuses(steelyard: Steelyard) -> None:
    """What was not taken is counted, and the exit code says so."""
    judged(steelyard)
    with Receiver(lambda _: (400, b"")) as collector:
        done = steelyard("export", "last", "--to", f"opentelemetry:{collector.url}")
    assert done.code == 3
    assert "0 scores sent" in done.err
    assert "8 refused" in done.err


# --- Phoenix ---------------------------------------------------------------------------------------


def inserted(request: Received) -> tuple[int, Any]:
    return 200, {"data": [{"id": str(n)} for n, _ in enumerate(request.json["data"])]}


def test_phoenix_gets_annotations(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans, and traces where no span is known, are annotated in the documented form, with an identifier that makes a
    second export replace the first."""
    judged(steelyard)
    monkeypatch.setenv("PHOENIX_API_KEY", "key")
    with Receiver(inserted) as phoenix:
        done = steelyard("export", "last", "--to", f"phoenix:{phoenix.url}")
        steelyard("export", "last", "--to", f"phoenix:{phoenix.url}")
    assert done.code == 0, done.err
    assert "8 scores sent" in done.err
    assert phoenix.requests[0].headers["authorization"] == "Bearer key"
    bodies = {request.path.partition("?")[0]: request.json["data"] for request in phoenix.requests[:2]}
    accuracy = next(one for one in bodies["/v1/span_annotations"] if one["name"] == "atomic.accuracy")
    assert set(accuracy) == {"span_id", "name", "annotator_kind", "result", "metadata", "identifier"}
    assert (accuracy["span_id"], accuracy["annotator_kind"]) == (SPAN, "LLM")
    assert accuracy["result"] == {"score": 1.0, "label": "correct", "explanation": "5 correct"}
    wrong = next(one for one in bodies["/v1/trace_annotations"] if one["name"] == "atomic.accuracy")
    assert (wrong["trace_id"], wrong["result"]["score"], wrong["result"]["label"]) == (OTHER_TRACE, 0.0, "wrong")
    assert "第三排" in wrong["result"]["explanation"]
    keys = [[(one["name"], one["identifier"]) for one in request.json["data"]] for request in phoenix.requests]
    assert keys[:2] == keys[2:]


def test_a_span_that_phoenix_does_not_have(steelyard: Steelyard) -> None:
    """One unknown span is refused by itself; the others are annotated."""
    spans = {"car-tyre": SPAN, "car-seat": "00f067aa0ba902b7"}
    judged(steelyard, {id: {"tool": "phoenix", "span_id": span} for id, span in spans.items()})

    def answer(request: Received) -> tuple[int, Any]:
        unknown = [one["span_id"] for one in request.json["data"] if one["span_id"] != SPAN]
        return (404, {"detail": f"Spans with IDs {unknown} do not exist."}) if unknown else inserted(request)

    with Receiver(answer) as phoenix:
        done = steelyard("export", "last", "--to", f"phoenix:{phoenix.url}")
    assert done.code == 3
    assert "4 scores sent" in done.err
    assert "4 refused: 404" in done.err


@pytest.mark.parametrize("tool", ["phoenix", "langfuse"])
def test_a_wrong_key_is_told_once(tool: str, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that lets nobody in is not asked again."""
    judged(steelyard)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
    with Receiver(lambda _: (401, {"message": "Invalid credentials"})) as server:
        done = steelyard("export", "last", "--to", f"{tool}:{server.url}")
    assert len(server.requests) == 1
    assert done.code == 3
    assert "401" in done.err
    assert "sk" not in done.err.split()


# --- Langfuse --------------------------------------------------------------------------------------


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-1")


@pytest.mark.usefixtures("keys")
def test_langfuse_gets_scores(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of observations and traces in the documented form; id and time are the same in a second export, which is
    how Langfuse knows a score again."""
    judged(steelyard)
    with Receiver(lambda _: (202, {"message": "Accepted"})) as langfuse:
        monkeypatch.setenv("LANGFUSE_BASE_URL", langfuse.url)
        done = steelyard("export", "last", "--to", "langfuse")
        steelyard("export", "last", "--to", "langfuse")
    assert done.code == 0, done.err
    assert "8 scores sent" in done.err
    first, again = langfuse.requests
    assert first.path == "/api/public/scores"
    assert first.headers["authorization"] == "Basic cGstbGYtMTpzay1sZi0x"
    accuracy = next(one for one in first.json if one["name"] == "atomic.accuracy")
    assert (accuracy["traceId"], accuracy["observationId"], accuracy["value"]) == (TRACE, SPAN, 1.0)
    assert (accuracy["dataType"], accuracy["comment"]) == ("NUMERIC", "5 correct")
    assert accuracy["metadata"]["steelyard.judge.fingerprint"]
    of_trace = next(one for one in first.json if one["traceId"] == OTHER_TRACE)
    assert "observationId" not in of_trace
    assert first.json == again.json


@pytest.mark.usefixtures("keys")
def test_scores_that_langfuse_rejects(steelyard: Steelyard) -> None:
    """Of a batch that is taken in part, those that were rejected are found and counted."""
    judged(steelyard)

    def answer(request: Received) -> tuple[int, Any]:
        bad = [one for one in request.json if one["name"] == "atomic.coverage"]
        if not bad:
            return 202, {"message": "Accepted"}
        return 207, {
            "accepted": len(request.json) - len(bad),
            "rejected": len(bad),
            "errors": [{"message": "no config"}],
        }

    with Receiver(answer) as langfuse:
        done = steelyard("export", "last", "--to", f"langfuse:{langfuse.url}")
    assert done.code == 3
    assert "6 scores sent" in done.err
    assert "2 refused: no config" in done.err


def test_langfuse_without_keys(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that are missing are named."""
    judged(steelyard)
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY", raising=False)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
    done = steelyard("export", "last", "--to", "langfuse:http://127.0.0.1:1")
    assert (done.code, "set LANGFUSE_PUBLIC_KEY" in done.err) == (2, True)


@pytest.mark.usefixtures("keys")
def test_python_exports_results() -> None:
    """Results that no store keeps can be sent too; a score that could not be judged has no place in Langfuse."""
    source = {"tool": "langfuse", "trace_id": TRACE}
    row = next(row for row in lines_of(RAG) if row["id"] == "car-tyre")
    unknown = {"id": "x", "question": "When?", "answer": "At nine.", "references": ["At nine."], "source": source}
    with Receiver(lambda _: (202, {"message": "Accepted"})) as langfuse:
        done = export(evaluate([row | {"source": source}, unknown], "atomic", RECORDED), f"langfuse:{langfuse.url}")
    assert (done.sent, done.without_ids, done.refused) == (4, 0, 0)
    assert done.without_score == 4


# --- MLflow ----------------------------------------------------------------------------------------


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An MLflow store on disk."""
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    uri = (tmp_path / "mlruns").as_uri()
    mlflow.set_tracking_uri(uri)
    yield uri
    mlflow.set_tracking_uri(before)


# Theirs, while it records its first trace.
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred")
def test_mlflow_gets_assessments(steelyard: Steelyard, tracking: str) -> None:
    """Scores become feedback of the real trace and its span; a second export updates them and adds none; a trace that
    MLflow does not have is counted."""
    # Here, since each process that runs tests would load it otherwise.
    import mlflow

    with mlflow.start_span(name="rag") as span:
        span.set_outputs("answer")
    mlflow.flush_trace_async_logging()
    here = {"tool": "mlflow", "trace_id": span.trace_id, "span_id": span.span_id}
    judged(steelyard, {"car-seat": here, "car-tyre": {"tool": "mlflow", "trace_id": "tr-unknown"}})
    elsewhere = Path("elsewhere").absolute().as_uri()
    mlflow.set_tracking_uri(elsewhere)
    done = steelyard("export", "last", "--to", f"mlflow:{tracking}")
    assert mlflow.get_tracking_uri() == elsewhere
    assert done.code == 3
    assert "4 scores sent" in done.err
    assert "4 refused: there is no trace tr-unknown" in done.err
    steelyard("export", "last", "--to", f"mlflow:{tracking}")
    mlflow.set_tracking_uri(tracking)
    found = {one.name: one for one in mlflow.get_trace(span.trace_id).info.assessments}
    assert len(mlflow.get_trace(span.trace_id).info.assessments) == len(found) == 4
    accuracy = found["atomic.accuracy"]
    assert (accuracy.feedback.value, accuracy.span_id) == (0.0, span.span_id)
    assert (accuracy.source.source_type, accuracy.source.source_id) == ("LLM_JUDGE", "recorded:replies")
    assert "第三排" in accuracy.rationale
    assert accuracy.metadata["steelyard.judge.fingerprint"]


# --- Every Eval Ever -------------------------------------------------------------------------------

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def fields(*required: str, **types: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": types}


# The fields that schema 0.2.2 requires and restricts, as far as these records use them.
MODEL = fields("name", "id", name=TEXT, id=TEXT)
RECORD = fields(
    *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"),
    "evaluation_results",
    retrieved_timestamp={"type": "string", "pattern": "^[0-9]+$"},
    source_metadata=fields(
        *("source_type", "source_organization_name", "evaluator_relationship"),
        source_type={"enum": ["documentation", "evaluation_run"]},
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
    ),
    eval_library=fields("name", "version", name=TEXT, version=TEXT),
    model_info=MODEL,
    evaluation_results={
        "type": "array",
        "items": fields(
            *("evaluation_name", "source_data", "metric_config", "score_details"),
            source_data=fields("dataset_name", "source_type", source_type={"const": "other"}),
            metric_config=fields(
                *("lower_is_better", "score_type", "min_score", "max_score"),
                lower_is_better={"type": "boolean"},
                score_type={"const": "continuous"},
                additional_details={"type": "object", "additionalProperties": TEXT},
            ),
            score_details=fields("score", score=NUMBER),
        ),
    },
    detailed_evaluation_results=fields(
        "format", "file_path", format={"const": "jsonl"}, total_rows={"type": "integer"}
    ),
) | {"additionalProperties": True}
LINE = fields(
    *("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type", "input"),
    *("answer_attribution", "evaluation"),
    interaction_type={"enum": ["single_turn", "multi_turn", "agentic"]},
    input=fields("raw", "reference", raw=TEXT, reference={"type": "array", "items": TEXT}),
    evaluation=fields("score", "is_correct", score=NUMBER, is_correct={"type": "boolean"}),
)


def records_in(folder: Path) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    found = {}
    for file in folder.rglob("*.json"):
        record = json.loads(file.read_text("utf-8"))
        lines = lines_of(file.parent / record["detailed_evaluation_results"]["file_path"])
        found[record["model_info"]["id"]] = record, lines
    return found


def test_every_eval_ever_records(steelyard: Steelyard) -> None:
    """A record per model with means and intervals, and a line per score of a sample; the same files a second time."""
    models = {"car-tyre": "acme/small", "car-seat": "../../acme"}
    rows = [row | {"model": models.get(row["id"], "acme/large")} for row in lines_of(RAG)]
    file = write_lines(Path("named.jsonl"), rows)
    steelyard("run", file, "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    done = steelyard("export", "last", "--to", "every-eval-ever:out/records", "-O", "organization=Acme")
    assert done.code == 0, done.err
    files = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file() and "records" in str(path)}
    # Whatever the data call a model, its files stay in the folder.
    assert len(files) == 6
    assert {path.parts[:2] for path in files} == {("out", "records")}
    found = records_in(Path("out/records"))
    assert set(found) == {"acme/small", "acme/large", "../../acme"}
    for record, lines in found.values():
        jsonschema.validate(record, RECORD)
        assert record["detailed_evaluation_results"]["total_rows"] == len(lines)
        for line in lines:
            jsonschema.validate(line, LINE)
            assert line["evaluation_id"] == record["evaluation_id"]
        results = {one["evaluation_result_id"] for one in record["evaluation_results"]}
        assert {line["evaluation_result_id"] for line in lines} == results
    record, lines = found["acme/large"]
    accuracy = next(one for one in record["evaluation_results"] if one["evaluation_name"] == "atomic.accuracy")
    values = [line["evaluation"]["score"] for line in lines if line["evaluation_name"] == "atomic.accuracy"]
    assert accuracy["score_details"]["score"] == pytest.approx(sum(values) / len(values))
    assert accuracy["score_details"]["uncertainty"]["num_samples"] == len(values) == 3
    assert record["source_metadata"]["source_organization_name"] == "Acme"
    steelyard("export", "last", "--to", "every-eval-ever:out/records", "-O", "organization=Acme")
    assert {path: path.read_bytes() for path in files} == files


def test_every_eval_ever_takes_dialogues(steelyard: Steelyard) -> None:
    """A dialogue is a line with its messages; which model answered can be said for all."""
    steelyard("run", DIALOGUE, "-p", "dialogue", "-j", RECORDED, "--progress", "quiet")
    refused = steelyard("export", "last", "--to", "every-eval-ever:records")
    assert (refused.code, "which model answered" in refused.err) == (2, True)
    assert steelyard("export", "last", "--to", "every-eval-ever:records", "-O", "model=bot").code == 0
    (_, lines), *_ = records_in(Path("records")).values()
    for line in lines:
        jsonschema.validate(line, LINE)
        assert (line["interaction_type"], line["output"]) == ("multi_turn", None)
        assert [one["role"] for one in line["messages"][:3]] == ["system", "user", "assistant"]
        assert line["evaluation"]["num_turns"] == (len(line["messages"]) - 1) / 2


# --- what cannot be sent ---------------------------------------------------------------------------


def test_what_does_not_fit_is_told(steelyard: Steelyard) -> None:
    """A target, file or option that does not exist is one line that says what there is."""
    judged(steelyard)
    for words, told in (
        (["--to", "jira"], "tools are opentelemetry, phoenix, langfuse, mlflow, every-eval-ever"),
        (["--to", "out.docx"], "must end in .jsonl, .csv or .parquet"),
        (["--to", "phoenix", "--items"], "--items and --whole are for files"),
        (["--to", "out.csv", "-O", "model=x"], "--option is for tools"),
        (["--to", "phoenix", "-O", "model=x"], "phoenix has no option 'model'"),
        (["--to", "every-eval-ever"], "needs a folder"),
        (["--to", "every-eval-ever:x", "-O", "relationship=friend"], "relationship is one of"),
    ):
        done = steelyard("export", "last", *words)
        assert (done.code, told in done.err) == (2, True), done.err
        assert len(done.err.strip().splitlines()) == 1


PACKAGES = {
    "opentelemetry": ("opentelemetry.sdk._logs", "opentelemetry"),
    "phoenix": ("phoenix.client", "phoenix"),
    "langfuse": ("langfuse.api.client", "langfuse"),
    "mlflow": ("mlflow", "mlflow"),
    "mcp": ("mcp.server", "mcp"),
    "langchain": ("langchain_core.documents", "langchain"),
    "llama_index": ("llama_index.core.evaluation", "llama-index"),
    "dspy": ("dspy", "dspy"),
    "haystack": ("haystack", "haystack"),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tool's package, the error says which extra brings it."""
    package, extra = PACKAGES[name]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"steelyard.integrations.{name}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'steelyard\[{extra}\]'"):
        __import__(f"steelyard.integrations.{name}")


def test_source_of_a_row() -> None:
    """The ids of a row are kept as text; a `source` that names no tool is somebody's own column, and no row is lost."""
    given: list[Any] = [{"tool": "dify", "message_id": 7}, {"title": "Wiki"}, "wiki", ["a"], None]
    rows = [{"question": "q", "answer": "a", "source": source} for source in given]
    results = evaluate(rows, "atomic", RECORDED)
    assert [dict(sample.source) for sample in results.samples] == [{"tool": "dify", "message_id": "7"}, {}, {}, {}, {}]
    plain = evaluate([{"question": "q", "answer": "a"}], "atomic", RECORDED)
    # The same row has the same id, wherever it was taken from.
    assert results.samples[0].id == plain.samples[0].id
    assert "source" not in plain.samples[0].model_dump(mode="json")
