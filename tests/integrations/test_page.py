"""The examples of docs/integrations.md that need the frameworks: they run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "integrations.md"
BEFORE = "<!-- not run: make integrations -->\n```python\n"


def example(name: str) -> str:
    """The block below the heading of a framework."""
    section = PAGE.read_text("utf-8").partition(f"\n### {name}\n")[2]
    return section.partition(BEFORE)[2].partition("\n```")[0]


@pytest.mark.parametrize("name", ["LangChain", "LlamaIndex", "DSPy", "Haystack"])
def test_example_runs(name: str) -> None:
    """The example of each framework runs as it is printed, with the embedded judge."""
    names: dict[str, Any] = {"__name__": "page"}
    assert "steelyard" in example(name)
    exec(compile(example(name), f"{PAGE.name}: {name}", "exec", dont_inherit=True), names)
