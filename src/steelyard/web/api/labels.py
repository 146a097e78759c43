"""Labels by people."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.exceptions import HTTPException

from steelyard.engine.manifest import now
from steelyard.errors import InputError
from steelyard.people.label_targets import slots_of
from steelyard.records import Record
from steelyard.store import RunRow, Store
from steelyard.store.labels import HumanLabel, allowed, canonical, digest
from steelyard.web.api.bodies import Body
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["labels"])


class NewLabel(Body):
    """One person's label of one item of a judged sample."""

    sample: str = Field(min_length=1)
    kind: str = Field(description="which label of the item: one of those that the page for labelling asks for")
    item: int | None = Field(default=None, ge=0, le=2**31, description="the item's id; null where it is the sample")
    turn: int | None = Field(default=None, ge=0, le=2**31)
    label: str = Field(min_length=1)
    annotator: str = Field(min_length=1, max_length=200)
    policy: str = Field(default="", max_length=200)
    note: str = Field(default="", max_length=4000)
    weight: float = Field(default=1.0, gt=0, le=1e12)


class LabelsBody(Body):
    """Labels about the items of one run; all are kept or none."""

    run: str = Field(min_length=1)
    labels: list[NewLabel] = Field(min_length=1, max_length=10_000)


class KeptLabels(Record):
    kept: int


class Labels(Record):
    labels: tuple[HumanLabel, ...]


@router.get("/labels")
def get_labels(request: Request, run: str | None = None) -> Labels:
    """The labels made on one run, or all."""
    with viewer_of(request).store() as store:
        id = store.run(run).id if run is not None else None
        return Labels(labels=tuple(store.labels(id)))


@router.post("/labels", status_code=201)
def post_labels(request: Request, body: LabelsBody) -> KeptLabels:
    """Keep labels. What a person labels again replaces what that person said."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        run = store.run(body.run)
        for label in body.labels:
            if viewer.person not in (None, label.annotator) and not viewer.may("import labels", run.project):
                raise HTTPException(403, f"you may label under your own name only: {viewer.person}")
        made = [_made(store, run, label, f"labels.{at}") for at, label in enumerate(body.labels)]
        return KeptLabels(kept=store.add_labels(made))


def _made(store: Store, row: RunRow, given: NewLabel, place: str) -> HumanLabel:
    """The label, tied to the text that it is about."""
    run, protocol = row.id, row.protocol
    if not allowed(given.kind, protocol):
        raise InputError(f"there is no {given.kind!r}", field=f"{place}.kind")
    label = canonical(given.kind, given.label, protocol)
    if label is None:
        choice = ", ".join(allowed(given.kind, protocol))
        raise InputError(f"{given.label!r} is not one of {choice}", field=f"{place}.label")
    found = store.verdict(run, given.sample)
    if found is None:
        raise HTTPException(404, f"{place}.sample: run {run} has no sample {given.sample!r}")
    sample, verdict = found
    where = (given.kind, given.turn, given.item)
    slot = next((slot for slot in slots_of(verdict) if (slot.kind, slot.turn, slot.item) == where), None)
    if slot is None:
        raise InputError(f"sample {given.sample!r} has no such {given.kind}", field=f"{place}.item")
    more = {"label": label, "run": run, "time": now(), "about": digest(sample), "text": slot.text}
    return HumanLabel(**(given.model_dump() | more))
