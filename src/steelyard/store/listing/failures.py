"""The failures of a run in groups: by label, by tag, by similar statements.

Made in one pass over the verdicts when somebody first looks, and kept until the run changes. The groups depend on
nothing but the verdicts and their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field
from pydantic_core import from_json

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary
from steelyard.records import Record
from steelyard.store import Store
from steelyard.store.listing.index import catch_up, keep, worked_out
from steelyard.text.likeness import fine_word_pieces, likeness

NAME = "failures"
# From this share of common wording on, two statements are much the same.
ALIKE = 0.5
# How much is looked at and kept; what is beyond is rare, and a page shows the largest groups only.
LONGEST_STATEMENT = 300
MOST_GROUPS = 5000
MOST_CANDIDATES = 64
MOST_SHOWN = 60
MOST_EXAMPLES = 8
MOST_TAGS = 30


class Failing(Record):
    """How many samples of a group fail: have at least one label that counts against them."""

    n: int
    failing: int


class Example(Record):
    """One item of a group and the sample it belongs to."""

    sample: str
    text: str


class FailureGroup(Record):
    """Items with the same bad label that are the same named item, or say much the same."""

    aspect: str
    label: str
    name: str = Field(default="", description="of an item that is one of a fixed set, such as a check")
    text: str = Field(description="the first of them, which the others are alike")
    n: int = Field(description="items")
    samples: int
    examples: tuple[Example, ...]


class Failures(Record):
    """The labels that count against the samples of a run, in groups."""

    n: int
    failing: int
    labels: Mapping[str, int] = Field(description="kind:label → samples that have it")
    tags: Mapping[str, Failing]
    groups: tuple[FailureGroup, ...]
    n_groups: int = Field(description="how many groups there are, also those that are left out here")


def failures(store: Store, run: str) -> Failures:
    """The failures of a run; where they are not known yet, this waits for them."""
    catch_up(store, run)
    made = known_failures(store, run)
    if made is None:
        made = _counted(store, run)
        keep(store, run, NAME, made.model_dump_json())
    return made


def known_failures(store: Store, run: str) -> Failures | None:
    kept = worked_out(store, run, NAME)
    return Failures.model_validate_json(kept) if kept else None


@dataclass
class _Group:
    text: str
    pieces: frozenset[str]
    n: int = 0
    samples: int = 0
    last: str | None = None
    examples: list[Example] = field(default_factory=list)

    def add(self, sample: str, text: str) -> None:
        self.n += 1
        if sample != self.last:
            self.samples += 1
            self.last = sample
            if len(self.examples) < MOST_EXAMPLES:
                self.examples.append(Example(sample=sample, text=text))


class _Grouping:
    """The items of one label. A statement joins the group whose first one it shares most of its wording with."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self._same: dict[str, int] = {}
        self._index: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, sample: str, text: str, name: str) -> None:
        known = self._same.get(name or text)
        if known is None:
            pieces = frozenset() if name else frozenset(p for p in fine_word_pieces(text) if not p[0].isdigit())
            known = self._closest(pieces)
            if known is None:
                known = self._new(text, pieces)
            if known is None:
                return
            if len(self._same) < 4 * MOST_GROUPS:
                self._same[name or text] = known
        self.groups[known].add(sample, text)

    def _closest(self, pieces: frozenset[str]) -> int | None:
        near = {at for piece in pieces for at in self._index.get(piece, ())[:MOST_CANDIDATES]}
        best = max(((likeness(pieces, self.groups[at].pieces), -at) for at in near), default=(0.0, 0))
        return -best[1] if best[0] >= ALIKE else None

    def _new(self, text: str, pieces: frozenset[str]) -> int | None:
        if len(self.groups) >= MOST_GROUPS:
            return None
        for piece in pieces:
            self._index[piece].append(len(self.groups))
        self.groups.append(_Group(text, pieces))
        return len(self.groups) - 1


def _counted(store: Store, run: str) -> Failures:
    vocab = vocabulary(next(store.query("SELECT protocol FROM runs WHERE id = ?", run))[0])
    labels: Counter[str] = Counter()
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    grouped: defaultdict[tuple[str, str, str], _Grouping] = defaultdict(_Grouping)
    n = failing = 0
    for id, sample, document in store.query("SELECT id, sample, verdict FROM samples WHERE run = ? ORDER BY seq", run):
        n += 1
        found = list(_against(from_json(document), vocab))
        failing += bool(found)
        labels.update({f"{aspect}:{label}" for aspect, label, *_ in found})
        for tag in dict.fromkeys(from_json(sample)["tags"]):
            tags[tag].update(n=1, failing=bool(found))
        for aspect, label, name, text in found:
            grouped[aspect, label, name].add(id, text[:LONGEST_STATEMENT], name)
    groups = [(key, group) for key, grouping in grouped.items() for group in grouping.groups]
    groups.sort(key=lambda entry: (vocab.severity(*entry[0][:2])[0], -entry[1].samples, entry[0], entry[1].text))
    ranked = sorted(tags.items(), key=lambda entry: (-entry[1]["failing"], entry[0]))
    return Failures(
        n=n,
        failing=failing,
        labels=dict(sorted(labels.items(), key=lambda entry: (-entry[1], entry[0]))),
        tags={tag: Failing(**counts) for tag, counts in ranked[:MOST_TAGS]},
        groups=tuple(
            FailureGroup(
                aspect=aspect,
                label=label,
                name=name,
                text=group.text,
                n=group.n,
                samples=group.samples,
                examples=tuple(group.examples),
            )
            for (aspect, label, name), group in groups[:MOST_SHOWN]
        ),
        n_groups=len(groups),
    )


def _against(verdict: Mapping[str, Any], vocab: Vocabulary) -> Iterator[tuple[str, str, str, str]]:
    """Every label that counts against a sample: aspect, label, name of the item, its text."""
    for item in verdict["items"]:
        for aspect in vocab.kind_of(item).aspects:
            label = item.get(aspect.field)
            if label is not None and aspect.label(label).is_against:
                yield aspect.name, str(label), item.get("name", ""), item["text"]
