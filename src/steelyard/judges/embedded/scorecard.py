"""The tasks `scorecard.key_points` and `scorecard.judge`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from steelyard.judges.embedded.atomic import atom_verdicts
from steelyard.judges.embedded.claims import kind_of
from steelyard.judges.embedded.coverage import Coverage, clauses_of, coverage, main_clauses
from steelyard.judges.embedded.meaning import similarity, words
from steelyard.judges.embedded.outright import spelt_out
from steelyard.judges.embedded.passages import best_sentences
from steelyard.judges.embedded.questions import question_of
from steelyard.judges.embedded.relevance import on_topic, strength_of
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.statements import Remembering, Standing, Statement, read_statements, repeats
from steelyard.judges.embedded.support import Read, Support
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.records import Numbered
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

MOST_POINTS = 8
MOST_FROM_PASSAGES = 5
SAME_POINT = 0.85
ASIDE = 0.3
ABOUT_IT = 0.5
LONGEST_POINT = 160
TRIMMINGS = re.compile(rf"{CITATION}|[*_`#]+|\s+(?=[.,;])")


# --- key points ------------------------------------------------------------------------------------


def key_points(data: KeyPointsData, language: PromptLanguage, read: Read) -> KeyPointsReply:
    """What a good answer must contain: from the reference answer, else the passages' best sentences."""
    if data.reference_answer and data.reference_answer.strip():
        found = _from_answer(data.question, data.reference_answer)
    else:
        best = [one.text for one in best_sentences(data.question, data.references, MOST_FROM_PASSAGES)]
        pieces = [clause for text in best for piece in _pieces(text, data.question) for clause in clauses_of(piece)]
        found = [_brief(piece) for piece in _distinct(_points(pieces, data.question))[:MOST_FROM_PASSAGES]]
    return KeyPointsReply(key_points=[KeyPointText(id=id, text=text) for id, text in enumerate(found, start=1)])


def _from_answer(question: str, answer: str) -> list[str]:
    """The atoms that serve the question; of a long answer its sentences, and of those the ones that serve it best."""
    texts = [TRIMMINGS.sub("", text).strip() for text in sentences(answer)]
    whole = [text for text in texts if words(text)]
    stated = [text for text in whole if kind_of(text, question) not in ("greeting", "question", "meta")] or whole
    pieces = _distinct([piece for text in stated for piece in _pieces(text, question)])
    if len(pieces) > MOST_POINTS:
        pieces = _distinct(stated)
    # A reference answer is there to answer: where all of it seems beside the question, this judge is mistaken.
    kept = [text for text in pieces if _serves(question, text)] or pieces
    if len(clauses := _points([clause for text in kept for clause in clauses_of(text)], question)) <= MOST_POINTS:
        return [_brief(clause) for clause in clauses]
    if len(kept) <= MOST_POINTS:
        return [_brief(text) for text in kept]
    cosines = similarity([question], kept)[0]
    best = sorted(range(len(kept)), key=lambda index: -float(cosines[index]))[:MOST_POINTS]
    return [_brief(kept[index]) for index in sorted(best)]


def _points(clauses: list[str], question: str) -> list[str]:
    """The clauses that are points; when and why are, where they are asked for."""
    return clauses if question_of(question).kind in ("when", "why") else main_clauses(clauses)


def _serves(question: str, text: str) -> bool:
    """Whether a piece of the reference answer is more than an aside: who wrote it thought it worth saying."""
    asked = question_of(question)
    return asked.typed(text) is not False or strength_of(asked, text) >= ASIDE


def _pieces(text: str, question: str) -> list[str]:
    return [atom.text for atom in split(text, question)] or [text]


def _distinct(texts: Sequence[str]) -> list[str]:
    texts = [text for text in dict.fromkeys(texts) if words(text)]
    if len(texts) < 2:
        return texts
    near = similarity(texts, texts)
    kept: list[int] = []
    for index in range(len(texts)):
        if all(near[index, other] < SAME_POINT for other in kept):
            kept.append(index)
    return [texts[index] for index in kept]


def _brief(text: str) -> str:
    text = " ".join(text.split()).rstrip("。.;；,，")
    return text if len(text) <= LONGEST_POINT else text[: LONGEST_POINT - 1].rstrip() + "…"


# --- the four metrics' items -----------------------------------------------------------------------


def judge(data: ScorecardData, language: PromptLanguage, read: Read) -> ScorecardReply:
    texts = [item.text for item in data.sentences]
    voice = Voice(language, *texts, data.question)
    reading = Remembering(read(data.references, data.question))
    statements = read_statements(texts, data.question, reading, read)
    wholes = reading.supports(texts)
    answering = _answering(data, statements)
    judged = [
        _sentence(
            item,
            statement,
            whole,
            on_topic(data.question, item.text, texts, answering) and not signs(item.text),
            voice,
        )
        for item, statement, whole in zip(data.sentences, statements, wholes, strict=True)
    ]
    points, unsure = _key_points(data, sentences(data.answer) if data.answer else texts, read, voice)
    return ScorecardReply(
        sentences=judged,
        key_points=points,
        atoms=atom_verdicts(data.atoms, data.question, reading, language, data.references),
        summary=_summary(points, judged, voice),
        unsure=unsure,
    )


def _answering(data: ScorecardData, statements: Sequence[Statement]) -> list[str]:
    """The sentences that repeat, or get wrong, what the passages have to say to the question."""
    own = best_sentences(data.question, data.references)
    asked = question_of(data.question)
    texts = [one.text for one in own]
    if asked.kind == "how":
        # A step need not name what all the steps are for.
        texts += [after for one in own for after in _next(one.text, sentences(data.references[one.passage]))]
    elif asked.is_open:
        texts += [passage for passage in data.references if asked.overlap(passage) >= ABOUT_IT]
    return [statement.text for statement in statements if any(repeats(claim, texts) for claim in statement.claims)]


def _next(text: str, passage: Sequence[str]) -> list[str]:
    return [after for before, after in pairwise(passage) if before.startswith(text)]


# A sentence that the passages support as a whole stands, unless one of its claims is less likely than this.
DOUBTFUL = 0.3


def _standing(statement: Statement, whole: Support) -> Standing:
    """How the passages stand to a sentence: by its claims, and as a whole: a claim alone may lack its subject."""
    standing = statement.standing
    if standing not in ("partial", "unsupported") or whole.label != "supported" or statement.contradicted:
        return standing
    if any(claim.support.probability < DOUBTFUL for claim in statement.checked):
        return "partial"
    return "supported"


def _sentence(item: Numbered, statement: Statement, whole: Support, on: bool, voice: Voice) -> SentenceVerdict:
    standing = _standing(statement, whole)
    proof = next((claim.support for claim in statement.supported), whole if standing == "supported" else None)
    if standing == "no_claim":
        reason = voice("没有可核查的断言", "asserts nothing that could be checked")
    elif standing == "supported":
        reason = proof.reason if proof else ""
    elif statement.contradicted:
        reason = statement.contradicted[0].support.reason
    elif statement.unknown:
        reason = voice("资料未提：{claim}", "not in the passages: {claim}", claim=statement.unknown[0].text)
    else:
        reason = proof.reason if proof else ""
    if standing == "partial" and proof is None:
        proof = whole
    quote = proof.quote if proof and standing in ("supported", "partial") else None
    # Where the sentence as a whole decides, its claims say nothing of how sure that is.
    sure = statement.confidence if standing == statement.standing else None
    return SentenceVerdict(id=item.id, quote=quote, reason=reason, on_topic=on, support=standing, confidence=sure)


def _key_points(
    data: ScorecardData, texts: Sequence[str], read: Read, voice: Voice
) -> tuple[list[KeyPointVerdict], list[Unsure]]:
    if not texts:
        reason = voice("这次没有给出答案的句子", "the sentences of the answer were not given this time")
        return [], [Unsure(items="key_points", id=point.id, reason=reason) for point in data.key_points]
    if question_of(data.question).kind == "yes_no":
        texts = [spelt_out(data.question, text) for text in texts]
    found = coverage([point.text for point in data.key_points], texts, data.question, read)
    return [
        KeyPointVerdict(id=point.id, reason=_point_reason(one, voice), label=one.label, depth=one.depth)
        for point, one in zip(data.key_points, found, strict=True)
    ], []


def _point_reason(found: Coverage, voice: Voice) -> str:
    if found.clash:
        said, wanted = found.clash
        return voice(
            "答案写的是“{said}”，不是“{wanted}”", "the answer has “{said}”, not “{wanted}”", said=said, wanted=wanted
        )
    if found.label == "missing":
        return voice("答案没有说到", "the answer does not say it")
    if found.label == "partial":
        return voice("只说到一部分：{where}", "said in part: {where}", where=found.where)
    return voice("答案写有：{where}", "the answer has: {where}", where=found.where)


def _summary(points: Sequence[KeyPointVerdict], judged: Sequence[SentenceVerdict], voice: Voice) -> str:
    """One sentence for a reader: what they get, what they miss, what they should not trust."""
    hit = sum(point.label == "covered" for point in points)
    half = sum(point.label == "partial" for point in points)
    bare = sum(point.depth == "bare" for point in points)
    doubtful = sum(one.support in ("partial", "unsupported") for one in judged)
    claims = sum(one.support != "no_claim" for one in judged)
    said = voice("没有列出要点", "no key points were listed")
    if points:
        said = voice(
            "{all}个要点说到了{hit}个" + ("，另有{half}个只说了一部分" if half else ""),
            "{hit} of {all} key points are made" + (", {half} more in part" if half else ""),
            all=len(points),
            hit=hit,
            half=half,
        )
        if bare:
            said += voice("，其中{bare}个一笔带过", ", {bare} of them barely", bare=bare)
    if not claims:
        return said + voice("；没有需要核对的说法。", "; nothing in the answer needs checking.")
    if doubtful:
        return said + voice(
            "；有{n}句在资料中找不到完整依据，采用前请核对。",
            "; {n} sentences are not fully borne out by the passages, so check those before relying on them.",
            n=doubtful,
        )
    return said + voice("；所说的都有资料依据，可以放心参考。", "; all that is said is borne out by the passages.")
