"""promptfoo: results of `promptfoo eval -o results.json` or `.jsonl`."""

from __future__ import annotations

import json
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
    mappings_at,
    one_by_one,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import messages_in, passages_beside, question_in
from steelyard.samples.importers.conversations import Conversation

WANTED = ("expected", "expected_output", "reference", "reference_answer", "ground_truth")


def _document(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if "results" not in row:
        yield from _result(row, "", kind, skipped)
        return
    inner = row["results"]
    results = inner.get("results") if isinstance(inner, Mapping) else inner
    if not isinstance(results, list):
        raise InputError("expected a list of results", field="results.results")
    for result in results:
        if isinstance(result, Mapping):
            yield from _result(result, plain_id(row.get("evalId")), kind, skipped)
        else:
            skipped["result that is no object"] += 1


def _result(row: Mapping[str, Any], evaluation: str, kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    output = mapping_at(row, "response").get("output")
    if output is None:
        skipped["result that ended in an error" if row.get("error") else "result without an output"] += 1
        return
    said = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    test, prompt = plain_id(row.get("testIdx")), plain_id(row.get("promptIdx"))
    # The id of a result is another one in every evaluation; its place is the same, so that two can be compared.
    id = f"{test}-{prompt}" if test and prompt else plain_id(row.get("id"))
    evaluation = evaluation or plain_id(row.get("evalId"))
    source = ids("promptfoo", eval_id=evaluation, result_id=row.get("id"), test=test, prompt=prompt)
    given = mapping_at(row, "vars") or mapping_at(row, "testCase", "vars")
    raw = mapping_at(row, "prompt").get("raw")
    provider = mapping_at(row, "provider")
    model = text_at(provider, "label") or text_at(provider, "id")
    scores = list(_scores(row, skipped))
    if kind == "dialogue":
        talk = Conversation(id, source, row)
        talk.more = {"model": model} if model else {}
        talk.add_messages([*(messages_in(raw) or _asked(raw)), {"role": "assistant", "content": said}], skipped)
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    fields = {
        "id": id,
        "question": question_in(given) if given else question_in(raw),
        "answer": said,
        "references": passages_beside(given),
        "reference_answer": next((given[name] for name in WANTED if isinstance(given.get(name), str)), None),
        "model": model or None,
    }
    if fields["question"] is None:
        fields["question"] = question_in(raw)
    yield Imported({name: value for name, value in fields.items() if value is not None}, source, tuple(scores), row)


def _asked(raw: object) -> list[dict[str, str]]:
    return [{"role": "user", "content": raw}] if isinstance(raw, str) else []


def _scores(row: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    graded = mapping_at(row, "gradingResult")
    yield from scored(skipped, "pass", row.get("success"), reason=text_at(graded, "reason"))
    yield from scored(skipped, "score", row.get("score"), reason=text_at(graded, "reason"))
    seen = {"pass", "score"}
    for name, value in {**mapping_at(graded, "namedScores"), **mapping_at(row, "namedScores")}.items():
        seen.add(name)
        yield from scored(skipped, name, value)
    for one in mappings_at(graded, "componentResults"):
        assertion = mapping_at(one, "assertion")
        name = text_at(assertion, "metric") or text_at(assertion, "type")
        if name in seen or not name:
            skipped["second assertion of the same kind in a test"] += bool(name) and not text_at(assertion, "metric")
            continue
        seen.add(name)
        yield from scored(skipped, name, one.get("score"), reason=text_at(one, "reason"))


IMPORTER = Importer(
    "promptfoo",
    "promptfoo",
    one_by_one(_document),
    signs=(
        signs("evalId results.results results.prompts"),
        signs("promptIdx testIdx testCase provider response"),
    ),
    is_whole=True,
)
