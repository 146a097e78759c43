"""The judge of these tests: recorded replies about the bundled examples."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

# Before they are imported: neither calls home, nor sends traces, from a test.
os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}

# The helpers of the other tests: their folder is found only where its own fixtures are.
sys.path.append(str(Path(__file__).parent.parent))

from steelyard.integrations.scorer import AnswerScorer

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ROWS = {row["id"]: row for row in map(json.loads, (EXAMPLES / "rag.jsonl").read_text("utf-8").splitlines())}
RECORDED = f"recorded:{EXAMPLES / 'replies.jsonl'}"


@pytest.fixture
def scorer() -> AnswerScorer:
    return AnswerScorer("atomic", RECORDED, options={"date": "2026-03-02"})


@pytest.fixture
def wrong() -> dict[str, Any]:
    """A row whose answer has two wrong statements and none that is right."""
    return ROWS["car-seat"]


@pytest.fixture
def right() -> dict[str, Any]:
    """A row whose answer is right in all five statements."""
    return ROWS["car-tyre"]
