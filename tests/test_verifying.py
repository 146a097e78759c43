"""Second looks: what speaks against an answer is asked about once more, and gives way where it is not found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, facts, lines_of, write_lines
from court import court, down, one, scripted, seat, told
from feeding import respond
from steelyard import ScriptedJudge
from steelyard.judges import PanelJudge, VerifyingJudge
from steelyard.records import Ask, Atom, Sentence


@pytest.fixture
def samples(steelyard: Steelyard) -> Path:
    return facts(Path("facts.jsonl"), 4)


def test_findings_are_looked_at_again(steelyard: Steelyard, samples: Path) -> None:
    """Only items found amiss are asked about again, in other words; what is not confirmed gives way."""
    with court() as server:
        seat(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "harsh", "--verify", "itself", "-o", "out.jsonl")
        assert done.code == 0, done.err
        second = [request for request in server.requests if "check of findings" in request.user]
        assert len(server.requests) == 4 * 2 + 2
        assert ["atoms 1: wrong" in request.user for request in second] == [True] * 2
    stayed = ("correct", None, ())
    assert told() == [("wrong", None, ()), stayed, ("correct", None, ("not_confirmed",)), stayed]
    assert lines_of("out.jsonl")[2]["items"][0]["first"] == {"label": "wrong"}
    assert lines_of("out.jsonl")[0]["judge"] == "harsh:harsh, verified by itself"


def test_calibrate_shows_what_the_second_look_did(steelyard: Steelyard, samples: Path) -> None:
    """Precision and recall of the findings before and after, held against people, with the change between them."""
    facts(samples, 12)
    with court() as server:
        seat(server)
        steelyard("run", samples, "-p", "atomic", "-j", "harsh", "--verify", "lost", "-o", "out.jsonl")
    # Facts 1 and 3 really are wrong; the second look keeps only the first of them.
    labels = [
        {"sample": f"fact-{n}", "kind": "atom", "item": 1, "label": "wrong" if n in (1, 3) else "correct"}
        for n in range(1, 13)
    ]
    people = write_lines(Path("people.jsonl"), labels)
    found = json.loads(steelyard("calibrate", "last", "--labels", people, "--json").out)
    (task,) = found["tasks"]
    (look,) = task["second_look"]
    assert (look["label"], look["n_changed"]) == ("wrong", 5)
    assert [round(figure["value"], 3) for figure in look["precision"]] == [0.333, 1.0]
    assert [figure["value"] for figure in look["recall"]] == [1.0, 0.5]
    assert look["recall_change"]["value"] == -0.5
    low, high = look["precision_change"]["interval"]
    assert low < 1 - 1 / 3 <= high
    assert "What the second look changed" in steelyard("calibrate", "last", "--labels", people).out


@pytest.mark.parametrize(
    ("protocol", "change", "first", "field"),
    [
        ("atomic", {"atoms": {1: {"label": "wrong"}}}, {"label": "wrong"}, "label"),
        ("grounded", {"checks": {2: {"label": 0}}}, {"label": 0}, "label"),
        ("grounded", {"sentences": {1: {"label": "outside"}}}, {"label": 0}, "label"),
        ("scorecard", {"sentences": {1: {"support": "unsupported"}}}, {"support": "unsupported"}, "support"),
        ("scorecard", {"sentences": {1: {"on_topic": False}}}, {"on_topic": "off_topic"}, "on_topic"),
        ("scorecard", {"key_points": {1: {"label": "missing"}}}, {"label": "missing"}, "label"),
        ("retrieval", {"retrieved": {2: {"label": "irrelevant"}}}, {"label": "irrelevant"}, "label"),
        ("retrieval", {"key_points": {1: {"in_answer": "absent"}}}, {"in_answer": "absent"}, "in_answer"),
        ("dialogue", {"criteria": {1: {"complies": "no"}}}, {"label": "violated"}, "label"),
    ],
)
def test_every_finding_can_be_verified(protocol: str, change: Any, first: dict[str, Any], field: str) -> None:
    """Whatever speaks against an answer is looked at again; the sample is then scored as if it had not been found."""
    plain = one(scripted("a"), protocol)
    verdict = one(VerifyingJudge(scripted("a", change), scripted("b")), protocol)
    changed = [item for item in verdict.items if item.first]
    assert [item.first for item in changed] == [first]
    assert "not_confirmed" in verdict.flags
    assert verdict.scores == plain.scores
    # Confirmed, it stands as it was found.
    confirmed = one(VerifyingJudge(scripted("a", change), scripted("b", change)), protocol)
    assert confirmed.scores == one(scripted("a", change), protocol).scores
    assert not [item for item in confirmed.items if item.first]
    # Left open by choice.
    judge = VerifyingJudge(scripted("a", change), scripted("b"), unconfirmed="undetermined")
    left_open = [item for item in one(judge, protocol).items if "not_confirmed" in item.flags]
    assert {getattr(item, field) for item in left_open} == {"undetermined" if protocol == "atomic" else "unjudged"}


@pytest.mark.parametrize("escalated", [False, True])
def test_a_label_keeps_its_own_quote(escalated: bool) -> None:
    """Whoever decides only the topic of a sentence leaves its support alone, and what speaks for that."""
    off_topic = scripted("a", {"sentences": {1: {"on_topic": False}}})
    other = scripted("b", {"sentences": {1: {"support": "unsupported", "quote": None, "reason": "found nowhere"}}})
    judge = PanelJudge([scripted("c"), off_topic], escalate=other) if escalated else VerifyingJudge(off_topic, other)
    (sentence, *_), (plain, *_) = one(judge, "scorecard").items, one(scripted("c"), "scorecard").items
    assert isinstance(sentence, Sentence)
    assert isinstance(plain, Sentence)
    assert (sentence.on_topic, sentence.support) == ("on_topic", "supported")
    assert (sentence.evidence, sentence.reason) == (plain.evidence, plain.reason)


def test_a_second_look_leaves_the_level_alone() -> None:
    """How relevant a statement is was not in doubt."""
    first = scripted("a", {"atoms": {1: {"label": "wrong", "level": 3}}})
    atom = one(VerifyingJudge(first, scripted("b", {"atoms": {1: {"level": 1}}}))).items[0]
    assert isinstance(atom, Atom)
    assert (atom.label, atom.level) == ("correct", 3)


def test_what_is_within_the_tolerance_is_neither_split_nor_amiss() -> None:
    """Code finds such a value right, so two judges who put it differently agree, and nobody is asked again."""
    near = {"kind": "statistic", "claimed": "100", "stated": "101"}
    strict, second = scripted("a", {"atoms": {1: {"label": "wrong", "difference": near}}}), scripted("b")
    for judge in (strict, PanelJudge([strict, scripted("c")]), VerifyingJudge(strict, second)):
        atom = one(judge).items[0]
        assert isinstance(atom, Atom)
        assert (atom.label, atom.first, atom.confidence) in [("correct", None, None), ("correct", None, 1.0)]
    assert not second.asks


def test_a_finding_that_is_said_twice_is_looked_at_again() -> None:
    """Said twice and alike it counts, so it is verified like any other."""

    def stammering(ask: Ask) -> Any:
        reply = dict(respond(ask))
        if ask.task == "atomic.judge":
            finding = {**reply["atoms"][0], "label": "wrong"}
            reply["atoms"] = [finding, finding, *reply["atoms"][1:]]
        return reply

    atom = one(VerifyingJudge(ScriptedJudge(stammering), scripted("b"))).items[0]
    assert isinstance(atom, Atom)
    assert (atom.label, atom.first) == ("correct", {"label": "wrong"})


def test_what_was_invented_is_not_looked_at_again() -> None:
    """A finding about an item that does not exist is dropped; nobody is asked and paid for it."""

    def inventive(ask: Ask) -> Any:
        reply = dict(respond(ask))
        if ask.task == "atomic.judge":
            reply["atoms"] = [*reply["atoms"], {**reply["atoms"][0], "id": 77, "label": "wrong"}]
        return reply

    second = scripted("b")
    verdict = one(VerifyingJudge(ScriptedJudge(inventive), second))
    assert "invented_items" in verdict.flags
    assert not second.asks


def test_a_second_look_that_fails_changes_nothing() -> None:
    """Without a second opinion the first one stands."""
    change = {"atoms": {1: {"label": "wrong"}}}
    verdict = one(VerifyingJudge(scripted("a", change), down("b")))
    assert [atom.label for atom in verdict.items] == ["wrong", "correct"]  # type: ignore[union-attr]
    assert not verdict.flags
