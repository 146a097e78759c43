"""What `import steelyard` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import steelyard

HEAVY = ("aiohttp", "pandas", "polars", "pyarrow", "pydantic", "rich", "typer")


def test_exports() -> None:
    """Every exported name can be had, and the list is sorted."""
    assert steelyard.__all__ == sorted(steelyard.__all__)
    for name in steelyard.__all__:
        assert getattr(steelyard, name) is not None
    assert set(steelyard.__all__) <= set(dir(steelyard))


def test_unknown_name() -> None:
    """A name that does not exist is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="nosuch"):
        _ = steelyard.nosuch


@pytest.mark.parametrize("statement", ["import steelyard", "import steelyard.errors, steelyard.judges"])
def test_importing_is_light(statement: str) -> None:
    """Importing the package imports none of its dependencies."""
    code = f"import sys; {statement}; print(*sorted({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_is_light() -> None:
    """`steelyard --help` needs typer, not pydantic, rich or aiohttp."""
    code = (
        "import sys; from steelyard.cli import main; sys.argv = ['steelyard', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted({'aiohttp', 'pydantic', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: steelyard" in done.stdout
    assert done.stderr.split() == []
