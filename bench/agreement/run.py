"""One judge over the chosen sets: asks, figures, baselines. `__main__.py` is the command."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from training.sets import FILES, NEVER_TRAINED_ON, Row, rows

from agreement import lexical
from agreement.asking import Reasons, answers_to, line_of_progress
from agreement.cases import Answer, Case, cases_of, measurable, planted_cases, sampled, truth_of
from agreement.measures import (
    LEVELS,
    Figure,
    Outcome,
    figure,
    level_outcomes,
    macro_f1,
    share,
    support_figures,
    support_outcomes,
)
from agreement.own import Script
from agreement.own.careful import careful_claims
from agreement.own.good_dialogues import good_dialogues
from agreement.own.short_answers import short_answers
from agreement.own_sets import called_correct, careful_cases, faulted, short_cases
from agreement.planted import KINDS, Pair, pairs
from agreement.preferences import FILE as PREFERENCES
from agreement.preferences import comparisons, preferences
from agreement.seeds import examples, worked_examples
from agreement.speed import speed
from steelyard.judges.base import Judge

PUBLIC = ("memerag", "memerag relevance", "factcheckgpt", "summedits", "begin", "uhgeval", "kvpi")
# Speed first: its first sample then shows how long the judge takes to load.
OWN = ("planted", "careful", "short answers", "good dialogues")
SETS = ("speed", "seeds", *PUBLIC, *OWN, "ragchecker")
ENGLISH = ("factcheckgpt", "summedits", "begin")
PACKAGES = ("steelyard", "numpy", "onnxruntime", "tokenizers", "opencc", "xllamacpp")
Result = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What is measured, on what, how hard. `bare` is the judge without its journal, which would spoil the speed."""

    judge: Judge
    bare: Judge
    data: Path
    names: Sequence[str] = SETS
    n: int | None = None
    workers: int = 4
    quiet: bool = False
    reasons: Reasons = field(default_factory=Counter)

    async def results(self, keep: Callable[[Result], None] = lambda result: None) -> Result:
        """Everything that was asked for; `keep` is called after each set, so that a long run is not for nothing."""
        found = self._head()
        for name in self.names:
            if (file := file_of(name)) and not (self.data / file).exists():
                found["left out"][name] = "the file is not there"
                continue
            self._say(name)
            found["sets"][name] = await self._measured(name)
            if failed := dict(self.reasons):
                found["unanswered"] = failed
            keep(found)
        return found

    def _head(self) -> Result:
        return {
            "judge": self.bare.name,
            "described": self.bare.describe(),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
            "versions": {"python": platform.python_version(), **_versions()},
            "sets": {},
            "left out": {},
        }

    async def _measured(self, name: str) -> Result:
        if name == "seeds":
            return await worked_examples(self.judge, examples())
        if name == "speed":
            return await speed(self.bare, pairs(), self.workers)
        if name == "planted":
            return await self._planted()
        if name == "careful":
            claims = sampled(list(careful_claims()), self.n, lambda one: one.id, lambda one: str(one.right))
            scripts = {one.id.rpartition("-")[0]: one.script for one in claims}
            return await self._called_correct(name, careful_cases(claims), scripts)
        if name == "short answers":
            asked = sampled(list(short_answers()), self.n, lambda one: one.id, lambda one: one.script)
            return await self._called_correct(name, short_cases(asked), {one.id: one.script for one in asked})
        if name == "good dialogues":
            spoken = sampled(list(good_dialogues()), self.n, lambda one: one.id, lambda one: one.script)
            return {"n": len(spoken), "of": len(list(good_dialogues())), "groups": await faulted(spoken, self.judge)}
        if name == "ragchecker":
            return await self._preferences()
        return await self._public(name)

    async def _called_correct(self, name: str, cases: Sequence[Case], scripts: Mapping[str, Script]) -> Result:
        answers = await answers_to(cases, self.judge, self.workers, self._progress(name), self.reasons)
        groups = called_correct(answers, scripts, are_answers=name == "short answers")
        return {**_counts(answers, len(cases)), "groups": groups}

    async def _public(self, name: str) -> Result:
        source = name.split()[0]
        held_out = measurable(name, rows(source, "held_out", self.data))
        label = (lambda row: str(row.relevance)) if name.endswith("relevance") else truth_of
        chosen = sampled(held_out, self.n, lambda row: row.id + row.claim, label)
        cases = cases_of(name, chosen)
        answers = await answers_to(cases, self.judge, self.workers, self._progress(name), self.reasons)
        if name.endswith("relevance"):
            return {**_counts(answers, len(held_out)), **_relevance(answers)}
        figures = support_figures(support_outcomes(answers))
        return {
            **_counts(answers, len(held_out)),
            "figures": _dicts(figures),
            "lexical": _dicts(support_figures(self._lexical(source, chosen))),
        }

    def _lexical(self, name: str, chosen: Sequence[Row]) -> list[Outcome]:
        """The baseline on the same rows; its threshold comes from rows that are not reported on."""
        # Where nothing may be learned from the set itself, the other sets of its language must do.
        learned_on = ENGLISH if name in NEVER_TRAINED_ON else (name,)
        there = [other for other in learned_on if (self.data / FILES[other]).exists()]
        train = [row for other in there for row in measurable(other, rows(other, "train", self.data))]
        bound = lexical.learned(train)
        found = []
        for row in chosen:
            score = lexical.share(row.claim, row.passages)
            said = "supported" if score >= bound else "not supported"
            found.append(Outcome(truth_of(row), said, row.document, score=score))
        return found

    async def _planted(self) -> Result:
        chosen = sampled(pairs(), self.n, lambda pair: pair.id, lambda pair: f"{pair.kind} {pair.script}")
        cases = planted_cases(chosen)
        answers = await answers_to(cases, self.judge, self.workers, self._progress("planted"), self.reasons)
        return {**_counts(answers, 2 * len(pairs())), **planted_figures(chosen, answers)}

    async def _preferences(self) -> Result:
        pairs_of_answers = comparisons(self.data)
        chosen = sampled(pairs_of_answers, self.n, lambda pair: pair.id + pair.question, lambda pair: "")
        found = await preferences(chosen, self.judge, self.workers, self._progress("ragchecker"))
        return {**found, "of": len(pairs_of_answers)}

    def _progress(self, name: str) -> Callable[[int, int], None]:
        return (lambda done, total: None) if self.quiet else line_of_progress(name)

    def _say(self, text: str) -> None:
        if not self.quiet:
            print(f"{text} …", file=sys.stderr, flush=True)


def file_of(name: str) -> str | None:
    """The file that a public set is in."""
    return PREFERENCES if name == "ragchecker" else FILES.get(name.split()[0])


def _counts(answers: Sequence[Answer], of: int) -> Result:
    """How many were asked about, out of how many that are held out; how many got no label, the others which."""
    labels = Counter(part.label for answer in answers for part in answer.said)
    unjudged = sum(not answer.said for answer in answers)
    return {"n": len(answers), "of": of, "unjudged": unjudged, "labels": dict(sorted(labels.items()))}


def _relevance(answers: Sequence[Answer]) -> Result:
    outcomes = level_outcomes(answers)
    return {"figures": _dicts({
        "macro-F1": figure(outcomes, LEVELS, macro_f1),
        "accuracy": share(outcomes, lambda outcome: outcome.truth == outcome.said),
    })}  # fmt: skip


def planted_figures(chosen: Sequence[Pair], answers: Sequence[Answer]) -> Result:
    """Caught and false alarms, strictly (labelled wrong) and leniently (not labelled correct), in all and by group."""
    outcomes: dict[str, list[Outcome]] = {"planted": [], "clean": []}
    for answer in answers:
        if answer.said:
            wanted = answer.wanted
            outcomes[wanted.truth].append(Outcome(wanted.truth, answer.said[0].label, wanted.document))
    groups_of = {pair.id: ("all", pair.kind, pair.script) for pair in chosen}
    names = ["all", *KINDS, *dict.fromkeys(pair.script for pair in chosen)]
    return {"groups": {name: _group(outcomes, groups_of, name) for name in names}}


def _group(outcomes: Mapping[str, Sequence[Outcome]], groups_of: Mapping[str, Sequence[str]], name: str) -> Result:
    planted = [outcome for outcome in outcomes["planted"] if name in groups_of[outcome.document]]
    clean = [outcome for outcome in outcomes["clean"] if name in groups_of[outcome.document]]
    return _dicts({
        "caught": share(planted, lambda outcome: outcome.said != "correct"),
        "caught, labelled wrong": share(planted, lambda outcome: outcome.said == "wrong"),
        "false alarms": share(clean, lambda outcome: outcome.said != "correct"),
        "false alarms, labelled wrong": share(clean, lambda outcome: outcome.said == "wrong"),
    })  # fmt: skip


def _dicts(figures: Mapping[str, Figure]) -> Result:
    return {name: found.as_dict() for name, found in figures.items()}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
