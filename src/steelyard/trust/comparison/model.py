"""What a comparison says, as one frozen value."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steelyard.protocols.vocabulary import Direction, Scale
from steelyard.records import Language, Record
from steelyard.stats import Interval

Outcome = Literal["better", "worse", "undecided", "more", "fewer"]
Overall = Literal["better", "worse", "mixed", "undecided", "incomplete"]
"""Incomplete: too many scores of A are missing in B to call B better, or just as good."""


MOST_VANISHED = 0.05
"""B may lack this share of A's scores before that is said first: the rest may well be the easier samples."""


class MetricChange(Record):
    """One score, B against A, over the samples that have it in both."""

    metric: str
    scale: Scale = "number"
    direction: Direction = "up"
    a: float
    b: float
    difference: float
    interval: Interval | None
    p: float | None = Field(description="of the paired test, as it is")
    p_adjusted: float | None = Field(description="Holm's, for the number of metrics")
    test: str = Field(description="exact, random (20,000 swaps), normal (many clusters), none")
    outcome: Outcome
    neutral: bool = Field(description="neither more nor less of it is good in itself")
    n: int
    clusters: int
    n_rose: int
    n_fell: int
    effect: float | None = Field(description="mean difference in units of its standard deviation (paired d)")
    balance: float = Field(description="share that rose minus share that fell")
    n_to_decide: int | None = Field(
        description="samples that would decide a true difference like this one, 4 times in 5"
    )
    n_only_a: int = Field(description="samples of both runs that have the score in A only: null or unjudged in B")
    n_only_b: int

    @property
    def n_of_a(self) -> int:
        """How many samples of both runs have the score in A."""
        return self.n + self.n_only_a


class MissingMetric(Record):
    """A score that no sample has in both runs: there is no difference to tell."""

    metric: str
    neutral: bool
    n_a: int = Field(description="samples of both runs that have the score in A")
    n_b: int


class Change(Record):
    """A sample that rose or fell."""

    id: str
    metric: str
    a: float
    b: float
    why: str


class Comparison(Record):
    """B against A."""

    protocol: str
    language: Language
    scale: Scale
    a: str
    b: str
    n_pairs: int
    n_only_a: int
    n_only_b: int
    n_same: int = Field(description="pairs whose judged text is the same in both runs")
    marks: tuple[tuple[str, str], ...] = Field(description="what makes the runs less comparable: code, detail")
    metrics: tuple[MetricChange, ...]
    missing: tuple[MissingMetric, ...] = Field(default=(), description="scores that no sample has in both runs")
    vanished: tuple[str, ...] = Field(
        default=(), description="metrics of which B lacks more than 5 % of the scores that A has"
    )
    main: str | None = Field(description="the metric that samples are listed by")
    outcome: Overall
    improved: tuple[Change, ...]
    regressed: tuple[Change, ...]
    n_improved: int
    n_regressed: int

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from steelyard.reports.notebook import fragment
        from steelyard.trust.comparison.page import blocks

        return fragment(blocks(self, brief=True))

    def scale_of(self, metric: str | None) -> Scale:
        return next((change.scale for change in self.metrics if change.metric == metric), self.scale)
