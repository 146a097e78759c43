"""How the words of a claim lie in the passages: each word's nearest one in every clause, sentence and neighbourhood.

Words are compared by stem, by characters and by the encoder's own word vectors, so that bought meets purchased.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.facts import is_han_name, names
from steelyard.judges.embedded.meaning import HAN_RUN, STOP_WORDS, TOKEN, rarity, stem, terms, word_vector
from steelyard.judges.embedded.missing import han_words
from steelyard.judges.embedded.polarity import polar, sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.judges.embedded.spans import Span

    Floats = NDArray[np.float32]

# Below the first cosine two words have nothing in common, from the second on they say the same.
APART, ALIKE = 0.12, 0.62
PAIR_WEIGHT = 4.0
# To have is said of everything.
PAIR_WEIGHTS = {"~2": 1.0}
# A name says whom a clause is about, not what it says of it; neither does what the question named.
OF_NAME, OF_QUESTION = 0.3, 0.4
IN_SENTENCE, IN_WINDOW = 0.5, 0.35
LONGEST_GROUP = 3
LONGEST_CLAUSE_WORDS = 60
CLAUSE_END = re.compile(
    r"[，,;；:：()（）。！？!?\n]+(?!\d)|\.(?=\s|$)|\s(?=(?:but|while|although|though|whereas|unless|because|which|who|except)\b)"
    r"|\s(?=and (?:is|are|was|were|has|have|had|can|may|must|will|does|do|did|not|no|it|they|he|she|the|its)\b)"
    r"|(?=但是?|而且|不过|并且|然而)"
)


class Unit(NamedTuple):
    """A content word: what it is compared by, how it is written, how much it weighs, whether it may be a name."""

    key: str
    written: str
    weight: float
    is_name: bool
    is_number: bool


class Part(NamedTuple):
    """A clause as words: whether it denies, its content words, and those that it denies (none: all of it)."""

    denies: bool
    units: tuple[Unit, ...]
    denied: frozenset[str]


class Clause(NamedTuple):
    text: str
    denies: bool
    units: tuple[Unit, ...]
    denied: frozenset[str]
    span: int
    sides: frozenset[tuple[int, int]]


@lru_cache(maxsize=4096)
def clauses_in(text: str) -> tuple[str, ...]:
    """The clauses of a sentence; what holds no word goes with the one before."""
    found: list[str] = []
    open_ = ""
    for part in CLAUSE_END.split(text):
        if part and part.strip():
            open_ = f"{open_}, {part.strip()}" if open_ else part.strip()
            # Items of a list and names in apposition are no clauses of their own.
            if len(terms(open_)) > (2 if HAN_RUN.search(open_) else 1):
                found.append(open_)
                open_ = ""
    if open_:
        found.append(open_)
    return tuple(found) or (text,)


@lru_cache(maxsize=4096)
def part_of(clause: str) -> Part:
    """Whether a clause denies, and its content words without those that say so."""
    found = polar(clause)
    called = {part for name in names(clause) for part in name.lower().split()}
    units = [Unit(pair, pair, PAIR_WEIGHTS.get(pair, PAIR_WEIGHT), False, False) for pair in dict.fromkeys(found.pairs)]
    for token in TOKEN.findall(found.rest):
        if HAN_RUN.match(token):
            units.extend(
                Unit(word.written, word.written, rarity(word.written), word.is_name or is_han_name(word.written), False)
                for word in han_words(token)
            )
        elif token not in STOP_WORDS:
            number = token[0].isdigit()
            key = token.replace(",", "") if number else stem(token)
            units.append(Unit(key, token, rarity(token), token in called, number))
    kept = tuple(dict.fromkeys(units))[:LONGEST_CLAUSE_WORDS]
    denied = frozenset(unit.key for unit in kept if unit.written in found.scope) if found.denies else frozenset()
    return Part(found.denies, kept, denied)


class Cloth:
    """The passages' clauses with their words side by side, laid out once for many claims."""

    def __init__(self, spans: Sequence[Span]) -> None:
        import numpy as np

        self.clauses: list[Clause] = []
        for at, span in enumerate(spans):
            for text in clauses_in(span.text):
                part = part_of(text)
                if part.units:
                    self.clauses.append(Clause(text, *part, at, sides(text)))
        flat = [unit for clause in self.clauses for unit in clause.units]
        self.vectors = np.stack([word_vector(unit.written) for unit in flat]) if flat else None
        self.places: dict[str, list[int]] = {}
        for at, unit in enumerate(flat):
            self.places.setdefault(unit.key, []).append(at)
        self.all_text = _bare("\n".join(clause.text for clause in self.clauses))
        sizes = [len(clause.units) for clause in self.clauses]
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes else np.zeros(0, np.int64)
        self.in_scope = np.array([unit.key in clause.denied for clause in self.clauses for unit in clause.units])
        self.plain = [_bare(clause.text) for clause in self.clauses]
        self.of_span = np.array([clause.span for clause in self.clauses], dtype=np.int64)
        self.denies = np.array([clause.denies for clause in self.clauses], dtype=np.bool_)
        self.span_starts = np.flatnonzero(np.diff(self.of_span, prepend=-1)) if sizes else np.zeros(0, np.int64)
        self.span_ids = self.of_span[self.span_starts] if sizes else np.zeros(0, np.int64)
        self.passages = np.array([spans[at].passage for at in self.span_ids], dtype=np.int64)

    def nearest(self, units: Sequence[Unit]) -> tuple[Floats, Floats]:
        """How near each word comes to some word of each clause, from 0 to 1, and some of them to what it denies."""
        import numpy as np

        assert self.vectors is not None
        mine = np.stack([word_vector(unit.written) for unit in units])
        near = np.clip((mine @ self.vectors.T - APART) / (ALIKE - APART), 0.0, 0.95)
        for row, unit in enumerate(units):
            if unit.is_number or unit.key.startswith("~"):
                near[row] = 0.0
            near[row, self.places.get(unit.key, ())] = 1.0
        found: Floats = np.maximum.reduceat(near, self.starts, axis=1)
        scoped = np.maximum.reduceat(np.where(self.in_scope, near.max(axis=0), 0.0), self.starts)
        has_scope = np.maximum.reduceat(self.in_scope, self.starts)
        for row, unit in enumerate(units):
            if (
                len(unit.written) > 1
                and HAN_RUN.match(unit.written)
                and any(unit.written[at : at + 2] in self.all_text for at in range(len(unit.written) - 1))
            ):
                for column, text in enumerate(self.plain):
                    if unit.written in text:
                        found[row, column] = 1.0
                    elif len(unit.written) > 2:
                        found[row, column] = max(found[row, column], _share(unit.written, text))
        return found, np.where(has_scope, scoped, 1.0).astype(np.float32)


def _share(word: str, text: str) -> float:
    pairs = [word[at : at + 2] for at in range(len(word) - 1)]
    return 0.8 * sum(pair in text for pair in pairs) / len(pairs)


@lru_cache(maxsize=4096)
def _bare(text: str) -> str:
    from steelyard.judges.embedded.meaning import plain

    return plain(text)


WEAVE = (
    "w_clause", "w_sentence", "w_window", "w_passage", "w_all", "w_rest", "lone", "lone_mass", "lone_rarest",
    "far_mass", "far_rarest", "name_lone", "name_far", "weakest", "gap_any", "gap_name", "rival",
    "rival_near", "spans",
    "polar_gap", "polar_best", "polar_other", "turned_gap", "inverted",
)  # fmt: skip


class Woven(NamedTuple):
    """What was found: the features, how well each span fits, the clause that denies, a name in another's place."""

    features: dict[str, float]
    by_span: dict[int, float]
    best: int | None
    denied: int | None
    foreign: tuple[str, str] | None
    turned: int | None


EMPTY = Woven(dict.fromkeys(WEAVE, 0.0), {}, None, None, None, None)
LONE = 0.4
HELD = 0.8
OF_SENTENCE, OF_WINDOW = 0.8, 0.6
NAMELIKE = 14.0


def woven(claim: str, cloth: Cloth, asked: frozenset[str] = frozenset()) -> Woven:
    """How a claim's words lie in the passages."""
    import numpy as np

    parts = [part_of(text) for text in clauses_in(claim)]
    units = list(dict.fromkeys(unit for part in parts for unit in part.units))[:LONGEST_CLAUSE_WORDS]
    if not units or not cloth.clauses:
        return EMPTY
    weights = np.array([unit.weight for unit in units], dtype=np.float32)
    share = weights / weights.sum()
    in_clause, in_scope = cloth.nearest(units)
    in_span = np.maximum.reduceat(in_clause, cloth.span_starts, axis=1)
    in_window = _neighbours(in_span, cloth.passages)
    in_passage = np.stack(
        [in_span[:, cloth.passages == passage].max(axis=1) for passage in np.unique(cloth.passages)], axis=1
    )
    anywhere = in_span.max(axis=1)
    to_span = np.searchsorted(cloth.span_ids, cloth.of_span)
    mixed = np.maximum(in_clause, np.maximum(OF_SENTENCE * in_span, OF_WINDOW * in_window)[:, to_span])
    score = share @ mixed
    best = int(score.argmax())
    window = in_window[:, int((share @ in_window + 0.5 * (share @ in_span)).argmax())]
    lone = window < LONE
    far = anywhere < LONE
    named = np.array([unit.is_name or unit.is_number for unit in units])
    features = {
        "w_clause": float((share @ in_clause).max()),
        "w_sentence": float((share @ in_span).max()),
        "w_window": float((share @ in_window).max()),
        "w_passage": float((share @ in_passage).max()),
        "w_all": float(share @ anywhere),
        "w_rest": float(score[best]),
        "lone": float(lone.sum()),
        "lone_mass": float(share[lone].sum()),
        "lone_rarest": float(weights[lone].max(initial=0.0)),
        "far_mass": float(share[far].sum()),
        "far_rarest": float(weights[far].max(initial=0.0)),
        "name_lone": float((named & (window < HELD)).sum()),
        "name_far": float((named & (anywhere < HELD)).sum()),
        "weakest": float(window.min()),
    }
    close = np.maximum(in_clause, np.maximum(IN_SENTENCE * in_span, IN_WINDOW * in_window)[:, to_span])
    gaps, foreign = _gaps(units, weights, close, in_clause, cloth)
    features |= gaps
    # What stands in many clauses does not tell them apart.
    often = np.sqrt(np.maximum(1.0, (in_clause >= HELD).sum(axis=1)))
    told = np.array([_telling(unit, asked) for unit in units], dtype=np.float32) * weights / often
    denied, polar_features = _denied(parts, units, told / told.sum(), mixed, in_scope, cloth)
    features |= polar_features
    features["turned_gap"], turned = _turned(claim, told / told.sum(), mixed, cloth)
    features["inverted"] = _inverted(units, in_span[:, to_span[best]], cloth, int(cloth.of_span[best]))
    fit = share @ np.maximum(in_span, OF_WINDOW * in_window)
    by_span = dict(zip(cloth.span_ids.tolist(), fit.tolist(), strict=True))
    return Woven(features, by_span, best, denied, foreign, turned)


def _neighbours(in_span: Floats, passages: NDArray[np.int64]) -> Floats:
    """Each sentence with the one before and the one after it in its passage."""
    import numpy as np

    found = in_span.copy()
    same = passages[1:] == passages[:-1]
    found[:, 1:] = np.where(same, np.maximum(found[:, 1:], in_span[:, :-1]), found[:, 1:])
    found[:, :-1] = np.where(same, np.maximum(found[:, :-1], in_span[:, 1:]), found[:, :-1])
    return found


def _telling(unit: Unit, asked: frozenset[str]) -> float:
    return OF_NAME if unit.is_name else OF_QUESTION if unit.key in asked else 1.0


def _gaps(
    units: Sequence[Unit], weights: Floats, close: Floats, in_clause: Floats, cloth: Cloth
) -> tuple[dict[str, float], tuple[str, str] | None]:
    """How much better the rest of a claim fits a clause that lacks some of its words than any that has them."""
    total, whole = weights @ close, float(weights.sum())
    most, named, rival, close_by, foreign = 0.0, 0.0, 0.0, 0.0, None
    known = {unit.key for unit in units}
    for start in range(len(units)):
        for end in range(start + 1, min(start + LONGEST_GROUP, len(units)) + 1):
            rows = slice(start, end)
            mass = float(weights[rows].sum())
            if mass > 0.8 * whole or any(unit.key.startswith("~") for unit in units[rows]):
                break
            held = (in_clause[rows] >= HELD).all(axis=0)
            if not held.any():
                break
            rest = (total - weights[rows] @ close[rows]) / (whole - mass)
            place = int(rest.argmax())
            gap = float(rest[place] - rest[held].max())
            most = max(most, gap)
            if gap <= 0 or (gap <= named and gap <= rival and gap <= close_by):
                continue
            if any(unit.is_name or unit.weight >= NAMELIKE for unit in units[rows]):
                named = max(named, gap)
            others = [one for one in cloth.clauses[place].units if one.is_name and one.key not in known]
            if not others or not any(unit.is_name for unit in units[rows]):
                continue
            if abs(int(cloth.of_span[place]) - cloth.of_span[held]).min() <= 1:
                close_by = max(close_by, gap)
            if gap > rival:
                rival, foreign = gap, (" ".join(unit.written for unit in units[rows]), others[0].written)
    found = {"gap_any": most, "gap_name": named, "rival": rival, "rival_near": close_by}
    return found | {"spans": float(min(MANY_SPANS, len(cloth.span_ids)))}, foreign


MANY_SPANS = 60


def _denied(
    parts: Sequence[Part], units: Sequence[Unit], share: Floats, mixed: Floats, in_scope: Floats, cloth: Cloth
) -> tuple[int | None, dict[str, float]]:
    """Whether the clause that a part of the claim fits best denies what it affirms, or the reverse."""
    import numpy as np

    rows = {unit: row for row, unit in enumerate(units)}
    gap, differs, other, place = -1.0, 0.0, 0.0, None
    for part in parts:
        own = [rows[unit] for unit in part.units if unit in rows]
        mass = float(share[own].sum())
        if mass < 0.25 or (len(own) < 2 and len(units) > 1):
            continue
        score = share[own] @ mixed[own] / mass
        same = cloth.denies == part.denies
        # What is denied must be what the other side speaks of: she expects no cuts does not deny that she is director.
        shared = in_scope
        if part.denies and (scope := [rows[unit] for unit in part.units if unit.key in part.denied and unit in rows]):
            shared = mixed[scope].max(axis=0)
        opposing = score * (1 - SCOPE_SHARE + SCOPE_SHARE * shared)
        agreeing = float(score[same].max()) if same.any() else 0.0
        opposed = float(opposing[~same].max()) if not same.all() else 0.0
        if opposed - agreeing > gap:
            gap, other = opposed - agreeing, opposed
            differs = float(opposed > agreeing)
            place = int(np.where(~same, opposing, -1.0).argmax()) if opposed > agreeing else None
    return place, {"polar_gap": max(gap, -0.5), "polar_best": differs, "polar_other": other}


SCOPE_SHARE = 0.6


def _turned(claim: str, share: Floats, mixed: Floats, cloth: Cloth) -> tuple[float, int | None]:
    """How much better a claim fits a clause with the opposite of one of its words than any that has the word's side."""
    import numpy as np

    score = share @ mixed
    gap, place = -0.5, None
    for pair, side in sorted(sides(claim)):
        opposed = np.array(
            [(pair, 1 - side) in clause.sides and (pair, side) not in clause.sides for clause in cloth.clauses]
        )
        if not opposed.any():
            continue
        own = np.array([(pair, side) in clause.sides for clause in cloth.clauses])
        found = float(score[opposed].max() - (score[own].max() if own.any() else 0.5 * score.max()))
        if found > gap:
            gap, place = found, int(np.where(opposed, score, -1.0).argmax())
    return max(gap, -0.5), place if gap > 0 else None


def _inverted(units: Sequence[Unit], near: Floats, cloth: Cloth, span: int) -> float:
    """The share of word pairs that stand in the other order in the best sentence."""
    order = [unit.key for clause in cloth.clauses if clause.span == span for unit in clause.units]
    places = [order.index(unit.key) for row, unit in enumerate(units) if near[row] >= 0.99 and unit.key in order]
    count = len(places) * (len(places) - 1) / 2
    if not count:
        return 0.0
    turned = sum(a > b for at, a in enumerate(places) for b in places[at + 1 :])
    return float(turned / count)
