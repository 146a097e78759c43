"""Where things lie in a text: what an item is about, the quote it rests on. Spans, for showing both in place."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from steelyard.records import Verdict
from steelyard.text import ELLIPSIS, places
from steelyard.text.likeness import fine_word_pieces

Span = tuple[int, int]

# Nobody reads further than this for one mark, and a hostile megabyte must not hold up the page.
LONGEST_SEARCHED = 200_000
CLAUSE_END = re.compile(r"[，；。！？!?;\n]+|[,.:：](?=\s|$)|：")
UNITS = "%％‰°℃"
CLOSING = "。．.！!？?…”’」』）)】》\"'"
# Below this, a clause shares too little with a statement to be called its place.
ENOUGH_SHARED = 0.35
BELONGS = 0.6
# What stands in more clauses than this tells none of them apart.
MOST_CLAUSES = 1000
# No statement is spread over more clauses than this.
WIDEST = 40


class TextMark(NamedTuple):
    """A span of a text that belongs to the item with this key."""

    key: str
    start: int
    end: int


class Segment(NamedTuple):
    """A piece of a text with the keys of the items that cover it.

    `ends` are the keys whose last span ends here. A piece with `hidden` stands for so many characters left out.
    """

    text: str
    keys: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    hidden: int = 0


class Searched:
    """A text in which many things are looked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    # --- word for word -----------------------------------------------------------------------------

    def quote(self, quote: str) -> tuple[Span, ...]:
        """Where a quote stands; parts joined by … each have their own span."""
        spans, after = [], 0
        for part in ELLIPSIS.split(quote):
            if found := self._exact(part, after):
                span, after = found
                spans.append(span)
        return tuple(spans)

    def sentence(self, sentence: str, after: int = 0) -> tuple[Span, ...]:
        """Where a sentence of this text stands, with the mark that closes it; the first one from `after` on."""
        letters_before = bisect_left(self._letters[1], after)
        found = self._exact(sentence, letters_before) or self._exact(sentence, 0)
        if found is None:
            return self.statement(sentence, after)
        return (self._closed(found[0]),)

    def _closed(self, span: Span) -> Span:
        """The span with the marks that close its sentence."""
        start, end = span
        while end < len(self.text) and self.text[end] in CLOSING:
            end += 1
        return start, end

    @cached_property
    def _letters(self) -> tuple[str, list[int]]:
        return letters(self.text[:LONGEST_SEARCHED])

    def _exact(self, wanted: str, after: int) -> tuple[Span, int] | None:
        """The span, and where among the letters it ends."""
        haystack, origins = self._letters
        needle, _ = letters(wanted[:LONGEST_SEARCHED])
        for at in places(haystack, needle, after) if needle else ():
            start, end = origins[at], origins[at + len(needle) - 1] + 1
            if self.text[end : end + 1] in tuple(UNITS):
                end += 1
            if not cuts_a_number(self.text, start, end):
                return (start, end), at + len(needle)
        return None

    # --- in other words ----------------------------------------------------------------------------

    def statement(self, statement: str, after: int = 0) -> tuple[Span, ...]:
        """Where the text says this, word for word or in the clauses that share most of its wording.

        Of equally good places the first from `after` on is taken. Where nothing is close enough, there is none.
        """
        if found := self._exact(statement, 0):
            return (self._closed(found[0]),)
        clauses, index, weights = self._wording
        wanted = {piece for piece in fine_word_pieces(statement) if piece in index}
        shared: Counter[int] = Counter()
        for piece in wanted:
            shared.update(index[piece][:MOST_CLAUSES])
        if not shared:
            return ()
        total = sum(weights[piece] for piece in wanted)

        def closeness(first: int, last: int) -> float:
            pieces = set().union(*(pieces for _, pieces in clauses[first : last + 1]))
            both = sum(weights[piece] for piece in pieces & wanted)
            return 2 * both / (total + sum(weights[piece] for piece in pieces))

        def belongs(clause: int) -> bool:
            """Whether a neighbour says part of the statement, rather than just naming the same subject."""
            pieces = clauses[clause][1]
            both = sum(weights[piece] for piece in pieces & wanted)
            return both > BELONGS * sum(weights[piece] for piece in pieces)

        near = [clause for clause, _ in shared.most_common(20)]
        first = last = min(near, key=lambda c: (-closeness(c, c), clauses[c][0][0] < after, c))
        best = closeness(first, last)
        growing = True
        while growing and last - first < WIDEST:
            growing = False
            for added, wider in ((first - 1, (first - 1, last)), (last + 1, (first, last + 1))):
                if 0 <= added < len(clauses) and belongs(added) and closeness(*wider) > best:
                    (first, last), best, growing = wider, closeness(*wider), True
        if best < ENOUGH_SHARED:
            return ()
        return (self._closed((clauses[first][0][0], clauses[last][0][1])),)

    @cached_property
    def _wording(self) -> tuple[list[tuple[Span, set[str]]], dict[str, list[int]], dict[str, float]]:
        """The clauses with their wording, which clauses hold a piece of wording, and what each piece weighs."""
        clauses = [(span, fine_word_pieces(self.text[slice(*span)])) for span in _clauses(self.text[:LONGEST_SEARCHED])]
        index: defaultdict[str, list[int]] = defaultdict(list)
        for number, (_, pieces) in enumerate(clauses):
            for piece in pieces:
                index[piece].append(number)
        weights = {piece: math.log(1 + len(clauses) / len(found)) for piece, found in index.items()}
        return clauses, dict(index), weights


def letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits in comparable form, with the place each came from."""
    found: list[str] = []
    origins: list[int] = []
    for place, character in enumerate(text):
        for plain in unicodedata.normalize("NFKC", character).casefold():
            if plain.isalnum():
                found.append(plain)
                origins.append(place)
    return "".join(found), origins


def cuts_a_number(text: str, start: int, end: int) -> bool:
    """Whether the span begins or ends inside a number: 20 does not stand in 120."""
    before = text[start - 1 : start].isdecimal() and text[start].isdecimal()
    after = text[end : end + 1].isdecimal() and text[end - 1].isdecimal()
    return before or after


def _clauses(text: str) -> Iterator[Span]:
    start = 0
    for match in [*CLAUSE_END.finditer(text), None]:
        end = match.start() if match else len(text)
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = match.end() if match else end


# --- texts in pieces -------------------------------------------------------------------------------


def segments(text: str, marks: Iterable[TextMark]) -> list[Segment]:
    """The text cut wherever a mark begins or ends; joined again it is the text, character by character."""
    size = len(text)
    inside = [TextMark(m.key, max(0, m.start), min(size, m.end)) for m in marks if max(0, m.start) < min(size, m.end)]
    last_end: dict[str, int] = {}
    for mark in inside:
        last_end[mark.key] = max(mark.end, last_end.get(mark.key, 0))
    opened, closed = defaultdict(list), defaultdict(list)
    for mark in inside:
        opened[mark.start].append(mark.key)
        closed[mark.end].append(mark.key)
    order = {key: rank for rank, key in enumerate(dict.fromkeys(mark.key for mark in inside))}
    cuts = sorted({0, size, *opened, *closed})
    active: Counter[str] = Counter()
    found = []
    for start, end in pairwise(cuts):
        active.subtract(closed[start])
        active.update(opened[start])
        keys = sorted((key for key, n in active.items() if n > 0), key=order.__getitem__)
        ends = tuple(key for key in keys if last_end[key] == end)
        found.append(Segment(text[start:end], tuple(keys), ends))
    return found


def shortened(pieces: Sequence[Segment], longest: int, context: int = 300) -> list[Segment]:
    """The same in about `longest` characters: unmarked stretches lose their middle, then the rest is left out."""
    if sum(len(piece.text) for piece in pieces) <= longest:
        return list(pieces)
    if not any(piece.keys for piece in pieces):
        context = longest // 2
    kept: list[Segment] = []
    room = longest
    for number, piece in enumerate(pieces):
        if room <= 0:
            hidden = sum(len(left.text) + left.hidden for left in pieces[number:])
            ends = tuple(dict.fromkeys(key for left in pieces[number:] for key in left.ends))
            kept.append(Segment("", (), ends, hidden))
            break
        around = min(context, max(1, room // 2))
        size = len(piece.text)
        if size > 2 * around and (not piece.keys or size > room):
            kept.append(piece._replace(text=piece.text[:around], ends=()))
            kept.append(Segment("", hidden=size - 2 * around))
            kept.append(piece._replace(text=piece.text[-around:]))
            room -= 2 * around
        else:
            kept.append(piece)
            room -= size
    return kept


# --- evidence in the passages ----------------------------------------------------------------------


def evidence_marks(passage: str, index: int, verdict: Verdict) -> tuple[Span, ...]:
    """The spans of a passage that verified quotes point to, merged where they touch."""
    evidence = (getattr(item, "evidence", None) for item in verdict.items)
    quotes = [e.quote for e in evidence if e and e.verified and e.reference == index]
    searched = Searched(passage)
    return merged(sorted(span for quote in quotes for span in searched.quote(quote)))


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Sorted spans with those that touch made one."""
    found: list[Span] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)
