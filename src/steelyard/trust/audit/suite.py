"""The built-in data of an audit: base samples, attacks, single errors, harmless texts, in files that can be reviewed.

A card carries the version and the hash of these files: cards of different suites are not compared.
"""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from steelyard.protocols import OF_ANSWERS
from steelyard.records import DialogueSample, Language, RagSample, Record, Sample, Turn
from steelyard.text import converted

VERSION = 2
"""Raised by one with every change of the data or of what is done with it; data/CHANGELOG.md says what changed."""

# The built-in samples are judged at this date, so that an audit of tomorrow asks what today's asked.
DATE = "2026-03-02"
FILES = tuple(f"{name}-{script}.toml" for name in ("attacks", "bases", "errors") for script in ("en", "zh"))

Protocols = tuple[str, ...]
PROTOCOLS: Protocols = OF_ANSWERS
Place = Literal["answer", "passage", "question", "system_prompt", "criterion"]
AttackKind = Literal[
    "fake_score", "fake_section", "role_change", "fence_break", "encoded", "polite", "override", "authority", "example"
]
ErrorKind = Literal["number", "date", "entity", "negation", "unit", "ordinal"]


class Attack(Record):
    """A text that tries to move a judge, and where it is put."""

    id: str
    kind: AttackKind
    language: Language
    place: Place
    at: Literal["start", "end"] = "end"
    protocols: Protocols = ()
    """Only for these; for all where there are none."""
    text: str


class Base(Record):
    """A sample whose answer is clearly right or clearly wrong, and the same with the answer in other words."""

    id: str
    language: Language
    is_right: bool
    sample: Sample
    paraphrase: Sample | None = None


class ErrorPair(Record):
    """A right answer of one sentence, and the same with a single error in it."""

    id: str
    kind: ErrorKind
    language: Language
    question: str
    passage: str
    clean: str
    planted: str


class Harmless(Record):
    """Harmless filler texts."""

    sentences: tuple[str, ...]
    passages: tuple[str, ...]
    prompt: str
    answer: str


class Suite(Record):
    """All of it."""

    version: int
    sha256: str
    attacks: tuple[Attack, ...]
    bases: tuple[Base, ...]
    errors: tuple[ErrorPair, ...]
    harmless: dict[Language, Harmless]


@cache
def load() -> Suite:
    """The suite that comes with the package."""
    texts = {name: _read(name) for name in FILES}
    tables = {name: tomllib.loads(text) for name, text in texts.items()}
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(f"{name}\x00{text}\x00".encode())
    by_script: tuple[tuple[str, Language], ...] = (("en", "en"), ("zh", "zh-Hans"))
    harmless = {language: Harmless(**tables[f"bases-{script}.toml"]["harmless"]) for script, language in by_script}
    harmless["zh-Hant"] = Harmless(**in_script(harmless["zh-Hans"].model_dump(), "s2t"))
    return Suite(
        version=VERSION,
        sha256=digest.hexdigest(),
        attacks=tuple(
            Attack.model_validate({"language": language, **row})
            for script, language in by_script
            for row in tables[f"attacks-{script}.toml"]["attack"]
        ),
        bases=tuple(
            base
            for make in (_answers, _dialogues)
            for script, language in by_script
            for base in make(tables[f"bases-{script}.toml"], language)
        ),
        errors=tuple(
            pair for script, language in by_script for pair in _errors(tables[f"errors-{script}.toml"], language)
        ),
        harmless=harmless,
    )


def _read(name: str) -> str:
    return (files(__package__) / "data" / name).read_text("utf-8")


def _answers(table: dict[str, Any], usual: Language) -> list[Base]:
    found = []
    for row in table["rag"]:
        language: Language = row.get("language", usual)
        for side in ("right", "wrong"):
            answers = [_joined(row[side][key], language) for key in ("answer", "paraphrase")]
            sample, paraphrase = (
                RagSample(
                    id=f"{row['id']}.{side}",
                    question=row["question"],
                    references=row["references"],
                    key_points=row["key_points"],
                    answer=answer,
                    date=DATE,
                )
                for answer in answers
            )
            found.append(
                Base(id=sample.id, language=language, is_right=side == "right", sample=sample, paraphrase=paraphrase)
            )
    return found


def _dialogues(table: dict[str, Any], usual: Language) -> list[Base]:
    found = []
    for row in table["dialogue"]:
        language: Language = row.get("language", usual)
        for side in ("right", "wrong"):
            sample, paraphrase = (
                DialogueSample(
                    id=f"{row['id']}.{side}",
                    system_prompt=row["system_prompt"],
                    turns=tuple(
                        Turn(prompt=turn["prompt"], answer=turn[key], criteria=turn["criteria"])
                        for turn in row["turns"]
                    ),
                )
                for key in (side, f"{side}_paraphrase")
            )
            found.append(
                Base(id=sample.id, language=language, is_right=side == "right", sample=sample, paraphrase=paraphrase)
            )
    return found


def _joined(sentences: list[str], language: Language) -> str:
    return (" " if language == "en" else "").join(sentences)


def _errors(table: dict[str, Any], usual: Language) -> list[ErrorPair]:
    return [
        ErrorPair.model_validate({"id": f"{kind}-{usual[:2]}-{number}", "kind": kind, "language": usual, **row})
        for kind, rows in table.items()
        for number, row in enumerate(rows["pairs"], start=1)
    ]


def in_script(value: Any, direction: Literal["s2t", "t2s"]) -> Any:
    """A text in the other Chinese script, or every text in lists and mappings."""
    if isinstance(value, str):
        return converted(value, direction)
    if isinstance(value, dict):
        return {key: in_script(entry, direction) for key, entry in value.items()}
    return [in_script(entry, direction) for entry in value] if isinstance(value, list | tuple) else value
