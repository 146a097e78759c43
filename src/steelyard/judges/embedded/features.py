"""What is measured between a claim and the passages: the numbers the learned part weighs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.clashes import KINDS, clashes
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.meaning import HAN_RUN, encode, plain, rarity, terms, words
from steelyard.judges.embedded.missing import soft
from steelyard.judges.embedded.particulars import beside_list, exact, wording
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.spans import Span, clauses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

# Spans that share no word with a claim are not encoded for it when there are more than this.
MOST_ENCODED = 24
FEW_ENOUGH = 40
COSINE_SHARE = 0.5


NAMES = (
    "recall_all", "recall_best", "recall_window", "recall_top", "weighted_all", "weighted_best", "weighted_window",
    "weighted_top", "weighted_gap", "precision_best", "pairs_window", "run", "run_window", "verbatim", "clause_recall",
    "missing", "missing_window", "missing_rarest", "missing_second", "characters", "cosine_best", "cosine_max",
    "cosine_second", "cosine_clause", "soft_least", "soft_mean", "soft_rare", "soft_recall", "soft_recall_top",
    "strange", "nowhere", "soft_far", "facts", "facts_far", "facts_nowhere", "names_unknown", "exchanged",
    "han_names_unknown", "negators_differ", "extremes_unknown", "first_person", "second_person", "asks", "chinese",
    "claim_words", "listed", "value_named", "value_share", "value_self", "other_sign", "other_place", "gender_same",
    "gender_other", "gender_female", *(f"clash_{kind}" for kind in KINDS), "clashes",
)  # fmt: skip


class Alignment(NamedTuple):
    """The span a claim is about, what stands around it (and from where to where), and how the two compare."""

    span: Span
    wide: tuple[int, int]
    window: str
    clashes: list[Clash]
    features: dict[str, float]
    vector: Vector


def measure(claim: str, source: Source) -> Alignment | None:
    """The claim's best-aligned span and the features of the pair; None where there is nothing to compare."""
    if not source.spans or not terms(claim):
        return None
    claim = source.in_its_words(claim)
    keys = {term.key: term.written for term in terms(claim)}
    weights = {key: rarity(written) for key, written in keys.items()}
    total = sum(weights.values()) or 1.0
    lexical = [sum(weights[key] for key in keys if key in held) / total for held in source.words]
    chosen = _worth_encoding(lexical)
    vectors = encode([claim, *(source.spans[at].text for at in chosen)])
    cosine = dict(zip(chosen, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    score = {at: lexical[at] + COSINE_SHARE * cosine[at] for at in chosen}
    order = sorted(chosen, key=lambda at: (-score[at], at))
    best = order[0]
    near = _near(source, best)
    window = " ".join(source.spans[at].text for at in near)
    around = " ".join(source.spans[at].text for at in order[:3])
    clash = clashes(claim, source.spans[best].text, f"{window} {around}")
    features = {
        "soft_recall": 0.0,
        "soft_recall_top": 0.0,
        **_lexical(claim, source, keys, weights, best, order, window, lexical),
        **_semantic(claim, source, order, cosine, window),
        **exact(claim, source, window),
        **wording(claim, source, best, window),
        **beside_list(claim, source),
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
    return Alignment(source.spans[best], wide, window, clash, features, vectors[0])


def _worth_encoding(lexical: list[float]) -> list[int]:
    if len(lexical) <= FEW_ENOUGH:
        return list(range(len(lexical)))
    return sorted(sorted(range(len(lexical)), key=lambda at: (-lexical[at], at))[:MOST_ENCODED])


def _near(source: Source, best: int) -> list[int]:
    """The best span and its neighbours in the same passage."""
    passage = source.spans[best].passage
    near = range(max(0, best - 1), min(len(source.spans), best + 2))
    return [at for at in near if source.spans[at].passage == passage]


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


def _semantic(claim: str, source: Source, order: list[int], cosine: dict[int, float], window: str) -> dict[str, float]:
    ranked = sorted(cosine.values(), reverse=True)
    best = order[0]
    parts = _clauses(claim)
    least = ranked[0]
    if len(parts) > 1:
        vectors = encode([*parts, *(source.spans[at].text for at in order[:12])])
        least = float((vectors[: len(parts)] @ vectors[len(parts) :].T).max(axis=1).min())
    values = {
        "cosine_best": cosine[best],
        "cosine_max": ranked[0],
        "cosine_second": ranked[1] if len(ranked) > 1 else ranked[0],
        "cosine_clause": least,
    }
    top = " ".join(source.spans[at].text for at in order[:3])
    return values | soft(claim, source, window, top)
