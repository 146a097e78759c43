"""Experiments: what there is, how far their runs are, and beginning what is left. They are composed in the viewer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from steelyard.records import Record
from steelyard.web.api.bodies import SpendingBody
from steelyard.web.errors import JUDGING
from steelyard.web.experimenting import begin
from steelyard.web.pages.experiments import (
    Asked,
    ExperimentPage,
    ExperimentsPage,
    asked_composed,
    asked_of_settings,
    delete_composed,
    every_experiment,
    experiment_page,
)
from steelyard.web.viewer import Viewer, viewer_of

router = APIRouter(tags=["experiments"])
Number = Annotated[int, Path(ge=1, le=2**31, description="of an experiment that was composed in the viewer")]
Name = Annotated[str, Path(description="of an experiment of the settings file")]
Project = Annotated[str | None, Query(description="on a team's server: whose runs; null: your first project")]


class Begun(Record):
    runs: tuple[str, ...] = Field(description="ids of the runs that are judged now, one after the other")


@router.get("/experiments")
def list_experiments(request: Request) -> ExperimentsPage:
    """All experiments: those composed in the viewer, newest first, then those of the settings file."""
    return every_experiment(viewer_of(request))


@router.get("/experiments/composed/{composed}")
def get_composed(request: Request, composed: Number) -> ExperimentPage:
    """An experiment that was composed in the viewer, with its runs and the table that compares them."""
    viewer = viewer_of(request)
    return experiment_page(viewer, asked_composed(viewer, composed), patience=None)


@router.post("/experiments/composed/{composed}", status_code=202, responses=JUDGING)
def begin_composed(request: Request, composed: Number, body: SpendingBody) -> Begun:
    """Begin the runs that are missing and go on with those that are not complete."""
    viewer = viewer_of(request)
    return _begun(viewer, asked_composed(viewer, composed), body)


@router.delete("/experiments/composed/{composed}", status_code=204)
def delete_experiment(request: Request, composed: Number) -> None:
    """Delete an experiment that was composed in the viewer. Its runs stay."""
    delete_composed(viewer_of(request), composed)


@router.get("/experiments/{experiment:path}")
def get_experiment(request: Request, experiment: Name, project: Project = None) -> ExperimentPage:
    """An experiment of the settings file, with its runs and the table that compares them."""
    viewer = viewer_of(request)
    return experiment_page(viewer, asked_of_settings(viewer, experiment, project), patience=None)


@router.post("/experiments/{experiment:path}", status_code=202, responses=JUDGING)
def begin_experiment(request: Request, experiment: Name, body: SpendingBody, project: Project = None) -> Begun:
    """Begin the runs that are missing and go on with those that are not complete."""
    viewer = viewer_of(request)
    return _begun(viewer, asked_of_settings(viewer, experiment, project), body)


def _begun(viewer: Viewer, about: Asked, body: SpendingBody) -> Begun:
    return Begun(runs=tuple(begin(viewer, about.planned, about.project, body.spending)))
