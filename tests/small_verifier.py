"""Verifiers of a few words: real ONNX graphs and a real tokenizer, made in a moment.

Every word adds its numbers to the outputs: `yes` speaks for, `no` against, `maybe` for neither. Padding would drown
them all, and a place beyond the last position is an error, as in a real model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "yes", "no", "maybe", "filler", "a", "b", '"', "Does", "follow", "?", ":"]
PAD = 0
LONGEST = 40
THREE = {"yes": (3.0, 0.0, 0.0), "no": (0.0, 0.0, 3.0), "maybe": (0.0, 3.0, 0.0)}
TWO = {"yes": (0.0, 3.0), "no": (3.0, 0.0), "filler": (0.0, 1.0)}
NLI = ("entailment", "neutral", "contradiction")


def make_verifier(
    folder: Path,
    labels: Sequence[str] | None = NLI,
    weights: dict[str, tuple[float, ...]] | None = None,
    *,
    by_token: bool = False,
    claim_only: bool = True,
    model: str = "model.onnx",
    words: Sequence[str] = (),
    **config: object,
) -> Path:
    """A folder as Hugging Face lays it out. `claim_only`: words of the first text do not count (token_type_ids);
    `words` are known besides those above."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = THREE if weights is None else weights
    known = [*WORDS, *words]
    onnx.save(graph(known, weights, by_token=by_token, claim_only=claim_only), folder / model)
    tokenizer(known).save(str(folder / "tokenizer.json"))
    named = {} if labels is None else {"id2label": {str(number): name for number, name in enumerate(labels)}}
    settings = {"model_type": "bert", "pad_token_id": PAD, "max_position_embeddings": LONGEST, **named, **config}
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    return folder


def tokenizer(words: Sequence[str]) -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(WORDS[:4])
    marks = [(word, WORDS.index(word)) for word in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=marks
    )
    # Exporters leave such settings in the file.
    made.enable_truncation(8)
    made.enable_padding(length=8)
    return made


def graph(
    words: Sequence[str], weights: dict[str, tuple[float, ...]], *, by_token: bool, claim_only: bool
) -> onnx.ModelProto:
    outputs = len(next(iter(weights.values())))
    table = np.zeros((len(words), outputs), np.float32)
    for word, row in weights.items():
        table[words.index(word)] = row
    table[PAD] = 100 * np.arange(outputs)
    shape = ["rows", "width"]
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if claim_only else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names]
    constants = {
        "table": table,
        "places": np.zeros((LONGEST, outputs), np.float32),
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "last": np.array([2], np.int64),
        "middle": np.array([1], np.int64),
    }
    counted = "attention_mask"
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["said"]),
        helper.make_node("Shape", ["input_ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["width"]),
        helper.make_node("Range", ["zero", "width", "one"], ["numbers"]),
        helper.make_node("Gather", ["places", "numbers"], ["placed"]),
        helper.make_node("Add", ["said", "placed"], ["words"]),
    ]
    if claim_only:
        nodes.append(helper.make_node("Mul", ["attention_mask", "token_type_ids"], ["counted"]))
        counted = "counted"
    nodes += [
        helper.make_node("Cast", [counted], ["share"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["share", "last"], ["column"]),
        helper.make_node("Mul", ["words", "column"], ["logits" if by_token else "masked"]),
    ]
    if not by_token:
        nodes.append(helper.make_node("ReduceSum", ["masked", "middle"], ["logits"], keepdims=0))
    given = ["rows", "width", outputs] if by_token else ["rows", outputs]
    made = helper.make_graph(
        nodes,
        "words",
        inputs,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, given)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model
