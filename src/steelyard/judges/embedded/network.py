"""The network that reads: passages and a claim together, or a question and a sentence, in any language.

Any other reader may take its place for labels (`Reader`).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from steelyard.errors import JudgeError
from steelyard.text import in_simplified

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# In pieces; what is longer is cut at its end.
LONGEST, LONGEST_CLAIM, LONGEST_CONTEXT = 250, 96, 48
# In characters: few pieces have more than 16.
LONGEST_TEXT = 16 * LONGEST
# What a piece is part of. The network takes the claim and the passages apart by these.
FRAME, CLAIM, PASSAGE = 1, 2, 3
BEGIN, PAD, END = "<s>", "<pad>", "</s>"

_until: ContextVar[float] = ContextVar("_until", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Whatever is read in here must be read in so many seconds, or `TimeoutError` is raised."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def in_time() -> None:
    if time.monotonic() > _until.get():
        raise TimeoutError


class Odds(NamedTuple):
    """How probable it is that a claim is supported, contradicted, or that nothing is said of it."""

    supported: float
    contradicted: float
    neutral: float


class ReaderPair(NamedTuple):
    """What is read together: parts of the passages, what the claim leans on, the claim."""

    premise: tuple[str, ...]
    context: str
    claim: str


class Row(NamedTuple):
    """What the network is given of one pair: pieces of text, and what each is part of."""

    pieces: list[int]
    roles: list[int]


class Reader(Protocol):
    """Reads pairs. `windows` are how much of the passages it reads: a short look, then more if in doubt.

    They count in the reader's own pieces of text, as `sizes` does.
    """

    @property
    def identity(self) -> str: ...

    @property
    def windows(self) -> tuple[int, ...]: ...

    @property
    def is_weighed(self) -> bool:
        """Whether the lines of `support.py` hold for its odds."""
        ...

    def sizes(self, texts: Sequence[str]) -> list[int]: ...

    def read(self, pairs: Sequence[ReaderPair]) -> list[Odds]: ...


class ReaderVocabulary:
    """Texts into the pieces that the network knows, and pieces into rows. Training lays its rows out here too."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encode = tokenizer.encode
        self._begin, self._end = _mark(tokenizer, BEGIN), _mark(tokenizer, END)
        self._marks = frozenset((self._begin, self._end, tokenizer.token_to_id(PAD)))
        # A question stands beside each of its sentences, a passage beside many claims.
        self.pieces = lru_cache(maxsize=4096)(self._pieces)

    @classmethod
    def of(cls, file: Path) -> ReaderVocabulary:
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(file)))
        except Exception as error:  # the library raises no narrower kind
            raise JudgeError(f"the vocabulary {file.name} cannot be read: {error}") from error

    def _pieces(self, text: str) -> tuple[int, ...]:
        """A text in Simplified characters; of a very long one the beginning."""
        # Half of a character cannot be encoded.
        plain = in_simplified(text[:LONGEST_TEXT]).encode(errors="replace").decode()
        found = self._encode(plain, add_special_tokens=False).ids
        # A judged text that has </s> in it ends nothing.
        return tuple(piece for piece in found if piece not in self._marks)

    def laid_out(self, parts: Iterable[Sequence[int]], context: Sequence[int], claim: Sequence[int]) -> Row:
        """One row: what the claim leans on, the claim, the parts of the passages."""
        context, claim = context[:LONGEST_CONTEXT], claim[:LONGEST_CLAIM]
        pieces = [self._begin, *context, self._end] if context else [self._begin]
        roles = [FRAME] * len(pieces) + [CLAIM] * len(claim) + [FRAME]
        pieces += [*claim, self._end]
        for part in parts:
            pieces += [*part, self._end]
            roles += [PASSAGE] * (len(part) + 1)
        if len(pieces) > LONGEST:
            pieces, roles = [*pieces[: LONGEST - 1], self._end], roles[:LONGEST]
        return Row(pieces, roles)

    def row(self, pair: ReaderPair) -> Row:
        """What the network reads of passages and a claim."""
        parts = [self.pieces(part) for part in pair.premise]
        return self.laid_out(parts, self.pieces(pair.context), self.pieces(pair.claim))

    def level_row(self, question: str, sentence: str) -> Row:
        """What it reads of a question and a sentence: the question in the place of the claim."""
        part = self.pieces(sentence)[:LONGEST_CLAIM]
        return self.laid_out([part], [], self.pieces(question)[:LONGEST_CONTEXT])


def _mark(tokenizer: Tokenizer, name: str) -> int:
    if (found := tokenizer.token_to_id(name)) is None:
        raise ValueError(f"it has no piece {name}")
    return found


class Network:
    """The network in the box. It and its vocabulary are loaded when the first text is read."""

    windows = (64, 128)
    is_weighed = True

    def __init__(self, folder: Path) -> None:
        self._weights, self._words = folder / "reader.onnx", folder / "reader.json"
        self._loading = Lock()

    @cached_property
    def identity(self) -> str:
        """Changes with the weights."""
        digest = hashlib.sha256()
        for file in (self._weights, self._words):
            digest.update(file.read_bytes())
        return f"embedded-{digest.hexdigest()[:12]}"

    def sizes(self, texts: Sequence[str]) -> list[int]:
        vocabulary, _ = self._opened()
        return [len(vocabulary.pieces(text)) for text in texts]

    def read(self, pairs: Sequence[ReaderPair]) -> list[Odds]:
        """How each claim stands to its passages."""
        vocabulary, _ = self._opened()
        return [Odds(*self._run("label", vocabulary.row(pair))) for pair in pairs]

    def levels(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """How each sentence serves its question: the odds of levels 1, 2 and 3."""
        vocabulary, _ = self._opened()
        return [self._run("level", vocabulary.level_row(question, sentence)) for question, sentence in pairs]

    def _run(self, output: str, row: Row) -> tuple[float, float, float]:
        """One row alone: in eight bits, its numbers would depend on what is read beside it."""
        import numpy as np

        in_time()
        given = {"pieces": np.array([row.pieces], np.int64), "roles": np.array([row.roles], np.int64)}
        (found,) = self._opened()[1].run([output], given)
        first, second, third = found[0].tolist()
        return first, second, third

    def _opened(self) -> tuple[ReaderVocabulary, Any]:
        with self._loading:  # many threads ask at once; one loads
            return self._parts

    @cached_property
    def _parts(self) -> tuple[ReaderVocabulary, Any]:
        return ReaderVocabulary.of(self._words), session(self._weights)


# Fused with its sum, a layer's normalisation takes ten times as long: an eighth of the whole.
SLOWER = ("SkipLayerNormFusion",)


def session(file: Path) -> Any:
    """A network that runs on the thread that calls it: there are as many callers as cores."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError as error:
        raise JudgeError(f"no network can be read: {error}; install steelyard anew") from error
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return InferenceSession(str(file), options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOWER)
    except Exception as error:
        raise JudgeError(f"the network {file.name} cannot be read: {error}") from error


_first = Lock()


def network() -> Network:
    """The network that the package carries."""
    with _first:
        return _network()


@cache
def _network() -> Network:
    with as_file(files("steelyard.judges.embedded") / "weights") as folder:
        return Network(folder)
