"""What the protocols share: asking until every item has a label or a reason, checking quotes, the verdict's frame."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from steelyard.records import (
    Again,
    AnyItem,
    Ask,
    CustomItem,
    Item,
    Mark,
    Numbered,
    RagSample,
    Reply,
    ReplyData,
    Sentence,
    Status,
    Unjudged,
    Verdict,
)
from steelyard.text import fold, language_of

PromptLanguage = Literal["zh", "en"]
Asking = Generator[list[Ask], list[Reply | Unjudged], "Collected"]
Problem = Callable[[str, Any], bool]
"""Given the field and the labelled item, whether its evidence does not hold."""

Labelled = TypeVar("Labelled", bound=Item)

MISSING = "missing_in_reply"
UNMARKED = Mark()
# Where the marks of what is about a reply as a whole stand: no list has this name.
WHOLE = ""


class Options(BaseModel):
    """The options of every protocol."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thorough: bool = False
    """One ask per item: dearer, and no item can colour another."""
    items_per_ask: int = Field(default=40, ge=1)
    """Longer lists are asked in parts, so that a reply is never cut off."""
    max_chars: int = Field(default=200_000, ge=1)
    """A sample with more text than this is not sent anywhere; it fails with the reason."""

    @property
    def part_size(self) -> int:
        return 1 if self.thorough else self.items_per_ask


def prompt_language(*texts: str) -> PromptLanguage:
    return "en" if language_of(*texts) == "en" else "zh"


def same_words(text: str) -> str:
    """What two texts share when they say the same in the same words. Signs inside count: C is not C++, 5 not -5."""
    return "".join(fold(text).casefold().split()).rstrip(".。;；,，!！")


def has_text(references: Iterable[str]) -> bool:
    """Whether there is anything to hold an answer against; a blank passage is none."""
    return any(passage and not passage.isspace() for passage in references)


def has_question(sample: RagSample) -> bool:
    """A summary, a translation or a report answers none."""
    return bool(sample.question.strip())


def rag_size(sample: RagSample) -> int:
    texts = (sample.question, sample.answer, sample.reference_answer or "")
    return sum(map(len, (*texts, *sample.references, *(sample.key_points or ()))))


def numbered(texts: Iterable[str]) -> tuple[Numbered, ...]:
    return tuple(Numbered(id=index, text=text) for index, text in enumerate(texts, start=1))


def in_parts(ask: Ask, size: int) -> list[Ask]:
    """The ask as several whose item lists hold at most `size` items each; an ask without items stays one."""
    parts: list[dict[str, tuple[int, ...]]] = []
    for name, items in ask.data.items().items():
        ids = tuple(item.id for item in items)
        pieces = [ids[i : i + size] for i in range(0, len(ids), size)]
        if size == 1:
            parts += [{name: piece} for piece in pieces]
            continue
        for index, piece in enumerate(pieces):
            if index == len(parts):
                parts.append({})
            parts[index][name] = piece
    if len(parts) <= 1:
        return [ask]
    return [ask.model_copy(update={"data": ask.data.only(part)}) for part in parts]


@dataclass
class Collected:
    """The labels of the replies, by list and id; for the others, the reason."""

    labels: dict[str, dict[int, Any]] = field(default_factory=dict)
    reasons: dict[str, dict[int, str]] = field(default_factory=dict)
    unverified: dict[str, set[int]] = field(default_factory=dict)
    replies: list[Any] = field(default_factory=list)
    marks: dict[str, dict[int, Mark]] = field(default_factory=dict)
    failures: list[Unjudged] = field(default_factory=list)
    invented: int = 0

    def label(self, name: str, id: int) -> Any | None:
        return self.labels.get(name, {}).get(id)

    def reason(self, name: str, id: int) -> str:
        return self.reasons.get(name, {}).get(id, MISSING)

    def mark(self, name: str, id: int) -> Mark:
        """How several judges came to the label; empty where one alone gave it."""
        return self.marks.get(name, {}).get(id, UNMARKED)

    def votes(self) -> dict[str, dict[str, Any]]:
        """What each voice said, for the verdict's notes: by list, id and field."""
        found = {
            name: {str(id): dict(mark.votes) for id, mark in sorted(by_id.items()) if mark.votes}
            for name, by_id in self.marks.items()
        }
        return {name or "reply": by_id for name, by_id in found.items() if by_id}

    def remarks(self, earlier: Iterable[Unjudged] = ()) -> tuple[list[str], dict[str, object]]:
        """Flags and notes of the verdict; `earlier` are failures of asks before this collection."""
        return remarks(self.votes(), self.invented, [*earlier, *self.failures])

    def absorb(self, ask: Ask, reply: Reply | Unjudged) -> None:
        """Take over every label that answers an item of the ask exactly once; drop and count what was invented."""
        if isinstance(reply, Unjudged):
            self.failures.append(reply)
            for name, items in ask.data.items().items():
                for item in items:
                    self.reasons.setdefault(name, {}).setdefault(item.id, reply.reason)
            return
        self.replies.append(reply.data)
        for id, mark in reply.marks.get(WHOLE, {}).items():
            self.marks.setdefault(WHOLE, {}).setdefault(id, mark)
        for name, items in ask.data.items().items():
            wanted = {item.id for item in items}
            answered: dict[int, list[ReplyData]] = {}
            for label in getattr(reply.data, name):
                if label.id in wanted:
                    answered.setdefault(label.id, []).append(label)
                else:
                    self.invented += 1
            for id, labels in answered.items():
                # Said twice and differently is not said at all.
                if len(labels) == 1 or all(label == labels[0] for label in labels):
                    self.labels.setdefault(name, {})[id] = labels[0]
                    if found := reply.marks.get(name, {}).get(id):
                        self.marks.setdefault(name, {})[id] = found
            for doubt in getattr(reply.data, "unsure", ()):
                if doubt.items == name and doubt.id in wanted - answered.keys():
                    self.reasons.setdefault(name, {})[doubt.id] = doubt.reason


def remarks(
    votes: Mapping[str, object], invented: int, failures: Sequence[Unjudged]
) -> tuple[list[str], dict[str, object]]:
    """What a verdict says of its asks, as flags and notes: votes, how many items were invented, the first failure."""
    notes: dict[str, object] = {"votes": votes} if votes else {}
    if invented:
        notes["invented"] = invented
    if failures:
        notes["failure"] = failures[0].detail or failures[0].reason
    return ["invented_items"] if invented else [], notes


def collect(asks: Sequence[Ask], unproven: Problem | None = None) -> Asking:
    """Ask, then ask once more about items without a label or with a quote that was not found.

    A label whose evidence still does not hold is kept as first given and listed in `unverified`.
    """
    collected = Collected()
    asks = list(asks)
    for ask, reply in zip(asks, (yield asks), strict=True):
        collected.absorb(ask, reply)

    again = [follow_up for ask in asks if (follow_up := _follow_up(ask, collected, unproven))]
    if again:
        first = {name: dict(labels) for name, labels in collected.labels.items()}
        marks = {name: dict(by_id) for name, by_id in collected.marks.items()}
        for ask, reply in zip(again, (yield again), strict=True):
            collected.absorb(ask, reply)
        if unproven:
            _keep_proven(first, marks, collected, unproven)
    return collected


def collect_all(*askings: Asking) -> Generator[list[Ask], list[Reply | Unjudged], list[Collected]]:
    """Several collections at once: what they ask next goes out as one round."""
    found: dict[int, Collected] = {}
    waiting = {at: next(asking) for at, asking in enumerate(askings)}
    while waiting:
        replies = iter((yield [ask for asks in waiting.values() for ask in asks]))
        for at, asks in list(waiting.items()):
            try:
                waiting[at] = askings[at].send([next(replies) for _ in asks])
            except StopIteration as finished:
                found[at] = finished.value
                del waiting[at]
    return [found[at] for at in range(len(askings))]


def _follow_up(ask: Ask, collected: Collected, unproven: Problem | None) -> Ask | None:
    missing: dict[str, tuple[int, ...]] = {}
    doubted: dict[str, tuple[int, ...]] = {}
    for name, items in ask.data.items().items():
        reasons, labels = collected.reasons.get(name, {}), collected.labels.get(name, {})
        ids = [item.id for item in items if item.id not in reasons]
        missing[name] = tuple(id for id in ids if id not in labels)
        doubted[name] = tuple(id for id in ids if unproven and id in labels and unproven(name, labels[id]))
    if not any(missing.values()) and not any(doubted.values()):
        return None
    wanted = {name: missing[name] + doubted[name] for name in missing}
    again = Again(missing=_named(missing), unverified=_named(doubted))
    return ask.model_copy(update={"data": ask.data.only(wanted), "again": again})


def _named(ids: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
    return tuple(f"{name} {id}" for name, found in ids.items() for id in found)


def _keep_proven(
    first: dict[str, dict[int, Any]], marks: dict[str, dict[int, Mark]], collected: Collected, unproven: Problem
) -> None:
    for name, labels in collected.labels.items():
        for id, label in labels.items():
            if unproven(name, label):
                labels[id] = first.get(name, {}).get(id, label)
                if id in first.get(name, {}) and id in marks.get(name, {}):
                    collected.marks[name][id] = marks[name][id]
                collected.unverified.setdefault(name, set()).add(id)


def marked(item: Labelled, *marks: Mark, fields: Mapping[str, str] | None = None) -> Labelled:
    """The item with what several judges have to say about its labels: how far they agreed, what a second pass changed.

    `fields` maps the judge's fields to those of the item; `{"label": "label"}` where nothing is said. The last mark
    says who gave the label.
    """
    if all(mark is UNMARKED for mark in marks):
        return item
    fields = fields or {"label": "label"}
    shares = [share for mark in marks for field, share in mark.shares.items() if field in fields]
    first = {fields[field]: said for mark in marks for field, said in mark.first.items() if field in fields}
    flags = [flag for mark in marks for flag in mark.flags]
    flags += ["split" for mark in marks if mark.open and "not_confirmed" not in mark.flags]
    # A sentence or a criterion has two labels; the one they agree on less is how sure they are of it.
    voted = {"confidence": round(min(shares), 4), "confidence_kind": "votes"} if shares else {}
    return item.model_copy(
        update={
            **voted,
            "judge": marks[-1].judge or None,
            "second_opinion": marks[-1].second_opinion,
            "first": first or None,
            "flags": tuple(dict.fromkeys((*item.flags, *flags))),
        }
    )


def confident(item: Labelled, confidence: float | None) -> Labelled:
    """The item with the probability that its judge gives to the label, where it gives one."""
    if confidence is None:
        return item
    return item.model_copy(update={"confidence": round(confidence, 4), "confidence_kind": "probability"})


def why_open(mark: Mark) -> str:
    """Why a label is left open: a split vote, or a finding that was not found again."""
    return "not_confirmed" if "not_confirmed" in mark.flags else "split"


def too_long(
    sample_id: str,
    protocol: str,
    scores: Iterable[str],
    flags: Iterable[str],
    size: int,
    items: tuple[AnyItem, ...] = (),
) -> Verdict:
    """The verdict on a sample that exceeds `max_chars`: failed, nothing was sent."""
    return Verdict(
        id=sample_id,
        protocol=protocol,
        status="failed",
        scores=dict.fromkeys(scores),
        items=items,
        flags=(*flags, "too_long"),
        notes={"reason": too_long_reason(size)},
    )


def too_long_reason(size: int) -> str:
    return f"the sample has {size} characters; raise the option max_chars to judge it"


def status_of(items: Iterable[AnyItem], failures: Iterable[str] = ()) -> Status:
    """judged when every item has a label, failed when none has and something went wrong, else partial."""
    states = [is_unjudged(item) for item in items] + [True for _ in failures]
    if not any(states):
        return "judged"
    return "failed" if all(states) else "partial"


def is_unjudged(item: AnyItem) -> bool:
    match item:
        case Sentence():
            return "unjudged" in (item.on_topic, item.support)
        case CustomItem():
            return "unjudged" in (item.model_extra or {}).values()
        case _:
            return item.label == "unjudged"
