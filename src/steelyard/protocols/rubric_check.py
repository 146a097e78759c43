"""Checks a rubric: what a judge finds wrong with its criteria, and whether it labels them alike when
they are worded differently. Pure, as protocols are."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from steelyard.protocols.common import PromptLanguage, collect, numbered, prompt_language
from steelyard.protocols.rubric import ask_about, criterion_text
from steelyard.protocols.rubric_file import Rubric, RubricCriterion
from steelyard.records import Ask, Numbered, Record, Reply, Sample, Unjudged
from steelyard.tasks import CriterionReview, RubricCheckData, RubricCheckReply

Checking = Generator[list[Ask], list[Reply | Unjudged], "RubricCheck"]


class CheckedCriterion(Record):
    """What was found about one criterion. `same` of `compared` samples got the same label from both wordings."""

    name: str
    ask: str
    reviewed: bool
    vague: bool = False
    unanswerable: bool = False
    overlaps: str = ""
    reason: str = ""
    rewording: str = ""
    same: int = 0
    compared: int = 0

    @property
    def problems(self) -> tuple[str, ...]:
        found = {"vague": self.vague, "unanswerable": self.unanswerable, f"overlaps {self.overlaps}": self.overlaps}
        return tuple(name for name, is_so in found.items() if is_so)


class RubricCheck(Record):
    """A rubric, criterion by criterion; `failure` says why a judge did not review it."""

    criteria: tuple[CheckedCriterion, ...]
    failure: str = ""


def check_rubric(rubric: Rubric, samples: Sequence[Sample]) -> Checking:
    """Ask for a review of the criteria, then label each sample twice: as written, and reworded in reverse order."""
    language = rubric.language or prompt_language(*(_text(sample) for sample in samples))
    criteria = numbered(criterion_text(one, language) for one in rubric.criteria)
    data = RubricCheckData(criteria=criteria)
    reviews = yield from collect([Ask(task="rubric.check", language=language, data=data, reply=RubricCheckReply)])

    def review(id: int) -> CriterionReview | None:
        found: CriterionReview | None = reviews.label("criteria", id)
        return found

    reworded = tuple(
        Numbered(id=id, text=criterion_text(one, language, found.rewording if (found := review(id)) else ""))
        for id, one in reversed(list(enumerate(rubric.criteria, start=1)))
    )
    asks = [ask_about(rubric, sample, language) for sample in samples]
    asks += [ask.model_copy(update={"data": ask.data.model_copy(update={"criteria": reworded})}) for ask in asks]
    replies = (yield asks) if asks else []
    labels = [_labels(reply) for reply in replies]
    pairs = list(zip(labels[: len(samples)], labels[len(samples) :], strict=True))

    def checked(id: int, one: RubricCriterion, language: PromptLanguage) -> CheckedCriterion:
        found = review(id)
        both = [(first[id], second[id]) for first, second in pairs if id in first and id in second]
        # Without other words nothing is said about wording.
        both = both if found and found.rewording.strip() else []
        other = found.overlaps if found and found.overlaps != id else None
        return CheckedCriterion(
            name=one.name,
            ask=one.ask.in_language(language),
            reviewed=found is not None,
            vague=bool(found and found.vague),
            unanswerable=bool(found and found.unanswerable),
            overlaps=rubric.criteria[other - 1].name if other and 0 < other <= len(rubric.criteria) else "",
            reason=found.reason if found else reviews.reason("criteria", id),
            rewording=found.rewording if found else "",
            same=sum(first == second for first, second in both),
            compared=len(both),
        )

    return RubricCheck(
        criteria=tuple(checked(id, one, language) for id, one in enumerate(rubric.criteria, start=1)),
        failure=next((failed.detail or failed.reason for failed in reviews.failures), ""),
    )


def _labels(reply: Reply | Unjudged) -> dict[int, str]:
    return {} if isinstance(reply, Unjudged) else {one.id: one.label for one in reply.data.criteria}


def _text(sample: Sample) -> str:
    return getattr(sample, "answer", "") or " ".join(turn.answer for turn in getattr(sample, "turns", ()))
