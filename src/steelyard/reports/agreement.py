"""How far judges agree with people, as measured: agreement.toml holds the figures, bench/agreement writes it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

FILE = "agreement.toml"
HEADLINE = "balanced accuracy"
"""The figure that says most in one number: a judge that always gives the same label gets one half."""


class AgreementFigure(BaseModel):
    """One measured number. `judge` is a name or a pattern of names (`local:*1.5b*`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    set: str
    measure: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int = Field(ge=1)
    date: str


class AgreementSummary(BaseModel):
    """A judge's agreement in one line: its mean balanced accuracy over the public sets it was measured on."""

    model_config = ConfigDict(frozen=True)

    judge: str
    balanced_accuracy: float
    sets: tuple[str, ...]
    n: int
    date: str

    @property
    def of_hundred(self) -> int:
        """In how many of 100 cases the judge is right, where 50 would be chance."""
        return round(100 * self.balanced_accuracy)

    def values(self) -> Mapping[str, str]:
        return {
            "judge": self.judge,
            "of_hundred": str(self.of_hundred),
            "balanced_accuracy": f"{self.balanced_accuracy:.2f}".removeprefix("0"),
            "sets": str(len(self.sets)),
            "n": f"{self.n:,}",
            "date": self.date,
        }

    def fill(self, template: str) -> str:
        """A phrase with `{judge}`, `{of_hundred}`, `{balanced_accuracy}`, `{sets}`, `{n}` and `{date}` filled in.

        One at a time and literally: a judge may be called anything, also `{n}`.
        """
        parts = template.split("{")
        values = self.values()
        filled = [parts[0]]
        for part in parts[1:]:
            name, closed, rest = part.partition("}")
            filled.append(values[name] + rest if closed and name in values else "{" + part)
        return "".join(filled)


def figures_for(judge: str, path: Path | None = None) -> list[AgreementFigure]:
    """The measured figures of this judge, set by set; none if it was not measured."""
    name = judge.casefold()
    return [figure for figure in _figures(path) if fnmatchcase(name, figure.judge.casefold())]


def summary(judge: str, path: Path | None = None) -> AgreementSummary | None:
    """The judge's agreement in one number, or None where nobody measured it."""
    found = [figure for figure in figures_for(judge, path) if figure.measure == HEADLINE]
    if not found:
        return None
    return AgreementSummary(
        judge=judge,
        balanced_accuracy=sum(figure.value for figure in found) / len(found),
        sets=tuple(figure.set for figure in found),
        n=sum(figure.n for figure in found),
        date=max(figure.date for figure in found),
    )


def _figures(path: Path | None) -> tuple[AgreementFigure, ...]:
    return _shipped() if path is None else read(path.read_text("utf-8"))


@cache
def _shipped() -> tuple[AgreementFigure, ...]:
    return read((files(__package__) / FILE).read_text("utf-8"))


def read(text: str) -> tuple[AgreementFigure, ...]:
    return tuple(AgreementFigure.model_validate(entry) for entry in tomllib.loads(text).get("figures", ()))
