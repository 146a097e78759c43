"""The lines of the table: what is measured of each set, and what others published on the same labels."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """One figure of one set, under the name that readers see."""

    set: str
    measure: str
    shown: str
    published: str = ""


BALANCED = "balanced accuracy"
PUBLIC: tuple[Line, ...] = (
    Line("memerag", BALANCED, "memerag en, support", "LLM judges .60–.71; one person .93"),
    Line("memerag relevance", "macro-F1", "memerag en, relevance, macro-F1"),
    Line(
        "factcheckgpt", BALANCED, "factcheckgpt en",
        "accuracy: GPT-3.5 .365 (4 classes), RoBERTa-MNLI .607 (3 classes)",
    ),
    Line(
        "summedits", BALANCED, "summedits en, 5 domains",
        "10 domains: QAFactEval .655, ChatGPT .712, GPT-4 .821, people .909",
    ),
    Line("begin", BALANCED, "begin en"),
    Line("uhgeval", BALANCED, "uhgeval zh", "accuracy without the article: GPT-4 .700, GPT-3.5 .537"),
    Line("kvpi", BALANCED, "kvpi zh", "accuracy: KvBERT, trained on it, .918 (3 classes)"),
)  # fmt: skip
OWN: tuple[Line, ...] = (
    Line("planted", "caught", "planted errors not called correct"),
    Line("planted", "false alarms", "their true twins not called correct"),
    Line("careful", "right ones called correct", "careful claims, right ones called correct"),
    Line("careful", "wrong ones called correct", "careful claims, wrong ones called correct"),
    Line("short answers", "right ones called correct", "short answers, right ones called correct"),
    Line("short answers", "wrong ones called correct", "short answers, wrong ones called correct"),
    Line("good dialogues", "faulted", "criteria of good dialogues called invalid or violated"),
)
PREFERENCES = {"correctness": (0.497, 0.637), "completeness": (0.607, 0.719), "overall": (0.619, 0.701)}
"""Pearson's r of RAGChecker and of one person with another, as published."""
