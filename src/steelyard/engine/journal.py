"""The reply journal: every reply is stored before it is used, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from steelyard.engine.grouping import Grouped
from steelyard.errors import StoreError
from steelyard.judges.base import Judge, Voice
from steelyard.judges.panel_settings import rebuilt
from steelyard.records import Ask, Marks, Reply, ReplyData, TextReply, Unjudged, Usage
from steelyard.store import RunRow, Store, StoredReply, StoreLocation
from steelyard.tasks import PROBE

# Where a stored reply keeps how a panel came to it; no field has this name.
MARKS = "$marks"
# How often to look whether another worker was answered.
ASKED_ELSEWHERE_SECONDS = 0.3


def reply_key(judge: Judge, ask: Ask, repeat: int = 0, fresh_in: str | None = None) -> str:
    """The journal key: the judge's fingerprint (prompt, model, parameters) and the ask. A run
    that wants fresh replies has its own keys: those of others stay as they are."""
    parts = [judge.fingerprint(ask), ask.key, str(repeat)]
    if fresh_in is not None:
        parts.append(fresh_in)
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:40]


class JournalledJudge(Judge):
    """Answers from the store where it can, else from the judge, and keeps the answer.

    `repeat` counts how often the same judge is asked the same, `place` the voices of the run: a panel has several.
    `fresh` trusts only what this very run was answered, or another of its `group`; `retrying` only replies that left
    nothing out.
    `continued` says that this run was at work before: what it paid then is counted with the samples it finishes now.
    `spent` is what the judge was paid since this object was made, `unwritten` how many replies the store did not take.
    """

    def __init__(
        self,
        judge: Judge,
        store: Store,
        run: str | None = None,
        repeat: int = 0,
        *,
        fresh: bool = False,
        group: str | None = None,
        continued: bool = False,
        place: int | None = None,
        journal_store: JournalStore | None = None,
    ) -> None:
        journal_store = journal_store or JournalStore(store)
        self.judge, self.name, self.store, self.run, self.repeat = judge, judge.name, store, run, repeat
        self.place = repeat if place is None else place
        self.fresh_in = (group or run) if fresh else None
        self.continued = continued
        self.retrying = False
        self.spent = Usage()
        self.unwritten = 0
        self._in_flight: dict[str, asyncio.Future[Reply | Unjudged]] = {}
        # A server takes its time, and so does a file that other processes write to.
        self._waits = store.is_remote or journal_store.is_shared
        self._found = Grouped(journal_store.find, in_thread=self._waits)
        self._kept = Grouped(self._keep_all, in_thread=self._waits)
        self._journal_store = journal_store
        self._dropped = Grouped(journal_store.drop, in_thread=self._waits) if journal_store.is_shared else None
        self._used = Grouped(self._use, in_thread=self._waits)

    def key(self, ask: Ask) -> str:
        return reply_key(self.judge, ask, self.repeat, self.fresh_in)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        key = self.key(ask)
        if under_way := self._in_flight.get(key):
            # Somebody else pays for the identical ask.
            reply = await asyncio.shield(under_way)
            return reply.model_copy(update={"usage": Usage()})
        self._in_flight[key] = future = asyncio.get_running_loop().create_future()
        try:
            reply = await self._known(key, ask) or await self._asked(key, ask)
            future.set_result(reply)
            return reply
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # nobody may be waiting; then it is not an unretrieved exception either
            raise
        finally:
            del self._in_flight[key]

    async def _asked(self, key: str, ask: Ask) -> Reply | Unjudged:
        try:
            reply = await self.judge.answer(ask)
        except BaseException:
            if self._dropped:
                await self._dropped((key, Usage()))
            raise
        self.spent += reply.usage
        if isinstance(reply, Unjudged):
            if self._dropped:
                await self._dropped((key, reply.usage))
            return reply
        try:
            stored = self._stored(ask, reply)
            kept = await self._kept((key, stored))
        except Exception:
            self.unwritten += 1
            raise
        if kept == stored:
            return reply
        # Another worker, taken for dead, was answered first; all go by that reply. This one was paid for all the same.
        first = self._usable(kept, ask)
        return first.model_copy(update={"usage": reply.usage}) if first else reply

    async def _known(self, key: str, ask: Ask) -> Reply | None:
        # A file is looked into faster than a group is formed.
        found = await self._found(key) if self._waits else self.store.reply(key) or True
        while found is False:
            await asyncio.sleep(ASKED_ELSEWHERE_SECONDS)
            found = await self._found(key)
        stored = None if isinstance(found, bool) else found
        reply = self._usable(stored, ask) if stored else None
        if stored and reply and self._is_news(stored):
            await self._used((ask.key, key))
        return reply

    def recall(self, key: str, ask: Ask) -> Reply | None:
        """The stored reply. Its cost counts only if this run paid for it before it was stopped."""
        stored = self.store.reply(key)
        reply = self._usable(stored, ask) if stored else None
        if stored and reply and self._is_news(stored):
            self._use([(ask.key, key)])
        return reply

    def _usable(self, stored: StoredReply, ask: Ask) -> Reply | None:
        try:
            data = ask.reply.model_validate_json(stored.reply)
        except ValidationError:
            return None  # written by a version whose reply had another shape: ask anew
        if self.retrying and _leaves_out(ask, data):
            return None
        usage = stored.usage if stored.run == self.run and self.continued else Usage()
        return Reply(data=data, raw=stored.raw, usage=usage, marks=marks_in(stored))

    def _is_news(self, stored: StoredReply) -> bool:
        """Whether the run has not noted yet that it uses this reply. What another voice of it was answered is used here
        for the first time."""
        return self.run is not None and (stored.run != self.run or bool(self.place))

    def _use(self, uses: Sequence[tuple[str, str]]) -> Sequence[None]:
        self.store.use_replies([(self.run or "", ask, key) for ask, key in uses], self.place)
        return [None] * len(uses)

    def _keep_all(self, replies: Sequence[tuple[str, StoredReply]]) -> Sequence[StoredReply]:
        return self._journal_store.keep(replies, self.place)

    def keep(self, key: str, ask: Ask, reply: Reply) -> None:
        self.store.journal([(key, self._stored(ask, reply))], self.place)

    def _stored(self, ask: Ask, reply: Reply) -> StoredReply:
        data = reply.data.model_dump_json()
        if reply.marks:
            # Without them a recorded panel's open labels would be decided when they are read again.
            marks = reply.model_dump(mode="json", include={"marks"})["marks"]
            data = json.dumps({**json.loads(data), MARKS: marks}, ensure_ascii=False)
        return StoredReply(ask.key, ask.task, self.judge.name, data, reply.raw, reply.usage, self.run)

    async def aclose(self) -> None:
        await self.judge.aclose()


class JournalStore:
    """Reads and writes a journal's replies. Workers that share a run use a subclass (workers.py)."""

    is_shared = False
    """Whether others ask the same judge for the same run at the same time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, keys: Sequence[str]) -> Sequence[StoredReply | bool]:
        """For each key: its reply, True to ask for it, or False if another worker is asking."""
        return [stored or True for stored in self._store.replies(keys)]

    def keep(self, replies: Sequence[tuple[str, StoredReply]], place: int) -> Sequence[StoredReply]:
        """Write replies; returns those that stand in the store now."""
        self._store.journal(replies, place)
        return [stored for _, stored in replies]

    def drop(self, dropped: Sequence[tuple[str, Usage]]) -> Sequence[None]:
        """Asks that were found and got no usable reply, with what they cost."""
        return [None] * len(dropped)


class Journal:
    """A judge with each of its voices wrapped in the journal, so that nobody is paid twice.

    `time` counts how often the whole judge was asked the same before, as an audit does: its repeats follow theirs.
    """

    def __init__(
        self,
        judge: Judge,
        store: Store,
        run: str | None = None,
        *,
        time: int = 0,
        fresh: bool = False,
        group: str | None = None,
        continued: bool = False,
        journal_store: JournalStore | None = None,
    ) -> None:
        self.continued, self._store, self._run = continued, store, run
        self.voices: list[JournalledJudge] = []
        repeats = distinct_repeats(judge.voices())
        before = time * (1 + max(repeats))

        def remembering(voice: Voice) -> Judge:
            place = len(self.voices)
            repeat = before + repeats[place]
            self.voices.append(
                JournalledJudge(
                    *(voice.judge, store, run, repeat),
                    fresh=fresh,
                    group=group,
                    continued=continued,
                    place=place,
                    journal_store=journal_store,
                )
            )
            return self.voices[-1]

        self.judge = judge.exchanged(remembering)

    @property
    def spent(self) -> Usage:
        """The cost of all voices since this object was made."""
        return sum((voice.spent for voice in self.voices), start=Usage())

    @property
    def unwritten(self) -> int:
        """How many replies were paid for and could not be kept."""
        return sum(voice.unwritten for voice in self.voices)

    @property
    def silent(self) -> str:
        """A voice that reports no tokens although others do, so that its cost is unknown."""
        counted = ((voice.name, voice.spent) for voice in self.voices)
        return next(
            (name for name, spent in counted if spent.calls and not spent.prompt_tokens + spent.completion_tokens), ""
        )

    def saved(self, first: int) -> list[dict[str, Any]]:
        """The calls saved by a routed judge, counted for the voices after the first `first`, for the run's manifest."""
        found = []
        by_place = self._store.used_by_place(self._run) if self._run else {}
        answered = by_place.get(0, {})
        asks = sum(count for count, _ in answered.values())
        for voice in self.voices[first:]:
            counts = [by_place.get(voice.place, {}).get(task, (0, Usage())) for task in answered]
            asked = sum(count for count, _ in counts)
            usage = sum((spent for _, spent in counts), start=Usage())
            calls, tokens = max(0, asks - asked), usage.prompt_tokens + usage.completion_tokens
            each = calls / asked if asked else 0.0
            found.append(
                {
                    "judge": voice.name,
                    "asks": asks,
                    "asked": min(asked, asks),
                    "calls": calls,
                    "tokens": round(tokens * each) if tokens else None,
                    "cost": None if usage.cost is None else usage.cost * each,
                }
            )
        return found

    def retry(self, retrying: bool) -> None:
        for voice in self.voices:
            voice.retrying = retrying


def distinct_repeats(voices: Sequence[Voice]) -> list[int]:
    """For each voice the repeat under which its replies are kept: two tables may name the same endpoint, and each is a
    voice of its own, whose reply must not take the place of the other's."""
    taken: list[tuple[str, int]] = []
    for voice in voices:
        # One voice is never mistaken for another; its judge need not be asked who it is.
        who = voice.judge.fingerprint(PROBE) if len(voices) > 1 else ""
        taken.append((who, next(n for n in count(voice.repeat) if (who, n) not in taken)))
    return [repeat for _, repeat in taken]


def marks_in(stored: StoredReply) -> Marks:
    """How a panel came to a stored reply; empty where one judge alone gave it."""
    return json.loads(stored.reply).get(MARKS, {}) if MARKS in stored.reply else {}


def _leaves_out(ask: Ask, data: ReplyData) -> bool:
    """Whether an item of the ask has no label in the reply; one that the judge says it cannot tell is answered."""
    if isinstance(data, TextReply):
        # Only the protocol can read it, and it found a gap, or the sample would not be retried.
        return True
    open_ = {(doubt.items, doubt.id) for doubt in getattr(data, "unsure", ())}
    answered = open_ | {(name, label.id) for name in ask.data.items() for label in getattr(data, name)}
    return any((name, item.id) not in answered for name, items in ask.data.items().items() for item in items)


class StoredJudge(Judge):
    """Answers only from the replies that an earlier run used; anything else stays unanswered."""

    def __init__(self, store: Store, judge: str, run: str, place: int = 0, model: str | None = None) -> None:
        self.name, self._store, self._run, self._place, self._model = judge, store, run, place, model
        self._exact = next(store.used_replies(run), None) is not None

    def describe(self) -> dict[str, Any]:
        """The model that replied, if the run recorded it."""
        return {"model": self._model} if self._model else {}

    def fingerprint(self, ask: Ask) -> str:
        """A hash of the stored replies: another run of the same judge may have got others."""
        replies = "\x00".join(stored.reply for stored in self._candidates(ask))
        return f"{self.name} {hashlib.sha256(replies.encode()).hexdigest()}"

    def recall(self, ask: Ask) -> tuple[StoredReply, ReplyData] | None:
        """The reply that the run used, as it was stored and as it is read."""
        for stored in self._candidates(ask):
            try:
                return stored, ask.reply.model_validate_json(stored.reply)
            except ValidationError:
                continue  # written by a version whose reply had another shape
        return None

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if known := self.recall(ask):
            return Reply(data=known[1], raw=known[0].raw, marks=marks_in(known[0]))
        return Unjudged(reason="not_recorded", detail=f"run {self._run} holds no reply to this {ask.task} ask")

    def _candidates(self, ask: Ask) -> list[StoredReply]:
        if used := self._store.used_reply(self._run, ask.key, self._place):
            return [used]
        if self._exact:
            return []
        # A run of the first schema did not note what it used; what it paid for itself comes first.
        found = [stored for stored in self._store.replies_to(ask.key) if stored.judge == self.name]
        return sorted(found, key=lambda stored: stored.run != self._run)

    async def aclose(self) -> None:
        self._store.close()


def judge_of_run(
    store: Store, row: RunRow, around: Callable[[StoredJudge, Mapping[str, Any]], Judge] = lambda judge, _: judge
) -> Judge:
    """The judge of a run, answering from its stored replies: a panel votes again, with the same outcome. `around` may
    put something around each voice, told what the manifest says of it."""
    places = count()
    then: Mapping[str, Any] = {"name": row.judge, **row.manifest.get("judge", {})}

    def stored(voice: Voice) -> Judge:
        described = voice.judge.describe()
        return around(StoredJudge(store, voice.judge.name, row.id, next(places), described.get("model")), described)

    return rebuilt(then, _Gone).exchanged(stored)


def judge_of_stored_run(run: str, location: StoreLocation) -> Judge:
    """The same for a run that is named."""
    store = Store.open(location, create=False)
    try:
        return judge_of_run(store, store.run(run))
    except StoreError:
        store.close()
        raise


class _Gone(Judge):
    """A judge of an earlier run that can be described but not asked any more."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.name, self._described = str(described["name"]), described

    def describe(self) -> dict[str, Any]:
        return dict(self._described)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        return Unjudged(reason="not_recorded", detail=f"{self.name} judged an earlier run")
