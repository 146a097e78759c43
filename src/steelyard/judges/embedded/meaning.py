"""What texts have in common: folded text, content words, and sentence embeddings read from a small local model."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.judges.embedded.encoder import Read, encoder, read
from steelyard.text import converted, fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# The encoder reads a sentence; what is longer than this has said what it is about.
LONGEST_ENCODED = 400
REMEMBERED = 1024
DIMENSIONS = 512
RAREST = 30.0
WORD_START = "\u2581"

UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffd\u200b-\u200f\u2028-\u202e\ufeff]")
HAN_RUN = re.compile(r"[\u3007\u3400-\u4dbf\u4e00-\u9fff]+")
TOKEN = re.compile(r"[\u3007\u3400-\u4dbf\u4e00-\u9fff]+|[a-z\u00c0-\u024f]+(?:'[a-z]+)?|\d+(?:[.,]\d+)*|[^\W_]+")

STOP_WORDS = frozenset(
    "a an the and or but if of at by for with about into to from in on off over under as is are was were be been being "
    "am do does did doing have has had having will would shall should can could may might must this that these those "
    "it its he she they them his her their him you your yours i me my we our us there here then than so such also just "
    "very what which who whom whose when where why how not no nor only own same too s t don all any both each few "
    "more most other some while because during before after above below again further once that's it's".split()
)
STOP_CHARACTERS = frozenset("的了是在和与及或也都就而但这那其之于以为被把将对从到向由等着过吗呢吧啊呀嘛们个很")
SUFFIXES = ("ations", "ation", "ingly", "edly", "ings", "ing", "ies", "ied", "ed", "ly", "es", "s")


# --- plain text and words --------------------------------------------------------------------------


@lru_cache(maxsize=2048)
def simplified(text: str) -> str:
    """Text in half width and Simplified characters, with nothing unreadable in it; case is kept."""
    folded = UNREADABLE.sub(" ", fold(UNREADABLE.sub(" ", text)))
    return converted(folded, "t2s") if HAN_RUN.search(folded) else folded


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """Text folded for comparison: half width, lower case, Simplified characters, nothing unreadable."""
    return simplified(text).casefold()


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A light English stem: enough that visits, visited and visiting are one word."""
    word = word.removesuffix("'s")
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            return _undoubled(word[: -len(suffix)] + ("y" if suffix in ("ies", "ied") else ""))
    return word.removesuffix("e") if len(word) > 4 else word


def _undoubled(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


class Term(NamedTuple):
    """One content word: what it is compared by, and how it is written (in folded text)."""

    key: str
    written: str


@lru_cache(maxsize=4096)
def terms(text: str) -> tuple[Term, ...]:
    """The content words of a text in order, each with how it is written."""
    found: list[Term] = []
    for token in TOKEN.findall(plain(text)):
        if HAN_RUN.match(token):
            found.extend(Term(pair, pair) for pair in _pairs(token))
        elif token not in STOP_WORDS:
            found.append(Term(stem(token) if token[0].isalpha() else token.replace(",", ""), token))
    return tuple(found)


def words(text: str) -> list[str]:
    """The content words of a text: stemmed Latin words, numbers, and pairs of Chinese characters."""
    return [term.key for term in terms(text)]


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [] if run in STOP_CHARACTERS else [run]
    pairs = (run[at : at + 2] for at in range(len(run) - 1))
    return [pair for pair in pairs if not (pair[0] in STOP_CHARACTERS and pair[1] in STOP_CHARACTERS)]


# --- embeddings ------------------------------------------------------------------------------------


class Encoder:
    """The sentence encoder: loaded at first use, each text encoded once while it is remembered."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Read] = OrderedDict()
        self._expected: dict[str, None] = {}

    def expect(self, texts: Sequence[str]) -> None:
        """Texts that will be asked for soon: encoded with the next ones that have to be, since together is cheaper."""
        with self._lock:
            self._expected.update(dict.fromkeys(map(_readable, texts)))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text. The same text has the same vector, whatever stands beside it."""
        import numpy as np

        rows = [found.vector for found in self.read(texts)]
        return np.stack(rows) if rows else np.zeros((0, DIMENSIONS), dtype=np.float32)

    def read(self, texts: Sequence[str]) -> list[Read]:
        """The texts' vectors and those of their words."""
        keys = [_readable(text) for text in texts]
        with self._lock:
            missing = [key for key in dict.fromkeys(keys) if key not in self._known]
            if missing:
                missing = [key for key in dict.fromkeys((*missing, *self._expected)) if key not in self._known]
                self._expected.clear()
                self._known.update(zip(missing, read(missing), strict=True))
            found = [self._known[key] for key in keys]
            for key in keys:
                self._known.move_to_end(key)
            while len(self._known) > self._remembered:
                self._known.popitem(last=False)
        return found


def _readable(text: str) -> str:
    return simplified(text[:LONGEST_ENCODED])


class OneThread:
    """Matrices this small are multiplied faster by one thread than by several that wait for each other.

    The limit is the process's, so it holds from the first that enters until the last that leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1 and (controller := _threads()):
                self._limit = controller.limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None


@lru_cache(maxsize=1)
def _threads() -> Any:
    import numpy as np  # the library to be limited has to be loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController() if np else None


ONE_THREAD = OneThread()


SENTENCES = Encoder()


def encode(texts: Sequence[str]) -> Vectors:
    """The sentence embeddings of some texts, as rows of unit length."""
    return SENTENCES.encode(texts)


def expect(texts: Sequence[str]) -> None:
    """Says which texts will be compared soon, so that they are encoded together with what is encoded next."""
    SENTENCES.expect(texts)


def similarity(a: Sequence[str], b: Sequence[str]) -> Vectors:
    """The cosine of every text of `a` (rows) with every text of `b` (columns)."""
    vectors = encode([*a, *b])
    cosines: Vectors = vectors[: len(a)] @ vectors[len(a) :].T
    return cosines


def pieces(text: str) -> list[str]:
    """A text cut into the encoder's own vocabulary: words and parts of words, Chinese ones included."""
    found = encoder()._tokenizer.encode(UNREADABLE.sub(" ", text), out_type=str, add_bos=False, add_eos=False)
    return [piece.strip(WORD_START) for piece in found if piece.strip(WORD_START)]


@lru_cache(maxsize=8192)
def word_vector(word: str) -> Vectors:
    """The encoder's own vector of a single word, before it stands in any sentence; of unit length."""
    import numpy as np

    table = encoder()._model
    if not (ids := _numbers_of(word)):
        return np.zeros(DIMENSIONS, dtype=np.float32)
    at = np.array(ids)
    chunk = at % len(table.scale)
    total = (table.table[at] * table.scale[chunk, None] + table.lo[chunk, None]).mean(axis=0)
    length = float(np.sqrt(total @ total))
    found: Vectors = (total / (length or 1.0)).astype(np.float32)
    return found


@lru_cache(maxsize=16384)
def rarity(word: str) -> float:
    """How rare a word is: minus the log of its share in the encoder's vocabulary, at most RAREST."""
    tokenizer = encoder()._tokenizer
    ids = (at for at in _numbers_of(word) if tokenizer._pieces[at] != WORD_START)
    return min(RAREST, float(sum(-tokenizer._scores[at] if at else RAREST for at in ids)))


@lru_cache(maxsize=16384)
def _numbers_of(word: str) -> tuple[int, ...]:
    """A word in the encoder's vocabulary, the mark of a word's start left out where anything else is there."""
    tokenizer = encoder()._tokenizer
    ids = tokenizer.encode(UNREADABLE.sub(" ", word[:40]), add_bos=False, add_eos=False)
    return tuple(at for at in ids if tokenizer._pieces[at] != WORD_START) or tuple(ids)
