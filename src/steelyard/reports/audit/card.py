"""The card of a judge: the result of an audit, as one frozen value."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from steelyard.records import Language, Record, Usage
from steelyard.reports.model import Estimate

Measure = Literal["injection", "harmless", "flagged", "flag_false_alarms", "stability", "sensitivity", "false_alarms"]
# On which side it is good to be: an attack that raises a label is bad, a label that stays is good.
LOW_IS_GOOD: tuple[Measure, ...] = ("injection", "harmless", "flag_false_alarms", "false_alarms")


class Raised(Record):
    """An attack that raised a label above what it was without it and with a harmless text in its place."""

    attack: str
    kind: str
    protocol: str
    base: str
    place: str = Field(description="which label: kind and where it stands")
    before: str
    control: str
    after: str
    flagged: bool
    text: str


class Injection(Record):
    """How far attacks moved the judge. Only cases in which there was something to raise count."""

    raised: Estimate
    harmless: Estimate = Field(description="the same for the harmless texts: what chance and padding do")
    flagged: Estimate = Field(description="attacks that were flagged injection_suspected, by code")
    false_alarms: Estimate = Field(description="samples without an attack that were flagged")
    n_attacks: int = Field(description="attacks that had something to raise in at least one protocol")
    n_raised: int = Field(description="those that raised a label in at least one protocol")
    n_no_room: int = Field(description="cases in which the judge had nothing against the answer anyway")
    by_kind: dict[str, Estimate]
    by_place: dict[str, Estimate]
    by_protocol: dict[str, Estimate]
    by_language: dict[str, Estimate]
    flagged_by_kind: dict[str, Estimate]
    flagged_by_place: dict[str, Estimate]
    successes: tuple[Raised, ...]


class Steady(Record):
    """One change to samples that should change no label."""

    unchanged: Estimate = Field(description="labels that stayed")
    score_change: Estimate = Field(description="mean absolute change of the main score, 0 to 1")
    same_evidence: Estimate = Field(description="labels that still rest on the same passages")


class Moved(Record):
    """A label that changed."""

    change: str
    protocol: str
    base: str
    place: str
    before: str
    after: str


class Stability(Record):
    unchanged: Estimate
    score_change: Estimate
    changes: dict[str, Steady]
    by_protocol: dict[str, Estimate]
    by_language: dict[str, Estimate]
    n_moved: int
    moved: tuple[Moved, ...]


class Missed(Record):
    """A planted error that the judge did not notice."""

    kind: str
    protocol: str
    base: str
    passage: str
    said: str


class Sensitivity(Record):
    """Which single errors the judge notices, of those whose clean twin it finds right."""

    noticed: Estimate
    false_alarms: Estimate = Field(description="clean answers that it does not find right")
    by_kind: dict[str, Estimate]
    by_protocol: dict[str, Estimate]
    by_language: dict[str, Estimate]
    n_missed: int
    missed: tuple[Missed, ...]


class CardPart(Record):
    """All that was measured on one source of data."""

    data: Literal["built_in", "own"]
    n_samples: int
    injection: Injection | None = None
    stability: Stability | None = None
    sensitivity: Sensitivity | None = None

    def measures(self) -> dict[Measure, Estimate]:
        """The numbers of the headline, by the names that `--require` takes."""
        found: dict[Measure, Estimate] = {}
        if self.injection:
            found |= {
                "injection": self.injection.raised,
                "harmless": self.injection.harmless,
                "flagged": self.injection.flagged,
                "flag_false_alarms": self.injection.false_alarms,
            }
        if self.stability:
            found["stability"] = self.stability.unchanged
        if self.sensitivity:
            found |= {"sensitivity": self.sensitivity.noticed, "false_alarms": self.sensitivity.false_alarms}
        return found


class SuiteFacts(Record):
    version: int
    sha256: str


class ScopeFacts(Record):
    """What was measured. Cards are compared only where this is the same."""

    protocols: tuple[str, ...]
    sections: tuple[str, ...]
    repeats: int
    options: dict[str, dict[str, Any]] = Field(description="options of the protocols that are not their defaults")
    data: str | None = Field(default=None, description="hash of the user's samples")


class Card(Record):
    """A judge's report card."""

    judge: str
    described: dict[str, Any]
    suite: SuiteFacts
    scope: ScopeFacts
    steelyard: str
    made: str
    language: Language
    parts: tuple[CardPart, ...]
    n_trials: int
    n_failed: int = Field(description="judgings that came to nothing; unjudged, never a success or a failure")
    unjudged: dict[str, int] = Field(description="why asks were not answered")
    usage: Usage
    stopped: str | None = Field(default=None, description="why the audit ended early")

    def measures(self) -> dict[Measure, Estimate]:
        """The headline numbers; on the user's own data where there are any."""
        return self.parts[-1].measures() if self.parts else {}
