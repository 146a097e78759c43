"""Row types of the store: runs and their identity, replies, prompt texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import Field, TypeAdapter, field_validator

from steelyard.records import Record, Sample, Usage

SAMPLE: TypeAdapter[Sample] = TypeAdapter(Sample)
MetaValue = str | int | float | bool | None


class RunIdentity(Record):
    """The user's name, notes and tags of a run. The manifest says how a run came about and never changes; this may be
    edited at any time."""

    name: str = Field(default="", max_length=200)
    notes: str = Field(default="", max_length=100_000)
    tags: tuple[str, ...] = ()
    meta: Mapping[str, MetaValue] = Field(default_factory=dict, description="key=value, e.g. commit=1a2b3c")
    project: str = Field(default="", max_length=200)
    baseline: bool = Field(default=False, description="what other runs of its project are compared with")

    @field_validator("name", "notes", "project")
    @classmethod
    def _without_nul(cls, text: str) -> str:
        return text.replace("\0", "")  # PostgreSQL keeps none

    @field_validator("tags")
    @classmethod
    def _each_once(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if not all(tag.strip() for tag in tags):
            raise ValueError("a tag must not be empty")
        return tuple(dict.fromkeys(tag.strip() for tag in tags))


class RunRow(NamedTuple):
    """One run as the list shows it. `state` is running, stopped, complete or failed; what follows the manifest is its
    `RunIdentity`."""

    id: str
    number: int
    protocol: str
    judge: str
    state: str
    started: str
    finished: str | None
    manifest: dict[str, Any]
    name: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, MetaValue] = {}
    project: str = ""
    baseline: bool = False


class StoredReply(NamedTuple):
    """A journalled reply: the judge's data as JSON, its literal words, what it cost, and which run paid."""

    ask: str
    task: str
    judge: str
    reply: str
    raw: str
    usage: Usage
    run: str | None = None


class Wording(NamedTuple):
    """What a prompt said in one of its versions."""

    sha256: str
    prompt: str
    version: int
    text: str
