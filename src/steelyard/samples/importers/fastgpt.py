"""FastGPT: results of an app evaluation, and the exported chat logs (`usage.csv`)."""

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
    mapping_at,
    one_by_one,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import decoded
from steelyard.samples.importers.conversations import Conversation

LOG = "chatDetails"
SCORES = ("accuracy", "relevance", "semanticAccuracy", "score")


def _record(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    return _log(row, kind, skipped) if LOG in row else _result(row, kind, skipped)


def _result(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if text_at(row, "errorMessage") and not text_at(row, "response"):
        skipped["question that ended in an error"] += 1
        return
    scores: list[ImportedScore] = [
        one for name in SCORES if row.get(name) not in (None, "") for one in scored(skipped, name, row[name])
    ]
    item = plain_id(row.get("_id", row.get("evalItemId", row.get("id"))))
    fields = {
        "id": item,
        "question": row.get("question"),
        "answer": row.get("response"),
        "reference_answer": row.get("expectedResponse") or None,
    }
    if decoded(row.get("history")):
        skipped["history before a question"] += 1
    if kind == "rag":
        yield Imported(fields, ids("fastgpt", item_id=item), tuple(scores), row)
        return
    talk = Conversation(item, ids("fastgpt", item_id=item), row)
    talk.add(row.get("question"), row.get("response"))
    talk.scores = scores
    yield from talk.imported(kind, skipped)


def _log(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    details = decoded(row[LOG])
    if not isinstance(details, list):
        raise InputError("expected a list of items, as the log export writes it", field=LOG)
    items = [item for item in details if isinstance(item, Mapping)]
    # The export leaves the role out: only the order tells who speaks.
    if len(items) % 2:
        skipped["chat with an odd number of items (the export does not say who speaks)"] += 1
        return
    chat = plain_id(row.get("chatId")) or (plain_id(items[0].get("id", items[0].get("_id"))) if items else "")
    talk = Conversation(chat, ids("fastgpt", chat_id=row.get("chatId")), row)
    for asked, said in zip(items[::2], items[1::2], strict=True):
        answer = _value(said.get("value"), skipped)
        answered = plain_id(said.get("id", said.get("_id")))
        talk.add(_value(asked.get("value"), skipped), answer, source=ids("fastgpt", message_id=answered), id=answered)
    yield from talk.imported(kind, skipped)


def _value(value: object, skipped: Skipped) -> str:
    """An item's text: as it is, or of its parts `{type: text, text: {content}}`."""
    value = decoded(value)
    if isinstance(value, str):
        return value
    texts: list[str] = []
    for part in value if isinstance(value, list) else []:
        if not isinstance(part, Mapping):
            continue
        content = part.get("text") if isinstance(part.get("text"), str) else mapping_at(part, "text").get("content")
        if isinstance(content, str):
            texts.append(content)
        else:
            skipped[f"part of type {str(part.get('type'))[:40]!r}"] += 1
    return "\n".join(texts)


IMPORTER = Importer(
    "fastgpt",
    "FastGPT",
    one_by_one(_record),
    signs=(
        signs(LOG),
        signs("question expectedResponse response semanticAccuracy"),
        signs("question expectedResponse response globalVariables"),
    ),
)
