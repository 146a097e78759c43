"""Judges the trials of a plan through the ordinary runner and journal, and makes the card."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.engine.journal import Journal
from steelyard.engine.runner import Budget, Row, Runner, Tally
from steelyard.engine.runs import RunSettings
from steelyard.judges.base import Judge
from steelyard.protocols import Protocol, get_protocol
from steelyard.protocols.common import Options
from steelyard.records import Language, Rounds, Sample, Usage, Verdict
from steelyard.reports.audit.card import Card, ScopeFacts, SuiteFacts
from steelyard.store import Store
from steelyard.trust.audit.measure import measure
from steelyard.trust.audit.plan import AuditPlan, Scope
from steelyard.trust.audit.suite import Suite


class Auditor:
    """One audit at work. `tally` is live; `stop(reason)` ends it politely, and what was answered stays in the
    store; without one, an audit that was stopped begins anew."""

    def __init__(
        self,
        judge: Judge,
        suite: Suite,
        plans: Sequence[AuditPlan],
        scope: Scope,
        options: Mapping[str, Options],
        settings: RunSettings,
        store: Store | None = None,
    ) -> None:
        self.judge, self.suite, self.plans, self.scope, self.options = judge, suite, plans, scope, options
        self.settings, self.store = settings, store
        self._trials = {f"{plan.data}/{trial.id}": trial for plan in plans for trial in plan.trials()}
        self._verdicts: dict[str, Verdict] = {}
        self._runner: Runner | None = None
        self._journals: list[Journal] = []
        self._stopped: str | None = None
        self.tally = Tally(total=len(self._trials))

    @property
    def spent(self) -> Usage:
        """The cost of this session; journalled replies are free."""
        if not self.store:
            return self.tally.usage
        total = Usage()
        for journal in self._journals:
            total += journal.spent
        return total

    def protocol(self) -> Protocol:
        """All protocols as one, so that one runner drives every trial: a sample's id says which trial it is."""

        def rounds(sample: Sample, _: Options) -> Rounds:
            name = self._trials[sample.id].protocol
            return get_protocol(name).rounds(sample, self.options[name])

        return Protocol(name="audit", kind="rag", rounds=rounds, options=Options)

    def rows(self, repeat: int | None = None) -> Iterator[Row]:
        """The samples of the trials, in an order that mixes them: a few of them speak for all."""
        wanted = [(key, trial) for key, trial in self._trials.items() if repeat in (None, trial.repeat)]
        wanted.sort(key=lambda entry: hashlib.sha256(entry[0].encode()).digest())
        return enumerate(trial.variant.sample.model_copy(update={"id": key}) for key, trial in wanted)

    def stop(self, reason: str) -> None:
        self._stopped = self._stopped or reason
        if self._runner:
            self._runner.stop(reason)

    async def run(self) -> None:
        """Judge all trials: first everything once, then what is to be asked again."""
        started = time.monotonic()
        for repeat in sorted({trial.repeat for trial in self._trials.values()}):
            if self._stopped:
                break
            judge: Judge = self.judge
            if self.store:
                journal = Journal(self.judge, self.store, time=repeat)
                self._journals.append(journal)
                judge = journal.judge
            self._runner = Runner(
                self.protocol(),
                Options(),
                judge,
                workers=self.settings.workers,
                budget=self._left(started),
                spent=lambda: self.spent,
                silent=lambda: next((journal.silent for journal in self._journals if journal.silent), ""),
                limiter=self.settings.limiter,
                in_order=False,
            )
            self._runner.tally = self.tally
            await self._runner.run(self.rows(repeat), self._keep)
            self._stopped = self._stopped or self.tally.stopped

    def _left(self, started: float) -> Budget:
        budget = self.settings.budget
        if budget.max_seconds is None:
            return budget
        return replace(budget, max_seconds=max(0.0, budget.max_seconds - (time.monotonic() - started)))

    def _keep(self, _: int, sample: Sample, verdict: Verdict) -> None:
        self._verdicts[sample.id] = verdict

    async def aclose(self) -> None:
        await self.judge.aclose()

    def card(self, language: Language, version: str, made: str, data: str | None = None) -> Card:
        """The results so far."""
        parts = tuple(
            measure(
                plan, {id.partition("/")[2]: v for id, v in self._verdicts.items() if id.startswith(f"{plan.data}/")}
            )
            for plan in self.plans
        )
        return Card(
            judge=self.judge.name,
            described=self.judge.describe(),
            suite=SuiteFacts(version=self.suite.version, sha256=self.suite.sha256),
            scope=ScopeFacts(
                protocols=self.scope.protocols,
                sections=self.scope.sections,
                repeats=self.scope.repeats,
                options={name: changed for name, options in self.options.items() if (changed := _changed(options))},
                data=data,
            ),
            steelyard=version,
            made=made,
            language=language,
            parts=parts,
            n_trials=len(self._trials),
            n_failed=sum(verdict.status == "failed" for verdict in self._verdicts.values())
            + len(self._trials)
            - len(self._verdicts),
            unjudged=dict(self.tally.errors),
            usage=self.spent,
            stopped=self._stopped,
        )


def _changed(options: Options) -> dict[str, Any]:
    """What differs from the defaults. The date is today's for samples that have none; the built-in ones have one."""
    changed = options.model_dump(mode="json", exclude_defaults=True)
    changed.pop("date", None)
    return changed
