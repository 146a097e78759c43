"""Whether passages support a claim, contradict it or do not say, with the span that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from steelyard.judges.embedded.advice import advised
from steelyard.judges.embedded.bound import turned
from steelyard.judges.embedded.claims import kind_of
from steelyard.judges.embedded.clashes import opposed
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.features import NAMES, Alignment, measure_all
from steelyard.judges.embedded.model import model
from steelyard.judges.embedded.overruling import overruled
from steelyard.judges.embedded.readers import readings
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.written import lacking
from steelyard.text import language_of, normalise

Label = Literal["supported", "contradicted", "unknown"]

# Longer claims are read up to here: no atom and no sentence is as long.
LONGEST_CLAIM = 2000
# A quote this short proves nothing (text.contains_quote), so it is widened to its neighbours.
SHORTEST_QUOTE = 4
# From here on a claim is supported whatever a rule of thumb may say.
SURE = 0.95
# The most that is left of a probability that such a rule overrules.
OVERRULED = 0.15
# The clash that no rule can name: the network reads that the passage says otherwise.
MEANING = "meaning"
# More than a few would hide what matters.
MOST_NAMED = 3


class Odds(NamedTuple):
    """How probable it is that passages support a claim, contradict it, or say neither; together 1."""

    supported: float
    contradicted: float
    unknown: float


class Support(NamedTuple):
    """How the passages stand to one claim.

    `probability` is that of support; `quote` stands word for word in passage `reference`; `clash` is the kind of
    contradiction that was seen, with the two things that differ in `claimed` and `stated` where they can be named.
    `odds` has all three probabilities, from a reader that tells them apart.
    """

    label: Label
    probability: float
    reference: int | None
    quote: str | None
    clash: str | None
    reason: str
    claimed: str | None = None
    stated: str | None = None
    odds: Odds | None = None

    @property
    def confidence(self) -> float:
        """How probable the label is."""
        if self.odds:
            return dict(zip(("supported", "contradicted", "unknown"), self.odds, strict=True))[self.label]
        return self.probability if self.label == "supported" else 1 - self.probability


class Reading(Protocol):
    """Passages that have been read once and can be asked about many claims."""

    def support(self, claim: str) -> Support: ...

    def supports(self, claims: Sequence[str]) -> list[Support]: ...


class Read(Protocol):
    """Reads passages; `answer` is the text that the claims come from, where they may be mere phrases of it."""

    def __call__(self, passages: Sequence[str], question: str = "", answer: str = "") -> Reading: ...


def read(passages: Sequence[str], question: str = "", answer: str = "") -> Reading:
    """The passages, read once."""
    return _Passages(Source(passages, question, answer))


class _Passages:
    def __init__(self, source: Source) -> None:
        self._source = source

    def support(self, claim: str) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[str]) -> list[Support]:
        cut = [claim[:LONGEST_CLAIM] for claim in claims]
        found = measure_all(cut, self._source)
        views = iter(_views([one for one in found if one]))
        return [
            nothing(claim, self._source) if one is None else _weighed(claim, one, next(views), self._source)
            for claim, one in zip(cut, found, strict=True)
        ]


class _View(NamedTuple):
    """How probable it is that a claim is supported, and that it is contradicted."""

    supported: float
    contradicted: float


def _views(measured: Sequence[Alignment]) -> list[_View]:
    import numpy as np

    if not measured:
        return []
    lines = np.array([[one.features[name] for name in NAMES] for one in measured], dtype=np.float64)
    vectors = np.stack([one.vector for one in measured]).astype(np.float64)
    read = readings([(one.claim, one.beside) for one in measured], lines)
    supported = model().probabilities(lines, vectors, np.array([one.support for one in read]))
    return [_View(odds, one.contradicted) for odds, one in zip(supported.tolist(), read, strict=True)]


def nothing(claim: str, source: Source) -> Support:
    """Nothing to compare: no passage says anything, or the claim does not."""
    chinese = language_of(claim) != "en"
    if not source.spans:
        reason = "没有可对照的资料" if chinese else "there is no passage to compare with"
    else:
        reason = "没有可核对的内容" if chinese else "the claim states nothing that can be checked"
    return Support("unknown", 0.0, None, None, None, reason)


def _weighed(claim: str, found: Alignment, view: _View, source: Source) -> Support:
    probability = view.supported
    chinese = language_of(claim) != "en"
    lines = model()
    if probability < SURE and (clash := turned(claim, source)):
        return _turned(clash, probability, found, source, chinese)
    clash = found.clashes[0] if found.clashes else None
    if not found.features["clashes"] and view.contradicted < lines.denied:
        # What only the places of words show, and the network does not read there, is not called a contradiction.
        clash = None
    reference, quote = found.span.passage, quote_of(found, source)
    language = "zh" if chinese else "en"
    below = lines.contradicted[language]
    if not found.features["clashes"]:
        # That line was drawn for what rules see; what only the places of words show never overrules support.
        below = min(below, lines.supported[language])
    if seen := overruled(claim, found, source):
        # Whatever the networks make of words that all are there.
        clash, below, probability = seen, 1.0, min(probability, OVERRULED)
    elif opposite := opposed(claim, found.span.text):
        clash, below = opposite, SURE
    if clash and probability < below:
        reason = (
            f"资料写的是“{clash.stated}”，不是“{clash.claimed}”"
            if chinese
            else f'the passage has "{clash.stated}", not "{clash.claimed}"'
        )
        return Support("contradicted", probability, reference, quote, clash.kind, reason, clash.claimed, clash.stated)
    if probability >= lines.supported[language]:
        return Support("supported", probability, reference, quote, None, agreement(claim, found, chinese))
    if view.contradicted >= lines.denied:
        # 不建议给大灯贴膜 where the passage has 建议您不要加装灯膜: the network takes turned words for a denial.
        advice = advised(claim, source.passages) if kind_of(claim) == "advice" else None
        if advice and advice.agrees:
            reason = "资料也这样建议" if chinese else "the passage advises the same"
            return Support("supported", probability, advice.reference, advice.quote, None, reason)
        reason = "资料的说法与此不符" if chinese else "the quoted passage says otherwise"
        return Support("contradicted", probability, reference, quote, MEANING, reason)
    return Support("unknown", probability, reference, quote, None, lack(claim, found, source, chinese))


def _turned(clash: Clash, probability: float, found: Alignment, source: Source, chinese: bool) -> Support:
    span = next((span for span in source.spans if clash.stated in span.text), found.span)
    reason = "资料的说法与此相反" if chinese else "the quoted passage says the opposite"
    return Support("contradicted", probability, span.passage, span.text, clash.kind, reason)


def quote_of(found: Alignment, source: Source) -> str:
    if len(normalise(found.span.text)) >= SHORTEST_QUOTE:
        return found.span.text
    return source.passages[found.span.passage][found.wide[0] : found.wide[1]]


def agreement(claim: str, found: Alignment, chinese: bool) -> str:
    if normalise(claim) in normalise(found.span.text):
        return "资料中有原话" if chinese else "the passage says so word for word"
    return "与资料中的这句话相符" if chinese else "agrees with the quoted sentence"


def lack(claim: str, found: Alignment, source: Source, chinese: bool) -> str:
    strange = lacking(claim, found.window, source.plain)[:MOST_NAMED]
    if not strange:
        return "资料没有明确这样说" if chinese else "the passages do not quite say so"
    if chinese:
        return f"资料中没有提到“{'”“'.join(strange)}”"
    return "not found in the passages: " + ", ".join(f'"{one}"' for one in strange)
