"""The samples of a run as a table: sorted, searched, filtered, page by page, also where there are a hundred thousand.

Verdicts are kept as whole documents, and reading all of them for a page of fifty takes seconds. So each gets a short
row in the table `listed` and its text in `searched`. The rows are made when somebody looks (`catch_up`), not when
verdicts are written: a trigger notes what is new in `unlisted`, and that is all a run pays. The first page in the order
of the input needs none of it and is there at once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from pydantic_core import from_json

from steelyard.errors import ConfigError
from steelyard.records import Record, Status
from steelyard.store import Store
from steelyard.text import fold

CHUNK = 500
LONGEST_TITLE = 160
MOST_FACETS = 200
BINS = 10
# A kind of label per field of an item, as the wording names it.
LABEL_FIELDS = {
    "atom": (("atom", "label"),),
    "check": (("check", "label"),),
    "sentence": (("on_topic", "on_topic"), ("support", "support")),
    "key_point": (("key_point", "label"),),
    "criterion": (("criterion", "label"), ("validity", "validity")),
}
COLUMNS = "seq, id, status, title, scores, flags, tags, labels"
SORTS = ("seq", "id", "status", "title")


class Range(Record):
    """Scores from `low` to `high`, both included; a sample without the score is never in it."""

    low: float | None = None
    high: float | None = None


class SampleQuery(Record):
    """Which samples, in which order. Several values of one filter mean any of them; several filters mean all."""

    search: str = Field(default="", description="stands in the id, question, answer or tags; width and case are alike")
    statuses: tuple[Status, ...] = ()
    flags: tuple[str, ...] = ()
    labels: tuple[str, ...] = Field(default=(), description="kind:label, for example atom:wrong")
    tags: tuple[str, ...] = ()
    scores: Mapping[str, Range] = Field(default_factory=dict)
    sort: str = Field(default="seq", description="seq, id, status, title, flags, or the name of a score")
    descending: bool = False
    page: int = Field(default=1, ge=1, le=1_000_000)
    per_page: int = Field(default=50, ge=1, le=500)

    @property
    def is_plain(self) -> bool:
        """All samples in the order of the input."""
        filters = (self.search.strip(), self.statuses, self.flags, self.labels, self.tags, self.scores)
        return not any(filters) and self.sort == "seq"


class SampleRow(Record):
    """One sample as a table shows it. `labels` counts its labels by `kind:label`."""

    seq: int
    id: str
    status: Status
    title: str = Field(description="the beginning of the question, or of a dialogue's first prompt")
    scores: Mapping[str, float | None]
    flags: tuple[str, ...]
    tags: tuple[str, ...]
    labels: Mapping[str, int]


class SampleTable(Record):
    """One page of samples; `total` is how many fit the query, `n` how many the run has."""

    rows: tuple[SampleRow, ...]
    total: int
    n: int
    page: int
    per_page: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.total / self.per_page))


class ScoreSummary(Record):
    """A score over all samples: its mean, how many have it, and how they spread from its lowest to its highest."""

    mean: float | None
    n: int
    low: float
    high: float
    bins: tuple[int, ...]


class Summary(Record):
    """What there is to filter by, with how many samples each would leave."""

    n: int = 0
    statuses: Mapping[str, int] = Field(default_factory=dict)
    flags: Mapping[str, int] = Field(default_factory=dict)
    labels: Mapping[str, int] = Field(default_factory=dict)
    tags: Mapping[str, int] = Field(default_factory=dict)
    scores: Mapping[str, ScoreSummary] = Field(default_factory=dict)


# --- looking ---------------------------------------------------------------------------------------


def table(store: Store, run: str, query: SampleQuery) -> SampleTable:
    """One page of a run's samples."""
    (n,) = next(store.query("SELECT count(*) FROM samples WHERE run = ?", run))
    start = (query.page - 1) * query.per_page
    if query.is_plain:
        total, rows = n, _in_order(store, run, query.per_page, start, query.descending)
    else:
        catch_up(store, run)
        where, values = _where(run, query)
        total = n
        if where:
            (total,) = next(store.query(f"SELECT count(*) FROM listed WHERE run = ? {where}", run, *values))
        sql = f"SELECT {COLUMNS} FROM listed WHERE run = ? {where} ORDER BY {_order(query)} LIMIT ? OFFSET ?"
        rows = (_row(*found) for found in store.query(sql, run, *values, query.per_page, start))
    return SampleTable(rows=tuple(rows), total=total, n=n, page=query.page, per_page=query.per_page)


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
    where, values = _where(run, query)
    # Walking the order beats window functions, which sort whole rows.
    before = None
    places = store.query(f"SELECT seq FROM listed WHERE run = ? {where} ORDER BY {_order(query)}", run, *values)
    for (place,) in places:
        if place == seq:
            return before, next(places, (None,))[0]
        before = place
    return None, None


def _in_order(store: Store, run: str, limit: int, start: int, descending: bool) -> Iterator[SampleRow]:
    # The narrow index finds the places; whole documents are read for this page only.
    direction = "DESC" if descending else "ASC"
    sql = f"""
        SELECT s.seq, s.id, s.status, s.sample, s.verdict FROM samples s
        WHERE s.run = ? AND s.seq IN (SELECT seq FROM samples WHERE run = ? ORDER BY seq {direction} LIMIT ? OFFSET ?)
        ORDER BY s.seq {direction}
    """
    for place, id, status, sample, verdict in store.query(sql, run, run, limit, start):
        yield _row(*_columns(place, id, status, from_json(sample), from_json(verdict)))


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


def _order(query: SampleQuery) -> str:
    direction = "DESC" if query.descending else "ASC"
    if query.sort in SORTS:
        key = query.sort
    elif query.sort == "flags":
        key = "json_array_length(flags)"
    else:
        # What has no score is last in both directions: it is neither low nor high.
        return f"{_score(query.sort)} {direction} NULLS LAST, seq"
    return f"{key} {direction}, seq"


def _score(name: str) -> str:
    """A score's value in SQL. The name goes into the statement itself, so it must be one."""
    if not (name.isidentifier() and name.isascii()):
        raise ConfigError(f"there is no score {name!r} to sort or filter by")
    return f"json_extract(scores, '$.{name}')"


def _where(run: str, query: SampleQuery) -> tuple[str, list[Any]]:
    clauses: list[str] = []
    values: list[Any] = []
    if query.statuses:
        clauses.append(f"status IN ({_marks(query.statuses)})")
        values += query.statuses
    for column, wanted, part in (
        ("flags", query.flags, "value"),
        ("tags", query.tags, "value"),
        ("labels", query.labels, "key"),
    ):
        if wanted:
            clauses.append(f"EXISTS (SELECT 1 FROM json_each({column}) WHERE json_each.{part} IN ({_marks(wanted)}))")
            values += wanted
    for name, ends in query.scores.items():
        for end, side in ((ends.low, ">="), (ends.high, "<=")):
            if end is not None:
                clauses.append(f"{_score(name)} {side} ?")
                values.append(end)
    if wanted_text := searchable(query.search).strip():
        clauses.append("seq IN (SELECT seq FROM searched WHERE run = ? AND instr(text, ?))")
        values += (run, wanted_text)
    return "".join(f" AND {clause}" for clause in clauses), values


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


# --- keeping up ------------------------------------------------------------------------------------


def unlisted(store: Store, run: str) -> int:
    """How many samples of a run are not in its table yet."""
    (left,) = next(store.query("SELECT count(*) FROM unlisted WHERE run = ?", run))
    return int(left)


def catch_up(store: Store, run: str, most: int | None = None) -> bool:
    """List what is new, `most` samples of it; says whether all is listed. Others may write in between."""
    done = 0
    while most is None or done < most:
        (left,) = next(store.query("SELECT EXISTS (SELECT 1 FROM unlisted WHERE run = ?)", run))
        if not left:
            return True
        with store.all_or_nothing():
            done += _list_some(store, run)
    return False


def _list_some(store: Store, run: str) -> int:
    found = list(
        store.query(
            "SELECT s.seq, s.id, s.status, s.sample, s.verdict FROM unlisted u CROSS JOIN samples s USING (run, seq) "
            "WHERE u.run = ? LIMIT ?",
            run,
            CHUNK,
        )
    )
    listed, texts = [], []
    for seq, id, status, sample_text, verdict in found:
        sample = from_json(sample_text)
        listed.append((run, *_columns(seq, id, status, sample, from_json(verdict))))
        texts.append((run, seq, searchable("\n".join(_texts(id, sample)))))
    store.change("INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", listed)
    store.change("INSERT OR REPLACE INTO searched VALUES (?, ?, ?)", texts)
    store.change("DELETE FROM unlisted WHERE run = ? AND seq = ?", [(run, seq) for seq, *_ in found])
    store.change("DELETE FROM summaries WHERE run = ?", [(run,)])
    return len(found)


def _columns(seq: int, id: str, status: str, sample: Mapping[str, Any], verdict: Mapping[str, Any]) -> tuple[Any, ...]:
    labels = Counter(label for item in verdict["items"] for label in _labels(item))
    documents = (verdict["scores"], verdict["flags"], sample["tags"], labels)
    return seq, id, status, _title(sample), *(json.dumps(document, ensure_ascii=False) for document in documents)


def _labels(item: Mapping[str, Any]) -> Iterator[str]:
    for kind, field in LABEL_FIELDS.get(item["kind"], ()):
        yield f"{kind}:{item[field]}"


def _title(sample: Mapping[str, Any]) -> str:
    turns = sample.get("turns") or [{}]
    text = " ".join((sample.get("question") or turns[0].get("prompt", "")).split())
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


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
    return fold(text).casefold()


# --- what there is ---------------------------------------------------------------------------------


def summary(store: Store, run: str) -> Summary:
    """What the samples of a run have, counted once and kept until verdicts are added."""
    catch_up(store, run)
    for (kept,) in store.query("SELECT summary FROM summaries WHERE run = ?", run):
        return Summary.model_validate_json(kept)
    made = _summary(store, run)
    with store.all_or_nothing():
        # Unless something came in between, in which case the next reader counts again.
        sql = "INSERT OR REPLACE INTO summaries SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM unlisted WHERE run = ?)"
        store.change(sql, [(run, made.model_dump_json(), run)])
    return made


def known_summary(store: Store, run: str) -> Summary | None:
    """The same where it is known already: for lists that must not wait."""
    sql = "SELECT summary FROM summaries s WHERE run = ? AND NOT EXISTS (SELECT 1 FROM unlisted u WHERE u.run = s.run)"
    for (kept,) in store.query(sql, run):
        return Summary.model_validate_json(kept)
    return None


def _summary(store: Store, run: str) -> Summary:
    counts: dict[Literal["statuses", "flags", "labels", "tags"], Counter[str]] = {
        "statuses": Counter(), "flags": Counter(), "labels": Counter(), "tags": Counter()
    }  # fmt: skip
    scores: dict[str, list[float]] = {}
    n = 0
    for status, given, flags, tags, labels in store.query(
        "SELECT status, scores, flags, tags, labels FROM listed WHERE run = ?", run
    ):
        n += 1
        counts["statuses"][status] += 1
        counts["flags"].update(from_json(flags))
        counts["tags"].update(set(from_json(tags)))
        counts["labels"].update(from_json(labels).keys())
        for name, value in from_json(given).items():
            scores.setdefault(name, [])
            if value is not None:
                scores[name].append(value)
    return Summary(
        n=n,
        scores={name: _spread(values) for name, values in scores.items()},
        **{name: dict(counter.most_common(MOST_FACETS)) for name, counter in counts.items()},
    )


def _spread(values: Sequence[float]) -> ScoreSummary:
    if not values:
        return ScoreSummary(mean=None, n=0, low=0, high=0, bins=())
    # On the scales there are (0 to 1, 0 to 100) the ends are those of the scale, else those of the data.
    low, high = min(0.0, min(values)), max(values)
    high = 1.0 if high <= 1 else 100.0 if high <= 100 else high
    bins = [0] * BINS
    for value in values:
        bins[min(BINS - 1, int((value - low) / (high - low) * BINS))] += 1
    return ScoreSummary(mean=sum(values) / len(values), n=len(values), low=low, high=high, bins=tuple(bins))
