"""Whether passages support a claim, contradict it or do not say: the one place that decides.

The network reads the claim beside the sentences that have most to do with it. Its three numbers and what can be counted
exactly (how much of the claim stands in the passages, values and names that do not) are weighed on one line for each
language; the weights of the line and the two thresholds are chosen on development rows (`training/`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from steelyard.judges.embedded.excerpts import Excerpt, Passages, PassageSentence, words
from steelyard.judges.embedded.network import Odds, Reader, ReaderPair, in_time, network
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.text import contains_quote, language_of, normalise
from steelyard.text.figures import Clash, Values, mended

Label = Literal["supported", "contradicted", "unknown"]

LONGEST_CLAIM = 2000
# Below this the network is in doubt, and reads more of the passages.
DOUBT = 0.9
# A claim that repeats a whole sentence, or the clause that opens one, needs no reading. Others may hang on a condition.
VERBATIM = Odds(0.98, 0.01, 0.01)
SHORTEST_VERBATIM = 6
# The point of 3.5 and the comma of 12,000 end nothing.
CLAUSE_ENDS = re.compile(r"[，；。！？：]|[,;.!?:](?=\s|\Z)")
# A value in the place of another counts only where claim and sentence speak of the same thing.
SAME_MATTER = 0.4
NAME = re.compile(r"(?<=[a-z,;:)\d] )[A-Z][A-Za-z]+|(?<=[\u4e00-\u9fff])[A-Za-z]{2,}")
MOST_NAMED = 3


class ClaimInContext(NamedTuple):
    """What is checked, and the text it leans on: the sentence before it, or the question it answers."""

    text: str
    context: str = ""


class Support(NamedTuple):
    """How the passages stand to one claim. `quote` stands word for word in passage `reference`."""

    label: Label
    odds: Odds
    reason: str
    reference: int | None = None
    quote: str | None = None
    difference: Clash | None = None
    """The two values that differ, where that is all that differs; of a supported claim, how they are rounded."""

    @property
    def confidence(self) -> float:
        """How probable the label is."""
        return dict(zip(("supported", "contradicted", "unknown"), self.odds, strict=True))[self.label]


class ClaimEvidence(NamedTuple):
    """What is known about one claim before anything is decided."""

    odds: Odds
    best: PassageSentence | None
    """The sentence that has most of the claim."""
    share: float
    """The share of the claim's words that the passages have, and the best sentence has."""
    share_of_best: float
    missing: int
    """Values, and names, that the passages do not have."""
    strange: int
    clash: Clash | None

    def features(self) -> list[float]:
        return [
            _logit(self.odds.supported),
            _logit(self.odds.contradicted),
            self.share,
            self.share_of_best,
            float(min(self.missing, 2)),
            float(min(self.strange, 2)),
            float(self.clash is not None),
        ]


class DecisionLine(NamedTuple):
    """The line of one language: weights of the features, and from where on a claim is supported or contradicted."""

    weights: tuple[float, ...]
    bias: float
    supported: float
    contradicted: float

    def probability(self, features: Sequence[float]) -> float:
        """That a claim is supported."""
        total = self.bias + sum(weight * value for weight, value in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


# The lines were drawn for the network in the box. Another reader's own probability stands, and a value in the place of
# another weighs against it, twenty to one.
OTHERS = DecisionLine((1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.0), 0.0, 0.5, 0.5)


@cache
def lines() -> dict[str, DecisionLine]:
    held = json.loads((files("steelyard.judges.embedded") / "weights" / "lines.json").read_text())
    return {language: DecisionLine(**{**line, "weights": tuple(line["weights"])}) for language, line in held.items()}


class PassageReading:
    """Passages that are read once and can be asked about many claims."""

    def __init__(self, passages: Sequence[str], phrase: Phrasing, reader: Reader | None = None) -> None:
        self.passages, self._phrase = passages, phrase
        self._reader = reader or network()
        self._cut = Passages(passages, self._reader.sizes)
        self._texts = [sentence.text for sentence in self._cut.sentences]
        self._words = frozenset(word for sentence in self._cut.sentences for word in sentence.words)
        self._values = Values(self._texts)
        self._said = {
            normalise(text): one
            for one in self._cut.sentences
            for text in (CLAUSE_ENDS.split(one.text, maxsplit=1)[0], one.text)
        }
        self._known: dict[ClaimInContext, Support] = {}

    def support(self, claim: ClaimInContext) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[ClaimInContext]) -> list[Support]:
        """All claims, read together; none is read twice."""
        cut = [ClaimInContext(claim.text[:LONGEST_CLAIM], claim.context[:LONGEST_CLAIM]) for claim in claims]
        new = [claim for claim in dict.fromkeys(cut) if claim not in self._known]
        found = [self._decided(claim, one) for claim, one in zip(new, self.evidence(new), strict=True)]
        self._known |= zip(new, self._with_differences(new, found), strict=True)
        return [self._known[claim] for claim in cut]

    def evidence(self, claims: Sequence[ClaimInContext]) -> list[ClaimEvidence]:
        """What is read and counted about each claim."""
        wanted = [words(f"{claim.text} {claim.context}") for claim in claims]
        odds = self._odds(claims, wanted)
        return [self._counted(claim, words(claim.text), one) for claim, one in zip(claims, odds, strict=True)]

    def _odds(self, claims: Sequence[ClaimInContext], wanted: Sequence[frozenset[str]]) -> list[Odds]:
        found = [VERBATIM if self._verbatim(claim.text) else None for claim in claims]
        open_ = [at for at, odds in enumerate(found) if odds is None] if self._texts else []
        whole: set[int] = set()
        for window in self._reader.windows:
            looked = {at: self._excerpt(wanted[at], window) for at in open_ if at not in whole}
            if not looked:
                break
            pairs = [ReaderPair(looked[at].parts(), claims[at].context, claims[at].text) for at in looked]
            for at, odds in zip(looked, self._reader.read(pairs), strict=True):
                earlier = found[at]
                found[at] = odds if earlier is None else _between(earlier, odds)
            whole |= {at for at, excerpt in looked.items() if excerpt.is_whole}
            open_ = [at for at in open_ if max(found[at] or VERBATIM) < DOUBT]
        return [odds or Odds(0.0, 0.0, 1.0) for odds in found]

    def _excerpt(self, wanted: frozenset[str], window: int) -> Excerpt:
        in_time()
        return self._cut.excerpt(wanted, window)

    def _verbatim(self, claim: str) -> PassageSentence | None:
        """The sentence that is the claim word for word, or opens with it."""
        plain = normalise(claim)
        return self._said.get(plain) if len(plain) >= SHORTEST_VERBATIM else None

    def _counted(self, claim: ClaimInContext, own: frozenset[str], odds: Odds) -> ClaimEvidence:
        in_time()
        best = self._verbatim(claim.text) or max(
            self._cut.sentences, key=lambda one: (len(one.words & own), -one.size, -one.place), default=None
        )
        of_best = len(best.words & own) / len(own) if best and own else 0.0
        seen = self._values.clash(claim.text, best.text) if best and of_best >= SAME_MATTER else None
        return ClaimEvidence(
            odds,
            best,
            len(self._words & own) / len(own) if own else 0.0,
            of_best,
            len(self._values.missing(claim.text)),
            len(self._strange(claim.text)),
            seen,
        )

    def _strange(self, claim: str) -> list[str]:
        """Names of the claim that no passage has."""
        return [name for name in NAME.findall(claim) if (own := words(name)) and not own & self._words]

    def _decided(self, claim: ClaimInContext, found: ClaimEvidence) -> Support:
        """The label, from the network's three numbers and what was counted."""
        phrase = self._phrase
        if found.best is None:
            return Support("unknown", found.odds, phrase("没有可对照的资料", "there is no passage to compare with"))
        line = self._line(claim.text)
        probability = line.probability(found.features())
        rest = 1 - probability
        against = found.odds.contradicted / max(1e-6, found.odds.contradicted + found.odds.neutral)
        odds = Odds(probability, rest * against, rest * (1 - against))
        proof = self._proof(found.best)
        if probability >= line.supported:
            said = (
                phrase("资料中有原话", "the passage says so word for word")
                if self._verbatim(claim.text)
                else phrase("与资料中的这句话相符", "agrees with the quoted sentence")
            )
            return Support("supported", odds, said, *proof, self._values.rounded(claim.text, found.best.text))
        # A sentence that has no word of the claim speaks of something else, and denies nothing.
        if found.clash is None and (against < line.contradicted or not found.share_of_best):
            return Support("unknown", odds, self._lack(claim.text))
        said = phrase("资料的说法与此不符", "the quoted passage says otherwise")
        if found.clash:
            odds = Odds(probability, rest * max(against, 0.9), rest * min(1 - against, 0.1))
            said = phrase(
                "资料为{stated}，不是{claimed}",
                "the passage has {stated}, not {claimed}",
                stated=found.clash.stated,
                claimed=found.clash.claimed,
            )
        return Support("contradicted", odds, said, *proof, found.clash)

    def _line(self, claim: str) -> DecisionLine:
        if not self._reader.is_weighed:
            return OTHERS
        return lines()["en" if language_of(claim) == "en" else "zh"]

    def _proof(self, best: PassageSentence) -> tuple[int, str]:
        """The passage and the quote, widened where it is too short to prove anything."""
        passage = self.passages[best.passage]
        return best.passage, best.text if contains_quote(passage, best.text) else passage

    def _lack(self, claim: str) -> str:
        lacking = [*(one.text for one in self._values.missing(claim)), *self._strange(claim)][:MOST_NAMED]
        if not lacking:
            return self._phrase("资料没有明确这样说", "the passages do not quite say so")
        named = "”“".join(lacking) if self._phrase.is_chinese else '", "'.join(lacking)
        return self._phrase("资料中没有提到“{claimed}”", 'not found in the passages: "{claimed}"', claimed=named)

    def _with_differences(self, claims: Sequence[ClaimInContext], found: Sequence[Support]) -> list[Support]:
        """A difference is told only where it is all that is wrong: with the passage's own value the claim holds."""
        clashing = [at for at, one in enumerate(found) if one.difference and one.label == "contradicted"]
        again = [
            claims[at]._replace(text=mended(claims[at].text, difference))
            for at in clashing
            if (difference := found[at].difference)
        ]
        held = dict(zip(clashing, self.evidence(again), strict=True))
        result = list(found)
        for at, evidence in held.items():
            line = self._line(claims[at].text)
            if line.probability(evidence.features()) < line.supported:
                result[at] = found[at]._replace(difference=None)
        return result


def _logit(probability: float) -> float:
    bounded = min(0.999, max(0.001, probability))
    return math.log(bounded / (1 - bounded))


def _between(first: Odds, second: Odds) -> Odds:
    """What two looks say together."""
    parts = [math.sqrt(max(a, 1e-6) * max(b, 1e-6)) for a, b in zip(first, second, strict=True)]
    return Odds(*(part / sum(parts) for part in parts))
