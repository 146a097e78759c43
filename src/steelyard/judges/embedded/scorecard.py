"""The tasks `scorecard.key_points` and `scorecard.judge`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.atomic import atom_verdicts
from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.kinds import kind_of
from steelyard.judges.embedded.network import Reader, in_time, network
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.relevance import UNINFORMATIVE, Ranked, best_sentences, distinct, on_topic
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.statements import Statement, statements
from steelyard.judges.embedded.support import ClaimInContext, PassageReading, Support
from steelyard.records import Depth, Numbered
from steelyard.tasks import (
    KeyPointsData,
    KeyPointsReply,
    KeyPointText,
    KeyPointVerdict,
    ScorecardData,
    ScorecardReply,
    SentenceVerdict,
    Unsure,
)
from steelyard.text import CITATION, sentences
from steelyard.text.suspicion import signs

MOST_POINTS, MOST_FROM_PASSAGES = 8, 5
LONGEST_POINT = 160
TRIMMINGS = re.compile(rf"{CITATION}|[*_`#]+|(?<!\s)\s+(?=[.,;])")
# The odds of support from which on a point that is not made in full is made in part, with so much of its words.
PARTLY, SHARED = 0.3, 0.5
# Of a point that is made: as many words again around it make it deep, fewer than its own make it bare.
DEEP, BARE = 1.2, 0.6
DETAIL = re.compile(
    r"\d|因为|由于|例如|比如|包括|其中|具体|从而|以便|通过|如果"
    r"|\b(?:because|since|for example|such as|including|specifically|in order to|so that|if|when|by|which|where)\b"
)
LISTED = re.compile(r"、|,|，|;|；|\band\b|和|及")


# --- key points ------------------------------------------------------------------------------------


def key_points(data: KeyPointsData, language: PromptLanguage, reader: Reader | None) -> KeyPointsReply:
    """What a good answer must contain: from the reference answer, else the passages' best sentences."""
    if data.reference_answer and data.reference_answer.strip():
        found = _from_answer(data.question, data.reference_answer)
    else:
        best = [one.text for one in best_sentences(data.question, data.references, MOST_FROM_PASSAGES)]
        found = [piece for text in best for piece in _pieces(text, data.question)][:MOST_FROM_PASSAGES]
    points = [_brief(text) for text in found]
    return KeyPointsReply(key_points=[KeyPointText(id=id, text=text) for id, text in enumerate(points, start=1)])


def _from_answer(question: str, answer: str) -> list[str]:
    """The atoms of the answer; of a long one its sentences, and of those the ones that serve the question best."""
    texts = [text for text in (TRIMMINGS.sub("", one).strip() for one in sentences(answer)) if words(text)]
    told = [text for text in texts if kind_of(text, question) not in UNINFORMATIVE] or texts
    pieces = list(dict.fromkeys(piece for text in told for piece in _pieces(text, question)))
    if len(pieces) > MOST_POINTS:
        pieces = told
    odds = network().levels([(question, piece) for piece in pieces])
    ranked = [Ranked(piece, at, 1 - found[2]) for at, (piece, found) in enumerate(zip(pieces, odds, strict=True))]
    kept = sorted(distinct(ranked), key=lambda one: -one.odds)[:MOST_POINTS]
    # A reference answer is there to answer: where all of it seems beside the question, this judge is mistaken.
    serving = [one for one in kept if one.odds >= SHARED] or kept
    return [one.text for one in sorted(serving, key=lambda one: one.passage)]


def _pieces(text: str, question: str) -> list[str]:
    return [atom.text for atom in split(text, question)] or [text]


def _brief(text: str) -> str:
    text = " ".join(text.split()).rstrip("。.;；,，")
    return text if len(text) <= LONGEST_POINT else text[: LONGEST_POINT - 1].rstrip() + "…"


# --- the four metrics' items -----------------------------------------------------------------------


def judge(data: ScorecardData, language: PromptLanguage, reader: Reader | None) -> ScorecardReply:
    texts = [item.text for item in data.sentences]
    answer = data.answer or "\n".join(texts)
    phrase = Phrasing(language, *texts, data.question, sources=data.references)
    reading = PassageReading(data.references, phrase, reader)
    found = statements(texts, answer, data.question, reading)
    on = on_topic(data.question, texts) if data.question else [True] * len(texts)
    judged = [
        _sentence(item, statement, is_on and not signs(item.text), phrase)
        for item, statement, is_on in zip(data.sentences, found, on, strict=True)
    ]
    points, unsure = _key_points(data, answer, reader, phrase)
    return ScorecardReply(
        sentences=judged,
        key_points=points,
        atoms=atom_verdicts(data.atoms, answer, data.question, reading, phrase),
        summary=_summary(points, judged, phrase),
        unsure=unsure,
    )


def _sentence(item: Numbered, statement: Statement, is_on: bool, phrase: Phrasing) -> SentenceVerdict:
    standing = statement.standing
    supported = [claim.support for claim in statement.labelled("supported")]
    against = [claim.support for claim in statement.labelled("contradicted")]
    unknown = statement.labelled("unknown")
    if standing == "no_claim":
        reason = phrase("没有可核查的断言", "asserts nothing that could be checked")
    elif standing == "supported":
        reason = supported[0].reason
    elif against:
        reason = against[0].reason
    else:
        reason = phrase("资料未提：{claim}", "not in the passages: {claim}", claim=unknown[0].text)
    return SentenceVerdict(
        id=item.id,
        quote=supported[0].quote if supported else None,
        reason=reason,
        on_topic=is_on,
        support=standing,
        confidence=statement.confidence,
    )


class Coverage(NamedTuple):
    label: Literal["covered", "partial", "missing"]
    depth: Depth | None
    reason: str
    confidence: float
    is_contradicted: bool = False


def _key_points(
    data: ScorecardData, answer: str, reader: Reader | None, phrase: Phrasing
) -> tuple[list[KeyPointVerdict], list[Unsure]]:
    if not sentences(answer):
        reason = phrase("这次没有给出答案的句子", "the sentences of the answer were not given this time")
        return [], [Unsure(items="key_points", id=point.id, reason=reason) for point in data.key_points]
    found = coverage([point.text for point in data.key_points], answer, data.question, reader, phrase)
    return [
        KeyPointVerdict(id=point.id, label=one.label, depth=one.depth, reason=one.reason, confidence=one.confidence)
        for point, one in zip(data.key_points, found, strict=True)
    ], []


def coverage(
    points: Sequence[str], answer: str, question: str, reader: Reader | None, phrase: Phrasing
) -> list[Coverage]:
    """Whether the answer makes each point: the point is read as a claim beside the answer."""
    said = {text: words(text) for text in sentences(answer)} or {answer: words(answer)}
    # A short answer is understood only with its question.
    passages = [f"{question}\n{answer}"] if len(words(answer)) <= 3 else [answer]
    supports = PassageReading(passages, phrase, reader).supports([ClaimInContext(point) for point in points])
    return [_coverage(point, one, said, phrase) for point, one in zip(points, supports, strict=True)]


def _coverage(point: str, found: Support, said: Mapping[str, frozenset[str]], phrase: Phrasing) -> Coverage:
    in_time()
    own = words(point)
    where = max(said, key=lambda text: len(said[text] & own))
    if found.label == "supported":
        told = phrase("答案写有：{where}", "the answer has: {where}", where=where)
        return Coverage("covered", _depth(own, where, said), told, found.confidence)
    if found.label == "contradicted":
        return Coverage("missing", None, found.reason, found.confidence, is_contradicted=True)
    share = sum(any(word in text for text in said.values()) for word in own) / len(own) if own else 0.0
    if found.odds.supported >= PARTLY and share >= SHARED:
        told = phrase("只说到一部分：{where}", "said in part: {where}", where=where)
        return Coverage("partial", _depth(own, where, said), told, found.confidence)
    return Coverage("missing", None, phrase("答案没有说到", "the answer does not say it"), found.confidence)


def _depth(own: frozenset[str], where: str, said: Mapping[str, frozenset[str]]) -> Depth:
    """Deep: as much again around the point, with reasons or figures. Bare: an item in a row of others."""
    around = [text for text in said if text == where or len(said[text] & own) >= SHARED * len(own)]
    added = frozenset[str]().union(*(said[text] for text in around)) - own
    is_explained = any(DETAIL.search(text) for text in around)
    if (is_explained or len(around) > 1) and len(added) >= DEEP * max(4, len(own)):
        return "deep"
    in_a_row = len(LISTED.findall(where)) >= 3 and not own <= said[where]
    if len(said[where]) < BARE * len(own) or (in_a_row and len(around) == 1 and not is_explained):
        return "bare"
    return "adequate"


def _summary(points: Sequence[KeyPointVerdict], judged: Sequence[SentenceVerdict], phrase: Phrasing) -> str:
    """One sentence for a reader: what they get, what they miss, what they should not trust."""
    hit = sum(point.label == "covered" for point in points)
    half = sum(point.label == "partial" for point in points)
    bare = sum(point.depth == "bare" for point in points)
    doubtful = sum(one.support in ("partial", "unsupported") for one in judged)
    claims = sum(one.support != "no_claim" for one in judged)
    said = phrase("没有列出要点", "no key points were listed")
    if points:
        said = phrase(
            "{all}个要点说到了{hit}个" + ("，另有{half}个只说了一部分" if half else ""),
            "{hit} of {all} key points are made" + (", {half} more in part" if half else ""),
            all=len(points),
            hit=hit,
            half=half,
        )
        if bare:
            said += phrase("，其中{bare}个一笔带过", ", {bare} of them barely", bare=bare)
    if not claims:
        return said + phrase("；没有需要核对的说法。", "; nothing in the answer needs checking.")
    if doubtful:
        return said + phrase(
            "；有{n}句在资料中找不到完整依据，采用前请核对。",
            "; {n} sentences are not fully borne out by the passages, so check those before relying on them.",
            n=doubtful,
        )
    return said + phrase("；所说的都有资料依据，可以放心参考。", "; all that is said is borne out by the passages.")
