"""A conversation as one dialogue, or each of its answers as a sample: the protocol says which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import Imported, ImportedScore, Skipped
from steelyard.samples.importers.content import ChatMessage, exchanges_in, system_in

NO_SYSTEM_PROMPT = "system prompt, which the export does not hold"
OPEN_QUESTION = "question that nobody answered"
SCORES_OF_ALL = "score of a whole conversation (single answers do not have it)"
SCORES_OF_ONE = "score or feedback of a single answer (a dialogue as a whole does not have it)"


class Conversation:
    """What is known of one, put together step by step."""

    def __init__(self, id: str, source: Mapping[str, str], record: Mapping[str, Any], *, system: str = "") -> None:
        self.id, self.source, self.record, self.system = id, dict(source), record, system
        self.more: dict[str, object] = {}
        """Further fields, the same for the dialogue and for each of its answers."""
        self.scores: list[ImportedScore] = []
        """Of the whole conversation."""
        self._turns: list[_Exchange] = []

    def add(
        self,
        question: object,
        answer: object,
        *,
        references: Sequence[str] = (),
        source: Mapping[str, str] | None = None,
        scores: Sequence[ImportedScore] = (),
        criteria: Sequence[str] = (),
        id: str = "",
    ) -> None:
        """One exchange; what is no text is said when the sample is made."""
        self._turns.append(_Exchange(question, answer, references, source or {}, scores, criteria, id))

    def add_messages(self, messages: Sequence[ChatMessage], skipped: Skipped) -> None:
        """All questions with their answers, and the system prompt."""
        self.system = self.system or system_in(messages)
        asked = sum(message["role"] == "user" for message in messages)
        found = list(exchanges_in(messages))
        if messages and messages[-1]["role"] == "user" and asked:
            skipped[OPEN_QUESTION] += 1
        for question, answer, _ in found:
            self.add(question, answer)

    def imported(self, kind: Kind, skipped: Skipped) -> Iterator[Imported]:
        if not self._turns:
            skipped["conversation without an answer"] += 1
            return
        if kind == "dialogue":
            yield self._dialogue(skipped)
            return
        if self.scores and len(self._turns) > 1:
            skipped[SCORES_OF_ALL] += len(self.scores)
        for number, turn in enumerate(self._turns, 1):
            # Without an id of its own, a conversation gets one from its content, as every row does.
            fields: dict[str, object] = {
                **self.more,
                "id": turn.id or (f"{self.id}#{number}" if self.id else ""),
                "question": turn.question,
                "answer": turn.answer,
                "references": list(turn.references),
            }
            scores = (*turn.scores, *(self.scores if len(self._turns) == 1 else ()))
            yield Imported(fields, self.source | turn.source, scores, self.record)

    def _dialogue(self, skipped: Skipped) -> Imported:
        if not self.system:
            skipped[NO_SYSTEM_PROMPT] += 1
        # A dialogue of one turn is its answer.
        taken = [score for turn in self._turns for score in turn.scores if score.item or len(self._turns) == 1]
        if others := sum(len(turn.scores) for turn in self._turns) - len(taken):
            skipped[SCORES_OF_ONE] += others
        passages = sum(bool(turn.references) for turn in self._turns)
        if passages:
            skipped["passages of a turn (dialogues have none)"] += passages
        turns = [
            {"prompt": turn.question, "answer": turn.answer, "criteria": list(turn.criteria)} for turn in self._turns
        ]
        fields: dict[str, object] = {**self.more, "id": self.id, "system_prompt": self.system, "turns": turns}
        return Imported(fields, self.source, (*self.scores, *taken), self.record)


class _Exchange:
    def __init__(
        self,
        question: object,
        answer: object,
        references: Sequence[str],
        source: Mapping[str, str],
        scores: Sequence[ImportedScore],
        criteria: Sequence[str],
        id: str,
    ) -> None:
        self.question, self.answer, self.references, self.id = question, answer, references, id
        self.source, self.scores, self.criteria = dict(source), scores, criteria
