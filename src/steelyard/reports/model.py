"""The report of a run as one frozen value. Renderers add no numbers of their own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Scale, Vocabulary
from steelyard.records import Language, Record, Usage
from steelyard.reports.agreement import summary
from steelyard.reports.families import families
from steelyard.stats import Interval
from steelyard.text.wording import band_description, say, words

WITHIN = "within_tolerance"
UNUSABLE = "unusable"
"""The reason of a run that ended because no ask to its judge could succeed."""
OTHERS = "…"
"""The key under which groups are gathered once there are more of them than a report can hold."""


def named(language: Language, table: str, name: str, default: str | None = None) -> str:
    """A name in the reader's language; what the wording does not know (a user's flag) stands for itself."""
    value: Any = words(language)
    for part in (*table.split("."), name):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else name if default is None else default


class Estimate(Record):
    """A mean or rate with its interval and counts. `value` is null where nothing could be measured, never 0."""

    value: float | None = None
    interval: Interval | None = Field(default=None, description="95 %, null below two clusters")
    n: int = 0
    n_null: int = Field(default=0, description="where it does not apply")
    n_unjudged: int = 0
    clusters: int | None = Field(default=None, description="independent ones of these: samples of one question are one")


class Group(Record):
    """The samples that share a tag or flag, with the means of their scores."""

    n: int
    scores: dict[str, Estimate]


class AtomGroup(Record):
    """Atoms pooled over all samples: how many carry each label, and the ratios of those counts."""

    counts: dict[str, int]
    accuracy: Estimate
    accuracy_strict: Estimate
    coverage: Estimate


class AtomSummary(Record):
    overall: AtomGroup
    levels: dict[str, AtomGroup]


class CheckRate(Record):
    """How often one of the checks of `grounded` was passed."""

    group: str
    name: str
    passed: Estimate


class Outcome(Record):
    """How many samples have one of the labels that say what became of a sample."""

    label: str
    n: int
    share: Estimate = Field(description="of the samples that have such a label")


class Contestant(Record):
    """One of those whose answers are compared with each other: two models, or several runs."""

    name: str
    win_rate: Estimate = Field(description="the share of points it won, a tie counting half")
    strength: Estimate = Field(
        description="Bradley and Terry's, as a logarithm with mean 0; null where one never lost to, or met, the others"
    )


class BandCount(Record):
    """How many samples scored in one band of a scorecard metric."""

    band: int
    scores: tuple[int, int]
    n: int
    description: str


class Bin(Record):
    """How many samples scored from `low` up to `high`; the last one includes its upper end."""

    low: float
    high: float
    n: int


class Spread(Record):
    """How an amount per sample spreads: quantiles within some 2 %, and counts between round amounts."""

    n: int
    mean: float
    median: float
    p95: float
    most: float
    bins: tuple[Bin, ...]


class RunFacts(Record):
    """Which run of the store this is, and when it was at work."""

    id: str
    state: str
    started: str
    finished: str | None = None
    seconds: float | None = Field(default=None, description="from the start to the end, null while it runs")

    @classmethod
    def of(cls, id: str, state: str, started: str, finished: str | None) -> Self:
        """The facts of a run whose moments are written as ISO 8601."""
        took = None
        if finished:
            took = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
        return cls(id=id, state=state, started=started, finished=finished, seconds=took)


class TurnSummary(Record):
    csr: Estimate
    isr: Estimate


class DialogueSummary(Record):
    """Rates pooled over all criteria and turns; a dialogue is one cluster."""

    csr: Estimate
    isr: Estimate
    ssr: Estimate
    by_type: dict[str, Estimate]
    by_turn: dict[str, TurnSummary]
    by_rule: Estimate
    n_undetermined: int
    n_vacuous: int


class TellingItem(Record):
    """The item that says most about why a sample scored low."""

    kind: str
    label: str
    text: str
    reason: str
    more: int = Field(description="how many further items of the sample are as bad")


class LowSample(Record):
    """One of the samples with the lowest main score."""

    id: str
    metric: str = Field(description="the score that ranks it: of several main ones, its weakest")
    main_score: float
    scores: dict[str, float | int | None]
    flags: tuple[str, ...]
    telling: TellingItem | None
    why: str


class BadRow(Record):
    """A row of the input that could not be read."""

    file: str | None
    line: int | None
    field: str | None
    problem: str


class Votes(Record):
    """How far several judges, or repeats of one, agreed on items of one kind: their (self-)consistency."""

    n: int
    mean: float = Field(description="mean share of the votes that the label got")
    unanimous: int
    split: int = Field(description="left open")


class SecondOpinions(Record):
    """How often a second judge gave a label that the first was sure of the same way, in a sample of them."""

    n: int
    agreed: int
    interval: Interval | None = Field(default=None, description="95 %, of the share that agrees")


class SavedCalls(Record):
    """What a routed judge did not have to ask of one of its judges. Tokens and cost are estimated from the calls that
    were made, which hold fewer items, so it saved at least as much; null where none was made or no price is known."""

    judge: str
    asks: int = Field(description="asks about items, of which the first judge answered all")
    asked: int = Field(description="of these, those that were passed on, if only in part")
    calls: int = Field(description="calls that were not needed")
    tokens: int | None = None
    cost: float | None = None


class Routing(Record):
    """Who decided what in a run of a routed judge."""

    decided: dict[str, dict[str, int]] = Field(description="kind of item → judge → how many labels")
    second_opinions: dict[str, SecondOpinions]
    saved: tuple[SavedCalls, ...] = ()


class RunFailure(Record):
    """Why a run failed: the most frequent reason, on how many of its samples, and what to do about it."""

    reason: str = Field(description="a code, as for unjudged items; unusable: the judge as a whole was")
    n: int = Field(default=0, description="samples that it kept from being judged; 0 where that was not counted")
    of: int = Field(default=0, description="samples of the run")
    detail: str = Field(default="", description="the endpoint's own words, of the first such call")
    remedy: str = ""

    def sentences(self, language: Language) -> tuple[str, str, str]:
        """What happened, why, and what to do, a sentence each."""
        reason = named(language, "unjudged", self.reason)
        if self.reason == UNUSABLE:
            why = say(language, "failure.unusable").format(detail=self.detail)
        else:
            samples = say(language, "failure.samples").format(n=f"{self.n:,}", of=f"{self.of:,}")
            about = [part for part in (samples if self.n else "", self.detail) if part]
            why = say(language, "failure.reason").format(reason=reason)
            why += bracketed(language, say(language, "report.comma").join(about)) if about else ""
            why += say(language, "failure.stop")
        return say(language, "failure.title"), why, remedy(self.reason, language)


class Report(Record):
    """Everything that is said about a run."""

    protocol: str
    language: Language
    scale: Scale
    judges: dict[str, int]
    agreement: dict[str, str] = Field(
        default_factory=dict, description="how far each judge was found to agree with people; measured ones only"
    )
    n: int
    statuses: dict[str, int]
    scores: dict[str, Estimate]
    distributions: dict[str, tuple[Bin, ...]] = Field(description="of scores with a scale; a yes or no has two bins")
    labels: dict[str, dict[str, int]]
    atoms: AtomSummary | None
    checks: tuple[CheckRate, ...]
    outcomes: tuple[Outcome, ...] = Field(default=(), description="empty where the protocol declares none")
    bands: dict[str, tuple[BandCount, ...]]
    dialogue: DialogueSummary | None
    ranking: tuple[Contestant, ...] = Field(default=(), description="the best first; where answers are compared")
    tags: dict[str, Group]
    flags: dict[str, Group]
    unjudged: dict[str, int]
    within_tolerance: int = Field(default=0, description="statements that only the tolerance makes correct")
    votes: dict[str, Votes] = Field(default_factory=dict, description="empty where one judge alone was asked once")
    routing: Routing | None = Field(default=None, description="only where a routed judge labelled")
    worst: tuple[LowSample, ...]
    n_bad_rows: int
    bad_rows: tuple[BadRow, ...]
    usage: Usage
    spending: dict[str, Spread] = Field(
        default_factory=dict,
        description="per sample that the judge was called for: seconds, tokens, cost in US dollars",
    )
    run: RunFacts | None = None
    failure: RunFailure | None = Field(default=None, description="where the judge labelled nothing: why, what to do")
    manifest: dict[str, Any] | None

    @property
    def words(self) -> Vocabulary:
        """What its protocol calls things."""
        return vocabulary(self.protocol)

    def scale_of(self, metric: str) -> Scale:
        """The scale of the mean of a score; a protocol that is not installed has one for all."""
        declared = {one.name for one in self.words.metrics}
        known = metric in declared or metric.partition(".")[0] in declared
        return self.words.metric(metric).mean_scale if known else self.scale


def agreement_note(judge: str, language: Language) -> str:
    """How far this judge was found to agree with people, in a sentence; nothing for one that was not measured."""
    found = summary(judge)
    if not found:
        return ""
    gap = " " if language == "en" else ""
    small = gap + say(language, "agreement.small") if judge.partition(":")[0] in ("embedded", "local") else ""
    return found.fill(say(language, "agreement.measured")) + small


def agreement_notes(judges: Iterable[str], language: Language) -> dict[str, str]:
    """The same for several, by name; those that were not measured are left out."""
    return {judge: note for judge in judges if (note := agreement_note(judge, language))}


def self_judged_note(report: Report) -> str:
    """That the judge is of the family it judged, in a sentence; nothing where it is not."""
    own = report.flags.get("self_judged")
    if own is None:
        return ""
    kinds = sorted({family for judge in report.judges for family in families(judge)})
    families_text = say(report.language, "report.comma").join(kinds)
    return say(report.language, "report.self_judged").format(n=own.n, all=report.n, families=families_text)


def tolerance_note(report: Report) -> str:
    """How many statements are correct only by the tolerance, in a sentence; nothing where none is."""
    if not report.within_tolerance:
        return ""
    aspect = next((kind.leading for kind in report.words.kinds if WITHIN in kind.flagged), None)
    good = (label.name for label in aspect.labels if label.tone == "good") if aspect else ()
    correct = sum(report.labels.get(aspect.name, {}).get(name, 0) for name in good) if aspect else 0
    return say(report.language, "report.within_tolerance").format(n=report.within_tolerance, all=correct)


def votes_notes(report: Report) -> list[str]:
    """How far several judges, or repeats of one, agreed: a sentence for each kind of item."""
    return [
        say(report.language, "report.votes").format(
            kind=report.words.kind_words(kind, report.language),
            mean=f"{100 * votes.mean:.1f}%",
            unanimous=f"{100 * votes.unanimous / votes.n:.1f}%",
            n=votes.n,
            split=votes.split,
        )
        for kind, votes in report.votes.items()
    ]


def routing_notes(report: Report) -> list[str]:
    """Who decided what, how far the judges agree where both were asked, and what was saved: a sentence each."""
    if report.routing is None:
        return []
    language, comma = report.language, say(report.language, "report.comma")

    def phrase(key: str, **values: object) -> str:
        return say(language, f"report.{key}").format(**values)

    lines = []
    for kind, judges in report.routing.decided.items():
        total = sum(judges.values())
        parts = (phrase("decided_part", n=n, judge=judge, share=_percent(n, total)) for judge, n in judges.items())
        lines.append(phrase("decided", kind=report.words.kind_words(kind, language), parts=comma.join(parts)))
    for kind, found in report.routing.second_opinions.items():
        ends = ""
        if found.interval:
            mark = ", " if language == "en" else "，"
            low, high = (100 * end for end in found.interval)
            ends = f"{mark}{say(language, 'report.interval')} {low:.1f}–{high:.1f}%"
        lines.append(
            phrase(
                "second_opinion",
                kind=report.words.kind_words(kind, language),
                n=found.n,
                agreed=found.agreed,
                share=_percent(found.agreed, found.n),
                interval=ends,
            )
        )
    for saved in report.routing.saved:
        share = _percent(saved.asked, saved.asks)
        lines.append(phrase("passed_on", asked=saved.asked, all=saved.asks, judge=saved.judge, share=share))
        key = "saved" if saved.tokens is None else "saved_tokens" if saved.cost is None else "saved_cost"
        tokens, cost = f"{saved.tokens or 0:,}", f"{saved.cost or 0:.4f}"
        lines.append(phrase(key, calls=saved.calls, judge=saved.judge, tokens=tokens, cost=cost))
    return lines


def _percent(n: int, total: int) -> str:
    return f"{100 * n / total:.1f}%" if total else "–"


def remedy(reason: str, language: Language) -> str:
    """What to do about a run that failed for this reason."""
    return named(language, "failure.remedy", reason, say(language, "failure.remedy.unknown"))


def check_words(report: Report, check: CheckRate) -> str:
    """What a named item is called."""
    names = (report.words.name_words(kind.name, check.name, report.language) for kind in report.words.kinds)
    return next(filter(None, names), check.name)


def is_broken_down(report: Report, aspect: str) -> bool:
    """Whether the tables of levels or of named items tell the labels of an aspect already."""
    kind = report.words.kind_with(aspect)
    return bool(kind and (report.checks if kind.identity == "name" else report.atoms))


def reason_in(language: Language, reason: str) -> str:
    """A reason as people read it: codes are translated, a judge's own words stay as they are."""
    return named(language, "unjudged", reason, named(language, "flag", reason, reason))


def bracketed(language: Language, text: str) -> str:
    return say(language, "report.open") + text + say(language, "report.close")


def why(telling: TellingItem | None, flags: tuple[str, ...], language: Language, words: Vocabulary) -> str:
    """One line on why a sample scored low."""
    if telling is None:
        return named(language, "flag", flags[0]) if flags else ""
    label = words.label_words(telling.kind, telling.label, language)
    kind = words.kind_with(telling.kind)
    text = words.name_words(kind.name, telling.text, language) if kind else ""
    line = label + say(language, "report.colon") + (text or telling.text)
    if telling.reason:
        line += bracketed(language, reason_in(language, telling.reason))
    if telling.more:
        line += say(language, "report.why_more").format(n=telling.more)
    return line


def described(metric: str, band: int, n: int, language: Language) -> BandCount:
    scores = (10 * band, 100 if band == 9 else 10 * band + 9)
    return BandCount(band=band, scores=scores, n=n, description=band_description(metric, band, language))


def in_language(report: Report, language: Language | None) -> Report:
    """The same report for a reader of another language. Judged text and judges' reasons stay as they were."""
    if language is None or language == report.language:
        return report
    bands = {
        metric: tuple(described(metric, line.band, line.n, language) for line in lines)
        for metric, lines in report.bands.items()
    }
    worst = tuple(
        low.model_copy(update={"why": why(low.telling, low.flags, language, report.words)}) for low in report.worst
    )
    changed: dict[str, Any] = {"language": language, "bands": bands, "worst": worst}
    changed["agreement"] = agreement_notes(report.judges, language)
    if report.failure:
        changed["failure"] = report.failure.model_copy(update={"remedy": remedy(report.failure.reason, language)})
    return report.model_copy(update=changed)
