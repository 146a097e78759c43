"""One score for one answer: what the evaluators of other frameworks have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from steelyard.errors import ConfigError
from steelyard.evaluation import evaluate, evaluate_async
from steelyard.integrations.evaluations import described
from steelyard.judges.base import JudgeLike
from steelyard.protocols import DEFAULT, Protocol, get_protocol
from steelyard.protocols.vocabulary import Metric
from steelyard.records import RagSample, Verdict
from steelyard.reports.build import main_reason
from steelyard.reports.results import AnyPath, Results


class AnswerScore(NamedTuple):
    """The score of an answer, as a share of its scale. `value` is null where it does not apply or could not be judged;
    `unjudged` says why in the second case."""

    name: str
    value: float | None
    label: str
    explanation: str
    unjudged: str
    verdict: Verdict


@dataclass(frozen=True)
class AnswerScorer:
    """Scores answers with one metric of a protocol for single answers; the protocol's main one unless it is named."""

    protocol: str | Protocol = DEFAULT
    judge: JudgeLike | str | None = None
    metric: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    store: AnyPath | None = None

    def __post_init__(self) -> None:
        known = get_protocol(self.protocol)
        if known.takes_dialogues:
            raise ConfigError(f"{known.name} judges dialogues; a metric of single answers is needed here")
        if self.metric and self.metric not in known.scores:
            raise ConfigError(f"{known.name} has no score {self.metric!r}; it has {', '.join(known.scores)}")

    @property
    def scored(self) -> Metric:
        """The metric it gives."""
        known = get_protocol(self.protocol)
        return known.metric(self.metric or known.main or known.scores[0])

    @property
    def name(self) -> str:
        return f"{get_protocol(self.protocol).name}.{self.scored.name}"

    def score(self, samples: Iterable[RagSample]) -> list[AnswerScore]:
        """Scores in the order of the samples."""
        return self._scores(evaluate(samples, **self._settings()))

    async def score_async(self, samples: Iterable[RagSample]) -> list[AnswerScore]:
        """The same as a coroutine, for use inside a running event loop."""
        return self._scores(await evaluate_async(samples, **self._settings()))

    def _settings(self) -> dict[str, Any]:
        return {"protocol": self.protocol, "judge": self.judge, "options": self.options, "store": self.store}

    def _scores(self, results: Results) -> list[AnswerScore]:
        if results.bad_rows:
            raise results.bad_rows[0]
        return [self._of(verdict) for verdict in results]

    def _of(self, verdict: Verdict) -> AnswerScore:
        known, metric = get_protocol(self.protocol), self.scored
        value = verdict.scores.get(metric.name)
        description = described(verdict, known, metric.name)
        is_open = value is None and known.is_open(metric.name, verdict)
        share = None if value is None else _share(float(value), metric)
        unjudged = main_reason(verdict) if is_open else ""
        return AnswerScore(self.name, share, description.label, description.explanation, unjudged, verdict)


def _share(value: float, metric: Metric) -> float:
    """0 to 1, where the scale has two ends; frameworks compare scores with one threshold."""
    low, high = metric.bounds
    return (value - low) / (high - low) if high - low < float("inf") else value


def answer_sample(
    question: str | None, answer: str | None, passages: Sequence[str] | None, expected: str | None = None, id: str = "1"
) -> RagSample:
    """A sample from what a framework has at hand."""
    return RagSample(
        id=id,
        question=question or "",
        answer=answer or "",
        references=tuple(passages or ()),
        reference_answer=expected or None,
    )
