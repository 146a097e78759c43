"""Assertions about answers, for tests.

    from steelyard.testing import assert_that

    assert_that(answer).is_grounded_in(passages)
    assert_that(answer).answers(question, passages)

An assertion judges the answer with the protocol that knows about it, and fails with the statements that break it and
the passages they were compared with. What could not be judged fails too. Replies are kept in the store: a second run
of the tests asks nothing. Importing this module loads nothing else; the pytest plugin relies on that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from steelyard.judges.base import Judge, JudgeLike
    from steelyard.protocols import Protocol
    from steelyard.protocols.vocabulary import Expectation
    from steelyard.records import Sample, Verdict
    from steelyard.settings import Settings
    from steelyard.store import StoreLocation

    Criteria = Protocol | str | PathLike[str] | Mapping[str, Any] | Sequence[str]

__all__ = ["AnswerAssertion", "Bench", "NotMet", "assert_that"]

OnJudged = Callable[["Sample", "Verdict"], None]
Texts = str | Iterable[str]


class NotMet(AssertionError):
    """An expectation that an answer breaks, or that could not be judged; `verdict` has every item."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class Bench:
    """Who judges in tests, and where replies are kept. Nothing is loaded or opened before the first verdict.

    `judge` is a judge or a name as on the command line; `on_judged` is told of every verdict, `place` names the test
    that is running. Settings are those of the folder in which the bench was made: a test may go elsewhere.
    """

    def __init__(
        self,
        judge: JudgeLike | str | None = None,
        store: str | PathLike[str] | None = None,
        on_judged: OnJudged = lambda sample, verdict: None,
    ) -> None:
        self.judge, self.store, self.on_judged = judge, store, on_judged
        self.place = ""
        self._folder = Path.cwd()
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            from steelyard.errors import Surface
            from steelyard.settings import FILE, Settings

            file = self._folder / FILE
            self._settings = Settings.load(file if file.exists() else None, surface=Surface.python)
        return self._settings

    @property
    def store_location(self) -> StoreLocation:
        found = self.settings.store_location(None if self.store is None else os.fspath(self.store))
        return self._folder / found if isinstance(found, Path) else found

    def assert_that(self, answer: str, *, question: str = "", passages: Texts = ()) -> AnswerAssertion:
        return AnswerAssertion(answer, self, question, passages)

    def verdict(self, sample: Sample, protocol: str | Protocol, options: Mapping[str, Any] | None = None) -> Verdict:
        """One sample judged. Without a `date` among the options none is told to the judge: a test that passes today
        asks the same tomorrow."""
        from steelyard.engine.journal import Journal
        from steelyard.engine.runner import Runner
        from steelyard.engine.templates import check_judge
        from steelyard.evaluation import in_own_loop
        from steelyard.store import Store

        chosen = self.settings.protocol(protocol) if isinstance(protocol, str) else protocol
        parsed = chosen.parse_options({**self.settings.options.get(chosen.family, {}), **(options or {})})
        judged: list[Verdict] = []

        async def work() -> None:
            judge = self._make_judge(chosen)
            try:
                check_judge(chosen, judge)
                with Store.open(self.store_location) as store:
                    runner = Runner(chosen, parsed, Journal(judge, store).judge, workers=1)
                    await runner.run([(0, sample)], lambda _, sample, verdict: judged.append(verdict))
            finally:
                await judge.aclose()

        in_own_loop(work, None)
        self.on_judged(sample, judged[0])
        return judged[0]

    def _make_judge(self, protocol: Protocol) -> Judge:
        from steelyard.evaluation.factory import JudgeFactory
        from steelyard.judges.base import as_judge
        from steelyard.judges.limiter import Limits

        if self.judge is not None and not isinstance(self.judge, str):
            return as_judge(self.judge)
        prompts, limiter = self.settings.prompts.with_texts(protocol.prompts), Limits().limiter()
        return JudgeFactory(self.settings, prompts, limiter, self.store_location).judge(self.judge)

    def check(
        self,
        sample: Sample,
        protocol: str | Protocol,
        *,
        options: Mapping[str, Any] | None = None,
        require: Texts = (),
        expectation: Expectation | None = None,
    ) -> Verdict:
        """Judge a sample and fail where a label breaks the expectation; without one, where a label counts against it.
        With `require` (`accuracy>=0.8`), its scores decide instead."""
        __tracebackhide__ = True
        verdict = self.verdict(sample, protocol, options)
        if message := _complaint(sample, verdict, expectation, _texts(require)):
            raise NotMet(message, verdict)
        return verdict


bench: Bench | None = None
"""The bench of `assert_that`; the pytest plugin sets its own for the session."""


def assert_that(answer: str, *, question: str = "", passages: Texts = ()) -> AnswerAssertion:
    """What to assert of an answer. Question and passages are context for assertions that do not take them."""
    global bench
    if bench is None:
        bench = Bench()
    return bench.assert_that(answer, question=question, passages=passages)


class AnswerAssertion:
    """Assertions about one answer; each returns itself, so that they can be chained."""

    def __init__(self, answer: str, bench: Bench, question: str = "", passages: Texts = ()) -> None:
        self._answer, self._bench = answer, bench
        self._question, self._passages = question, _texts(passages)

    def is_grounded_in(self, passages: Texts, **options: Any) -> Self:
        """Every statement that can be checked is supported by the passages."""
        __tracebackhide__ = True
        return self._expect("grounded_in", options, references=_texts(passages))

    def has_no_wrong_statement(self, passages: Texts, **options: Any) -> Self:
        """No statement contradicts the passages; what they do not mention is allowed."""
        __tracebackhide__ = True
        return self._expect("no_wrong_statement", options, references=_texts(passages))

    def answers(self, question: str, passages: Texts, **options: Any) -> Self:
        """It answers the question fully and truly from the passages, and does not decline."""
        __tracebackhide__ = True
        return self._expect("question_answered", options, question=question, references=_texts(passages))

    def covers(self, *points: str, **options: Any) -> Self:
        """It contains each of these points in full."""
        __tracebackhide__ = True
        return self._expect("points_covered", options, key_points=points)

    def follows(self, system_prompt: str, *criteria: str, prompt: str = "", **options: Any) -> Self:
        """As a reply to `prompt` it meets these criteria, each of which follows from the system prompt."""
        from steelyard.protocols import protocol_expecting
        from steelyard.records import DialogueSample, Turn

        __tracebackhide__ = True
        turn = Turn(prompt=prompt or self._question, answer=self._answer, criteria=criteria)
        sample = DialogueSample(id=self._bench.place or "answer", system_prompt=system_prompt, turns=(turn,))
        protocol, expectation = protocol_expecting("prompt_followed")
        self._bench.check(sample, protocol, options=options, expectation=expectation)
        return self

    def meets(self, criteria: Criteria, *, require: Texts = (), **options: Any) -> Self:
        """It meets criteria of your own: a rubric (file, name, mapping or Protocol), or a list of yes-or-no questions.
        `require="score>=0.8"` lets the score decide instead of each criterion."""
        from steelyard.protocols import Protocol
        from steelyard.protocols.rubric import rubric

        __tracebackhide__ = True
        if isinstance(criteria, Sequence) and not isinstance(criteria, str):
            criteria = {f"question_{n}": {"ask": one} for n, one in enumerate(criteria, start=1)}
        protocol = criteria if isinstance(criteria, Protocol) else rubric(criteria)
        self._bench.check(self._sample(), protocol, options=options, require=require)
        return self

    def passes(self, protocol: str | Protocol, *, require: Texts = (), **options: Any) -> Self:
        """No label of this protocol counts against it; with `require`, its scores decide instead."""
        __tracebackhide__ = True
        self._bench.check(self._sample(), protocol, options=options, require=require)
        return self

    def _sample(self, **fields: Any) -> Sample:
        from steelyard.records import RagSample

        context = {"question": self._question, "references": self._passages}
        return RagSample(**{"id": self._bench.place or "answer", "answer": self._answer, **context, **fields})

    def _expect(self, name: str, options: Mapping[str, Any], **fields: Any) -> Self:
        from steelyard.protocols import protocol_expecting

        __tracebackhide__ = True
        protocol, expectation = protocol_expecting(name)
        self._bench.check(self._sample(**fields), protocol, options=options, expectation=expectation)
        return self


def _texts(given: Texts) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


# --- what a failed test says -----------------------------------------------------------------------

MOST_ITEMS = 10
LONGEST = 300


def _complaint(sample: Sample, verdict: Verdict, expectation: Expectation | None, require: Sequence[str]) -> str:
    """Why an answer does not meet what is expected; nothing where it does."""
    from steelyard.errors import ConfigError
    from steelyard.protocols import vocabulary
    from steelyard.protocols.vocabulary import UNJUDGED
    from steelyard.reports.blocks import number
    from steelyard.text import language_of
    from steelyard.text.wording import say
    from steelyard.trust.gating import parse_requirement, state_of

    vocab = vocabulary(verdict.protocol)
    language = language_of(*(item.text for item in verdict.items), str(sample))
    items = [item for item in verdict.items if _concerns(vocab.labels_of(item), expectation)]
    broken = [item for item in items if vocab.breaking(item, expectation)]
    unjudged = [item for item in items if any(label == UNJUDGED for _, label in vocab.labels_of(item))]
    if require:
        missed = []
        for wanted in (parse_requirement(text, lambda name: vocab.metric(name).scale) for text in require):
            if wanted.metric not in verdict.scores:
                raise ConfigError(f"there is no score {wanted.metric!r} here; there are {', '.join(verdict.scores)}")
            value = verdict.scores[wanted.metric]
            # One sample has no interval, so only the side of the limit counts.
            if state_of(value, None, wanted.sign, wanted.limit) != "met_not_significant":
                scale = vocab.metric(wanted.metric).scale
                shown = {"value": number(value, scale), "limit": number(wanted.limit, scale), "sign": wanted.sign}
                name = vocab.metric_words(wanted.metric, language)
                missed.append(say(language, "testing.missed").format(metric=name, **shown))
        return "\n".join([*missed, *_listed(sample, verdict, [*broken, *unjudged], language)]) if missed else ""
    if broken:
        headline = expectation.broken.in_language(language) if expectation else say(language, "testing.against")
        return "\n".join([_signed(headline, verdict), *_listed(sample, verdict, broken, language)])
    if unjudged or (expectation is None and verdict.status != "judged"):
        headline = say(language, "testing.unjudged")
        return "\n".join([_signed(headline, verdict), *_listed(sample, verdict, unjudged, language)])
    if not items or (expectation is None and vocab.main_score(verdict.scores) is None):
        return _signed(say(language, "testing.nothing"), verdict)
    return ""


def _concerns(labels: Iterable[tuple[str, str]], expectation: Expectation | None) -> bool:
    return expectation is None or any(aspect == expectation.aspect for aspect, _ in labels)


def _signed(headline: str, verdict: Verdict) -> str:
    return f"{headline} ({verdict.protocol}, {verdict.judge})"


def _listed(sample: Sample, verdict: Verdict, items: Sequence[Any], language: Any) -> Iterable[str]:
    """The items with their labels, reasons and evidence, and the passages that the evidence is in."""
    from steelyard.reports.blocks import one_line
    from steelyard.reports.model import reason_in
    from steelyard.reports.sample import SamplePage
    from steelyard.text.wording import say

    page = SamplePage(verdict, language)
    colon = say(language, "report.colon")
    passages = getattr(sample, "references", ())
    for item in items[:MOST_ITEMS]:
        entry, (_, label) = page.entry(item), page.vocab.kind_of(item).shown(item)
        labels = " · ".join(one.text for one in entry.labels)
        yield f"  {label.shown_sign} {labels}{colon}{one_line(entry.text, LONGEST)}"
        yield from (f"      {name}{one_line(fact, LONGEST)}" for name, fact in entry.facts)
        at = getattr(getattr(item, "evidence", None), "reference", None)
        if at is not None and 0 <= at < len(passages) and passages[at].strip() != item.evidence.quote.strip():
            yield f"      {page.passage_named(at)}{colon}{one_line(passages[at], LONGEST)}"
    if len(items) > MOST_ITEMS:
        yield "  " + say(language, "testing.more").format(n=len(items) - MOST_ITEMS)
    for note in ("failure", "reason"):
        if not items and verdict.notes.get(note):
            yield "  " + one_line(reason_in(language, str(verdict.notes[note])), LONGEST)
