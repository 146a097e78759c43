"""What is measured between a claim and the passages: the numbers the learned part weighs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.clashes import KINDS, clashes
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.facts import facts
from steelyard.judges.embedded.meaning import HAN_RUN, encode, plain, rarity, terms, words
from steelyard.judges.embedded.missing import soft
from steelyard.judges.embedded.particulars import beside_list, exact, wording
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.spans import Beside, Span, clauses
from steelyard.judges.embedded.weave import WEAVE, Woven, woven

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

# So many spans of a source are encoded for a claim: those whose words come nearest to the claim's.
MOST_ENCODED = 5
COSINE_SHARE = 0.5
CONTEXT = ("ctx", "ctx_clause", "ctx_sentence", "ctx_far", "ctx_lone", "ctx_place", "ctx_before", "ctx_facts")

NAMES = (
    "recall_all", "recall_best", "recall_window", "recall_top", "weighted_all", "weighted_best", "weighted_window",
    "weighted_top", "weighted_gap", "precision_best", "pairs_window", "run", "run_window", "verbatim", "clause_recall",
    "missing", "missing_window", "missing_rarest", "missing_second", "characters", "cosine_best", "cosine_max",
    "cosine_second", "cosine_clause", "soft_least", "soft_mean", "soft_rare", "soft_recall", "soft_recall_top",
    "strange", "nowhere", "soft_far", "facts", "facts_far", "facts_nowhere", "facts_unheld", "names_unknown",
    "exchanged", "han_names_unknown", "negators_differ", "extremes_unknown", "first_person", "second_person", "asks",
    "chinese", "claim_words", "listed", "value_named", "value_share", "value_self", "other_sign", "other_place",
    "gender_same", "gender_other", "gender_female", *WEAVE, *CONTEXT, *(f"clash_{kind}" for kind in KINDS), "clashes",
)  # fmt: skip


class Alignment(NamedTuple):
    """The span a claim is about, what stands around it (and from where to where), and how the two compare."""

    span: Span
    wide: tuple[int, int]
    window: str
    clashes: list[Clash]
    features: dict[str, float]
    vector: Vector
    claim: str
    beside: tuple[Beside, ...]


class _Draft(NamedTuple):
    """A claim before anything is encoded: its words, how they lie in the passages, the spans worth encoding."""

    claim: str
    keys: dict[str, str]
    weights: dict[str, float]
    lexical: list[float]
    woven: Woven
    chosen: list[int]
    clauses: list[str]
    beside: tuple[Beside, ...]


def measure(claim: str, source: Source) -> Alignment | None:
    """The claim's best-aligned span and the features of the pair; None where there is nothing to compare."""
    return measure_all([claim], source)[0]


def measure_all(claims: Sequence[str], source: Source) -> list[Alignment | None]:
    """The same for many claims: what has to be encoded for all of them is encoded in one go."""
    return measure_pairs([(claim, source) for claim in claims])


def measure_pairs(pairs: Sequence[tuple[str, Source]]) -> list[Alignment | None]:
    """The same for claims that have sources of their own."""
    drafts = [_draft(claim, source) for claim, source in pairs]
    texts = [
        text
        for draft, (_, source) in zip(drafts, pairs, strict=True)
        if draft
        for text in (draft.claim, *draft.clauses, *_encoded(draft, source))
    ]
    if texts:
        encode(texts)
    return [
        _aligned(written, draft, source) if draft else None
        for draft, (written, source) in zip(drafts, pairs, strict=True)
    ]


def _draft(claim: str, source: Source) -> _Draft | None:
    if not source.spans or not terms(claim):
        return None
    claim = source.in_its_words(claim)
    keys = {term.key: term.written for term in terms(claim)}
    weights = {key: rarity(written) for key, written in keys.items()}
    total = sum(weights.values()) or 1.0
    lexical = [sum(weights[key] for key in keys if key in held) / total for held in source.words]
    found = woven(claim, source.cloth, source.asked)
    near = [lexical[at] + found.by_span.get(at, 0.0) for at in range(len(lexical))]
    order = sorted(range(len(near)), key=lambda at: (-near[at], at))[:MOST_ENCODED]
    parts = _clauses(claim)
    return _Draft(
        claim, keys, weights, lexical, found, sorted(order), parts if len(parts) > 1 else [], _beside(source, order)
    )


def _encoded(draft: _Draft, source: Source) -> list[str]:
    """The spans that need vectors: in Chinese those to be compared, else also what is read beside the claim."""
    if HAN_RUN.search(draft.claim):
        return [source.spans[at].text for at in draft.chosen]
    return [one.text for one in draft.beside]


# The neighbours of the best span may say whom it speaks of; they rank behind what was found by its own words.
LAST_RANK, NEIGHBOUR = 3, 4


def _beside(source: Source, order: Sequence[int]) -> tuple[Beside, ...]:
    ranks = dict.fromkeys(_near(source, order[0]), NEIGHBOUR)
    ranks |= {at: min(place, LAST_RANK) for place, at in enumerate(order, 1)}
    wanted = dict.fromkeys((*order[:2], *_near(source, order[0]), *order[2:]))
    return tuple(Beside(ranks[at], at, source.spans[at].text) for at in wanted)


def _aligned(written: str, draft: _Draft, source: Source) -> Alignment:
    claim, lexical, chosen = draft.claim, draft.lexical, draft.chosen
    vectors = encode([claim, *(source.spans[at].text for at in chosen)])
    cosine = dict(zip(chosen, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    score = {at: lexical[at] + draft.woven.by_span.get(at, 0.0) + COSINE_SHARE * cosine[at] for at in chosen}
    order = sorted(chosen, key=lambda at: (-score[at], at))
    best = order[0]
    near = _near(source, best)
    window = " ".join(source.spans[at].text for at in near)
    around = " ".join(source.spans[at].text for at in order[:3])
    clash = clashes(claim, source.spans[best].text, f"{window} {around}")
    features = {
        "soft_recall": 0.0,
        "soft_recall_top": 0.0,
        **_lexical(claim, source, draft.keys, draft.weights, best, order, window, lexical),
        **_semantic(claim, source, order, cosine, window, draft.clauses),
        **exact(claim, source, window),
        **wording(claim, source, best, window),
        **beside_list(claim, source),
        **draft.woven.features,
        **_context(written, draft.woven, source),
        **{f"clash_{kind}": float(any(one.kind == kind for one in clash)) for kind in KINDS},
        "clashes": float(len(clash)),
    }
    # A word that comes near one of the passage's counts by how near it comes.
    for name, held, near_by in (
        ("soft_recall", "weighted_window", "soft_rare"),
        ("soft_recall_top", "weighted_top", "soft_top"),
    ):
        features[name] = features[held] + (1 - features[held]) * features[near_by]
    wide = source.spans[near[0]].start, source.spans[near[-1]].end
    seen = [*clash, *_woven_clashes(claim, draft.woven, source)]
    return Alignment(source.spans[best], wide, window, seen, features, vectors[0], claim, draft.beside)


# From here on the clause that fits a claim best but for its denial, or its name, is what the claim is about.
DENIED, FOREIGN = 0.1, 0.15
SAME_MATTER = 0.5


def _woven_clashes(claim: str, found: Woven, source: Source) -> Iterator[Clash]:
    """What the words' places show: a clause that denies what is claimed, or has another name in the same role."""
    features = found.features
    if found.denied is not None and features["polar_gap"] >= DENIED and features["polar_other"] >= SAME_MATTER:
        yield Clash("negation", claim.strip(" 。."), source.cloth.clauses[found.denied].text)
    if found.foreign and features["rival"] >= FOREIGN:
        yield Clash("entity", *found.foreign)


def _near(source: Source, best: int) -> list[int]:
    """The best span and its neighbours in the same passage."""
    passage = source.spans[best].passage
    near = range(max(0, best - 1), min(len(source.spans), best + 2))
    return [at for at in near if source.spans[at].passage == passage]


def _context(claim: str, found: Woven, source: Source) -> dict[str, float]:
    """What the answer says around a phrase that is judged by itself; a whole sentence is its own context."""
    own = found.features
    place = source.place_of(claim)
    if place is None:
        alone = (0.0, own["w_window"], own["w_window"], own["far_mass"], own["lone_mass"], 0.0, 0.0, 0.0)
        return dict(zip(CONTEXT, alone, strict=True))
    clause, sentence = source.woven_answer(place.clause), source.woven_answer(place.sentence)
    before = source.woven_answer(place.before)["lone_mass"] if terms(place.before) else 0.0
    values = (
        1.0, clause["w_window"], sentence["w_window"], clause["far_mass"], sentence["lone_mass"], place.share, before,
        float(sum(not source.holds(fact) for fact in facts(place.clause))),
    )  # fmt: skip
    return dict(zip(CONTEXT, values, strict=True))


# --- words -----------------------------------------------------------------------------------------


def _lexical(
    claim: str,
    source: Source,
    keys: dict[str, str],
    weights: dict[str, float],
    best: int,
    order: list[int],
    window: str,
    lexical: list[float],
) -> dict[str, float]:
    count, total = len(keys), sum(weights.values()) or 1.0
    in_best, in_window = source.words[best], frozenset(words(window))
    in_top = frozenset().union(*(source.words[at] for at in order[:3]))
    missing = [key for key in keys if key not in source.all_words]
    local = [key for key in keys if key not in in_window]
    sequence = words(claim)
    follow = list(pairwise(sequence))
    said = words(window)
    said_pairs = frozenset(pairwise(said))
    shares = [
        (clause_keys, max((_share(clause_keys, held) for held in source.words), default=0.0))
        for clause_keys in (words(clause) for clause in _clauses(claim))
        if clause_keys
    ]
    rare = sorted((weights[key] for key in missing), reverse=True)
    return {
        "recall_all": 1 - len(missing) / count,
        "recall_best": sum(key in in_best for key in keys) / count,
        "recall_window": 1 - len(local) / count,
        "recall_top": sum(key in in_top for key in keys) / count,
        "weighted_all": 1 - sum(weights[key] for key in missing) / total,
        "weighted_best": lexical[best],
        "weighted_window": 1 - sum(weights[key] for key in local) / total,
        "weighted_top": sum(weights[key] for key in keys if key in in_top) / total,
        "weighted_gap": lexical[best] - (lexical[order[1]] if len(order) > 1 else 0.0),
        "precision_best": len(in_best & keys.keys()) / (len(in_best) or 1),
        "pairs_window": sum(pair in said_pairs for pair in follow) / (len(follow) or 1),
        "run": _longest_run(claim, source.plain),
        "run_window": _longest_run(claim, plain(window)),
        "verbatim": float(plain(claim).strip(" 。.!！?？") in source.plain),
        "clause_recall": min((share for _, share in shares), default=0.0),
        "missing": float(len(missing)),
        "missing_window": float(len(local)),
        "missing_rarest": rare[0] if rare else 0.0,
        "missing_second": rare[1] if len(rare) > 1 else 0.0,
        "characters": _characters(claim, source.plain),
    }


def _share(keys: Sequence[str], held: frozenset[str]) -> float:
    return sum(key in held for key in keys) / len(keys)


def _clauses(claim: str) -> list[str]:
    return clauses(claim, 8 if HAN_RUN.search(claim) else 30)


def _longest_run(claim: str, text: str) -> float:
    """The longest stretch of the claim that stands in the text, as a share of the claim."""
    low = plain(claim).strip()
    if not low:
        return 0.0
    units = list(low) if HAN_RUN.search(low) else low.split()
    glue = "" if HAN_RUN.search(low) else " "
    longest = start = 0
    for end in range(1, min(len(units), 120) + 1):
        while start < end and glue.join(units[start:end]) not in text:
            start += 1
        longest = max(longest, end - start)
    return longest / min(len(units), 120)


def _characters(claim: str, text: str) -> float:
    han = [character for run in HAN_RUN.findall(plain(claim)) for character in run]
    return sum(character in text for character in han) / len(han) if han else 1.0


# --- meaning ---------------------------------------------------------------------------------------


def _semantic(
    claim: str, source: Source, order: list[int], cosine: dict[int, float], window: str, parts: list[str]
) -> dict[str, float]:
    ranked = sorted(cosine.values(), reverse=True)
    best = order[0]
    least = ranked[0]
    if parts:
        vectors = encode([*parts, *(source.spans[at].text for at in order)])
        least = float((vectors[: len(parts)] @ vectors[len(parts) :].T).max(axis=1).min())
    values = {
        "cosine_best": cosine[best],
        "cosine_max": ranked[0],
        "cosine_second": ranked[1] if len(ranked) > 1 else ranked[0],
        "cosine_clause": least,
    }
    top = " ".join(source.spans[at].text for at in order[:3])
    return values | soft(claim, source.plain, window, top)
