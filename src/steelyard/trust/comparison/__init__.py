"""Compares two runs over the same samples: the difference, its significance, and the samples needed to decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from steelyard.errors import ConfigError
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import BOUNDS, Metric, Scale, Vocabulary
from steelyard.records import Language, Verdict
from steelyard.reports.build import most_telling, shown_flags
from steelyard.reports.comparison import (
    MOST_VANISHED,
    Change,
    Comparison,
    MetricChange,
    MissingMetric,
    Outcome,
    Overall,
)
from steelyard.reports.model import why
from steelyard.reports.results import Results
from steelyard.stats import CONFIDENCE, Cluster
from steelyard.stats.libraries import np
from steelyard.stats.paired import PairedDifference, difference, holm, samples_to_decide
from steelyard.text import language_of
from steelyard.trust.comparison.comparability import check_comparable
from steelyard.trust.comparison.rows import Judged, PairedRow, rows_of

__all__ = ["Judged", "compare", "why_of"]

MOST_LISTED = 20
MOST_TEXTS = 200


class Pair(NamedTuple):
    """One sample as it was judged in A and in B."""

    a: PairedRow
    b: PairedRow


def compare(
    a: Judged | Results,
    b: Judged | Results,
    *,
    metrics: Sequence[str] = (),
    anyway: bool = False,
    language: Language | None = None,
    listed: int | None = MOST_LISTED,
) -> Comparison:
    """B against A, sample by sample, in these metrics or in all; `listed` bounds the samples that moved.

    Runs of different judges, prompts, options or questions are refused unless `anyway`, and then marked.
    """
    a, b = Judged.of(a, "A"), Judged.of(b, "B")
    before, after = rows_of(a), rows_of(b)
    marks = check_comparable(a, b, before, after, anyway=anyway)
    pairs = [Pair(row, after[id]) for id, row in before.items() if id in after]
    protocol = pairs[0].b.protocol
    pairs, scale, words = _on_one_scale(pairs)
    changes, missing = _changes_of_metrics(pairs, words, metrics)
    vanished = tuple(_vanished(changes, missing))
    main = _main(words, changes)
    rose, fell = _moved(pairs, words.metric(main) if main else None)
    # What is wrong says more than what is right: in A where a sample rose, in B where it fell.
    chosen = language or _language(b)
    better, worse = ({pair.a.id for pair in moved[:MOST_LISTED]} for moved in (rose, fell))
    whys = {**_whys(a, better, chosen), **_whys(b, worse, chosen)}
    return Comparison(
        protocol=protocol,
        language=chosen,
        scale=scale,
        a=a.name,
        b=b.name,
        n_pairs=len(pairs),
        n_only_a=len(before) - len(pairs),
        n_only_b=len(after) - len(pairs),
        n_same=sum(pair.a.text is not None and pair.a.text == pair.b.text for pair in pairs),
        marks=marks,
        metrics=tuple(changes),
        missing=tuple(missing),
        vanished=vanished,
        main=main,
        outcome=_overall(changes, vanished),
        improved=tuple(_listed(rose[:listed], main, whys)),
        regressed=tuple(_listed(fell[:listed], main, whys)),
        n_improved=len(rose),
        n_regressed=len(fell),
    )


# --- scores ----------------------------------------------------------------------------------------


def _on_one_scale(pairs: list[Pair]) -> tuple[list[Pair], Scale, Vocabulary]:
    """The pairs on B's scale, or, where A has another one, all scores as shares of their scales."""
    words = {name: vocabulary(name) for pair in pairs for name in (pair.a.protocol, pair.b.protocol)}
    vocab = words[pairs[0].b.protocol]
    scales = {one.scale for one in words.values()}
    if len(scales) == 1 or "number" in scales:
        return pairs, scales.pop() if len(scales) == 1 else "number", vocab
    shares = replace(vocab, metrics=tuple(replace(metric, scale="ratio") for metric in vocab.metrics))
    return [Pair(*(_as_shares(row, words[row.protocol]) for row in pair)) for pair in pairs], "ratio", shares


def _as_shares(row: PairedRow, vocab: Vocabulary) -> PairedRow:
    top = BOUNDS[vocab.scale][1]
    return row._replace(scores={name: score / top for name, score in row.scores.items()})


def _changes_of_metrics(
    pairs: Sequence[Pair], vocab: Vocabulary, wanted: Sequence[str]
) -> tuple[list[MetricChange], list[MissingMetric]]:
    """The scores that some sample has in both runs, and those that none has."""
    names = list(dict.fromkeys(name for pair in pairs for row in pair for name in (*row.scores, *row.lacking)))
    if unknown := [name for name in wanted if name not in names]:
        raise ConfigError(f"there is no score {unknown[0]!r} to compare; there are {', '.join(names)}")
    found = [(name, difference_of(name, pairs, vocab.metric(name))) for name in wanted or names]
    known = [(name, diff) for name, diff in found if diff is not None]
    adjusted, asked = _adjusted([diff for _, diff in known])
    changes = [
        _change(vocab.metric(name), diff, p, asked, pairs) for (name, diff), p in zip(known, adjusted, strict=True)
    ]
    missing = [
        MissingMetric(
            metric=name,
            neutral=vocab.metric(name).direction == "neither",
            n_a=sum(name in pair.a.scores for pair in pairs),
            n_b=sum(name in pair.b.scores for pair in pairs),
        )
        for name, diff in found
        if diff is None
    ]
    return changes, missing


def _vanished(changes: Iterable[MetricChange], missing: Iterable[MissingMetric]) -> Iterable[str]:
    """The metrics that say less of B than of A; where B has scores that A lacks, nothing vanished."""
    for change in changes:
        if change.n_only_a > MOST_VANISHED * change.n_of_a and not change.neutral:
            yield change.metric
    yield from (gap.metric for gap in missing if gap.n_a and not gap.neutral)


def _adjusted(found: Sequence[PairedDifference]) -> tuple[list[float | None], int]:
    """The p values adjusted for the number of questions, and that number.

    The test goes by the sizes of the changes as they are. So a score that moved nowhere is no question, and two that
    moved alike everywhere are one.
    """
    moved = [diff for diff in found if diff.rose or diff.fell]
    questions = list(dict.fromkeys(moved))
    values = dict(zip(questions, holm([diff.p for diff in questions]), strict=True))
    return [values.get(diff, diff.p) for diff in found], max(1, len(questions))


def difference_of(name: str, pairs: Iterable[Pair], metric: Metric) -> PairedDifference | None:
    """One score, B minus A, over the samples that have it in both; None where none has."""
    numbers: dict[Cluster, int] = {}
    both = [pair for pair in pairs if name in pair.a.scores and name in pair.b.scores]
    clusters = [numbers.setdefault(pair.b.cluster, len(numbers)) for pair in both]
    a, b = (
        np.array([row.scores[name] for row in side], dtype=np.float64)
        for side in ([p.a for p in both], [p.b for p in both])
    )
    low, high = metric.bounds
    return difference(a, b, np.array(clusters, dtype=np.int64), high - low)


def _change(metric: Metric, diff: PairedDifference, p: float | None, asked: int, pairs: Sequence[Pair]) -> MetricChange:
    name = metric.name
    both = [pair for pair in pairs if name in pair.a.scores and name in pair.b.scores]
    return MetricChange(
        metric=name,
        scale=metric.mean_scale,
        direction=metric.direction,
        a=math.fsum(pair.a.scores[name] for pair in both) / len(both),
        b=math.fsum(pair.b.scores[name] for pair in both) / len(both),
        difference=diff.value,
        interval=diff.interval,
        p=diff.p,
        p_adjusted=p,
        test=diff.method,
        outcome=_outcome(metric, diff, p),
        neutral=metric.direction == "neither",
        n=diff.n,
        clusters=diff.clusters,
        n_rose=diff.rose,
        n_fell=diff.fell,
        effect=diff.dz,
        balance=diff.balance,
        n_to_decide=samples_to_decide(diff, (1 - CONFIDENCE) / asked),
        n_only_a=sum(name in pair.a.scores for pair in pairs) - len(both),
        n_only_b=sum(name in pair.b.scores for pair in pairs) - len(both),
    )


def _outcome(metric: Metric, diff: PairedDifference, p: float | None) -> Outcome:
    if p is None or p > 1 - CONFIDENCE or diff.value == 0:
        return "undecided"
    if metric.direction == "neither":
        return "more" if diff.value > 0 else "fewer"
    return "better" if (diff.value > 0) == (metric.direction == "up") else "worse"


def _overall(metrics: Iterable[MetricChange], vanished: Sequence[str]) -> Overall:
    outcomes = {change.outcome for change in metrics}
    if {"better", "worse"} <= outcomes:
        return "mixed"
    if "worse" in outcomes:
        return "worse"
    if vanished:
        return "incomplete"
    return "better" if "better" in outcomes else "undecided"


# --- samples ---------------------------------------------------------------------------------------


def _main(vocab: Vocabulary, metrics: Sequence[MetricChange]) -> str | None:
    """The metric that ranks samples: the protocol's own; where it has several, the one that moved most surely."""
    # Of what is neither good nor bad in itself no sample got better or worse.
    metrics = [change for change in metrics if not change.neutral]
    if not metrics:
        return None
    if sum(metric.main for metric in vocab.metrics) > 1:
        surest = min(metrics, key=lambda change: (2.0 if change.p is None else change.p, -abs(change.difference)))
        return surest.metric
    names = [change.metric for change in metrics]
    return vocab.main if vocab.main in names else names[0]


def _moved(pairs: Iterable[Pair], metric: Metric | None) -> tuple[list[Pair], list[Pair]]:
    """The samples that got better and those that got worse, the largest change first."""
    if metric is None:
        return [], []
    name = metric.name
    both = [pair for pair in pairs if name in pair.a.scores and name in pair.b.scores]
    both = [pair for pair in both if not math.isclose(pair.a.scores[name], pair.b.scores[name], abs_tol=1e-9)]
    both.sort(key=lambda pair: (-abs(pair.b.scores[name] - pair.a.scores[name]), pair.a.id))
    better = [(pair.b.scores[name] > pair.a.scores[name]) == (metric.direction != "down") for pair in both]
    rose = [pair for pair, is_better in zip(both, better, strict=True) if is_better]
    return rose, [pair for pair, is_better in zip(both, better, strict=True) if not is_better]


def _listed(pairs: Sequence[Pair], metric: str | None, whys: Mapping[str, str]) -> Iterable[Change]:
    for pair in pairs:
        if metric is not None:
            a, b = pair.a.scores[metric], pair.b.scores[metric]
            yield Change(id=pair.a.id, metric=metric, a=a, b=b, why=whys.get(pair.a.id, ""))


def _whys(judged: Judged, wanted: set[str], language: Language) -> dict[str, str]:
    """What is most telling about these samples. The verdicts are read a second time rather than all kept."""
    if not wanted:
        return {}
    return {verdict.id: why_of(verdict, language) for _, verdict in judged.verdicts() if verdict.id in wanted}


def why_of(verdict: Verdict, language: Language) -> str:
    """The main reason for a sample's score, in one line."""
    return why(most_telling(verdict), shown_flags(verdict), language, vocabulary(verdict.protocol))


def _language(judged: Judged) -> Language:
    texts: list[str] = []
    for _, verdict in judged.verdicts():
        texts += [item.text for item in verdict.items[:2]]
        if len(texts) > MOST_TEXTS:
            break
    return language_of(*texts)
