"""The core types: samples, asks and replies, labelled items, verdicts. Frozen values without dependencies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

Language = Literal["zh-Hans", "zh-Hant", "en"]
Status = Literal["judged", "partial", "failed"]
Scores = Mapping[str, float | int | None]


def is_none(value: object) -> bool:
    return value is None


class Record(BaseModel):
    """Base of every value that is passed around: immutable, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- samples ---------------------------------------------------------------------------------------


def _is_empty(value: Mapping[str, object] | str) -> bool:
    return not value


SampleSource = Annotated[
    Mapping[str, str],
    Field(exclude_if=_is_empty, description="the tool it was imported from, and the ids it has there"),
]


class RagSample(Record):
    """A question, what was retrieved for it, and the answer to weigh; where two are compared, also the other answer."""

    id: str
    question: str = Field(default="", description="blank where there is none: a summary, a translation, a report")
    answer: str
    references: tuple[str, ...] = ()
    reference_answer: str | None = None
    key_points: tuple[str, ...] | None = None
    date: str | None = None
    place: str | None = None
    tags: tuple[str, ...] = ()
    model: str | None = Field(default=None, description="what produced the answer, where known")
    source: SampleSource = Field(default_factory=dict)
    other_answer: str | None = Field(default=None, exclude_if=is_none, description="the answer it is compared with")
    other_model: str | None = Field(default=None, exclude_if=is_none, description="what produced that one")
    answer_of: tuple[str, str] | None = Field(
        default=None, exclude_if=is_none, description="whose the two answers are, where that is not a model: two runs"
    )

    @property
    def contestants(self) -> tuple[str, str] | None:
        """Whose answers are compared; None where that is not known, or both are the same one's."""
        names = self.answer_of or (self.model or "", self.other_model or "")
        return names if all(names) and names[0] != names[1] else None


class Turn(Record):
    """One exchange of a dialogue with the criteria its answer must meet."""

    prompt: str
    answer: str
    criteria: tuple[str, ...] = ()


class DialogueSample(Record):
    """A system prompt and the turns that should have kept to it."""

    id: str
    system_prompt: str
    turns: tuple[Turn, ...] = ()
    tags: tuple[str, ...] = ()
    model: str | None = None
    source: SampleSource = Field(default_factory=dict)


Sample = RagSample | DialogueSample


# --- tolerance -------------------------------------------------------------------------------------


QUANTITY_POLICY = r"^(statistics|exact|magnitude|[0-9]{1,3}(\.[0-9]{1,6})?%)$"


class Tolerance(Record):
    """How far a claimed value may be from the stated one and still count as right.

    `quantities`: `statistics`, `exact`, `magnitude` or `N%`. `dates`: `seed` (political ones exact, of others the
    year), `exact` or `year`.
    """

    quantities: str = Field(
        default="statistics",
        description="statistics, exact, magnitude or N%, for example 5%",
        json_schema_extra={"pattern": QUANTITY_POLICY},
    )
    dates: Literal["seed", "exact", "year"] = "seed"

    @field_validator("quantities")
    @classmethod
    def _known_policy(cls, policy: str) -> str:
        policy = policy.strip().replace("％", "%").replace(" %", "%")
        if not re.fullmatch(QUANTITY_POLICY, policy):
            raise ValueError(f"must be statistics, exact, magnitude or a percentage such as 5%, not {policy!r}")
        return policy


class ValueDifference(Record):
    """The two values where answer and passage give the same fact differently, and what kind of value it is."""

    kind: Literal["statistic", "specification", "date", "political_date"]
    claimed: str
    stated: str


# --- asks and replies ------------------------------------------------------------------------------


class Numbered(Record):
    """One item that wants a label; the judge answers by its id."""

    id: int
    text: str


class Data(Record):
    """What an ask is about. Each field of type tuple[Numbered, ...] holds items the reply must label,
    in a list field of the same name."""

    def items(self) -> dict[str, tuple[Numbered, ...]]:
        """The fields that hold items, with their items."""
        return {name: items for name in item_fields(type(self)) if (items := getattr(self, name))}

    @property
    def quotable(self) -> tuple[str, ...]:
        """The texts that quotes are taken from: the passages, or the system prompt."""
        return tuple(getattr(self, "references", ())) or (getattr(self, "system_prompt", ""),)

    def only(self, wanted: Mapping[str, tuple[int, ...]]) -> Self:
        """The same data with just these items; the context stays."""
        return self.model_copy(
            update={name: _picked(items, frozenset(wanted.get(name, ()))) for name, items in self.items().items()}
        )


def _picked(items: tuple[Numbered, ...], ids: frozenset[int]) -> tuple[Numbered, ...]:
    """The items with these ids, in their order."""
    # Mostly they are numbered from 1, and then a part of many need not be searched for among all.
    if all(0 < id <= len(items) and items[id - 1].id == id for id in ids):
        return tuple(items[id - 1] for id in sorted(ids))
    return tuple(item for item in items if item.id in ids)


@cache
def item_fields(data: type[Data]) -> tuple[str, ...]:
    """The fields that hold items to label."""
    return tuple(name for name, field in data.model_fields.items() if field.annotation == tuple[Numbered, ...])


class ReplyData(BaseModel):
    """Base of what a judge sends back. Unknown keys are ignored: small models like to add some.

    What stands here for the label of one item tells judges that ask several, or twice, what its fields mean.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    leads: ClassVar[str] = "label"
    """The field that reason and quote speak for."""
    aspects: ClassVar[Mapping[str, str]] = {}
    """Field → the name that the vocabulary of the protocol has for this label."""
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Field → what speaks against the answer, as `counted` gives it."""
    ruled: ClassVar[Mapping[str, str]] = {}
    """What a tolerance says of two values → the label that counts then."""
    spelled: ClassVar[Mapping[str, Mapping[Any, str]]] = {}
    """Field → the words of verdicts for a yes or no."""
    is_named: ClassVar[bool] = False
    """Whether the items are a fixed set, told apart by their text."""

    def counted(self, field: str) -> Any:
        """What the label counts as."""
        return getattr(self, field)

    def against(self, field: str) -> tuple[Any, ...]:
        """What would speak against the answer in this field."""
        return self.amiss.get(field, ())


class TextReply(ReplyData):
    """A reply in the judge's own words: no shape is asked for, and whoever asked reads it."""

    text: str


class Again(Record):
    """What a previous reply lacked, told to the judge when it is asked once more about just that."""

    missing: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


class Ask(Record):
    """One question to a judge: which task, about what, and the shape of the reply.

    `again` and `verify` are part of the key, so a second try is never answered by the record of the first.
    `tolerance` is not: no judge is told of it, but whoever counts the votes of several must count as the protocol does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    task: str
    language: Literal["zh", "en"]
    data: Data
    reply: type[ReplyData]
    again: Again | None = None
    verify: tuple[str, ...] = Field(default=(), description="what an earlier reply found amiss, to be looked at afresh")
    tolerance: Tolerance = Tolerance()

    @cached_property
    def key(self) -> str:
        """Content address of the ask: the same ask has the same key on every machine."""
        digest = hashlib.sha256()
        again = self.again.model_dump_json() if self.again else ""
        for part in (self.task, self.language, self.data.model_dump_json(), again):
            digest.update(part.encode())
            digest.update(b"\x00")
        # Only where there is something to verify: the keys of all other asks are in recordings already.
        for finding in self.verify:
            digest.update(finding.encode())
            digest.update(b"\x00")
        return digest.hexdigest()[:32]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Another ask has another key: pydantic copies what was computed with the fields."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("key", None)
        return copied


class Usage(Record):
    """Calls, tokens and cost. `cost` is in US dollars, null if no price is known."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    @property
    def is_nothing(self) -> bool:
        return not (self.calls or self.prompt_tokens or self.completion_tokens or self.cached_tokens or self.cost)

    def __add__(self, other: Usage) -> Usage:
        # Most sums begin or end with nothing, and a new record costs more than looking.
        if not other.calls and other.is_nothing:
            return self
        if not self.calls and self.is_nothing:
            return other
        known = self.cost is not None or other.cost is not None
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=(self.cost or 0) + (other.cost or 0) if known else None,
        )


class SecondOpinion(Record):
    """A second judge's label where the first was confident. It is only reported; the first one's label stands."""

    judge: str
    label: str | int
    agrees: bool


class Mark(Record):
    """How several judges came to the labels of one item; keys are fields of the label."""

    shares: Mapping[str, float] = Field(default_factory=dict, description="the share of votes the label got")
    votes: Mapping[str, tuple[Any, ...]] = Field(default_factory=dict, description="what each voice said, in order")
    open: tuple[str, ...] = Field(default=(), description="where the vote was split and nobody decided")
    first: Mapping[str, Any] = Field(default_factory=dict, description="what a second pass did not confirm")
    flags: tuple[str, ...] = ()
    judge: str = Field(default="", exclude_if=_is_empty, description="which of several judges gave the label")
    second_opinion: SecondOpinion | None = Field(default=None, exclude_if=is_none)


Marks = Mapping[str, Mapping[int, Mark]]
"""By list and id, as the labels are."""


class Reply(Record):
    """A usable answer to an ask: `data` satisfies `ask.reply`; `raw` is what the judge literally said; `marks` say how
    several judges came to it."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    data: Any
    raw: str = ""
    usage: Usage = Usage()
    marks: Marks = Field(default_factory=dict)


class Unjudged(Record):
    """An ask that got no usable answer, and why. A value, not an exception; never a number.

    The reasons keep infrastructure apart from the judge: `unreachable`, `timeout`, `rate_limited`,
    `server_error`, `rejected` are the first kind; `truncated`, `refused`, `invalid_reply`, `not_recorded`
    the second.
    """

    reason: str
    detail: str = ""
    usage: Usage = Usage()


# --- labelled items --------------------------------------------------------------------------------

AtomLabel = Literal["correct", "wrong", "undetermined", "exempt", "unjudged"]
TopicLabel = Literal["on_topic", "off_topic", "unjudged"]
SupportLabel = Literal["supported", "partial", "unsupported", "no_claim", "unjudged"]
CoverageLabel = Literal["covered", "partial", "missing", "unjudged"]
Depth = Literal["deep", "adequate", "bare"]
Validity = Literal["valid", "invalid", "unjudged"]
ComplianceLabel = Literal["satisfied", "violated", "undetermined", "unjudged"]
Source = Literal["reference", "inference", "own_knowledge"]
EvidenceSource = Literal["reference", "inference", "own_knowledge", "answer"]
"""Those a judge may name, and the judged answer itself."""


class Evidence(Record):
    """Where a label comes from. `verified` says that code found the quote in that passage, or in the answer."""

    reference: int | None = None
    quote: str = ""
    verified: bool = False
    source: EvidenceSource = "reference"


def _is_votes(kind: str) -> bool:
    return kind == "votes"


ConfidenceKind = Literal["votes", "probability"]


class Item(Record):
    """What every labelled item has. `id` is unique within its kind (and, for criteria, within its turn).

    `confidence` is there where several judges voted or the judge gives its label a probability, `first` where a second
    pass did not confirm a label, `judge` and `second_opinion` where a routed judge labelled.
    """

    kind: str
    id: int
    text: str
    reason: str = ""
    flags: tuple[str, ...] = ()
    confidence: float | None = Field(
        default=None, exclude_if=is_none, description="how sure its label is: share of votes, or a probability"
    )
    # Earlier versions knew votes only and did not say so.
    confidence_kind: ConfidenceKind = Field(default="votes", exclude_if=_is_votes)
    judge: str | None = Field(
        default=None, exclude_if=is_none, description="which judge of a routed one gave its label"
    )
    second_opinion: SecondOpinion | None = Field(
        default=None, exclude_if=is_none, description="for a sample of the labels that the first judge was sure of"
    )
    first: Mapping[str, str | int] | None = Field(
        default=None, exclude_if=is_none, description="what its labels were before the second pass"
    )


class Atom(Item):
    """One indivisible statement of the answer. `level` is null in `scorecard`, which does not grade it."""

    kind: Literal["atom"] = "atom"
    label: AtomLabel
    level: Literal[1, 2, 3] | None = None
    level_reason: str = ""
    evidence: Evidence | None = None
    causal_of: int | None = Field(default=None, description="id of the atom that is this one's effect")
    difference: ValueDifference | None = Field(
        default=None, exclude_if=is_none, description="the claimed and the stated value, where they differ"
    )


class Check(Item):
    """One of the eight checks of `grounded`; `text` is its name in the sample's language."""

    kind: Literal["check"] = "check"
    name: str
    group: str
    label: Literal[0, 1, "unjudged"]
    parts: tuple[Part, ...] = ()


class Part(Record):
    """One sentence behind the from-background check: where it comes from."""

    text: str
    label: Literal["from_background", "benign_extension", "outside", "unjudged"]
    reason: str = ""
    confidence: float | None = Field(default=None, exclude_if=is_none)
    judge: str | None = Field(default=None, exclude_if=is_none)
    second_opinion: SecondOpinion | None = Field(default=None, exclude_if=is_none)


class Sentence(Item):
    """One sentence of the answer, with its two labels; without a question there is no topic, and `on_topic` is null."""

    kind: Literal["sentence"] = "sentence"
    on_topic: TopicLabel | None
    support: SupportLabel
    evidence: Evidence | None = None


class KeyPoint(Item):
    """One thing the answer had to contain. `depth` is set for covered and partial ones."""

    kind: Literal["key_point"] = "key_point"
    label: CoverageLabel
    depth: Depth | None = None
    keypoints_source: Literal["given", "derived"] = "given"


class Criterion(Item):
    """One criterion of one turn; `text` is the user's string verbatim, `type` what stands after the last ` | `."""

    kind: Literal["criterion"] = "criterion"
    turn: int
    type: str | None = None
    validity: Validity
    quote: str = ""
    quote_verified: bool = False
    place: str = ""
    validity_reason: str = ""
    validity_confidence: float | None = Field(default=None, exclude_if=is_none)
    label: ComplianceLabel
    result: Literal["符合", "不符合", "不确定"] | None = None
    decided_by: Literal["judge", "rule"] = "judge"


class CustomItem(Item):
    """An item of any other kind. Its labels are fields that its protocol names: `CustomItem(kind="tint", hue="warm")`.

    What reports know of items they look for here too: `turn`, `name`, `group` and `evidence`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    evidence: Evidence | None = Field(default=None, exclude_if=is_none)


Check.model_rebuild()

_TYPED = frozenset({"atom", "check", "sentence", "key_point", "criterion"})


def _shape(item: Any) -> str:
    kind = item.get("kind") if isinstance(item, Mapping) else getattr(item, "kind", None)
    return kind if kind in _TYPED else "custom"


AnyItem = Annotated[
    Annotated[Atom, Tag("atom")]
    | Annotated[Check, Tag("check")]
    | Annotated[Sentence, Tag("sentence")]
    | Annotated[KeyPoint, Tag("key_point")]
    | Annotated[Criterion, Tag("criterion")]
    | Annotated[CustomItem, Tag("custom")],
    Discriminator(_shape),
]


# --- verdicts --------------------------------------------------------------------------------------


class Verdict(Record):
    """The labelled items of one sample, the scores counted from them, and what it cost.

    `stated` holds totals that a transcript states and its labels do not give; lines have it only where there are some.
    `notes` holds what is neither label nor score: the judge's summary, its own answer, how many invented
    items were dropped, why a sample failed. It is kept in stores and reports; result lines leave it out.
    """

    id: str
    protocol: str
    status: Status
    scores: Mapping[str, float | int | None]
    stated: Mapping[str, float | int] = Field(default_factory=dict, exclude_if=_is_empty)
    items: tuple[AnyItem, ...] = ()
    flags: tuple[str, ...] = ()
    judge: str = ""
    usage: Usage = Usage()
    notes: Mapping[str, Any] = Field(default_factory=dict)

    @field_validator("flags")
    @classmethod
    def _each_flag_once(cls, flags: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(flags))

    def line(self) -> dict[str, Any]:
        """The result line: the shape that `-o`, exports, `parse` and the API share."""
        return self.model_dump(mode="json", exclude={"notes"})


Rounds = Generator[list[Ask], list[Reply | Unjudged], Verdict]
"""A protocol at work on one sample: yields lists of independent asks, is sent their replies in order."""
