"""The protocols by name. A further one is an entry point in the group `steelyard.protocols` (docs/new-protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from pydantic import ValidationError

from steelyard.errors import ConfigError, invalid_field
from steelyard.protocols.common import Options
from steelyard.protocols.vocabulary import Aspect, Expectation, Vocabulary
from steelyard.records import Rounds


@dataclass(frozen=True, eq=False, kw_only=True)
class Protocol(Vocabulary):
    """A protocol: its generator, its options, and its vocabulary."""

    kind: Literal["rag", "dialogue", "pair"]
    """Which samples it judges."""
    rounds: Callable[[Any, Any], Rounds]
    options: type[Options] = Options
    version: int = 1
    needs_question: bool = True
    """Whether a sample without a question is a bad row; else the protocol copes with a blank one."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Prompt texts (source → Markdown) that the protocol brings along; ours are shipped as files."""
    template: Mapping[str, Any] | None = None
    """What a manifest says of the user's own prompt, where one is sent instead (`steelyard.engine.templates`)."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What it was made from where that is no code, such as a rubric: a run's manifest keeps it."""

    @property
    def family(self) -> str:
        """The name without what it was made from: that of its options in steelyard.toml."""
        return self.name.partition(":")[0]

    @property
    def takes_dialogues(self) -> bool:
        return self.kind == "dialogue"

    @property
    def takes_pairs(self) -> bool:
        """Whether a sample needs a second answer."""
        return self.kind == "pair"

    @property
    def scores(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics if not metric.overall)

    def parse_options(self, given: Mapping[str, Any]) -> Options:
        """The protocol's options from a user's names and values; the error names the option and the place."""
        try:
            return self.options.model_validate(nested(given))
        except ValidationError as error:
            name, problem, kind = invalid_field(error)
            known = ", ".join(sorted(self.options.model_fields))
            if kind == "extra_forbidden":
                raise ConfigError(f"{self.family} has no option {name!r}; it has {known}") from None
            raise ConfigError(f"option {name} of {self.family}: {problem}") from None


def nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options with dotted names as the tables they stand for: `tolerance.dates` is `dates` in `tolerance`."""
    found = {name: value for name, value in given.items() if "." not in name}
    for name, value in given.items():
        table, dot, inner = name.partition(".")
        if dot:
            held = found.get(table)
            found[table] = {**(held if isinstance(held, Mapping) else {}), inner: value}
    return found


# Those that judge what is said; the samples and attacks of an audit are made for them.
OF_ANSWERS = ("atomic", "grounded", "scorecard", "dialogue")
PAIRS = "pairwise"
BUILT_IN = (*OF_ANSWERS, "retrieval", PAIRS)
DEFAULT = BUILT_IN[0]
RUBRIC = "rubric"
IMPORTED = "imported"
MOST_RUBRICS = 500
# Protocols that were passed as objects or made from a rubric: reports of them, made in the same process, know only the
# name.
_registered: dict[str, Protocol] = {}


def protocol_names() -> list[str]:
    installed = (point.name for point in entry_points(group="steelyard.protocols"))
    return [*BUILT_IN, *(f"{RUBRIC}:{name}" for name in _shipped_rubrics()), *installed]


def _shipped_rubrics() -> Iterable[str]:
    shipped: Mapping[str, str] = import_module("steelyard.protocols.rubric_file").shipped_rubrics()
    return shipped


def get_protocol(name: str | Protocol, *, paths: bool = True) -> Protocol:
    """A protocol by name; a Protocol is returned as it is. `rubric:` takes a file too, where `paths` are allowed."""
    if isinstance(name, Protocol):
        if _registered.get(name.name) is not name:
            _registered[name.name] = name
            # Anybody who may send a rubric may send many; what a store holds is found again there.
            rubrics = [known for known, one in _registered.items() if one.origin]
            for oldest in rubrics[:-MOST_RUBRICS]:
                del _registered[oldest]
            vocabulary.cache_clear()
        return name
    family, _, named = name.partition(":")
    if family == RUBRIC:
        return _registered.get(name) or get_protocol(
            import_module("steelyard.protocols.rubric").find(named, paths=paths)
        )
    if family == IMPORTED and name in _registered:
        return _registered[name]
    if name in BUILT_IN:
        # Only what is wanted is loaded: all of them together take longer to load than a short run takes.
        found: Protocol = import_module(f"steelyard.protocols.{name}").PROTOCOL
        return found
    for point in entry_points(group="steelyard.protocols"):
        if point.name == name:
            loaded = point.load()
            if not isinstance(loaded, Protocol):
                raise ConfigError(f"the entry point {name!r} ({point.value}) does not name a Protocol")
            return loaded
    raise ConfigError(f"there is no protocol {name!r}; there are {', '.join(protocol_names())}")


def check_together(protocols: Sequence[Protocol]) -> None:
    """Refuse protocols that cannot judge the same samples: one named twice, or of different kinds of samples."""
    first, names = protocols[0], [protocol.name for protocol in protocols]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"the protocol {doubled} is named twice")
    if other := next((one for one in protocols if one.takes_dialogues != first.takes_dialogues), None):
        raise ConfigError(f"{first.name} and {other.name} judge different kinds of samples; run them one by one")


def options_by_protocol(protocols: Sequence[Protocol], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The options of each protocol: those that it has. A single one gets all, and refuses unknown ones."""
    if len(protocols) == 1:
        return [dict(given)]
    for name in given:
        if not any(_takes(protocol, name) for protocol in protocols):
            none = ", ".join(protocol.family for protocol in protocols)
            raise ConfigError(f"none of the protocols {none} has an option {name!r}")
    return [{name: value for name, value in given.items() if _takes(one, name)} for one in protocols]


def _takes(protocol: Protocol, option: str) -> bool:
    return option.partition(".")[0] in protocol.options.model_fields


def restore(name: str, manifest: Mapping[str, Any]) -> None:
    """Make the protocol of a stored run known by its name, where its manifest says what it was made from."""
    family = name.partition(":")[0]
    # Of one tool every run adds the scores that earlier ones did not have.
    if family not in (RUBRIC, IMPORTED) or (family == RUBRIC and name in _registered):
        return
    made = manifest.get("protocol")
    origin = made.get("origin") if isinstance(made, Mapping) else None
    if not isinstance(origin, Mapping) or (name in _registered and _registered[name].origin == origin):
        return
    protocol = import_module(f"steelyard.protocols.{family}").restored(origin)
    if protocol and protocol.name == name:
        get_protocol(protocol)


def registered(name: str) -> Protocol | None:
    """A protocol that was passed as an object or made from a stored run, by its name."""
    return _registered.get(name)


@cache
def vocabulary(name: str) -> Vocabulary:
    """The vocabulary of a protocol; for one that is not installed (any more), the kinds of the shipped ones."""
    if name in _registered:
        return _registered[name]
    try:
        return get_protocol(name)
    except ConfigError:
        shipped = {kind.name: kind for one in BUILT_IN for kind in get_protocol(one).kinds}
        return Vocabulary(name, kinds=tuple(shipped.values()))


def protocol_expecting(name: str) -> tuple[Protocol, Expectation]:
    """The first protocol that has this expectation, with the labels that break it."""
    for protocol in map(get_protocol, BUILT_IN):
        for expectation in protocol.expectations:
            if expectation.name == name:
                return protocol, expectation
    raise ConfigError(f"no protocol can say whether {name!r} holds")


def known_aspects() -> dict[str, list[Aspect]]:
    """Every label that people can give, by name, over all protocols that are known here."""
    found: dict[str, list[Aspect]] = {}
    for protocol in dict.fromkeys((*map(get_protocol, protocol_names()), *_registered.values())):
        for aspect in protocol.aspects():
            found.setdefault(aspect.name, []).append(aspect)
    return found
