"""A run compared with the labels that people gave it: `calibrate`'s result, in the browser."""

from __future__ import annotations

from collections import Counter
from functools import partial

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from steelyard.errors import LabelsDoNotFit
from steelyard.people.calibration import calibrate
from steelyard.records import Language, Record
from steelyard.reports.calibration.model import Calibration
from steelyard.reports.calibration.page import blocks
from steelyard.reports.html.document import page_parts
from steelyard.store import RunRow
from steelyard.text.wording import say
from steelyard.web.addresses import run_address
from steelyard.web.cache import PATIENCE
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import Viewer, viewer_of


class PolicyLabels(Record):
    """A version of the labelling policy, and how many labels follow it."""

    policy: str
    n: int


class CalibrationPage(Record):
    """Judge and people compared under one version of the policy; null where there is nothing to compare."""

    run: str
    title: str
    policies: tuple[PolicyLabels, ...]
    policy: str | None
    problem: str | None = Field(default=None, description="why the labels cannot be compared with this run")
    calibration: Calibration | None = None


def calibration(request: Request) -> Response:
    viewer = viewer_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        counted = Counter[str]()
        for one in store.label_counts(row.id):
            counted[one.policy] += one.n
        changes = store.label_changes(row.id)
    policies = tuple(PolicyLabels(policy=policy, n=n) for policy, n in counted.most_common())
    named = request.query_params.get("policy")
    # Two versions are two questions: where none is named, the one with the most labels is shown.
    policy = named if named is not None else policies[0].policy if policies else None
    model = CalibrationPage(run=row.id, title=row.name or row.id, policies=policies, policy=policy)
    found: Calibration | str | None = None
    if policies:
        patience = None if is_json(request) else PATIENCE
        found = compared(viewer, row, changes, policy, language_of(request), patience)
    if isinstance(found, str):
        model = model.model_copy(update={"problem": found})
    elif found is not None:
        model = model.model_copy(update={"calibration": found})
    waiting = bool(policies) and found is None
    parts = list(page_parts(blocks(found))) if isinstance(found, Calibration) else []
    status = 202 if waiting else 200
    place = {"address": run_address(row.id), "project": row.project}
    return page(request, "calibration_page.html", model, status=status, waiting=waiting, parts=parts[1:], **place)


def compared(
    viewer: Viewer,
    row: RunRow,
    changes: int,
    policy: str | None,
    language: Language,
    patience: float | None,
) -> Calibration | str | None:
    """The calibration, or why there is none; computed once for these labels and this state of the run."""
    with viewer.store() as store:
        n = sum(store.judged(row.id).values())

    def make() -> Calibration | str:
        with viewer.store() as store:
            try:
                labels = list(store.labels(row.id))
                return calibrate(store.verdicts(row.id), labels, policy=policy, run=row.id, language=language)
            except LabelsDoNotFit as error:
                return _said(error, policy or "", language)

    return viewer.cache.get(("calibration", row.id, row.finished, n, changes, policy, language), make, patience)


def _said(error: LabelsDoNotFit, policy: str, language: Language) -> str:
    words = partial(say, language)
    reasons = [
        words("calibrate.problem.reason").format(reason=words(f"calibrate.reason.{reason}"), n=n)
        for reason, n in error.counts.items()
    ]
    values = {"n": sum(error.counts.values()), "reasons": words("calibrate.problem.between").join(reasons)}
    return words(f"calibrate.problem.{error.code}").format(**values, policy=policy)


routes = page_routes("/runs/{run}/calibration", calibration)
