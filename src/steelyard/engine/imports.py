"""Scores that came with the samples of another tool, kept as runs of that tool and as labels of whoever gave them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.engine.manifest import now
from steelyard.engine.runs import new_run_id
from steelyard.errors import ConfigError
from steelyard.protocols import Protocol, get_protocol, known_aspects
from steelyard.protocols.imported import imported_protocol, scale_of
from steelyard.protocols.vocabulary import Aspect
from steelyard.records import Sample, Verdict
from steelyard.samples import ImportedScore, ScoredSample
from steelyard.store import RunRow, Store
from steelyard.store.labels import HumanLabel, digest

PEOPLE = "people"


@dataclass
class KeptScores:
    """What was kept: a run for the tool's own scores, one for those of people, and labels."""

    runs: list[RunRow] = field(default_factory=list)
    labels: int = 0
    not_labels: Counter[str] = field(default_factory=Counter)
    """Scores that could not become labels, by reason."""


def check_labels(wanted: Mapping[str, str]) -> dict[str, Aspect]:
    """What `KIND=SCORE` names: score → the label of a protocol that it stands for."""
    known = known_aspects()
    found: dict[str, Aspect] = {}
    for kind, score in wanted.items():
        if kind not in known:
            raise ConfigError(f"--label: people cannot label {kind!r}; they can label {', '.join(known)}")
        found[score] = known[kind][0]
    return found


def keep_scores(
    store: Store,
    tool: str,
    scored: Sequence[ScoredSample],
    data: Sequence[Mapping[str, Any]],
    labels: Mapping[str, Aspect],
) -> KeptScores:
    """Keep what came with these samples. A sample without a score of a judge is not in the run of that judge."""
    kept = KeptScores()
    for by_person in (False, True):
        judge = f"{tool} {PEOPLE}" if by_person else tool
        rows = [(one.sample, [score for score in one.scores if score.by_person == by_person]) for one in scored]
        if rows := [(sample, scores) for sample, scores in rows if scores]:
            kept.runs.append(_run(store, tool, judge, rows, data))
    made = [label for one in scored for label in _labels(one, tool, labels, kept.not_labels)]
    for missing in labels.keys() - {score.name for one in scored for score in one.scores}:
        names = ", ".join(sorted({score.name for one in scored for score in one.scores})) or "none"
        raise ConfigError(f"--label: no sample has a score {missing!r}; there are {names}")
    kept.labels = store.add_labels(made)
    return kept


def _run(
    store: Store,
    tool: str,
    judge: str,
    rows: Sequence[tuple[Sample, Sequence[ImportedScore]]],
    data: Sequence[Mapping[str, Any]],
) -> RunRow:
    values: defaultdict[str, list[float]] = defaultdict(list)
    for _, scores in rows:
        for name, value in _means(scores).items():
            values[name].append(value)
    protocol = get_protocol(imported_protocol(tool, {name: scale_of(found) for name, found in values.items()}))
    manifest = {
        "protocol": {"name": protocol.name, "version": protocol.version, "origin": dict(protocol.origin)},
        "judge": {"name": judge, "kind": "imported"},
        "importer": tool,
        "data": list(data),
        "options": {},
        "prompts": {},
        "fields": {},
        "encoding": "utf-8",
        "rows": len(rows),
    }
    row = store.create_run(new_run_id(), protocol.name, judge, now(), manifest)
    verdicts = [(seq, sample, _verdict(sample, scores, protocol, judge)) for seq, (sample, scores) in enumerate(rows)]
    store.add_verdicts(row.id, verdicts)
    store.update_run(row.id, state="complete", finished=now(), manifest=manifest)
    return store.run(row.id)


def _verdict(sample: Sample, scores: Sequence[ImportedScore], protocol: Protocol, judge: str) -> Verdict:
    reasons = {score.name: score.reason for score in scores if score.reason}
    return Verdict(
        id=sample.id,
        protocol=protocol.name,
        status="judged",
        scores=_means(scores),
        judge=judge,
        notes={"reasons": reasons} if reasons else {},
    )


def _means(scores: Iterable[ImportedScore]) -> dict[str, float]:
    """One value for each name; of several, such as of two people or of the criteria of a dialogue, their mean."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        found[score.name].append(score.value)
    return {name: sum(given) / len(given) for name, given in found.items()}


def _labels(one: ScoredSample, tool: str, wanted: Mapping[str, Aspect], refused: Counter[str]) -> Iterable[HumanLabel]:
    for score in one.scores:
        aspect = wanted.get(score.name)
        if aspect is None:
            continue
        tone = {1.0: "good", 0.0: "bad"}.get(score.value)
        label = next((label.name for label in aspect.labels if label.tone == tone), None)
        if label is None:
            refused[f"{score.name} that is neither 0 nor 1"] += 1
            continue
        yield HumanLabel(
            sample=one.sample.id,
            kind=aspect.name,
            item=score.item,
            turn=score.turn,
            label=label,
            annotator=score.by or tool,
            policy=tool,
            time=now(),
            about=digest(one.sample),
            text=score.text,
            note=score.reason[:1000],
        )
