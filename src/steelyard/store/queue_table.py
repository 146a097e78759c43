"""Queues of items that people label: which items of a run, who, how many of them twice; and the cards of judges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from steelyard.errors import FormRefused, UnknownQueue
from steelyard.store.account_table import check_name
from steelyard.store.database import insert, upsert
from steelyard.store.label_table import LABEL_COLUMNS, NOTHING, label_of
from steelyard.store.labels import HumanLabel
from steelyard.store.run_table import RunTable

QUEUE = "id run name people policy blind created author closed"
ITEM = "queue place sample kind turn item weight wanted"
ADD_QUEUE, ADD_ITEM = insert("queues", QUEUE), insert("queue_items", ITEM)
CLAIM = upsert("queue_claims", "queue sample person time", "queue sample person")
# Whoever labels the run at this moment is waited for: the counts of the new items hold what is given by then.
TOUCH = "INSERT INTO label_changes VALUES (?, 1) ON CONFLICT (run) DO UPDATE SET n = label_changes.n + 1"
# The labels by people that an item of a queue asks for.
ASKED_FOR = (
    "l.run = q.run AND l.sample = i.sample AND l.kind = i.kind AND l.turn = i.turn AND l.item = i.item "
    "AND l.policy = q.policy"
)
ITEMS = "queue_items i JOIN queues q ON q.id = i.queue"
COUNTED = "queue_counts c JOIN queue_items i ON i.queue = c.queue AND i.place = c.place JOIN queues q ON q.id = i.queue"
ITEM_COLUMNS = "i.sample, i.kind, i.turn, i.item, i.weight, i.wanted"
OPEN_TOGETHER = 200
ADD_CARD = insert("judge_cards", "id project judge made card")


class QueueItem(NamedTuple):
    """One label to give, by as many people as `wanted`."""

    sample: str
    kind: str
    turn: int | None
    item: int | None
    weight: float
    wanted: int


class LabelQueue(NamedTuple):
    """Who labels what of a run. Its project is that of the run."""

    id: int
    run: str
    name: str
    people: tuple[str, ...]
    """Empty: whoever may label."""
    policy: str
    blind: bool
    created: str
    author: str
    closed: str | None


class Claim(NamedTuple):
    """A sample that a person has been given, and when last."""

    sample: str
    person: str
    time: str


class QueueTotals(NamedTuple):
    """How far a queue is: items, labels that it takes and has, items that two people label, items on which they differ,
    and how many of these are not settled yet."""

    items: int
    wanted: int
    done: int
    twice: int
    different: int
    unsettled: int


class PlacedItem(NamedTuple):
    """An item of a queue, and where in it."""

    place: int
    item: QueueItem


class KeptCard(NamedTuple):
    """A judge's card as it was written, as JSON; `project` is empty where it shows no project's own samples."""

    id: int
    project: str
    judge: str
    made: str
    card: str


class QueueTable(RunTable):
    """Queues are visible where their runs are."""

    def add_queue(
        self,
        run: str,
        name: str,
        items: Sequence[QueueItem],
        *,
        people: Sequence[str] = (),
        policy: str,
        blind: bool = True,
        created: str,
        author: str = "",
    ) -> LabelQueue:
        check_name(name, "queue")
        for person in people:
            check_name(person, "person")
        if not items:
            raise FormRefused("there is nothing to label in this queue", "nothing_to_label")
        row = self.run(run)
        with self.all_or_nothing("queues"):
            self.write(TOUCH, row.id)
            (last,) = next(self.query("SELECT coalesce(max(id), 0) FROM queues"))
            made = LabelQueue(last + 1, row.id, name, tuple(people), policy, blind, created, author, None)
            named = json.dumps(made.people, ensure_ascii=False)
            self.write(ADD_QUEUE, made.id, row.id, name, named, policy, int(blind), created, author, None)
            rows = [(made.id, place, *_kept(item)) for place, item in enumerate(items)]
            self.change((ADD_ITEM, rows))
        return made

    def queues(self, run: str | None = None) -> list[LabelQueue]:
        """Those of a run or all, newest first."""
        where, values = ("WHERE run = ?", (run,)) if run is not None else ("", ())
        sql = f"SELECT {', '.join(QUEUE.split())} FROM queues {where} ORDER BY id DESC"
        shown = None if self.visible is None else {row.id for row in self.runs()}
        found = [_queue(row) for row in self.query(sql, *values)]
        return [queue for queue in found if shown is None or queue.run in shown]

    def queue(self, id: int) -> LabelQueue:
        sql = f"SELECT {', '.join(QUEUE.split())} FROM queues WHERE id = ?"
        # Larger numbers are none that SQLite can be asked for.
        found = next(map(_queue, self.query(sql, id)), None) if 0 < id < 2**31 else None
        # One of another project is not there at all.
        if found is None or not self._runs("WHERE r.id = ?", (found.run,)):
            raise UnknownQueue(f"there is no queue with the number {id}")
        return found

    def queue_items(self, id: int) -> list[QueueItem]:
        sql = "SELECT sample, kind, turn, item, weight, wanted FROM queue_items WHERE queue = ? ORDER BY place"
        return [_item(row) for row in self.query(sql, id)]

    def queue_item(self, id: int, place: int) -> QueueItem | None:
        sql = f"SELECT {ITEM_COLUMNS} FROM queue_items i WHERE i.queue = ? AND i.place = ?"
        return next(map(_item, self.query(sql, id, place)), None)

    # --- how far it is ---

    def queue_totals(self, id: int) -> QueueTotals:
        sql = (
            "SELECT count(*), coalesce(sum(wanted), 0), coalesce(sum(CASE WHEN given < wanted THEN given ELSE wanted "
            "END), 0), coalesce(sum(CASE WHEN wanted > 1 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN different > 1 "
            "THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN different > 1 AND settled = 0 THEN 1 ELSE 0 END), 0) "
            "FROM queue_counts WHERE queue = ?"
        )
        return QueueTotals(*map(int, next(self.query(sql, id))))

    def disputed_places(self, id: int, *, unsettled: bool = False) -> list[int]:
        """The items on which people differ, in the order of the queue."""
        only = " AND settled = 0" if unsettled else ""
        sql = f"SELECT place FROM queue_counts WHERE queue = ? AND different > 1{only} ORDER BY place"
        return [place for (place,) in self.query(sql, id)]

    def labels_at(self, id: int, place: int) -> list[HumanLabel]:
        """What was said of an item under the queue's policy, by people and by whoever settled it."""
        columns = ", ".join(f"l.{name}" for name in LABEL_COLUMNS)
        sql = f"SELECT {columns} FROM {ITEMS} JOIN labels l ON {ASKED_FOR} WHERE i.queue = ? AND i.place = ?"
        with self.explained_errors():
            return [label_of(row) for row in self.query(sql, id, place)]

    def queue_labels(self, id: int, *, twice: bool = False) -> Iterator[tuple[int, str, str]]:
        """Place, person and label of everything said in a queue, in its order; with `twice`, where several spoke."""
        more = " AND c.given > 1" if twice else ""
        sql = (
            f"SELECT i.place, l.annotator, l.label FROM {COUNTED} JOIN labels l ON {ASKED_FOR} AND l.adjudicated = 0 "
            f"WHERE c.queue = ? AND c.given > 0{more} ORDER BY i.place, l.annotator"
        )
        return self.query(sql, id)

    # --- who is next ---

    def open_items(self, id: int, person: str, start: int, end: int) -> Iterator[PlacedItem]:
        """The items from one place to another that take more labels, and that this person has not labelled."""
        sql = (
            f"SELECT c.place, {ITEM_COLUMNS} FROM {COUNTED} "
            "WHERE c.queue = ? AND c.place >= ? AND c.place < ? AND c.given < c.wanted "
            f"AND NOT EXISTS (SELECT 1 FROM labels l WHERE {ASKED_FOR} AND l.annotator = ? AND l.adjudicated = 0) "
            "ORDER BY c.place LIMIT ?"
        )
        while rows := list(self.query(sql, id, start, end, person, OPEN_TOGETHER)):
            yield from (PlacedItem(place, _item(row)) for place, *row in rows)
            start = rows[-1][0] + 1

    def done_with(self, id: int, sample: str) -> set[str]:
        """Who has labelled all that a queue asks about a sample."""
        sql = (
            f"SELECT l.annotator FROM {ITEMS} JOIN labels l ON {ASKED_FOR} AND l.adjudicated = 0 "
            "WHERE i.queue = ? AND i.sample = ? GROUP BY l.annotator "
            "HAVING count(*) = (SELECT count(*) FROM queue_items WHERE queue = ? AND sample = ?)"
        )
        return {person for (person,) in self.query(sql, id, sample, id, sample)}

    def last_labelled(self, id: int, person: str) -> int | None:
        """The item of a queue that this person labelled last."""
        sql = (
            "SELECT i.place FROM queues q JOIN labels l ON l.run = q.run AND l.policy = q.policy AND l.annotator = ? "
            "AND l.adjudicated = 0 JOIN queue_items i ON i.queue = q.id AND i.sample = l.sample AND i.kind = l.kind "
            "AND i.turn = l.turn AND i.item = l.item WHERE q.id = ? ORDER BY l.time DESC, i.place DESC LIMIT 1"
        )
        return next((place for (place,) in self.query(sql, person, id)), None)

    def queue_claims(self, id: int, sample: str) -> list[Claim]:
        sql = "SELECT sample, person, time FROM queue_claims WHERE queue = ? AND sample = ?"
        return [Claim._make(row) for row in self.query(sql, id, sample)]

    def claim(self, id: int, sample: str, person: str, time: str) -> None:
        self.write(CLAIM, id, sample, person, time)

    def close_queue(self, id: int, when: str | None) -> None:
        """Nobody is given items of it any more; None opens it again."""
        self.write("UPDATE queues SET closed = ? WHERE id = ?", when, id)

    # --- cards ---

    def add_card(self, project: str, judge: str, made: str, card: str) -> int:
        check_name(project, "project", may_be_empty=True)
        with self.all_or_nothing("cards"):
            (last,) = next(self.query("SELECT coalesce(max(id), 0) FROM judge_cards"))
            self.write(ADD_CARD, last + 1, project, judge, made, card)
        return int(last) + 1

    def cards(self) -> list[KeptCard]:
        """Newest first. One that was measured on samples of a project is for those who see the project."""
        rows = self.query("SELECT id, project, judge, made, card FROM judge_cards ORDER BY id DESC")
        found: Iterable[KeptCard] = map(KeptCard._make, rows)
        return [one for one in found if self.shows(one.project) or json.loads(one.card)["scope"].get("data") is None]


def _kept(item: QueueItem) -> tuple[object, ...]:
    return tuple(NOTHING if value is None else value for value in item)


def _item(row: Sequence[object]) -> QueueItem:
    return QueueItem(*(None if value == NOTHING else value for value in row))  # type: ignore[arg-type]


def _queue(row: Sequence[object]) -> LabelQueue:
    found = LabelQueue(*row)  # type: ignore[arg-type]
    return found._replace(people=tuple(json.loads(str(found.people))), blind=bool(found.blind))
