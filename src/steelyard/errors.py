"""What can go wrong, in one tree.

SteelyardError
├── InputError            a file, row or field that cannot be read: names the place
│   └── TranscriptError   a transcript that has none of the known forms
├── ConfigError           a flag, option, TOML key or environment variable that does not fit
├── PromptError           a prompt file that cannot be loaded or rendered
├── JudgeError            the judge as a whole is unusable (bad key, unknown model, nobody answers): the run stops
├── PullError             a model cannot be fetched: what has arrived stays
├── StoreError            the store cannot be opened or written: says why, what was written stays intact
│   ├── UnknownRun        there is no run of that name, or several
│   └── RunInUse          another process is at work on the run
└── MissingExtra          an optional dependency is needed: says which `pip install` brings it

A single ask that fails is not an exception: it is an `Unjudged` value (records.py).
"""

from __future__ import annotations

from typing import Any


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


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


class TranscriptError(InputError):
    """The text is in none of the forms that `parse` knows."""


class ConfigError(SteelyardError):
    """The user asked for something that does not exist or does not fit together."""

    exit_code = 2


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
    """A name that means no run of the store, or more than one."""


class RunInUse(StoreError):
    """Somebody else is at work on the run; two at once would pay twice."""


class PullError(SteelyardError):
    """A model could not be fetched. What has arrived stays, and the next pull goes on from there."""


class MissingExtra(SteelyardError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'steelyard[{extra}]'")
