"""Whether an answer makes a key point, how much of it, and with how much around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.meaning import plain, similarity, words
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.statements import is_rounded
from steelyard.judges.embedded.support import Read, Support
from steelyard.records import Depth
from steelyard.tasks import SplitAtom

Label = Literal["covered", "partial", "missing"]

# Support, nearness in meaning and shared words together; chosen on one half of RAGChecker's rated answers.
COVERED = 0.6
TOUCHED = 0.35
SURE = 0.8
ABOUT = 0.5
DEEP = 1.2
BARE = 0.6
# Reasons, figures, examples: what makes a mention an explanation.
DETAIL = re.compile(
    r"\d|因为|由于|例如|比如|包括|其中|具体|即|从而|以便|通过|如果"
    r"|\b(?:because|since|for example|e\.g\.|such as|including|specifically|namely|in order to|so that"
    r"|if|when|by|which|where)\b"
)
SHORTEST_CLAUSE = 5
CLAUSE = re.compile(
    r"[，；](?!从而|因此|所以|导致|以便|以免|使|包括|如|即|其中|也就是)|;\s+|,?\s+and then\s+|,\s+then\s+"
)
DEPENDENT = re.compile(
    r"因为|由于|如果|若|当|虽然|尽管|只要|只有|除非|为了|一旦|即使|不仅|\b(?:because|if|when|although|since|unless|while)\b"
)
# A clause that only says when, why, for whom or by what rule; 退房时间为12:00以前 has a verb of its own.
BARE_CLAUSE = re.compile(
    r"(?:[^为是，]{2,24}(?<!\d)(?<![小同及按随实准临当])(?:时|之?后|以后|之?前|以前|期间|的话|的?情况下)|因(?![此而]|人而异)[^，]{2,24}"
    r"|[^为是，]{2,24}者|(?:依据?|按照?|根据)[^，]{2,16}(?:规定|要求|标准|政策|制度|合同))"
)
FIGURE = re.compile(r"[\d一二两三四五六七八九十百千万半]")
LISTED = re.compile(r"、|,|，|;|；|\band\b|和|及")


class Coverage(NamedTuple):
    label: Label
    depth: Depth | None
    where: str
    """What the answer says that comes nearest."""
    clash: tuple[str, str] | None
    """What the answer has instead, and what it should have; None where it says nothing against the point."""


def coverage(points: Sequence[str], sentences: Sequence[str], question: str, read: Read) -> list[Coverage]:
    """How an answer's sentences treat each point."""
    if not sentences or not points:
        return [Coverage("missing", None, "", None) for _ in points]
    said = _said(sentences, question)
    parts = [clauses_of(point) for point in points]
    reading = read([*sentences, *(one.text for one in said if one.text not in sentences)], question)
    whole = [_rounded(found) for found in reading.supports(points)]
    found = map(_rounded, reading.supports([text for part in parts for text in part]))
    by_part = [[next(found) for _ in part] for part in parts]
    near = similarity(points, [one.text for one in said])
    judged = [
        _coverage(point, parts_found, all_of_it, said, near[index].tolist())
        for index, (point, parts_found, all_of_it) in enumerate(zip(points, by_part, whole, strict=True))
    ]
    return [_confirmed(point, one, question, read) for point, one in zip(points, judged, strict=True)]


def _rounded(found: Support) -> Support:
    return found._replace(label="supported", clash=None) if is_rounded(found) else found


def _confirmed(point: str, found: Coverage, question: str, read: Read) -> Coverage:
    """What an answer says in one place may hide that it says the opposite where it speaks of the point."""
    if found.label != "covered":
        return found
    alone = read([found.where], question).support(point)
    if alone.label != "contradicted" or is_rounded(alone):
        return found
    return Coverage("missing", None, found.where, (alone.stated or "", alone.claimed or ""))


def _said(sentences: Sequence[str], question: str) -> list[SplitAtom]:
    """What the answer says, piece by piece; an answer that states nothing is taken sentence by sentence."""
    atoms = split("\n".join(sentences), question)
    return atoms or [SplitAtom(id=id, text=text) for id, text in enumerate(sentences, start=1)]


def clauses_of(text: str) -> list[str]:
    """Two steps or facts that share a sentence are two; a condition or a reason stays with what it governs."""
    if DEPENDENT.match(plain(text)):
        return [text]
    clauses = _with_their_conditions([clause.strip() for clause in CLAUSE.split(text)])
    return clauses if all(len(plain(clause)) >= SHORTEST_CLAUSE for clause in clauses) else [text]


def main_clauses(texts: Sequence[str]) -> list[str]:
    """What a good answer must say of these clauses: a condition alone is no point, and one without figures no part."""
    kept = []
    for text in (text.strip("，,；;。 ") for text in texts):
        first, comma, rest = text.partition("，")
        said = rest if comma and BARE_CLAUSE.fullmatch(plain(first)) and not FIGURE.search(first) else text
        if not BARE_CLAUSE.fullmatch(plain(said)):
            kept.append(said)
    return kept or list(texts)


def _with_their_conditions(clauses: Sequence[str]) -> list[str]:
    """审核通过后 alone tells nothing: when and why stay with the clause that comes next."""
    joined: list[str] = []
    for clause in clauses:
        if joined and BARE_CLAUSE.fullmatch(plain(joined[-1])):
            joined[-1] = f"{joined[-1]}，{clause}"
        else:
            joined.append(clause)
    return joined


def _coverage(
    point: str, parts: Sequence[Support], whole: Support, said: Sequence[SplitAtom], near: Sequence[float]
) -> Coverage:
    at = max(range(len(said)), key=lambda index: (near[index] + overlap(point, said[index].text), -index))
    best = said[at].text
    made = sum(found.label == "supported" for found in parts)
    against = next((found for found in (whole, *parts) if found.label == "contradicted"), None)
    # What the network alone finds denied has no two words to show.
    clash = (against.stated, against.claimed) if against and against.stated and against.claimed else None
    likely = sum(found.probability for found in parts) / len(parts)
    told = (2 * likely + near[at] + overlap(point, " ".join(one.text for one in said))) / 4
    surely = made == len(parts) and (told >= COVERED or likely >= SURE)
    if (surely or (len(parts) == 1 and told >= COVERED)) and not against:
        return Coverage("covered", _depth(point, at, said, near), best, None)
    if against and not made:
        return Coverage("missing", None, best, clash)
    if made or told >= TOUCHED:
        return Coverage("partial", _depth(point, at, said, near), best, clash)
    return Coverage("missing", None, best, None)


def overlap(point: str, text: str) -> float:
    """The share of the point's words that a text has."""
    wanted = set(words(point))
    return len(wanted & set(words(text))) / len(wanted) if wanted else 0.0


def _depth(point: str, at: int, said: Sequence[SplitAtom], near: Sequence[float]) -> Depth:
    """Deep: as much again around the point, with reasons or figures. Bare: an item in a row of others."""
    best, wanted = said[at], set(words(point))
    around = [
        one.text
        for one, cosine in zip(said, near, strict=True)
        if one is best or one.causal_of == best.id or best.causal_of == one.id or cosine >= ABOUT
    ]
    added = {word for text in around for word in words(text)} - wanted
    explained = any(DETAIL.search(plain(text)) for text in around)
    if (explained or len(around) > 1) and len(added) >= DEEP * max(4, len(wanted)):
        return "deep"
    in_a_row = len(LISTED.findall(best.text)) >= 3 and overlap(point, best.text) < 1
    if len(words(best.text)) < BARE * len(wanted) or (in_a_row and len(around) == 1 and not explained):
        return "bare"
    return "adequate"
