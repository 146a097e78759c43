"""Files of other tools. Each importer is one module, loaded when a file is named or looks like its tool's."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from steelyard.errors import ConfigError, Surface
from steelyard.samples.importers.base import Imported, ImportedScore, Importer, Skipped

__all__ = ["PLAIN", "Imported", "ImportedScore", "Importer", "Skipped", "detected", "importer_named", "importer_names"]

PLAIN: Final = "plain"
"""Not a tool: columns are read by their names, whatever the file looks like."""
_MODULES: Final = {
    "dify": "dify",
    "ragflow": "ragflow",
    "fastgpt": "fastgpt",
    "coze": "coze",
    "ark": "ark",
    "langfuse": "langfuse",
    "phoenix": "phoenix",
    "mlflow": "mlflow",
    "langsmith": "langsmith",
    "opik": "opik",
    "inspect": "inspect_log",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "openai-evals": "openai_evals",
    "ragas": "ragas",
    "sysbench": "sysbench",
    "huggingface": "huggingface",
}


def importer_names() -> tuple[str, ...]:
    return tuple(_MODULES)


@cache
def _importer(name: str) -> Importer:
    found: Importer = import_module(f"{__name__}.{_MODULES[name]}").IMPORTER
    return found


def importer_named(name: str, surface: Surface = Surface.python) -> Importer | None:
    """An importer by name; None for `plain`. An unknown name is the caller's mistake."""
    if name == PLAIN:
        return None
    if name not in _MODULES:
        where = "--from" if surface is Surface.flags else "importer="
        raise ConfigError(f"{where}: there is no importer {name!r}; there are {', '.join((*_MODULES, PLAIN))}")
    return _importer(name)


def detected(paths: frozenset[str], source: str = "") -> Importer | None:
    """The tool whose file this unmistakably is, by the paths in a record or the ending of its name."""
    for importer in map(_importer, _MODULES):
        if importer.suffix and source.casefold().endswith(importer.suffix):
            return importer
        if any(sign <= paths for sign in importer.signs):
            return importer
    return None
