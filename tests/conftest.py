"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from command import Steelyard

# Generated tests try the same cases every time, and however long one takes on a busy machine. `make fuzz` explores.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("same")
FUZZ_FACTOR = 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `--hypothesis-profile=fuzz`, every generated test gets many times its examples."""
    if settings.get_current_profile_name() != "fuzz":
        return
    for item in items:
        test = getattr(item, "obj", None)
        if own := getattr(test, "_hypothesis_internal_use_settings", None):
            test._hypothesis_internal_use_settings = settings(own, max_examples=own.max_examples * FUZZ_FACTOR)


@pytest.fixture
def steelyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Steelyard:
    """The command line in an empty folder, with no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("STEELYARD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    return Steelyard(monkeypatch, capsys)
