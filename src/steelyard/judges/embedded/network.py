"""The network that reads: passages and a claim together, a question and a sentence, or a single text.

`lower.onnx` holds half of the layers. They give labels at first sight, levels and vectors; where the labels are not
plain, `upper.onnx` goes on from there. Any other reader may take the network's place for labels (`judges/verifiers/`).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from steelyard.errors import JudgeError
from steelyard.text import in_simplified

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BEGIN, PAD, END = 0, 1, 2
# In pieces; what is longer is cut at its end, the passages before the claim.
LONGEST, LONGEST_CLAIM, LONGEST_CONTEXT = 250, 96, 48
ROWS = 1
# In characters: no piece has more than 16.
LONGEST_TEXT = 16 * LONGEST
# At first sight the network is right about as often as after all layers where it is at least this sure.
PLAIN = 0.93


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


class Pair(NamedTuple):
    """What is read together: parts of the passages, what the claim leans on, the claim."""

    premise: tuple[str, ...]
    context: str
    claim: str


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

    def read(self, pairs: Sequence[Pair]) -> list[Odds]: ...


class Network:
    """The network in the box."""

    windows = (64, 160)
    is_weighed = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions: dict[str, Any] = {}
        self._loading = Lock()

    @cached_property
    def identity(self) -> str:
        """Changes with the weights."""
        digest = hashlib.sha256()
        for name in ("lower.onnx", "upper.onnx", "tokenizer.json"):
            digest.update((self._folder / name).read_bytes())
        return f"embedded-{digest.hexdigest()[:12]}"

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts into pieces. Chinese is read in Simplified characters, and of a very long text the beginning."""
        cut = [text[:LONGEST_TEXT] for text in texts]
        # A question stands beside each of its sentences, a passage beside many claims.
        once = list(dict.fromkeys(cut))
        plain = [in_simplified(text.encode(errors="replace").decode()) for text in once]
        found = dict(zip(once, self._tokenizer.encode_batch(plain) if plain else (), strict=True))
        return [found[text].ids for text in cut]

    def sizes(self, texts: Sequence[str]) -> list[int]:
        return list(map(len, self.pieces(texts)))

    def read(self, pairs: Sequence[Pair]) -> list[Odds]:
        """How each claim stands to its passages."""
        found: list[Odds | None] = [None] * len(pairs)
        ids = iter(self.pieces([text for pair in pairs for text in (*pair.premise, pair.context, pair.claim)]))
        rows = [_laid_out([next(ids) for _ in pair.premise], next(ids), next(ids)) for pair in pairs]
        for places, pieces, kinds in _batches(rows):
            labels, state = self._session("lower").run(["first", "state"], {"pieces": pieces, "kinds": kinds})
            doubtful = (labels.max(1) < PLAIN).nonzero()[0]
            if len(doubtful):
                (again,) = self._session("upper").run(None, {"state": state[doubtful], "pieces": pieces[doubtful]})
                labels[doubtful] = again
            for place, row in zip(places, labels.tolist(), strict=True):
                found[place] = Odds(*row)
        return [odds for odds in found if odds is not None]

    def levels(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """How each sentence serves its question: the odds of levels 1, 2 and 3."""
        ids = self.pieces([text for pair in pairs for text in pair])
        rows = [
            _laid_out([question[:LONGEST_CONTEXT]], (), sentence)
            for question, sentence in zip(ids[::2], ids[1::2], strict=True)
        ]
        found: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * len(rows)
        for places, pieces, kinds in _batches(rows):
            (levels,) = self._session("lower").run(["level"], {"pieces": pieces, "kinds": kinds})
            for place, row in zip(places, levels.tolist(), strict=True):
                found[place] = (row[0], row[1], row[2])
        return found

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A vector of length 1 for each text. Those of texts that have nothing in common still are some .75 alike."""
        import numpy as np

        rows = [([BEGIN, *ids[: LONGEST - 2], END], LONGEST) for ids in self.pieces(texts)]
        found = np.zeros((len(rows), 384), np.float32)
        for places, pieces, kinds in _batches(rows):
            (found[places],) = self._session("lower").run(["vector"], {"pieces": pieces, "kinds": kinds})
        return found

    def _session(self, name: str) -> Any:
        # Many threads ask at once; one loads.
        with self._loading:
            if name not in self._sessions:
                self._sessions[name] = session(self._folder / f"{name}.onnx")
            return self._sessions[name]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._folder / "tokenizer.json"))


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
        return InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
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


def _laid_out(premise: Sequence[Sequence[int]], context: Sequence[int], claim: Sequence[int]) -> tuple[list[int], int]:
    """What the network sees of one pair, and where the second text begins."""
    read = [*context[:LONGEST_CONTEXT], END] if context else []
    tail = [END, END, *read, *claim[:LONGEST_CLAIM], END]
    head = [BEGIN]
    for number, part in enumerate(premise):
        head += [END, *part] if number else part
    head = head[: LONGEST - len(tail)]
    return [*head, *tail], len(head) + 1


def _batches(rows: Sequence[tuple[list[int], int]]) -> Iterator[tuple[list[int], Any, Any]]:
    """Rows of about one length together: their places, pieces and kinds."""
    import numpy as np

    order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]))
    for start in range(0, len(order), ROWS):
        in_time()
        places = order[start : start + ROWS]
        width = len(rows[places[-1]][0])
        pieces = np.full((len(places), width), PAD, np.int64)
        kinds = np.zeros((len(places), width), np.int64)
        for row, place in enumerate(places):
            ids, second = rows[place]
            pieces[row, : len(ids)] = ids
            kinds[row, second : len(ids)] = 1
        yield places, pieces, kinds
