"""Queries of a run's sample table, and their results."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import Field

from steelyard.records import Record, Status


class Range(Record):
    """Scores from `low` to `high`, both included; a sample without the score is never in it."""

    low: float | None = None
    high: float | None = None


class SampleQuery(Record):
    """Which samples, in which order. Several values of one filter mean any of them; several filters mean all."""

    search: str = Field(default="", description="stands in the id, question, answer or tags; width and case are alike")
    statuses: tuple[Status, ...] = ()
    flags: tuple[str, ...] = ()
    labels: tuple[str, ...] = Field(default=(), description="kind:label, as the counts of labels name it")
    tags: tuple[str, ...] = ()
    scores: Mapping[str, Range] = Field(default_factory=dict)
    sort: str = Field(default="seq", description="seq, worst, id, status, title, flags, or the name of a score")
    descending: bool = False
    page: int = Field(default=1, ge=1, le=1_000_000)
    per_page: int = Field(default=50, ge=1, le=500)

    @property
    def is_plain(self) -> bool:
        """All samples in the order of the input."""
        filters = (self.search.strip(), self.statuses, self.flags, self.labels, self.tags, self.scores)
        return not any(filters) and self.sort == "seq"


class SampleRow(Record):
    """One sample as a table shows it. `labels` counts its labels by `kind:label`."""

    seq: int
    id: str
    status: Status
    title: str = Field(description="the beginning of the question, of a dialogue's first prompt, or else of the answer")
    answer: str = Field(default="", description="the beginning of the answer; in a dialogue, of the first one")
    scores: Mapping[str, float | None]
    flags: tuple[str, ...]
    tags: tuple[str, ...]
    labels: Mapping[str, int]


class SampleTable(Record):
    """One page of samples; `total` is how many fit the query, `n` how many the run has."""

    rows: tuple[SampleRow, ...]
    total: int
    n: int
    page: int
    per_page: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.total / self.per_page))


class ScoreSummary(Record):
    """A score over all samples: its mean, how many have it, and how they spread from its lowest to its highest."""

    mean: float | None
    n: int
    low: float
    high: float
    bins: tuple[int, ...]


class Summary(Record):
    """What there is to filter by, with how many samples each would leave."""

    n: int = 0
    statuses: Mapping[str, int] = Field(default_factory=dict)
    flags: Mapping[str, int] = Field(default_factory=dict)
    labels: Mapping[str, int] = Field(default_factory=dict)
    tags: Mapping[str, int] = Field(default_factory=dict)
    scores: Mapping[str, ScoreSummary] = Field(default_factory=dict)
