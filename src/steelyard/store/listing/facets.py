"""Facets of a run's samples, counted once and kept until verdicts are added."""

from __future__ import annotations

import numpy as np

from steelyard.store import Store
from steelyard.store.listing.index import catch_up, keep, worked_out
from steelyard.store.listing.model import ScoreSummary, Summary
from steelyard.store.listing.query import Array, everything, score

MOST_FACETS = 200
BINS = 10


def summary(store: Store, run: str) -> Summary:
    """The facets to filter by, computed now if they are not known yet."""
    catch_up(store, run)
    made = known_summary(store, run)
    if made is None:
        made = _summary(store, run)
        keep(store, run, "summary", made.model_dump_json())
    return made


def known_summary(store: Store, run: str) -> Summary | None:
    """The same where it is known already: for lists that must not wait."""
    kept = worked_out(store, run, "summary")
    return Summary.model_validate_json(kept) if kept else None


def statuses(store: Store, run: str) -> dict[str, int]:
    """How many samples have which status, counted only where that is not known."""
    known = known_summary(store, run)
    return dict(known.statuses) if known else store.judged(run)


def _summary(store: Store, run: str) -> Summary:
    size = len(everything(store, run))
    names = store.query("SELECT name FROM scored WHERE run = ? GROUP BY name ORDER BY min(block), min(at)", run)
    counts = {what: _counts(store, run, what) for what in ("status", "flag", "label", "tag")}
    return Summary(
        n=sum(counts["status"].values()),
        statuses=counts["status"],
        flags=counts["flag"],
        labels=counts["label"],
        tags=counts["tag"],
        scores={name: _spread(score(store, run, name, size)) for (name,) in list(names)},
    )


def _counts(store: Store, run: str, what: str) -> dict[str, int]:
    """How many samples have which value, the commonest first; of equals, those that came first."""
    sql = (
        "SELECT value, sum(length(places)) / 2 AS n FROM faceted WHERE run = ? AND what = ? "
        "GROUP BY value ORDER BY n DESC, min(block), value LIMIT ?"
    )
    return dict(store.query(sql, run, what, MOST_FACETS))


def _spread(column: Array) -> ScoreSummary:
    values = column[~np.isnan(column)]
    if not len(values):
        return ScoreSummary(mean=None, n=0, low=0, high=0, bins=())
    # On the scales there are (0 to 1, 0 to 100) the ends are those of the scale, else those of the data.
    low, high = min(0.0, float(values.min())), float(values.max())
    high = 1.0 if high <= 1 else 100.0 if high <= 100 else high
    at = np.minimum(BINS - 1, ((values - low) / (high - low) * BINS).astype(np.int64))
    bins = tuple(int(n) for n in np.bincount(at, minlength=BINS))
    return ScoreSummary(mean=float(values.mean()), n=len(values), low=low, high=high, bins=bins)
