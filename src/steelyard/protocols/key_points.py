"""Key points, for `scorecard` and `retrieval` alike: the very same ask, so that whoever runs both pays for it once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from steelyard.protocols.common import PromptLanguage, has_question, has_text, numbered, same_words
from steelyard.records import Ask, Numbered, RagSample
from steelyard.tasks import KeyPointsData, KeyPointsReply

KeyPointsSource = Literal["given", "derived"]


def wants_key_points(sample: RagSample, derive: bool) -> bool:
    """Whether the sample comes without key points, and there is something that says which ones matter: without a
    question nobody can tell which of all that the passages say had to be said."""
    return sample.key_points is None and derive and (has_question(sample) or bool(sample.reference_answer))


def can_derive(sample: RagSample, derive: bool) -> bool:
    """Whether key points are wanted and there is a text to draw them from."""
    return wants_key_points(sample, derive) and (has_text(sample.references) or bool(sample.reference_answer))


def key_points_ask(sample: RagSample, language: PromptLanguage) -> Ask:
    """Key points are drawn without sight of the answer, or it would set its own standard."""
    data = KeyPointsData(
        question=sample.question,
        # The reference answer alone is enough, and far shorter than the passages.
        references=() if sample.reference_answer else sample.references,
        reference_answer=sample.reference_answer,
    )
    return Ask(task="scorecard.key_points", language=language, data=data, reply=KeyPointsReply)


def distinct_points(points: Iterable[str]) -> tuple[Numbered, ...]:
    """The points, numbered; blank ones and repetitions are left out."""
    kept: dict[str, str] = {}
    for point in points:
        if point.strip():
            kept.setdefault(same_words(point), point.strip())
    return numbered(kept.values())
