"""Queues of items to label over HTTP; labels themselves are posted to /labels."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.datastructures import QueryParams

from steelyard.people.queues import QueueState
from steelyard.records import Record
from steelyard.web.api.bodies import Body
from steelyard.web.labelling import LabelPlan
from steelyard.web.pages.label import refuse_at_work
from steelyard.web.pages.queues import QueueInfo, every_queue, info, made_queue
from steelyard.web.pages.samples import query_of
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["queues"])


class QueueBody(Body):
    """Which items of a run, and who labels them."""

    run: str = Field(min_length=1)
    name: str = Field(min_length=1, max_length=100)
    people: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default=[], max_length=100, description="empty: whoever may label"
    )
    samples: int = Field(default=50, ge=0, le=1_000_000, description="how many to draw at random; 0: all")
    tag: list[Annotated[str, Field(max_length=200)]] = Field(default=[], description="only samples with such a tag")
    kinds: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default=[], description="what to label; empty: what is usually asked"
    )
    share: float = Field(default=0.2, ge=0, le=1, description="share of samples that two people label")
    blind: bool = Field(default=True, description="whether the judge's labels are hidden")
    policy: str = Field(default="1", min_length=1, max_length=100)
    seed: int = Field(default=0, ge=0, le=2**31)


class Queues(Record):
    queues: tuple[QueueInfo, ...]


@router.get("/queues")
def queues(request: Request, run: str | None = None) -> Queues:
    """Queues and how far they are, newest first."""
    with viewer_of(request).store() as store:
        return Queues(queues=tuple(every_queue(store, store.run(run).id if run is not None else None)))


@router.get("/queues/{queue}")
def queue(request: Request, queue: Annotated[int, Path(ge=0, le=2**31)]) -> QueueInfo:
    """One queue."""
    with viewer_of(request).store() as store:
        return info(QueueState(store.queue(queue), store))


@router.post("/queues", status_code=201)
def make_queue(request: Request, body: QueueBody) -> QueueInfo:
    """Draw items of a run for people to label."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        row = store.run(body.run)
        refuse_at_work(row, store)
        made = made_queue(
            store,
            row,
            LabelPlan(n=body.samples, seed=body.seed, kind=tuple(body.kinds), policy=body.policy),
            name=body.name,
            people=list(dict.fromkeys(body.people)),
            share=body.share,
            blind=body.blind,
            filter=query_of(QueryParams([("tag", tag) for tag in body.tag])),
            author=viewer.person or "",
        )
        return info(QueueState(made, store))
