"""The protocols by name. A further one is an entry point in the group `steelyard.protocols` (docs/new-protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

from pydantic import ValidationError

from steelyard.errors import ConfigError, invalid_field
from steelyard.protocols.common import Options
from steelyard.records import Rounds


@dataclass(frozen=True)
class Protocol:
    """What the rest of the tool needs to know of a way to judge."""

    name: str
    kind: Literal["rag", "dialogue"]
    rounds: Callable[[Any, Any], Rounds]
    options: type[Options]
    scores: tuple[str, ...]
    main_score: str
    version: int = 1
    needs_question: bool = True
    """Whether a sample without a question is a bad row; else the protocol copes with a blank one."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Prompt texts (source → Markdown) that the protocol brings along; ours are shipped as files."""

    def parse_options(self, given: Mapping[str, Any]) -> Options:
        """The protocol's options from a user's names and values; the error names the option and the place."""
        try:
            return self.options.model_validate(nested(given))
        except ValidationError as error:
            name, problem, kind = invalid_field(error)
            known = ", ".join(sorted(self.options.model_fields))
            if kind == "extra_forbidden":
                raise ConfigError(f"{self.name} has no option {name!r}; it has {known}") from None
            raise ConfigError(f"option {name} of {self.name}: {problem}") from None


def nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options with dotted names as the tables they stand for: `tolerance.dates` is `dates` in `tolerance`."""
    found = {name: value for name, value in given.items() if "." not in name}
    for name, value in given.items():
        table, dot, inner = name.partition(".")
        if dot:
            held = found.get(table)
            found[table] = {**(held if isinstance(held, Mapping) else {}), inner: value}
    return found


BUILT_IN = ("atomic", "grounded", "scorecard", "dialogue")


@cache
def _built_in(name: str) -> Protocol:
    """Only what is wanted is loaded: all of them together take longer to load than a short run takes."""
    match name:
        case "atomic":
            from steelyard.protocols import atomic

            return Protocol(
                name,
                "rag",
                atomic.atomic,
                atomic.AtomicOptions,
                atomic.SCORES,
                "accuracy",
                version=2,
                needs_question=False,
            )
        case "grounded":
            from steelyard.protocols import grounded

            return Protocol(name, "rag", grounded.grounded, grounded.GroundedOptions, grounded.SCORES, "accuracy")
        case "scorecard":
            from steelyard.protocols import scorecard

            return Protocol(
                name,
                "rag",
                scorecard.scorecard,
                scorecard.ScorecardOptions,
                scorecard.SCORES,
                "accuracy",
                version=2,
                needs_question=False,
            )
        case _:
            from steelyard.protocols import dialogue

            return Protocol(name, "dialogue", dialogue.dialogue, dialogue.DialogueOptions, dialogue.SCORES, "csr")


def protocol_names() -> list[str]:
    return [*BUILT_IN, *(point.name for point in entry_points(group="steelyard.protocols"))]


def get_protocol(name: str | Protocol) -> Protocol:
    """A protocol by name; a Protocol is returned as it is."""
    if isinstance(name, Protocol):
        return name
    if name in BUILT_IN:
        return _built_in(name)
    for point in entry_points(group="steelyard.protocols"):
        if point.name == name:
            loaded = point.load()
            if not isinstance(loaded, Protocol):
                raise ConfigError(f"the entry point {name!r} ({point.value}) does not name a Protocol")
            return loaded
    raise ConfigError(f"there is no protocol {name!r}; there are {', '.join(protocol_names())}")
