"""deepeval: test runs as it keeps them (`.deepeval/.latest_test_run.json`, `test_run_*.json`), and datasets that
`EvaluationDataset.save_as` wrote, whose goldens may hold answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steelyard.errors import InputError
from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    ids,
    list_at,
    mapping_at,
    mappings_at,
    one_by_one,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import decoded, messages_in, without_repeats
from steelyard.samples.importers.conversations import OPEN_QUESTION, Conversation

DELIMITER: Final = "|"
"""Between the passages of a saved dataset, where a cell or a line holds them as one text."""
MARKED: Final = "deepeval_source="
"""What stands before a passage whose source is known, with the passage after `deepeval_context=`."""


def _record(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if "custom_column_key_values" in row:
        yield from _golden(row, kind, skipped)
    else:
        yield from _run(mapping_at(row, "testRunData") if "testRunData" in row else row, kind, skipped)


def _golden(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    """A line of a saved dataset, in the names of test cases."""
    id = plain_id(row.get("name"))
    if "turns" in row:
        turns = decoded(row["turns"])
        talk = Conversation(id, ids("deepeval", golden=id), row)
        _talk(talk, {"turns": turns if isinstance(turns, list) else []}, skipped)
        yield from talk.imported(kind, skipped)
        return
    case = {
        "input": row.get("input"),
        # An empty cell of a table is a golden that nobody has answered yet.
        "actualOutput": row.get("actual_output") or None,
        "expectedOutput": row.get("expected_output") or None,
        "retrievalContext": _passages(row.get("retrieval_context")),
        "context": _passages(row.get("context")),
    }
    yield from _answered(case, id, ids("deepeval", golden=id), kind, skipped)


def _passages(value: object) -> list[str]:
    listed = value.split(DELIMITER) if isinstance(value, str) and value else value
    texts = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return [text.partition("deepeval_context=")[2] if text.startswith(MARKED) else text for text in texts]


def _run(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    run = plain_id(row.get("identifier", row.get("testFile")))
    cases = mappings_at(row, "testCases")
    talks = mappings_at(row, "conversationalTestCases")
    if not cases and not talks:
        raise InputError("holds neither testCases nor conversationalTestCases", field="testCases")
    for number, case in enumerate(cases, 1):
        yield from _case(case, number, run, kind, skipped)
    for number, case in enumerate(talks, 1):
        yield from _conversation(case, number, run, kind, skipped)


def _case(case: Mapping[str, Any], number: int, run: str, kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    id = plain_id(case.get("name")) or f"test_case_{number}"
    source = ids("deepeval", run=run, test_case=id, order=case.get("order"))
    yield from _answered(case, id, source, kind, skipped)


def _answered(
    case: Mapping[str, Any], id: str, source: Mapping[str, str], kind: Kind, skipped: Skipped
) -> Iterator[Imported]:
    if case.get("actualOutput") is None:
        skipped["test case without an actual output"] += 1
        return
    scores = list(_metrics(case, skipped))
    if kind == "dialogue":
        talk = Conversation(id, source, case)
        talk.add(case.get("input"), case.get("actualOutput"))
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    retrieved = list_at(case, "retrievalContext")
    fields = {
        "id": id,
        "question": case.get("input"),
        "answer": case.get("actualOutput"),
        # As everywhere here: what was retrieved is judged, and the ideal context only where there is nothing else.
        "references": retrieved or list_at(case, "context"),
        "reference_answer": case.get("expectedOutput"),
        "tags": list_at(case, "tags"),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    yield Imported(given, source, tuple(scores), case)


def _conversation(case: Mapping[str, Any], number: int, run: str, kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    id = plain_id(case.get("name")) or f"conversational_test_case_{number}"
    talk = Conversation(id, ids("deepeval", run=run, test_case=id, order=case.get("order")), case)
    _talk(talk, case, skipped)
    talk.system = text_at(case, "chatbotRole")
    talk.scores = list(_metrics(case, skipped))
    yield from talk.imported(kind, skipped)


def _talk(talk: Conversation, case: Mapping[str, Any], skipped: Skipped) -> None:
    """Questions with their answers, and what was retrieved for them. What one side says in a row is one text."""
    asked: list[str] = []
    said: list[str] = []
    retrieved: list[str] = []

    def take() -> None:
        if asked and said:
            talk.add("\n\n".join(asked), "\n\n".join(said), references=without_repeats(retrieved))

    for turn in mappings_at(case, "turns"):
        message = next(iter(messages_in([dict(turn)])), None)
        if message is None:
            skipped["turn without a role"] += 1
        elif message["role"] == "user":
            if said:
                take()
                asked, said, retrieved = [], [], []
            asked.append(message["content"])
        elif asked:
            said.append(message["content"])
            retrieved += _passages(turn.get("retrievalContext", turn.get("retrieval_context")))
    take()
    if asked and not said:
        skipped[OPEN_QUESTION] += 1


def _metrics(case: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    for one in mappings_at(case, "metricsData"):
        if one.get("error"):
            skipped["metric that failed"] += 1
            continue
        name, by = text_at(one, "name"), text_at(one, "evaluationModel")
        yield from scored(skipped, name, one.get("score"), by=by, reason=text_at(one, "reason"))
        yield from scored(skipped, f"{name} passed", one.get("success"), by=by)


IMPORTER = Importer(
    "deepeval",
    "DeepEval",
    one_by_one(_record),
    signs=(
        signs("input actual_output custom_column_key_values"),
        signs("scenario turns custom_column_key_values"),
        signs("testCases.input testCases.actualOutput testCases.metricsData"),
        signs("conversationalTestCases.turns conversationalTestCases.metricsData"),
        signs("testRunData.testCases"),
    ),
    is_whole=True,
)
