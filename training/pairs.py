"""Train the transformer that reads the claims of a language: python -m training.pairs en --start PACKAGE --keep FOLDER

Needs torch (2.x, on the CPU) and onnx besides what training.train needs. The same rows as there, measured once and kept
in the folder. The weights go to src/steelyard/judges/embedded/weights/, and training.train is to be run after it. Takes
some two hours of one core for either language.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.meaning import simplified
from steelyard.judges.embedded.pairs import NOWHERE, SPAN_PIECES, WEIGHTS, Language, Pair, laid
from steelyard.judges.embedded.pieces import Pieces
from steelyard.judges.embedded.transformer import packed
from training.measuring import Measured
from training.reader import Marks
from training.sets import DATA
from training.starting import HEADS, Start, chinese_start, english_start
from training.train import SEED, saved, usable, weights_of

BATCH, DECAY, DROPPED, WARMING = 32, 0.01, 0.1, 0.08
THOUGHT = 128


class Stage(NamedTuple):
    """How often the rows of either language are gone over, and how fast is learnt at the most."""

    chinese: float
    english: float
    rate: float


class Course(NamedTuple):
    """How the network of a language is taught.

    So many of its lowest layers stay as they were (`kept`), and what is new in it learns so much `faster`. How many
    pieces of the spans are read varies (`rooms`), so that the network does not count on all of them.
    """

    start: Callable[[Path], Start]
    stages: tuple[Stage, ...]
    rooms: tuple[int, ...]
    kept: int
    faster: float


COURSES: dict[Language, Course] = {
    # English claims are there for what they teach about comparing.
    "zh": Course(chinese_start, (Stage(1.2, 0.0, 1.5e-4), Stage(0.6, 1.25, 2e-4)), (96, SPAN_PIECES), 0, 1.0),
    "en": Course(english_start, (Stage(0.0, 1.5, 1.2e-4),), (64, 96, SPAN_PIECES), 1, 4.0),
}
# A row of a small set counts for many; beyond this it would be learnt by heart.
HEAVIEST = 4.0
# Sets whose claims stand beside two texts. Both are read in one batch: what they share teaches nothing.
TWINS = ("written", "profiles")


class Block(NamedTuple):
    """Some pairs of like length, filled up with zeros to the longest."""

    ids: Tensor
    kinds: Tensor
    is_text: Tensor
    is_claim: Tensor


def block(pairs: Sequence[Pair]) -> Block:
    shape = len(pairs), max(len(pair.numbers) for pair in pairs)
    longs, flags = (torch.zeros(shape, dtype=each) for each in (torch.int64, torch.bool))
    found = Block(longs, longs.clone(), flags, flags.clone())
    for line, (numbers, claim) in enumerate(pairs):
        found.ids[line, : len(numbers)] = torch.tensor(numbers)
        found.kinds[line, claim + 2 : len(numbers)] = 1
        found.is_text[line, : len(numbers)] = True
        found.is_claim[line, 1 : claim + 1] = True
    return found


class Layer(nn.Module):
    def __init__(self, size: int, wide: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.look, self.take = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.widen, self.narrow = nn.Linear(size, wide), nn.Linear(wide, size)
        self.seen, self.told = nn.LayerNorm(size, eps=1e-12), nn.LayerNorm(size, eps=1e-12)
        self.drop = nn.Dropout(DROPPED)

    def forward(self, state: Tensor, hidden: Tensor) -> Tensor:
        count, length, size = state.shape
        asks, offers, tells = (
            self.look(state).view(count, length, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        )
        seen = functional.scaled_dot_product_attention(asks, offers, tells, attn_mask=hidden)
        taken = self.take(seen.transpose(1, 2).reshape(count, length, size))
        state = self.seen(state + self.drop(taken))
        told: Tensor = self.told(state + self.drop(self.narrow(_bent(self.widen(state)))))
        return told


class Net(nn.Module):
    """As `steelyard.judges.embedded.pairs.Network`, for learning. Names are those of the weights."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        words, size = start.weights["word.weight"].shape
        places, kinds = len(start.weights["place.weight"]), len(start.weights["kind.weight"])
        depth = sum(name.endswith(".look.weight") for name in start.weights)
        wide = len(start.weights["layers.0.widen.weight"])
        self.word, self.place, self.kind = (
            nn.Embedding(words, size),
            nn.Embedding(places, size),
            nn.Embedding(kinds, size),
        )
        self.bare = nn.LayerNorm(size, eps=1e-12)
        self.layers = nn.ModuleList(Layer(size, wide, HEADS) for _ in range(depth))
        self.think, self.say = nn.Linear(3 * size, THOUGHT), nn.Linear(THOUGHT, 3)
        self.drop = nn.Dropout(DROPPED)
        self.load_state_dict(start.weights, strict=False)
        # What words mean is known from more text than there is here.
        self.word.weight.requires_grad_(False)

    def keep(self, layers: int) -> None:
        """Leave what comes before any layer, and so many layers, as they are."""
        for part in (self.place, self.kind, self.bare, *self.layers[:layers]):
            part.requires_grad_(False)

    def forward(self, read: Block) -> Tensor:
        ids, kinds, is_text, is_claim = read
        state = self.drop(self.bare(self.word(ids) + self.place.weight[: ids.shape[1]] + self.kind(kinds)))
        hidden = torch.zeros(is_text.shape).masked_fill(~is_text, NOWHERE)[:, None, None, :]
        for layer in self.layers:
            state = layer(state, hidden)
        claim = is_claim.unsqueeze(-1)
        whole = [
            state[:, 0],
            (state * claim).sum(1) / claim.sum(1).clamp(min=1),
            state.masked_fill(~claim, NOWHERE).amax(1),
        ]
        said: Tensor = self.say(self.drop(_bent(self.think(self.drop(torch.cat(whole, -1))))))
        return said


def _bent(values: Tensor) -> Tensor:
    return functional.gelu(values, approximate="tanh")


class Lessons:
    """Measured rows, as numbers of pieces."""

    def __init__(self, rows: Measured, vocabulary: Sequence[str]) -> None:
        self.rows, self.pieces = rows, Pieces(vocabulary)
        known: dict[str, list[int]] = {}

        def numbers(text: str) -> list[int]:
            if text not in known:
                known[text] = self.pieces.of(simplified(text))
            return known[text]

        self.claims = [numbers(claim) for claim, _ in rows.beside]
        self.spans = [[(at, numbers(text)) for _, at, text in spans] for _, spans in rows.beside]
        self.sizes = np.array([len(self.pair(at).numbers) for at in range(len(self.claims))])
        units: dict[object, list[int]] = defaultdict(list)
        for at, (claim, _) in enumerate(rows.beside):
            units[(rows.folds[at], claim) if rows.sets[at] in TWINS else at].append(at)
        self.units = list(units.values())
        self.is_chinese = rows.features[:, NAMES.index("chinese")] > 0

    def pair(self, at: int, room: int = SPAN_PIECES) -> Pair:
        return laid(self.claims[at], self.spans[at], self.pieces, room)

    def batches(self, stage: Stage, random: np.random.Generator) -> Iterator[list[int]]:
        """The rows of a stage in an order of chance, those of like size together, and twins beside each other."""
        units = [*self._some(True, stage.chinese, random), *self._some(False, stage.english, random)]
        sizes = np.array([max(self.sizes[at] for at in unit) for unit in units])
        cut: list[list[int]] = [[]]
        for unit in np.argsort(sizes + 60 * random.random(len(sizes))):
            if len(cut[-1]) >= BATCH:
                cut.append([])
            cut[-1] += units[unit]
        for at in random.permutation(len(cut)):
            yield cut[at]

    def _some(self, chinese: bool, share: float, random: np.random.Generator) -> Iterator[list[int]]:
        own = [unit for unit in self.units if self.is_chinese[unit[0]] == chinese]
        while share > 0:
            yield from (own[at] for at in random.permutation(len(own))[: math.ceil(min(share, 1.0) * len(own))])
            share -= 1


def learnt(lessons: Lessons, start: Start, course: Course, seed: int = SEED) -> Net:
    """A network that has gone through a course."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    rows, net = lessons.rows, Net(start)
    if course.kept:
        net.keep(course.kept)
    learning = [weight for weight in net.parameters() if weight.requires_grad]
    groups = _groups(net, course.faster)
    counts = np.minimum(weights_of(rows), HEAVIEST)
    marks = Marks(rows, counts / counts.mean())
    net.train()
    for stage in course.stages:
        optimiser = torch.optim.AdamW([group | {"lr": stage.rate * group["speed"]} for group in groups])
        batches = list(lessons.batches(stage, random))
        slope = _slope(len(batches))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, slope)
        total = 0.0
        for chosen in batches:
            room = int(random.choice(course.rooms))
            loss = marks.loss(net(block([lessons.pair(at, room) for at in chosen])), chosen)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learning, 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        print(f"{stage}: loss {total / len(batches):.3f}", flush=True)
    return net.eval()


def _groups(net: Net, faster: float) -> list[dict[str, Any]]:
    """The weights that learn, by how fast they do; those of one dimension are not drawn to zero."""
    new = {id(weight) for part in (net.think, net.say) for weight in part.parameters()}
    groups: dict[tuple[bool, bool], list[Tensor]] = defaultdict(list)
    for weight in net.parameters():
        if weight.requires_grad:
            groups[id(weight) in new, weight.dim() > 1].append(weight)
    return [
        {"params": weights, "weight_decay": DECAY if is_wide else 0.0, "speed": faster if is_new else 1.0}
        for (is_new, is_wide), weights in groups.items()
    ]


def _slope(steps: int) -> Callable[[int], float]:
    """How much of the full rate each step has: it rises for a while, and falls to nothing."""
    warming = max(1, round(WARMING * steps))
    return lambda step: min((step + 1) / warming, max(0.0, (steps - step) / max(1, steps - warming)))


# --- what is written -------------------------------------------------------------------------------


def exported(net: Net, vocabulary: Sequence[str], kept: Sequence[int]) -> dict[str, NDArray[Any]]:
    """The weights as the run time reads them: matrices in four bits a weight, the rest in sixteen."""
    found: dict[str, NDArray[Any]] = {
        "vocabulary": np.frombuffer("\n".join(vocabulary[at] for at in kept).encode(), dtype=np.uint8),
        "heads": np.array(HEADS),
        "depth": np.array(len(net.layers)),
        "place": net.place.weight.detach().numpy().astype(np.float16),
        "kind": net.kind.weight.detach().numpy().astype(np.float16),
    }
    modules: dict[str, nn.Module] = {"bare": net.bare, "think": net.think, "say": net.say}
    for depth, layer in enumerate(net.layers):
        modules |= {f"{depth}_{name}": part for name, part in layer.named_children() if name != "drop"}
    for name, module in modules.items():
        weight, bias = (each.detach().numpy() for each in (module.weight, module.bias))
        if isinstance(module, nn.LayerNorm):
            found |= {f"{name}_scale": weight.astype(np.float16), f"{name}_shift": bias.astype(np.float16)}
        else:
            halves, scales = packed(weight)
            found |= {f"{name}_halves": halves, f"{name}_scales": scales, f"{name}_offset": bias.astype(np.float16)}
    halves, scales = packed(net.word.weight.detach().numpy()[list(kept)])
    return found | {"word_halves": halves, "word_scales": scales}


def needed(vocabulary: Sequence[str], lessons: Lessons) -> list[int]:
    """The pieces worth shipping: what the rows have, every single character, and the more common parts of words.

    Pieces are numbered by how common they are. A word that is left out is read in parts.
    """
    seen = {number for claim in lessons.claims for number in claim}
    seen |= {number for spans in lessons.spans for _, numbers in spans for number in numbers}
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    return [
        at
        for at, piece in enumerate(vocabulary)
        if piece in marks
        or at in seen
        or (len(piece.removeprefix("##")) == 1 and _is_readable(piece))
        or (at < COMMON and _is_readable(piece))
    ]


COMMON = 16_000


def _is_readable(piece: str) -> bool:
    """Whether a piece can stand in Chinese or English text."""
    bare = piece.removeprefix("##")
    return not piece.startswith("[") and all(
        character < "\u0250" or "\u2000" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff"
        or "\uff00" <= character <= "\uffef"
        for character in bare
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=COURSES)
    parser.add_argument("--start", type=Path, required=True, help="the package with the network to begin with")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the public sets")
    parser.add_argument("--keep", type=Path, default=None, help="a folder in which to keep measured features")
    parser.add_argument("--workers", type=int, default=1, help="processes that measure at the same time")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.workers)
    course = COURSES[options.language]
    start = course.start(options.start)
    lessons = Lessons(usable("train", options), start.vocabulary)
    net = learnt(lessons, start, course)
    kept = needed(start.vocabulary, lessons)
    saved(options.out or WEIGHTS[options.language], exported(net, start.vocabulary, kept))


if __name__ == "__main__":
    main()
