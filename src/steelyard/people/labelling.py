"""What to give to people: a draw of samples that keeps the estimate honest, and the sheet they fill in."""

from __future__ import annotations

import csv
import json
import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import pstdev
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from steelyard.errors import ConfigError, InputError, invalid_field
from steelyard.people.label_targets import Slot, slots_of
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, Metric
from steelyard.records import DialogueSample, RagSample, Record, Sample, Verdict
from steelyard.reports.files import safe_cell
from steelyard.stats import t_quantile
from steelyard.store.labels import HumanLabel, digest, read_labels

NO_TAG = "–"


Stratify = Literal["tag", "score"]
"""By what samples are grouped before an equal number is drawn from each group."""


class Candidate(NamedTuple):
    """A sample that could be drawn."""

    id: str
    stratum: str
    score: float | None
    n_items: int


class Stratum(Record):
    name: str
    n: int
    n_drawn: int


class Draw(Record):
    """The samples to label: id → how many samples of the run it represents."""

    weights: dict[str, float]
    n: int
    n_items: int
    seed: int
    strata: tuple[Stratum, ...]
    metric: str | None
    reach: float | None
    """Half the width of the interval that these labels would give if the judge were no help at all."""


def candidates(
    judged: Iterable[tuple[Sample | None, Verdict]],
    *,
    stratify: Stratify | None = None,
    kinds: Collection[str] = (),
    skip: Collection[str] = (),
) -> Iterator[Candidate]:
    """The samples of a run that have something to label, without those in `skip`."""
    for sample, verdict in judged:
        n_items = sum(1 for _ in asked_slots(verdict, kinds))
        if not n_items or verdict.id in skip:
            continue
        vocab = vocabulary(verdict.protocol)
        metric, score = vocab.main_score(verdict.scores) or ("", None)
        if stratify == "tag":
            stratum = next(iter(sample.tags if sample else ()), NO_TAG)
        else:
            stratum = _band(score, vocab.metric(metric)) if stratify else ""
        yield Candidate(verdict.id, stratum, score, n_items)


def asked_slots(verdict: Verdict, kinds: Collection[str] = ()) -> Iterator[Slot]:
    """The slots of a verdict that people are asked to label."""
    vocab = vocabulary(verdict.protocol)
    for slot in slots_of(verdict):
        if slot.kind in kinds if kinds else vocab.aspect(slot.kind).asked:
            yield slot


def _band(score: float | None, metric: Metric) -> str:
    low, high = metric.bounds
    if score is None or not math.isfinite(high - low):
        return "none"
    if score == metric.best:
        return "full"
    return "low" if abs(metric.best - score) > (high - low) / 2 else "middle"


def draw(found: Iterable[Candidate], n: int, *, seed: int = 0, metric: str | None = None) -> Draw:
    """`n` samples at random; from several strata, as equal a number from each as there is."""
    if n < 1:
        raise ConfigError("--for-labelling takes how many samples to draw, at least 1")
    strata: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in found:
        strata[candidate.stratum].append(candidate)
    if not strata:
        raise ConfigError("there is nothing left to label in this run")
    everyone = [candidate for members in strata.values() for candidate in members]
    shares = _shares({name: len(members) for name, members in strata.items()}, min(n, len(everyone)))
    rng = random.Random(seed)
    weights: dict[str, float] = {}
    # Sorted first: the draw must not depend on the order in which a run was finished.
    for name, members in sorted(strata.items()):
        chosen = rng.sample(sorted(members), shares[name])
        weights |= {candidate.id: len(members) / len(chosen) for candidate in chosen}
    return Draw(
        weights=weights if len(strata) > 1 else dict.fromkeys(weights, 1.0),
        n=len(everyone),
        n_items=sum(candidate.n_items for candidate in everyone if candidate.id in weights),
        seed=seed,
        strata=tuple(Stratum(name=name, n=len(strata[name]), n_drawn=shares[name]) for name in sorted(strata)),
        metric=metric,
        reach=_reach(everyone, len(weights)),
    )


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """As equal as possible; what a small stratum cannot give is taken from the others."""
    shares = dict.fromkeys(sorted(sizes), 0)
    for _ in range(n):
        open_ = [name for name in shares if shares[name] < sizes[name]]
        shares[min(open_, key=lambda name: (shares[name], name))] += 1
    return shares


def _reach(everyone: Iterable[Candidate], n: int) -> float | None:
    scores = [candidate.score for candidate in everyone if candidate.score is not None]
    if len(scores) < 2 or n < 2:
        return None
    return t_quantile(0.975, n - 1) * pstdev(scores) / math.sqrt(n)


# --- sheets ----------------------------------------------------------------------------------------

COLUMNS = ("sample", "kind", "turn", "item", "text", "label", "choices", "note", "question", "answer", "references")
KEPT = ("annotator", "policy", "run", "about", "weight")


def sheet(
    judged: Iterable[tuple[Sample | None, Verdict]],
    drawn: Draw,
    *,
    run: str = "",
    annotator: str = "",
    policy: str = "1",
    kinds: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    """A row per label to give, blank, with what a person needs to see. The judge's label is left out: whoever has
    seen it agrees with it more often."""
    for sample, verdict in judged:
        if verdict.id not in drawn.weights:
            continue
        about = digest(sample) if sample else ""
        for slot in asked_slots(verdict, kinds):
            label = HumanLabel(
                sample=verdict.id,
                kind=slot.kind,
                turn=slot.turn,
                item=slot.item,
                text=slot.text,
                label="",
                annotator=annotator,
                policy=policy,
                run=run,
                about=about,
                weight=drawn.weights[verdict.id],
            )
            given = label.model_dump(exclude={"time"})
            shown = {**given, "choices": " / ".join(slot.choices), **_context(sample, slot)}
            yield {name: shown[name] for name in (*COLUMNS, *KEPT)}


def _context(sample: Sample | None, slot: Slot) -> dict[str, str]:
    match sample:
        case RagSample():
            passages = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(sample.references, start=1))
            answer = sample.answer
            if sample.other_answer is not None:
                answer = f"[A] {answer}\n\n[B] {sample.other_answer}"
            return {"question": sample.question, "answer": answer, "references": passages}
        case DialogueSample():
            turn = sample.turns[slot.turn - 1] if slot.turn and slot.turn <= len(sample.turns) else None
            prompt, answer = (turn.prompt, turn.answer) if turn else ("", "")
            return {"question": prompt, "answer": answer, "references": sample.system_prompt}
    return {"question": "", "answer": "", "references": ""}


def write_sheet(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """As JSONL, or as CSV for a spreadsheet; returns how many rows."""
    written = list(rows)
    if path.suffix.lower() == ".csv":
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, (*COLUMNS, *KEPT))
            writer.writeheader()
            writer.writerows({name: safe_cell(value) for name, value in row.items()} for row in written)
    else:
        path.write_text("".join(sheet_line(row) for row in written), encoding="utf-8")
    return len(written)


def sheet_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


# --- labels that come back -------------------------------------------------------------------------


def labels_in(path: Path) -> Iterator[HumanLabel]:
    """The labels of a filled-in sheet; or of result lines, whose judge then stands in for a person.

    Where a sheet does not say who labelled, its name does: two people's sheets must not pass for one person's.
    """
    if _holds_result_lines(path):
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield from _of_result_line(line, path, number)
        return
    for label in read_labels(path):
        yield label if label.annotator else label.model_copy(update={"annotator": path.stem})


def _holds_result_lines(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as lines:
            first = next((line for line in lines if line.strip()), "")
        row = json.loads(first)
    except (OSError, ValueError):  # whoever reads the file next says what is wrong with it
        return False
    return isinstance(row, dict) and {"id", "protocol", "items"} <= row.keys()


def _of_result_line(line: str, path: Path, number: int) -> Iterator[HumanLabel]:
    try:
        verdict = Verdict.model_validate_json(line)
    except ValidationError as error:
        field, problem, _ = invalid_field(error)
        raise InputError(f"is not a result line: {problem}", file=str(path), line=number, field=field) from None
    for slot in slots_of(verdict):
        if slot.judge != UNJUDGED:
            yield HumanLabel(
                sample=verdict.id,
                kind=slot.kind,
                turn=slot.turn,
                item=slot.item,
                text=slot.text,
                label=slot.judge,
                annotator=verdict.judge,
            )


def labelled_samples(labels: Iterable[HumanLabel], annotator: str = "") -> set[str]:
    """The samples that this person, or anybody, has labelled already."""
    return {label.sample for label in labels if not annotator or label.annotator == annotator}
