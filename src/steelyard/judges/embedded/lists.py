"""Lists within a statement, where each part can be stated alone: 支持A、B和C, A、B和C都是…, supports A, B and C."""

from __future__ import annotations

import re

from steelyard.judges.embedded.clauses import enclosed
from steelyard.judges.embedded.grammar import COUNTED, ITEM, PREDICATE, SHARED_SUBJECT, SHARED_VERB, shadow
from steelyard.text import HAN

FEWEST = 2
LONGEST_LIST = 20
LAST_AND = re.compile(r"(?:以及|[和与及])")
AND_SO_ON = re.compile(r"等等?\Z")
SHARED_VERB_EN = re.compile(
    r"\b(?:supports?|includes?|offers?|provides?|contains?|features?|sells?|produces?|speaks?|covers?)\s+",
    re.IGNORECASE,
)
ITEM_EN = re.compile(r"(?:[\w'’+#/-]+ ){0,3}[\w'’+#/-]+")
COUNTED_EN = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|several|many|both|various|\d+)\b", re.IGNORECASE
)


# 产品参数：重量：2kg；颜色：黑色
LABELLED = re.compile(r"\s*([^：:；;，,。！!？?\d/]{1,20})[：:]\s*(?!//)(\S.*)", re.DOTALL)
BETWEEN_LABELS = re.compile(r"[；;，]\s*(?=[^：:；;，,。！!？?\d/]{1,20}[：:]\s*(?!//)\S)")


def listed(statement: str) -> list[str]:
    """One statement for each part of its list; the statement itself where the list cannot be taken apart."""
    if labelled := _labelled(statement):
        return labelled
    parts = _chinese(statement) if HAN.search(statement) else _english(statement)
    return parts if FEWEST <= len(parts) <= LONGEST_LIST else [statement]


def _labelled(statement: str) -> list[str]:
    """Values that each have a label of their own, under the heading that the first may have."""
    if any(enclosed(statement)):
        return []
    pieces = BETWEEN_LABELS.split(statement)
    labels = [LABELLED.fullmatch(piece) for piece in pieces]
    if not FEWEST <= len(pieces) <= LONGEST_LIST or not all(labels):
        return []
    first = LABELLED.fullmatch(labels[0][2]) if labels[0] else None
    if labels[0] is None or first is None:
        return [piece.strip() for piece in pieces]
    heading = statement[: labels[0].start(2)]
    return [pieces[0].strip(), *(heading + piece.strip() for piece in pieces[1:])]


def _chinese(statement: str) -> list[str]:
    if "、" not in statement:
        return []
    simple = shadow(statement)
    if shared := SHARED_SUBJECT.search(simple):
        items = _items(statement[: shared.start()])
        return [item + statement[shared.end() :] for item in items]
    verbs = [
        verb
        for verb in SHARED_VERB.finditer(simple)
        if verb.end() <= simple.index("、") and simple[verb.start() - 1 : verb.start()] != "了"
    ]
    if not verbs or not verbs[0].start():
        return []
    verb = verbs[-1]
    rest = statement[verb.end() :].rstrip("。！. ")
    ending = AND_SO_ON.search(rest)
    items = _items(rest[: ending.start()] if ending else rest)
    return [statement[: verb.end()] + item for item in items]


def _items(text: str) -> list[str]:
    """The parts of A、B和C, if each is a short thing of its own."""
    if any(inside for inside in enclosed(text)) or COUNTED.search(shadow(text)):
        return []
    parts = text.split("、")
    last = LAST_AND.split(parts[-1])
    parts[-1:] = last if len(last) == 2 and all(last) else [parts[-1]]
    parts = [part.strip() for part in parts]
    is_plain = all(ITEM.fullmatch(shadow(part)) and not PREDICATE.search(shadow(part)) for part in parts)
    return parts if is_plain and len(parts) >= FEWEST else []


def _english(statement: str) -> list[str]:
    verb = SHARED_VERB_EN.search(statement)
    if verb is None or not verb.start():
        return []
    rest = statement[verb.end() :].rstrip(". ")
    if "," not in rest or any(enclosed(rest)) or COUNTED_EN.search(rest):
        return []
    *parts, last = re.split(r",\s+", rest)
    last = re.sub(r"^and\s+", "", last) if last.startswith("and ") else last
    parts += re.split(r"\s+and\s+", last) if last == rest.split(", ")[-1] else [last]
    if not re.search(r"\band\b", rest) or not all(ITEM_EN.fullmatch(part) for part in parts):
        return []
    return [f"{statement[: verb.end()]}{part}." for part in parts]
