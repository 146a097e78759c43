"""Qualifies a judge with three small shuffled asks (`steelyard judges check`)."""

from __future__ import annotations

import random
import time
from statistics import median
from typing import Literal

from pydantic import Field

from steelyard.errors import JudgeError
from steelyard.judges.base import Judge
from steelyard.judges.routed import RoutedJudge
from steelyard.records import Ask, Language, Numbered, Record, Reply, Unjudged, Usage
from steelyard.tasks import AtomicData, AtomicReply
from steelyard.text.wording import say

SEED = 7
INFRASTRUCTURE = frozenset({"unreachable", "timeout", "rate_limited", "server_error", "rejected"})
EXPECTED = ("correct", "wrong", "undetermined")
"""The labels of the three statements below, in the order in which they are written here."""
ROUNDS = len(EXPECTED)
ITEMS = ROUNDS * len(EXPECTED)
# Whoever labels without reading gets a third right.
LEAST = ITEMS * 2 // 3

QUESTIONS = {
    "zh": AtomicData(
        question="云杉站的早班车几点发车？",
        references=("云杉站的早班车每天6点20分发车，由三号线司机驾驶。",),
        answer="早班车6点20分发车，由五号线司机驾驶，车上有免费热茶。",
        date="2025-01-15",
        place="未提供",
        atoms=(
            Numbered(id=1, text="云杉站的早班车6点20分发车"),
            Numbered(id=2, text="云杉站的早班车由五号线司机驾驶"),
            Numbered(id=3, text="云杉站的早班车上有免费热茶"),
        ),
    ),
    "en": AtomicData(
        question="When does the early bus leave Spruce station?",
        references=("The early bus leaves Spruce station at 6:20 every day, driven by a line 3 driver.",),
        answer="The early bus leaves at 6:20, is driven by a line 5 driver, and serves free hot tea.",
        date="2025-01-15",
        place="not given",
        atoms=(
            Numbered(id=1, text="The early bus leaves Spruce station at 6:20"),
            Numbered(id=2, text="The early bus is driven by a line 5 driver"),
            Numbered(id=3, text="The early bus serves free hot tea"),
        ),
    ),
}


Finding = Literal["unreachable", "unreadable", "disobedient", "guessing", "lossy", "doubtful", "fit"]


class Qualification(Record):
    """The result of the three asks; null where it could not be determined."""

    judge: str
    reachable: bool
    structured: str | None = None
    obeys_ids: bool | None = None
    labels_as_expected: int | None = Field(default=None, description="of nine: three statements in three orders")
    latency_seconds: float | None = None
    reports_usage: bool | None = None
    gives_confidence: bool | None = Field(default=None, description="whether labels come with a probability")
    usage: Usage = Usage()
    problems: tuple[str, ...] = ()
    finding: Finding
    lost: int = 0
    verdict: str = ""

    def closing(self, language: Language = "en") -> str:
        """The conclusion in one sentence."""
        said = say(language, f"health.{self.finding}")
        return said.format(
            problem=self.problems[0] if self.problems else "",
            rounds=ROUNDS,
            lost=self.lost,
            right=self.labels_as_expected,
            items=self.items,
        )

    @property
    def items(self) -> int:
        """How many labels were asked for and arrived in a reply."""
        return len(EXPECTED) * (ROUNDS - self.lost)

    @property
    def fit(self) -> bool:
        return self.reachable and bool(self.obeys_ids) and not self.problems and self.finding != "guessing"


def orders(seed: int = SEED) -> list[tuple[int, ...]]:
    """Three orders of the statements in which each stands once in every place: a judge that goes by the place, or gives
    all of them one label, has exactly a third right."""
    order = list(range(len(EXPECTED)))
    random.Random(seed).shuffle(order)
    turned = [tuple(order[step:] + order[:step]) for step in range(len(order))]
    random.Random(seed + 1).shuffle(turned)
    return turned


def _ask(language: Literal["zh", "en"], order: tuple[int, ...]) -> Ask:
    data = QUESTIONS[language]
    atoms = tuple(Numbered(id=place, text=data.atoms[which].text) for place, which in enumerate(order, 1))
    return Ask(task="atomic.judge", language=language, data=data.model_copy(update={"atoms": atoms}), reply=AtomicReply)


async def check(judge: Judge, language: Literal["zh", "en"] = "zh") -> Qualification:
    """Ask the same small thing three times, each time in another order, and say what came of it."""
    answers: list[Reply | Unjudged] = []
    seconds: list[float] = []
    try:
        for order in orders():
            ask = _ask(language, order)
            began = time.perf_counter()
            answers.append(await judge.answer(ask))
            seconds.append(time.perf_counter() - began)
    except JudgeError as error:
        return _said(Qualification(judge=judge.name, reachable=False, problems=(str(error),), finding="unreachable"))
    return _said(_qualification(judge, answers, seconds))


async def check_each(judge: Judge, language: Literal["zh", "en"] = "zh") -> list[Qualification]:
    """The same for each judge of a routed one: where the first is sure, nobody would hear of the second."""
    if not isinstance(judge, RoutedJudge):
        return [await check(judge, language)]
    return [*await check_each(judge.first, language), *await check_each(judge.then, language)]


def _said(found: Qualification) -> Qualification:
    return found.model_copy(update={"verdict": found.closing()})


def _qualification(judge: Judge, answers: list[Reply | Unjudged], seconds: list[float]) -> Qualification:
    replies = [answer for answer in answers if isinstance(answer, Reply)]
    failures = [answer for answer in answers if isinstance(answer, Unjudged)]
    problems = tuple(dict.fromkeys(f"{failure.reason}: {failure.detail}" for failure in failures))
    reachable = any(answer.reason not in INFRASTRUCTURE for answer in failures) or bool(replies)
    usage = sum((answer.usage for answer in answers), Usage())
    obeys = all(_ids(reply) == list(range(1, len(EXPECTED) + 1)) for reply in replies) if replies else None
    pairs = [(answer, order) for answer, order in zip(answers, orders(), strict=True) if isinstance(answer, Reply)]
    labels = sum(_as_expected(reply, order) for reply, order in pairs) if pairs else None
    return Qualification(
        judge=judge.name,
        reachable=reachable,
        structured=judge.structured,
        obeys_ids=obeys,
        labels_as_expected=labels,
        latency_seconds=median(seconds) if reachable else None,
        reports_usage=usage.prompt_tokens > 0 if replies else None,
        gives_confidence=any(_has_confidence(reply) for reply in replies) if replies else None,
        usage=usage,
        problems=problems,
        finding=_finding(reachable, len(replies), obeys, labels),
        lost=ROUNDS - len(replies),
    )


def _finding(reachable: bool, replies: int, obeys: bool | None, labels: int | None) -> Finding:
    if not reachable:
        return "unreachable"
    if not replies:
        return "unreadable"
    if not obeys:
        return "disobedient"
    asked = replies * len(EXPECTED)
    if (labels or 0) * ITEMS < LEAST * asked:
        return "guessing"
    if replies < ROUNDS:
        return "lossy"
    return "doubtful" if labels != asked else "fit"


def _has_confidence(reply: Reply) -> bool:
    return bool(reply.marks) or any(atom.confidence is not None for atom in reply.data.atoms)


def _ids(reply: Reply) -> list[int]:
    return sorted(atom.id for atom in reply.data.atoms)


def _as_expected(reply: Reply, order: tuple[int, ...]) -> int:
    expected = {place: EXPECTED[which] for place, which in enumerate(order, 1)}
    return sum(expected.get(atom.id) == atom.label for atom in reply.data.atoms)
