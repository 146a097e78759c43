"""Human labels: one label of one item by one person, under one version of the labelling policy.

A label is tied to what it is about: the sample, the item by number and text, and a digest of the judged text,
so that a label of one answer is never used for another answer of the same name.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError, field_validator

from steelyard.errors import InputError, LabelsDoNotFit, invalid_field
from steelyard.protocols import known_aspects, vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, Aspect
from steelyard.records import Record, Sample

# A spreadsheet cell with one of these at its front was given an apostrophe when it was written.
APOSTROPHED = ("'=", "'+", "'-", "'@", "'\t", "'\r")


class HumanLabel(Record):
    """One person's label of one item. `kind` says which of the item's labels: the name of an aspect in the vocabulary
    of the protocol, such as atom or support; one of the whole sample has no item."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    sample: str = Field(min_length=1)
    kind: str
    item: int | None = Field(default=None, ge=0, lt=2**31)
    turn: int | None = Field(default=None, ge=0, lt=2**31)
    label: str
    annotator: str = ""
    policy: str = Field(default="", description="version of the labelling guideline")
    time: str = ""
    run: str = Field(default="", description="the run whose items were labelled")
    about: str = Field(default="", description="digest of the judged text")
    text: str = Field(default="", description="what the item said")
    weight: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="how many samples of the run it speaks for"
    )
    note: str = ""
    adjudicated: bool = Field(default=False, description="whether it settles what people disagree on")

    @field_validator("adjudicated", mode="before")
    @classmethod
    def _blank_is_false(cls, value: Any) -> Any:
        return False if value in ("", None) else value

    @field_validator("item", "turn", mode="before")
    @classmethod
    def _blank_is_none(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("weight", mode="before")
    @classmethod
    def _blank_is_one(cls, value: Any) -> Any:
        return 1.0 if value in ("", None) else value

    @property
    def key(self) -> tuple[str, str, int | None, int | None]:
        """Which label of which item of which sample."""
        return self.sample, self.kind, self.turn, self.item


def digest(sample: Sample) -> str:
    """Twelve hex digits of the text that was judged: another answer to the same question has others."""
    apart = {"id", "tags", "model", "other_model", "answer_of", "date", "place", "source"}
    text = sample.model_dump_json(exclude=apart)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def is_whole(text: str) -> bool:
    """Whether a text has no halves of characters: JSON can name them, nothing can keep them."""
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


# --- the words people use --------------------------------------------------------------------------


def allowed(kind: str, protocol: str = "") -> tuple[str, ...]:
    """The labels a person may give, canonical; empty for a kind that does not exist. Without a protocol, those of all
    that are known here."""
    return _names(_aspects(kind, protocol))


def canonical(kind: str, word: str, protocol: str = "") -> str | None:
    """The canonical label for what a person wrote (`correct`, 正确, Correct); None where there is no such label."""
    return _canonical(_aspects(kind, protocol), word)


def _aspects(kind: str, protocol: str) -> Sequence[Aspect]:
    return (vocabulary(protocol).aspect(kind),) if protocol else known_aspects().get(kind, ())


def _names(aspects: Sequence[Aspect]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for aspect in aspects for name in aspect.names))


def _canonical(aspects: Sequence[Aspect], word: str) -> str | None:
    return next(filter(None, (aspect.canonical(word) for aspect in aspects)), None)


# --- files -----------------------------------------------------------------------------------------


def read_labels(path: Path) -> Iterator[HumanLabel]:
    """The labels of a JSONL or CSV file. A blank label is an item nobody labelled, and is passed over."""
    # Once a file: all protocols that are installed here are looked through for it.
    known = known_aspects()
    for line, row in _rows(path):
        if str(row.get("label") if row.get("label") is not None else "").strip() in ("", UNJUDGED):
            if "label" not in row:
                raise InputError("is missing", file=str(path), line=line, field="label")
            continue
        yield _label(row, path, line, known)


def _label(row: Mapping[str, Any], path: Path, line: int, known: Mapping[str, Sequence[Aspect]]) -> HumanLabel:
    for name, value in row.items():
        if isinstance(value, str) and not is_whole(value):
            problem = "holds half a character (a lone surrogate), which no file can keep; write the name or text anew"
            raise InputError(problem, file=str(path), line=line, field=name if is_whole(name) else None)
    try:
        given = HumanLabel.model_validate({name: value for name, value in row.items() if value is not None})
    except ValidationError as error:
        field, problem, _ = invalid_field(error)
        raise InputError(problem, file=str(path), line=line, field=field) from None
    aspects = known.get(given.kind, ())
    if not aspects:
        problem = f"there is no {given.kind!r}; there are {', '.join(known)}"
        raise InputError(problem, file=str(path), line=line, field="kind")
    label = _canonical(aspects, given.label)
    if label is None:
        choice = ", ".join(_names(aspects))
        raise InputError(f"{given.label!r} is not one of {choice}", file=str(path), line=line, field="label")
    return given.model_copy(update={"label": label})


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        # The mark at the front is what spreadsheets write, and what our own CSV sheets have.
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                # Spreadsheets in many countries write semicolons.
                head = file.readline()
                file.seek(0)
                for row in (reader := csv.DictReader(file, delimiter=max(",;\t", key=head.count))):
                    yield reader.line_num, {name: _plain(cell) for name, cell in row.items() if name}
                return
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise InputError(f"is not JSON: {error}", file=str(path), line=number) from None
                if not isinstance(row, dict):
                    raise InputError("is not an object", file=str(path), line=number)
                yield number, row
    except UnicodeDecodeError:
        raise InputError("is not in UTF-8; save it as “CSV UTF-8” or in UTF-8", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=str(path)) from None


def _plain(cell: str | None) -> str | None:
    return cell[1:] if cell and cell.startswith(APOSTROPHED) else cell


def label_line(label: HumanLabel) -> str:
    return json.dumps(label.model_dump(exclude_defaults=True), ensure_ascii=False) + "\n"


def write_labels(path: Path, labels: Iterable[HumanLabel]) -> int:
    """The labels as JSONL; returns how many."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for label in labels:
            file.write(label_line(label))
            count += 1
    return count


# --- policy ----------------------------------------------------------------------------------------


def of_one_policy(labels: Iterable[HumanLabel], policy: str | None = None) -> list[HumanLabel]:
    """The labels under one version of the policy. Two versions are two questions; their answers do not mix."""
    given = list(labels)
    versions = Counter(label.policy for label in given)
    if policy is not None:
        if given and policy not in versions:
            raise LabelsDoNotFit(
                f"no label was made under policy {policy!r}; there are {_listed(versions)}", "no_policy"
            )
        return [label for label in given if label.policy == policy]
    if len(versions) > 1:
        problem = f"the labels follow different policies: {_listed(versions)}; choose one with --policy"
        raise LabelsDoNotFit(problem, "several")
    return given


def _listed(versions: Counter[str]) -> str:
    return ", ".join(f"{version or '(none)'} ({n} labels)" for version, n in versions.most_common())
