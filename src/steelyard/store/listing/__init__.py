"""The samples of a run as a table: sorted, searched, filtered, page by page, also where there are a hundred thousand.

Verdicts are kept as whole documents, and reading all of them for a page of fifty takes seconds. So a run gets short
rows and columns (index.py) when somebody first looks; a query is worked out on the columns (query.py), and only the
rows of its page are read. The first page in the order of the input needs none of it and is there at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pydantic_core import from_json

from steelyard.records import Status
from steelyard.store import Store
from steelyard.store.database import placeholders
from steelyard.store.listing.facets import known_summary, statuses, summary
from steelyard.store.listing.index import (
    beginning,
    catch_up,
    columns,
    is_listed,
    keep,
    searchable,
    unlisted,
    worked_out,
)
from steelyard.store.listing.model import Range, SampleQuery, SampleRow, SampleTable, ScoreSummary, Summary
from steelyard.store.listing.query import WORST, everything, places

__all__ = [
    "WORST",
    "Range",
    "SampleQuery",
    "SampleRow",
    "SampleTable",
    "ScoreSummary",
    "Summary",
    "catch_up",
    "chosen",
    "is_listed",
    "keep",
    "known_summary",
    "neighbours",
    "searchable",
    "statuses",
    "summary",
    "table",
    "unlisted",
    "worked_out",
]
COLUMNS = "seq, id, status, title, scores, flags, tags, labels"


def table(store: Store, run: str, query: SampleQuery) -> SampleTable:
    """One page of a run's samples."""
    start = (query.page - 1) * query.per_page
    if query.is_plain and not is_listed(store, run):
        (n,) = next(store.query("SELECT count(*) FROM samples WHERE run = ?", run))
        total, rows = n, _in_order(store, run, query.per_page, start, query.descending)
    else:
        catch_up(store, run)
        found = places(store, run, query)
        n, total = int(everything(store, run).sum()), len(found)
        rows = _with_answers(store, run, _rows(store, run, found[start : start + query.per_page].tolist()))
    return SampleTable(rows=tuple(rows), total=total, n=n, page=query.page, per_page=query.per_page)


def chosen(store: Store, run: str, query: SampleQuery) -> list[int]:
    """The places of all samples that fit a query, in the order of the input."""
    catch_up(store, run)
    found: list[int] = np.sort(places(store, run, query)).tolist()
    return found


def neighbours(store: Store, run: str, query: SampleQuery, seq: int) -> tuple[int | None, int | None]:
    """The places of the samples before and after this one in the order of the query; None at the ends."""
    if query.is_plain:
        ends = [
            next(store.query(f"SELECT {which}(seq) FROM samples WHERE run = ? AND seq {side} ?", run, seq))[0]
            for which, side in (("max", "<"), ("min", ">"))
        ]
        before, after = reversed(ends) if query.descending else ends
        return before, after
    catch_up(store, run)
    order = places(store, run, query)
    here = np.flatnonzero(order == seq)
    if not len(here):
        return None, None
    at = int(here[0])
    return (int(order[at - 1]) if at else None), (int(order[at + 1]) if at + 1 < len(order) else None)


def _in_order(store: Store, run: str, limit: int, start: int, descending: bool) -> Iterator[SampleRow]:
    # The narrow index finds the places; whole documents are read for this page only.
    direction = "DESC" if descending else "ASC"
    sql = f"""
        SELECT s.seq, s.id, s.status, s.sample, s.verdict FROM samples s
        WHERE s.run = ? AND s.seq IN (SELECT seq FROM samples WHERE run = ? ORDER BY seq {direction} LIMIT ? OFFSET ?)
        ORDER BY s.seq {direction}
    """
    for place, id, status, sample, verdict in store.query(sql, run, run, limit, start):
        document = from_json(sample)
        row = _row(*columns(place, id, status, document, from_json(verdict)))
        yield row.model_copy(update={"answer": beginning(document)})


def _rows(store: Store, run: str, wanted: list[int]) -> Iterator[SampleRow]:
    found = store.query(f"SELECT {COLUMNS} FROM listed WHERE run = ? AND seq IN ({placeholders(wanted)})", run, *wanted)
    by_place = {row.seq: row for row in (_row(*row) for row in found)}
    return (by_place[seq] for seq in wanted if seq in by_place)


def _with_answers(store: Store, run: str, rows: Iterable[SampleRow]) -> Iterator[SampleRow]:
    """The rows with the beginnings of their answers, read from the samples of this page alone."""
    listed = list(rows)
    found = store.query(
        f"SELECT seq, sample FROM samples WHERE run = ? AND seq IN ({placeholders(listed)})",
        run,
        *(row.seq for row in listed),
    )
    answers = {seq: beginning(from_json(sample)) for seq, sample in found}
    return (row.model_copy(update={"answer": answers.get(row.seq, "")}) for row in listed)


def _row(seq: int, id: str, status: Status, title: str, scores: str, flags: str, tags: str, labels: str) -> SampleRow:
    return SampleRow(
        seq=seq,
        id=id,
        status=status,
        title=title,
        scores=from_json(scores),
        flags=from_json(flags),
        tags=from_json(tags),
        labels=from_json(labels),
    )
