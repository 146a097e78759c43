"""Train the network that reads claims beside their spans: python -m training.reader --keep FOLDER

Needs torch (2.x, on the CPU) besides what training.train needs. The same rows as there, measured once and kept in the
folder; the weights go to src/steelyard/judges/embedded/weights/reader.npz, and training.train is to be run after it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from steelyard.judges.embedded.encoder import WORDS, Read, in_full
from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.meaning import SENTENCES, simplified
from steelyard.judges.embedded.reader import BEST, FARTHEST, HEADS, NOWHERE, WEIGHTS, Laid, Shown, laid
from training.measuring import Measured
from training.sets import DATA
from training.train import LEARNED, SEED, TELLS_APART, saved, usable, weights_of

EPOCHS, BATCH, RATE, DECAY, DROPPED = 4, 48, 1.5e-3, 0.05, 0.25
SIZE, COMPARED, MEASURED, THOUGHT = 96, 144, 32, 64
RANKS = 6
# How much it counts to tell what is contradicted from what is not to be found.
TOLD = 0.3
DIRECTIONS, SOME_TEXTS = 160, 6000


class Net(nn.Module):
    """As `steelyard.judges.embedded.reader.Network`, for learning. Names are those of the weights."""

    def __init__(self, words: int, features: int) -> None:
        super().__init__()
        self.inward, self.inward_norm = nn.Linear(words, SIZE), nn.LayerNorm(SIZE)
        self.ask, self.offer = nn.Linear(SIZE, SIZE * HEADS), nn.Linear(SIZE, SIZE * HEADS)
        self.near, self.same = nn.Parameter(torch.full((HEADS,), 4.0)), nn.Parameter(torch.full((HEADS,), 2.0))
        self.rank = nn.Parameter(torch.zeros(RANKS, HEADS))
        self.compare = nn.Linear(SIZE + 3 * SIZE * HEADS + 2 + 2 * HEADS, COMPARED)
        self.around, self.around_norm = nn.Linear(3 * COMPARED, COMPARED), nn.LayerNorm(COMPARED)
        self.weigh = nn.Linear(COMPARED, 2)
        self.measured = nn.Linear(features, MEASURED)
        self.think, self.say = nn.Linear(4 * COMPARED + MEASURED, THOUGHT), nn.Linear(THOUGHT, 3)
        self.drop = nn.Dropout(DROPPED)

    def forward(self, block: Laid, features: Tensor) -> Tensor:
        words, ids, spans_read, span_ids, ranks = (torch.from_numpy(each) for each in block)
        is_word, empty = (ids > 0).unsqueeze(-1), (span_ids == 0).unsqueeze(1)
        claim = self.inward_norm(self.inward(self.drop(words))) * is_word
        spans = self.inward_norm(self.inward(self.drop(spans_read))) * ~empty.transpose(1, 2)
        near = functional.normalize(words, dim=-1) @ functional.normalize(spans_read, dim=-1).transpose(1, 2)
        same = (ids.unsqueeze(2) == span_ids.unsqueeze(1)).float()
        in_best = ((ranks == BEST) & (span_ids > 0)).float()
        asking, offering = self.ask(claim).split(SIZE, dim=-1), self.offer(spans).split(SIZE, dim=-1)
        parts, nearness, on_best = [claim], [], []
        for head in range(HEADS):
            pull = asking[head] @ offering[head].transpose(1, 2) / math.sqrt(SIZE)
            pull = pull + self.near[head] * near + self.same[head] * same + self.rank[ranks, head].unsqueeze(1)
            look = pull.masked_fill(empty, NOWHERE).softmax(-1)
            found = look @ spans
            parts += [found, (claim - found).abs(), claim * found]
            nearness.append((look * near).sum(-1, keepdim=True))
            on_best.append(look @ in_best.unsqueeze(-1))
        nearest = near.masked_fill(empty, -1).amax(-1, keepdim=True)
        there = same.masked_fill(empty, 0).amax(-1, keepdim=True)
        beside = torch.cat([*parts, nearest, there, *nearness, *on_best], -1)
        compared = _bent(self.compare(self.drop(beside))) * is_word
        apart = functional.pad(compared, (0, 0, 1, 1))
        neighbours = torch.cat([apart[:, :-2], apart[:, 1:-1], apart[:, 2:]], -1)
        seen = self.around_norm(compared + _bent(self.around(neighbours))) * is_word
        weight = self.weigh(seen).masked_fill(~is_word, NOWHERE).softmax(1)
        whole = torch.cat(
            [
                seen.sum(1) / is_word.sum(1).clamp(min=1),
                seen.masked_fill(~is_word, NOWHERE).amax(1),
                (weight[:, :, :1] * seen).sum(1),
                (weight[:, :, 1:] * seen).sum(1),
            ],
            -1,
        )
        thought = _bent(self.think(torch.cat([self.drop(whole), _bent(self.measured(features))], -1)))
        said: Tensor = self.say(self.drop(thought))
        return said


def _bent(values: Tensor) -> Tensor:
    return functional.gelu(values, approximate="tanh")


class Lessons:
    """Measured rows with all that the network reads of them."""

    def __init__(self, rows: Measured) -> None:
        self.rows = rows
        self.known: dict[str, Read] = {}
        texts = sorted({text for claim, spans in rows.beside for text in (claim, *(span for *_, span in spans))})
        for at in range(0, len(texts), BATCH):
            some = texts[at : at + BATCH]
            self.known.update(zip(some, map(_halved, SENTENCES.read(some)), strict=True))
        self.mean, self.spread = rows.features.mean(axis=0), rows.features.std(axis=0) + 1e-6
        sizes = [sum(len(self.known[text].pieces) for *_, text in spans) for _, spans in rows.beside]
        self.sizes = np.array(sizes, dtype=np.float64)

    def block(self, chosen: Sequence[int] | NDArray[np.int64]) -> tuple[Laid, Tensor]:
        held = [self.rows.beside[at] for at in chosen]
        claims = [self.known[claim] for claim, _ in held]
        shown = [[Shown(rank, self.known[text]) for rank, _, text in spans] for _, spans in held]
        scaled = np.clip((self.rows.features[chosen] - self.mean) / self.spread, -FARTHEST, FARTHEST)
        return laid(claims, shown), torch.from_numpy(scaled.astype(np.float32))

    def batches(self, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """All rows in an order of chance, those of like size together."""
        order = np.argsort(self.sizes + 50 * random.random(len(self.sizes)))
        cut = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        random.shuffle(cut)
        yield from cut


def _halved(read: Read) -> Read:
    return read._replace(words=read.words.astype(np.float16))


class Marks:
    """What people said of rows, and what a network loses by saying otherwise."""

    def __init__(self, rows: Measured, weights: NDArray[np.float64]) -> None:
        self.weights = torch.from_numpy(weights).float()
        self.wanted = torch.from_numpy(np.where(rows.supported, 0, np.where(rows.labels == "contradicted", 2, 1)))
        self.told = TOLD * torch.from_numpy(np.isin(rows.sets, TELLS_APART)).float()

    def loss(self, said: Tensor, chosen: Sequence[int] | NDArray[np.int64]) -> Tensor:
        """Supported or not counts most; where labels tell, also what is contradicted and what not to be found."""
        wanted = self.wanted[chosen]
        either = torch.stack([said[:, 0], said[:, 1:].logsumexp(1)], 1).log_softmax(1)
        lost = functional.nll_loss(either, (wanted > 0).long(), reduction="none")
        lost = lost + self.told[chosen] * functional.cross_entropy(said, wanted, reduction="none")
        return (lost * self.weights[chosen]).mean()


def learnt(lessons: Lessons, seed: int = SEED, epochs: int = EPOCHS) -> Net:
    """A network that has gone over the rows a few times."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    rows = lessons.rows
    net = Net(DIRECTIONS, rows.features.shape[1])
    steps = epochs * math.ceil(len(rows.supported) / BATCH)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.15)
    marks = Marks(rows, weights_of(rows))
    net.train()
    for epoch in range(epochs):
        total = 0.0
        for chosen in lessons.batches(random):
            loss = marks.loss(net(*lessons.block(chosen)), chosen)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        print(f"epoch {epoch + 1} of {epochs}: loss {total / len(rows.supported):.3f}", flush=True)
    return net.eval()


def exported(net: Net, lessons: Lessons) -> dict[str, NDArray[Any]]:
    """The weights as the run time reads them: matrices that stand to the right of what they multiply."""
    found: dict[str, NDArray[Any]] = {}
    for name, module in net.named_children():
        if isinstance(module, nn.Linear):
            found[name] = module.weight.detach().numpy().T.astype(np.float16)
            found[f"{name}_offset"] = module.bias.detach().numpy()
        elif isinstance(module, nn.LayerNorm):
            part = name.removesuffix("_norm")
            found[f"{part}_scale"] = module.weight.detach().numpy()
            found[f"{part}_shift"] = module.bias.detach().numpy()
    found |= {name: getattr(net, name).detach().numpy() for name in ("near", "same", "rank")}
    return found | {"mean": lessons.mean, "spread": lessons.spread, "names": np.array(NAMES)}


def directions(texts: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The directions in which words in their places differ most, over some texts."""
    some = np.random.default_rng(SEED).permutation(len(texts))[:SOME_TEXTS]
    words = in_full([simplified(texts[at]) for at in some])
    middle = words.mean(axis=0)
    values, vectors = np.linalg.eigh((words - middle).T @ (words - middle) / len(words))
    widest = vectors[:, ::-1][:, :DIRECTIONS] / np.sqrt(values[-1])
    return {"middle": middle.astype(np.float16), "directions": widest.astype(np.float16)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the public sets")
    parser.add_argument("--keep", type=Path, default=None, help="a folder in which to keep measured features")
    parser.add_argument("--workers", type=int, default=1, help="processes that measure at the same time")
    parser.add_argument("--without", choices=LEARNED, help="leave out a set, to see how the others carry over to it")
    parser.add_argument("--directions", action="store_true", help="first find the directions of words anew")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    train = usable("train", options)
    if options.directions:
        saved(WORDS, directions(sorted({text for _, spans in train.beside for *_, text in spans})))
    if options.without:
        train = Measured(*(field[train.sets != options.without] for field in train))
    lessons = Lessons(train)
    saved(options.out, exported(learnt(lessons, epochs=options.epochs), lessons))


if __name__ == "__main__":
    main()
