"""The list of runs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from steelyard.records import Record
from steelyard.store import RunRow, Store
from steelyard.web.rendering import page, page_routes
from steelyard.web.viewer import viewer_of


class RunSummary(Record):
    """One run as the list shows it."""

    id: str
    number: int
    protocol: str
    judge: str
    state: str
    started: str
    finished: str | None
    statuses: dict[str, int]

    @classmethod
    def of(cls, row: RunRow, store: Store) -> RunSummary:
        facts = {name: value for name, value in row._asdict().items() if name != "manifest"}
        return cls(**facts, statuses=store.judged(row.id))

    @property
    def n(self) -> int:
        return sum(self.statuses.values())


class RunsPage(Record):
    runs: tuple[RunSummary, ...]


def runs(request: Request) -> Response:
    with viewer_of(request).store() as store:
        model = RunsPage(runs=tuple(RunSummary.of(row, store) for row in store.runs()))
    return page(request, "runs.html", model)


routes = page_routes("/runs", runs)
