"""Providers by name (`providers.toml`): where each is asked, with which key, in which form, what its errors mean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from pydantic import Field

from steelyard.errors import ConfigError
from steelyard.records import Record

Mode = Literal["json_schema", "json_object", "tool", "text"]
WireForm = Literal["chat", "messages", "generate", "converse", "ollama"]
Meaning = Literal["key", "model", "balance", "too_long", "filtered", "busy"]
"""What a refusal is about. `busy` is over after a while; after any other, another try gets the same."""

VARIABLE = re.compile(r"\{([A-Z_]++)\}")
BEARER = "Authorization"


class KeyChoice(NamedTuple):
    """The variable that holds a provider's key, or the one that should, and whether it is set."""

    variable: str
    is_set: bool


class Provider(Record):
    """One row of the table; what the fields mean stands at its top."""

    name: str
    title: str
    url: tuple[str, ...]
    wire: WireForm = "chat"
    key: tuple[str, ...]
    key_header: str = BEARER
    key_url: str = ""
    needs_key: tuple[str, ...] = ()
    signing: str = ""
    structured: tuple[Mode, ...] = ("json_schema", "json_object", "text")
    body: Mapping[str, Any] = Field(default_factory=dict)
    spelling: Mapping[str, str] = Field(default_factory=dict)
    errors: Mapping[Meaning, tuple[str, ...]] = Field(default_factory=dict)
    hints: Mapping[Meaning, str] = Field(default_factory=dict)
    example: str

    def address(self, model: str, environment: Mapping[str, str]) -> str | None:
        """Where this model is asked; null where the environment does not say what the address is made of."""
        for template in self.url:
            if all(environment.get(name) for name in VARIABLE.findall(template)):
                filled = VARIABLE.sub(lambda found: environment[found[1]].rstrip("/"), template)
                address = filled.replace("{model}", quote(model, safe=""))
                # OLLAMA_HOST is written without.
                return address if "://" in address else f"http://{address}"
        return None

    def missing(self, environment: Mapping[str, str]) -> str:
        """The variable that the address waits for."""
        return next((name for name in VARIABLE.findall(self.url[-1]) if not environment.get(name)), "")

    def key_choice(self, environment: Mapping[str, str]) -> KeyChoice:
        found = next((name for name in self.key if environment.get(name)), None)
        if found is None and self.signing and environment.get("AWS_ACCESS_KEY_ID"):
            return KeyChoice("AWS_ACCESS_KEY_ID", is_set=True)
        return KeyChoice(found or self.key[0], is_set=found is not None)

    def asks_for_key(self, host: str) -> bool:
        """Whether a call to this host without a key would be refused anyway."""
        return any(host == one or host.endswith(f".{one}") for one in self.needs_key)

    def meaning(self, codes: Iterable[str]) -> Meaning | None:
        """What an error with these codes is about, where the provider's documentation says it."""
        given = [code.lower() for code in codes]
        return next((meaning for code, meaning in self._meanings() if _is_among(code.lower(), given)), None)

    def _meanings(self) -> Iterator[tuple[str, Meaning]]:
        yield from ((code, meaning) for meaning, codes in self.errors.items() for code in codes)


def _is_among(code: str, given: list[str]) -> bool:
    """Also as the first part: `Throttling` stands for `Throttling.RateQuota`."""
    return any(one == code or one.startswith(f"{code}.") for one in given)


@cache
def providers() -> dict[str, Provider]:
    """The table, by name."""
    table = tomllib.loads((files("steelyard.judges") / "providers.toml").read_text("utf-8"))
    return {name: Provider.model_validate({"name": name, **row}) for name, row in table.items()}


def known_provider(name: str) -> Provider:
    if name not in providers():
        raise ConfigError(f"there is no provider {name!r}; known: {', '.join(providers())}")
    return providers()[name]
