"""RAGFlow: the sessions of a chat assistant (`GET /api/v1/chats/{id}/sessions`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    ids,
    list_at,
    mappings_at,
    one_by_one,
    plain_id,
    signs,
    text_at,
)
from steelyard.samples.importers.content import exchanges_in, messages_in
from steelyard.samples.importers.conversations import OPEN_QUESTION, Conversation


def _session(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    session = plain_id(row.get("id"))
    listed = mappings_at(row, "messages") or mappings_at(row, "message")
    talk = Conversation(session, ids("ragflow", session_id=session, chat_id=row.get("chat_id")), row)
    messages = messages_in(listed)
    if len(messages) != len(listed):
        skipped["session with a message that has no role"] += 1
        return
    found = list(exchanges_in(messages))
    if messages and messages[-1]["role"] == "user":
        skipped[OPEN_QUESTION] += 1
    references = _references(row, len(found), skipped)
    for number, (question, answer, at) in enumerate(found):
        said = listed[at]
        own = _chunks(said.get("reference"))
        talk.add(
            question,
            answer,
            references=own or references[number],
            source=ids("ragflow", message_id=said.get("id")),
            scores=list(_thumb(said)),
        )
    yield from talk.imported(kind, skipped)


def _references(row: Mapping[str, Any], answers: int, skipped: Skipped) -> list[list[str]]:
    """The passages of each answer: RAGFlow keeps one entry for every answer, some versions one for the greeting too."""
    given = [_chunks(one) for one in list_at(row, "reference")]
    if len(given) == answers + 1 and not given[0]:
        given = given[1:]
    if len(given) == answers:
        return given
    if any(given):
        skipped["session whose references cannot be matched to its answers"] += 1
    return [[] for _ in range(answers)]


def _chunks(reference: object) -> list[str]:
    if isinstance(reference, Mapping):
        reference = reference.get("chunks")
    if isinstance(reference, Mapping):
        reference = list(reference.values())
    chunks = [one for one in (reference if isinstance(reference, list) else []) if isinstance(one, Mapping)]
    found = (text_at(one, "content") or text_at(one, "content_with_weight") for one in chunks)
    return [text for text in found if text]


def _thumb(message: Mapping[str, Any]) -> Iterator[ImportedScore]:
    if isinstance(up := message.get("thumbup"), bool):
        yield ImportedScore("feedback", float(up), "user", True, text_at(message, "feedback"))


IMPORTER = Importer(
    "ragflow",
    "RAGFlow",
    one_by_one(_session),
    signs=(signs("chat_id id messages.role messages.content reference"),),
)
