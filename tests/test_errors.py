"""How errors are told: one line that names the place, in the words of the validator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError, field_validator, model_validator

import steelyard
from steelyard.errors import invalid_field


class Inner(BaseModel):
    many: list[int] = []

    @field_validator("many")
    @classmethod
    def _short(cls, many: list[int]) -> list[int]:
        if len(many) > 2:
            raise ValueError("too many of them")
        return many


class Outer(BaseModel):
    name: str
    inner: Inner = Inner()

    @model_validator(mode="after")
    def _named(self) -> Outer:
        if self.name == "nobody":
            raise ValueError("somebody is needed")
        return self


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "name: Field required"),
        ({"name": 1}, "name: Input should be a valid string"),
        ({"name": "x", "inner": {"many": [1, "two"]}}, "inner.many.1: Input should be a valid integer"),
        ({"name": "nobody"}, "somebody is needed"),
        ({"name": "x", "inner": {"many": [1, 2, 3]}}, "inner.many: too many of them"),
    ],
)
def test_the_first_problem_in_one_line(given: dict[str, object], told: str) -> None:
    """The field as a dotted path, then what is wrong, without pydantic's own prefixes; the whole has no path."""
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    assert str(invalid_field(caught.value)).startswith(told)
    assert "\n" not in str(invalid_field(caught.value))


def test_there_is_one_formatter() -> None:
    """Only the reply of a judge, which is told all its problems in its language, is treated otherwise."""
    folder = Path(steelyard.__file__).parent
    files = [
        str(file.relative_to(folder)) for file in folder.rglob("*.py") if re.search(r"\.errors\(", file.read_text())
    ]
    assert sorted(files) == ["errors.py", "judges/parsing.py"]
