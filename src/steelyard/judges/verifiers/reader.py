"""A verifier that the user brought: pairs of passages and claims in, probabilities out.

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

from steelyard.errors import ConfigError, JudgeError
from steelyard.judges.embedded.network import Odds, Pair, session
from steelyard.judges.verifiers.folder import VerifierFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS, CELLS = 16, 4096
# A claim that leaves the passages less than this share of the input is not read.
LEAST = 4
# What a claim that cannot be read gets: nothing is known of it.
UNREAD = Odds(0.0, 0.0, 1.0)
SLOT = re.compile(r"\{(premise|context|claim)\}")
KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Row(NamedTuple):
    """One input of the model. `claim` are the places of the claim's pieces."""

    ids: list[int]
    kinds: list[int]
    claim: range


class Marks(NamedTuple):
    """What the tokenizer puts before, between and behind two texts: pieces, and the kinds of all five parts."""

    before: list[int]
    between: list[int]
    behind: list[int]
    kinds: tuple[int, int, int, int, int]

    @property
    def size(self) -> int:
        return len(self.before) + len(self.between) + len(self.behind)


class Verifier:
    """The reader over a folder with model.onnx, tokenizer.json, config.json and perhaps verifier.toml.

    `digest` is the model file's SHA-256, where it is known already.
    """

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        self._folder = VerifierFolder(folder)
        self._known = digest
        self._settings, self._outputs = self._folder.settings, self._folder.outputs
        self._texts = self._tokenizer()
        # A passage that holds the name of a mark must not be cut in two by it; a template may hold marks.
        self._texts.encode_special_tokens = True
        self._templates = self._tokenizer()
        self._marks = self._find_marks()
        self._gap = self._find_gap()
        self._session = self._load()
        self._reads_tokens = self._check_output()

    @cached_property
    def identity(self) -> str:
        """Changes with the weights, the tokenizer and the settings."""
        return f"{self._folder.path.resolve().name}-{self._folder.digest(self._known)[:12]}"

    @property
    def windows(self) -> tuple[int, ...]:
        return self._folder.windows

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts into pieces of the model's vocabulary, without marks."""
        plain = [self._without_marks(text) for text in texts]
        return [list(found.ids) for found in self._texts.encode_batch(plain, add_special_tokens=False)]

    def read(self, pairs: Sequence[Pair]) -> list[Odds]:
        """How each claim stands to its passages."""
        found = [UNREAD] * len(pairs)
        rows = {place: row for place, pair in enumerate(pairs) if (row := self._row(pair))}
        for places in _batches(rows):
            logits = self._run([rows[place] for place in places])
            for at, place in enumerate(places):
                found[place] = self._odds(logits[at], rows[place])
        return found

    # --- what the model is given -------------------------------------------------------------------

    def _row(self, pair: Pair) -> Row | None:
        """The input for one pair. Where it is too long, the context goes first, then the ends of the passages."""
        claim, context = list(pair.claim), list(pair.context)
        most = self._folder.length - self._folder.length // LEAST
        if len(claim) > most or not claim:
            return None
        if len(claim) + len(context) > most or self._settings.context == "none":
            context = []
        return self._filled(pair, claim, context) if self._settings.template else self._paired(pair, claim, context)

    def _paired(self, pair: Pair, claim: list[int], context: list[int]) -> Row:
        """Two texts with the tokenizer's own marks."""
        leaning = [*context, *self._gap] if context else []
        with_claim = self._context_with_claim
        room = self._folder.length - self._marks.size - len(claim) - len(leaning)
        premise = self._joined(_shortened(pair.premise, room - len(self._gap) * len(pair.premise)))
        if with_claim:
            claim_text = [*leaning, *claim]
        else:
            premise, claim_text = [*premise, *([*self._gap, *context] if context else [])], claim
        parts = (claim_text, premise) if self._settings.claim_first else (premise, claim_text)
        laid = (self._marks.before, parts[0], self._marks.between, parts[1], self._marks.behind)
        ids = [piece for part in laid for piece in part]
        kinds = [kind for part, kind in zip(laid, self._marks.kinds, strict=True) for _ in part]
        ends = sum(map(len, laid[: 2 if self._settings.claim_first else 4]))
        return Row(ids, kinds, range(ends - len(claim), ends))

    def _filled(self, pair: Pair, claim: list[int], context: list[int]) -> Row:
        """One text by the template, cut into pieces as a whole, as the model was taught."""
        texts = {"claim": self._text(claim), "context": self._text(context)}
        room = self._folder.length - len(self._templates.encode(self._fill({**texts, "premise": ""})[0]).ids)
        while True:
            passages = [self._text(part) for part in _shortened(pair.premise, room)]
            text, span = self._fill({**texts, "premise": "\n".join(filter(None, passages))})
            encoded = self._templates.encode(text)
            over = len(encoded.ids) - self._folder.length
            if over <= 0 or room <= 0:
                break
            # Pieces of a whole text are not quite those of its parts.
            room -= over
        places = [at for at, (start, end) in enumerate(encoded.offsets) if start < span.stop and end > span.start]
        claim_at = range(places[0], places[-1] + 1) if places else range(0)
        size = self._folder.length
        return Row(encoded.ids[:size], encoded.type_ids[:size], claim_at)

    def _fill(self, texts: dict[str, str]) -> tuple[str, range]:
        """The template's text, and where the claim stands in it."""
        text, span = "", range(0)
        template = self._settings.template or ""
        has_place = "{context}" in template
        for number, part in enumerate(SLOT.split(template)):
            if not number % 2:
                text += part
                continue
            added = texts[part]
            if texts["context"] and not has_place and part == ("claim" if self._context_with_claim else "premise"):
                added = f"{texts['context']} {added}" if part == "claim" else f"{added}\n{texts['context']}"
            text += added
            if part == "claim":
                span = range(len(text) - len(texts["claim"]), len(text))
        return text, span

    @property
    def _context_with_claim(self) -> bool:
        """A token classifier labels the claim alone, so its question stands with the passages."""
        return (self._settings.context or ("premise" if self._reads_tokens else "claim")) == "claim"

    def _text(self, pieces: Sequence[int]) -> str:
        return self._without_marks(self._texts.decode(list(pieces), skip_special_tokens=False)).strip()

    def _without_marks(self, text: str) -> str:
        for mark in self._mark_names:
            text = text.replace(mark, " ")
        return text

    def _joined(self, passages: Sequence[Sequence[int]]) -> list[int]:
        joined: list[int] = []
        for part in filter(None, passages):
            joined += [*self._gap, *part] if joined else part
        return joined

    # --- what it says ------------------------------------------------------------------------------

    def _run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
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

    def _odds(self, logits: NDArray[np.float32], row: Row) -> Odds:
        if not self._reads_tokens:
            return self._meant(_softmax(logits if logits.ndim == 1 else logits[0]))
        spans = _softmax(logits[row.claim.start : row.claim.stop])
        if not len(spans):
            return UNREAD
        support = [float(one) for one in spans[:, self._outputs.supported]]
        # Neighbours that are rather unsupported are one span; a single piece says little by itself.
        runs = [list(run) for bad, run in groupby(support, lambda one: one < 0.5) if bad]
        worst = min((sum(run) / len(run) for run in runs), default=min(support))
        return Odds(worst, 0.0, 1.0 - worst)

    def _meant(self, shares: NDArray[np.float32]) -> Odds:
        supported = float(shares[self._outputs.supported])
        contradicted = 0.0 if self._outputs.contradicted is None else float(shares[self._outputs.contradicted])
        return Odds(supported, contradicted, max(0.0, 1.0 - supported - contradicted))

    # --- loading -----------------------------------------------------------------------------------

    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            found = Tokenizer.from_file(str(self._folder.tokenizer))
        except Exception as error:  # the library raises no narrower kind
            raise ConfigError(f"{self._folder.tokenizer}: cannot be read: {_first_line(error)}") from error
        # Exporters leave the settings of their last call in the file.
        found.no_truncation()
        found.no_padding()
        return found

    @cached_property
    def _mark_names(self) -> list[str]:
        return [token.content for token in self._templates.get_added_tokens_decoder().values() if token.special]

    def _find_marks(self) -> Marks:
        """From the encoding of two one-letter texts: what belongs to neither."""
        found = self._texts.encode("a", "b")
        owners = found.sequence_ids
        first, second = (range(owners.index(one), len(owners) - owners[::-1].index(one)) for one in (0, 1))
        bounds = (
            range(first.start),
            first,
            range(first.stop, second.start),
            second,
            range(second.stop, len(owners)),
        )
        kinds = [found.type_ids[bound.start] if len(bound) else 0 for bound in bounds]
        before, between, behind = ([found.ids[at] for at in bounds[part]] for part in (0, 2, 4))
        return Marks(before, between, behind, (kinds[0], kinds[1], kinds[2], kinds[3], kinds[4]))

    def _find_gap(self) -> list[int]:
        """What stands between two passages: a new line, where the vocabulary has one."""
        pieces = list(self._texts.encode("\n", add_special_tokens=False).ids)
        return pieces if "\n" in self._texts.decode(pieces) else []

    def _load(self) -> Any:
        try:
            found = session(self._folder.model)
        except JudgeError:
            raise
        except Exception as error:  # onnxruntime's own kinds of errors have no common ground
            raise ConfigError(f"{self._folder.model}: onnxruntime cannot read it: {_first_line(error)}") from error
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
        """Try the model on a short pair: whether it labels tokens, and has as many labels as it says."""
        short = self._texts.encode("a", "b")
        (one,) = self._run([Row(short.ids, short.type_ids, range(0))])
        if one.ndim not in (1, 2) or one.shape[-1] != self._outputs.size:
            raise ConfigError(
                f"{self._folder.model}: gives {one.shape[-1]} outputs, and {self._outputs.size} are named in "
                "config.json (id2label) or verifier.toml (labels)"
            )
        return bool(one.ndim == 2 and self._settings.tokens == "claim")


def _shortened(passages: Sequence[Sequence[int]], room: int) -> list[Sequence[int]]:
    """As much of each passage as there is room for; the longest give way first."""
    kept, left = [0] * len(passages), max(room, 0)
    by_length = sorted(range(len(passages)), key=lambda at: len(passages[at]))
    for number, at in enumerate(by_length):
        kept[at] = min(len(passages[at]), left // (len(passages) - number))
        left -= kept[at]
    return [passage[:size] for passage, size in zip(passages, kept, strict=True)]


def _batches(rows: dict[int, Row]) -> Iterator[list[int]]:
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
