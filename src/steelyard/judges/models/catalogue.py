"""The catalogue of models that can be pulled by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

DEFAULT = "qwen2.5-coder-1.5b"


class Packages(BaseModel):
    """A model that is spread over data wheels; `{n}` in name and member counts them from 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    member: str
    parts: int = Field(ge=1)

    def part(self, number: int) -> tuple[str, str]:
        """(what pip is asked for, the file inside) of one part."""
        return f"{self.name.format(n=number)}=={self.version}", self.member.format(n=number)

    def __str__(self) -> str:
        if self.parts == 1:
            return f"package {self.part(1)[0]}"
        return f"packages {self.part(1)[0]} … {self.part(self.parts)[0]}"


class KnownModel(BaseModel):
    """One entry of known_models.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    quantisation: str
    file: str
    size: int = Field(gt=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    licence: str
    note: str = ""
    too_small: bool = False
    """For trying out: what it says of a sample is worth nothing."""
    hub: str | None = None
    packages: Packages | None = None

    @property
    def full_title(self) -> str:
        """What a judge with this model is called after: which weights they are, and how they are packed."""
        return f"{self.title}-{self.quantisation}"


class KnownVerifier(BaseModel):
    """One entry of known_verifiers.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    parameters: str
    weights: int | None = Field(default=None, gt=0)
    languages: str
    licence: str
    note: str = ""
    files: Mapping[str, str] = Field(default_factory=dict)
    sha256: Mapping[str, str] = Field(default_factory=dict)
    settings: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the hub has it in a form that can be used as it is."""
        return bool(self.files)


@cache
def known_models() -> dict[str, KnownModel]:
    """The shipped catalogue, by name."""
    table = tomllib.loads((files("steelyard.judges.models") / "known_models.toml").read_text("utf-8"))
    return {name: KnownModel.model_validate({"name": name, **entry}) for name, entry in table.items()}


@cache
def known_verifiers() -> dict[str, KnownVerifier]:
    """The shipped list of verifiers, by name."""
    table = tomllib.loads((files("steelyard.judges.models") / "known_verifiers.toml").read_text("utf-8"))
    return {name: KnownVerifier.model_validate({"name": name, **entry}) for name, entry in table.items()}
