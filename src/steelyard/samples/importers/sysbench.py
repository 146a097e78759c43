"""SysBench: dialogues under a system prompt with criteria for every turn, and what its judge said of each."""

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
    signs,
    text_at,
)
from steelyard.samples.importers.content import exchanges_in, messages_in, system_in
from steelyard.samples.importers.conversations import Conversation

ANSWERS = {"是": 1.0, "否": 0.0}
MET = "criterion met"


def _dialogue(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    system = plain_id(row.get("system_id"))
    inferred = "infer_results" in row
    messages = messages_in(row.get("infer_results" if inferred else "messages"))
    if not messages:
        raise InputError("expected messages with roles", field="infer_results" if inferred else "messages")
    if not inferred:
        skipped["dialogue without a model's answers (the reference answers are taken)"] += 1
    talk = Conversation(
        system, ids("sysbench", system_id=system), row, system=text_at(row, "system_prompt") or system_in(messages)
    )
    if model := text_at(row, "infer_model"):
        talk.more["model"] = model
    talk.more["tags"] = [f"{name}:{row[name]}" for name in ("领域", "场景") if isinstance(row.get(name), str)]
    for turn, (question, answer, _) in enumerate(exchanges_in(messages), 1):
        criteria = mapping_at(row, "prompt_infos", question, "criteria")
        if not criteria:
            skipped["turn without criteria"] += 1
        by_id = {str(key): _criterion(one) for key, one in criteria.items()}
        said = mapping_at(row, "eval_results", question)
        talk.add(question, answer, criteria=list(by_id.values()), scores=list(_said(said, by_id, turn, skipped)))
    yield from talk.imported(kind, skipped)


def _criterion(one: object) -> str:
    entry = one if isinstance(one, Mapping) else {}
    content, type_ = text_at(entry, "criteria_content"), text_at(entry, "criteria_type")
    return f"{content} | {type_}" if type_ else content


def _said(
    result: Mapping[str, Any], criteria: Mapping[str, str], turn: int, skipped: Skipped
) -> Iterator[ImportedScore]:
    answers = {str(key): value for key, value in mapping_at(result, "评判结果").items()}
    numbers = {key: number for number, key in enumerate(criteria, 1)}
    for key, text in criteria.items():
        answer = answers.get(key)
        if answer is None:
            continue
        if answer not in ANSWERS:
            skipped["judgement that is neither 是 nor 否"] += 1
            continue
        reason = result.get("评判理由")
        yield ImportedScore(
            MET,
            ANSWERS[answer],
            reason=reason if isinstance(reason, str) else "",
            turn=turn,
            item=numbers[key],
            text=text,
        )


IMPORTER = Importer(
    "sysbench",
    "SysBench",
    one_by_one(_dialogue),
    signs=(signs("system_id system_prompt messages prompt_infos"),),
)
