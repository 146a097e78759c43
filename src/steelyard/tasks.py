"""The tasks a judge can be asked: for each, the data it is about and the reply it must give.

This is the whole contract between protocols and judges. Reply fields stand in the order a judge should
think: evidence, then reason, then label. Every list a reply holds answers the field of the same name in
the data, id by id; where an ask may have no such items, a judge may leave the list out.

A judge in code that reads an item and cannot tell says so in `unsure`, with the reason; the item is then
`unjudged` for that reason and nobody asks again. A language model is not offered this way out. Nor is it asked for a
`confidence`: judges in code give it, and chat judges take it from the probabilities of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from steelyard.records import Data, Depth, Numbered, ReplyData, Source, is_none


class Unsure(ReplyData):
    """An item that the judge read and gives no label: the list it stands in, its id, and why."""

    items: str
    id: int
    reason: str


# Neither schemas nor prompts show it: a language model that may shrug, shrugs.
Unlabelled = SkipJsonSchema[list[Unsure]]
# Neither do they show this: a language model's word on how sure it is says little; its token probabilities say more.
Confidence = SkipJsonSchema[float | None]


class LabelledReply(ReplyData):
    """What every labelled item of a reply may have: `confidence`, from 0 to 1, is the probability that the judge gives
    to the label it chose; of two labels, to the one that reason and quote speak for."""

    confidence: Confidence = Field(default=None, ge=0, le=1, exclude_if=is_none)


# --- atomic.split: an answer into atoms ------------------------------------------------------------


class SplitData(Data):
    question: str
    answer: str


class SplitAtom(ReplyData):
    id: int
    text: str
    causal_of: int | None = None


class SplitReply(ReplyData):
    atoms: list[SplitAtom]


# --- atomic.judge: relevance, need of checking, accuracy, evidence; fallback ----------------------


class Difference(ReplyData):
    """Atom and passage state the same thing with another value; the judge says of what kind, code does the rest.

    A `statistic` is a figure that sources themselves give roughly, a `specification` one to act on.
    """

    kind: Literal["statistic", "specification", "date", "political_date"]
    claimed: str
    stated: str

    @field_validator("kind", mode="before")
    @classmethod
    def _in_doubt(cls, kind: object) -> object:
        # Recordings of earlier versions have it, and so have models that do not tell the two apart.
        return "specification" if kind == "quantity" else kind


class GradedAtomVerdict(LabelledReply):
    id: int
    reference: int | None = None
    quote: str | None = None
    reason: str = ""
    label: Literal["correct", "wrong", "undetermined", "exempt"]
    source: Source | None = None
    difference: Difference | None = None
    level_reason: str = ""
    level: Literal[1, 2, 3]


class AtomicData(Data):
    question: str
    references: tuple[str, ...]
    answer: str
    date: str
    place: str
    atoms: tuple[Numbered, ...]


class AtomicReply(ReplyData):
    atoms: list[GradedAtomVerdict] = Field(default_factory=list)
    fallback: bool


# --- grounded.judge: own answer, sentence sources, checks ------------------------------------------


class GroundedData(Data):
    question: str
    references: tuple[str, ...]
    answer: str
    sentences: tuple[Numbered, ...]
    checks: tuple[Numbered, ...]


class SentenceSource(LabelledReply):
    id: int
    reason: str = ""
    label: Literal["from_background", "benign_extension", "outside"]


class CheckVerdict(LabelledReply):
    id: int
    reason: str = ""
    label: Literal[0, 1]


class GroundedReply(ReplyData):
    own_answer: str
    answerable: bool
    sentences: list[SentenceSource] = Field(default_factory=list)
    checks: list[CheckVerdict] = Field(default_factory=list)
    unsure: Unlabelled = Field(default_factory=list)


# --- scorecard.key_points: what a good answer must contain -----------------------------------------


class KeyPointsData(Data):
    question: str
    references: tuple[str, ...]
    reference_answer: str | None


class KeyPointText(ReplyData):
    id: int
    text: str


class KeyPointsReply(ReplyData):
    key_points: list[KeyPointText]


# --- scorecard.judge: sentences, key points and atoms in one reading -------------------------------


class ScorecardData(Data):
    """The sentences are the answer: sending it a second time in one piece would only cost tokens.

    Key points are looked for in the whole answer, though: where an ask is about only some of its sentences, `answer`
    has it all.
    """

    question: str
    references: tuple[str, ...]
    date: str
    place: str
    answer: str | None = None
    sentences: tuple[Numbered, ...]
    key_points: tuple[Numbered, ...]
    atoms: tuple[Numbered, ...]

    def only(self, wanted: Mapping[str, tuple[int, ...]]) -> Self:
        part = super().only(wanted)
        if not part.key_points or len(part.sentences) == len(self.sentences):
            return part.model_copy(update={"answer": None})
        whole = self.answer or "\n".join(sentence.text for sentence in self.sentences)
        return part.model_copy(update={"answer": whole})


class AtomVerdict(LabelledReply):
    """An atom without a level. As with sentences, code finds the passage that holds the quote."""

    id: int
    quote: str | None = None
    reason: str = ""
    label: Literal["correct", "wrong", "undetermined", "exempt"]
    source: Source | None = None
    difference: Difference | None = None


class SentenceVerdict(LabelledReply):
    id: int
    quote: str | None = None
    reason: str = ""
    on_topic: bool
    support: Literal["supported", "partial", "unsupported", "no_claim"]


class KeyPointVerdict(LabelledReply):
    id: int
    reason: str = ""
    label: Literal["covered", "partial", "missing"]
    depth: Depth | None = None


class ScorecardReply(ReplyData):
    sentences: list[SentenceVerdict] = Field(default_factory=list)
    key_points: list[KeyPointVerdict] = Field(default_factory=list)
    atoms: list[AtomVerdict] = Field(default_factory=list)
    summary: str = ""
    unsure: Unlabelled = Field(default_factory=list)


# --- dialogue.validity: does each criterion follow from the system prompt? -------------------------


class ValidityData(Data):
    system_prompt: str
    criteria: tuple[Numbered, ...]


class ValidityVerdict(LabelledReply):
    id: int
    place: str = ""
    quote: str | None = None
    reason: str = ""
    valid: bool


class ValidityReply(ReplyData):
    criteria: list[ValidityVerdict]
    unsure: Unlabelled = Field(default_factory=list)


# --- dialogue.compliance: does this turn's answer follow each criterion? ---------------------------


class Exchange(Data):
    prompt: str
    answer: str


class ComplianceData(Data):
    system_prompt: str
    history: tuple[Exchange, ...]
    turn: int
    prompt: str
    answer: str
    criteria: tuple[Numbered, ...]


class ComplianceVerdict(LabelledReply):
    id: int
    reason: str = ""
    triggered: bool = True
    complies: Literal["fully", "partly", "no"]


class ComplianceReply(ReplyData):
    criteria: list[ComplianceVerdict]
    unsure: Unlabelled = Field(default_factory=list)


TASKS: dict[str, tuple[type[Data], type[ReplyData]]] = {
    "atomic.split": (SplitData, SplitReply),
    "atomic.judge": (AtomicData, AtomicReply),
    "grounded.judge": (GroundedData, GroundedReply),
    "scorecard.key_points": (KeyPointsData, KeyPointsReply),
    "scorecard.judge": (ScorecardData, ScorecardReply),
    "dialogue.validity": (ValidityData, ValidityReply),
    "dialogue.compliance": (ComplianceData, ComplianceReply),
}
