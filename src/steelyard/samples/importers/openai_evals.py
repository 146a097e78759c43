"""OpenAI Evals: output items of an eval run (API), and the record logs of the `evals` package."""

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
    ids,
    list_at,
    mapping_at,
    mappings_at,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import answer_in, messages_in, passages_beside, question_in
from steelyard.samples.importers.conversations import Conversation
from steelyard.samples.importers.grouping import grouped

WANTED = ("ideal", "expected", "expected_output", "reference_answer", "ground_truth", "correct_label")


def _read(rows: Rows, kind: Kind, skipped: Skipped) -> Iterator[tuple[Place, Imported | InputError]]:
    """Output items stand for themselves; the events of a log belong to samples."""
    for group in grouped(_items(rows), lambda row: plain_id(row.get("sample_id"))):
        if isinstance(group, tuple):
            yield group
            continue
        place, first = group[0]
        try:
            is_log = "sample_id" in first
            for imported in (
                _logged([row for _, row in group], kind, skipped) if is_log else _item(first, kind, skipped)
            ):
                yield place, imported
        except InputError as error:
            yield place, place.error(error.problem, error.field)


def _items(rows: Rows) -> Rows:
    """The items of a page of the API (`data`) one by one."""
    for place, row in rows:
        if isinstance(row, Mapping) and row.get("object") == "list":
            yield from ((place, item) for item in list_at(row, "data"))
        else:
            yield place, row


def _item(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if {"spec", "final_report"} & row.keys():
        return
    sample, given = mapping_at(row, "sample"), mapping_at(row, "datasource_item")
    said = answer_in(sample.get("output"))
    if said is None:
        skipped["item that ended in an error" if sample.get("error") else "item without an output"] += 1
        return
    place = plain_id(row.get("datasource_item_id"))
    source = ids("openai-evals", eval_id=row.get("eval_id"), run_id=row.get("run_id"), item_id=row.get("id"))
    scores: list[ImportedScore] = []
    for one in mappings_at(row, "results"):
        name = text_at(one, "name") or "grader"
        scores += scored(skipped, name, one.get("score"))
        scores += scored(skipped, f"{name} passed", one.get("passed"))
    messages = messages_in(sample.get("input"))
    asked = question_in(messages) if messages else question_in(given)
    yield from _sample(
        place or plain_id(row.get("id")), source, messages, asked, said, given, scores, row, kind, skipped
    )


def _logged(events: list[Mapping[str, Any]], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    first = events[0]
    id = plain_id(first.get("sample_id"))
    source = ids("openai-evals", run_id=first.get("run_id"), sample_id=id)
    sampled = [mapping_at(event, "data") for event in events if event.get("type") == "sampling"]
    if not sampled:
        skipped["sample of which no answer was recorded"] += 1
        return
    asked, said = sampled[-1].get("prompt"), sampled[-1].get("sampled")
    if len(sampled) > 1:
        skipped["further sampling of the same sample (its last one is taken)"] += len(sampled) - 1
    scores: list[ImportedScore] = []
    wanted: dict[str, object] = {}
    for event in events:
        data = mapping_at(event, "data")
        if event.get("type") == "match":
            scores += scored(skipped, "correct", data.get("correct"))
            wanted["expected"] = data.get("expected")
        elif event.get("type") == "metrics":
            for name, value in data.items():
                if isinstance(value, int | float):
                    scores += scored(skipped, name, value)
    messages = messages_in(asked)
    yield from _sample(id, source, messages, question_in(asked), answer_in(said), wanted, scores, first, kind, skipped)


def _sample(
    id: str,
    source: Mapping[str, str],
    messages: list[dict[str, str]],
    asked: str | None,
    said: str | None,
    given: Mapping[str, Any],
    scores: list[ImportedScore],
    record: Mapping[str, Any],
    kind: Kind,
    skipped: Skipped,
) -> Iterator[Imported]:
    if kind == "dialogue":
        talk = Conversation(id, source, record)
        if messages and said:
            talk.add_messages([*messages, {"role": "assistant", "content": said}], skipped)
        else:
            talk.add(asked, said)
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    wanted = next((given[name] for name in WANTED if given.get(name) is not None), None)
    fields = {
        "id": id,
        "question": asked,
        "answer": said,
        "references": passages_beside(given),
        "reference_answer": wanted if isinstance(wanted, str | list) else None,
    }
    yield Imported({name: value for name, value in fields.items() if value is not None}, source, tuple(scores), record)


IMPORTER = Importer(
    "openai-evals",
    "OpenAI Evals",
    _read,
    signs=(
        signs("datasource_item_id datasource_item results.name sample.input sample.output"),
        signs("data.datasource_item_id data.datasource_item data.sample.output"),
        signs("spec.eval_name spec.completion_fns"),
        signs("run_id event_id sample_id type data"),
    ),
    is_whole=True,
)
