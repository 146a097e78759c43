"""Files of other tools: what becomes of their records, what is not taken, and what is said about it.

Files named in GENUINE were written by the tool itself (or by its own types) and trimmed; the others were written from
the fields that the tools' sources name.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pytest

import steelyard
from steelyard.errors import ConfigError, InputError, MissingExtra, Surface
from steelyard.judges.scripted import ScriptedJudge
from steelyard.records import DialogueSample, RagSample
from steelyard.samples import ScoredSample, importer_names, read_samples, read_scored
from steelyard.samples.importers import detected, importer_named, inspect_log
from steelyard.samples.importers.base import paths_of

FILES = Path(__file__).parent / "fixtures" / "importers"
NINE, FILM = "It opens at nine.", "大灯不建议贴膜。"


class Read(NamedTuple):
    good: list[ScoredSample]
    bad: list[InputError]
    notes: list[str]

    @property
    def left(self) -> str:
        return next((note.partition("not taken: ")[2] for note in self.notes if "not taken" in note), "")


def read(*files: Path | str, kind: Any = "rag", **how: Any) -> Read:
    notes: list[str] = []
    rows = list(read_scored([str(file) for file in files], kind, on_note=notes.append, **how))
    good = [row for row in rows if isinstance(row, ScoredSample)]
    return Read(good, [row for row in rows if isinstance(row, InputError)], notes)


def scores(one: ScoredSample) -> dict[str, float]:
    return {score.name: score.value for score in one.scores}


# --- each tool, by the answers it gave -------------------------------------------------------------

RAG: list[tuple[str, str, list[dict[str, Any]], str]] = [
    (
        "dify.jsonl.gz",
        "dify",
        [
            {
                "id": "m-1",
                "question": "大灯可以贴膜吗？",
                "answer": "不建议给大灯贴膜。",
                "references": ("大灯贴膜会降低亮度，不建议贴膜。", "贴膜可能违反法规。"),
                "source": {"tool": "dify", "conversation_id": "c-1", "message_id": "m-1", "app_id": "app-1"},
                "scores": {"feedback": 1},
            },
            {"id": "m-2", "scores": {"feedback": 0}},
            {"id": "m-3", "references": (), "scores": {}},
        ],
        "",
    ),
    (
        "ragflow.json",
        "ragflow",
        [
            {
                "id": "sess-1#1",
                "references": (FILM,),
                "source": {"tool": "ragflow", "chat_id": "chat-1", "session_id": "sess-1", "message_id": "q1"},
                "scores": {"feedback": 1},
            },
            {"id": "sess-1#2", "question": "为什么？", "references": ("贴膜降低亮度。",)},
        ],
        "1 × question that nobody answered; 1 × conversation without an answer",
    ),
    (
        "fastgpt_evaluation.csv",
        "fastgpt",
        [
            {
                "answer": "不建议贴膜。",
                "reference_answer": "不建议",
                "scores": {"accuracy": 0.9, "relevance": 1, "semanticAccuracy": 0.8, "score": 0.9},
            }
        ],
        "1 × question that ended in an error",
    ),
    (
        "fastgpt_logs.csv",
        "fastgpt",
        [{"id": "i2", "question": "大灯可以贴膜吗？"}, {"id": "i4", "answer": "会降低亮度。"}],
        "1 × part of type 'tool'; 1 × chat with an odd number of items (the export does not say who speaks)",
    ),
    (
        "coze_items.jsonl",
        "coze",
        [
            {
                "id": "7001",
                "references": (FILM,),
                "reference_answer": "不建议贴膜。",
                "source": {
                    "tool": "coze",
                    "item_id": "7001",
                    "item_key": "k1",
                    "turn_id": "t1",
                    "trace_id": "tr-1",
                },
            }
        ],
        "1 × turn without an answer of the assistant (run an experiment first); 1 × conversation without an answer",
    ),
    ("coze_spans.jsonl", "coze", [{"id": "T1", "references": (FILM,), "scores": {"满意": 1}}], ""),
    (
        "langfuse_observations.jsonl",
        "langfuse",
        [
            {
                "id": "t1",
                "question": "When does the museum open?",
                "answer": NINE,
                "references": ("The museum opens at nine.",),
                "model": "gpt-4o-mini",
                "tags": ("museum",),
                "source": {"tool": "langfuse", "trace_id": "t1", "span_id": "o1", "session_id": "s1"},
            },
            {"id": "t2", "answer": "It is closed.", "references": ()},
        ],
        "1 × trace that failed",
    ),
    ("langfuse_api.jsonl", "langfuse", [{"id": "t1", "answer": NINE, "references": (NINE,)}], ""),
    (
        "phoenix_experiment.json",
        "phoenix",
        [
            {
                "id": "RGF0YQ",
                "references": (FILM,),
                "reference_answer": "不建议",
                "scores": {"correctness": 1, "liked": 0},
            }
        ],
        "1 × run that failed",
    ),
    (
        "openinference.jsonl",
        "phoenix",
        [
            {
                "id": "147c111bb236696af43ea49e23cfbc75",
                "references": (NINE, "Closed on Monday."),
                "source": {
                    "tool": "phoenix",
                    "trace_id": "147c111bb236696af43ea49e23cfbc75",
                    "span_id": "229613b830389cbe",
                    "session_id": "s-1",
                },
            }
        ],
        "",
    ),
    ("otlp.json", "phoenix", [{"answer": NINE, "references": (NINE, "Closed on Monday.")}], ""),
    (
        "mlflow.json",
        "mlflow",
        [
            {
                "question": "When does it open?",
                "references": ("The museum opens at nine.",),
                "reference_answer": "nine",
                "scores": {"correct": 1},
            }
        ],
        "",
    ),
    ("langsmith.jsonl", "langsmith", [{"references": (NINE,), "scores": {"helpfulness": 0.75}}], ""),
    (
        "opik_trace.json",
        "opik",
        [{"id": "0193-t", "references": (NINE,), "scores": {"helpful": 1, "hallucination_metric": 0}}],
        "",
    ),
    ("opik_experiment.json", "opik", [{"id": "T-1", "scores": {"equals": 1}}, {"id": "T-2", "scores": {}}], ""),
    (
        "inspect.json",
        "inspect",
        [
            {
                "id": "opening",
                "references": ("The museum opens at nine.",),
                "reference_answer": "nine",
                "scores": {"includes": 1, "match": 1},
            },
            {"id": "贴膜", "scores": {"includes": 1, "match": 0}},
            {"id": "opening#2", "answer": "At ten."},
            {"id": "贴膜#2", "answer": "可以。"},
        ],
        "",
    ),
    (
        "promptfoo.json",
        "promptfoo",
        [
            {"id": "0-1", "references": (NINE,), "reference_answer": "nine", "model": "echo"},
            {"id": "0-0", "scores": {"pass": 1, "score": 1, "mentions": 1, "icontains": 1}},
            {"id": "1-1", "question": "大灯可以贴膜吗？", "scores": {"pass": 0, "score": 0, "contains": 0}},
            {"id": "1-0"},
        ],
        "",
    ),
    (
        "deepeval.json",
        "deepeval",
        [
            {"id": "opening", "references": (NINE,), "scores": {"Own": 0.75, "Own passed": 1}},
            {"id": "test_case_1", "references": ("不建议贴膜。",), "scores": {"Own": 0.2, "Own passed": 0}},
        ],
        "",
    ),
    (
        "deepeval_conversation.json",
        "deepeval",
        [{"id": "talk#1", "references": ("greet",)}, {"id": "talk#2", "answer": "See you"}],
        "2 × score of a whole conversation (single answers do not have it)",
    ),
    *(
        (
            f"deepeval_saved.{ending}",
            "deepeval",
            [
                {
                    "id": "opening",
                    "references": (NINE, "It is closed on Mondays."),
                    "reference_answer": "nine",
                    "source": {"tool": "deepeval", "golden": "opening"},
                },
                {"question": "大灯可以贴膜吗？", "answer": "可以。", "references": (FILM,), "reference_answer": None},
            ],
            "1 × test case without an actual output",
        )
        for ending in ("jsonl", "csv")
    ),
    (
        "deepeval_saved_conversations.csv",
        "deepeval",
        [{"id": "talk#1", "answer": "Hello\n\nWhat can I do?", "references": ("greet",)}, {"id": "talk#2"}],
        "",
    ),
    (
        "openai_output_items.jsonl",
        "openai-evals",
        [
            {
                "id": "3",
                "references": (NINE,),
                "reference_answer": "nine",
                "scores": {"String check": 1, "String check passed": 1},
            }
        ],
        "",
    ),
    (
        "openai_evals_log.jsonl",
        "openai-evals",
        [{"id": "museum.dev.0", "answer": "不建议贴膜。", "reference_answer": "不建议", "scores": {"correct": 1}}],
        "",
    ),
    ("ragas_multi_turn.jsonl", "ragas", [{"question": "Hi"}, {"answer": "x\n\nSee you"}], "1 × tool message"),
    ("sysbench.json", "sysbench", [{"id": "12#1", "answer": "你好呀，很高兴认识你！"}], ""),
    ("ark.jsonl", "ark", [{"id": "a1", "question": "0+1", "answer": "等于一", "reference_answer": "1"}], "1 × system"),
]
GENUINE = {
    "deepeval.json": "deepeval 4.3.1",
    "deepeval_conversation.json": "deepeval 4.3.1",
    "deepeval_saved.csv": "deepeval 4.3.1",
    "deepeval_saved.jsonl": "deepeval 4.3.1",
    "deepeval_saved_conversations.csv": "deepeval 4.3.1",
    "inspect.json": "inspect_ai 0.3.285",
    "langfuse_api.jsonl": "the types of langfuse 5.0.4",
    "langsmith.jsonl": "the types of langsmith 0.14.17",
    "mlflow.json": "mlflow-skinny 3.17.2",
    "openinference.jsonl": "openinference-instrumentation 0.1.72, OpenTelemetry SDK 1.45.2",
    "otlp.json": "the OTLP encoder of OpenTelemetry 1.45.2",
    "opik_trace.json": "the types and the writer of opik 2.2.122",
    "promptfoo.json": "promptfoo",
    "ragas_multi_turn.jsonl": "ragas 0.4.3",
}


@pytest.mark.parametrize(("name", "tool", "wanted", "left"), RAG, ids=[row[0] for row in RAG])
def test_answers(name: str, tool: str, wanted: list[dict[str, Any]], left: str) -> None:
    """The file is recognised, which is said; every answer is a sample with its passages, ids and scores; what was not
    taken is counted by reason."""
    found = read(FILES / name)
    assert f"read as a file of {importer_named(tool).title}" in found.notes[0]  # type: ignore[union-attr]
    assert len(found.good) == len(wanted)
    for one, expected in zip(found.good, wanted, strict=True):
        assert isinstance(one.sample, RagSample)
        got = {**dict(one.sample), "scores": scores(one)}
        assert {field: got[field] for field in expected} == expected
        assert one.sample.source["tool"] == tool
    assert found.left.startswith(left)
    assert left or not found.left


def test_every_importer_has_a_file() -> None:
    """No tool is promised without a record that is read."""
    tried = {tool for _, tool, _, _ in RAG} | {"huggingface"}
    assert tried == set(importer_names())
    assert {name for name, *_ in RAG} >= GENUINE.keys()


@pytest.mark.parametrize("name", sorted(file.name for file in FILES.iterdir()))
def test_named_is_as_recognised(name: str) -> None:
    """`--from` gives what recognition gives; `plain` reads columns by their names, or says which are missing."""
    tool = next((tool for file, tool, _, _ in RAG if file == name), None)
    if tool:
        named, recognised = read(FILES / name, importer=tool), read(FILES / name)
        assert named.good == recognised.good
        assert [str(bad) for bad in named.bad] == [str(bad) for bad in recognised.bad]
    plain = read(FILES / name, importer="plain")
    assert not any(one.sample.source for one in plain.good)


# --- conversations ---------------------------------------------------------------------------------

DIALOGUES = [
    ("dify.jsonl.gz", "c-1", "", ["大灯可以贴膜吗？", "那贴哪种膜好？"]),
    ("ragflow.json", "sess-1", "", ["大灯可以贴膜吗？", "为什么？"]),
    ("fastgpt_logs.csv", "i1", "", ["大灯可以贴膜吗？", "为什么？"]),
    ("coze_spans.jsonl", "talk-1", "你是车主助手。", ["大灯可以贴膜吗？"]),
    ("langfuse_observations.jsonl", "s1", "You are a guide.", ["When does the museum open?", "And on Monday?"]),
    ("inspect.json", "opening", "You are a guide.", ["When does the museum open?"]),
    ("deepeval_conversation.json", "talk", "", ["Hi", "Bye"]),
    ("deepeval_saved_conversations.csv", "talk", "", ["Hi", "Bye"]),
    ("openai_output_items.jsonl", "3", "You are a guide.", ["When does it open?"]),
    ("ragas_multi_turn.jsonl", None, "", ["Hi", "Bye"]),
    ("sysbench.json", "12", "你是歌手。每次以一句歌词开头，回答不超过50字。", ["你好"]),
]


@pytest.mark.parametrize(("name", "id", "system", "prompts"), DIALOGUES, ids=[row[0] for row in DIALOGUES])
def test_conversations(name: str, id: str | None, system: str, prompts: list[str]) -> None:
    """Where the protocol takes dialogues, a conversation is one sample, with its system prompt if the export has it."""
    found = read(FILES / name, kind="dialogue")
    sample = found.good[0].sample
    assert isinstance(sample, DialogueSample)
    assert (id or sample.id, sample.system_prompt) == (sample.id, system)
    assert [turn.prompt for turn in sample.turns] == prompts
    assert ("system prompt, which the export does not hold" in found.left) == (not system)


def test_sysbench_brings_criteria_and_what_its_judge_said() -> None:
    """Criteria keep their type, and every 是 and 否 is the label of another judge."""
    (one,) = read(FILES / "sysbench.json", kind="dialogue").good
    assert isinstance(one.sample, DialogueSample)
    assert one.sample.turns[0].criteria == ("以一句歌词作为开头 | 内容约束", "不超过50字 | 格式约束")
    assert [(score.value, score.turn, score.item, score.text) for score in one.scores] == [
        (0.0, 1, 1, "以一句歌词作为开头 | 内容约束"),
        (1.0, 1, 2, "不超过50字 | 格式约束"),
    ]


# --- scores and who gave them ----------------------------------------------------------------------


def test_who_gave_a_score() -> None:
    """People are told apart from judges, and from each other."""
    dify = read(FILES / "dify.jsonl.gz").good
    assert [(s.by, s.by_person, s.reason) for s in (*dify[0].scores, *dify[1].scores)] == [
        ("user:u-7", True, "很清楚"),
        ("user:u-8", True, ""),
        ("admin:acc-1", True, "wrong time"),
    ]
    coze = read(FILES / "coze_items.jsonl").good[0]
    assert [(s.value, s.by, s.by_person) for s in coze.scores] == [(0.5, "", False), (1.0, "wang", True)]
    phoenix = read(FILES / "phoenix_experiment.json").good[0]
    assert [(s.name, s.by_person, s.reason) for s in phoenix.scores] == [
        ("correctness", False, "same"),
        ("liked", True, "too short"),
    ]


def test_scores_in_a_file_of_their_own() -> None:
    """Langfuse writes scores beside observations: the files are read together, and what has no number or no trace is
    counted."""
    found = read(FILES / "langfuse_observations.jsonl", FILES / "langfuse_scores.jsonl")
    assert scores(found.good[0]) == {"faithfulness": 0.9, "helpful": 1}
    assert [score.by_person for score in found.good[0].scores] == [False, True]
    assert "1 × score of a trace that is not in the export" in found.left
    assert "1 × score 'tone' that is not a number" in found.left


def test_a_table_of_ragas_results() -> None:
    """Named, its further columns are scores; an empty cell is none."""
    first, second = read(FILES / "ragas_results.csv", importer="ragas").good
    assert scores(first) == {"faithfulness": 1, "answer_relevancy": 0.93}
    assert scores(second) == {"faithfulness": 0}
    assert isinstance(second.sample, RagSample)
    assert second.sample.references == (FILM,)


def test_what_pandas_writes_of_a_ragas_result() -> None:
    """The same scores from a JSON document; a conversation in a cell of a CSV is a Python list. Both are of 0.4.3."""
    found = read(FILES / "ragas_results.json", importer="ragas")
    assert [tuple(scores(one).items()) for one in found.good] == [
        (("exact_match", value), ("string_present", value)) for value in (1, 0, 1)
    ]
    (talk,) = read(FILES / "ragas_conversations.csv", kind="dialogue", importer="ragas").good
    assert isinstance(talk.sample, DialogueSample)
    assert [turn.answer for turn in talk.sample.turns] == ["Hello", "Looking\n\n8 euros"]
    assert scores(talk) == {"tool_call_accuracy": 1}


# --- what cannot be found, and how to say where it is -----------------------------------------------


def test_a_question_that_is_elsewhere(tmp_path: Path) -> None:
    """Where an input has an unknown form, the error says how to map it; the path is that in the tool's own record."""
    found = read(FILES / "langfuse_observations.jsonl", surface=Surface.flags)
    (bad,) = found.bad
    assert (bad.line, bad.field) == (6, "question")
    assert bad.problem.endswith("(name the right one: --from langfuse --map question=COLUMN)")
    row = json.loads((FILES / "langfuse_observations.jsonl").read_text("utf-8").splitlines()[-1])
    row["input"] = {"a": 1, "deep": [{"asked": "Is it open?"}]}
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    (one,) = read(file, importer="langfuse", fields={"question": "input.deep.0.asked"}).good
    assert isinstance(one.sample, RagSample)
    assert (one.sample.question, one.sample.answer) == ("Is it open?", "Yes.")


def test_an_unknown_tool_is_the_callers_mistake() -> None:
    """It is named before anything is read, with those there are."""
    with pytest.raises(ConfigError, match="--from: there is no importer 'dfy'; there are dify, ragflow"):
        read(FILES / "dify.jsonl.gz", importer="dfy", surface=Surface.flags)


def test_our_own_columns_are_nobodys_export() -> None:
    """A file under our own names, or those that are read anyway, is never taken for a tool's."""
    for row in (
        {"id": "1", "question": "q", "answer": "a", "references": ["r"], "tags": ["t"], "model": "m"},
        {"user_input": "q", "response": "a", "retrieved_contexts": [], "reference": "r"},
        {"system_prompt": "s", "turns": [{"prompt": "p", "answer": "a", "criteria": ["c"]}]},
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]},
        {"input": "q", "actual_output": "a", "retrieval_context": ["r"], "expected_output": "e"},
        {"query_id": "0", "query": "q", "gt_answer": "g", "response": "a", "retrieved_context": [{"text": "t"}]},
    ):
        assert detected(paths_of(row)) is None


# --- in memory and by name -------------------------------------------------------------------------


def test_records_in_memory() -> None:
    """`evaluate` recognises lists too, and keeps the ids on its samples."""
    rows = [json.loads(line) for line in gzip.decompress((FILES / "dify.jsonl.gz").read_bytes()).splitlines()]
    results = steelyard.evaluate(rows, "grounded", ScriptedJudge({}))
    assert [sample.source["message_id"] for sample in results.samples] == ["m-1", "m-2", "m-3"]
    assert "read as a file of Dify" in results.notes[0]


@pytest.mark.parametrize("split", [None, "test"])
def test_hugging_face_on_disk(tmp_path: Path, split: str | None) -> None:
    """A saved dataset is read by its path; of several splits one is named."""
    table = datasets.Dataset.from_list([{"id": "1", "question": "q", "answer": "a", "context": ["r"]}])
    path = tmp_path / "set"
    (datasets.DatasetDict({"train": table, "test": table}) if split else table).save_to_disk(str(path))
    if split:
        (bad,) = read(path, importer="huggingface").bad
        assert bad.problem == f"has the splits train, test; name one: {path}:train"
    (one,) = read(f"{path}:{split}" if split else path, importer="huggingface").good
    assert one.sample == RagSample(
        id="1", question="q", answer="a", references=("r",), source={"tool": "huggingface", "row_id": "1"}
    )


# --- hostile files ---------------------------------------------------------------------------------


if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401  (teaches zipfile to write what Inspect writes)


def archive(path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return path


def inspect_samples() -> dict[str, bytes]:
    samples = json.loads((FILES / "inspect.json").read_text("utf-8"))["samples"]
    return {f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode() for one in samples}


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, inspect_log.ZSTD])
def test_an_archive_of_inspect(tmp_path: Path, packing: int) -> None:
    """An `.eval` archive gives what the JSON log gives, whichever way it is packed, and only its samples are read."""
    others = {"header.json": b"{", "_journal/start.json": b"{", "summaries.json": b"["}
    file = archive(tmp_path / "log.eval", inspect_samples() | others, packing)
    assert [one.sample for one in read(file).good] == [one.sample for one in read(FILES / "inspect.json").good]


def test_zstandard_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.14 a package is needed for it: the error names it."""
    file = archive(tmp_path / "log.eval", inspect_samples(), inspect_log.ZSTD)
    monkeypatch.setattr(inspect_log, "_reads_zstd", lambda: False)
    with pytest.raises(MissingExtra, match=r"Zstandard, needs zipfile-zstd: pip install 'steelyard\[inspect\]'"):
        read(file)


def test_an_archive_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb is read to its bound and no further; the others are read."""
    monkeypatch.setattr(inspect_log, "MOST_BYTES", 100_000)
    members = inspect_samples()
    file = archive(tmp_path / "log.eval", {"samples/bomb.json": b'"' + b"0" * 10_000_000 + b'"'} | members)
    found = read(file)
    assert len(found.good) == len(members)
    (bad,) = found.bad
    assert "samples/bomb.json:1: unpacks to more than 100,000 bytes" in str(bad)


def test_names_in_an_archive_are_only_names(tmp_path: Path) -> None:
    """Members that point elsewhere are not read, and nothing is ever written."""
    file = archive(tmp_path / "log.eval", {"samples/../../evil.json": b"{}", "/etc/samples/x.json": b"{}"})
    before = sorted(tmp_path.rglob("*"))
    assert read(file)[:2] == ([], [])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 but broken", b"not an archive"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    """A file that is called .eval and is none is one bad row that says so."""
    file = tmp_path / "log.eval"
    file.write_bytes(content)
    (bad,) = read(file).bad
    assert "is not an .eval log that can be read" in bad.problem


def wrong(value: Any) -> list[Any]:
    """The same record with each part replaced by something of another type."""
    odd: tuple[Any, ...] = (None, 7, "text", [], {}, [None], {"role": 3}, True, [[["deep"]]])
    if isinstance(value, dict):
        return [{**value, key: other} for key in value for other in (*odd, *wrong(value[key])[:12])]
    if isinstance(value, list) and value:
        return [[other, *value[1:]] for other in (*odd, *wrong(value[0])[:12])]
    return list(odd)


@pytest.mark.parametrize("name", sorted(row[0] for row in RAG if not row[0].endswith(".csv")))
def test_wrong_types_never_break_the_reading(tmp_path: Path, name: str) -> None:
    """Whatever stands where a text, list or object is expected: a sample, a bad row or a note, never an exception."""
    tool = next(tool for file, tool, _, _ in RAG if file == name)
    raw = (FILES / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    document = json.loads(text) if name.endswith(".json") else json.loads(text.splitlines()[-1])
    file = tmp_path / "in.jsonl"
    records = document if isinstance(document, list) else [document]
    file.write_text("".join(json.dumps(one) + "\n" for one in wrong(records[0])), encoding="utf-8")
    for kind in ("rag", "dialogue"):
        for one in read(file, kind=kind, importer=tool).bad:
            assert one.file
            assert one.line


@pytest.mark.parametrize("tool", [name for name in importer_names() if name != "huggingface"])
def test_deep_and_foreign_records(tmp_path: Path, tool: str) -> None:
    """Thousands of levels, a list of numbers and somebody else's object are bad rows or notes."""
    deep = '{"id": "1", "trace_id": "1", "input": ' + "[" * 400 + "]" * 400 + ', "output": "a"}'
    deeper = '{"a": ' * 100_000 + "1" + "}" * 100_000
    file = tmp_path / "in.jsonl"
    file.write_text(f'{deep}\n{deeper}\n[1, 2]\n{{"hello": "world"}}\n', encoding="utf-8")
    for kind in ("rag", "dialogue"):
        found = read(file, kind=kind, importer=tool)
        assert found.good == []
        assert any("not JSON that can be read" in bad.problem for bad in found.bad)


def test_many_spans_take_little_memory(tmp_path: Path) -> None:
    """The spans of a trace may lie far apart; they wait on disk."""
    file = tmp_path / "spans.jsonl"
    with file.open("w") as out:
        for part in ("retriever", "root"):
            for n in range(2_000):
                row = {"id": f"{part}{n}", "trace_id": f"t{n}", "type": "SPAN", "start_time": "1", "name": "x"}
                more = {"parent_observation_id": None, "input": f"q{n}", "output": "a"}
                if part == "retriever":
                    more = {"parent_observation_id": f"root{n}", "type": "RETRIEVER", "input": "", "output": [f"p{n}"]}
                out.write(json.dumps(row | more) + "\n")
    found = list(read_samples([file], "rag"))
    assert len(found) == 2_000
    assert isinstance(found[-1], RagSample)
    assert (found[-1].id, found[-1].references) == ("t1999", ("p1999",))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes through a pipe is recognised by its first row."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((FILES / "dify.jsonl.gz").read_bytes())))
    assert [one.sample.id for one in read("-").good] == ["m-1", "m-2", "m-3"]
