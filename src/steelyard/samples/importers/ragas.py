"""ragas: evaluation datasets (single turns and `MultiTurnSample`) and tables of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from steelyard.samples import literals, values
from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    ids,
    list_at,
    one_by_one,
    plain_id,
    scored,
    signs,
)
from steelyard.samples.importers.content import messages_in
from steelyard.samples.importers.conversations import Conversation

OWN: Final = frozenset(
    "user_input retrieved_contexts reference_contexts retrieved_context_ids reference_context_ids response "
    "multi_responses reference rubrics rubric persona_name query_style query_length synthesizer_name "
    "reference_tool_calls reference_topics question answer contexts ground_truth ground_truths id sample_id tags model "
    "metadata".split()
)
"""The columns of a dataset; a number in any other is the score of a metric."""
TAKEN: Final = ("response", "retrieved_contexts", "reference", "question", "answer", "contexts", "ground_truth", "tags")


def _row(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    scores = [score for name, value in row.items() if name not in OWN for score in _metric(skipped, name, value)]
    id = plain_id(row.get("id", row.get("sample_id")))
    asked = _asked(row)
    for name in ("reference_contexts", "multi_responses"):
        if row.get(name):
            skipped[f"{name} (no field of a sample)"] += 1
    if messages := messages_in(asked):
        talk = Conversation(id, ids("ragas", sample_id=id), row)
        spoken = [one for one in messages if one["role"] != "tool"]
        skipped["tool message"] += len(messages) - len(spoken)
        talk.add_messages(spoken, skipped)
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    if kind == "dialogue":
        talk = Conversation(id, ids("ragas", sample_id=id), row)
        talk.add(row.get("user_input"), row.get("response"))
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    fields = {name: row[name] for name in TAKEN if row.get(name) is not None}
    if asked is not None:
        fields["question"] = row["user_input"]
    if id:
        fields["id"] = id
    if "response" not in fields and "answer" not in fields and (drafts := list_at(row, "multi_responses")):
        fields["response"] = drafts[0]
    yield Imported(fields, ids("ragas", sample_id=id), tuple(scores), row)


def _asked(row: Mapping[str, Any]) -> object:
    """The question, or the messages of a conversation; in a table these are a Python list, as pandas writes it."""
    given = row.get("user_input")
    try:
        return literals.parsed(given) if isinstance(given, str) else given
    except ValueError:
        return given


def _metric(skipped: Skipped, name: str, value: object) -> Iterator[ImportedScore]:
    found = values.plain(value)
    # Numbers of a JSON document are exact, and so is what they are read into.
    if isinstance(found, int | float | Decimal) or (isinstance(found, str) and found.strip()):
        if isinstance(found, str) and len(found) > 40:
            return iter(())
        return scored(skipped, name, found)
    return iter(())


IMPORTER = Importer(
    "ragas",
    "ragas",
    one_by_one(_row),
    # Of single turns every name is one that is read anyway; only the messages of a conversation are ragas' own.
    signs=(signs("user_input.content user_input.type"),),
)
