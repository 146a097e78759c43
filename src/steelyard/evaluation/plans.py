"""Several protocols over the same samples: options and samples as each reads them; what they share is asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from steelyard.judges.base import Judge
from steelyard.protocols import Protocol, options_by_protocol
from steelyard.protocols.common import Options
from steelyard.records import Ask, Reply, Unjudged, Usage

if TYPE_CHECKING:
    from steelyard.engine.inputs import Input


@dataclass(frozen=True)
class Plan:
    """One protocol with its options, and the samples as it reads them; `is_dated` where the user named the date."""

    protocol: Protocol
    options: Options
    is_dated: bool
    data: Input

    def in_memory(self) -> Plan:
        """The same with all samples read, where they were not in a file."""
        given = self.data.given
        return self if given is None else replace(self, data=replace(self.data, given=tuple(given)))


def own_options(
    protocols: Sequence[Protocol], options: Mapping[str, Any] | Options | None
) -> Sequence[Mapping[str, Any] | Options]:
    """The options of each protocol."""
    return [options] if isinstance(options, Options) else options_by_protocol(protocols, options or {})


class SharingJudge(Judge):
    """A judge that caches its replies to these tasks."""

    def __init__(self, judge: Judge, tasks: frozenset[str]) -> None:
        self.judge, self.name, self._tasks = judge, judge.name, tasks
        self._replies: dict[str, Reply] = {}

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if ask.task not in self._tasks:
            return await self.judge.answer(ask)
        if known := self._replies.get(ask.key):
            return known.model_copy(update={"usage": Usage()})
        reply = await self.judge.answer(ask)
        if isinstance(reply, Reply):
            self._replies[ask.key] = reply
        return reply

    async def aclose(self) -> None:
        await self.judge.aclose()


def sharing(judge: Judge, protocols: Sequence[Protocol]) -> Judge:
    """The judge with a cache for the tasks that several of the protocols share. With a store, the journal does that."""
    tasks = [task for protocol in protocols for task in protocol.tasks]
    shared = frozenset(task for task in tasks if tasks.count(task) > 1)
    return SharingJudge(judge, shared) if shared else judge
