"""`dialogue`, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeding import TALK, Fed, changed, judge, respond, seed
from steelyard.protocols.dialogue import split_type
from steelyard.records import Ask, Criterion, DialogueSample, Turn, Unjudged, Verdict
from steelyard.tasks import ComplianceData, ValidityData

SHORT = "回答不超过10字 | 格式约束"


def talk(*turns: tuple[str, ...], answer: str = "炖菜！") -> DialogueSample:
    """A dialogue of turns with these criteria."""
    made = tuple(Turn(prompt=f"问{n}", answer=answer, criteria=criteria) for n, criteria in enumerate(turns, start=1))
    return DialogueSample(id="d", system_prompt=TALK.system_prompt, turns=made)


def criteria(verdict: Verdict) -> list[Criterion]:
    return [item for item in verdict.items if isinstance(item, Criterion)]


def asked(fed: Fed, task: str) -> list[list[str]]:
    return [[item.text for item in ask.data.items()["criteria"]] for ask in fed.asks if ask.task == f"dialogue.{task}"]


def by_text(**wanted: dict[str, dict[str, Any]]) -> Any:
    """Replies that change the label of criteria by their text: by_text(validity={"…": {"valid": False}})."""

    def reply(ask: Ask) -> dict[str, Any]:
        change = wanted.get(ask.task.removeprefix("dialogue."), {})
        ids = {item.id: change[item.text] for item in ask.data.items()["criteria"] if item.text in change}
        return respond(ask, criteria=ids)

    return reply


# --- step 1: validity -------------------------------------------------------------------------------


def test_validity_is_asked_once_per_distinct_criterion() -> None:
    """The same words are valid or not wherever they stand: one ask, each distinct criterion once."""
    fed = judge("dialogue", TALK)
    assert asked(fed, "validity") == [["说话粗鲁 | 风格约束", "报出菜名 | 内容约束", "结尾用一句谚语 | 内容约束"]]
    assert len(fed.rounds) == 2
    assert [item.validity for item in criteria(fed.verdict)] == ["valid"] * 4


def test_valid_has_place_and_verified_quote() -> None:
    """A valid criterion names the place and quotes the system prompt; code verifies the quote."""
    reply = by_text(validity={"说话粗鲁 | 风格约束": {"place": "第二句", "quote": "说话要 粗鲁", "reason": "直接写明"}})
    first = criteria(judge("dialogue", TALK, reply).verdict)[0]
    assert (first.place, first.quote, first.quote_verified) == ("第二句", "说话要 粗鲁", True)
    assert first.validity_reason == "直接写明"
    assert first.flags == ()


@pytest.mark.parametrize("quote", [None, "", "说话要温柔"])
def test_unverified_quote_is_asked_again_once(quote: str | None) -> None:
    """A quote that is not in the system prompt is asked again once; then validity is kept and flagged."""
    reply = by_text(validity={"说话粗鲁 | 风格约束": {"quote": quote}})
    fed = judge("dialogue", TALK, otherwise=reply)
    assert [len(found) for found in asked(fed, "validity")] == [3, 1]
    first = criteria(fed.verdict)[0]
    assert (first.validity, first.quote_verified, first.flags) == ("valid", False, ("evidence_unverified",))
    assert first.label == "satisfied"
    assert "evidence_unverified" in fed.verdict.flags


def test_a_better_quote_the_second_time() -> None:
    """A second reply with a true quote, or one that finds no basis after all, stands."""
    doubted = by_text(validity={"说话粗鲁 | 风格约束": {"quote": "并无此句"}})
    first = criteria(judge("dialogue", TALK, doubted, respond).verdict)[0]
    assert (first.quote_verified, first.flags) == (True, ())
    withdrawn = by_text(validity={"说话粗鲁 | 风格约束": {"valid": False, "quote": None, "reason": "查无依据"}})
    first = criteria(judge("dialogue", TALK, doubted, withdrawn).verdict)[0]
    assert (first.validity, first.result, first.flags) == ("invalid", "不确定", ())


def test_invalid_is_undetermined() -> None:
    """An invalid criterion is 不确定 with what has no basis; its compliance is not asked and counts nowhere."""
    reply = by_text(validity={"报出菜名 | 内容约束": {"valid": False, "quote": "x", "reason": "没有要求报出产地"}})
    fed = judge("dialogue", TALK, otherwise=reply)
    invalid = [item for item in criteria(fed.verdict) if item.text.startswith("报出菜名")]
    assert {(item.validity, item.label, item.result) for item in invalid} == {("invalid", "undetermined", "不确定")}
    assert {(item.reason, item.validity_reason) for item in invalid} == {("没有要求报出产地", "没有要求报出产地")}
    assert {(item.quote, item.quote_verified) for item in invalid} == {("", False)}
    assert asked(fed, "compliance") == [["说话粗鲁 | 风格约束"], ["结尾用一句谚语 | 内容约束"]]
    assert fed.verdict.scores == {"csr": 1, "isr": 1, "ssr": 1}
    assert fed.verdict.status == "judged"


def test_nothing_valid_nothing_scored() -> None:
    """If no criterion is grounded, rates are null and no compliance is asked: 不确定 is never a pass."""
    fed = judge("dialogue", TALK, changed(criteria={id: {"valid": False} for id in (1, 2, 3)}))
    assert [ask.task for ask in fed.asks] == ["dialogue.validity"]
    assert fed.verdict.scores == {"csr": None, "isr": None, "ssr": None}


def test_half_grounded_is_what_the_judge_calls_invalid() -> None:
    """A half-grounded criterion is invalid: there is no third label, and a rule does not overrule that."""
    half = "回答不超过10字，且押韵 | 格式约束"
    reply = by_text(validity={half: {"valid": False, "reason": "押韵无据"}})
    item = criteria(judge("dialogue", talk((half,), answer="这个答案肯定是超过了十个字的"), otherwise=reply).verdict)[0]
    assert (item.result, item.decided_by) == ("不确定", "judge")


# --- step 2: compliance -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "label_found", "result"),
    [("fully", "satisfied", "符合"), ("partly", "violated", "不符合"), ("no", "violated", "不符合")],
)
def test_partial_is_violated(label: str, label_found: str, result: str) -> None:
    """Only full compliance is 符合; partial counts as 不符合."""
    reply = by_text(compliance={"说话粗鲁 | 风格约束": {"complies": label, "reason": "因为"}})
    first = criteria(judge("dialogue", TALK, respond, reply).verdict)[0]
    assert (first.label, first.result, first.reason, first.decided_by) == (label_found, result, "因为", "judge")


@pytest.mark.parametrize("complies", ["fully", "partly", "no"])
def test_vacuous(complies: str) -> None:
    """Valid but not triggered is 符合, flagged vacuous, whatever else is said."""
    reply = by_text(compliance={"说话粗鲁 | 风格约束": {"triggered": False, "complies": complies}})
    verdict = judge("dialogue", TALK, respond, reply).verdict
    first = criteria(verdict)[0]
    assert (first.result, first.flags) == ("符合", ("vacuous",))
    assert "vacuous" in verdict.flags


def test_the_judge_sees_the_earlier_turns_only() -> None:
    """The judge of a turn sees the system prompt and the turns before it, not those after."""
    fed = judge("dialogue", TALK)
    one, two = (ask.data for ask in fed.asks if ask.task == "dialogue.compliance")
    assert isinstance(one, ComplianceData)
    assert isinstance(two, ComplianceData)
    assert (one.turn, one.history, one.answer) == (1, (), TALK.turns[0].answer)
    assert [(past.prompt, past.answer) for past in two.history] == [(TALK.turns[0].prompt, TALK.turns[0].answer)]
    assert (two.turn, two.prompt, two.answer) == (2, TALK.turns[1].prompt, TALK.turns[1].answer)
    assert one.system_prompt == two.system_prompt == TALK.system_prompt


def test_validity_does_not_see_the_answers() -> None:
    """Whether a criterion is grounded does not depend on how the assistant did: its ask holds no answer."""
    data = judge("dialogue", TALK).asks[0].data
    assert isinstance(data, ValidityData)
    assert set(data.model_dump()) == {"system_prompt", "criteria"}


def test_each_criterion_is_judged_alone() -> None:
    """One failed criterion fails only itself."""
    reply = by_text(compliance={"报出菜名 | 内容约束": {"complies": "no"}})
    verdict = judge("dialogue", TALK, otherwise=reply).verdict
    assert [item.result for item in criteria(verdict)] == ["符合", "不符合", "不符合", "符合"]
    assert verdict.scores == {"csr": 0.5, "isr": 0, "ssr": 0}


def test_thorough_asks_each_criterion_by_itself() -> None:
    """`thorough` really asks them one by one, so that none can colour another."""
    fed = judge("dialogue", TALK, thorough=True)
    assert [len(found) for found in asked(fed, "validity")] == [1, 1, 1]
    assert [len(found) for found in asked(fed, "compliance")] == [1, 1, 1, 1]


def test_duplicates_are_judged_once_and_listed_each_time() -> None:
    """A criterion that stands twice in a turn is asked once and listed twice, with its own ids."""
    twin = "报出菜名 | 内容约束"
    reply = by_text(compliance={twin: {"complies": "no"}})
    fed = judge("dialogue", talk((twin, "说话粗鲁", twin)), otherwise=reply)
    assert asked(fed, "validity") == [[twin, "说话粗鲁"]]
    assert asked(fed, "compliance") == [[twin, "说话粗鲁"]]
    assert [(item.id, item.text, item.result) for item in criteria(fed.verdict)] == [
        (1, twin, "不符合"), (2, "说话粗鲁", "符合"), (3, twin, "不符合"),
    ]  # fmt: skip


def test_the_same_criterion_in_two_turns_is_judged_in_each() -> None:
    """Compliance is a matter of the turn: the same criterion can hold in one and fail in the next."""

    def reply(ask: Ask) -> dict[str, Any]:
        second = isinstance(ask.data, ComplianceData) and ask.data.turn == 2
        return respond(
            ask, criteria={item.id: {"complies": "no"} for item in ask.data.items()["criteria"]} if second else {}
        )

    verdict = judge("dialogue", talk(("报出菜名",), ("报出菜名",)), otherwise=reply).verdict
    assert [(item.turn, item.id, item.result) for item in criteria(verdict)] == [(1, 1, "符合"), (2, 1, "不符合")]
    assert verdict.scores == {"csr": 0.5, "isr": 0.5, "ssr": 0.5}


# --- rules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "result"), [("炖菜！", "符合"), ("今天的晚饭是炖菜和烤鱼，还有汤。", "不符合")])
def test_code_decides_what_it_can(answer: str, result: str) -> None:
    """A length limit is decided by code, marked so with the count, and not asked."""
    fed = judge("dialogue", talk((SHORT, "说话粗鲁"), answer=answer))
    item = criteria(fed.verdict)[0]
    assert (item.result, item.decided_by) == (result, "rule")
    assert item.reason, "a ruling says what was counted"
    assert asked(fed, "compliance") == [["说话粗鲁"]]


def test_rules_apply_only_to_valid_criteria() -> None:
    """Code does not decide a criterion that is not grounded or whose validity nobody judged."""
    fed = judge("dialogue", talk((SHORT,)), changed(criteria={1: {"valid": False}}))
    assert [(item.result, item.decided_by) for item in criteria(fed.verdict)] == [("不确定", "judge")]
    unknown = judge("dialogue", talk((SHORT,)), Unjudged(reason="timeout")).verdict
    assert [(item.label, item.result, item.reason) for item in criteria(unknown)] == [("unjudged", None, "timeout")]


def test_rules_can_be_switched_off() -> None:
    """With `rules` off everything valid is asked of the judge."""
    fed = judge("dialogue", talk((SHORT,)), rules=False)
    assert asked(fed, "compliance") == [[SHORT]]
    assert criteria(fed.verdict)[0].decided_by == "judge"


# --- form -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "content", "kind"),
    [
        ("以一句歌词作为开头 | 内容约束", "以一句歌词作为开头", "内容约束"),
        ("用 a | b 的格式 | 格式约束", "用 a | b 的格式", "格式约束"),
        ("没有类型", "没有类型", None),
        ("a|b", "a|b", None),
        ("内容 | ", "内容", None),
        (" | 格式约束", "", "格式约束"),
    ],
)
def test_content_and_type(criterion: str, content: str, kind: str | None) -> None:
    """`content | type` is split at the last ` | `; the type may be missing."""
    assert split_type(criterion) == (content, kind)


@given(st.text(max_size=20), st.text(max_size=8))
def test_the_text_stays_verbatim(content: str, kind: str) -> None:
    """Whatever a criterion holds, it comes out as it went in."""
    text = f"{content} | {kind}"
    item = criteria(
        judge("dialogue", talk((text,)), otherwise=changed(criteria={1: {"quote": TALK.system_prompt}})).verdict
    )[0]
    assert item.text == text


def test_types_are_reported() -> None:
    """Each item carries the type of its criterion, for the rates by type."""
    assert [item.type for item in criteria(judge("dialogue", TALK).verdict)] == [
        "风格约束",
        "内容约束",
        "内容约束",
        "内容约束",
    ]


@pytest.mark.parametrize("sample", [talk(), talk((), ())])
def test_nothing_to_judge_is_no_error(sample: DialogueSample) -> None:
    """Zero turns or zero criteria: empty lists, null rates, nobody asked, judged."""
    fed = judge("dialogue", sample)
    assert fed.asks == []
    assert fed.verdict.items == ()
    assert fed.verdict.scores == {"csr": None, "isr": None, "ssr": None}
    assert fed.verdict.status == "judged"
    assert fed.verdict.notes["turns"] == len(sample.turns)


def test_a_turn_without_criteria_is_still_history() -> None:
    """A turn without criteria is not asked about, but later turns see it, and numbers do not shift."""
    fed = judge("dialogue", talk((), ("说话粗鲁",)))
    data = fed.asks[-1].data
    assert isinstance(data, ComplianceData)
    assert (data.turn, len(data.history)) == (2, 1)
    assert criteria(fed.verdict)[0].turn == 2


def test_an_empty_answer_is_judged_like_any_other() -> None:
    """An empty answer is asked about, and rules count it."""
    fed = judge("dialogue", talk(("说话粗鲁", "至少5字"), answer=""))
    assert asked(fed, "compliance") == [["说话粗鲁"]]
    assert [item.result for item in criteria(fed.verdict)] == ["符合", "不符合"]
    assert "empty_answer" not in fed.verdict.flags


def test_gaps_are_unjudged() -> None:
    """Compliance that nobody judged is unjudged with the reason, though validity is known; others stand."""
    fed = judge("dialogue", TALK, respond, Unjudged(reason="refused"), respond)
    first, *_, last = criteria(fed.verdict)
    assert (first.validity, first.label, first.result, first.reason) == ("valid", "unjudged", None, "refused")
    assert last.result == "符合"
    assert fed.verdict.status == "partial"
    assert fed.verdict.scores == {"csr": 1, "isr": 1, "ssr": 1}


def test_missing_validity_is_asked_again() -> None:
    """A criterion whose validity is left out twice is unjudged and not asked for compliance."""
    mute = changed(criteria={1: None})
    fed = judge("dialogue", TALK, mute, mute)
    assert [len(found) for found in asked(fed, "validity")] == [3, 1]
    assert criteria(fed.verdict)[0].reason == "missing_in_reply"
    assert asked(fed, "compliance") == [["报出菜名 | 内容约束"], ["报出菜名 | 内容约束", "结尾用一句谚语 | 内容约束"]]


def test_too_long_lists_what_was_not_judged() -> None:
    """A dialogue that is too long still lists its criteria, unjudged with that reason, for the reports."""
    verdict = judge("dialogue", TALK, max_chars=10).verdict
    assert {(item.label, item.reason) for item in criteria(verdict)} == {("unjudged", "too_long")}
    assert len(criteria(verdict)) == 4


def test_result_line_of_a_criterion() -> None:
    """A criterion's line has turn, validity, quote and result."""
    line = judge("dialogue", TALK).verdict.line()["items"][2]
    assert (line["kind"], line["turn"], line["id"], line["text"]) == ("criterion", 2, 1, "报出菜名 | 内容约束")
    assert (line["validity"], line["quote"], line["result"]) == ("valid", TALK.system_prompt, "符合")


def test_worked_example() -> None:
    """003 with the document's labels: CSR 4/5, one of two turns full, the break in the second."""
    sample, expected = seed("dialogue-angry-assistant")
    assert isinstance(sample, DialogueSample)
    wrong = {item["text"]: {"complies": "no"} for item in expected["items"] if item["labels"] == ["violated"]}
    fed = judge("dialogue", sample, otherwise=by_text(compliance=wrong))
    assert [ask.task for ask in fed.asks] == ["dialogue.validity", "dialogue.compliance", "dialogue.compliance"]
    found = [(item.turn, item.id, item.text, item.validity, item.label) for item in criteria(fed.verdict)]
    assert found == [
        (item["turn"], item["id"], item["text"], item["validity"], item["labels"][0]) for item in expected["items"]
    ]
    assert fed.verdict.scores == expected["scores"]
