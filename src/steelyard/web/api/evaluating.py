"""Judging while the caller waits."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from steelyard.errors import InputError, NoReadableRow
from steelyard.evaluation import evaluate_async
from steelyard.records import Record, Usage
from steelyard.reports.results import Results
from steelyard.samples.columns import check_fields
from steelyard.web.actions import judge_and_limiter, judge_name, prepared
from steelyard.web.api.bodies import EvaluateBody
from steelyard.web.errors import JUDGING
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["evaluate"])


class BadSample(Record):
    """A sample that cannot be read: its place in the request, counted from 0, and what is wrong."""

    index: int
    field: str | None
    message: str


class Evaluated(Record):
    """Result lines as `-o` writes them, in the order of the samples, without those that cannot be read."""

    results: tuple[dict[str, Any], ...]
    bad_samples: tuple[BadSample, ...]
    usage: Usage = Field(description="of all samples together")


def _bad_sample(bad: InputError) -> BadSample:
    return BadSample(index=(bad.line or 1) - 1, field=bad.field, message=bad.problem)


@router.post("/evaluate", responses=JUDGING)
async def evaluate(request: Request, body: EvaluateBody) -> Evaluated:
    """Judge samples and answer with their result lines. Nothing is kept in the store."""
    viewer = viewer_of(request)

    async def judged() -> Evaluated:
        how = body.how
        protocol, options = prepared(viewer, how)
        check_fields(protocol.kind, how.fields)
        judge, _, limits, _ = judge_and_limiter(viewer, protocol, judge_name(viewer.config, how.judge))
        try:
            found = await evaluate_async(
                body.samples, protocol, judge, options=options, fields=how.fields, concurrency=limits.samples_at_once
            )
        except NoReadableRow as error:
            found = Results(protocol.name, (), error.bad_rows)
        finally:
            await judge.aclose()
        return Evaluated(
            results=tuple(found.to_dicts()),
            bad_samples=tuple(map(_bad_sample, found.bad_rows)),
            usage=sum((verdict.usage for verdict in found), Usage()),
        )

    return await viewer.evaluations.judged(judged)
