"""What can go wrong, in one tree.

SteelyardError
├── InputError            a file, row or field that cannot be read: names the place
│   ├── NoReadableRow     there is no row that can be read
│   └── TranscriptError   a transcript that has none of the known forms
├── ConfigError           a flag, option, TOML key or environment variable that does not fit
│   ├── NotComparable     two runs whose difference would mean nothing: names the reasons
│   ├── LabelsDoNotFit    labels that cannot be compared with a run: names the reason, to be said in any language
│   └── FormRefused       what a form of the viewer asks for and cannot have: names the reason likewise
│       └── NotAllowed    this person may not have it
├── PromptError           a prompt file that cannot be loaded or rendered
├── JudgeError            the judge as a whole is unusable (bad key, unknown model, nobody answers): the run stops
├── PullError             a model cannot be fetched: what has arrived stays
│   └── AbsentFile        the server has no such file
├── CommentError          a code host did not take a comment: says what it answered
├── StoreError            the store cannot be opened or written: says why, what was written stays intact
│   ├── UnknownRun        there is no run of that name, or several
│   ├── UnknownSet        there is no set of that name, or several, or no such version of it
│   ├── UnknownQueue      there is no queue of that number
│   ├── UnknownExperiment there is no experiment of that number
│   ├── RunInUse          another process is at work on the run
│   └── ServerAway        the database server cannot be reached, or went away in the middle of something
└── MissingExtra          an optional dependency is needed: says which `pip install` brings it

A single ask that fails is not an exception: it is an `Unjudged` value (records.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


class Surface(StrEnum):
    """The interface the user works with, so that errors name settings as they are written there."""

    flags = "flags"
    python = "python"

    def setting(self, name: str, value: object = "") -> str:
        """`--max-cost 2` on the command line, `max_cost=2` in Python."""
        if self is Surface.python:
            return f"{name}={value}"
        return f"--{name.replace('_', '-')} {value}".rstrip()

    def mapping(self, columns: dict[str, str]) -> str:
        """Where fields are found: `--map answer=reply`, or `fields={'answer': 'reply'}`."""
        if self is Surface.python:
            return f"fields={columns}"
        return " ".join(f"--map {field}={column}" for field, column in columns.items())

    def importing(self, tool: str) -> str:
        """`--from dify`, or `importer='dify',` before further arguments."""
        return f"importer={tool!r}," if self is Surface.python else f"--from {tool}"

    def judge(self, name: str) -> str:
        """`-j openai:MODEL`, or `judge='openai:MODEL'`."""
        return f"judge={name!r}" if self is Surface.python else f"-j {name}"


class SteelyardError(Exception):
    """Base of every error a user may see; its text is one line that says what to do."""

    exit_code = 1


class InputError(SteelyardError):
    """Something in the user's data cannot be read."""

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        # Names of columns and files in another encoding: no terminal, database or page takes what they came out as.
        self.problem, self.line = _encodable(problem), line
        self.file, self.field = (None if name is None else _encodable(name) for name in (file, field))
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        named = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{place}: {named}" if place else named


class InvalidField(NamedTuple):
    """The first problem that a validation found: where (`a.0.b`, or empty for the whole), what, and pydantic's type."""

    field: str
    problem: str
    kind: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


class _ValidationError(Protocol):
    """Of pydantic or of FastAPI; neither is loaded for this."""

    def errors(self) -> Sequence[Any]: ...


def invalid_field(error: _ValidationError) -> InvalidField:
    """The first problem of a failed validation, as one line for the user."""
    first = error.errors()[0]
    problem = first["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return InvalidField(".".join(str(part) for part in first["loc"]), problem, first["type"])


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


class NoReadableRow(InputError):
    """There is no sample: no row at all, or none that can be read.

    `bad_rows` are the bad ones, in a run the first 1,000; `count` is how many there are.
    """

    def __init__(self, bad_rows: Sequence[InputError], count: int | None = None, *, file: str | None = None) -> None:
        self.bad_rows = tuple(bad_rows)
        self.count = count = len(self.bad_rows) if count is None else count
        if not self.bad_rows:
            super().__init__("there is no sample in it", file=file)
            return
        first = self.bad_rows[0]
        none = "the only row cannot be read" if count == 1 else f"none of {count:,} rows can be read; the first"
        named = f"{first.field}: {first.problem}" if first.field else first.problem
        super().__init__(f"{none}: {named}", file=first.file, line=first.line if first.file else None)


class TranscriptError(InputError):
    """The text is in none of the forms that `parse` knows."""


class ConfigError(SteelyardError):
    """A setting that does not exist, or settings that contradict each other."""

    exit_code = 2


class LabelsDoNotFit(ConfigError):
    """Labels that cannot be compared with a run. `code` and `counts` say why; the text does in English."""

    def __init__(self, problem: str, code: str, counts: dict[str, int] | None = None) -> None:
        super().__init__(problem)
        self.code, self.counts = code, counts or {}


class FormRefused(ConfigError):
    """What somebody asked for in a form cannot be done. `code` and `values` say why (`viewer.refused.CODE`); the text
    does in English."""

    def __init__(self, problem: str, code: str, *, field: str | None = None, **values: object) -> None:
        super().__init__(problem)
        self.code, self.field, self.values = code, field, values


class NotAllowed(FormRefused):
    """The user lacks the permission."""


class NotComparable(ConfigError):
    """Two runs that differ in more than the answers. `reasons` are codes of the wording (`compare.mark.*`), each with
    its detail; where `can_be_forced`, the user may ask for the comparison all the same."""

    def __init__(self, a: str, b: str, reasons: Sequence[tuple[str, str]], *, can_be_forced: bool = True) -> None:
        self.reasons, self.can_be_forced = tuple(reasons), can_be_forced
        if can_be_forced:
            differences = "; ".join(f"{code}: {detail}" for code, detail in reasons)
            super().__init__(
                f"{a} and {b} cannot be compared fairly; they differ in {differences}. "
                "--anyway (over HTTP: anyway=true) compares them and marks it"
            )
        else:
            super().__init__(f"{a} and {b} have no sample in common (samples are paired by id)")


class PromptError(SteelyardError):
    """A prompt file is broken, or a placeholder in it has no value."""

    exit_code = 2


class JudgeError(SteelyardError):
    """No ask can succeed with this judge; going on would only repeat the failure.

    Raised by `evaluate`, it has the `results` of what was judged until then.
    """

    exit_code = 4
    results: Any = None


class StoreError(SteelyardError):
    """The database that holds runs and replies cannot be used."""

    exit_code = 5


class UnknownRun(StoreError):
    """A name that matches no run of the store, or more than one."""

    exit_code = 2


class UnknownSet(StoreError):
    """A name that means no set of samples in the store, or more than one; or a version that it does not have."""

    exit_code = 2


class UnknownQueue(StoreError):
    """A number that means no queue of items to label."""

    exit_code = 2


class UnknownExperiment(StoreError):
    """A number that means no experiment."""

    exit_code = 2


class RunInUse(StoreError):
    """Another process is judging the run; two at once would pay twice."""


class ServerAway(StoreError):
    """The database server cannot be reached; what was committed is kept."""


class PullError(SteelyardError):
    """A model could not be fetched. What has arrived stays, and the next pull goes on from there."""


class AbsentFile(PullError):
    """The server has no such file; another place may have it."""


class CommentError(SteelyardError):
    """A code host (GitHub, GitLab) refused a comment or could not be reached."""

    exit_code = 2


class MissingExtra(SteelyardError):
    """An optional dependency is not installed. Without an `extra` that brings it, it is installed by its own name."""

    exit_code = 2

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        install = f"'steelyard[{extra}]'" if extra else package
        super().__init__(f"{purpose} needs {package}: pip install {install}")
