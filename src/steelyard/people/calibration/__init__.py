"""Calibration: agreement of a judge with human labels, where they differ, and the run's scores corrected by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from steelyard.errors import ConfigError, LabelsDoNotFit
from steelyard.people.calibration.corrections import Rates, Scores
from steelyard.people.calibration.majority import Majority
from steelyard.people.calibration.matching import Matcher, Rated
from steelyard.people.calibration.measure import by_votes, disputes, groups, measure
from steelyard.people.calibration.reliability import PRECISION, curves
from steelyard.protocols import vocabulary
from steelyard.records import Language, Sample, Verdict
from steelyard.reports.calibration.model import Calibration
from steelyard.store.labels import HumanLabel, of_one_policy
from steelyard.text import language_of

# Ten points from end to end: ±5.
WIDTH = 0.1
MOST_TEXTS = 200


def calibrate(
    judged: Iterable[tuple[Sample | None, Verdict]],
    labels: Sequence[HumanLabel],
    *,
    policy: str | None = None,
    run: str = "",
    width: float = WIDTH,
    precision: float = PRECISION,
    language: Language | None = None,
) -> Calibration:
    """Compare the verdicts of a run with human labels.

    `width` is the wanted width of the corrected scores' intervals as a share of their scale; the result says how many
    samples people would have to label for it. `precision` is the share of right labels from which on a routed judge may
    believe the first of its judges.
    """
    if not 0 < precision <= 1:
        raise ConfigError(f"the wanted precision is a share above 0 and up to 1, not {precision}")
    if not 0 < width < 1:
        raise ConfigError(f"the width of an interval is a share of the scale, between 0 and 1, not {width}")
    chosen = of_one_policy(labels, policy)
    matcher = Matcher(chosen, run)
    scores, rates = Scores(), Rates({label.kind for label in chosen})
    rated: list[Rated] = []
    judges: Counter[str] = Counter()
    texts: list[str] = []
    protocol = ""
    for sample, verdict in judged:
        protocol = protocol or verdict.protocol
        cluster = matcher.cluster(sample, verdict)
        found = matcher.match(sample, verdict, cluster)
        rated += found
        scores.add(verdict, found, cluster)
        rates.add(verdict, found, cluster)
        judges[verdict.judge] += 1
        if len(texts) < MOST_TEXTS:
            texts += [item.text for item in verdict.items[:2]]
    matcher.finish()
    if not rated:
        code = "nothing_fits" if chosen else "none"
        raise LabelsDoNotFit(_why_nothing(chosen, matcher), code, dict(matcher.unmatched.most_common()))
    majority = Majority(rated)
    vocab = vocabulary(protocol)
    return Calibration(
        protocol=protocol,
        language=language or language_of(*texts),
        scale=vocab.scale,
        judges=tuple(name for name, _ in judges.most_common() if name),
        policy=chosen[0].policy,
        annotators=dict(Counter(name for item in rated for name in item.people).most_common()),
        n_labels=len(chosen),
        n_used=matcher.used,
        unmatched=dict(matcher.unmatched.most_common()),
        unmatched_examples=tuple(matcher.examples),
        tasks=tuple(measure(task, items, majority) for task, items in _by_task(rated).items()),
        disputes=disputes(rated, majority),
        groups=groups(rated, majority),
        votes=by_votes(rated, majority),
        reliability=curves(rated, majority, precision),
        precision=precision,
        scores=scores.results(majority, vocab, width),
        rates=tuple(rates.results(majority)),
        width=width,
        weighted=len({item.weight for item in rated}) > 1,
        skewed=scores.is_skewed(majority),
    )


def _by_task(rated: Iterable[Rated]) -> dict[str, list[Rated]]:
    found: dict[str, list[Rated]] = {}
    for item in rated:
        found.setdefault(item.slot.task, []).append(item)
    return found


def _why_nothing(labels: Sequence[HumanLabel], matcher: Matcher) -> str:
    if not labels:
        return "there are no labels yet; draw samples with: steelyard sample RUN --for-labelling 50 -o sheet.jsonl"
    reasons = {
        "no_sample": "their samples are not in the run",
        "no_item": "the run has no such items",
        "other_item": "their items say something else in this run",
        "other_text": "they were made on other answers",
        "other_run": "they were made on another run",
    }
    counts = "; ".join(f"{n}: {reasons[reason]}" for reason, n in matcher.unmatched.most_common())
    return f"none of the {len(labels)} labels fits this run ({counts})"
