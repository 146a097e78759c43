"""What the tool says to people, in three languages: names of metrics, checks and labels, band descriptions,
report headings. One TOML file per language with the same keys; code holds no user-facing prose of its own.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from steelyard.errors import ConfigError
from steelyard.records import Language

LANGUAGES: tuple[Language, ...] = ("zh-Hans", "zh-Hant", "en")


@cache
def words(language: Language) -> dict[str, Any]:
    """All wording of one language, as nested tables."""
    if language not in LANGUAGES:
        raise ConfigError(f"there are no reports in {language!r}; there are {', '.join(LANGUAGES)}")
    return tomllib.loads((files(__name__) / f"{language}.toml").read_text("utf-8"))


def say(language: Language, key: str) -> str:
    """One phrase by its dotted key, e.g. `metric.accuracy`; a missing one is a bug and raises KeyError."""
    value: Any = words(language)
    for part in key.split("."):
        value = value[part]
    return str(value)


def band_description(metric: str, band: int, language: Language) -> str:
    """What a score in this band (0 to 9) of this scorecard metric means."""
    return str(words(language)["band"][metric][band])
