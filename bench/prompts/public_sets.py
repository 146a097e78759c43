"""Labelled answers from the public sets in a folder of data (its README names them), in an order that means nothing.

Nothing of them is copied here; a missing file is left out and named.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.records import RagSample
from steelyard.text import HAN, sentences

MOST_SENTENCES = 3
MOST_PASSAGES = 2
# Of a passage, the sentences nearest to the answer up to so many characters: a small model on a CPU reads slowly.
LONGEST_PASSAGE = {"en": 300, "zh": 110}
LONGEST_ANSWER = {"en": 300, "zh": 120}
LONGEST_PAIR = {"en": 900, "zh": 120}
# Shorter ones are titles and page furniture.
SHORTEST_PASSAGE = 300
CLAIM_QUESTION = "Is this claim true?"


class Answer(NamedTuple):
    """An answer, and whether people found all of it supported by its passages."""

    sample: RagSample
    supported: bool


def answers(folder: Path, language: str, count: int) -> list[Answer]:
    """The first `count` answers: the sets by turns, and of each set supported and unsupported ones by turns."""
    halves: list[list[Answer]] = []
    for read in {"en": (_questions, _claims), "zh": (_news,)}[language]:
        found = [answer for answer in read(folder) if len(answer.sample.answer) <= LONGEST_ANSWER[language]]
        found.sort(key=lambda answer: hashlib.sha256(answer.sample.id.encode()).digest())
        halves += [[answer for answer in found if answer.supported is wanted] for wanted in (True, False)]
    chosen = [answer for answer in chain(*zip_longest(*halves)) if answer][:count]
    return [Answer(_shortened(sample, language), supported) for sample, supported in chosen]


def pairs(folder: Path, language: str, count: int) -> list[RagSample]:
    """The first `count` pairs of answers to one question, the short ones; nothing is said about which is better."""
    read = {"en": _rival_answers, "zh": _continuations}[language]
    found = [sample for sample in read(folder) if _longest(sample) <= LONGEST_PAIR[language]]
    found.sort(key=lambda sample: hashlib.sha256(sample.id.encode()).digest())
    return [_shortened(sample, language) for sample in found[:count]]


def _longest(sample: RagSample) -> int:
    return max(len(sample.answer), len(sample.other_answer or ""))


def _rival_answers(folder: Path) -> Iterator[RagSample]:
    for row in _rows(folder / "pairs_en_ragchecker.jsonl"):
        yield RagSample(
            id=row["id"],
            question=row["query"],
            answer=row["answer_1"]["response"],
            other_answer=row["answer_2"]["response"],
        )


def _continuations(folder: Path) -> Iterator[RagSample]:
    for row in _rows(folder / "keywords_zh_uhgeval.jsonl"):
        yield RagSample(
            id=row["id"],
            question=row["question"],
            answer=row["answer"],
            other_answer=row["true_answer"],
            references=tuple(row["passages"]),
        )


def _questions(folder: Path) -> Iterator[Answer]:
    for row in _rows(folder / "sentences_en_memerag.jsonl"):
        labels = {sentence["support"] for sentence in row["sentences"]}
        if len(row["sentences"]) > MOST_SENTENCES or "unclear" in labels:
            continue
        text = " ".join(sentence["text"].strip() for sentence in row["sentences"])
        sample = RagSample(
            id=f"memerag-{row['id']}",
            question=row["question"],
            answer=text,
            references=tuple(row["passages"]),
        )
        yield Answer(sample, labels == {"supported"})


def _claims(folder: Path) -> Iterator[Answer]:
    for row in _rows(folder / "support_en_factcheckgpt.jsonl"):
        if len(row["passages"][0]) >= SHORTEST_PASSAGE:
            passages = tuple(row["passages"])
            sample = RagSample(id=row["id"], question=CLAIM_QUESTION, answer=row["claim"], references=passages)
            yield Answer(sample, row["label"] == "supported")


def _news(folder: Path) -> Iterator[Answer]:
    """A news item goes on as it really did, or as a model had it go on; some bring the real one along."""
    for number, row in enumerate(_rows(folder / "keywords_zh_uhgeval.jsonl")):
        invented = bool(number % 2)
        # Some continuations break off in the middle of a heading.
        if not row["true_answer"].endswith("。") or "\n" in row["true_answer"]:
            continue
        sample = RagSample(
            id=row["id"],
            question=row["question"],
            answer=row["answer"] if invented else row["true_answer"],
            references=tuple(row["passages"]),
            reference_answer=row["true_answer"] if number % 4 == 1 else None,
        )
        yield Answer(sample, all(word["reasonable"] for word in row["keywords"]) if invented else True)


def _shortened(sample: RagSample, language: str) -> RagSample:
    """With the few passages that share most with the answer, each trimmed to what is nearest to it; in their order."""
    wanted = _pieces(sample.answer + (sample.reference_answer or ""))
    kept = sorted(sample.references, key=lambda passage: -len(wanted & _pieces(passage)))[:MOST_PASSAGES]
    nearest = [_trimmed(passage, wanted, LONGEST_PASSAGE[language]) for passage in sample.references if passage in kept]
    return sample.model_copy(update={"references": tuple(nearest)})


def _trimmed(passage: str, wanted: set[str], longest: int) -> str:
    lines = sentences(passage)
    room, kept = longest, set[int]()
    for index in sorted(range(len(lines)), key=lambda index: -len(wanted & _pieces(lines[index]))):
        if not kept or len(lines[index]) <= room:
            kept.add(index)
            room -= len(lines[index])
    return " ".join(lines[index] for index in sorted(kept))


def _pieces(text: str) -> set[str]:
    """What two texts can share: longer words, and pairs of Chinese characters."""
    return set(re.findall(r"[a-z0-9]{4,}", text.casefold())) | {
        text[at : at + 2] for at in range(len(text) - 1) if HAN.match(text[at]) and HAN.match(text[at + 1])
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        print(f"{path.name} is not there; its samples are left out")
        return
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
