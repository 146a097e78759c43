"""How sure a judge is of a label: from the reply to the item, the table, the page, and from the tokens of a model."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from command import Steelyard, facts, judge_facts, lines_of, point_to
from court import one, scripted
from endpoint import Loopback, Say, spelled
from feeding import RAG, TALK
from steelyard import evaluate
from steelyard.judges import ChatJudge, PanelJudge, RecordedJudge, Recorder, VerifyingJudge
from steelyard.judges.logprobs import tokens_of, with_confidence
from steelyard.judges.parsing import read
from steelyard.judges.schema import strict_schema
from steelyard.prompts import Prompts, nonce
from steelyard.records import Ask, Criterion, Numbered, Reply, ReplyData, Unjudged, Verdict
from steelyard.reports.html import Lowest, render
from steelyard.reports.sample import sample_markdown
from steelyard.tasks import TASKS, AtomicData, AtomicReply, LabelledReply

ASK = Ask(
    task="atomic.judge",
    language="zh",
    data=AtomicData(
        question="几层？",
        references=("自习室在第二层，共有120个座位。",),
        answer="在第二层。有120个座位。",
        date="2026-03-02",
        place="未提供",
        atoms=(Numbered(id=1, text="自习室在第二层"), Numbered(id=2, text="自习室有120个座位")),
    ),
    reply=AtomicReply,
)


def atom(id: int, label: str = "correct", **more: Any) -> dict[str, Any]:
    quote = "自习室在第二层" if id == 1 else "共有120个座位"
    return {"id": id, "quote": quote, "reason": "资料写明“第二层”", "label": label, "level": 1} | more


def asked(server: Loopback, ask: Ask = ASK, **settings: Any) -> Reply | Unjudged:
    async def ask_it() -> Reply | Unjudged:
        judge = ChatJudge(server.endpoint(**settings), Prompts.shipped())
        try:
            return await judge.answer(ask)
        finally:
            await judge.aclose()

    return asyncio.run(ask_it())


def sureness(reply: Reply | Unjudged, name: str = "atoms") -> list[float | None]:
    assert isinstance(reply, Reply), reply
    return [label.confidence for label in getattr(reply.data, name)]


# --- what a judge says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_no_model_is_asked_for_it(task: str) -> None:
    """Neither schema nor prompt mentions it, and an item without one is written as before."""
    _, reply = TASKS[task]
    assert "confidence" not in json.dumps(strict_schema(reply))
    for field in reply.model_fields.values():
        for kind in getattr(field.annotation, "__args__", ()):
            if isinstance(kind, type) and issubclass(kind, LabelledReply):
                assert "confidence" not in kind.model_construct().model_dump()


@pytest.mark.parametrize("said", [1.0, "high", None, [0.9]])
def test_no_text_can_set_it(said: object) -> None:
    """A model that writes one of its own is neither believed nor corrected."""
    text = json.dumps({"code": "abc", "atoms": [atom(1, confidence=said)], "fallback": False}, ensure_ascii=False)
    data = read(text, AtomicReply, "abc")
    assert isinstance(data, AtomicReply)
    assert data.atoms[0].confidence is None


@pytest.mark.parametrize(
    ("protocol", "changes", "expected"),
    [
        ("atomic", {"atoms": {1: {"confidence": 0.87654}}}, [0.8765, None]),
        ("grounded", {"checks": {1: {"confidence": 0.7}},
                      "sentences": {1: {"confidence": 0.6}, 2: {"confidence": 0.9}}},
         [0.6, 0.7, None, None, None, None, None, None]),
        ("scorecard", {"sentences": {2: {"confidence": 0.5}}, "key_points": {1: {"confidence": 0.4}},
                       "atoms": {1: {"confidence": 0.3}}}, [None, 0.5, 0.4, 0.3, None]),
        ("dialogue", {"criteria": {1: {"confidence": 0.8}}}, [0.8, None, None, None]),
    ],
)  # fmt: skip
def test_every_item_keeps_it(protocol: str, changes: Mapping[str, Any], expected: list[float | None]) -> None:
    """What the judge gave stands beside the label, in the verdict and in its result line; else there is nothing."""
    verdict = one(scripted("sure", changes), protocol)
    assert [item.confidence for item in verdict.items] == expected
    assert [item.get("confidence") for item in verdict.line()["items"]] == expected
    kinds = {item.confidence_kind for item in verdict.items if item.confidence is not None}
    assert kinds == {"probability"}
    assert Verdict.model_validate(json.loads(verdict.model_dump_json())) == verdict


def test_a_sentence_outside_the_background_decides_alone() -> None:
    """The check fails as surely as the surest such sentence; it passes as surely as the least sure one."""
    outside = {"sentences": {1: {"label": "outside", "confidence": 0.9}, 2: {"confidence": 0.2}}}
    check = one(scripted("sure", outside), "grounded").items[0]
    assert (check.label, check.confidence) == (0, 0.9)  # type: ignore[union-attr]
    assert [part.confidence for part in check.parts] == [0.9, 0.2]  # type: ignore[union-attr]


def test_what_code_made_of_a_label_has_none() -> None:
    """The probability is that of the judge's label; where a rule turns it, nobody gave one for what stands there."""
    given = {"atoms": {1: {"confidence": 0.9, "source": "own_knowledge"}, 2: {"confidence": 0.8}}}
    (verdict,) = evaluate([RAG], protocol="atomic", judge=scripted("sure", given), options={"strict": True})
    assert [(item.label, item.confidence) for item in verdict.items] == [  # type: ignore[union-attr]
        ("undetermined", None),
        ("correct", 0.8),
    ]


def test_validity_and_compliance_have_their_own() -> None:
    """A criterion's confidence is that of its label; how sure its validity is stands beside it."""
    judge = scripted("sure", {"criteria": {1: {"confidence": 0.8}, 2: {"confidence": 0.7, "valid": False}}})
    (verdict,) = evaluate([TALK], protocol="dialogue", judge=judge)
    criteria = [item for item in verdict.items if isinstance(item, Criterion)]
    told = [(item.validity, item.validity_confidence, item.label, item.confidence) for item in criteria[:2]]
    assert told == [("valid", 0.8, "satisfied", 0.8), ("invalid", 0.7, "undetermined", 0.7)]


def test_votes_are_not_probabilities() -> None:
    """A panel's confidence is its share of votes, whatever its members say of themselves; reports keep them apart."""
    sure = {"atoms": {1: {"confidence": 0.99}, 2: {"confidence": 0.99}}}
    alone = evaluate([RAG], judge=scripted("a", sure))
    assert alone.report().votes == {}
    panel = PanelJudge([scripted("a", sure), scripted("b", {"atoms": {2: {"label": "wrong", "confidence": 0.9}}})])
    (verdict,) = together = evaluate([RAG], judge=panel)
    assert [(item.confidence, item.confidence_kind) for item in verdict.items] == [(1.0, "votes"), (0.5, "votes")]
    assert "confidence_kind" not in verdict.line()["items"][0]
    assert together.report().votes["atom"].n == 2


def test_a_verified_label_keeps_it() -> None:
    """A finding that was confirmed keeps the first judge's probability; one that was not has the second's."""
    first = scripted("a", {"atoms": {1: {"confidence": 0.9}, 2: {"label": "wrong", "confidence": 0.8}}})
    second = scripted("b", {"atoms": {2: {"confidence": 0.7}}})
    verdict = one(VerifyingJudge(first, second))
    assert [item.confidence for item in verdict.items] == [0.9, 0.7]


def test_recordings_keep_it_and_old_ones_are_read(tmp_path: Path) -> None:
    """A recording holds it where it was given; one of an earlier version answers without."""
    with_it, without = tmp_path / "with.jsonl", tmp_path / "without.jsonl"
    one(Recorder(scripted("a", {"atoms": {1: {"confidence": 0.9}}}), with_it))
    one(Recorder(scripted("a"), without))
    assert "confidence" not in without.read_text("utf-8")
    assert [item.confidence for item in one(RecordedJudge(with_it)).items] == [0.9, None]
    assert [item.confidence for item in one(RecordedJudge(without)).items] == [None, None]


# --- what people see -----------------------------------------------------------------------------------------


def test_tables_and_pages_show_it(tmp_path: Path) -> None:
    """CSV and Parquet have a column, the HTML page a number beside the label, the Markdown page a line."""
    judge = scripted("sure", {"atoms": {1: {"confidence": 0.8712}, 2: {"confidence": 0.9999}}})
    results = evaluate([RAG], judge=judge)
    with results.save(tmp_path / "items.csv", items=True).open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [(row["confidence"], row["confidence_kind"]) for row in rows] == [
        ("0.8712", "probability"),
        ("0.9999", "probability"),
    ]
    pyarrow = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.read_table(results.save(tmp_path / "items.parquet", items=True))
    assert table.column("confidence").to_pylist() == [0.8712, 0.9999]
    page = results.save(tmp_path / "page.html").read_text("utf-8")
    assert '<span class="sure" title="评判者给这个标签的概率">0.87</span>' in page
    # Nearly sure is not sure.
    assert ">0.99</span>" in page
    assert ">1.00</span>" not in page
    verdict = results[0]
    assert "Confidence: 0.87" in sample_markdown(verdict, RAG, "en")
    assert "信心度：0.87" in sample_markdown(verdict, RAG, "zh-Hant")
    lowest = Lowest(1)
    lowest.add(verdict, RAG)
    english = render(results.report("en"), lowest.chosen())
    assert 'title="The probability that the judge gives to this label"' in english


# --- from the tokens of a model ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 5, 11, 400])
def test_tokens_are_matched_however_they_are_cut(width: int) -> None:
    """A token may hold half a label, half a key or half a Chinese character: the label's probability is the same."""
    text = json.dumps({"code": "abc", "atoms": [atom(1), atom(2, "wrong")], "fallback": False}, ensure_ascii=False)
    data = AtomicReply.model_validate_json(text)
    tokens = tokens_of({"logprobs": {"content": spelled(text, (0.9, 0.6), width)}})
    assert b"".join(token.said for token in tokens) == text.encode()
    found = [a.confidence for a in with_confidence(data, text, tokens, "abc").atoms]
    if width < 12:
        assert found == pytest.approx([0.9, 0.6])
    else:
        # One token spells both: then it says the same of both.
        assert found[0] == found[1]


def test_logprobs_become_confidence() -> None:
    """Over HTTP, with the tokens as OpenAI documents them; in the request stands what was asked for."""
    with Loopback(Say({"atoms": [atom(1), atom(2, "wrong")], "fallback": False}, sure=(0.93, 0.55))) as server:
        assert sureness(asked(server, logprobs=True)) == pytest.approx([0.93, 0.55])
        assert server.requests[-1].body["logprobs"] is True
        assert sureness(asked(server)) == [None, None]
        assert "logprobs" not in server.requests[-1].body


def test_labels_in_chinese() -> None:
    """A model that answers 正确, and a protocol whose labels are Chinese: the bytes of their tokens are found."""

    class Note(LabelledReply):
        id: int
        label: Literal["属实", "不属实"]

    class Notes(ReplyData):
        atoms: list[Note]

    with Loopback(Say({"atoms": [atom(1, "正确"), atom(2, "错误")], "fallback": False}, sure=(0.8, 0.7))) as server:
        reply = asked(server, logprobs=True, structured="text")
        assert isinstance(reply, Reply)
        assert [a.label for a in reply.data.atoms] == ["correct", "wrong"]
        assert sureness(reply) == pytest.approx([0.8, 0.7])
    text = json.dumps({"code": "abc", "atoms": [{"id": 1, "label": "不属实"}]}, ensure_ascii=False)
    tokens = tokens_of({"logprobs": {"content": spelled(text, (0.42,), 2)}})
    data = with_confidence(Notes.model_validate_json(text), text, tokens, "abc")
    assert data.atoms[0].confidence == pytest.approx(0.42)


def test_a_quoted_label_is_none() -> None:
    """Judged text that looks like a label, inside a string, is not where the probability is taken from."""
    tricky = atom(1, reason='它写着 "label": "wrong" }], [{ "label": "wrong"')
    text = json.dumps({"code": "abc", "atoms": [tricky], "fallback": False}, ensure_ascii=False)
    at = text.encode().rindex(b'"label": "correct"') + len(b'"label": "')
    entries = [
        {"token": chr(byte) if byte < 128 else "?", "bytes": [byte], "logprob": -0.1 if at <= place < at + 7 else -5.0}
        for place, byte in enumerate(text.encode())
    ]
    tokens = tokens_of({"logprobs": {"content": entries}})
    (found,) = with_confidence(AtomicReply.model_validate_json(text), text, tokens, "abc").atoms
    assert found.confidence == pytest.approx(0.496585)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        "yes",
        {},
        {"content": None},
        {"content": []},
        {"content": [{"token": "{", "logprob": None}]},
        {"content": [{"token": 1, "logprob": -1}]},
        {"content": [{"token": "something else", "logprob": -1, "bytes": [300]}]},
        {"tokens": ["{"], "token_logprobs": [-0.1]},
    ],
)
def test_an_endpoint_may_ignore_or_garble_it(logprobs: object) -> None:
    """Whatever is sent instead, the reply is used and has no confidence."""
    content = json.dumps({"code": nonce(ASK), "atoms": [atom(1), atom(2)], "fallback": False}, ensure_ascii=False)
    message = {"role": "assistant", "content": content}
    with Loopback() as server:
        judge = ChatJudge(server.endpoint(logprobs=True), Prompts.shipped())
        reply = judge.read_completion(ASK, {"choices": [{"message": message, "logprobs": logprobs}]})
    assert sureness(reply) == [None, None]


def test_an_endpoint_may_refuse_it() -> None:
    """Named in the refusal or not: it is left out from then on, and the mode of structured output stays."""
    reply = Say({"atoms": [atom(1), atom(2)], "fallback": False}, sure=(0.9, 0.9))
    with Loopback(reply, refuses_parameters=("logprobs",)) as server:
        assert sureness(asked(server, logprobs=True)) == [None, None]
        assert [request.mode for request in server.requests] == ["json_schema", "json_schema"]
    with Loopback(reply) as server:
        server.reply_for = lambda request: _vague(reply, request.body)
        assert sureness(asked(server, logprobs=True)) == [None, None]
        assert [request.mode for request in server.requests] == ["json_schema", "json_schema"]


def _vague(reply: Say, body: Mapping[str, Any]) -> Any:
    from endpoint import Status

    return Status(400, "Bad Request") if "logprobs" in body else reply


def test_said_twice_is_said_once() -> None:
    """The same label for the same item, spelt with two probabilities, is one label: the lesser counts."""
    said = Say({"atoms": [atom(1), atom(1), atom(2)], "fallback": False}, sure=(0.9, 0.8, 0.7))
    with Loopback(said) as server:
        assert sureness(asked(server, logprobs=True)) == pytest.approx([0.8, 0.8, 0.7])


def test_asked_for_in_the_settings(steelyard: Steelyard) -> None:
    """`logprobs = true` in steelyard.toml is enough; the store has it, and a run without is another way of judging."""
    samples = facts(Path("facts.jsonl"), 2)

    def reply(request: Any) -> Any:
        given = judge_facts(request)
        return Say(given, sure=(0.81,)) if request.task == "atomic.judge" else given

    with Loopback(reply_for=reply) as server:
        point_to(server, logprobs=True)
        done = steelyard("run", samples, "-p", "atomic", "-j", "mine", "-o", "out.jsonl")
        assert done.code == 0, done.err
        assert [line["items"][0]["confidence"] for line in lines_of("out.jsonl")] == [0.81, 0.81]
        calls = len(server.requests)
        point_to(server)
        steelyard("run", samples, "-p", "atomic", "-j", "mine", "-o", "plain.jsonl")
        assert len(server.requests) == 2 * calls
        assert "confidence" not in lines_of("plain.jsonl")[0]["items"][0]
        checked = steelyard("resume", "1", "-j", "mine")
        assert "logprobs is not what it was" in checked.err
