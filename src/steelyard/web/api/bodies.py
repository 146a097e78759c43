"""Request bodies. Types are strict: "1" is not accepted for 1."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from steelyard.errors import InputError, invalid_field
from steelyard.protocols import RUBRIC, Protocol, get_protocol
from steelyard.protocols.rubric import inline
from steelyard.store import RunIdentity, run_identity
from steelyard.web.actions import RunRequest, Spending

MOST_AT_ONCE = 1000


class Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, given: Any) -> Any:
        """To JSON 3.0 is as whole a number as 3. Samples are read by the rules of files."""
        if not isinstance(given, dict):
            return given
        try:
            return {name: value if name == "samples" else _whole(value) for name, value in given.items()}
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _whole(part) for name, part in value.items()}
        case list():
            return [_whole(part) for part in value]
        case _:
            return value


OWN_PROMPT = Field(
    default=None,
    pattern=r"\S",
    description="the text of a judge prompt of your own, with $$$placeholders$$$, sent instead of the shipped ones; "
    "for judges that follow prompts",
)
FENCED = Field(
    default=False,
    description="whether texts that are put into the template stand between tags with a code; in the shipped prompts "
    "they always do",
)


class Judging(Body):
    """How samples are to be judged."""

    protocol: str = Field(description="a name of GET /protocols; rubric: the one in `rubric`")
    rubric: dict[str, Any] | str | None = Field(
        default=None, description="criteria of your own: the table of a rubric file, or its text (docs/rubric.md)"
    )
    judge: str | None = Field(default=None, description="a name of GET /judges; null: the default one")
    options: dict[str, Any] = Field(default_factory=dict, description="options of the protocol")
    fields: dict[str, str] = Field(default_factory=dict, description="where fields are found: field → column")
    template: str | None = OWN_PROMPT
    fence: bool = FENCED

    @property
    def how(self) -> RunRequest:
        """The same for the rest of the tool, the options checked as strictly as the request."""
        protocol = self._protocol()
        try:
            protocol.options.model_validate_json(json.dumps(self.options), strict=True)
        except ValidationError as error:
            field, problem, _ = invalid_field(error)
            raise InputError(problem, field=f"options.{field}") from None
        return RunRequest(
            protocol=protocol.name,
            judge=self.judge,
            options=self.options,
            fields=self.fields,
            template=self.template,
            fence=self.fence,
        )

    def _protocol(self) -> Protocol:
        if self.protocol != RUBRIC:
            if self.rubric is not None:
                raise InputError(f'goes with protocol "{RUBRIC}" only', field="rubric")
            return get_protocol(self.protocol, paths=False)
        if self.rubric is None:
            raise InputError(f"is missing: the criteria, or name a shipped rubric as {RUBRIC}:NAME", field="rubric")
        try:
            return get_protocol(inline(self.rubric))
        except InputError as error:
            raise InputError(error.problem, line=error.line, field=f"rubric.{error.field or ''}".rstrip(".")) from None


class IdentityBody(Body):
    """What to change of a run's identity; what is null or missing stays as it is."""

    name: str | None = Field(default=None, max_length=200)
    notes: str | None = Field(default=None, max_length=100_000)
    tags: list[Annotated[str, Field(pattern=r"\S")]] | None = None
    meta: dict[str, str | int | bool | None] | None = Field(default=None, description="replaces all of it")
    project: str | None = Field(default=None, max_length=200)
    baseline: bool | None = Field(default=None, description="whether other runs of its project are compared with it")


class EvaluateBody(Judging):
    """Samples to judge at once; the answer waits for all of them."""

    samples: list[dict[str, Any]] = Field(
        min_length=1, max_length=MOST_AT_ONCE, description="samples as a line of a file has them"
    )


class SpendingBody(Body):
    """When a run, or several with one budget, stops by itself."""

    max_cost: float | None = Field(default=None, ge=0, le=1e9, description="stop after this many US dollars")
    max_tokens: int | None = Field(default=None, ge=0, le=10**15, description="stop after this many tokens")
    max_seconds: float | None = Field(default=None, ge=0, le=1e9, description="stop after this many seconds")

    @property
    def spending(self) -> Spending:
        return Spending(max_cost=self.max_cost, max_tokens=self.max_tokens, max_seconds=self.max_seconds)


class RunSettingsBody(SpendingBody, Judging):
    """A run of the store; it goes on after the answer."""

    project: str | None = Field(default=None, max_length=200, description="the project that the run belongs to")
    name: str = Field(default="", max_length=200, description="what to call the run")
    tags: list[Annotated[str, Field(pattern=r"\S")]] = []
    meta: dict[str, str | int | bool | None] = Field(default_factory=dict, description="for example version or commit")

    @property
    def called(self) -> RunIdentity:
        return run_identity(self.model_dump(include={"name", "tags", "meta"}))


class RunBody(RunSettingsBody):
    """Samples for a run of the store; it goes on after the answer."""

    samples: list[dict[str, Any]] = Field(min_length=1, description="samples as a line of a file has them")
