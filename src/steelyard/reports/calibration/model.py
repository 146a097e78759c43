"""The result of a calibration, as one frozen value."""

from __future__ import annotations

from pydantic import Field

from steelyard.protocols.vocabulary import Scale
from steelyard.records import ConfidenceKind, Language, Record
from steelyard.stats import Interval

# Fewer labels of one kind say nothing about where it is right in 95 of 100 cases.
LEAST_LABELS = 20


class Figure(Record):
    """A number with its 95 % interval; null where the labels do not define it."""

    value: float | None
    interval: Interval | None
    clusters: int = Field(description="how many independent samples or questions bear on it")


class LabelFigures(Record):
    """One label: how often each side gave it, and how far that of the judge can be relied on."""

    label: str
    n_judge: int
    n_people: int
    precision: Figure
    recall: Figure
    f1: Figure


class Pairing(Record):
    """One against one, pooled over all pairs: a judge with each person, or people with each other."""

    n: int
    raw: Figure
    kappa: Figure


class SecondLook(Record):
    """A label that was given at first and not always confirmed: what that did to its precision and recall."""

    label: str
    n_changed: int
    precision: tuple[Figure, Figure] = Field(description="before and after")
    precision_change: Figure
    recall: tuple[Figure, Figure]
    recall_change: Figure


class Task(Record):
    """Judge and people on one kind of label. Where several people labelled an item, their majority counts."""

    task: str
    n: int
    n_samples: int
    n_split: int = Field(description="items on which people were evenly split; who labelled most decided")
    n_unjudged: int = Field(description="items that people labelled and the judge did not")
    labels: tuple[str, ...]
    confusion: dict[str, dict[str, int]] = Field(description="label of the judge → of people → how often")
    raw: Figure
    kappa: Figure
    balanced_accuracy: Figure
    alpha: Figure = Field(description="Krippendorff's α of the judge and all people together")
    by_label: tuple[LabelFigures, ...]
    second_look: tuple[SecondLook, ...] = Field(
        default=(), description="empty where no label was changed by a second look"
    )
    judge_person: Pairing | None = Field(description="null where one person labelled: then it is the same as above")
    person_person: Pairing | None = Field(description="the ceiling; null without items that two people labelled")
    alpha_people: Figure | None
    gap: Figure | None = Field(
        description="where two people labelled: how much oftener a person agrees with the judge than with the other"
    )


class DisputedItem(Record):
    """An item on which judge and people differ."""

    sample: str
    turn: int | None
    item: int | None
    text: str
    reason: str = Field(description="the judge's")
    people: dict[str, str] = Field(description="annotator → label")


class Dispute(Record):
    """A pair of differing labels: the judge's and people's."""

    task: str
    judge: str
    people: str
    n: int
    items: tuple[DisputedItem, ...]


class AgreementGroup(Record):
    """The samples that share a tag."""

    tag: str
    n: int
    raw: Figure


class CorrectedScore(Record):
    """A score by the judge over the whole run, and as people would have found it."""

    metric: str
    judge: float | None
    judge_interval: Interval | None
    value: float | None
    interval: Interval | None
    people: float | None = Field(description="by people's labels alone, over the samples they labelled")
    trust: float | None = Field(description="weight of the judge's word, 0 to 1")
    n_labelled: int = Field(description="samples whose every item that the score needs was labelled")
    n: int = Field(description="samples of the run")
    n_needed: int | None = Field(default=None, description="labelled samples in all for the wanted width")


class CorrectedRate(Record):
    """How often a label occurs in the run: by the judge, and as people would have given it."""

    task: str
    label: str
    judge: float
    value: float
    interval: Interval | None
    n_labelled: int
    n: int


class ConfidenceBin(Record):
    """The labels that a judge gave with a confidence from `low` up to `high`; the last one includes its upper end."""

    low: float
    high: float
    n: int
    confidence: float = Field(description="mean confidence")
    right: float = Field(description="share that people gave the same label")
    interval: Interval | None = Field(description="95 %, of the share")


class ConfidenceThreshold(Record):
    """From which confidence on a label is right in the wanted share of cases; null where it never is, or where people
    labelled too few of them to tell. Chosen and measured on the same labels."""

    label: str
    least: float | None
    n: int = Field(description="labels at or above it")
    of: int = Field(description="labels of this kind that people labelled too")
    precision: float | None
    interval: Interval | None


class Reliability(Record):
    """How sure a judge was and how often it was right, on one kind of label."""

    judge: str
    task: str
    source: ConfidenceKind
    n: int
    confidence: float = Field(description="mean confidence")
    right: float = Field(description="share that people gave the same label")
    error: float = Field(description="expected calibration error: mean distance of the two over the bins")
    bins: tuple[ConfidenceBin, ...] = Field(description="ten of equal width; empty ones are left out")
    sure_from: tuple[ConfidenceThreshold, ...]


class Unmatched(Record):
    """A label that fits nothing in the run, and why."""

    reason: str
    sample: str
    kind: str
    item: int | None


class Calibration(Record):
    """A judge compared with people."""

    protocol: str
    language: Language
    scale: Scale
    judges: tuple[str, ...]
    policy: str
    annotators: dict[str, int]
    n_labels: int
    n_used: int
    unmatched: dict[str, int]
    unmatched_examples: tuple[Unmatched, ...]
    tasks: tuple[Task, ...]
    disputes: tuple[Dispute, ...]
    groups: tuple[AgreementGroup, ...]
    votes: tuple[AgreementGroup, ...] = Field(default=(), description="items on which a panel was unanimous or divided")
    reliability: tuple[Reliability, ...] = Field(default=(), description="empty where no label has a confidence")
    precision: float = Field(default=0.95, description="the wanted share of right labels, for thresholds")
    scores: tuple[CorrectedScore, ...]
    rates: tuple[CorrectedRate, ...]
    width: float = Field(description="the wanted width of an interval")
    weighted: bool = Field(description="labels of a stratified draw")
    skewed: bool = Field(description="the judge scores labelled samples otherwise than the rest: picked, not drawn?")
