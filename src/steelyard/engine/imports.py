"""Scores that came with the samples of another tool, kept as runs of that tool and as labels of whoever gave them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steelyard.engine.manifest import now
from steelyard.engine.runs import new_run_id
from steelyard.errors import ConfigError
from steelyard.protocols import get_protocol, known_aspects
from steelyard.protocols.imported import imported_protocol, wider
from steelyard.protocols.vocabulary import Aspect, Scale
from steelyard.records import Sample, Verdict
from steelyard.samples import ImportedScore, ScoredSample
from steelyard.store import RunRow, Store
from steelyard.store.labels import HumanLabel, digest

PEOPLE = "people"
AT_ONCE = 256


def aspects_to_label(wanted: Mapping[str, str]) -> dict[str, Aspect]:
    """What `KIND=SCORE` names: score → the label of a protocol that it stands for."""
    known = known_aspects()
    found: dict[str, Aspect] = {}
    for kind, score in wanted.items():
        if kind not in known:
            raise ConfigError(f"--label: people cannot label {kind!r}; they can label {', '.join(known)}")
        found[score] = known[kind][0]
    return found


class ImportedScores:
    """Takes scored samples one by one. The tool's own scores become one run and those of people another; a sample
    without a score of theirs is not in it."""

    def __init__(self, store: Store, data: Sequence[Mapping[str, Any]], labels: Mapping[str, Aspect]) -> None:
        self._store, self._data, self._wanted = store, data, labels
        self._runs: dict[bool, _ImportedRun] = {}
        self._labels: list[HumanLabel] = []
        self._seen: set[str] = set()
        self.labels = 0
        self.not_labels = Counter[str]()
        """Scores that could not become labels, by reason."""

    def add(self, one: ScoredSample) -> None:
        tool = one.sample.source.get("tool", "file")
        for by_person in (False, True):
            if scores := [score for score in one.scores if score.by_person == by_person]:
                if by_person not in self._runs:
                    judge = f"{tool} {PEOPLE}" if by_person else tool
                    self._runs[by_person] = _ImportedRun(self._store, tool, judge, self._data)
                self._runs[by_person].add(one.sample, scores)
        self._seen |= {score.name for score in one.scores}
        self._labels += self._labels_of(one, tool)
        if len(self._labels) >= AT_ONCE:
            self._keep_labels()

    def finish(self) -> list[RunRow]:
        """Keep what is left; the runs that were made. A label of a score that no sample has is the caller's mistake."""
        if unknown := self._wanted.keys() - self._seen:
            for run in self._runs.values():
                self._store.delete_run(run.id)
            names = ", ".join(sorted(self._seen)) or "none"
            raise ConfigError(f"--label: no sample has a score {min(unknown)!r}; there are {names}")
        self._keep_labels()
        return [run.finish() for run in self._runs.values()]

    def _keep_labels(self) -> None:
        self.labels += self._store.add_labels(self._labels)
        self._labels = []

    def _labels_of(self, one: ScoredSample, tool: str) -> Iterable[HumanLabel]:
        for score in one.scores:
            aspect = self._wanted.get(score.name)
            if aspect is None:
                continue
            label = _label(aspect, score.value)
            if label is None:
                self.not_labels[f"{score.name} that is neither 0 nor 1"] += 1
                continue
            yield HumanLabel(
                sample=one.sample.id,
                kind=aspect.name,
                item=score.item,
                turn=score.turn,
                label=label,
                annotator=score.by or tool,
                # Whoever labelled there followed no policy of ours; `calibrate` never mixes two.
                policy=tool,
                time=now(),
                about=digest(one.sample),
                text=score.text,
                note=score.reason[:1000],
            )


def _label(aspect: Aspect, value: float) -> str | None:
    """A yes/no score as a label: the label named 1 or 0, else the first good or bad one."""
    if value not in (0, 1):
        return None
    if (name := str(int(value))) in aspect.names:
        return name
    return next((label.name for label in aspect.labels if label.tone == ("good" if value else "bad")), None)


class _ImportedRun:
    """One run, written a few verdicts at a time."""

    def __init__(self, store: Store, tool: str, judge: str, data: Sequence[Mapping[str, Any]]) -> None:
        self._store, self._tool, self._judge = store, tool, judge
        self._scales: dict[str, Scale] = {}
        self._waiting: list[tuple[int, Sample, Verdict]] = []
        self._rows = 0
        self._protocol = get_protocol(imported_protocol(tool, {}))
        self._manifest: dict[str, Any] = {
            "protocol": {"name": self._protocol.name, "version": self._protocol.version},
            "judge": {"name": judge, "kind": "imported"},
            "importer": tool,
            "data": list(data),
            "options": {},
            "prompts": {},
            "fields": {},
            "encoding": "utf-8",
        }
        self.id = store.create_run(new_run_id(), self._protocol.name, judge, now(), self._manifest).id

    def add(self, sample: Sample, scores: Sequence[ImportedScore]) -> None:
        means = _means(scores)
        for name, value in means.items():
            self._scales[name] = wider(self._scales.get(name), value)
        reasons = {score.name: score.reason for score in scores if score.reason}
        verdict = Verdict(
            id=sample.id,
            protocol=self._protocol.name,
            status="judged",
            scores=means,
            judge=self._judge,
            notes={"reasons": reasons} if reasons else {},
        )
        self._waiting.append((self._rows, sample, verdict))
        self._rows += 1
        if len(self._waiting) >= AT_ONCE:
            self._write()

    def finish(self) -> RunRow:
        self._write()
        get_protocol(imported_protocol(self._tool, self._scales))
        protocol = {**self._manifest["protocol"], "origin": {"tool": self._tool, "scales": self._scales}}
        manifest = self._manifest | {"protocol": protocol, "rows": self._rows}
        self._store.update_run(self.id, state="complete", finished=now(), manifest=manifest)
        return self._store.run(self.id)

    def _write(self) -> None:
        self._store.add_verdicts(self.id, self._waiting)
        self._waiting = []


def _means(scores: Iterable[ImportedScore]) -> dict[str, float]:
    """One value for each name; of several, such as of two people or of the criteria of a dialogue, their mean."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        found[score.name].append(score.value)
    return {name: sum(given) / len(given) for name, given in found.items()}
