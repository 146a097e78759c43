"""A version of a set of samples as the input of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steelyard.errors import ConfigError, InputError, UnknownSet
from steelyard.protocols import Protocol
from steelyard.records import RagSample, Sample
from steelyard.store import SampleSet, Store
from steelyard.store.set_table import AT


class StoredSet:
    """The samples of one version of a set, read from the store on each iteration."""

    def __init__(self, store: Store, found: SampleSet, version: int | None = None) -> None:
        self._store, self.found = store, found
        self.version = store.set_version(found.id, version)

    @classmethod
    def named(cls, store: Store, reference: str, project: str | None = None) -> StoredSet:
        """`NAME` for the newest version, `NAME@3` for another one."""
        name, at, version = reference.partition(AT)
        if at and not (version.isascii() and version.isdigit() and len(version) < 10):
            raise ConfigError(f"{reference!r} names no version: write NAME{AT}NUMBER, for example {name}{AT}1")
        return cls(store, store.set_named(name, project), int(version) if at else None)

    @classmethod
    def recorded(cls, store: Store, data: dict[str, Any], run: str) -> StoredSet:
        """The version that an earlier run was made from."""
        try:
            made_from = data["set"]
            return cls(store, store.set_named(made_from["name"], made_from["project"]), made_from["version"])
        except UnknownSet as error:
            raise UnknownSet(f"run {run} was made from a set that is not there any more: {error}") from None

    def __len__(self) -> int:
        return self.version.samples

    def __iter__(self) -> Iterator[Sample]:
        return (one.sample for one in self._store.set_samples(self.found.id, self.version.version))

    def __str__(self) -> str:
        return f"{self.found.name}{AT}{self.version.version}"

    def rows(self, protocol: Protocol) -> Iterator[Sample | InputError]:
        """What this protocol can judge of it, and what it cannot."""
        for line, sample in enumerate(self, 1):
            problem = unfit(sample, protocol)
            yield InputError(problem[1], file=f"set {self}", line=line, field=problem[0]) if problem else sample

    @property
    def described(self) -> dict[str, Any]:
        """What the manifest says of it: enough to find the version again."""
        return {"project": self.found.project, "name": self.found.name, "version": self.version.version}


def unfit(sample: Sample, protocol: Protocol) -> tuple[str, str] | None:
    """The field that keeps a protocol from judging a sample, and why."""
    is_answer = isinstance(sample, RagSample)
    if is_answer == (protocol.kind == "dialogue"):
        field, problem = ("turns", "dialogues, not answers") if is_answer else ("answer", "answers, not dialogues")
        return field, f"is missing: {protocol.name} judges {problem}"
    if isinstance(sample, RagSample) and protocol.needs_question and not sample.question.strip():
        return "question", "is missing"
    if isinstance(sample, RagSample) and protocol.kind == "pair" and sample.other_answer is None:
        return "other_answer", "is missing"
    return None
