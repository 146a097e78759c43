"""Dify: the message export (`flask export-app-messages`, JSONL.GZ) and pages of `GET /v1/messages`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.errors import InputError
from steelyard.samples.columns import Kind
from steelyard.samples.files import Place, Rows
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    converted,
    ids,
    mappings_at,
    one_by_one,
    plain_id,
    signs,
    text_at,
)
from steelyard.samples.importers.conversations import Conversation
from steelyard.samples.importers.grouping import grouped

RATINGS = {"like": 1.0, "dislike": 0.0}
FEEDBACK = "feedback"


def _read(rows: Rows, kind: Kind, skipped: Skipped) -> Iterator[tuple[Place, Imported | InputError]]:
    if kind == "rag":
        yield from one_by_one(_message)(rows, kind, skipped)
        return
    for group in grouped(rows, lambda row: plain_id(row.get("conversation_id"))):
        if isinstance(group, tuple):
            yield group
            continue
        # A page of the API has the newest message first; the export has no dates and is in order.
        if all("created_at" in row for _, row in group):
            group.sort(key=lambda placed: str(placed[1]["created_at"]))
        first = group[0][1]
        conversation = plain_id(first.get("conversation_id"))
        talk = Conversation(conversation, ids("dify", conversation_id=conversation), first)
        for place, row in group:
            for at, message in converted(place, row, lambda row: _message(row, kind, skipped)):
                if isinstance(message, InputError):
                    yield at, message
                    continue
                talk.add(
                    row.get("query"),
                    row.get("answer"),
                    references=_passages(row),
                    source=message.source,
                    scores=message.scores,
                )
        for imported in talk.imported(kind, skipped):
            yield group[0][0], imported


def _message(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if "hit_count" in row and "question" in row:
        skipped["annotation (a wanted answer, none of the assistant's)"] += 1
        return
    if text_at(row, "error") and not text_at(row, "answer"):
        skipped["message that ended in an error"] += 1
        return
    if row.get("message_files"):
        skipped["file sent with a message"] += 1
    message = plain_id(row.get("message_id", row.get("id")))
    fields = {
        "id": message,
        "question": row.get("query"),
        "answer": row.get("answer"),
        "references": _passages(row),
    }
    source = ids("dify", conversation_id=row.get("conversation_id"), message_id=message, app_id=_app(row))
    yield Imported(fields, source, tuple(_feedback(row, skipped)), row)


def _passages(row: Mapping[str, Any]) -> list[str]:
    resources = mappings_at(row, "retriever_resources")
    resources.sort(key=lambda one: one["position"] if isinstance(one.get("position"), int) else 0)
    return [text for one in resources if (text := text_at(one, "content").strip("\n"))]


def _app(row: Mapping[str, Any]) -> object:
    return next((one.get("app_id") for one in _given(row) if one.get("app_id")), None)


def _given(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # The export has a list, the API one object.
    given = row.get("feedback")
    return [given] if isinstance(given, Mapping) else mappings_at(row, "feedback")


def _feedback(row: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    for one in _given(row):
        rating = one.get("rating")
        if rating is None:
            continue
        if rating not in RATINGS:
            skipped["feedback that is neither like nor dislike"] += 1
            continue
        person = plain_id(one.get("from_account_id")) or plain_id(one.get("from_end_user_id"))
        role = text_at(one, "from_source") or "user"
        by = f"{role}:{person}" if person else role
        yield ImportedScore(FEEDBACK, RATINGS[rating], by, True, text_at(one, "content"))


IMPORTER = Importer(
    "dify",
    "Dify",
    _read,
    signs=(
        signs("conversation_id message_id query answer retriever_resources feedback"),
        signs("conversation_id query answer retriever_resources message_files"),
    ),
)
