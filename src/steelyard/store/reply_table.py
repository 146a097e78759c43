"""The journal: every reply under a key that says exactly what was asked of whom, and which run used it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.records import Unjudged, Usage
from steelyard.store.database import Database, insert_new, placeholders, upsert
from steelyard.store.rows import StoredReply

ADD_REPLY = upsert("replies", "key ask task judge reply raw usage run", "key")
ADD_NEW_REPLY = insert_new("replies", "key ask task judge reply raw usage run")
GET_REPLY = "SELECT ask, task, judge, reply, raw, usage, run FROM replies"
# The column of a voice's place is called `repeat`.
USE_REPLY = upsert("used", "run ask repeat key", "run ask repeat")
USAGE_PARTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")


class ReplyTable(Database):
    """Replies, the runs that used them, and answers that were of no use."""

    def reply(self, key: str) -> StoredReply | None:
        with self.explained_errors():
            row = next(self.query(f"{GET_REPLY} WHERE key = ?", key), None)
            return stored_reply(row) if row else None

    def replies(self, keys: Sequence[str]) -> list[StoredReply | None]:
        """The replies under these keys, None where there is none."""
        sql = f"SELECT key, {GET_REPLY.removeprefix('SELECT ')} WHERE key IN ({placeholders(keys)})"
        with self.explained_errors():
            found = {key: stored_reply(row) for key, *row in self.query(sql, *keys)}
        return [found.get(key) for key in keys]

    def replies_to(self, ask: str) -> list[StoredReply]:
        """All replies to one ask, whoever judged."""
        return [stored_reply(row) for row in self.query(f"{GET_REPLY} WHERE ask = ?", ask)]

    def journal(self, replies: Sequence[tuple[str, StoredReply]], place: int = 0) -> None:
        """Keep replies under their keys, and that their runs used them: all or none. A panel's voices have each a place
        of their own."""
        used = [(stored.run, stored.ask, place, key) for key, stored in replies if stored.run is not None]
        self.change((ADD_REPLY, [reply_row(key, stored) for key, stored in replies]), (USE_REPLY, used))

    def add_reply(self, key: str, stored: StoredReply) -> None:
        self.write(ADD_REPLY, *reply_row(key, stored))

    def use_reply(self, run: str, ask: str, key: str, place: int = 0) -> None:
        """Note which reply a run was given, whoever paid for it: rescoring takes exactly that one."""
        self.use_replies([(run, ask, key)], place)

    def use_replies(self, uses: Sequence[tuple[str, str, str]], place: int = 0) -> None:
        """The same for several at once: run, ask and key of each."""
        self.change((USE_REPLY, [(run, ask, place, key) for run, ask, key in uses]))

    def used_reply(self, run: str, ask: str, place: int = 0) -> StoredReply | None:
        for (key,) in self.query("SELECT key FROM used WHERE run = ? AND ask = ? AND repeat = ?", run, ask, place):
            return self.reply(key)
        return None

    def used_replies(self, run: str) -> Iterator[tuple[str, int, StoredReply]]:
        """All replies that a run used, with their keys and the places of the voices they were for."""
        sql = (
            "SELECT used.key, used.repeat, r.ask, r.task, r.judge, r.reply, r.raw, r.usage, r.run "
            "FROM used JOIN replies r ON r.key = used.key WHERE used.run = ?"
        )
        with self.explained_errors():
            for key, place, *stored in self.stream(sql, run):
                yield key, place, stored_reply(stored)

    def used_by_place(self, run: str) -> dict[int, dict[str, tuple[int, Usage]]]:
        """How many replies a run used, by the place of the voice and by task, and what they cost whoever paid."""
        sql = (
            f"SELECT used.repeat, replies.task, count(*), {self._sums} FROM used "
            "JOIN replies ON replies.key = used.key WHERE used.run = ? GROUP BY used.repeat, replies.task"
        )
        found: dict[int, dict[str, tuple[int, Usage]]] = {}
        for place, task, count, *usage in self.query(sql, run):
            found.setdefault(place, {})[task] = count, _usage(usage)
        return found

    def spent_by_judge(self, run: str) -> dict[str, Usage]:
        """What a run paid whom: its own replies, by the judge that gave them."""
        sql = f"SELECT judge, {self._sums} FROM replies WHERE run = ? GROUP BY judge ORDER BY judge"
        return {judge: _usage(found) for judge, *found in self.query(sql, run)}

    @property
    def _sums(self) -> str:
        return ", ".join(f"sum({self.dialect.number.format(column='usage', name=part)})" for part in USAGE_PARTS)

    def add_unusable(self, run: str, key: str, unjudged: Unjudged) -> None:
        self.write(upsert("unusable", "run key unjudged", "run key"), run, key, unjudged.model_dump_json())

    def unusable(self, run: str, key: str) -> Unjudged | None:
        for (unjudged,) in self.query("SELECT unjudged FROM unusable WHERE run = ? AND key = ?", run, key):
            return Unjudged.model_validate_json(unjudged)
        return None


def reply_row(key: str, stored: StoredReply) -> tuple[Any, ...]:
    return key, *stored[:5], stored.usage.model_dump_json(), stored.run


def stored_reply(row: Sequence[Any]) -> StoredReply:
    ask, task, judge, reply, raw, usage, run = row
    return StoredReply(ask, task, judge, reply, raw, Usage.model_validate_json(usage), run)


def _usage(sums: Sequence[Any]) -> Usage:
    return Usage(**dict(zip(USAGE_PARTS, sums, strict=True)))
