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
from functools import cache
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from steelyard.records import Ask, Data, Depth, Numbered, ReplyData, Source, is_none


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
    aspects: ClassVar[Mapping[str, str]] = {"label": "atom"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ("wrong",)}
    ruled: ClassVar[Mapping[str, str]] = {"same": "correct", "within": "correct", "beyond": "wrong"}

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
    aspects: ClassVar[Mapping[str, str]] = {"label": "part"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ("outside",)}

    id: int
    reason: str = ""
    label: Literal["from_background", "benign_extension", "outside"]


class CheckVerdict(LabelledReply):
    aspects: ClassVar[Mapping[str, str]] = {"label": "check"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": (0,)}
    is_named: ClassVar[bool] = True

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

    aspects: ClassVar[Mapping[str, str]] = {"label": "atom"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ("wrong",)}
    ruled: ClassVar[Mapping[str, str]] = {"same": "correct", "within": "correct", "beyond": "wrong"}

    id: int
    quote: str | None = None
    reason: str = ""
    label: Literal["correct", "wrong", "undetermined", "exempt"]
    source: Source | None = None
    difference: Difference | None = None


class SentenceVerdict(LabelledReply):
    aspects: ClassVar[Mapping[str, str]] = {"support": "support", "on_topic": "on_topic"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"support": ("unsupported",), "on_topic": (False,)}
    leads: ClassVar[str] = "support"
    spelled: ClassVar[Mapping[str, Mapping[Any, str]]] = {"on_topic": {True: "on_topic", False: "off_topic"}}

    id: int
    quote: str | None = None
    reason: str = ""
    on_topic: bool
    support: Literal["supported", "partial", "unsupported", "no_claim"]


class KeyPointVerdict(LabelledReply):
    aspects: ClassVar[Mapping[str, str]] = {"label": "key_point"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ("missing",)}

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
    aspects: ClassVar[Mapping[str, str]] = {"valid": "validity"}
    leads: ClassVar[str] = "valid"
    spelled: ClassVar[Mapping[str, Mapping[Any, str]]] = {"valid": {True: "valid", False: "invalid"}}

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
    aspects: ClassVar[Mapping[str, str]] = {"complies": "criterion"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"complies": ("violated",)}
    leads: ClassVar[str] = "complies"

    id: int
    reason: str = ""
    triggered: bool = True
    complies: Literal["fully", "partly", "no"]

    def counted(self, field: str) -> Any:
        """Partly and not at all are the same breach, and what nothing called for is met."""
        if field == "complies":
            return "satisfied" if self.complies == "fully" or not self.triggered else "violated"
        return super().counted(field)


class ComplianceReply(ReplyData):
    criteria: list[ComplianceVerdict]
    unsure: Unlabelled = Field(default_factory=list)


# --- rubric.judge, rubric.dialogue: a user's own criteria -------------------------------------------


class RubricData(Data):
    question: str
    references: tuple[str, ...]
    reference_answer: str | None
    answer: str
    criteria: tuple[Numbered, ...]

    @property
    def quotable(self) -> tuple[str, ...]:
        return (self.answer,)


class RubricDialogueData(Data):
    system_prompt: str
    turns: tuple[Exchange, ...]
    criteria: tuple[Numbered, ...]

    @property
    def quotable(self) -> tuple[str, ...]:
        return tuple(turn.answer for turn in self.turns)


# How judges write labels that every rubric may have.
SPELLINGS = {"是": "yes", "否": "no", "true": "yes", "false": "no", "不适用": "not_applicable", "n/a": "not_applicable"}


class RubricVerdict(LabelledReply):
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ()}

    id: int
    quote: str | None = None
    reason: str = ""
    label: str

    known: ClassVar[Mapping[str, str]] = {}
    """Every label of the rubric, by how it may be written; empty where the rubric is not known."""
    failing: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    """By id, the labels that speak against the answer: each criterion has its own."""

    def against(self, field: str) -> tuple[Any, ...]:
        return self.failing.get(self.id, ()) if field == "label" else super().against(field)

    @field_validator("label", mode="before")
    @classmethod
    def _as_written(cls, label: object) -> object:
        word = str(label).strip() if isinstance(label, str | int) else label
        if not cls.known or not isinstance(word, str):
            return word
        return cls.known.get(word, cls.known.get(SPELLINGS.get(word.casefold(), word.casefold()), word))


class RubricReply(ReplyData):
    criteria: list[RubricVerdict]
    unsure: Unlabelled = Field(default_factory=list)

    allowed: ClassVar[Mapping[int, frozenset[str]]] = {}
    """By id, the labels of that criterion."""

    @field_validator("criteria", mode="after")
    @classmethod
    def _of_its_criterion(cls, verdicts: list[RubricVerdict]) -> list[RubricVerdict]:
        """The label of another criterion is none: the item is missing and is asked for again."""
        return [one for one in verdicts if one.id not in cls.allowed or one.label in cls.allowed[one.id]]


@cache
def rubric_reply(labels: tuple[tuple[str, ...], ...], failing: tuple[tuple[str, ...], ...]) -> type[RubricReply]:
    """The reply to the criteria of one rubric, numbered from 1: their labels, and those that count against a sample."""
    every = tuple(dict.fromkeys(label for of_one in labels for label in of_one))
    choice: Any = Literal[every]
    verdict: Any = create_model("RubricVerdict", __base__=RubricVerdict, label=(choice, ...))
    verdict.known = {**{label.casefold(): label for label in reversed(every)}, **{label: label for label in every}}
    verdict.failing = dict(enumerate(failing, start=1))
    reply: Any = create_model("RubricReply", __base__=RubricReply, criteria=(list[verdict], ...))
    reply.allowed = dict(enumerate(map(frozenset, labels), start=1))
    made: type[RubricReply] = reply
    return made


# --- rubric.check: are the criteria of a rubric themselves any good? -------------------------------


class RubricCheckData(Data):
    criteria: tuple[Numbered, ...]


class CriterionReview(LabelledReply):
    """`overlaps` is the id of another criterion that asks the same; `rewording` asks the same in other words."""

    id: int
    rewording: str = ""
    reason: str = ""
    vague: bool
    unanswerable: bool
    overlaps: int | None = None


class RubricCheckReply(ReplyData):
    criteria: list[CriterionReview]


# --- retrieval.judge: what each passage is worth, and where each key point went ---------------------


class RetrievalData(Data):
    """Every ask holds all passages: a key point is looked for in each of them. `retrieved` are the passages to label,
    by number."""

    question: str
    passages: tuple[str, ...]
    answer: str
    retrieved: tuple[Numbered, ...]
    key_points: tuple[Numbered, ...]

    @property
    def quotable(self) -> tuple[str, ...]:
        return self.passages


class PassageVerdict(LabelledReply):
    aspects: ClassVar[Mapping[str, str]] = {"label": "passage", "use": "passage_use"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"label": ("irrelevant",)}

    id: int
    reason: str = ""
    label: Literal["answers", "helps", "irrelevant"]
    use: Literal["used", "unused"]


class PointVerdict(LabelledReply):
    """`passages` are the numbers of those that hold the point; `quote` is from one of them."""

    aspects: ClassVar[Mapping[str, str]] = {"label": "point", "in_answer": "in_answer"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "label": ("not_found",),
        "in_answer": ("contradicted", "absent"),
    }

    id: int
    passages: list[int] = Field(default_factory=list)
    quote: str | None = None
    reason: str = ""
    label: Literal["found", "not_found"]
    in_answer: Literal["stated", "contradicted", "absent"]


class RetrievalReply(ReplyData):
    retrieved: list[PassageVerdict] = Field(default_factory=list)
    key_points: list[PointVerdict] = Field(default_factory=list)
    refuses: bool
    unsure: Unlabelled = Field(default_factory=list)


# --- pairwise.judge: which of two answers is better, aspect by aspect --------------------------------


class PairData(Data):
    """The two answers by the place in which they stand: whose they are, no judge is told."""

    question: str
    references: tuple[str, ...]
    reference_answer: str | None
    first: str
    second: str
    criteria: tuple[Numbered, ...]

    @property
    def quotable(self) -> tuple[str, ...]:
        return self.first, self.second


class PairVerdict(LabelledReply):
    aspects: ClassVar[Mapping[str, str]] = {"label": "preference"}

    id: int
    quote: str | None = None
    reason: str = ""
    label: Literal["first", "second", "tie"]


class PairReply(ReplyData):
    criteria: list[PairVerdict]
    unsure: Unlabelled = Field(default_factory=list)


# --- template: a user's own prompt, sent as it is (`steelyard.engine.templates`) ----------------------------


class TemplateData(Data):
    """A whole prompt. `said` is the reply that could not be read, where the judge is asked once more."""

    prompt: str
    said: str = ""


TASKS: dict[str, tuple[type[Data], type[ReplyData]]] = {
    "atomic.split": (SplitData, SplitReply),
    "atomic.judge": (AtomicData, AtomicReply),
    "grounded.judge": (GroundedData, GroundedReply),
    "scorecard.key_points": (KeyPointsData, KeyPointsReply),
    "scorecard.judge": (ScorecardData, ScorecardReply),
    "dialogue.validity": (ValidityData, ValidityReply),
    "dialogue.compliance": (ComplianceData, ComplianceReply),
    "rubric.judge": (RubricData, RubricReply),
    "rubric.dialogue": (RubricDialogueData, RubricReply),
    "rubric.check": (RubricCheckData, RubricCheckReply),
    "retrieval.judge": (RetrievalData, RetrievalReply),
    "pairwise.judge": (PairData, PairReply),
}

# Canonical label -> other ways to say it. A word counts only where its label is among the choices, and only
# if no second choice claims it too: 部分 is `partial` of a key point and `partly` of a criterion. Without a schema the
# labels of one list stray into another: a sentence that is `correct` is supported, a `wrong` key point is missing.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "correct": ("正确", "正確", "准确", "準確", "属实", "屬實", "supported", "covered"),
    "wrong": ("错误", "錯誤", "不正确", "不正確", "不准确", "不準確", "incorrect", "contradicted"),
    "undetermined": ("无法判断", "無法判斷", "无法确定", "無法確定", "不确定", "不確定", "uncertain"),
    "exempt": ("豁免", "免检", "免檢", "无需核查", "無需核查", "不需核查", "不需要核查", "no_claim"),
    "supported": ("支持", "有依据", "有依據", "完全支持", "correct", "covered"),
    "partial": ("部分", "部分支持", "部分覆盖", "部分覆蓋", "部分涵盖", "部分涵蓋", "partially"),
    "unsupported": ("不支持", "无依据", "無依據", "没有依据", "沒有依據", "missing"),
    "no_claim": ("无主张", "無主張", "无陈述", "無陳述", "无断言", "無斷言", "exempt"),
    "covered": ("覆盖", "覆蓋", "已覆盖", "已覆蓋", "涵盖", "涵蓋", "命中", "correct", "supported"),
    "missing": ("缺失", "遗漏", "遺漏", "未覆盖", "未覆蓋", "未涵盖", "未涵蓋", "未命中", "wrong", "unsupported"),
    "deep": ("深入", "详细", "詳細"),
    "adequate": ("适中", "適中", "足够", "足夠"),
    "bare": ("仅提及", "僅提及", "一笔带过", "一筆帶過"),
    "from_background": ("来自背景", "來自背景", "来源于背景", "來源於背景", "supported"),
    "benign_extension": ("良性扩展", "良性擴展", "良性延伸", "合理延伸"),
    "outside": ("背景之外", "背景外", "unsupported", "wrong"),
    "fully": ("符合", "完全符合", "full", "yes", "true"),
    "partly": ("部分", "部分符合", "partially", "partial"),
    "no": ("不符合", "false"),
    "answers": ("能回答", "回答问题", "回答問題", "直接回答", "relevant"),
    "helps": ("有帮助", "有幫助", "有用", "部分相关", "部分相關", "partial"),
    "irrelevant": ("无关", "無關", "不相关", "不相關", "not_relevant"),
    "used": ("用到", "已使用", "使用", "yes", "true"),
    "unused": ("未用到", "未使用", "没用到", "沒用到", "not_used", "no", "false"),
    "found": ("找到", "有"),
    "not_found": ("未找到", "没找到", "沒找到", "没有", "沒有", "none"),
    "stated": ("说到", "說到", "已说", "已說"),
    "contradicted": ("说错", "說錯", "矛盾", "相反", "wrong"),
    "absent": ("没说到", "沒說到", "未提", "not_stated"),
    "reference": ("参考资料", "參考資料", "资料", "資料"),
    "inference": ("推断", "推斷", "推理", "推论", "推論"),
    "own_knowledge": ("自身知识", "自身知識", "自有知识", "自有知識"),
    "statistic": ("统计", "統計", "统计数字", "統計數字", "statistics"),
    "specification": ("规格", "規格", "数量", "數量", "quantity", "specifications"),
    "first": ("第一个", "第一個", "第一个回答", "第一個回答", "1", "first answer", "answer 1"),
    "second": ("第二个", "第二個", "第二个回答", "第二個回答", "2", "second answer", "answer 2"),
    "tie": ("平局", "相当", "相當", "不相上下", "equal", "same", "draw", "neither", "both"),
    "date": ("日期",),
    "political_date": ("政治日期", "政治类日期", "政治類日期"),
}

# An ask that every judge has a prompt for: what would keep its reply under one key would do so for any ask.
PROBE = Ask(task="atomic.split", language="en", data=SplitData(question="", answer=""), reply=SplitReply)
