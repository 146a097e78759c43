"""Which samples of a listed run a query means, in its order: arithmetic on columns, never on whole verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from steelyard.errors import ConfigError
from steelyard.protocols import vocabulary
from steelyard.store import Store
from steelyard.store.database import placeholders
from steelyard.store.listing.index import BLOCK, keep, number_of, searchable, worked_out
from steelyard.store.listing.model import SampleQuery

Array = np.ndarray[Any, np.dtype[Any]]
SORTS = ("id", "status", "title")
WORST = "worst"
# The index knows pieces of three characters; what is shorter is looked for in the texts themselves.
SHORTEST_INDEXED = 3


def places(store: Store, run: str, query: SampleQuery) -> Array:
    """The places in the input of the samples that fit, in the order asked for."""
    fits = everything(store, run)
    size = len(fits)
    for what, wanted in (
        ("status", query.statuses),
        ("flag", query.flags),
        ("label", query.labels),
        ("tag", query.tags),
    ):
        if wanted:
            fits &= _any_of(store, run, what, wanted, size)
    for name, ends in query.scores.items():
        values = score(store, run, _score_name(name), size)
        # Not a number is neither above nor below: a sample without the score is never in a range.
        if ends.low is not None:
            fits &= values >= ends.low
        if ends.high is not None:
            fits &= values <= ends.high
    if text := searchable(query.search).strip():
        fits &= _mask(_holding(store, run, text), size)
    return _ordered(store, run, query, fits)


def everything(store: Store, run: str) -> Array:
    """Which places of the input are listed. Every sample has a status."""
    (last,) = next(store.query("SELECT max(block) FROM faceted WHERE run = ?", run))
    size = 0 if last is None else (last + 1) * BLOCK
    return _filled(store.query("SELECT block, places FROM faceted WHERE run = ? AND what = 'status'", run), size)


def score(store: Store, run: str, name: str, size: int) -> Array:
    """A score by place; not a number where a sample has none."""
    values = np.full(size, np.nan)
    for block, column in store.query("SELECT block, vals FROM scored WHERE run = ? AND name = ?", run, name):
        values[block * BLOCK : (block + 1) * BLOCK] = np.frombuffer(column, "<f8")
    return values


def _ordered(store: Store, run: str, query: SampleQuery, fits: Array) -> Array:
    found = np.flatnonzero(fits)
    if query.sort == "seq":
        return found[::-1] if query.descending else found
    if query.sort in SORTS:
        direction = "DESC" if query.descending else "ASC"
        everyone = _in_words(store, run, query.sort, direction)
        everyone = everyone[everyone < len(fits)]
        return everyone[fits[everyone]]
    keys = _sort_key(store, run, query.sort, len(fits))[found]
    # What has no score is last in both directions, and what is equal stays in the order of the input.
    return found[np.argsort(-keys if query.descending else keys, kind="stable")]


def _in_words(store: Store, run: str, column: str, direction: str) -> Array:
    """All samples in the order of a text. The database sorts them once."""
    name = f"order {column} {direction}"
    if kept := worked_out(store, run, name):
        return np.frombuffer(kept, "<i8")
    order = _numbers(store, f"SELECT seq AS n FROM listed WHERE run = ? ORDER BY {column} {direction}, seq", run)
    keep(store, run, name, order.astype("<i8").tobytes())
    return order


def _sort_key(store: Store, run: str, sort: str, size: int) -> Array:
    if sort == "flags":
        return _flag_counts(store, run, size)
    return goodness(store, run, size) if sort == WORST else score(store, run, _score_name(sort), size)


def goodness(store: Store, run: str, size: int) -> Array:
    """How good each sample is by what ranks it: its main score, the weakest of several; not a number without one."""
    names = [name for (name,) in store.query("SELECT DISTINCT name FROM scored WHERE run = ?", run)]
    vocab = vocabulary(next(store.query("SELECT protocol FROM runs WHERE id = ?", run))[0])
    least = np.full(size, np.nan)
    for metric in map(vocab.metric, vocab.mains(names)):
        values = score(store, run, metric.name, size)
        least = np.fmin(least, metric.goodness(values))  # type: ignore[arg-type] # a column at once
    return least


def _score_name(name: str) -> str:
    if not (name.isidentifier() and name.isascii()):
        raise ConfigError(f"there is no score {name!r} to sort or filter by")
    return name


def _flag_counts(store: Store, run: str, size: int) -> Array:
    counts = np.zeros(size)
    for block, found in store.query("SELECT block, places FROM faceted WHERE run = ? AND what = 'flag'", run):
        counts[_unpacked(block, found)] += 1
    return counts


def _any_of(store: Store, run: str, what: str, wanted: Sequence[str], size: int) -> Array:
    sql = f"SELECT block, places FROM faceted WHERE run = ? AND what = ? AND value IN ({placeholders(wanted)})"
    return _filled(store.query(sql, run, what, *wanted), size)


def _holding(store: Store, run: str, text: str) -> Array:
    """The places whose text holds these very characters."""
    first = number_of(store, run) << 32
    within = (first, first | 0xFFFF_FFFF)
    if len(text) >= SHORTEST_INDEXED and store.has_text_index():
        sql, values = store.places_holding(text, *within)
        return _numbers(store, sql, *values) - first
    sql = f"SELECT place AS n FROM texts WHERE place BETWEEN ? AND ? AND {store.dialect.holds}"
    return _numbers(store, sql, *within, text) - first


def _numbers(store: Store, sql: str, *values: Any) -> Array:
    """The numbers `n` of a statement. One long text is read in a tenth of the time that as many rows take."""
    (joined,) = next(store.query(f"SELECT {store.dialect.joined} FROM ({sql}) AS found", *values))
    return np.fromstring(joined or "", np.int64, sep=",")


def _mask(found: Array, size: int) -> Array:
    mask = np.zeros(size, bool)
    mask[found[found < size]] = True
    return mask


def _filled(rows: Iterator[tuple[int, bytes]], size: int) -> Array:
    mask = np.zeros(size, bool)
    for block, found in rows:
        mask[_unpacked(block, found)] = True
    return mask


def _unpacked(block: int, found: bytes) -> Array:
    return np.frombuffer(found, "<u2").astype(np.int64) + block * BLOCK
