"""A panel: several judges, or one asked several times; each label is decided by vote, with the agreement recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from steelyard.errors import ConfigError
from steelyard.judges.base import Judge, JudgeLike, Replacing, Voice, as_judge
from steelyard.judges.composed import ComposedJudge, all_of, joint_fingerprint
from steelyard.judges.voting import Ballot, Merged, VoteThreshold, label_fields, merge, settle
from steelyard.records import Ask, Reply, Unjudged, Usage

Ties = Literal["undetermined", "escalate"]


class Member(NamedTuple):
    """A judge of the panel. Several repeats of one judge are several members."""

    judge: Judge
    weight: float = 1.0
    repeat: int = 0


class PanelJudge(ComposedJudge):
    """Asks every member and takes each label by vote: more than half of the weight, and at least `min_agreement`.

        PanelJudge([one, two, three])
        PanelJudge([one], repeats=5)
        PanelJudge([Member(strong, weight=2), one, two], escalate=arbiter)

    Where the vote is split, `escalate` is asked about just those items and decides; without it they stay undetermined.
    What has no items (splitting an answer, drawing key points) is the first member's to say, since all must judge the
    same items. Fewer than `quorum` replies (more than half of the members, if not said) leave an ask unjudged.
    """

    def __init__(
        self,
        members: Iterable[JudgeLike | Member],
        *,
        repeats: int = 1,
        min_agreement: float = 0.5,
        quorum: int | None = None,
        escalate: JudgeLike | None = None,
    ) -> None:
        given = [
            member._replace(judge=as_judge(member.judge)) if isinstance(member, Member) else Member(as_judge(member))
            for member in members
        ]
        if not given:
            raise ConfigError("a panel needs at least one member")
        if repeats < 1:
            raise ConfigError(f"repeats must be 1 or more, not {repeats}")
        if not 0.5 <= min_agreement <= 1:
            raise ConfigError(f"min_agreement is a share of the votes from 0.5 to 1, not {min_agreement:g}")
        if any(member.weight <= 0 for member in given):
            raise ConfigError("the weight of a member must be above 0")
        self.members = _numbered(m for m in given for _ in range(repeats))
        if quorum is not None and not 1 <= quorum <= len(self.members):
            raise ConfigError(f"quorum must be from 1 to the {len(self.members)} members, not {quorum}")
        self.quorum = quorum or len(self.members) // 2 + 1
        self.min_agreement, self.escalate = min_agreement, as_judge(escalate) if escalate else None
        self._bar = VoteThreshold(_exact(min_agreement), self.quorum)
        self.name = self._name()

    def _name(self) -> str:
        seats = Counter((member.judge.name, member.weight) for member in self.members)
        parts = [
            name + (f" ×{times}" if times > 1 else "") + (f" (weight {weight:g})" if weight != 1 else "")
            for (name, weight), times in seats.items()
        ]
        bar = f", {self.min_agreement:g} agreed" if self.min_agreement > 0.5 else ""
        ties = f", ties to {self.escalate.name}" if self.escalate else ""
        return f"panel of {' + '.join(parts)}{bar}{ties}"

    @property
    def ties(self) -> Ties:
        return "escalate" if self.escalate else "undetermined"

    def describe(self) -> dict[str, Any]:
        """For a run's manifest; `from_description` makes the same panel of it."""
        return {
            "kind": "panel",
            "members": [{**m.judge.described(), "weight": m.weight, "repeat": m.repeat} for m in self.members],
            "min_agreement": self.min_agreement,
            "quorum": self.quorum,
            "ties": self.ties,
            "escalate": self.escalate.described() if self.escalate else None,
        }

    def fingerprint(self, ask: Ask) -> str:
        """Changes whenever a member's answer might, or the way their votes are counted."""
        seats = [(m.weight, m.repeat) for m in self.members]
        return joint_fingerprint(self.parts(), ask, seats, self.min_agreement, self.quorum)

    def parts(self) -> Sequence[Judge]:
        return [*(m.judge for m in self.members), *([self.escalate] if self.escalate else [])]

    def voices(self) -> Sequence[Voice]:
        members = [Voice(v.judge, v.repeat + m.repeat) for m in self.members for v in m.judge.voices()]
        return [*members, *(self.escalate.voices() if self.escalate else ())]

    def exchanged(self, replace: Replacing) -> PanelJudge:
        def seat(member: Member) -> Member:
            made = member.judge.exchanged(lambda v: replace(Voice(v.judge, v.repeat + member.repeat)))
            return member._replace(judge=made)

        members = [seat(member) for member in self.members]
        further = self.escalate.exchanged(replace) if self.escalate else None
        return PanelJudge(members, min_agreement=self.min_agreement, quorum=self.quorum, escalate=further)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if ask.data.items() or label_fields(ask.reply):
            return await self._voted(ask)
        return await self._first_to_answer(ask)

    async def _first_to_answer(self, ask: Ask) -> Reply | Unjudged:
        usage = Usage()
        for member in self.members:
            reply = await member.judge.answer(ask)
            usage += reply.usage
            if isinstance(reply, Reply):
                break
        return reply.model_copy(update={"usage": usage})

    async def _voted(self, ask: Ask) -> Reply | Unjudged:
        replies = await all_of(member.judge.answer(ask) for member in self.members)
        usage = sum((reply.usage for reply in replies), start=Usage())
        failures = [reply for reply in replies if isinstance(reply, Unjudged)]
        if len(replies) - len(failures) < self.quorum:
            return _failed(failures, len(replies), usage)
        ballots = [
            Ballot(reply.data if isinstance(reply, Reply) else None, _exact(member.weight))
            for reply, member in zip(replies, self.members, strict=True)
        ]
        merged = merge(ask, ballots, self._bar)
        if self.escalate and merged.is_open:
            further = await self.escalate.answer(ask.model_copy(update={"data": ask.data.only(merged.open)}))
            usage += further.usage
            if isinstance(further, Reply):
                merged = settle(ask, merged, further.data, Fraction(1), ballots)
        return _reply(merged, usage)


def _numbered(members: Iterable[Member]) -> list[Member]:
    """The members with the repeats of one judge told apart: a journal must not take one for the other."""
    found: list[Member] = []
    for member in members:
        taken = {m.repeat for m in found if m.judge.name == member.judge.name}
        free = next(n for n in range(member.repeat, member.repeat + len(found) + 1) if n not in taken)
        found.append(member._replace(repeat=free))
    return found


def _reply(merged: Merged, usage: Usage) -> Reply:
    return Reply(data=merged.reply, usage=usage, marks=merged.marks)


def _failed(failures: Sequence[Unjudged], members: int, usage: Usage) -> Unjudged:
    """Too few members replied: the commonest reason, with all reasons in the detail."""
    reasons = Counter(failure.reason for failure in failures)
    details = "; ".join(dict.fromkeys(failure.detail or failure.reason for failure in failures))
    ((reason, _),) = reasons.most_common(1)
    return Unjudged(reason=reason, detail=f"{len(failures)} of {members} judges failed: {details}"[:600], usage=usage)


def _exact(number: float) -> Fraction:
    """An exact fraction: rounding in sums of weights must not decide a vote."""
    return Fraction(number).limit_denominator(1_000_000)
