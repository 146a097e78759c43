"""Driving a protocol by hand: complete plausible replies, of which a test overrides only what matters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.protocols import get_protocol
from steelyard.protocols.common import has_text
from steelyard.records import Ask, DialogueSample, RagSample, Reply, Rounds, Turn, Unjudged, Usage, Verdict
from steelyard.text import sentences

FIXTURES = Path(__file__).parent / "fixtures"
Answer = Mapping[str, Any] | Unjudged | Callable[[Ask], "Mapping[str, Any] | Unjudged"]

PASSAGE = "云湖图书馆自习室位于第二层，共有120个座位。"
RAG = RagSample(
    id="s",
    question="云湖图书馆自习室在第几层？",
    references=("云湖公园全年免费开放。", PASSAGE),
    answer="云湖图书馆自习室在第二层。自习室共有120个座位。",
    key_points=("自习室在第二层",),
)
PAIR = RAG.model_copy(update={"other_answer": "云湖图书馆自习室在第三层。"})
TALK = DialogueSample(
    id="d",
    system_prompt="你是阿舟，一名船上厨师。说话要粗鲁。每次都要报出菜名。结尾要用一句谚语。",
    turns=(
        Turn(
            prompt="晚饭吃什么？", answer="炖菜！别问第二遍！", criteria=("说话粗鲁 | 风格约束", "报出菜名 | 内容约束")
        ),
        Turn(
            prompt="明天呢？", answer="烤鱼。趁热打铁。", criteria=("报出菜名 | 内容约束", "结尾用一句谚语 | 内容约束")
        ),
    ),
)


def respond(ask: Ask, **changes: Any) -> dict[str, Any]:
    """A complete reply that finds everything in order. A change is a whole value, or for a list of labels a
    mapping id → changed fields (None leaves the item out)."""
    reply = _replies()[ask.task](ask.data)
    for name, change in changes.items():
        if isinstance(change, Mapping):
            change = [
                {**entry, **(change.get(entry["id"]) or {})}
                for entry in reply[name]
                if entry["id"] not in change or change[entry["id"]] is not None
            ]
        reply[name] = change
    return reply


def changed(**changes: Any) -> Callable[[Ask], dict[str, Any]]:
    """A reply for `feed`: everything in order except these."""
    return lambda ask: respond(ask, **changes)


def _replies() -> dict[str, Callable[[Any], dict[str, Any]]]:
    return {
        "atomic.split": lambda data: {"atoms": _texts(sentences(data.answer))},
        "atomic.judge": lambda data: {
            "atoms": [_atom(data, item.id) | {"level": 1, "level_reason": "直接"} for item in data.atoms],
            "fallback": False,
        },
        "grounded.judge": lambda data: {
            "own_answer": "第二层。",
            "answerable": True,
            "sentences": [_labelled(item.id, "from_background") for item in data.sentences],
            "checks": [_labelled(item.id, 1) for item in data.checks],
        },
        "scorecard.key_points": lambda data: {"key_points": _texts(["自习室在第二层", "自习室有120个座位"])},
        "scorecard.judge": lambda data: {
            "sentences": [
                _evidence(data, item.id) | {"on_topic": True, "support": "supported"} for item in data.sentences
            ],
            "key_points": [_labelled(item.id, "covered") | {"depth": "adequate"} for item in data.key_points],
            "atoms": [_atom(data, item.id) for item in data.atoms],
            "summary": "答得不错。",
        },
        "retrieval.judge": lambda data: {
            "retrieved": [_labelled(item.id, "answers") | {"use": "used"} for item in data.retrieved],
            "key_points": [
                _labelled(item.id, "found" if has_text(data.passages) else "not_found")
                | {"passages": [len(data.passages)], "quote": "".join(data.passages[-1:]), "in_answer": "stated"}
                for item in data.key_points
            ],
            "refuses": False,
        },
        "dialogue.validity": lambda data: {
            "criteria": [
                {"id": item.id, "place": "全文", "quote": data.system_prompt, "reason": "有据", "valid": True}
                for item in data.criteria
            ]
        },
        "dialogue.compliance": lambda data: {
            "criteria": [
                {"id": item.id, "reason": "做到了", "triggered": True, "complies": "fully"} for item in data.criteria
            ]
        },
        "pairwise.judge": lambda data: {"criteria": [_labelled(item.id, "tie") for item in data.criteria]},
    }  # fmt: skip


def _texts(texts: list[str]) -> list[dict[str, Any]]:
    return [{"id": id, "text": text} for id, text in enumerate(texts, start=1)]


def _labelled(id: int, label: Any) -> dict[str, Any]:
    return {"id": id, "reason": "理由", "label": label}


def _evidence(data: Any, id: int) -> dict[str, Any]:
    last = len(data.references) - 1
    found = {"reference": last, "quote": data.references[last]} if data.references else {}
    return {"id": id, "reason": "理由", **found}


def _atom(data: Any, id: int) -> dict[str, Any]:
    return _evidence(data, id) | {"label": "correct", "source": "reference"}


class Fed(NamedTuple):
    """What a protocol came to, and what it asked on the way, round by round."""

    verdict: Verdict
    rounds: list[list[Ask]]

    @property
    def asks(self) -> list[Ask]:
        return [ask for asks in self.rounds for ask in asks]

    @property
    def tasks(self) -> list[str]:
        return [ask.task for ask in self.asks]


def feed(rounds: Rounds, *answers: Answer, otherwise: Answer = respond) -> Fed:
    """Drive a protocol to its end. The answers are taken in the order of the asks; after them `otherwise` speaks."""
    waiting = list(answers)
    asked: list[list[Ask]] = []
    try:
        asks = next(rounds)
        while True:
            asked.append(asks)
            replies = [_reply(ask, waiting.pop(0) if waiting else otherwise) for ask in asks]
            asks = rounds.send(replies)
    except StopIteration as finished:
        assert not waiting, f"{len(waiting)} replies were never asked for"
        return Fed(finished.value, asked)


def _reply(ask: Ask, answer: Answer) -> Reply | Unjudged:
    given = answer(ask) if callable(answer) else answer
    if isinstance(given, Unjudged):
        return given
    return Reply(data=ask.reply.model_validate(given), usage=Usage(calls=1))


def judge(
    name: str, sample: RagSample | DialogueSample, *answers: Answer, otherwise: Answer = respond, **options: Any
) -> Fed:
    """`feed` for a protocol by name, with options as a user gives them."""
    protocol = get_protocol(name)
    return feed(protocol.rounds(sample, protocol.parse_options(options)), *answers, otherwise=otherwise)


def seed(name: str) -> tuple[RagSample | DialogueSample, dict[str, Any]]:
    """One of the seeds' worked examples: the sample and the labels that count."""
    folder = FIXTURES / "seeds"
    sample = json.loads((folder / f"{name}.sample.json").read_text("utf-8"))
    expected = json.loads((folder / f"{name}.expected.json").read_text("utf-8"))
    kind = DialogueSample if name.startswith("dialogue") else RagSample
    return kind.model_validate(sample), expected
