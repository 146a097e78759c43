"""ragchecker: which of two answers people find more correct, more complete, better; and which the judge does.

Each answer is judged by itself with `scorecard`, end to end, against the reference answer. The difference of the two
scores is held against the mean of the raters (-2 to 2, positive for the second answer). Which score stands for which
question was fixed before anything was measured. Nothing is learned from this set, so all of it measures.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from agreement.measures import Figure
from steelyard.evaluation import evaluate_async
from steelyard.judges.base import Judge
from steelyard.records import RagSample

FILE = "pairs_en_ragchecker.jsonl"
ASKED = ("correctness", "completeness", "overall")
RESAMPLES, SEED = 1000, 1
Progress = Callable[[int, int], None]
Scores = Mapping[str, float | int | None]


class Comparison(NamedTuple):
    """Two answers to one question, and what people said of them, rater by rater."""

    id: str
    question: str
    reference: str
    answers: tuple[str, str]
    ratings: Mapping[str, tuple[float, ...]]


def comparisons(data: Path) -> list[Comparison]:
    """The pairs with all their raters; a rater has a line of its own in the file."""
    lines = [json.loads(line) for line in (data / FILE).read_text("utf-8").splitlines() if line.strip()]
    raters: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        raters[line["query"], line["answer_1"]["response"], line["answer_2"]["response"]].append(line)
    return [
        Comparison(
            id=given[0]["id"],
            question=question,
            reference=given[0]["gt_answer"],
            answers=(first, second),
            ratings={asked: tuple(float(line[f"{asked}_label"]) for line in given) for asked in ASKED},
        )
        for (question, first, second), given in raters.items()
    ]


async def preferences(found: Sequence[Comparison], judge: Judge, workers: int, progress: Progress) -> dict[str, Any]:
    """Pearson's correlation between judge and people for each question, and between people."""
    scores: dict[str, Scores] = {}
    size = max(8, 2 * workers)
    samples = {sample.id: sample for comparison in found for sample in _samples(comparison)}
    waiting = list(samples.values())
    for at in range(0, len(waiting), size):
        for verdict in await evaluate_async(waiting[at : at + size], "scorecard", judge, concurrency=workers):
            scores[verdict.id] = verdict.scores
        progress(min(at + size, len(waiting)), len(waiting))
    figures = {asked: _figure(found, scores, asked).as_dict() for asked in ASKED}
    return {
        "n": len(found),
        "correlations": figures,
        "people": {asked: between_people(found, asked) for asked in ASKED},
    }


def _samples(comparison: Comparison) -> list[RagSample]:
    return [
        RagSample(
            id=f"{comparison.id}-{place}",
            question=comparison.question,
            references=(comparison.reference,),
            reference_answer=comparison.reference,
            answer=answer,
        )
        for place, answer in enumerate(comparison.answers)
    ]


def score_of(scores: Scores, asked: str) -> float | None:
    """Correct: how much the reference supports. Complete: how much of it is covered. Better: the mean of both."""
    soft, complete = scores.get("faithfulness_soft"), scores.get("completeness")
    if asked == "correctness":
        return soft
    if asked == "completeness":
        return complete
    return None if soft is None or complete is None else (soft + complete) / 2


def _figure(found: Sequence[Comparison], scores: Mapping[str, Scores], asked: str) -> Figure:
    points, clusters = [], []
    for comparison in found:
        first, second = (score_of(scores.get(f"{comparison.id}-{place}", {}), asked) for place in (0, 1))
        if first is not None and second is not None:
            points.append((second - first, mean(comparison.ratings[asked])))
            clusters.append(comparison.question)
    return correlation(points, clusters)


def correlation(points: Sequence[tuple[float, float]], clusters: Sequence[str]) -> Figure:
    """Pearson's r with an interval from resampling questions; nothing where one side never varies."""
    pairs = np.array(points, dtype=float).reshape(-1, 2)
    value = _pearson(pairs)
    if value is None:
        return Figure(None, None, None, len(points))
    members: dict[str, list[int]] = defaultdict(list)
    for at, cluster in enumerate(clusters):
        members[cluster].append(at)
    groups = list(members.values())
    rng = np.random.default_rng(SEED)
    drawn = (
        _pearson(pairs[[at for group in rng.integers(len(groups), size=len(groups)) for at in groups[group]]])
        for _ in range(RESAMPLES)
    )
    replicates = [r for r in drawn if r is not None]
    low, high = np.quantile(replicates, [0.025, 0.975])
    return Figure(value, float(low), float(high), len(points))


def _pearson(pairs: Any) -> float | None:
    if len(pairs) < 3 or pairs[:, 0].std() == 0 or pairs[:, 1].std() == 0:
        return None
    return float(np.corrcoef(pairs.T)[0, 1])


def between_people(found: Sequence[Comparison], asked: str) -> float | None:
    """The correlation of the first rater with the second, where there are two."""
    both = [comparison.ratings[asked][:2] for comparison in found if len(comparison.ratings[asked]) >= 2]
    value = _pearson(np.array(both, dtype=float).reshape(-1, 2))
    return None if value is None else round(value, 4)
