"""How the table of a run is kept: a short row per sample, columns per thousand samples, and the text to search.

Nothing of it is made while a run is at work: a trigger notes what is new in `unlisted`, and that is all a run pays.
When somebody looks, `catch_up` lists what is new, a block of samples at a time.

    listed    a row per sample, as pages show it
    scored    a block's values of one score, as 64-bit numbers; not a number where a sample has none
    faceted   where in a block a status, flag, label or tag is found, as 16-bit numbers
    texts     what is searched, at the place `number of the run << 32 | seq`
              with an index of their three-character pieces, where the database can make one
    worked_out   what was counted over all of it, gone as soon as something new is listed
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from pydantic_core import from_json

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Kind
from steelyard.store import Store
from steelyard.store.database import insert, insert_new, placeholders, upsert
from steelyard.text import fold

# Places inside a block are 16-bit numbers; a block is listed in one transaction, which others have to wait for.
BLOCK = 1024
READ_TOGETHER = 256
LONGEST_TITLE = 160
LONGEST_BEGINNING = 400
LIST = upsert("listed", "run seq id status title scores flags tags labels", "run seq")
FACETS = ("status", "flag", "label", "tag")
# The index ends a text at the first of these and takes the others for the last.
UNINDEXED, INDEXED = "\0\ufffe\uffff", "\ufffd"


def unlisted(store: Store, run: str) -> int:
    """How many samples of a run are not in its table yet."""
    (left,) = next(store.query("SELECT count(*) FROM unlisted WHERE run = ?", run))
    return int(left)


def is_listed(store: Store, run: str) -> bool:
    (left,) = next(store.query("SELECT EXISTS (SELECT 1 FROM unlisted WHERE run = ?)", run))
    return not left


def catch_up(store: Store, run: str) -> None:
    """List what is new. Others may write in between."""
    if is_listed(store, run):
        return
    store.make_text_index()
    number = number_of(store, run)
    while (first := next(store.query("SELECT min(seq) FROM unlisted WHERE run = ?", run))[0]) is not None:
        with store.all_or_nothing(f"the table of {run}"):
            _list_block(store, run, number, first // BLOCK)
    store.settle_text_index()


def number_of(store: Store, run: str) -> int:
    for (number,) in store.query("SELECT number FROM runs WHERE id = ?", run):
        return int(number)
    return 0


def _list_block(store: Store, run: str, number: int, block: int) -> None:
    first, last = block * BLOCK, (block + 1) * BLOCK - 1
    new = [
        seq
        for (seq,) in store.query("SELECT seq FROM unlisted WHERE run = ? AND seq BETWEEN ? AND ?", run, first, last)
    ]
    # Before they are read: a verdict that comes meanwhile notes its place again.
    store.change(("DELETE FROM unlisted WHERE run = ? AND seq = ?", [(run, seq) for seq in new]))
    listed, texts = [], []
    within = (number << 32 | first, number << 32 | last)
    known = {place for (place,) in store.query("SELECT place FROM texts WHERE place BETWEEN ? AND ?", *within)}
    for start in range(0, len(new), READ_TOGETHER):
        places = new[start : start + READ_TOGETHER]
        sql = f"SELECT seq, id, status, sample, verdict FROM samples WHERE run = ? AND seq IN ({placeholders(places)})"
        for seq, id, status, sample_text, verdict in store.query(sql, run, *places):
            sample = from_json(sample_text)
            listed.append((run, *columns(seq, id, status, sample, from_json(verdict))))
            texts.append((number << 32 | seq, searchable("\n".join(_texts(id, sample)))))
    store.change(
        (LIST, listed),
        # A sample that was judged again still says the same.
        ("DELETE FROM texts WHERE place = ? AND text <> ?", [text for text in texts if text[0] in known]),
        (insert_new("texts", "place text"), texts),
    )
    _keep_columns(store, run, block)
    store.write("DELETE FROM worked_out WHERE run = ?", run)


def _keep_columns(store: Store, run: str, block: int) -> None:
    """Scores and facets of a block, from its rows."""
    scores: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    facets: dict[tuple[str, str], list[int]] = {}
    first = block * BLOCK
    for seq, status, given, flags, labels, tags in store.query(
        "SELECT seq, status, scores, flags, labels, tags FROM listed WHERE run = ? AND seq BETWEEN ? AND ?",
        run,
        first,
        first + BLOCK - 1,
    ):
        for name, value in from_json(given).items():
            if name not in scores:
                scores[name] = np.full(BLOCK, np.nan)
            if value is not None:
                scores[name][seq - first] = value
        values: tuple[Iterable[str], ...] = ((status,), from_json(flags), from_json(labels), from_json(tags))
        for what, several in zip(FACETS, values, strict=True):
            for value in dict.fromkeys(several):
                facets.setdefault((what, value), []).append(seq - first)
    store.change(
        *((f"DELETE FROM {kept} WHERE run = ? AND block = ?", [(run, block)]) for kept in ("scored", "faceted")),
        (
            insert("scored", "run name block at vals"),
            [(run, name, block, at, col.astype("<f8").tobytes()) for at, (name, col) in enumerate(scores.items())],
        ),
        (
            insert("faceted", "run what value block places"),
            [(run, *facet, block, np.array(places, "<u2").tobytes()) for facet, places in facets.items()],
        ),
    )


# --- what holds until the table changes ------------------------------------------------------------


def worked_out(store: Store, run: str, name: str, key: str = "") -> Any | None:
    """A cached result about a run, if it is still valid. `key` identifies its other inputs."""
    sql = (
        "SELECT value FROM worked_out w WHERE run = ? AND name = ? AND key = ? "
        "AND NOT EXISTS (SELECT 1 FROM unlisted u WHERE u.run = w.run)"
    )
    for (value,) in store.query(sql, run, name, key):
        return value
    return None


def keep(store: Store, run: str, name: str, value: str | bytes, key: str = "") -> None:
    """Cache a result about a run, unless the run has changed meanwhile."""
    sql = (
        "INSERT INTO worked_out (run, name, key, value) SELECT ?, ?, ?, ? "
        "WHERE NOT EXISTS (SELECT 1 FROM unlisted WHERE run = ?) AND EXISTS (SELECT 1 FROM runs WHERE id = ?) "
        "ON CONFLICT (run, name) DO UPDATE SET key = excluded.key, value = excluded.value"
    )
    document = value.encode() if isinstance(value, str) else value
    store.write(sql, run, name, key, document, run, run)


# --- a sample in short -----------------------------------------------------------------------------


def columns(seq: int, id: str, status: str, sample: Mapping[str, Any], verdict: Mapping[str, Any]) -> tuple[Any, ...]:
    """A sample as a row of `listed`, without its run."""
    vocab = vocabulary(verdict["protocol"])
    labels = Counter(label for item in verdict["items"] for label in _labels(item, vocab.kind_of(item)))
    documents = (verdict["scores"], verdict["flags"], sample["tags"], labels)
    return seq, id, status, _title(sample), *(json.dumps(document, ensure_ascii=False) for document in documents)


def _labels(item: Mapping[str, Any], kind: Kind) -> Iterator[str]:
    for aspect in kind.aspects:
        if (label := item.get(aspect.field)) is not None:
            yield f"{aspect.name}:{label}"
    for flag, (aspect_name, shown) in kind.flagged.items():
        if flag in item["flags"]:
            yield f"{aspect_name}:{shown.name}"


def _title(sample: Mapping[str, Any]) -> str:
    turns = sample.get("turns") or [{}]
    text = " ".join((sample.get("question") or turns[0].get("prompt", "") or sample.get("answer", "")).split())
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


def beginning(sample: Mapping[str, Any]) -> str:
    """The beginning of the answer as it was written, for whoever shows it to shorten."""
    turns = sample.get("turns") or [{}]
    return str(sample.get("answer") or turns[0].get("answer") or "")[:LONGEST_BEGINNING]


def _texts(id: str, sample: Mapping[str, Any]) -> Iterator[str]:
    yield id
    yield sample.get("question") or ""
    yield sample.get("answer") or ""
    for turn in sample.get("turns") or ():
        yield turn["prompt"]
        yield turn["answer"]
    yield from sample["tags"]


def searchable(text: str) -> str:
    """Text as it is searched: full and half width, upper and lower case are alike."""
    folded = fold(text).casefold()
    for sign in UNINDEXED:
        folded = folded.replace(sign, INDEXED)
    return folded
