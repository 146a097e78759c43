"""The templates and what they may use. Escaping is on everywhere; the viewer builds on the same environment."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steelyard.reports.blocks import clean


def _finish(value: Any) -> Any:
    """Whatever a template prints goes through here: text from outside loses its invisible characters."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def make_environment(*first: BaseLoader) -> Environment:
    """Templates by name: those of the given loaders, then `report`, `overview`, `sample` and `parts` of this package.

    Every text is escaped, and a name that does not exist is an error.
    """
    return Environment(
        loader=ChoiceLoader([*first, PackageLoader("steelyard.reports.html")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finish,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> Environment:
    return make_environment()


@cache
def static(name: str) -> str:
    """The text of a style sheet or script that comes with the package."""
    return (files("steelyard.reports.html") / "static" / name).read_text("utf-8")


def content_hash(text: str) -> str:
    """What a Content-Security-Policy calls this exact text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(style: str, script: str) -> str:
    """Nothing may be loaded and nothing may run but this style sheet and this script."""
    return (
        f"default-src 'none'; style-src '{content_hash(style)}'; script-src '{content_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
