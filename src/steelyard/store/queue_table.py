"""Queues of items that people label: which items of a run, who, how many of them twice; and the cards of judges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.errors import FormRefused, UnknownQueue
from steelyard.store.account_table import check_name
from steelyard.store.database import insert, upsert
from steelyard.store.label_table import NOTHING
from steelyard.store.run_table import RunTable

QUEUE = "id run name people policy blind created author closed"
ITEM = "queue place sample kind turn item weight wanted"
ADD_QUEUE, ADD_ITEM = insert("queues", QUEUE), insert("queue_items", ITEM)
CLAIM = upsert("queue_claims", "queue sample person time", "queue sample person")
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
    """A queue: which items of a run who labels. Its project is that of the run."""

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

    def queue_claims(self, id: int) -> list[Claim]:
        sql = "SELECT sample, person, time FROM queue_claims WHERE queue = ?"
        return [Claim._make(row) for row in self.query(sql, id)]

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
