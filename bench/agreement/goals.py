"""What is to be reached, and what others published on the same labels."""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    """One line of the table: what is measured, what the judges are to reach, and what others published."""

    set: str
    measure: str
    shown: str
    embedded: float | None
    local: float | None
    published: str


BALANCED = "balanced accuracy"
GOALS: tuple[Goal, ...] = (
    Goal(
        "memerag", BALANCED, "memerag en, support, balanced accuracy", 0.68, 0.72,
        "LLM judges .60–.71; one person .93",
    ),
    Goal("memerag relevance", "macro-F1", "memerag en, relevance, macro-F1", None, 0.50, ""),
    Goal(
        "factcheckgpt", BALANCED, "factcheckgpt en, supported or not, balanced accuracy", 0.74, 0.78,
        "accuracy: GPT-3.5 .365 (4 classes), RoBERTa-MNLI .607 (3 classes)",
    ),
    Goal(
        "summedits", BALANCED, "summedits en, 5 domains, balanced accuracy", 0.60, 0.65,
        "10 domains: QAFactEval .655, ChatGPT .712, GPT-4 .821, people .909",
    ),
    Goal("begin", BALANCED, "begin en, balanced accuracy", 0.92, 0.92, ""),
    Goal(
        "uhgeval", BALANCED, "uhgeval zh, keyword reasonable or not, balanced accuracy", 0.80, 0.84,
        "accuracy without the article: GPT-4 .700, GPT-3.5 .537",
    ),
    Goal(
        "kvpi", BALANCED, "kvpi zh, balanced accuracy", 0.80, 0.82,
        "accuracy: KvBERT, trained on it, .918 (3 classes)",
    ),
)  # fmt: skip
PREFERENCES = {"correctness": (0.497, 0.637), "completeness": (0.607, 0.719), "overall": (0.619, 0.701)}
"""Pearson's r of RAGChecker and of one person with another, as published."""
CAUGHT, FALSE_ALARMS = {"embedded": 0.90, "local": 0.92}, {"embedded": 0.10, "local": 0.08}
ATOMS, GROUNDED = {"embedded": 12, "local": 13}, {"embedded": 2, "local": 2}
SPEED = {"embedded": 20.0, "local": 0.3}


def goal_of(judge: str) -> str | None:
    """Which column of goals a judge is held against; none for judges that nobody set any."""
    kind = judge.partition(":")[0]
    return kind if kind in SPEED else None
