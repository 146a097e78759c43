"""What a page shows about one sample, as plain values: no markup, no escaping. The templates add both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from steelyard.protocols.vocabulary import Label, Vocabulary
from steelyard.records import Language

Tone = Literal["bad", "half", "open", "plain", "good"]
# Where several items cover one place, the first of these is what a reader must see.
SEVERITY: tuple[Tone, ...] = ("bad", "half", "open", "good", "plain")

LONGEST_UNFOLDED = 1200
NO_MARKUP = Markup("")


@dataclass(frozen=True)
class ViewLimits:
    """How much of a sample is shown. A file that is passed around must stay light; a viewer may show all."""

    text: int = 6000
    items: int = 200
    passages: int = 50


@dataclass(frozen=True)
class Chip:
    """A label as people see it; `sure` is the probability that the judge gives to it, `about` says that it is one."""

    text: str
    tone: Tone = "plain"
    sign: str = ""
    sure: str = ""
    about: str = ""


@dataclass(frozen=True)
class Badge:
    """The small number at the end of a marked place; it leads to the item."""

    key: str
    place: Literal["t", "q"]
    text: str
    tone: Tone
    sign: str


@dataclass(frozen=True)
class Piece:
    """A stretch of text with the items it belongs to; or, with `hidden`, a gap of so many characters; or, with
    `markup`, a tag of a rendered text."""

    text: str
    keys: tuple[str, ...] = ()
    tone: Tone = "plain"
    badges: tuple[Badge, ...] = ()
    hidden: int = 0
    markup: Markup = NO_MARKUP


@dataclass(frozen=True)
class PassageView:
    """A text from outside. `size` is its full length, `cited` whether an item rests on it.

    Where `pieces` are its Markdown rendered, `raw` is the text as it was written.
    """

    title: str
    pieces: tuple[Piece, ...]
    size: int
    cited: bool = False
    raw: tuple[Piece, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether what is shown of it should start folded."""
        return sum(len(piece.text) for piece in self.pieces) > LONGEST_UNFOLDED


@dataclass(frozen=True)
class ItemView:
    """One labelled item. `in_text` and `in_source`: whether its place in the answer, and its quote, were found."""

    key: str
    number: str
    text: str
    chips: tuple[Chip, ...]
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    quote: str = ""
    quote_about: str = ""
    in_text: bool = False
    in_source: bool = False
    parts: tuple[ItemView, ...] = ()

    @property
    def tone(self) -> Tone:
        return self.chips[0].tone if self.chips else "plain"

    @property
    def sign(self) -> str:
        return self.chips[0].sign if self.chips else ""


@dataclass(frozen=True)
class ItemGroup:
    title: str
    items: tuple[ItemView, ...]
    note: str = ""
    hidden: int = 0


@dataclass(frozen=True)
class TurnView:
    title: str
    prompt: PassageView
    answer: PassageView
    group: ItemGroup


@dataclass(frozen=True)
class SampleView:
    """Everything a page shows about one sample. `anchor` begins every address inside it.

    `language` is that of the judged text, null where it is the page's own.
    """

    anchor: str
    id: str
    language: Language | None
    facts: tuple[tuple[str, str], ...]
    scores: tuple[tuple[str, str, str], ...]
    flags: tuple[tuple[str, str], ...]
    question: PassageView | None = None
    answer: PassageView | None = None
    other_answer: PassageView | None = None
    texts: tuple[PassageView, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    groups: tuple[ItemGroup, ...] = ()
    passages: tuple[PassageView, ...] = ()
    passages_hidden: int = 0
    turns: tuple[TurnView, ...] = ()
    legend: tuple[Chip, ...] = ()


def tone_of(label: Label) -> Tone:
    return "plain" if label.tone == "neutral" else label.tone


def chip(language: Language, vocab: Vocabulary, aspect: str, label: object) -> Chip:
    """A label in the reader's words, with its tone and sign."""
    found = vocab.label(aspect, str(label))
    return Chip(found.words.in_language(language) or found.name, tone_of(found), found.shown_sign.strip())
