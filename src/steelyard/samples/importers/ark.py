"""火山方舟 Volcengine Ark: result files of batch inference and evaluation. `answer` is the reference there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.errors import InputError
from steelyard.samples import values
from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import Imported, Importer, Skipped, ids, one_by_one, plain_id, signs, text_at
from steelyard.samples.importers.conversations import Conversation


def _row(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    response, error = row.get("response"), row.get("error")
    if values.is_blank(response) and not values.is_blank(error):
        raise InputError(f"there is no response: {str(error)[:200]}", field="response")
    source = ids("ark", session_id=row.get("session_id"), endpoint_id=row.get("endpoint_id"))
    asked = row.get("prompt", row.get("query"))
    id = plain_id(row.get("id"))
    if kind == "dialogue":
        talk = Conversation(id, source, row, system=text_at(row, "system"))
        talk.add(asked, response)
        yield from talk.imported(kind, skipped)
        return
    if not values.is_blank(row.get("system")):
        skipped["system prompt (single answers have none)"] += 1
    # Further columns are the user's own, and are read by their names.
    rest = {name: value for name, value in row.items() if name not in ("answer", "response", "prompt", "query")}
    fields = {**rest, "question": asked, "answer": response}
    if "answer" in row:
        fields["reference_answer"] = row["answer"]
    yield Imported(fields, source, (), row)


IMPORTER = Importer(
    "ark",
    "火山方舟 Volcengine Ark",
    one_by_one(_row),
    signs=tuple(
        signs("answer response usage", asked, own)
        for asked in ("prompt", "query")
        for own in ("parameters", "error", "endpoint_id")
    ),
)
