"""The pages, one module each with a list of `routes`."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Route

from steelyard.web.pages import (
    calibration,
    compare,
    compare_many,
    failures,
    identity,
    judge_cards,
    judges,
    label,
    prompts,
    queues,
    run,
    runs,
    sample,
    sample_history,
    samples,
    sets,
    start,
    trends,
    trial,
)

# In this order: a narrower address before a wider one.
MODULES = (
    runs,
    start,
    identity,
    sets,
    sample_history,
    trial,
    sample,
    samples,
    failures,
    label,
    queues,
    calibration,
    run,
    trends,
    compare_many,
    compare,
    judge_cards,
    judges,
    prompts,
)


def routes() -> list[BaseRoute]:
    home = Route("/", lambda request: RedirectResponse("/runs"))
    return [home, *(route for module in MODULES for route in module.routes)]
