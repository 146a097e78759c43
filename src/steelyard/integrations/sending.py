"""Sending the scores of a run to another tool: `export(results, to="langfuse")`, or `steelyard export RUN --to …`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import ConfigError, Surface
from steelyard.integrations.evaluations import Evaluation, JudgedRun, moment
from steelyard.reports.results import AnyPath, Results
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.store import RunRow, Store

TARGETS = {
    "opentelemetry": "opentelemetry",
    "phoenix": "phoenix",
    "langfuse": "langfuse",
    "mlflow": "mlflow",
    "every-eval-ever": "every_eval_ever",
}
"""What scores can be sent to, and the module that does it: its `send(run, request)` returns a `Delivery`."""
BATCH = 100


class Request(NamedTuple):
    """How a user wants it sent: `where` is an address, a folder, or empty; keys are in the environment."""

    where: str
    environment: Mapping[str, str]
    options: Mapping[str, str]


@dataclass
class Delivery:
    """The outcome of sending a run's scores."""

    sent: int = 0
    without_ids: int = 0
    """The sample does not say which trace it belongs to."""
    without_score: int = 0
    """The score is null, and the tool has no place for why."""
    refused: int = 0
    why: str = ""
    """What the tool said of the first one that it refused."""

    @property
    def is_complete(self) -> bool:
        return bool(self.sent) and not self.refused

    def __str__(self) -> str:
        parts = [f"{self.sent:,} scores sent"]
        if self.without_ids:
            parts.append(f"{self.without_ids:,} without trace or span ids in their sample's `source`, not sent")
        if self.without_score:
            parts.append(f"{self.without_score:,} without a value, not sent")
        if self.refused:
            parts.append(f"{self.refused:,} refused: {self.why}")
        return "; ".join(parts)


class Refused(Exception):
    """The tool rejected a batch. `final`: it will reject every other batch too."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


def export(
    judged: Results | str,
    to: str,
    *,
    store: AnyPath | None = None,
    options: Mapping[str, str] | None = None,
) -> Delivery:
    """Send the scores of results, or of a run in a store, to a tool: a name, or `name:address`.

    A score that is sent again replaces itself. What has no ids, and what the tool refused, is counted.
    """
    settings = Settings.load(surface=Surface.python)
    if isinstance(judged, Results):
        pairs = list(zip(judged.samples, judged, strict=True))
        run = JudgedRun(judged.run or "", judged.protocol, moment(None), lambda: pairs)
        return send(run, to, settings.environment, options or {})
    from steelyard.store import Store

    with Store.open(settings.store_location(os.fspath(store) if store else None), create=False) as opened:
        return send(stored_run(opened, opened.run(judged)), to, settings.environment, options or {})


def stored_run(store: Store, row: RunRow) -> JudgedRun:
    """A run of a store, to be sent."""
    time = moment(row.finished or row.started)
    return JudgedRun(row.id, row.protocol, time, lambda: store.verdicts(row.id), row.manifest)


def send(run: JudgedRun, to: str, environment: Mapping[str, str], options: Mapping[str, str]) -> Delivery:
    """Send a run to a target by name."""
    name, _, where = to.partition(":")
    if name not in TARGETS:
        raise ConfigError(f"there is no target {name!r}; there are {', '.join(TARGETS)}")
    module = import_module(f"steelyard.integrations.{TARGETS[name]}")
    if unknown := sorted(options.keys() - set(getattr(module, "OPTIONS", ()))):
        known = ", ".join(getattr(module, "OPTIONS", ())) or "none"
        raise ConfigError(f"{name} has no option {unknown[0]!r}; it has {known}")
    delivery: Delivery = module.send(run, Request(where, environment, options))
    return delivery


def deliver(
    evaluations: Iterable[Evaluation],
    post: Callable[[Sequence[Evaluation]], None],
    *,
    has_ids: Callable[[Evaluation], bool],
    needs_score: bool = False,
) -> Delivery:
    """Post evaluations in batches and count what became of them; `post` raises `Refused` for a batch that was not
    taken."""
    done, stopped = Delivery(), False

    def post_all(batch: Sequence[Evaluation]) -> None:
        nonlocal stopped
        try:
            if not stopped:
                post(batch)
                done.sent += len(batch)
                return
        except Refused as refusal:
            done.why, stopped = done.why or str(refusal), refusal.final
            if len(batch) > 1 and not stopped:
                # One bad score makes some tools refuse all: halves tell which one it is.
                post_all(batch[: len(batch) // 2])
                post_all(batch[len(batch) // 2 :])
                return
        done.refused += len(batch)

    def wanted() -> Iterable[Evaluation]:
        for evaluation in evaluations:
            if not has_ids(evaluation):
                done.without_ids += 1
            elif needs_score and evaluation.value is None:
                done.without_score += 1
            else:
                yield evaluation

    rest = iter(wanted())
    while batch := list(islice(rest, BATCH)):
        post_all(batch)
    return done
