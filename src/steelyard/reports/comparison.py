"""A comparison as one frozen value, and its page: better, worse or undecided in one sentence, then the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Direction, Scale
from steelyard.records import Language, Record
from steelyard.reports.blocks import (
    NOT_APPLICABLE,
    Block,
    Heading,
    Lines,
    Table,
    Tone,
    TonedText,
    minus,
    one_line,
    score,
)
from steelyard.reports.blocks import number as plain_number
from steelyard.reports.model import bracketed
from steelyard.stats import Interval
from steelyard.text.wording import say

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

        return fragment(blocks(self, brief=True))

    def scale_of(self, metric: str | None) -> Scale:
        return next((change.scale for change in self.metrics if change.metric == metric), self.scale)


# --- the page ---------------------------------------------------------------------------------------

LONGEST_WHY = 200
BRIEF_LISTED = 10
TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "undecided": "open"}


def blocks(found: Comparison, *, brief: bool = False) -> Iterator[Block]:
    """The page, for a terminal (`brief`) or as Markdown."""
    return (block for block in ComparisonPage(found, brief).blocks() if block != Lines((), listed=True))


def signed(value: float, scale: Scale) -> str:
    """A difference: +3.2, in percentage points where scores are percentages."""
    if scale == "number":
        return minus(f"{value:+.4g}")
    shown = f"{value * 100 if scale == 'ratio' else value:+.1f}"
    # A difference that is there must not be shown as none.
    return minus(("+<0.1" if value > 0 else "-<0.1") if value and shown in ("+0.0", "-0.0") else shown)


def ends(interval: Interval | None, scale: Scale) -> str:
    return NOT_APPLICABLE if interval is None else f"{signed(interval[0], scale)} … {signed(interval[1], scale)}"


class ComparisonPage:
    """The texts of a comparison in its language, shared by all output formats."""

    def __init__(self, found: Comparison, brief: bool = False) -> None:
        self.most = BRIEF_LISTED if brief else len(found.improved) + len(found.regressed)
        self.found, self.language, self.vocab = found, found.language, vocabulary(found.protocol)

    def say(self, key: str, **values: object) -> str:
        return say(self.language, f"compare.{key}").format(**values)

    def report(self, key: str) -> str:
        return say(self.language, f"report.{key}")

    def metric(self, name: str) -> str:
        return self.vocab.metric_words(name, self.language)

    def within(self, change: MetricChange) -> str:
        """The interval in brackets."""
        return bracketed(self.language, ends(change.interval, change.scale)) if change.interval else ""

    def _between(self, change: MetricChange) -> str:
        """How much it rose or fell at least and at most, in brackets: the verb says which, so there is no plus."""
        if change.interval is None:
            return ""
        sizes = sorted(-end if change.difference < 0 else end for end in change.interval)
        least, most = (signed(size, change.scale).lstrip("+") for size in sizes)
        return bracketed(self.language, self.say("between", least=least, most=most))

    @property
    def has_shares(self) -> bool:
        return any(change.scale == "ratio" for change in self.found.metrics)

    def unit(self, change: MetricChange) -> str:
        """Percentages differ by points; that must not be read as per cent of per cent."""
        return self.say("pp") if change.scale == "ratio" else ""

    def blocks(self) -> Iterator[Block]:
        yield Heading(f"{self.say('title')} · {self.vocab.title_words(self.language)}", 1)
        yield Lines((self.sentence(),))
        yield Lines(tuple(self.to_decide()), listed=True)
        yield Lines((*self.marks(), *self.unchanged()), listed=True)
        yield Lines(tuple(self._facts()))
        yield from self._metrics()
        yield from self._effects()
        yield from self._samples("regressed", self.found.regressed, self.found.n_regressed)
        yield from self._samples("improved", self.found.improved, self.found.n_improved)

    def sentence(self) -> str:
        """The one sentence that most people will read."""
        lead = self._vanished()
        if not self.found.metrics:
            return lead + self.say("nothing_measured")
        if self.is_equal:
            return self.say("equal", n=f"{sum(change.n for change in self.found.metrics):,}")
        decided = [change for change in self.found.metrics if change.outcome in ("better", "worse")]
        moves = self.report("comma").join(self._moved(change) for change in decided)
        if moves:
            moves = (self.say("in_the_rest") if self.found.outcome == "incomplete" else self.report("colon")) + moves
        return lead + self.say(self.found.outcome) + moves + self._stop

    @property
    def is_equal(self) -> bool:
        """Whether every score that one run has is the same in the other."""
        found = self.found
        moved = any(change.n_rose or change.n_fell or change.n_only_a or change.n_only_b for change in found.metrics)
        return bool(found.metrics) and not moved and not any(gap.n_a or gap.n_b for gap in found.missing)

    @property
    def _stop(self) -> str:
        return "." if self.language == "en" else "。"

    def _vanished(self) -> str:
        """Which scores B lacks, before anything is said about the rest."""
        lost = {change.metric: (change.n_only_a, change.n_of_a) for change in self.found.metrics}
        lost |= {gap.metric: (gap.n_a, gap.n_a) for gap in self.found.missing}
        missing = [
            self.say("vanished_one", metric=self.metric(name), n=f"{lost[name][0]:,}", of=f"{lost[name][1]:,}")
            for name in self.found.vanished
        ]
        if not missing:
            return ""
        space = " " if self.language == "en" else ""
        return self.say("vanished") + self.report("colon") + self.report("comma").join(missing) + self._stop + space

    def decision(self, change: MetricChange) -> str:
        is_same = not (change.n_rose or change.n_fell)
        return self.say("outcome_equal" if is_same else f"outcome_{change.outcome}")

    def _moved(self, change: MetricChange) -> str:
        fell = change.difference < 0
        by = signed(abs(change.difference), change.scale).lstrip("+") + self.unit(change)
        values = {"metric": self.metric(change.metric), "by": by, "interval": self._between(change)}
        return self.say("fell" if fell else "rose", **values, n=f"{change.n:,}")

    def to_decide(self) -> Iterator[str]:
        moved = [change for change in self.found.metrics if change.n_rose or change.n_fell]
        shown = moved or [change for change in self.found.metrics if change.metric == self.found.main]
        shown = [] if self.is_equal else shown
        for change in shown:
            if change.outcome != "undecided":
                continue
            if change.n_to_decide is None:
                yield self.say("nothing_to_decide", metric=self.metric(change.metric))
                continue
            by = signed(change.difference, change.scale) + self.unit(change)
            # Never fewer than there are: those did not decide it.
            n = f"{max(change.n_to_decide, change.n + 1):,}"
            values = {"metric": self.metric(change.metric), "by": by, "interval": self.within(change)}
            yield self.say("to_decide", **values, n=n, now=f"{change.n:,}")

    def marks(self) -> Iterator[str]:
        for code, detail in self.found.marks:
            mark = self.say(f"mark.{code}") + self.report("colon") + one_line(detail, LONGEST_WHY)
            mark += self.say("as_shares") if code == "scale" else ""
            yield self.say("beware") + self.report("colon") + mark

    def unchanged(self) -> Iterator[str]:
        if self.found.n_same == self.found.n_pairs:
            yield self.say("unchanged")

    def _facts(self) -> Iterator[str]:
        found, colon = self.found, self.report("colon")
        yield self.say("a") + colon + one_line(found.a, 80)
        yield self.say("b") + colon + one_line(found.b, 80)
        alone = f"{self.say('only')} {found.n_only_a} / {found.n_only_b}"
        yield self.say("pairs") + colon + str(found.n_pairs) + bracketed(self.language, alone)

    def _metrics(self) -> Iterator[Block]:
        yield Heading(self.say("metrics"))
        columns = (self.report("score"), "n", self.say("a"), self.say("b"), self.say("difference"))
        yield Table(
            (*columns, self.report("interval"), self.say("p"), self.say("decision")),
            "lrrrrrrl",
            tuple(
                (
                    self.metric(change.metric),
                    n_text(change.n, change.n_only_a, change.n_only_b),
                    plain_number(change.a, change.scale),
                    plain_number(change.b, change.scale),
                    signed(change.difference, change.scale),
                    ends(change.interval, change.scale),
                    p_text(change.p_adjusted),
                    TonedText(self.decision(change), TONES.get(change.outcome, "plain")),
                )
                for change in self.found.metrics
            )
            + tuple(
                (self.metric(gap.metric), n_text(0, gap.n_a, gap.n_b))
                + (NOT_APPLICABLE,) * 5
                + (TonedText(self.say("outcome_missing"), "bad"),)
                for gap in self.found.missing
                if gap.n_a or gap.n_b
            ),
        )
        is_lost = any(change.n_only_a or change.n_only_b for change in self.found.metrics)
        is_lost = is_lost or any(gap.n_a or gap.n_b for gap in self.found.missing)
        notes = ("note_p", "note_interval", *(("note_pp",) if self.has_shares else ()))
        notes = (*(("note_lost",) if is_lost else ()), *notes)
        yield Lines(tuple(map(self.say, notes)))

    def _effects(self) -> Iterator[Block]:
        yield Heading(self.say("effects"))
        yield Table(
            (
                self.report("score"),
                self.say("n_rose"),
                self.say("n_fell"),
                self.say("n_same"),
                self.say("effect"),
                self.say("lost"),
            ),
            "lrrrrr",
            tuple(
                (
                    self.metric(change.metric),
                    str(change.n_rose),
                    str(change.n_fell),
                    str(change.n - change.n_rose - change.n_fell),
                    NOT_APPLICABLE if change.effect is None else minus(f"{change.effect:+.2f}"),
                    f"{change.n_only_a:,} / {change.n_only_b:,}",
                )
                for change in self.found.metrics
            ),
        )
        yield Lines((self.say("note_effect"),))

    def _samples(self, heading: str, changes: Sequence[Change], n: int) -> Iterator[Block]:
        if not changes or self.found.main is None:
            return
        yield Heading(f"{self.say(heading)} ({n}){self.report('colon')}{self.metric(self.found.main)}")
        yield Table(
            (self.report("id"), self.say("a"), self.say("b"), self.report("why")),
            "lrrl",
            tuple(
                (
                    one_line(change.id, 60),
                    score(change.a, self.found.scale_of(change.metric)),
                    score(change.b, self.found.scale_of(change.metric)),
                    one_line(change.why, LONGEST_WHY) or NOT_APPLICABLE,
                )
                for change in changes[: self.most]
            ),
        )
        if (left := n - len(changes[: self.most])) > 0:
            yield Lines((f"… +{left}",))


def n_text(n: int, only_a: int, only_b: int) -> str:
    """How many samples have a score in both runs; in brackets those that have it in A only and in B only."""
    return f"{n:,} ({only_a:,}/{only_b:,})" if only_a or only_b else f"{n:,}"


def p_text(p: float | None) -> str:
    if p is None:
        return NOT_APPLICABLE
    return "<0.001" if p < 0.001 else f"{p:.3f}"
