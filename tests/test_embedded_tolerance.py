"""The embedded judge reports what differs and of what kind it is; core decides, as for any other judge."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reading import YES, FixedReader, instead_of_the_network
from steelyard.evaluation import evaluate
from steelyard.judges.embedded import EmbeddedJudge
from steelyard.judges.embedded.scorecard import judge as judge_scorecard
from steelyard.judges.scripted import ScriptedJudge
from steelyard.records import Ask, Atom, Numbered
from steelyard.tasks import ScorecardData

# kind | question | passage[>claim] | correct or wrong: by default, all exact, all by magnitude and year
ROWS = """
specification | What does the annual pass cost? | The annual pass costs [$300>$900]. | wwc
specification | How many tablets should I take? | Adults take [2>6] tablets every eight hours. | wwc
specification | What is the weight limit? | The chair supports a weight of up to [75>200] kg. | wwc
specification | What is the dose? | The daily dose is [500>250] mg. | wwc
specification | 这款车有几个座位？ | 这款车是[六>七]座布局。 | wwc
specification | 手续费是多少？ | 转账手续费为[3%>9%]。 | wwc
specification | 保修多久？ | 该手机的保修期为[两>三]年。 | wwc
specification | 自习室有多少座位？ | 自习室共有[120>128]个座位。 | wwc
specification | 押金多少？ | 租车押金为[3000>5000]元。 | wwc
specification | 起薪多少？ | 起薪为每月[3.1万>31200]元。 | cwc
statistic | 票房多少？ | 该片全球票房达到[52>30]亿元。 | cwc
statistic | 票房多少？ | 该片全球票房达到[52>2]亿元。 | www
statistic | 人口多少？ | 该市常住人口为[1200>900]万人。 | cwc
statistic | 多少人遇难？ | 这次地震造成约[30>25]万人遇难。 | cwc
statistic | How many people live there? | The city has a population of [1,200,000>900,000]. | cwc
statistic | How many visitors came? | The museum had [1,183,400>1.5 million] visitors last year. | cwc
date | When was the library opened? | The library was opened on [3>5] May 1997. | cwc
date | When was the library opened? | The library was opened [on 3 May 1997>in 1999]. | www
date | 几点关门？ | 图书馆每天[21>22]:00关门。 | www
political_date | 条约何时签署？ | 该条约于1949年10月[1>2]日签署。 | wwc
"""
SPAN = re.compile(r"\[(.*)>(.*)\]")


@pytest.fixture(autouse=True)
def _told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that takes everything for said: what differs is seen by exact comparison alone."""
    instead_of_the_network(FixedReader(otherwise=YES), monkeypatch)


POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"tolerance": {"quantities": "exact", "dates": "exact"}},
    {"tolerance": {"quantities": "magnitude", "dates": "year"}},
)


def cases() -> list[Any]:
    found = []
    for line in ROWS.strip().splitlines():
        kind, question, text, signs = (cell.strip() for cell in line.split("|"))
        labels = [{"c": "correct", "w": "wrong"}[sign] for sign in signs]
        found.append(pytest.param(kind, question, SPAN.sub(r"\1", text), SPAN.sub(r"\2", text), labels, id=text))
    return found


def judged(question: str, passage: str, claim: str, judge: Any, options: dict[str, Any], protocol: str) -> Atom:
    sample = {"question": question, "answer": claim, "references": [passage]}
    (verdict,) = evaluate([sample], protocol, judge, options={**options, "date": "2026-01-01"})
    return next(item for item in verdict.items if isinstance(item, Atom))


@pytest.mark.parametrize(("kind", "question", "passage", "claim", "labels"), cases())
def test_the_label_of_a_difference_does_not_depend_on_the_judge(
    kind: str, question: str, passage: str, claim: str, labels: list[str]
) -> None:
    """Embedded, or scripted with either label: the same difference ends as the same label under every policy."""
    for options, label in zip(POLICIES, labels, strict=True):
        own = judged(question, passage, claim, EmbeddedJudge(), options, "atomic")
        assert own.difference
        assert (own.difference.kind, own.label) == (kind, label)
        assert ("within_tolerance" in own.flags) is (label == "correct")
        for said in ("correct", "wrong"):
            reply = {
                "id": 1,
                "label": said,
                "level": 1,
                "reference": 0,
                "quote": passage,
                "source": "reference",
                "difference": own.difference.model_dump(),
            }

            def answer(ask: Ask, reply: dict[str, Any] = reply) -> dict[str, Any]:
                if ask.task == "atomic.split":
                    return {"atoms": [{"id": 1, "text": claim}]}
                return {"atoms": [reply], "fallback": False}

            assert judged(question, passage, claim, ScriptedJudge(answer), options, "atomic").label == label


def test_scorecard_reports_the_difference_too() -> None:
    """One policy holds in both protocols, so both replies carry what differs."""
    data = ScorecardData(
        question="手续费是多少？",
        references=("转账手续费为3%。",),
        date="-",
        place="-",
        sentences=(),
        key_points=(),
        atoms=(Numbered(id=1, text="转账手续费为9%"),),
    )
    (verdict,) = judge_scorecard(data, "zh", None).atoms
    assert verdict.difference
    assert (verdict.difference.kind, verdict.label) == ("specification", "wrong")


def test_without_a_question_the_embedded_judge_works() -> None:
    """A summary against its source: labels, null levels, null relevance; given key points are looked for."""
    sample = {
        "answer": "自习室在第二层，共有120个座位。",
        "references": ["云湖图书馆自习室位于第二层，共有120个座位。"],
    }
    (atomic,) = evaluate([sample], "atomic", "embedded")
    assert atomic.status == "judged"
    assert atomic.scores["accuracy"] == 1
    assert {item.level for item in atomic.items if isinstance(item, Atom)} == {None}
    (card,) = evaluate([sample], "scorecard", "embedded")
    assert (card.status, card.scores["relevance"], card.scores["completeness"]) == ("judged", None, None)
    assert (card.scores["accuracy"], card.scores["faithfulness"]) == (100, 100)
    (given,) = evaluate([{**sample, "key_points": ["自习室在第二层"]}], "scorecard", "embedded")
    assert given.scores["completeness"] is not None
