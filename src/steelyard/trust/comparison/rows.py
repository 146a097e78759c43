"""The rows of a comparison: scores and digests of each sample without its texts, so that runs of any size fit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from steelyard.errors import ConfigError
from steelyard.records import DialogueSample, RagSample, Sample, Verdict
from steelyard.reports.build import cluster_of
from steelyard.reports.results import Results
from steelyard.stats import Cluster
from steelyard.store.labels import digest

Verdicts = Callable[[], Iterable[tuple[Sample | None, Verdict]]]


class Judged(NamedTuple):
    """One run, or file of result lines, to compare: its name, its verdicts (read anew at each call), and how it came
    about where that is known."""

    name: str
    verdicts: Verdicts
    manifest: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, given: Judged | Results, name: str) -> Judged:
        """What `evaluate` returned, under the id of its run or else this name."""
        if not isinstance(given, Results):
            return given
        return cls(given.run or name, lambda: zip(given.samples, given, strict=True))


class PairedRow(NamedTuple):
    """One judged sample. Digests are None where the sample's text is not at hand."""

    id: str
    protocol: str
    judge: str
    scores: Mapping[str, float]
    lacking: tuple[str, ...]
    """Scores that the sample does not have: they do not apply, or something was not judged."""
    cluster: Cluster
    asked: str | None
    given: str | None
    text: str | None


def rows_of(judged: Judged) -> dict[str, PairedRow]:
    """The samples by id; two with the same id could be paired in two ways, so that is refused."""
    found: dict[str, PairedRow] = {}
    for sample, verdict in judged.verdicts():
        if verdict.id in found:
            raise ConfigError(f"{judged.name} has two samples {verdict.id!r}; samples are paired by id")
        found[verdict.id] = _row(sample, verdict)
    return found


def _row(sample: Sample | None, verdict: Verdict) -> PairedRow:
    known = {name: float(score) for name, score in verdict.scores.items() if score is not None and math.isfinite(score)}
    shared = cluster_of(sample)
    return PairedRow(
        id=verdict.id,
        protocol=verdict.protocol,
        judge=verdict.judge,
        scores=known,
        lacking=tuple(name for name in verdict.scores if name not in known),
        cluster=verdict.id if shared is None else shared,
        asked=_digest(_asked(sample)) if sample else None,
        given=_digest(_given(sample)) if sample else None,
        text=digest(sample) if sample else None,
    )


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _asked(sample: Sample) -> object:
    """What identifies a sample beside its id: the question, or what the assistant was told and asked."""
    match sample:
        case RagSample():
            return sample.question.strip()
        case DialogueSample():
            return sample.system_prompt, [(turn.prompt, turn.criteria) for turn in sample.turns]


def _given(sample: Sample) -> object:
    """What the answer is judged by. Another retriever brings other passages, so this may well differ."""
    if not isinstance(sample, RagSample):
        return None
    others = sample.reference_answer, sample.other_answer
    return sample.references, *others, sample.key_points, sample.date, sample.place
