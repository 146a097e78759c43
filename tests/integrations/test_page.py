"""The examples of docs/integrations.md that need the frameworks: they run here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "integrations.md"
BLOCK = re.compile(r"^### (\w+)\n(?:(?!^#|^```).*\n)*^<!-- not run: make integrations -->\n```python\n(.*?)^```$", re.M | re.S)
EXAMPLES = dict(BLOCK.findall(PAGE.read_text("utf-8")))


@pytest.mark.parametrize("name", ["LangChain", "LlamaIndex", "DSPy", "Haystack"])
def test_example_runs(name: str) -> None:
    """The example of each framework runs as it is printed, with the embedded judge."""
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(EXAMPLES[name], f"{PAGE.name}: {name}", "exec", dont_inherit=True), names)
