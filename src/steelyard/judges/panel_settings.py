"""The settings of panels and routed judges, and the judges they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from steelyard.errors import ConfigError, invalid_field
from steelyard.judges.base import Judge
from steelyard.judges.composed import ComposedJudge
from steelyard.judges.panel import Member, PanelJudge
from steelyard.judges.routed import SAMPLE, SURE, Lists, RoutedJudge, Sure
from steelyard.judges.verifying import Unconfirmed, VerifyingJudge
from steelyard.records import Record

# At temperature 0 a model says the same each time, and repeats would measure nothing.
TEMPERATURE = 0.7
ITSELF = "itself"
Named = Callable[[str, float | None], Judge]
"""The judge of a name, at this temperature where it is a model that has one."""


class SeatSettings(Record):
    """A member by name, with the weight of its vote."""

    judge: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class PanelSettings(Record):
    """A [judges.x] table of kind panel, or the same from the flags of `run`."""

    members: tuple[SeatSettings, ...] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=99)
    temperature: float | None = Field(default=None, gt=0)
    vote: Literal["majority", "weighted"] | None = None
    min_agreement: float = Field(default=0.5, ge=0.5, le=1)
    quorum: int | None = Field(default=None, ge=1)
    ties: Literal["undetermined", "escalate"] | None = None
    escalate: str | None = Field(default=None, min_length=1)
    verify: str | None = Field(default=None, min_length=1)
    unconfirmed: Unconfirmed = "second"

    @field_validator("members", mode="before")
    @classmethod
    def _plain_names(cls, members: Any) -> Any:
        if not isinstance(members, list | tuple):
            return members
        return [{"judge": member} if isinstance(member, str) else member for member in members]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        weighted = any(seat.weight != 1 for seat in self.members)
        if self.vote == "majority" and weighted:
            raise ValueError('members have weights, so the vote is "weighted"')
        if self.vote == "weighted" and not weighted:
            raise ValueError('a weighted vote needs weights: members = [{ judge = "…", weight = 2 }, …]')
        if self.ties == "escalate" and not self.escalate:
            raise ValueError('ties = "escalate" needs the further judge: escalate = "…"')
        names = [seat.judge for seat in self.members]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is named twice; ask it oftener with repeats, or give it a weight")
        if self.escalate in names:
            raise ValueError(f"{self.escalate} has voted already; escalate to a further judge")
        if self.ties == "undetermined" and self.escalate:
            raise ValueError('escalate names a further judge, so ties cannot be "undetermined"')
        return self

    def make(self, named: Named) -> Judge:
        """The judge: a panel where there is more than one voice, around it a second look where that is wanted."""
        several = len(self.members) * self.repeats > 1
        judge = self._panel(named) if several else self._member(self.members[0], named).judge
        if not several and self.escalate:
            raise ConfigError("escalate needs a panel or repeats: a single voice is never split")
        if self.verify is None:
            return judge
        if self.verify == ITSELF and judge.offline:
            raise ConfigError(f"{judge.name} always answers the same; let another judge verify it")
        verifier = None if self.verify == ITSELF else named(self.verify, None)
        return VerifyingJudge(judge, verifier, unconfirmed=self.unconfirmed)

    def _panel(self, named: Named) -> PanelJudge:
        return PanelJudge(
            [self._member(seat, named) for seat in self.members],
            repeats=self.repeats,
            min_agreement=self.min_agreement,
            quorum=self.quorum,
            escalate=named(self.escalate, None) if self.escalate else None,
        )

    def _member(self, seat: SeatSettings, named: Named) -> Member:
        warm = self.temperature if self.repeats == 1 else self.temperature or TEMPERATURE
        judge = named(seat.judge, warm)
        if isinstance(judge, ComposedJudge):
            raise ConfigError(f"{seat.judge} is made of several judges and cannot be a member; name its members")
        replayed = seat.judge.startswith("recorded:") or judge.name.startswith("recorded:")
        if self.repeats > 1 and (judge.offline or replayed):
            raise ConfigError(f"{seat.judge} always answers the same, so repeats would add nothing")
        return Member(judge, seat.weight)


class RouteSettings(Record):
    """A [judges.x] table of kind routed, or what a name `FIRST>THEN` means.

    `sure` is a confidence, a table of them by kind and label, or the file that `calibrate --write-thresholds` wrote;
    "never" stands for a label on which the first judge is not believed.
    """

    first: str = Field(min_length=1)
    then: str = Field(min_length=1)
    sure: float | Mapping[str, float | Literal["never"]] | str = SURE
    sample: float = Field(default=SAMPLE, ge=0, le=1)
    lists: Lists = "then"

    @model_validator(mode="after")
    def _two_judges(self) -> Self:
        if self.first == self.then:
            raise ValueError(f"{self.first} is named twice; what it is not sure of needs another judge")
        return self

    def make(self, named: Callable[[str], Judge], folder: Path) -> RoutedJudge:
        """The judge; a file of thresholds is looked for in `folder`."""
        first, then = named(self.first), named(self.then)
        sure: Sure
        if isinstance(self.sure, str):
            sure = thresholds_for(first.name, folder / self.sure)
        elif isinstance(self.sure, Mapping):
            sure = {name: None if least == "never" else float(least) for name, least in self.sure.items()}
        else:
            sure = self.sure
        return RoutedJudge(first, then, sure=sure, sample=self.sample, lists=self.lists)


class Thresholds(Record):
    """What `calibrate --write-thresholds` writes: from which confidence on each judge's labels are right often enough;
    null where they never are."""

    precision: float
    judges: Mapping[str, Mapping[str, float | None]]


def thresholds_for(judge: str, file: Path) -> dict[str, float | None]:
    """The thresholds of this judge in such a file."""
    try:
        known = Thresholds.model_validate_json(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{file}: is not a file of thresholds: {invalid_field(error)}") from None
    if judge not in known.judges:
        whose = ", ".join(known.judges) or "nobody"
        raise ConfigError(f"{file} holds thresholds for {whose}, not for {judge}; calibrate a run of {judge}")
    return dict(known.judges[judge])


def rebuilt(description: Mapping[str, Any], leaf: Callable[[Mapping[str, Any]], Judge]) -> Judge:
    """The judge that a manifest describes, with `leaf(…)` for each that answers by itself."""
    match description.get("kind"):
        case "panel":
            further = description.get("escalate")
            return PanelJudge(
                [Member(rebuilt(m, leaf), m["weight"], m["repeat"]) for m in description["members"]],
                min_agreement=description["min_agreement"],
                quorum=description["quorum"],
                escalate=rebuilt(further, leaf) if further else None,
            )
        case "verifying":
            other = description.get("verifier")
            return VerifyingJudge(
                rebuilt(description["judge"], leaf),
                rebuilt(other, leaf) if other else None,
                unconfirmed=description["unconfirmed"],
            )
        case "routed":
            return RoutedJudge(
                rebuilt(description["first"], leaf),
                rebuilt(description["then"], leaf),
                sure=description["sure"],
                sample=description["sample"],
                lists=description["lists"],
            )
        case _:
            return leaf(description)
