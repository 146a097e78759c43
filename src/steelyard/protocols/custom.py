"""Helpers for a protocol with one kind of items: they make the ask, its reply, the items and the verdict.

The shapes of the ask and of the reply follow from the kind: one label for each of its aspects.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import create_model

from steelyard.protocols.common import (
    Collected,
    Options,
    collect,
    confident,
    in_parts,
    marked,
    prompt_language,
    status_of,
    too_long_reason,
    why_open,
)
from steelyard.protocols.scoring import plain, ratio
from steelyard.protocols.vocabulary import UNJUDGED, Kind, Number, Vocabulary
from steelyard.records import AnyItem, Ask, CustomItem, Data, Numbered, RagSample, Reply, ReplyData, Unjudged, Verdict
from steelyard.tasks import LabelledReply

Shown = str | tuple[str, ...]


class LabelledItems(NamedTuple):
    """The items of a sample with their labels, and what a verdict should mention beside them."""

    items: tuple[CustomItem, ...]
    flags: tuple[str, ...] = ()
    notes: Mapping[str, Any] = {}

    def verdict(self, sample: RagSample, protocol: Vocabulary) -> Verdict:
        """The verdict of these items, with the scores that the protocol counts from them."""
        verdict = Verdict(
            id=sample.id,
            protocol=protocol.name,
            status=status_of(self.items),
            scores={},
            items=self.items,
            flags=self.flags,
            notes=self.notes,
        )
        return verdict.model_copy(update={"scores": protocol.rescore(verdict) if protocol.rescore else {}})


def label_items(
    kind: Kind,
    items: tuple[Numbered, ...],
    options: Options,
    *,
    task: str,
    decided: Mapping[int, tuple[str, str]] | None = None,
    shown: Mapping[str, Shown],
) -> Generator[list[Ask], list[Reply | Unjudged], LabelledItems]:
    """Ask for the labels of these items. The prompt of `task` has a placeholder for the list of the kind
    (`listed_as`) and for each text in `shown`. Items that code has `decided` (id → label, reason) are not asked."""
    decided = decided or {}
    asked = tuple(item for item in items if item.id not in decided)
    found, flags = Collected(), list[str]()
    notes: dict[str, Any] = {}
    size = sum(len(text) for value in shown.values() for text in ((value,) if isinstance(value, str) else value))
    size += sum(len(item.text) for item in asked)
    if size > options.max_chars:
        flags.append("too_long")
        notes["reason"] = too_long_reason(size)
        found.reasons[_list_of(kind)] = dict.fromkeys((item.id for item in asked), "too_long")
    elif asked:
        shapes = tuple((name, isinstance(value, str)) for name, value in shown.items())
        data = _data_of(kind, shapes).model_validate({**shown, _list_of(kind): asked})
        language = prompt_language(*(item.text for item in asked))
        found = yield from collect(
            in_parts(Ask(task=task, language=language, data=data, reply=_reply_of(kind)), options.part_size)
        )
    of_asks, of_found = found.remarks()
    labelled = (_item(kind, item, found, decided.get(item.id)) for item in items)
    return LabelledItems(tuple(labelled), (*flags, *of_asks), notes | of_found)


def share(items: Iterable[AnyItem], kind: Kind, *labels: str) -> Number:
    """The share of a kind's labelled items that have one of these labels; null if none is labelled."""
    given = [getattr(item, kind.leading.field, UNJUDGED) for item in items if item.kind == kind.name]
    judged = [label for label in given if label != UNJUDGED]
    return plain(ratio(sum(label in labels for label in judged), len(judged)))


def _item(kind: Kind, item: Numbered, found: Collected, decided: tuple[str, str] | None) -> CustomItem:
    def labelled(labels: Mapping[str, str], reason: str) -> CustomItem:
        return CustomItem(kind=kind.name, id=item.id, text=item.text, reason=reason, **labels)

    if decided:
        return labelled({kind.leading.field: decided[0]}, decided[1])
    fields = [aspect.field for aspect in kind.aspects]
    label = found.label(_list_of(kind), item.id)
    if label is None:
        return labelled(dict.fromkeys(fields, UNJUDGED), found.reason(_list_of(kind), item.id))
    mark = found.mark(_list_of(kind), item.id)
    labels = {name: UNJUDGED if name in mark.open else getattr(label, name) for name in fields}
    made = confident(labelled(labels, why_open(mark) if mark.open else label.reason), label.confidence)
    return marked(made, mark, fields={name: name for name in fields})


def _list_of(kind: Kind) -> str:
    return kind.listed_as or kind.name


@cache
def _data_of(kind: Kind, shapes: tuple[tuple[str, bool], ...]) -> type[Data]:
    fields: dict[str, Any] = {name: (str if is_text else tuple[str, ...], ...) for name, is_text in shapes}
    fields[_list_of(kind)] = (tuple[Numbered, ...], ...)
    return create_model(f"{kind.name.title()}Data", __base__=Data, **fields)


@cache
def _reply_of(kind: Kind) -> type[ReplyData]:
    fields: dict[str, Any] = {aspect.field: (Literal[aspect.names], ...) for aspect in kind.aspects}
    label = create_model(f"{kind.name.title()}Label", __base__=LabelledReply, id=(int, ...), reason=(str, ""), **fields)
    label.leads = kind.leading.field
    label.aspects = {aspect.field: aspect.name for aspect in kind.aspects}
    label.amiss = {aspect.field: tuple(one.name for one in aspect.labels if one.is_against) for aspect in kind.aspects}
    lists: dict[str, Any] = {_list_of(kind): (list[label], ...)}
    return create_model(f"{kind.name.title()}Reply", __base__=ReplyData, **lists)
