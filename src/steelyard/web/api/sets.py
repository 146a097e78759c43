"""Sets of samples: what there is, what is in them, and runs over them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from steelyard.engine.manifest import now
from steelyard.records import Record
from steelyard.store.set_table import SampleSet
from steelyard.web import actions
from steelyard.web.api.bodies import Body, RunSettingsBody
from steelyard.web.api.running import Created
from steelyard.web.errors import JUDGING
from steelyard.web.pages import sets as pages
from steelyard.web.pages.sets import SetsPage, SetSummary, VersionSummary
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["sets"])
Version = Annotated[int | None, Query(ge=1, le=999_999, description="null: the newest")]


class SetDetail(Record):
    set: SetSummary
    versions: tuple[VersionSummary, ...] = Field(description="newest first")


class AddBody(Body):
    """Samples of a run for a set of its project, which is made where there is none of that name."""

    name: str = Field(min_length=1, max_length=200)
    samples: list[str] = Field(min_length=1, max_length=100_000, description="ids of samples of the run")
    note: str = Field(default="", max_length=1000)


class RemoveBody(Body):
    samples: list[str] = Field(min_length=1, max_length=100_000, description="ids of samples that the set holds")
    note: str = Field(default="", max_length=1000)


class SetRunBody(RunSettingsBody):
    """How a version of a set is to be judged."""

    version: int | None = Field(default=None, ge=1, le=999_999, description="null: the newest")


@router.get("/sets")
def list_sets(request: Request) -> SetsPage:
    """All sets, by name."""
    with viewer_of(request).store() as store:
        return SetsPage(sets=tuple(map(SetSummary.of, store.sets())))


@router.get("/sets/{set}")
def get_set(request: Request, set: str) -> SetDetail:
    """A set by its number, with its versions."""
    with viewer_of(request).store() as store:
        found = store.sample_set(set)
        versions = tuple(map(VersionSummary.of, store.set_versions(found.id)))
        return SetDetail(set=SetSummary.of(found), versions=versions)


@router.get(
    "/sets/{set}/samples.jsonl",
    response_class=Response,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
)
def set_lines(request: Request, set: str, version: Version = None) -> Response:
    """The samples of a version, one to a line, as files of samples have them."""
    return pages.sent_lines(viewer_of(request), set, version)


@router.post("/runs/{run}/sets")
def add_to_set(request: Request, run: str, body: AddBody) -> SetSummary:
    """Add samples of a run to a set. Each change makes a version; earlier ones stay as they are."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        given: dict[str, Any] = {"time": now(), "author": viewer.person or "", "note": body.note}
        return SetSummary.of(store.add_to_set(body.name, store.run(run).id, body.samples, **given))


@router.post("/sets/{set}/remove")
def remove_from_set(request: Request, set: str, body: RemoveBody) -> SetSummary:
    """Make a version without these samples."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        found: SampleSet = store.sample_set(set)
        given: dict[str, Any] = {"time": now(), "author": viewer.person or "", "note": body.note}
        return SetSummary.of(store.remove_from_set(found.id, body.samples, **given))


@router.delete("/sets/{set}", status_code=204)
def delete_set(request: Request, set: str) -> None:
    """Delete a set with all its versions. Runs over it keep their samples."""
    with viewer_of(request).store() as store:
        store.delete_set(store.sample_set(set).id)


@router.post("/sets/{set}/runs", status_code=201, responses=JUDGING)
def run_set(request: Request, set: str, body: SetRunBody) -> Created:
    """Begin a run over a version of a set."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        found = store.sample_set(set)
        version = store.set_version(found.id, body.version).version
    project = found.project if body.project is None else body.project
    how = body.how.model_copy(update={"project": project, "called": body.called})
    id = actions.start(viewer, how, actions.SetSource(found, version), spending=body.spending)
    return Created(id=id, url=f"/api/v1/runs/{id}")
