"""Samples that are in memory already: tables of other libraries, dataclasses, models, the test cases of other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import datasets
import pandas
import polars
import pyarrow
import pytest
from pydantic import BaseModel, ConfigDict, Field

from steelyard.errors import ConfigError, InputError
from steelyard.records import DialogueSample, RagSample, Sample
from steelyard.samples import samples_from

ROWS = [
    {"id": "1", "question": "几点开门？", "answer": "九点。", "references": ["九点开门。", "周一休息。"]},
    {"id": "2", "question": "Closed on Monday?", "answer": "", "references": []},
]
SAMPLES = [RagSample.model_validate(row) for row in ROWS]


def read(samples: object, kind: Any = "rag", **fields: str) -> list[Sample | InputError]:
    return list(samples_from(samples, kind, fields=fields))


def lazily() -> Iterator[dict[str, Any]]:
    yield from ROWS


@pytest.mark.parametrize(
    "made",
    [
        lambda: pandas.DataFrame(ROWS),
        lambda: pandas.DataFrame(ROWS).set_index("id"),
        lambda: polars.DataFrame(ROWS),
        lambda: pyarrow.Table.from_pylist(ROWS),
        lambda: datasets.Dataset.from_list(ROWS),
        lambda: datasets.Dataset.from_list(ROWS).to_iterable_dataset(),
        lazily,
    ],
    ids=["pandas", "pandas, indexed", "polars", "pyarrow", "datasets", "streamed datasets", "generator"],
)
def test_tables(made: Callable[[], object]) -> None:
    """A frame, a table or a Hugging Face dataset is its rows, whichever library made it."""
    assert read(made()) == SAMPLES


def test_what_a_frame_calls_missing_is_null() -> None:
    """NaN, None and NA in an optional column are "not given"; in the answer they say that none was recorded."""
    frame = pandas.DataFrame(
        [
            {"question": "q", "answer": "a", "date": pandas.Timestamp("2026-03-02"), "place": float("nan")},
            {"question": "q", "answer": pandas.NA, "date": pandas.NaT, "place": None},
        ]
    )
    good, bad = read(frame)
    assert isinstance(good, RagSample)
    assert (good.date, good.place) == ("2026-03-02", None)
    assert isinstance(bad, InputError)
    assert (bad.line, bad.field) == (2, "answer")


def test_columns_of_a_frame_are_mapped() -> None:
    """`fields` names a column of a frame; a missing one is told in the words of Python."""
    frame = pandas.DataFrame([{"q": "q", "a": "a"}])
    (sample,) = read(frame, question="q", answer="a")
    assert isinstance(sample, RagSample)
    assert sample.answer == "a"
    (bad,) = read(frame)
    assert isinstance(bad, InputError)
    assert bad.field == "question, answer"
    assert "fields={'question': 'COLUMN', 'answer': 'COLUMN'}" in bad.problem
    assert "--" not in str(bad)


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        (
            datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)}),
            r"several sets \(train\); .* samples\['train'\]",
        ),
        (polars.DataFrame(ROWS).lazy(), r"samples\.collect\(\)"),
        (pandas.DataFrame([["q", "a", "b"]], columns=["question", "answer", "answer"]), "same name: answer"),
        (42, "int holds no samples"),
    ],
    ids=["splits", "lazy frame", "equal columns", "a number"],
)
def test_what_holds_no_rows_says_so(samples: object, says: str) -> None:
    """A mistake in what is passed is an error that says what to pass, not a heap of bad rows."""
    with pytest.raises(ConfigError, match=says):
        read(samples)


@dataclass
class Answer:
    """A dataclass of somebody's own."""

    question: str
    answer: str
    references: list[Any] = field(default_factory=list)


@dataclass
class Passage:
    text: str


class Pair(NamedTuple):
    question: str
    answer: str


class Own(BaseModel):
    """A pydantic model of somebody's own; further fields are kept."""

    model_config = ConfigDict(extra="allow")

    question: str


@pytest.mark.parametrize(
    ("row", "references"),
    [
        (Answer("q", "a", ["one"]), ("one",)),
        (Answer("q", "a", [Passage("one"), Passage("two")]), ("one", "two")),
        (Pair("q", "a"), ()),
        (Own.model_validate({"question": "q", "answer": "a", "passages": ["one"]}), ("one",)),
    ],
)
def test_dataclasses_models_and_named_tuples(row: object, references: tuple[str, ...]) -> None:
    """One alone is one sample, as a dict is; several in a list are several."""
    for samples, count in ((row, 1), ([row, row], 2)):
        found = read(samples)
        assert len(found) == count
        for sample in found:
            assert isinstance(sample, RagSample)
            assert (sample.question, sample.answer, sample.references) == ("q", "a", references)


# The classes below have the fields of ragas 0.4.3 and deepeval 4.3.1, which are too heavy to be installed for tests.


class SingleTurnSample(BaseModel):
    """As in ragas.dataset_schema."""

    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    reference_contexts: list[str] | None = None
    retrieved_context_ids: list[str] | None = None
    reference_context_ids: list[str] | None = None
    response: str | None = None
    multi_responses: list[str] | None = None
    reference: str | None = None
    rubrics: dict[str, str] | None = None
    persona_name: str | None = None


@dataclass
class RagasDataset:
    """As ragas.EvaluationDataset: a dataclass that is iterated for its samples."""

    samples: list[SingleTurnSample]
    backend: str | None = None
    name: str | None = None

    def __iter__(self) -> Iterator[SingleTurnSample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass
class RagasResult:
    """As ragas.dataset_schema.EvaluationResult: neither iterable nor a row, but it becomes a table."""

    scores: list[dict[str, float]]
    dataset: RagasDataset

    def to_pandas(self) -> pandas.DataFrame:
        rows = [sample.model_dump(exclude_none=True) for sample in self.dataset]
        return pandas.DataFrame([row | scores for row, scores in zip(rows, self.scores, strict=True)])


class RetrievedContextData(BaseModel):
    """As in deepeval.test_case."""

    context: str
    source: str


class LLMTestCase(BaseModel):
    """As in deepeval.test_case."""

    input: str
    actual_output: str | None = Field(default=None, serialization_alias="actualOutput")
    expected_output: str | None = Field(default=None, serialization_alias="expectedOutput")
    context: list[str] | None = None
    retrieval_context: list[str | RetrievedContextData] | None = None
    metadata: dict[str, Any] | None = None
    tools_called: list[Any] | None = None
    token_cost: float | None = None
    name: str | None = None
    tags: list[str] | None = None


class Said(BaseModel):
    """As deepeval.test_case.Turn."""

    role: str
    content: str
    retrieval_context: list[str] | None = None


class ConversationalTestCase(BaseModel):
    """As in deepeval.test_case."""

    turns: list[Said]
    scenario: str | None = None
    chatbot_role: str | None = None
    tags: list[str] | None = None


@dataclass
class DeepevalDataset:
    """As deepeval.dataset.EvaluationDataset: a dataclass that is not iterable and holds its cases in a property."""

    _llm_test_cases: list[LLMTestCase]

    @property
    def test_cases(self) -> list[LLMTestCase]:
        return self._llm_test_cases


def test_ragas() -> None:
    """A sample of ragas, alone, in a list, in its dataset or in a result; `reference` is the reference answer."""
    theirs = SingleTurnSample(user_input="q", response="a", retrieved_contexts=["one"], reference="gold")
    held = RagasDataset([theirs])
    for samples in (theirs, [theirs], held, RagasResult([{"faithfulness": 1.0}], held)):
        (sample,) = read(samples)
        assert isinstance(sample, RagSample)
        assert (sample.question, sample.answer, sample.references) == ("q", "a", ("one",))
        assert sample.reference_answer == "gold"


def test_deepeval() -> None:
    """A test case of deepeval, alone, in a list or in its dataset; what was retrieved is taken, not the ideal."""
    theirs = LLMTestCase(
        input="q",
        actual_output="a",
        expected_output="gold",
        context=["ideal"],
        retrieval_context=["one", RetrievedContextData(context="two", source="b.txt")],
        tags=["hr"],
    )
    for samples in (theirs, [theirs], DeepevalDataset([theirs])):
        (sample,) = read(samples)
        assert isinstance(sample, RagSample)
        assert (sample.question, sample.answer, sample.references) == ("q", "a", ("one", "two"))
        assert (sample.reference_answer, sample.tags) == ("gold", ("hr",))


def test_a_conversation_of_deepeval() -> None:
    """Its turns are messages with roles; what stands for the system prompt is mapped."""
    turns = [Said(role="user", content="Hi"), Said(role="assistant", content="Ahoy!")]
    theirs = ConversationalTestCase(turns=turns, chatbot_role="Speak like a sailor.")
    (sample,) = read([theirs], "dialogue", system_prompt="chatbot_role")
    assert isinstance(sample, DialogueSample)
    assert (sample.system_prompt, sample.turns[0].answer) == ("Speak like a sailor.", "Ahoy!")
