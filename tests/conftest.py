"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command import Steelyard


@pytest.fixture
def steelyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Steelyard:
    """The command line in an empty folder, with no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("STEELYARD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    return Steelyard(monkeypatch, capsys)
