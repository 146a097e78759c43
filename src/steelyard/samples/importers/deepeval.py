"""deepeval: test runs as it keeps them (`.deepeval/.latest_test_run.json`, `test_run_*.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from steelyard.samples.importers.content import messages_in, without_repeats
from steelyard.samples.importers.conversations import Conversation


def _run(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if "testRunData" in row:
        row = mapping_at(row, "testRunData")
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
    yield Imported({name: value for name, value in fields.items() if value is not None}, source, tuple(scores), case)


def _conversation(case: Mapping[str, Any], number: int, run: str, kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    id = plain_id(case.get("name")) or f"conversational_test_case_{number}"
    talk = Conversation(id, ids("deepeval", run=run, test_case=id, order=case.get("order")), case)
    turns = mappings_at(case, "turns")
    asked: list[str] = []
    for turn in turns:
        message = next(iter(messages_in([dict(turn)])), None)
        if message is None:
            skipped["turn without a role"] += 1
        elif message["role"] == "user":
            asked.append(message["content"])
        elif asked:
            retrieved = [text for text in list_at(turn, "retrievalContext") if isinstance(text, str)]
            talk.add("\n\n".join(asked), message["content"], references=without_repeats(retrieved))
            asked = []
    if asked:
        skipped["question that nobody answered"] += 1
    talk.system = text_at(case, "chatbotRole")
    talk.scores = list(_metrics(case, skipped))
    yield from talk.imported(kind, skipped)


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
    one_by_one(_run),
    signs=(
        signs("testCases.input testCases.actualOutput testCases.metricsData"),
        signs("conversationalTestCases.turns conversationalTestCases.metricsData"),
        signs("testRunData.testCases"),
    ),
    is_whole=True,
)
