"""Settings: steelyard.toml and the environment, read only here; the CLI applies flags over them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from steelyard.errors import ConfigError, Surface, invalid_field
from steelyard.prompts import Prompts

if TYPE_CHECKING:
    from steelyard.protocols import Protocol
    from steelyard.store import StoreLocation

FILE = "steelyard.toml"
STORE = Path(".steelyard") / "store.db"
DEFAULT_MODEL = "gpt-4o-mini"


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunDefaults(Strict):
    """The [run] table: defaults of flags."""

    judge: str | None = None
    language: Literal["zh-Hans", "zh-Hant", "en"] | None = None
    store: str | None = None
    project: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = Field(default_factory=dict)
    concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    prompts: tuple[Path, ...] = ()


class TemplateFile(Strict):
    """A [templates.PROTOCOL] table: the user's own judge prompt for a protocol."""

    file: Path
    fence: bool = False


class Experiment(Strict):
    """An [experiments.NAME] table: every combination of its data, protocols, judges and options is a run."""

    data: tuple[str, ...] = Field(min_length=1)
    protocols: tuple[str, ...] = Field(min_length=1)
    judges: tuple[str, ...] = ()
    """Empty: whoever judges when none is named."""
    options: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Variants by name, each with options of the protocols."""
    fields: Mapping[str, str] = Field(default_factory=dict)
    encoding: str = "utf-8"
    format: str | None = None

    @field_validator("data", "protocols", "judges", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("data", "protocols", "judges")
    @classmethod
    def _each_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if doubled := next((one for one in given if given.count(one) > 1), None):
            raise ValueError(f"{doubled!r} is named twice")
        return given


class SettingsFile(Strict):
    """A whole steelyard.toml."""

    run: RunDefaults = RunDefaults()
    judges: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    templates: Mapping[str, TemplateFile] = Field(default_factory=dict)
    experiments: Mapping[str, Experiment] = Field(default_factory=dict)


class JudgeChoice(NamedTuple):
    """The chosen judge, and why it was chosen; empty if the user named it in this call."""

    name: str
    why: str = ""


class Settings:
    """One file with one environment; `source` is the file's path, `surface` where the user is."""

    def __init__(
        self, file: SettingsFile, environment: Mapping[str, str], source: str, surface: Surface = Surface.flags
    ) -> None:
        self.file, self.environment, self.source, self.surface = file, environment, source, surface
        self.run, self.judges, self.options, self.prices = file.run, file.judges, file.options, file.prices
        self.templates, self.experiments = file.templates, file.experiments

    @classmethod
    def load(
        cls,
        path: Path | None = None,
        environment: Mapping[str, str] | None = None,
        surface: Surface = Surface.flags,
    ) -> Settings:
        """From the named file, else from steelyard.toml here, else the defaults."""
        environment = os.environ if environment is None else environment
        named = path or environment.get("STEELYARD_CONFIG")
        file = Path(named or FILE)
        if not named and not file.exists():
            return cls(SettingsFile(), environment, FILE, surface)
        try:
            settings = SettingsFile.model_validate(tomllib.loads(file.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{file}: not valid TOML: {error}") from error
        except ValidationError as error:
            raise ConfigError(f"{file}: {invalid_field(error)}") from error
        return cls(settings, environment, str(file), surface)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return Path(self.source).parent

    @cached_property
    def prompts(self) -> Prompts:
        """The shipped prompts with the user's own laid over them."""
        return Prompts.shipped().with_files(self.folder / path for path in self.run.prompts)

    def protocol(self, name: str, template: str | None = None, *, fence: bool = False, paths: bool = True) -> Protocol:
        """The protocol, with the template of this file where one is named here or in the settings; an empty name
        stands for the shipped prompts."""
        from steelyard.engine.templates import PromptTemplate, templated
        from steelyard.protocols import get_protocol

        chosen = get_protocol(name, paths=paths)
        if template:
            return templated(chosen, PromptTemplate.read(template, fence=fence))
        known = self.templates.get(name) if template is None else None
        if known:
            return templated(chosen, PromptTemplate.read(self.folder / known.file, fence=fence or known.fence))
        if fence:
            raise ConfigError(f"{self.surface.setting('fence').rstrip('=')} is for what is put into a template")
        return chosen

    def experiment(self, name: str) -> Experiment:
        """The [experiments.NAME] table."""
        if name not in self.experiments:
            known = ", ".join(self.experiments) or "none"
            raise ConfigError(f"{self.source}: there is no table [experiments.{name}]; there are {known}")
        return self.experiments[name]

    def store_location(self, given: StoreLocation | None = None) -> StoreLocation:
        """Where runs are kept: as named, else as the environment says, else as the file does, beside it."""
        from steelyard.store import as_location

        if named := given or self.environment.get("STEELYARD_STORE"):
            return as_location(named)
        in_file = as_location(self.run.store) if self.run.store else STORE
        return self.folder / in_file if self.run.store and isinstance(in_file, Path) else in_file

    @property
    def token(self) -> str | None:
        """The viewer's access token from the environment, if set."""
        return self.environment.get("STEELYARD_TOKEN") or None

    def choose(self, name: str | None) -> JudgeChoice:
        """The judge by the name given here, else in the environment, in the file, by a key, else `embedded`."""
        if name:
            return JudgeChoice(name)
        if by_variable := self.environment.get("STEELYARD_JUDGE"):
            return JudgeChoice(by_variable, "STEELYARD_JUDGE names it")
        if self.run.judge:
            return JudgeChoice(self.run.judge, f"run.judge in {self.source} names it")
        if not self.environment.get("OPENAI_API_KEY"):
            return JudgeChoice("embedded", "no judge is named and OPENAI_API_KEY is not set")
        elsewhere = self.environment.get("OPENAI_BASE_URL")
        model = self.environment.get("OPENAI_MODEL") or (None if elsewhere else DEFAULT_MODEL)
        if model:
            return JudgeChoice(f"openai:{model}", "no judge is named and OPENAI_API_KEY is set")
        why = "no judge is named, and OPENAI_MODEL does not say what to ask at OPENAI_BASE_URL"
        return JudgeChoice("embedded", why)
