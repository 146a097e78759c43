"""The networks that read: passages and a claim together, or a question and a sentence.

There are two of one shape, one that reads English and one that reads Chinese and whatever is mixed. Any other reader
may take their place for labels (`Reader`).
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

from steelyard.errors import JudgeError
from steelyard.text import in_simplified

LANGUAGES = ("en", "zh")
# In pieces; what is longer is cut at its end.
LONGEST, LONGEST_CLAIM, LONGEST_CONTEXT = 250, 96, 48
# In characters: few pieces have more than 16.
LONGEST_TEXT = 16 * LONGEST
# What a piece is part of. The network takes the claim and the passages apart by these.
FRAME, CLAIM, PASSAGE = 1, 2, 3
# A letter that English texts do not have; Greek ones stand in formulas.
NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u0370-\u03ff\u1e00-\u1eff]")


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


class Row(NamedTuple):
    """What a network is given of one pair: pieces of text, and what each is part of."""

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

    def read(self, pairs: Sequence[Pair]) -> list[Odds]: ...


def language_read(*texts: str) -> str:
    """Which network reads these texts together."""
    return "zh" if any(map(NOT_LATIN.search, texts)) else "en"


class Monolingual:
    """The network and the tokenizer of one language; both are loaded when the first text is read."""

    def __init__(self, folder: Path, language: str) -> None:
        self.files = folder / f"{language}.onnx", folder / f"{language}.json"
        self._loading = Lock()

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts into pieces, in Simplified characters; of a very long text the beginning."""
        # A question stands beside each of its sentences, a passage beside many claims.
        cut = [text[:LONGEST_TEXT] for text in texts]
        once = list(dict.fromkeys(cut))
        # Half of a character cannot be encoded.
        plain = [in_simplified(text.encode(errors="replace").decode()) for text in once]
        encode = self._open()[0].encode
        found = {text: encode(read, add_special_tokens=False).ids for text, read in zip(once, plain, strict=True)}
        return [found[text] for text in cut]

    def laid_out(self, parts: Sequence[list[int]], context: list[int], claim: list[int]) -> Row:
        tokenizer = self._open()[0]
        begin, end = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
        pieces = [begin, *context, end] if context else [begin]
        roles = [FRAME] * len(pieces) + [CLAIM] * len(claim) + [FRAME]
        pieces += [*claim, end]
        for part in parts:
            pieces += [*part, end]
            roles += [PASSAGE] * (len(part) + 1)
        if len(pieces) > LONGEST:
            pieces, roles = [*pieces[: LONGEST - 1], end], roles[:LONGEST]
        return Row(pieces, roles)

    def run(self, output: str, row: Row) -> list[float]:
        """One row alone: in eight bits, its numbers would depend on what is read beside it."""
        import numpy as np

        in_time()
        given = {"pieces": np.array([row.pieces], np.int64), "roles": np.array([row.roles], np.int64)}
        (found,) = self._open()[1].run([output], given)
        return found[0].tolist()  # type: ignore[no-any-return]

    def _open(self) -> tuple[Any, Any]:
        with self._loading:  # many threads ask at once; one loads
            return self._opened

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        from tokenizers import Tokenizer

        weights, vocabulary = self.files
        try:
            return Tokenizer.from_file(str(vocabulary)), session(weights)
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError(f"the vocabulary {vocabulary.name} cannot be read: {error}") from error


class Network:
    """The networks in the box, as one reader."""

    windows = (64, 128)
    is_weighed = True

    def __init__(self, folder: Path) -> None:
        self._by_language = {language: Monolingual(folder, language) for language in LANGUAGES}

    @cached_property
    def identity(self) -> str:
        """Changes with the weights."""
        digest = hashlib.sha256()
        for one in self._by_language.values():
            for file in one.files:
                digest.update(file.read_bytes())
        return f"embedded-{digest.hexdigest()[:12]}"

    def sizes(self, texts: Sequence[str]) -> list[int]:
        found: dict[str, int] = {}
        for language, one in self._by_language.items():
            mine = [text for text in dict.fromkeys(texts) if language_read(text) == language]
            found |= zip(mine, map(len, one.pieces(mine)), strict=True)
        return [found[text] for text in texts]

    def read(self, pairs: Sequence[Pair]) -> list[Odds]:
        """How each claim stands to its passages."""
        found: list[Odds] = []
        for pair in pairs:
            one = self._by_language[language_read(*pair.premise, pair.context, pair.claim)]
            claim, context, *parts = one.pieces([pair.claim, pair.context, *pair.premise])
            row = one.laid_out(parts, context[:LONGEST_CONTEXT], claim[:LONGEST_CLAIM])
            found.append(Odds(*one.run("label", row)))
        return found

    def levels(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """How each sentence serves its question: the odds of levels 1, 2 and 3."""
        found: list[tuple[float, float, float]] = []
        for pair in pairs:
            one = self._by_language[language_read(*pair)]
            question, sentence = one.pieces(pair)
            row = one.laid_out([sentence[:LONGEST_CLAIM]], [], question[:LONGEST_CONTEXT])
            first, second, third = one.run("level", row)
            found.append((first, second, third))
        return found


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
    """The networks that the package carries."""
    with _first:
        return _network()


@cache
def _network() -> Network:
    with as_file(files("steelyard.judges.embedded") / "weights") as folder:
        return Network(folder)
