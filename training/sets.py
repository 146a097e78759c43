"""The public labelled sets, in one shape, and the split that keeps learning and measuring apart.

The sets themselves are not part of this tree (see README.md); their folder is an argument.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

DATA = Path("../shared/data")
Part = Literal["train", "dev", "held_out"]
T = TypeVar("T")


class Row(NamedTuple):
    """One labelled claim. `document` names what rows share; no document stands in two parts of a split.

    `claim` is a sentence, except in uhgeval, where people labelled key words: there it is the key word and
    `context` the generated text it stands in.
    """

    set: str
    id: str
    document: str
    question: str
    claim: str
    passages: tuple[str, ...]
    label: str
    context: str = ""
    relevance: int | None = None

    @property
    def is_supported(self) -> bool:
        return self.label == "supported"


FILES: Mapping[str, str] = {
    "memerag": "sentences_en_memerag.jsonl",
    "factcheckgpt": "support_en_factcheckgpt.jsonl",
    "summedits": "support_en_summedits.jsonl",
    "begin": "support_en_begin.jsonl",
    "uhgeval": "keywords_zh_uhgeval.jsonl",
    "kvpi": "support_zh_kvpi.jsonl",
}
SETS = tuple(FILES)
# Its licence says that nothing may be trained on it, so all of it measures.
NEVER_TRAINED_ON = frozenset(("memerag",))
# The share of documents that a hash below the first bound, or the second, takes.
TRAIN_SHARE, DEV_SHARE = 0.50, 0.15


def part_of(document: str) -> Part:
    """The part of the split a document belongs to: the same on every machine, whatever else is in the set."""
    place = int.from_bytes(hashlib.sha256(document.encode("utf-8", "replace")).digest()[:8], "big") / 2**64
    if place < TRAIN_SHARE:
        return "train"
    return "dev" if place < TRAIN_SHARE + DEV_SHARE else "held_out"


def part_of_row(row: Row) -> Part:
    return "held_out" if row.set in NEVER_TRAINED_ON else part_of(row.document)


def load(name: str, data: Path = DATA) -> list[Row]:
    """All rows of one set."""
    lines = (json.loads(line) for line in (data / FILES[name]).read_text("utf-8").splitlines() if line.strip())
    if name == "memerag":
        return [row for line in lines for row in _memerag(line)]
    if name == "uhgeval":
        return [row for line in lines for row in _uhgeval(line)]
    return grouped([_row(name, line) for line in lines])


def rows(name: str, part: Part, data: Path = DATA) -> list[Row]:
    """The rows of one part of one set."""
    return [row for row in load(name, data) if part_of_row(row) == part]


def _row(name: str, line: Mapping[str, Any]) -> Row:
    passages = tuple(line["passages"])
    return Row(
        set=name,
        id=line["id"],
        document="\n".join(passages),
        question=line.get("question") or "",
        claim=line["claim"],
        passages=passages,
        label=line["label"],
    )


def _memerag(line: Mapping[str, Any]) -> Iterator[Row]:
    for number, sentence in enumerate(line["sentences"]):
        yield Row(
            set="memerag",
            id=f"{line['id']}-{number}",
            document=line["id"],
            question=line["question"],
            claim=sentence["text"],
            passages=tuple(line["passages"]),
            label=sentence["support"],
            context=" ".join(other["text"] for other in line["sentences"]),
            relevance=sentence.get("relevance"),
        )


def _uhgeval(line: Mapping[str, Any]) -> Iterator[Row]:
    for number, keyword in enumerate(line["keywords"]):
        yield Row(
            set="uhgeval",
            id=f"{line['id']}-{number}",
            document="\n".join(line["passages"]),
            question=line["question"],
            claim=keyword["keyword"],
            passages=tuple(line["passages"]),
            label="supported" if keyword["reasonable"] else "unsupported",
            context=line["answer"],
        )


def grouped(found: list[Row]) -> list[Row]:
    """Rows that share a passage or a claim share a document: the first passage of their group."""
    names: dict[str, str] = {}
    heads = grouped_by(found, lambda row: (f"claim {row.claim}", *(f"passage {passage}" for passage in row.passages)))
    return [row._replace(document=names.setdefault(head, row.document)) for row, head in zip(found, heads, strict=True)]


def grouped_by(found: Sequence[T], keys: Callable[[T], Sequence[str]]) -> list[str]:
    """For each thing the name of its group: things that share a key, directly or through others, are in one."""
    leader: dict[str, str] = {}

    def head(key: str) -> str:
        while (above := leader.setdefault(key, key)) != key:
            leader[key] = leader[above]
            key = leader[key]
        return key

    for one in found:
        first, *others = keys(one)
        for key in others:
            leader[head(key)] = head(first)
    return [head(keys(one)[0]) for one in found]
