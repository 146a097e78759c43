"""Rows become samples: every name people use for a field, and every shape of its value."""

from __future__ import annotations

import contextlib
import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_rows import SEED_DIALOGUE, TEXT, TRAY, bad, dialogue, rag
from steelyard.errors import ConfigError
from steelyard.records import DialogueSample, RagSample, Turn
from steelyard.samples import known_fields, read_samples, sample_from
from steelyard.samples.literals import parsed

# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Q", "references": ["p"], "answer": "A", "reference_answer": "R"},
        {"user_input": "Q", "retrieved_contexts": ["p"], "response": "A", "reference": "R"},
        {"question": "Q", "contexts": ["p"], "answer": "A", "ground_truth": "R"},
        {"question": "Q", "contexts": ["p"], "answer": "A", "ground_truths": ["R"]},
        {"input": "Q", "actual_output": "A", "retrieval_context": ["p"], "expected_output": "R"},
        {"query": "Q", "response": "A", "retrieved_context": [{"doc_id": "1", "text": "p"}], "gt_answer": "R"},
        {"Question": "Q", "Background": "[['p']]", "Answer": "A", "Reference Answer": "R"},
        {"QUESTION": "Q", "background": "p", "aNsWeR": "A", "referenceAnswer": "R"},
        {"$Question$": "Q", "$Background$": "p", "$Answer$": "A", "reference-answer": "R"},
        {"问题": "Q", "参考答案": "[['p']]", "生成内容": "A", "标准答案": "R"},
        {"\ufeffquestion": "Q", "documents": [[{"page_content": "p"}]], "output": "A", "reference": "R"},
    ],
)
def test_names_of_other_tools_need_no_flags(row: dict[str, object]) -> None:
    """The keys of ragas, deepeval, RAGChecker and the source documents all give the same sample."""
    sample = sample_from(row, "rag")
    assert sample == RagSample(id=sample.id, question="Q", references=("p",), answer="A", reference_answer="R")


def test_canonical_name_wins_over_an_alias() -> None:
    """A log that keeps the rendered prompt beside the question is judged by its question."""
    assert rag(question="Q", prompt="You are... Q", query="other").question == "Q"
    assert rag(references=["p"], context="other").references == ("p",)


def test_deepeval_context_is_not_what_was_retrieved() -> None:
    """Of deepeval's two lists, the retrieved one is the references."""
    assert rag(context=["ideal"], retrieval_context=["got"]).references == ("got",)
    assert rag(context=["ideal"], retrieval_context=None).references == ("ideal",)


def test_two_different_answers_are_an_error() -> None:
    """Where `answer` and `response` differ, one may be the reference: the user chooses, we do not."""
    row = {"question": "q", "answer": "gold", "response": "said"}
    error = bad(row)
    assert error.field == "answer"
    assert "'answer' and 'response'" in error.problem
    assert "fields={'answer': " in error.problem
    assert sample_from(row, "rag", fields={"answer": "response"}).answer == "said"  # type: ignore[union-attr]
    assert rag(answer="same", response="same").answer == "same"


def test_blank_alias_gives_way() -> None:
    """A null or empty cell under one name does not hide the value under another."""
    assert sample_from({"question": "", "user_input": "Q", "answer": None, "response": "A"}, "rag") == RagSample(
        id=rag(question="Q", answer="A").id, question="Q", answer="A"
    )


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("my_column", {"my_column": "A"}),
        ("output.text", {"output": {"text": "A"}}),
        ("output.text", {"output.text": "A", "output": {"text": "no"}}),
        ("choices.0.message.content", {"choices": [{"message": {"content": "A"}}]}),
        ("out.text", {"out": '{"text": "A"}'}),
        ("parts.-1", {"parts": ["x", "A"]}),
    ],
)
def test_map_names_any_column(path: str, row: dict[str, object]) -> None:
    """A column can be anywhere, also inside another one; what it is mapped to beats the usual names."""
    sample = sample_from({"question": "q", "answer": "no", **row}, "rag", fields={"answer": path})
    assert isinstance(sample, RagSample)
    assert sample.answer == "A"


@pytest.mark.parametrize("path", ["nope", "a.b.c", "a.7", "question.x", "a..", "."])
def test_mapped_column_must_be_there(path: str) -> None:
    """A mapping that misses is an error, even for an optional field: it would else be silently unread."""
    error = bad({"question": "q", "answer": "a", "a": [1]}, references=path)
    assert error.field == "references"
    assert repr(path) in error.problem


def test_unknown_field_raises_before_reading() -> None:
    """A mistyped field name stops at once and lists the right ones."""
    with pytest.raises(ConfigError, match=r"anwser.*answer"):
        read_samples(["nowhere.jsonl"], "rag", fields={"anwser": "x"})
    assert "turns.criteria" in known_fields("dialogue")


# --- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()),
        ("", ()),
        ("  \n", ()),
        ("one passage", ("one passage",)),
        (" kept  verbatim \n", (" kept  verbatim \n",)),
        (["a", "", None, " ", "b"], ("a", "b")),
        ([["a"], [["b", ["c"]]]], ("a", "b", "c")),
        (("a", ("b",)), ("a", "b")),
        ('["a", ["b"]]', ("a", "b")),
        ("[['1.a'],['2.b']]", ("1.a", "2.b")),
        ("['it\\'s', \"b\"]", ("it's", "b")),
        ("('a', 'b')", ("('a', 'b')",)),
        ("['a' 'b'\n 'c']", ("a", "b", "c")),
        ("[]", ()),
        ("[1] see [2]", ("[1] see [2]",)),
        ("[1, 2]", ("[1, 2]",)),
        ("['a', ...]", ("['a', ...]",)),
        ("[__import__('os').getcwd()]", ("[__import__('os').getcwd()]",)),
        ("[b'a']", ("[b'a']",)),
        ('{"content": "x", "price": 3}', ('{"content": "x", "price": 3}',)),
        ({"text": "a"}, ("a",)),
        ([{"content": "a"}, {"page_content": "b", "metadata": {}}, {"passage": "c"}], ("a", "b", "c")),
        ('[{"doc_id": "1", "text": "a"}]', ("a",)),
        (['say "a","b" aloud'], ('say "a","b" aloud',)),
        (['"a","b"'], ('"a","b"',)),
        (["C:\\new\\d"], ("C:\\new\\d",)),
    ],
)
def test_references_in_every_form(value: object, expected: tuple[str, ...]) -> None:
    """A list, nested lists, objects, a text, and lists written as JSON, Python or numpy text all work."""
    assert rag(references=value).references == expected


def test_references_of_the_first_seed() -> None:
    """The seeds' Python literal gives its passages, numbers included."""
    passages = rag(参考答案="[['1.名字最长的国家'],['4.这个国家存在于1867年至1918年。']]").references
    assert passages == ("1.名字最长的国家", "4.这个国家存在于1867年至1918年。")


@pytest.mark.parametrize("background", [TRAY, json.loads(TRAY)], ids=["as text", "as a list"])
def test_references_of_the_tray_table_seed(background: object) -> None:
    """The passages that the second grounded example glues together with escaped quotes come apart."""
    passages = rag(background=background).references
    assert len(passages) == 3
    assert passages[0] == "理想L9座椅配置 第二排小桌板 标配"
    assert passages[1] == "理想L9的第二排右侧座椅是配备了小桌板和腿托。"
    assert "打开：\n① 按压" in passages[2]


NESTED = st.recursive(TEXT.filter(lambda t: '"' not in t), lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def leaves(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [leaf for part in value for leaf in leaves(part)]  # type: ignore[attr-defined]


@given(st.lists(NESTED, max_size=5))
def test_references_forms_agree(nested: list[object]) -> None:
    """A list, its JSON and its Python literal are the same passages, in order, verbatim."""
    expected = tuple(leaves(nested))
    assert rag(references=nested).references == expected
    assert rag(references=json.dumps(nested)).references == expected
    assert rag(references=json.dumps(nested, ensure_ascii=False)).references == expected
    assert rag(references=repr(nested)).references == expected


@given(st.text())
def test_any_text_is_taken_as_references(text: str) -> None:
    """No text is refused as references, none raises, and text that is no list stays as it is."""
    references = rag(references=text).references
    if not text.strip().startswith("["):
        assert references == ((text,) if text.strip() else ())


@given(st.text(alphabet="[]{}()'\",\\: \n0ab#-f", max_size=60))
def test_parsing_only_fails_with_a_value_error(text: str) -> None:
    """Text made of brackets and quotes either parses to a list or object, or is a plain ValueError."""
    with contextlib.suppress(ValueError):
        assert isinstance(parsed(text), list | dict | set)


@pytest.mark.parametrize(
    "hostile", ["[" * 100_000 + "]" * 100_000, "['a'," + "-" * 300_000 + "1]", "['" + "x" * 2_000_000]
)
def test_hostile_literals_are_one_passage(hostile: str) -> None:
    """Nesting and size that would exhaust a parser leave the text as it is."""
    assert rag(references=hostile).references == (hostile,)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (5, "references"),
        (True, "references"),
        (["a", 3], "references[1]"),
        ([["a"], [{"doc_id": 1}]], "references[1][0]"),
        ([{"text": 4}], "references[0].text"),
    ],
)
def test_wrong_references_name_the_passage(value: object, field: str) -> None:
    """A passage of the wrong type is named by its index."""
    assert bad({"question": "q", "answer": "a", "references": value}).field == field


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ([], ()),
        (["a", " "], ("a",)),
        ("a\r\n\n b ", ("a", "b")),
        ('["a\\nb", "c"]', ("a\nb", "c")),
    ],
)
def test_key_points(value: object, expected: tuple[str, ...] | None) -> None:
    """Key points are a list, JSON, or lines; an empty list is 'none', nothing at all is 'not given'."""
    assert rag(key_points=value).key_points == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a, b，a", ("a", "b")),
        (["a", 3, 2.0, None], ("a", "3", "2")),
        ('["a, b"]', ("a, b",)),
        ({"lang": "zh", "level": 2, "x": None, "on": True}, ("lang:zh", "level:2", "on:true")),
        ('{"k": ["v", "w"]}', ("k:v", "k:w")),
    ],
)
def test_tags(value: object, expected: tuple[str, ...]) -> None:
    """Tags are a list, a comma-separated text, JSON, or an object; each stands once."""
    assert rag(tags=value).tags == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(2024, 5, 1), "2024-05-01"),
        (datetime.datetime(2024, 5, 1), "2024-05-01"),
        (datetime.datetime(2024, 5, 1, 8, 30), "2024-05-01 08:30:00"),
        ("五一", "五一"),
        (float("nan"), None),
    ],
)
def test_dates(value: object, expected: str | None) -> None:
    """A date may be a date, a moment or a text."""
    assert rag(date=value).date == expected


def test_values_of_data_frames() -> None:
    """Rows of pandas frames work as they are: numpy arrays and scalars, NaN, NaT and NA."""
    import numpy as np
    import pandas as pd

    sample = rag(
        id=np.int64(7),
        references=np.array(["a", "b"], dtype=object),
        date=pd.Timestamp("2024-05-01"),
        place=pd.NA,
        reference_answer=np.nan,
        answer=np.str_("A"),
    )
    assert (sample.id, sample.references, sample.date) == ("7", ("a", "b"), "2024-05-01")
    assert (sample.place, sample.reference_answer, sample.answer) == (None, None, "A")
    assert type(sample.answer) is str
    assert rag(date=pd.NaT).date is None


@given(st.text(), st.text().filter(str.strip))
def test_text_stays_verbatim_and_encodable(answer: str, question: str) -> None:
    """Only lone surrogates change; what comes out can always be written as UTF-8."""
    sample = rag(answer=answer + "\ud800", question=question + "\udfff")
    assert sample.answer == answer + "\ufffd"
    assert sample.question == question + "\ufffd"
    sample.model_dump_json().encode("utf-8")


# --- what must be there ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "field", "says"),
    [
        ({"question": "q"}, "answer", "it has 'question'"),
        ({"answer": "a"}, "question", "fields={'question': 'COLUMN'}"),
        ({}, "question, answer", "no fields"),
        ({"question": "q", "answer": None}, "answer", "null"),
        ({"question": "q", "answer": float("nan")}, "answer", "null"),
        ({"question": " ", "answer": "a"}, "question", "empty"),
        ({"question": "q", "answer": 42}, "answer", "a number"),
        ({"question": ["q"], "answer": "a"}, "question", "a list"),
        ({"question": "q", "answer": "a", "place": {"lat": 1}}, "place", "an object"),
        ({"question": "q", "answer": "a", "id": True}, "id", "true"),
        ({"question": "q", "answer": "a", "key_points": {"a": 1}}, "key_points", "an object"),
        ({"question": "q", "answer": "a", "key_points": ["a", 1]}, "key_points[1]", "a number"),
        ({"question": "q", "answer": b"\xff"}, "answer", "bytes"),
        (["question", "answer"], None, "a list"),
        (None, None, "null"),
    ],
)
def test_bad_rag_rows_name_the_field(row: object, field: str | None, says: str) -> None:
    """A missing, null or wrongly typed field is named, with what was found instead."""
    error = bad(row)
    assert error.field == field
    assert says in error.problem


def test_empty_answer_is_an_answer() -> None:
    """An assistant that said nothing is judged for it; extra fields do not matter."""
    assert rag(answer="", latency={"ms": 3}).answer == ""


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    """A value nested beyond the interpreter's stack is refused by name."""
    value: list[object] = []
    for _ in range(50_000):
        value = [value]
    assert "nested" in bad({"question": "q", "answer": "a", "references": value}).problem


# --- dialogues -------------------------------------------------------------------------------------


def test_dialogue_with_the_seeds_keys() -> None:
    """The seed's own keys give turns with verbatim criteria, from a list or from lines."""
    sample = dialogue(**SEED_DIALOGUE)
    assert sample.system_prompt == "你是一个狂躁的面试官。"
    assert sample.turns[0].criteria == ("以一句歌词作为开头 | 内容约束", "自我介绍 | 动作约束")
    assert sample.turns[1] == Turn(
        prompt="嗯", answer="", criteria=("风格是狂躁的 | 风格约束", "()中含有表情 | 内容约束")
    )


def test_dialogue_may_have_no_turns_or_criteria() -> None:
    """Zero turns and zero criteria are results of their own, not errors; turns may stand in a text."""
    assert dialogue(system_prompt="s", turns=[]).turns == ()
    assert dialogue(system_prompt="s", turns="[]").turns == ()
    (turn,) = dialogue(system_prompt="s", turns='[{"user": "u", "assistant": "a", "criteria": null}]').turns
    assert turn == Turn(prompt="u", answer="a")


def test_dialogue_inner_columns_can_be_mapped() -> None:
    """`--map turns.answer=...` reaches into each turn."""
    row = {"system_prompt": "s", "turns": [{"prompt": "p", "reply": {"text": "A"}, "checks": ["c"]}]}
    fields = {"turns.answer": "reply.text", "turns.criteria": "checks"}
    sample = sample_from(row, "dialogue", fields=fields)
    assert isinstance(sample, DialogueSample)
    assert sample.turns == (Turn(prompt="p", answer="A", criteria=("c",)),)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"turns": []}, "system_prompt"),
        ({"system_prompt": "s"}, "turns"),
        ({"system_prompt": "s", "turns": None}, "turns"),
        ({"system_prompt": "s", "turns": 3}, "turns"),
        ({"system_prompt": "s", "turns": "not json"}, "turns"),
        ({"system_prompt": "s", "turns": ["x"]}, "turns[0]"),
        ({"system_prompt": " ", "turns": []}, "system_prompt"),
        ({"system_prompt": "s", "turns": [{"prompt": "p", "answer": "a"}] * 2 + [{"prompt": "p"}]}, "turns[2].answer"),
        ({"system_prompt": "s", "turns": [{"prompt": "p", "answer": None}]}, "turns[0].answer"),
        ({"system_prompt": "s", "turns": [{"prompt": 1, "answer": "a"}]}, "turns[0].prompt"),
        ({"system_prompt": "s", "turns": [{"prompt": "p", "answer": "a", "criteria": [1]}]}, "turns[0].criteria[0]"),
        ({"system_prompt": "s", "turns": [{"prompt": "p", "answer": "a", "criteria": 1}]}, "turns[0].criteria"),
    ],
)
def test_bad_dialogues_name_the_turn(row: dict[str, object], field: str) -> None:
    """The field is named down to the turn and the criterion, counted from 0."""
    assert bad(row, "dialogue").field == field


# --- messages --------------------------------------------------------------------------------------

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello", "criteria": ["greets | action"]},
    {"role": "user", "content": [{"type": "text", "text": "Film "}, {"type": "image_url"}, {"text": "ok?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "lookup"},
    {"role": "assistant", "content": "No.", "评估细则": "brief | style"},
]


@pytest.mark.parametrize("messages", [MESSAGES, json.dumps(MESSAGES)], ids=["list", "text"])
def test_messages_as_rag(messages: object) -> None:
    """The last user message is the question, the assistant's last the answer; fields of the row win."""
    sample = sample_from({"messages": messages, "references": ["p"]}, "rag")
    assert isinstance(sample, RagSample)
    assert (sample.question, sample.answer, sample.references) == ("Film ok?", "No.", ("p",))
    assert sample_from({"messages": messages, "answer": "Yes"}, "rag").answer == "Yes"  # type: ignore[union-attr]


def test_messages_as_rag_with_the_answer_beside_them() -> None:
    """Messages that end with the user take their answer from the row's own field."""
    row = {"messages": [{"role": "user", "content": "Q"}], "response": "A"}
    sample = sample_from(row, "rag")
    assert isinstance(sample, RagSample)
    assert (sample.question, sample.answer) == ("Q", "A")


@pytest.mark.parametrize("key", ["messages", "turns", "conversation"])
def test_messages_as_dialogue(key: str) -> None:
    """System becomes the system prompt, user and assistant the turns, criteria ride on the answers."""
    sample = dialogue(**{key: MESSAGES})
    assert sample.system_prompt == "Be brief."
    assert sample.turns == (
        Turn(prompt="Hi", answer="Hello", criteria=("greets | action",)),
        Turn(prompt="Film ok?", answer="No.", criteria=("brief | style",)),
    )
    assert dialogue(**{key: MESSAGES, "system_prompt": "Mine"}).system_prompt == "Mine"


def test_messages_in_a_row_belong_together() -> None:
    """Nothing is dropped when one side speaks twice or the assistant speaks first; a refusal is an answer."""
    turns = dialogue(
        messages=[
            {"role": "developer", "content": "s"},
            {"role": "assistant", "content": "Welcome"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": None, "refusal": "I cannot."},
            {"role": "assistant", "content": "Sorry."},
        ]
    ).turns
    assert turns == (Turn(prompt="", answer="Welcome"), Turn(prompt="a\n\nb", answer="I cannot.\n\nSorry."))


@pytest.mark.parametrize("kind", ["rag", "dialogue"])
@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([*MESSAGES, {"role": "user", "content": "still there?"}], "messages"),
        ([{"role": "narrator", "content": "x"}], "messages[0].role"),
        ([{"role": ["x"], "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        (["hello"], "messages[0]"),
        ({"role": "user"}, "messages"),
    ],
)
def test_bad_messages(kind: str, messages: object, field: str) -> None:
    """An unanswered question, a strange role and missing content are named; nothing is paired across turns."""
    assert str(bad({"messages": messages}, kind).field).startswith(field)
