"""A run as evaluations for tracing tools: one per score of a sample, with the trace ids it belongs to."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Metric, Vocabulary
from steelyard.records import AnyItem, Sample, Verdict
from steelyard.reports.build import main_reason

NAMESPACE = UUID("6d1f7c0e-6a0b-5d6c-9a54-0f3f6a6d2f11")
"""Ids of evaluations are made from names in it: the same score has the same id in every export."""
MOST_ITEMS = 5
MOST_CHARS = 2000
# What a manifest says of a judge that has no part in its answers.
NOT_SHAPING = ("timeout", "retries", "price", "settled")


class TraceIds(NamedTuple):
    """Where an evaluation belongs, as far as the sample's `source` says it."""

    trace_id: str = ""
    span_id: str = ""
    response_id: str = ""

    @classmethod
    def of(cls, sample: Sample) -> TraceIds:
        return cls(*(sample.source.get(name, "") for name in cls._fields))


@dataclass(frozen=True)
class Evaluation:
    """One score of one sample. Where it could not be judged, `value` is null and `error` says why."""

    id: str
    name: str
    value: float | None
    label: str
    explanation: str
    error: str
    sample: str
    judge: str
    fingerprint: str
    run: str
    time: datetime
    ids: TraceIds

    @property
    def details(self) -> dict[str, str]:
        """What a tool keeps beside the score, where it has a place for it."""
        details = {
            "steelyard.evaluation_id": self.id,
            "steelyard.sample": self.sample,
            "steelyard.label": self.label,
            "steelyard.run": self.run,
            "steelyard.judge": self.judge,
            "steelyard.judge.fingerprint": self.fingerprint,
        }
        return {name: value for name, value in details.items() if value}


@dataclass(frozen=True)
class JudgedRun:
    """A run to be sent: what is known about it, and its verdicts, read again each time they are asked for."""

    id: str
    protocol: str
    time: datetime
    verdicts: Callable[[], Iterable[tuple[Sample, Verdict]]]
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> Vocabulary:
        return vocabulary(self.protocol)

    @property
    def fingerprint(self) -> str:
        """Differs wherever the judge, its parameters or its prompts do; empty where no manifest tells."""
        judge = self.manifest.get("judge")
        if not judge:
            return ""
        prompts = {id: prompt.get("sha256") for id, prompt in self.manifest.get("prompts", {}).items()}
        content = json.dumps([_shaping(judge), prompts], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def evaluations(self) -> Iterator[Evaluation]:
        """Every score that applies, sample by sample."""
        fingerprint = self.fingerprint
        for sample, verdict in self.verdicts():
            for name, value in verdict.scores.items():
                if value is None and not self.words.is_open(name, verdict):
                    continue
                score = described(verdict, self.words, name)
                yield Evaluation(
                    id=str(uuid5(NAMESPACE, json.dumps([self.id, self.protocol, verdict.judge, sample.id, name]))),
                    name=f"{self.protocol}.{name}",
                    value=None if value is None else float(value),
                    label=score.label,
                    explanation=score.explanation,
                    error=main_reason(verdict) if value is None else "",
                    sample=sample.id,
                    judge=verdict.judge,
                    fingerprint=fingerprint,
                    run=self.id,
                    time=self.time,
                    ids=TraceIds.of(sample),
                )


def moment(text: str | None) -> datetime:
    """A time of a store; one that cannot be read is now."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shaping(judge: Any) -> Any:
    """A description of a judge, all the way down, without what has no part in its answers."""
    if isinstance(judge, Mapping):
        return {name: _shaping(value) for name, value in judge.items() if name not in NOT_SHAPING}
    return [_shaping(part) for part in judge] if isinstance(judge, list | tuple) else judge


# --- a score in words ------------------------------------------------------------------------------


class DescribedScore(NamedTuple):
    """The gravest label that a score was counted from, and what was found, worst first."""

    label: str
    explanation: str


def described(verdict: Verdict, words: Vocabulary, name: str) -> DescribedScore:
    """What a score of a verdict means, from the labels that its metric reads."""
    metric = words.metric(name)
    found = list(_labels(verdict, words, metric))
    whole = next((aspect for aspect in words.whole if aspect.name in metric.reads), None)
    value = verdict.scores.get(name)
    if not found:
        label = words.label_words(whole.name, int(value), "en") if whole and value is not None else ""
        return DescribedScore(label, "")
    worst = sorted(found, key=lambda one: words.severity(one.aspect, one.label))
    counts = Counter(words.label_words(one.aspect, one.label, "en") for one in worst)
    lines = [", ".join(f"{n} {label}" for label, n in counts.items())]
    against = [one for one in worst if words.aspect(one.aspect).label(one.label).is_against]
    lines += [one.in_words(words) for one in against[:MOST_ITEMS]]
    if len(against) > MOST_ITEMS:
        lines.append(f"and {len(against) - MOST_ITEMS} more")
    return DescribedScore(next(iter(counts)), shortened("\n".join(lines), MOST_CHARS))


class _Labelled(NamedTuple):
    aspect: str
    label: str
    item: AnyItem

    def in_words(self, words: Vocabulary) -> str:
        reason = f" ({self.item.reason})" if self.item.reason else ""
        quote = getattr(getattr(self.item, "evidence", None), "quote", "")
        said = f" [{quote}]" if quote else ""
        return f"{words.label_words(self.aspect, self.label, 'en')}: {words.item_words(self.item, 'en')}{reason}{said}"


def _labels(verdict: Verdict, words: Vocabulary, metric: Metric) -> Iterator[_Labelled]:
    for item in verdict.items:
        if metric.group and getattr(item, "group", "") != metric.group:
            continue
        for aspect, label in words.labels_of(item):
            if not metric.reads or aspect in metric.reads:
                yield _Labelled(aspect, label, item)


def shortened(text: str, most: int) -> str:
    """The text, or its beginning with how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
