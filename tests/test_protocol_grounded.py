"""`grounded`, row by row."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeding import RAG, changed, judge, respond, seed
from steelyard.protocols.grounded import ASKED, CHECKS
from steelyard.records import Ask, Check, RagSample, Unjudged, Verdict
from steelyard.tasks import GroundedData

ID = {name: id for id, name in enumerate(ASKED, start=1)}
THANKS = RAG.model_copy(update={"answer": "云湖图书馆自习室在第二层。祝您学习愉快，收获满满。"})


def failing(*names: str) -> dict[int, dict[str, Any]]:
    return {ID[name]: {"label": 0, "reason": f"{name} 不过"} for name in names}


def labels(verdict: Verdict) -> dict[tuple[str, str], Any]:
    return {(item.group, item.name): item.label for item in verdict.items if isinstance(item, Check)}


def check(verdict: Verdict, name: str) -> Check:
    return next(item for item in verdict.items if isinstance(item, Check) and item.name == name)


def test_one_ask_and_eight_checks() -> None:
    """A sample costs one ask; the verdict holds five relevance and three truthfulness checks."""
    fed = judge("grounded", RAG)
    assert fed.tasks == ["grounded.judge"]
    assert list(labels(fed.verdict)) == list(CHECKS)
    assert [item.id for item in fed.verdict.items] == list(range(1, 9))
    assert [group for group, _ in CHECKS] == ["relevance"] * 5 + ["truthfulness"] * 3
    assert fed.verdict.scores == {"relevance": 1, "truthfulness": 1, "accuracy": 1}
    assert fed.verdict.flags == ()


def test_the_judge_answers_first() -> None:
    """The judge's own answer from the background is asked for first and kept."""
    fed = judge("grounded", RAG, changed(own_answer="自习室位于第二层。"))
    assert fed.verdict.notes["own_answer"] == "自习室位于第二层。"
    assert next(iter(fed.asks[0].reply.model_fields)) == "own_answer"


@pytest.mark.parametrize("name", [name for name in ASKED if name != "not_fallback"])
def test_one_error_does_not_cascade(name: str) -> None:
    """One failed check fails its group and accuracy, and no other check."""
    verdict = judge("grounded", RAG, changed(checks=failing(name))).verdict
    assert [key for key, label in labels(verdict).items() if label != 1] == [
        (group, other) for group, other in CHECKS if other == name
    ]
    truthful = name not in ("conclusion_correct", "no_fallacy")
    assert verdict.scores == {"relevance": int(not truthful), "truthfulness": int(truthful), "accuracy": 0}
    assert check(verdict, name).reason == f"{name} 不过"


@given(st.sets(st.sampled_from(ASKED)), st.booleans())
def test_gates(failed: set[str], outside: bool) -> None:
    """relevance is the AND of five, truthfulness of three, accuracy of both: for every pattern of labels."""
    sources = {1: {"label": "outside"}} if outside else {}
    verdict = judge("grounded", RAG, changed(checks=failing(*failed), sentences=sources)).verdict
    bad = failed | ({"from_background"} if outside else set())
    relevant = all(name not in bad for group, name in CHECKS if group == "relevance")
    truthful = all(name not in bad for group, name in CHECKS if group == "truthfulness")
    assert verdict.scores == {"relevance": relevant, "truthfulness": truthful, "accuracy": relevant and truthful}


def test_fallback_is_one_fact() -> None:
    """The fallback is asked once and fails both of its checks: always 0."""
    fed = judge("grounded", RAG, changed(checks=failing("not_fallback")))
    data = fed.asks[0].data
    assert isinstance(data, GroundedData)
    assert [item.text for item in data.checks].count("not_fallback") == 1
    assert labels(fed.verdict)["relevance", "not_fallback"] == labels(fed.verdict)["truthfulness", "not_fallback"] == 0
    assert fed.verdict.scores == {"relevance": 0, "truthfulness": 0, "accuracy": 0}


@pytest.mark.parametrize(("answerable", "flags"), [(True, ("fallback",)), (False, ("fallback", "correct_abstention"))])
def test_honest_and_lazy_refusals(answerable: bool, flags: tuple[str, ...]) -> None:
    """A refusal where the background has no answer is flagged as correct; it stays 0 either way."""
    verdict = judge("grounded", RAG, changed(checks=failing("not_fallback"), answerable=answerable)).verdict
    assert verdict.flags == flags
    assert verdict.scores["accuracy"] == 0


def test_no_abstention_without_a_fallback() -> None:
    """An answer to what the background does not hold is no abstention."""
    assert judge("grounded", RAG, changed(answerable=False)).verdict.flags == ()


# --- from background --------------------------------------------------------------------------------


@pytest.mark.parametrize(("strict", "label"), [(False, 1), (True, 0)])
def test_benign_extension(strict: bool, label: int) -> None:
    """A sentence outside the background that asserts nothing keeps the 1, flagged; the strict switch counts it 0."""
    reply = changed(sentences={2: {"label": "benign_extension", "reason": "祝愿"}})
    verdict = judge("grounded", THANKS, reply, strict=strict).verdict
    assert labels(verdict)["relevance", "from_background"] == label
    assert verdict.scores == {"relevance": label, "truthfulness": 1, "accuracy": label}
    assert "benign_extension" in verdict.flags
    assert check(verdict, "from_background").reason == "祝愿"


def test_one_outside_sentence_settles_it() -> None:
    """One sentence from elsewhere fails the check, with its reason; the other parts stay as they are."""
    verdict = judge("grounded", THANKS, changed(sentences={2: {"label": "outside", "reason": "资料没有"}})).verdict
    found = check(verdict, "from_background")
    assert (found.label, found.reason) == (0, "资料没有")
    assert [part.label for part in found.parts] == ["from_background", "outside"]
    assert [part.text for part in found.parts] == ["云湖图书馆自习室在第二层。", "祝您学习愉快，收获满满。"]
    assert all(not item.parts for item in verdict.items if isinstance(item, Check) and item is not found)


def test_an_unjudged_sentence_leaves_the_check_open() -> None:
    """A sentence without a label leaves the check unjudged, unless another one fails it anyway."""
    mute = changed(sentences={2: None})
    verdict = judge("grounded", THANKS, mute, mute).verdict
    found = check(verdict, "from_background")
    assert (found.label, found.reason) == ("unjudged", "missing_in_reply")
    assert verdict.scores == {"relevance": None, "truthfulness": 1, "accuracy": None}
    assert verdict.status == "partial"
    settled = judge("grounded", THANKS, otherwise=changed(sentences={1: {"label": "outside"}, 2: None})).verdict
    assert check(settled, "from_background").label == 0
    assert check(settled, "from_background").reason == "理由"
    assert settled.scores["accuracy"] == 0


def test_a_picture_adds_nothing() -> None:
    """An answer without words asserts nothing that could come from elsewhere; nothing is left unjudged."""
    fed = judge("grounded", RAG.model_copy(update={"answer": "👍"}), changed(checks=failing("answers_question")))
    assert check(fed.verdict, "from_background").label == 1
    assert fed.verdict.status == "judged"
    assert fed.verdict.scores["accuracy"] == 0


# --- gaps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", ASKED)
def test_an_unknown_check_makes_its_gate_unknown(gap: str) -> None:
    """A gate over an unjudged check is null, not 0 and not 1; a 0 beside it settles it."""
    mute = changed(checks={ID[gap]: None})
    verdict = judge("grounded", RAG, mute, mute).verdict
    assert verdict.scores["accuracy"] is None
    assert verdict.status == "partial"
    other = next(name for name in ASKED if name not in (gap, "not_fallback"))
    again = changed(checks={ID[gap]: None, **failing(other)})
    assert judge("grounded", RAG, again, again).verdict.scores["accuracy"] == 0


def test_follow_up_keeps_both_lists_apart() -> None:
    """What is missing is named by list and number, and only that is asked."""
    fed = judge("grounded", RAG, changed(sentences={1: None}, checks={ID["complete"]: None}))
    again = fed.asks[-1]
    assert again.again
    assert again.again.missing == ("sentences 1", f"checks {ID['complete']}")
    assert {name: [item.id for item in items] for name, items in again.data.items().items()} == {
        "sentences": [1],
        "checks": [ID["complete"]],
    }
    assert fed.verdict.status == "judged"


# --- edges ------------------------------------------------------------------------------------------


def test_no_background() -> None:
    """Without a background relevance is 0 and flagged; the judge is asked once and not about sources."""
    fed = judge("grounded", RAG.model_copy(update={"references": ()}))
    assert fed.tasks == ["grounded.judge"]
    assert "sentences" not in fed.asks[0].data.items()
    assert fed.verdict.scores == {"relevance": 0, "truthfulness": 0, "accuracy": 0}
    assert fed.verdict.flags == ("no_background",)
    assert check(fed.verdict, "from_background").reason == "没有背景资料可供对照，相关性记 0。"
    assert fed.verdict.status == "judged"


def test_a_reason_is_told_once() -> None:
    """Several sentences with one reason give the check that reason once."""
    benign = {id: {"label": "benign_extension", "reason": "没有可核查的事实"} for id in (1, 2)}
    fed = judge("grounded", THANKS, changed(sentences=benign))
    assert check(fed.verdict, "from_background").reason == "没有可核查的事实"


def test_refusing_without_a_background_is_honest() -> None:
    """A refusal without any background is a correct abstention even if the judge calls it answerable."""
    bare = RAG.model_copy(update={"references": ()})
    flags = judge("grounded", bare, changed(checks=failing("not_fallback"))).verdict.flags
    assert set(flags) == {"no_background", "fallback", "correct_abstention"}


def test_no_background_needs_no_judge_to_be_0() -> None:
    """What code knows stays known when the judge fails: relevance 0, the other checks unjudged."""
    verdict = judge("grounded", RAG.model_copy(update={"references": ()}), Unjudged(reason="timeout")).verdict
    assert verdict.scores["relevance"] == 0
    assert verdict.status == "partial"
    assert check(verdict, "on_topic").label == "unjudged"


@pytest.mark.parametrize("references", [RAG.references, ()])
def test_empty_answer(references: tuple[str, ...]) -> None:
    """An empty answer is 0 in every check, flagged, without asking anybody."""
    fed = judge("grounded", RAG.model_copy(update={"answer": " \n", "references": references}))
    assert fed.asks == []
    assert set(labels(fed.verdict).values()) == {0}
    assert {item.reason for item in fed.verdict.items} == {"回答为空。"}
    assert fed.verdict.scores == {"relevance": 0, "truthfulness": 0, "accuracy": 0}
    assert "empty_answer" in fed.verdict.flags
    assert fed.verdict.status == "judged"


def test_checks_are_named_in_the_samples_language() -> None:
    """A check's text is in the language of the sample, its name is the same identifier everywhere."""
    english = RAG.model_copy(update={"question": "Which floor is it on?", "answer": "It is on the second floor."})
    zh, en = judge("grounded", RAG).verdict, judge("grounded", english).verdict
    assert [check(v, "complete").name for v in (zh, en)] == ["complete", "complete"]
    assert check(zh, "complete").text != check(en, "complete").text
    assert check(en, "complete").text.isascii()


# --- the worked examples ----------------------------------------------------------------------------


def test_headlamp_film() -> None:
    """001, headlamp film: all eight checks 1; the second paragraph is a benign extension, 0 when strict."""
    sample, expected = seed("grounded-headlamp-film")
    reply = changed(sentences={2: {"label": "benign_extension"}})
    fed = judge("grounded", sample, reply)
    assert len(fed.asks) == 1
    assert {(item["group"], item["name"]): item["labels"][0] for item in expected["items"]} == labels(fed.verdict)
    assert fed.verdict.scores == expected["scores"]
    assert "benign_extension" in fed.verdict.flags
    assert judge("grounded", sample, reply, strict=True).verdict.scores["accuracy"] == 0


def test_tray_table() -> None:
    """001, tray table: every accepted pattern of the disputed checks gives 0 / 0 / 0; it is not a fallback."""
    sample, expected = seed("grounded-tray-table")
    assert isinstance(sample, RagSample)
    disputed = {
        item["name"]: item["labels"] for item in expected["items"] if item["name"] in ID and len(item["labels"]) > 1
    }
    for pattern in product(*disputed.values()):
        chosen = {ID[name]: {"label": label} for name, label in zip(disputed, pattern, strict=True)}
        checks = {**chosen, **failing("conclusion_correct")}

        def reply(ask: Ask, checks: dict[int, Any] = checks) -> dict[str, Any]:
            return respond(ask, sentences={1: {"label": "outside"}}, checks=checks)

        verdict = judge("grounded", sample, reply).verdict
        assert verdict.scores == expected["scores"]
        assert "fallback" not in verdict.flags
        found = labels(verdict)
        assert all(found[item["group"], item["name"]] in item["labels"] for item in expected["items"])
