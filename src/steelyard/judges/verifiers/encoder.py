"""An encoder that the user brought: pairs of passages and claims in, probabilities out.

A sequence classifier labels the pair. A token classifier labels every piece of the claim, and the claim is as well
supported as its worst span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

from steelyard.errors import ConfigError, JudgeError
from steelyard.judges.embedded.judge import usable_cores
from steelyard.judges.embedded.network import Odds
from steelyard.judges.models.cache import sha256_of
from steelyard.judges.verifiers.folder import VerifierFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How many pairs are read at once, and how many pieces they may have together.
ROWS, CELLS = 16, 4096
# A claim that leaves the passages less than a quarter of the input is not read.
MOST_OF_CLAIM = 0.75
# What a claim that cannot be read gets: nothing is known of it.
UNREAD = Odds(0.0, 0.0, 1.0)
SLOT = re.compile(r"\{(premise|claim)\}")
KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# As many asks are judged at a time.
CALLERS = 2


class EncoderPair(NamedTuple):
    """Text of passages, and what is claimed."""

    premise: str
    claim: str


class EncoderRow(NamedTuple):
    """One input of the model; `claim` are the places of the claim's pieces."""

    ids: list[int]
    kinds: list[int]
    claim: list[int]


class Encoder:
    """The model in a folder with model.onnx, tokenizer.json, config.json and perhaps verifier.toml.

    `digest` is the model file's SHA-256, where it is known already.
    """

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        self._folder = VerifierFolder(folder)
        self._settings, self._outputs = self._folder.settings, self._folder.outputs
        self._tokenizer, self._pairs = self._load_tokenizer(), self._load_tokenizer()
        strategy = "only_second" if self._settings.claim_first else "only_first"
        self._pairs.enable_truncation(self._folder.length, strategy=strategy)
        self._session = self._load_model()
        self.reads_tokens = self._check_output()
        self.sha256 = digest or sha256_of(self._folder.model)

    @property
    def name(self) -> str:
        return self._folder.path.resolve().name

    @cached_property
    def identity(self) -> str:
        """Changes with the weights, the tokenizer and the settings; not with the place they lie in."""
        return self._folder.digest(self.sha256)

    @property
    def room(self) -> int:
        """How many pieces of passages it reads beside a claim."""
        return self._folder.room

    def sizes(self, texts: Sequence[str]) -> list[int]:
        """How many pieces of the model's vocabulary each text has."""
        return [len(found.ids) for found in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def read(self, pairs: Sequence[EncoderPair]) -> list[Odds]:
        """How each claim stands to its passages."""
        found = [UNREAD] * len(pairs)
        rows = {place: row for place, pair in enumerate(pairs) if (row := self._row(pair))}
        for places in _batches(rows):
            logits = self._run([rows[place] for place in places])
            for at, place in enumerate(places):
                found[place] = self._odds(logits[at], rows[place])
        return found

    # --- what the model is given -------------------------------------------------------------------

    def _row(self, pair: EncoderPair) -> EncoderRow | None:
        """The input for one pair. Where it is too long, the end of the passages goes, never the claim."""
        premise, claim = self._without_marks(pair.premise), self._without_marks(pair.claim).strip()
        (size,) = self.sizes([claim])
        if not size or size > MOST_OF_CLAIM * self._folder.length:
            return None
        return self._filled(premise, claim) if self._settings.template else self._paired(premise, claim)

    def _paired(self, premise: str, claim: str) -> EncoderRow:
        """Two texts with the tokenizer's own marks."""
        texts = (claim, premise) if self._settings.claim_first else (premise, claim)
        found = self._pairs.encode(*texts)
        own = 0 if self._settings.claim_first else 1
        return EncoderRow(
            found.ids, found.type_ids, [at for at, whose in enumerate(found.sequence_ids) if whose == own]
        )

    def _filled(self, premise: str, claim: str) -> EncoderRow:
        """One text by the template; of the premise as much as there is room for."""
        text, begins = self._fill("", claim)
        room = self._folder.length - len(self._tokenizer.encode(text).ids)
        offsets = self._tokenizer.encode(premise, add_special_tokens=False).offsets
        while True:
            kept = premise if len(offsets) <= room else premise[: offsets[room - 1][1]] if room > 0 else ""
            text, begins = self._fill(kept, claim)
            found = self._tokenizer.encode(text)
            over = len(found.ids) - self._folder.length
            if over <= 0 or not kept:
                break
            # Pieces of a whole text are not quite those of its parts.
            room = min(room, len(offsets)) - over
        ends = begins + len(claim)
        places = [at for at, (start, end) in enumerate(found.offsets) if start < ends and end > begins]
        return EncoderRow(found.ids, found.type_ids, places)

    def _fill(self, premise: str, claim: str) -> tuple[str, int]:
        """The template's text, and where the claim begins in it."""
        text, begins, parts = "", 0, {"premise": premise, "claim": claim}
        for number, part in enumerate(SLOT.split(self._settings.template or "")):
            begins = len(text) if number % 2 and part == "claim" else begins
            text += parts[part] if number % 2 else part
        return text, begins

    def _without_marks(self, text: str) -> str:
        """A passage that holds the name of a mark must not be cut in two by it."""
        for mark in self._marks:
            text = text.replace(mark, " ")
        # Half characters are no text for the tokenizer.
        return text.encode(errors="replace").decode()

    # --- what it says ------------------------------------------------------------------------------

    def _run(self, rows: Sequence[EncoderRow]) -> NDArray[np.float32]:
        import numpy as np

        width = max(len(row.ids) for row in rows)
        arrays = {
            "input_ids": np.full((len(rows), width), self._folder.pad),
            "attention_mask": np.zeros((len(rows), width)),
            "token_type_ids": np.zeros((len(rows), width)),
        }
        for at, row in enumerate(rows):
            size = len(row.ids)
            arrays["input_ids"][at, :size] = row.ids
            arrays["attention_mask"][at, :size] = 1
            arrays["token_type_ids"][at, :size] = row.kinds
        given = {
            put.name: arrays[put.name].astype(np.int32 if "int32" in put.type else np.int64)
            for put in self._session.get_inputs()
        }
        try:
            (logits,) = self._session.run([self._output], given)
        except Exception as error:  # onnxruntime's own kinds of errors have no common ground
            raise JudgeError(
                f"{self._folder.model}: onnxruntime cannot run it on {width} pieces: {_first_line(error)}; `length` in "
                "verifier.toml says how many the model takes"
            ) from error
        return np.asarray(logits, np.float32)

    def _odds(self, logits: NDArray[np.float32], row: EncoderRow) -> Odds:
        if not self.reads_tokens:
            shares = _softmax(logits if logits.ndim == 1 else logits[0])
            supported, against = float(shares[self._outputs.supported]), self._outputs.contradicted
            contradicted = 0.0 if against is None else float(shares[against])
            return Odds(supported, contradicted, max(0.0, 1.0 - supported - contradicted))
        if not row.claim:
            return UNREAD
        support = [float(one) for one in _softmax(logits[row.claim])[:, self._outputs.supported]]
        # Neighbours that are rather unsupported are one span; a single piece says little by itself.
        runs = [list(run) for bad, run in groupby(support, lambda one: one < 0.5) if bad]
        worst = min((sum(run) / len(run) for run in runs), default=min(support))
        return Odds(worst, 0.0, 1.0 - worst)

    # --- loading -----------------------------------------------------------------------------------

    def _load_tokenizer(self) -> Tokenizer:
        try:
            found = Tokenizer.from_file(str(self._folder.tokenizer))
        except Exception as error:  # the library raises no narrower kind
            raise ConfigError(f"{self._folder.tokenizer}: cannot be read: {_first_line(error)}") from error
        # Exporters leave the settings of their last call in the file.
        found.no_truncation()
        found.no_padding()
        return found

    @cached_property
    def _marks(self) -> list[str]:
        return [token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special]

    def _load_model(self) -> Any:
        options = SessionOptions()
        options.intra_op_num_threads = max(1, usable_cores() // CALLERS)
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            found = InferenceSession(str(self._folder.model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # as above
            raise ConfigError(f"{self._folder.model}: cannot be read: {_first_line(error)}") from error
        for put in found.get_inputs():
            if put.name not in KNOWN_INPUTS:
                known = ", ".join(KNOWN_INPUTS)
                raise ConfigError(f"{self._folder.model}: wants an input {put.name!r}; known are {known}")
            if any(isinstance(size, int) for size in put.shape):
                raise ConfigError(
                    f"{self._folder.model}: {put.name} has the fixed shape {put.shape}; export it with dynamic axes"
                )
        return found

    @cached_property
    def _output(self) -> str:
        names = [put.name for put in self._session.get_outputs()]
        return "logits" if "logits" in names else str(names[0])

    def _check_output(self) -> bool:
        """Try the model on a short pair: whether it labels tokens, and has as many classes as it says."""
        short = self._tokenizer.encode("a", "b")
        (one,) = self._run([EncoderRow(short.ids, short.type_ids, [])])
        if one.ndim not in (1, 2) or one.shape[-1] != self._outputs.size:
            raise ConfigError(
                f"{self._folder.model}: gives {one.shape[-1]} classes, and {self._outputs.size} are named in "
                "config.json (id2label) or verifier.toml (labels)"
            )
        return bool(one.ndim == 2 and self._settings.tokens == "claim")


def _batches(rows: dict[int, EncoderRow]) -> Iterator[list[int]]:
    """Places of rows of about one length, as many as fit a batch."""
    batch: list[int] = []
    for place in sorted(rows, key=lambda at: len(rows[at].ids)):
        if batch and (len(batch) == ROWS or (len(batch) + 1) * len(rows[place].ids) > CELLS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    raised = np.exp(logits - logits.max(-1, keepdims=True))
    shares: NDArray[np.float32] = raised / raised.sum(-1, keepdims=True)
    return shares


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
