"""Votes: who wins, who stands by the winner, and what is left open."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from feeding import RAG
from steelyard.judges.voting import Ballot, Merged, VoteThreshold, label_fields, merge, poll
from steelyard.protocols.common import numbered
from steelyard.records import Ask, Data, ReplyData
from steelyard.tasks import (
    AtomicData,
    AtomicReply,
    ComplianceData,
    ComplianceReply,
    GradedAtomVerdict,
    GroundedReply,
    ScorecardData,
    ScorecardReply,
    SplitReply,
)

LABELS = ("correct", "wrong", "undetermined", "exempt")
labels = st.sampled_from(LABELS)
weights = st.integers(min_value=1, max_value=5).map(Fraction)


def atoms_ask(count: int = 1) -> Ask:
    data = AtomicData(
        question=RAG.question,
        references=RAG.references,
        answer=RAG.answer,
        date="2026-03-02",
        place="-",
        atoms=numbered(f"atom {n}" for n in range(1, count + 1)),
    )
    return Ask(task="atomic.judge", language="zh", data=data, reply=AtomicReply)


def atom(label: str, id: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": id, "label": label, "level": 1, **fields}


def reply(*atoms: dict[str, Any], fallback: bool = False) -> AtomicReply:
    return AtomicReply.model_validate({"atoms": atoms, "fallback": fallback})


def voted(replies: Sequence[ReplyData | None], ask: Ask | None = None, bar: VoteThreshold | None = None) -> Merged:
    return merge(ask or atoms_ask(), [Ballot(one) for one in replies], bar or VoteThreshold())


# --- the winner --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(labels, weights), min_size=1, max_size=9))
def test_the_winner_has_more_than_half(votes: list[tuple[str, Fraction]]) -> None:
    """Whoever wins has more than half of the weight; where nobody has, nobody wins; the share is never wrong."""
    found = poll(votes)
    total = sum(weight for _, weight in votes)
    sums = {label: sum(weight for said, weight in votes if said == label) for label in LABELS}
    assert found.share == max(sums.values()) / total
    assert found.winner == next((label for label in LABELS if 2 * sums[label] > total), None)


@settings(deadline=None)
@given(st.lists(labels, min_size=1, max_size=5))
def test_the_order_of_voices_decides_nothing(said: list[str]) -> None:
    """A vote is the same whoever is asked first."""
    assert len({poll((label, Fraction(1)) for label in order) for order in permutations(said)}) == 1


@settings(deadline=None)
@given(st.lists(st.tuples(labels, weights), min_size=1, max_size=6), st.sampled_from([2, 3, 7]))
def test_a_weight_is_so_many_voices(votes: list[tuple[str, Fraction]], factor: int) -> None:
    """A weight of three counts as three who say the same, and only ratios of weights matter."""
    spelt_out = [(label, Fraction(1)) for label, weight in votes for _ in range(int(weight))]
    assert poll(votes) == poll(spelt_out) == poll([(label, weight * factor) for label, weight in votes])


@settings(deadline=None)
@given(st.lists(st.tuples(labels, weights), min_size=1, max_size=9))
def test_a_higher_bar_only_leaves_more_open(votes: list[tuple[str, Fraction]]) -> None:
    """What clears a higher bar clears a lower one, with the same label."""
    strict, lax = poll(votes, Fraction(4, 5)), poll(votes)
    assert strict.winner in (None, lax.winner)
    assert (strict.winner is not None) == (lax.winner is not None and lax.share >= Fraction(4, 5))


# --- one reply from several -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), labels), min_size=1, max_size=7).filter(any))
def test_every_item_is_labelled_by_its_majority(said: list[str | None]) -> None:
    """An item has the label of more than half of those who labelled it, or is marked as open; nothing else happens."""
    replies = [None if label is None else reply(atom(label, reason=f"{n}")) for n, label in enumerate(said)]
    merged = voted(replies)
    (label,) = merged.reply.atoms  # type: ignore[attr-defined]
    mark = merged.marks["atoms"][1]
    expected = poll((one, Fraction(1)) for one in said if one)
    assert mark.shares["label"] == float(expected.share)
    assert mark.votes["label"] == tuple(said)
    assert mark.open == (() if expected.winner else ("label",))
    if expected.winner:
        assert label.label == expected.winner
        assert said[int(label.reason)] == label.label  # the reason is that of somebody who said so
    assert merged.open == ({} if expected.winner else {"atoms": (1,)})


def test_quote_and_label_stay_together() -> None:
    """The evidence is that of the winning side, and there of the first whose quote really stands in the passages."""
    merged = voted(
        [
            reply(atom("correct", quote="云湖公园全年免费开放", reference=0)),
            reply(atom("wrong", quote="nowhere", reference=1, reason="a")),
            reply(atom("wrong", quote="共有120个座位", reference=1, reason="b")),
        ]
    )
    (label,) = merged.reply.atoms  # type: ignore[attr-defined]
    assert (label.label, label.quote, label.reason) == ("wrong", "共有120个座位", "b")


def test_levels_are_voted_on_by_all() -> None:
    """The level is the majority's, also where the label is another one's; a tie of levels leaves nothing open."""
    given = [atom("correct", level=3), atom("wrong", level=2), atom("correct", level=2)]
    merged = voted([reply(one) for one in given])
    (label,) = merged.reply.atoms  # type: ignore[attr-defined]
    assert (label.label, label.level) == ("correct", 2)
    merged = voted([reply(atom("correct", level=3)), reply(atom("correct", level=2))])
    assert merged.reply.atoms[0].level == 3  # type: ignore[attr-defined]
    assert not merged.is_open


def test_who_left_an_item_out_has_no_vote_on_it() -> None:
    """Labels are counted among those who gave one; without a quorum of them the item is missing, to be asked again."""
    replies = [reply(atom("correct", 1), atom("wrong", 2)), reply(atom("correct", 1)), reply(atom("wrong", 1))]
    merged = voted(replies, atoms_ask(2), VoteThreshold(quorum=2))
    assert [label.id for label in merged.reply.atoms] == [1]  # type: ignore[attr-defined]
    assert [label.id for label in voted(replies, atoms_ask(2)).reply.atoms] == [1, 2]  # type: ignore[attr-defined]


def test_said_twice_and_differently_is_no_vote() -> None:
    """A voice that contradicts itself on an item has not voted on it."""
    merged = voted([reply(atom("correct"), atom("wrong")), reply(atom("wrong"))])
    assert merged.marks["atoms"][1].votes["label"] == (None, "wrong")


def test_invented_items_are_passed_on_once() -> None:
    """What nobody asked about reaches the protocol, which drops and counts it."""
    merged = voted([reply(atom("correct"), atom("wrong", 9)), reply(atom("correct"), atom("wrong", 9))])
    assert [label.id for label in merged.reply.atoms] == [1, 9]  # type: ignore[attr-defined]


def test_what_is_said_of_the_whole_is_voted_on_too() -> None:
    """`fallback` is a vote like any other; a tie leaves it open."""
    merged = voted([reply(atom("correct"), fallback=fallback) for fallback in (True, False, True)])
    assert merged.reply.fallback is True  # type: ignore[attr-defined]
    assert voted([reply(atom("correct"), fallback=fallback) for fallback in (True, False)]).whole


def test_a_sentence_has_two_votes() -> None:
    """Topic and support are voted on apart: one may be open while the other is decided."""
    data = ScorecardData(
        question="?", references=("it",), date="-", place="-", sentences=numbered(["it"]), key_points=(), atoms=()
    )
    ask = Ask(task="scorecard.judge", language="en", data=data, reply=ScorecardReply)
    said = [("supported", True), ("unsupported", True)]
    replies = [
        ScorecardReply.model_validate({"sentences": [{"id": 1, "support": support, "on_topic": topic}]})
        for support, topic in said
    ]
    mark = voted(replies, ask).marks["sentences"][1]
    assert (mark.open, mark.shares) == (("support",), {"on_topic": 1.0, "support": 0.5})


def test_partly_and_no_are_the_same_breach() -> None:
    """Votes are counted by what they mean: two ways to break a criterion outvote one to keep it."""
    data = ComplianceData(system_prompt="s", history=(), turn=1, prompt="p", answer="a", criteria=numbered(["c"]))
    ask = Ask(task="dialogue.compliance", language="en", data=data, reply=ComplianceReply)

    def said(complies: str, **fields: Any) -> ComplianceReply:
        return ComplianceReply.model_validate({"criteria": [{"id": 1, "complies": complies, **fields}]})

    merged = voted([said("fully"), said("partly"), said("no")], ask)
    assert merged.reply.criteria[0].complies == "partly"  # type: ignore[attr-defined]
    merged = voted([said("no", triggered=False), said("fully"), said("no")], ask)
    assert merged.marks["criteria"][1].votes["complies"] == ("satisfied", "satisfied", "violated")


def test_doubt_is_an_abstention() -> None:
    """A judge that cannot tell takes part but has no vote; where nobody can tell, the doubt is passed on."""
    data: Data = ScorecardData(
        question="?", references=(), date="-", place="-", sentences=(), key_points=numbered(["k"]), atoms=()
    )
    ask = Ask(task="scorecard.judge", language="en", data=data, reply=ScorecardReply)
    doubt = ScorecardReply.model_validate({"unsure": [{"items": "key_points", "id": 1, "reason": "cannot tell"}]})
    sure = ScorecardReply.model_validate({"key_points": [{"id": 1, "label": "covered"}]})
    merged = voted([doubt, sure], ask, VoteThreshold(quorum=2))
    assert merged.reply.key_points[0].label == "covered"  # type: ignore[attr-defined]
    merged = voted([doubt, doubt], ask, VoteThreshold(quorum=2))
    assert [one.reason for one in merged.reply.unsure] == ["cannot tell"]  # type: ignore[attr-defined]


def test_what_can_be_voted_on() -> None:
    """Choices among few, and neither texts nor what belongs to another label."""
    assert set(label_fields(GradedAtomVerdict)) == {"label", "level"}
    assert label_fields(SplitReply) == ()
    assert label_fields(GroundedReply) == ("answerable",)
