"""Samples in: every format, every name people use for a field, and every way a row can be bad."""

from __future__ import annotations

import codecs
import contextlib
import datetime
import gzip
import io
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import ConfigError, InputError, MissingExtra, StoreError
from steelyard.records import DialogueSample, RagSample, Sample, Turn
from steelyard.samples import known_fields, read_samples, sample_from, samples_from
from steelyard.samples.documents import elements
from steelyard.samples.files import Place
from steelyard.samples.ids import Ids
from steelyard.samples.literals import parsed

ROW = {"id": "a", "question": "大灯是否可以贴膜", "references": ["会变暗。"], "answer": "不建议。"}
TRAY = (
    r'[["理想L9座椅配置 第二排小桌板 标配\",\"理想L9的第二排右侧座椅是配备了小桌板和腿托。\",'
    r"\"第二排右侧座椅配备小桌板。可以通过以下方式打开：\\n① 按压小桌板开关，解锁小桌板。 "
    r'\\n② 向下翻开小桌板至使用位置。可在小桌板上临时办公、用餐等。 "]]'
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def rag(**row: object) -> RagSample:
    sample = sample_from({"question": "q", "answer": "a"} | row, "rag")
    assert isinstance(sample, RagSample)
    return sample


def dialogue(**row: object) -> DialogueSample:
    sample = sample_from(row, "dialogue")
    assert isinstance(sample, DialogueSample)
    return sample


def bad(row: object, kind: str = "rag", **fields: str) -> InputError:
    with pytest.raises(InputError) as caught:
        sample_from(row, kind, fields=fields)  # type: ignore[arg-type]
    return caught.value


def write(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(*paths: Path | str, kind: str = "rag", **options: object) -> list[Sample | InputError]:
    return list(read_samples(list(paths), kind, **options))  # type: ignore[arg-type]


def good(rows: list[Sample | InputError]) -> list[Sample]:
    assert not [str(row) for row in rows if isinstance(row, InputError)]
    return [row for row in rows if not isinstance(row, InputError)]


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
    assert "--map answer=" in error.problem
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
        ({"answer": "a"}, "question", "--map question=COLUMN"),
        ({}, "question", "no fields"),
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

SEED_DIALOGUE = {
    "system_prompt": "你是一个狂躁的面试官。",
    "待评估对话": [
        {"prompt": "你好", "answer": "啦啦啦", "评估细则": ["以一句歌词作为开头 | 内容约束", "自我介绍 | 动作约束"]},
        {"prompt": "嗯", "answer": "", "评估细则": "风格是狂躁的 | 风格约束\n()中含有表情 | 内容约束"},
    ],
}


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


# --- files -----------------------------------------------------------------------------------------

ROWS = [
    {"id": str(n), "question": f"问题{n}", "answer": f"答{n}\n第二行", "references": ["p", f"段{n}"]}
    for n in range(1, 6)
]
EXPECTED = [
    RagSample(id=str(n), question=f"问题{n}", answer=f"答{n}\n第二行", references=("p", f"段{n}")) for n in range(1, 6)
]


def csv_text(rows: list[dict[str, object]], delimiter: str = ",") -> str:
    import csv

    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for k, v in row.items()})
    return out.getvalue()


JSONL = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
CONTENTS = {
    "a.jsonl": JSONL,
    "a.ndjson": JSONL + "\n\n",
    "crlf.jsonl": JSONL.replace("\n", "\r\n"),
    "a.json": json.dumps(ROWS),
    "pretty.json": json.dumps(ROWS, indent=2, ensure_ascii=False),
    "lines.json": JSONL,
    "array.jsonl": json.dumps(ROWS, indent=1),
    "samples.json": json.dumps({"version": 1, "meta": {"data": []}, "samples": ROWS}),
    "data.json": json.dumps({"data": ROWS}, indent=2),
    "seed.json": json.dumps({"评估数据": ROWS}, ensure_ascii=False),
    "a.csv": csv_text(ROWS),
    "semicolon.csv": csv_text(ROWS, ";"),
    "a.tsv": csv_text(ROWS, "\t"),
    "CAPS.CSV": csv_text(ROWS),
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("bom", [False, True], ids=["", "bom"])
@pytest.mark.parametrize("name", CONTENTS)
def test_text_formats(tmp_path: Path, name: str, bom: bool, zipped: bool) -> None:
    """Every text format gives the same samples, also gzipped, with a byte order mark, or under another's suffix."""
    data = (codecs.BOM_UTF8 if bom else b"") + CONTENTS[name].encode()
    path = tmp_path / (name + ".gz" if zipped else name)
    path.write_bytes(gzip.compress(data) if zipped else data)
    assert good(read(path)) == EXPECTED


def test_parquet(tmp_path: Path) -> None:
    """Parquet rows come with lists, dates and numbers as Python values; bad ones by their row number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    days = [datetime.date(2024, 1, n) for n in range(1, 6)]
    table = pa.Table.from_pylist(
        [row | {"date": day, "id": n} for n, (row, day) in enumerate(zip(ROWS, days, strict=True))]
    )
    pq.write_table(table, tmp_path / "a.parquet")
    samples = good(read(tmp_path / "a.parquet"))
    assert [s.id for s in samples] == ["0", "1", "2", "3", "4"]
    assert samples[4].references == ("p", "段5")  # type: ignore[union-attr]
    assert samples[4].date == "2024-01-05"  # type: ignore[union-attr]

    pq.write_table(pa.table({"question": ["q", "q"], "answer": ["a", None]}), tmp_path / "b.parquet")
    _, error = read(tmp_path / "b.parquet")
    assert isinstance(error, InputError)
    assert (error.line, error.field) == (2, "answer")
    assert str(error).endswith("(row 2)")

    write(tmp_path / "c.parquet", "PAR1 but not really")
    (error,) = read(tmp_path / "c.parquet")
    assert isinstance(error, InputError)
    assert "not Parquet" in str(error)


def test_parquet_without_pyarrow(tmp_path: Path) -> None:
    """Without pyarrow the error names the extra to install, before anything is read."""
    code = """
        import sys; sys.modules["pyarrow"] = None
        import importlib.util as u; find = u.find_spec
        u.find_spec = lambda name, *rest: None if name == "pyarrow" else find(name, *rest)
        from steelyard.errors import MissingExtra
        from steelyard.samples import read_samples
        try: read_samples(["a.jsonl", "b.parquet"], "rag")
        except MissingExtra as error: print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "pip install 'steelyard[parquet]'" in done.stdout
    assert issubclass(MissingExtra, Exception)


def test_a_single_object_is_a_sample(tmp_path: Path) -> None:
    """A JSON file may be one sample, also under the seed's own heading."""
    assert good(read(write(tmp_path / "one.json", json.dumps(ROW, indent=2))))[0].id == "a"
    assert good(read(write(tmp_path / "items.json", json.dumps(ROW | {"items": [1]}, indent=2))))[0].id == "a"
    path = write(tmp_path / "seed.json", json.dumps({"评估数据": SEED_DIALOGUE}, ensure_ascii=False, indent=2))
    (sample,) = good(read(path, kind="dialogue"))
    assert isinstance(sample, DialogueSample)
    assert len(sample.turns) == 2


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.jsonl.gz"])
def test_an_empty_file_has_no_samples(tmp_path: Path, name: str, content: str) -> None:
    """Nothing in, nothing out."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read(tmp_path / name) == []


def stdin_read(data: bytes, *options: str) -> list[str]:
    code = f"""
        from steelyard.samples import read_samples
        for row in read_samples(["-"], "rag", {", ".join(options)}):
            print(getattr(row, "id", None) or row)
        import sys; assert not sys.stdin.buffer.closed
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], input=data, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


@pytest.mark.parametrize("name", ["a.jsonl", "pretty.json", "data.json", "a.csv", "a.tsv"])
def test_standard_input_is_recognised(name: str) -> None:
    """`-` finds out what it is given, zipped or not."""
    ids = ["1", "2", "3", "4", "5"]
    assert stdin_read(CONTENTS[name].encode()) == ids
    assert stdin_read(gzip.compress(CONTENTS[name].encode())) == ids


def test_standard_input_errors_and_format() -> None:
    """Errors on standard input say so; a format can be given; Parquet cannot come through a pipe."""
    assert stdin_read(b'{"question": "q"}\n')[0].startswith("stdin:1: answer: not in this row")
    assert stdin_read(b"[1]", "format='jsonl'")[0].startswith("stdin:1: expected an object")
    assert "pipe" in stdin_read(b"PAR1", "format='parquet'")[0]


# --- bad files, bad rows ---------------------------------------------------------------------------


def test_bad_lines_do_not_stop_the_rest(tmp_path: Path) -> None:
    """Every bad line of a JSONL file is reported with file, line and field, in its place."""
    path = write(tmp_path / "a.jsonl", ROW, "", "{broken", "[1]", "7", {"question": "q"}, ROW | {"id": "b"})
    rows = read(path)
    assert [row.id for row in rows if not isinstance(row, InputError)] == ["a", "b"]
    errors = [row for row in rows if isinstance(row, InputError)]
    assert [(e.file, e.line, e.field) for e in errors] == [
        (str(path), line, field) for line, field in ((3, None), (4, None), (5, None), (6, "answer"))
    ]
    assert str(errors[0]).startswith(f"{path}:3: not JSON: ")
    assert all(error.__traceback__ is None for error in errors)


def test_bad_encoding_costs_one_row(tmp_path: Path) -> None:
    """Undecodable bytes spoil the row they stand in, in every text format, and the message helps."""
    spoilt = "坏".encode("gb18030")
    (tmp_path / "a.jsonl").write_bytes(JSONL.encode().replace("答2".encode(), spoilt))
    (tmp_path / "a.json").write_bytes(json.dumps(ROWS, ensure_ascii=False).encode().replace("答2".encode(), spoilt))
    (tmp_path / "a.csv").write_bytes(csv_text(ROWS).encode().replace("答2".encode(), spoilt))
    for name, line in (("a.jsonl", 2), ("a.json", 2), ("a.csv", 4)):
        rows = read(tmp_path / name)
        (error,) = [row for row in rows if isinstance(row, InputError)]
        assert [row for row in rows if not isinstance(row, InputError)] == [EXPECTED[0], *EXPECTED[2:]]
        assert error.line == line
        assert "--encoding" in str(error)
    assert error.field == "answer"


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["a.jsonl", "pretty.json", "a.csv"])
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    """A named encoding is used; UTF-16 with its mark is recognised without being named."""
    (tmp_path / name).write_bytes(CONTENTS[name].encode(encoding))
    assert good(read(tmp_path / name, encoding=encoding)) == EXPECTED
    if encoding == "utf-16":
        assert good(read(tmp_path / name)) == EXPECTED


def test_broken_utf16_is_an_error(tmp_path: Path) -> None:
    """An encoding that cannot go on after an error ends the file with one, and says which."""
    (tmp_path / "a.jsonl").write_bytes(codecs.BOM_UTF16_LE + b"\x00\xdc\x00")
    (error,) = read(tmp_path / "a.jsonl", encoding="utf-16")
    assert "utf-16" in str(error)


@pytest.mark.parametrize("options", [{"encoding": "klingon"}, {"encoding": "hex"}, {"format": "xlsx"}])
def test_unknown_options_raise_at_once(options: dict[str, str]) -> None:
    """An encoding or format that does not exist is the caller's mistake, told before reading."""
    with pytest.raises(ConfigError, match=f"unknown .*{next(iter(options.values()))}"):
        read_samples(["a.jsonl"], "rag", **options)  # type: ignore[arg-type]


def test_unreadable_files_are_values(tmp_path: Path) -> None:
    """A missing file, a folder, an unknown suffix and a cut gzip are reported, and the others are read."""
    (tmp_path / "dir.jsonl").mkdir()
    write(tmp_path / "a.xlsx", "x")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(JSONL.encode() * 9)[:-20])
    rows = read(
        tmp_path / "none.jsonl",
        tmp_path / "dir.jsonl",
        tmp_path / "a.xlsx",
        write(tmp_path / "a.jsonl", ROW),
        tmp_path / "cut.jsonl.gz",
    )
    said = [str(row) for row in rows if isinstance(row, InputError)]
    assert said[0] == f"{tmp_path / 'none.jsonl'}: no such file"
    assert said[1].startswith(f"{tmp_path / 'dir.jsonl'}: cannot be read: ")
    assert "--format" in said[2]
    assert f"{tmp_path / 'cut.jsonl.gz'}: cannot be read" in said[-1]
    assert rows[3] == RagSample(**ROW)  # type: ignore[arg-type]


def test_a_path_alone_is_one_source(tmp_path: Path) -> None:
    """A single name instead of a list is not taken apart into letters."""
    path = write(tmp_path / "a.jsonl", ROW)
    assert len(good(list(read_samples(str(path), "rag")))) == 1
    assert len(good(list(read_samples(path, "rag")))) == 1  # type: ignore[arg-type]


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    """`--format` reads a file of any name."""
    assert good(read(write(tmp_path / "export.txt", JSONL), format="jsonl")) == EXPECTED


def test_truncated_array_keeps_what_was_whole(tmp_path: Path) -> None:
    """A JSON array that breaks off gives its whole elements, then one error that counts on."""
    text = json.dumps(ROWS, ensure_ascii=False)
    for end in (text.index('"id": "4"'), text.index("段3") + 1):
        rows = read(write(tmp_path / "a.json", text[:end]))
        whole = EXPECTED[: len(rows) - 1]
        assert rows[:-1] == whole
        assert isinstance(rows[-1], InputError)
        assert rows[-1].line == len(whole) + 1
        assert f"(item {len(whole) + 1})" in str(rows[-1])


def test_array_elements_are_counted(tmp_path: Path) -> None:
    """In a JSON array the number is the element's, and the message says so."""
    rows = read(write(tmp_path / "a.json", json.dumps([ROW, 5, {"question": "q"}, ROW | {"id": "z"}])))
    assert str(rows[1]).endswith("got a number (item 2)")
    assert isinstance(rows[2], InputError)
    assert (rows[2].line, rows[2].field) == (3, "answer")
    assert not isinstance(rows[3], InputError)


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_strange_characters(tmp_path: Path, suffix: str) -> None:
    """NUL, control characters and lone surrogates in JSON strings neither crash nor get lost."""
    escapes = r"\ud800 \ud83d\ude00 \\ud800 \u0000 \udc00\ud800 " + "\x00\x07‮"
    line = '{"question": "q", "answer": "' + escapes + '"}'
    (sample,) = good(read(write(tmp_path / f"a.{suffix}", f"[{line}]" if suffix == "json" else line)))
    assert sample.answer == "\ufffd 😀 \\ud800 \x00 \ufffd\ufffd \x00\x07‮"  # type: ignore[union-attr]


class Dribble(io.StringIO):
    """A stream that hands out a few characters at a time."""

    step = 1

    def read(self, size: int | None = -1) -> str:
        return super().read(self.step)


PIECES = st.sampled_from([r"\ud83d\ude00", r"\ud800", r"\udc00", r"\\", r"\n", r"\u0041", r"\"", "x", "长", "ud800"])


@given(st.lists(PIECES).map("".join), st.integers(1, 20))
def test_escapes_survive_any_chunk_boundary(escaped: str, step: int) -> None:
    """However a document is cut into reads, its strings are what `json` makes of them."""
    text = Dribble(f'[["{escaped}"], {{"a": "{escaped}"}}]')
    text.step = step
    expected = re.sub("[\ud800-\udfff]", "\ufffd", json.loads(f'"{escaped}"'))
    assert list(elements(text)) == [([expected], False), ({"a": expected}, False)]


def test_csv_counts_the_line_a_row_starts_on(tmp_path: Path) -> None:
    """Embedded newlines do not shift the numbers; short, long and badly quoted rows are named."""
    text = 'question,answer\r\n"a\nb\nc",x\r\nonly\r\nq,a,surplus\r\n,,,\r\nq,"a"b\r\nq2,\r\n"never closed,x\r\ny'
    (tmp_path / "a.csv").write_text(text, newline="")
    rows = read(tmp_path / "a.csv")
    assert [(e.line, e.field) for e in rows if isinstance(e, InputError)] == [
        (5, "answer"),
        (6, None),
        (8, None),
        (10, None),
    ]
    assert [r.answer for r in rows if isinstance(r, RagSample)] == ["x", ""]
    assert "never closed" in str(rows[-1])


def test_csv_with_huge_cells_and_nul(tmp_path: Path) -> None:
    """A cell of a megabyte and a NUL byte are read."""
    big = "长" * 400_000 + "\x00"
    (tmp_path / "a.csv").write_text(csv_text([{"question": "q", "answer": big}]), encoding="utf-8", newline="")
    assert good(read(tmp_path / "a.csv"))[0].answer == big  # type: ignore[union-attr]


def test_csv_with_two_equal_columns(tmp_path: Path) -> None:
    """Two columns of one name would hide each other, so the file is refused."""
    rows = read(write(tmp_path / "a.csv", "question,answer,answer", "q,a,b"))
    assert len(rows) == 1
    assert "same name: answer" in str(rows[0])


def test_csv_dialogue(tmp_path: Path) -> None:
    """Turns stand in a CSV cell as JSON."""
    turns = json.dumps(SEED_DIALOGUE["待评估对话"], ensure_ascii=False)
    row: dict[str, object] = {"system_prompt": "s\nt", "turns": turns, "tags": "a,b"}
    (tmp_path / "a.csv").write_text(csv_text([row]), encoding="utf-8", newline="")
    (sample,) = good(read(tmp_path / "a.csv", kind="dialogue"))
    assert isinstance(sample, DialogueSample)
    assert len(sample.turns) == 2
    assert sample.tags == ("a", "b")


# --- ids -------------------------------------------------------------------------------------------


def test_derived_ids_follow_the_content() -> None:
    """The same content has the same id everywhere, whatever its columns are called; other content another."""
    first = rag(question="大灯是否可以贴膜", references=["会变暗。"], answer="不建议。")
    assert first.id == rag(user_input="大灯是否可以贴膜", question=None, contexts="['会变暗。']", answer="不建议。").id
    assert first.id == "90c02a4aee71"
    assert first.id != rag(question="大灯是否可以贴膜", references=["会变暗。"], answer="建议。").id
    assert rag(id="").id == rag(id=None).id == rag().id


@pytest.mark.parametrize(("given_id", "expected"), [(7, "7"), (7.0, "7"), (" x ", " x "), (10**30, "1" + "0" * 30)])
def test_given_ids_become_text(given_id: object, expected: str, tmp_path: Path) -> None:
    """Numbers become text, also large ones, and in every reader alike."""
    assert rag(id=given_id).id == expected
    row = {"id": given_id, "question": "q", "answer": "a"}
    assert good(read(write(tmp_path / "a.json", json.dumps([row]))))[0].id == expected


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_number_of_a_billion_digits_is_not_written_out(tmp_path: Path, suffix: str) -> None:
    """An id like 1e999999999 costs neither time nor memory."""
    (sample,) = good(read(write(tmp_path / f"a.{suffix}", '{"id": 1e999999999, "question": "q", "answer": "a"}')))
    assert sample.id == "inf"


def test_a_second_use_of_an_id_is_an_error(tmp_path: Path) -> None:
    """A repeated id is reported with the place of its first use, also from another file."""
    a = write(
        tmp_path / "a.jsonl", "", {"id": 1, "question": "q", "answer": "a"}, {"id": "1", "question": "q", "answer": "b"}
    )
    b = write(tmp_path / "b.jsonl", ROW, {"id": "1", "question": "q", "answer": "c"}, ROW)
    rows = read(a, b)
    said = [str(row) for row in rows if isinstance(row, InputError)]
    assert said == [
        f"{a}:3: id: '1' was used on line 2 already; ids must differ",
        f"{b}:2: id: '1' was used on line 2 of {a} already; ids must differ",
        f"{b}:3: id: 'a' was used on line 1 already; ids must differ",
    ]


def test_equal_rows_without_ids_are_all_kept(tmp_path: Path) -> None:
    """Equal rows are all judged; their derived ids get -2, -3 and stay unique."""
    row = {"question": "q", "answer": "a"}
    samples = good(read(write(tmp_path / "a.jsonl", *[row] * 40)))
    stem = rag().id
    assert [s.id for s in samples] == [stem, *(f"{stem}-{n}" for n in range(2, 41))]


def test_mappings_in_memory_get_the_same_care() -> None:
    """`samples_from` reads dicts like rows: errors in their place, ids unique."""
    rows = list(
        samples_from([{"question": "q", "answer": "a"}, {"question": "q"}, {"question": "q", "answer": "a"}], "rag")
    )
    assert isinstance(rows[1], InputError)
    assert str(rows[1]).endswith("(item 2)")
    assert [r.id for r in rows if not isinstance(r, InputError)] == [rag().id, f"{rag().id}-2"]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9), st.text(max_size=2))))
def test_ids_agree_with_a_dict(claims: list[tuple[str, int, str]]) -> None:
    """The compact table says of every id where it was first used, as a dict would."""
    first = dict[str, Place]()
    counted = {file: 0 for file, _, _ in claims}
    with Ids() as ids:
        for file, step, id in sorted(claims, key=lambda claim: claim[0]):
            counted[file] += step
            place = Place(file, counted[file], "line")
            assert ids.claim(id, place) == first.get(id)
            first.setdefault(id, place)
            assert id in ids


def test_ids_take_no_memory() -> None:
    """Three hundred thousand ids take less than ten bytes each, as they lie in a file; none is mistaken for another."""
    code = """
        import resource
        from steelyard.samples.files import Place
        from steelyard.samples.ids import Ids

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        count, step = 300_000, 7919
        with Ids() as ids:
            for n in range(count):
                assert ids.claim(f"{n * step % count:032x}", Place("f", n + 1, "line")) is None
                if n == 100:
                    before = peak()
            assert ids.claim(f"{step:032x}", Place("f", count + 1, "line")) == Place("f", 2, "line")
            assert f"{count:032x}" not in ids
            assert peak() - before < 10 * count, (peak(), before)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_ids_that_find_no_room_are_an_error_that_says_what_to_do() -> None:
    """A temporary folder that cannot be written to ends in one line, not in a traceback of SQLite."""
    with Ids() as ids:
        ids._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="TMPDIR"):
            all(ids.claim(f"{n:032}", Place("f", n + 1, "line")) is None for n in range(10_000))


# --- size ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_memory_stays_flat(tmp_path: Path, suffix: str) -> None:
    """Reading a file ten times as long takes hardly more memory; rows are never gathered."""
    code = """
        import csv, json, resource, sys
        from pathlib import Path
        from steelyard.samples import read_samples
        folder, suffix = Path(sys.argv[1]), sys.argv[2]

        def rows(n):
            return ({"id": i, "question": f"问题{i}", "answer": "答" * 300, "note": "x" * 2000} for i in range(n))

        def write(path, n):
            if suffix == "parquet":
                import pyarrow as pa, pyarrow.parquet as pq
                first = pa.Table.from_pylist(list(rows(1)))
                with pq.ParquetWriter(path, first.schema, compression="none", use_dictionary=False) as out:
                    for start in range(0, n, 500):
                        part = [row | {"id": start + row["id"]} for row in rows(500)]
                        out.write_table(pa.Table.from_pylist(part, first.schema))
                return
            with open(path, "w", encoding="utf-8", newline="") as out:
                if suffix == "csv":
                    table = csv.DictWriter(out, ["id", "question", "answer", "note"])
                    table.writeheader()
                    for row in rows(n): table.writerow(row)
                else:
                    for i, row in enumerate(rows(n)):
                        out.write("" if suffix == "jsonl" else "," if i else "[")
                        out.write(json.dumps(row) + "\\n")
                    if suffix == "json": out.write("]")

        def peak(n):
            path = folder / f"{n}.{suffix}"
            write(path, n)
            assert sum(not isinstance(s, Exception) for s in read_samples([path], "rag")) == n
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        small, large = peak(1000), peak(10_000)
        print(large - small, (folder / f"10000.{suffix}").stat().st_size // 1024)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), suffix],
        capture_output=True,
        text=True,
        check=True,
    )
    grown, size = map(int, done.stdout.split())
    assert size > 25_000
    assert grown < 10_000
