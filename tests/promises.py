"""What is promised of a run that several workers judge, whoever starts or kills them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable

from command import judge_facts
from endpoint import Loopback, Request, Say
from steelyard.records import Usage
from steelyard.store import Store

# What the endpoint takes for each call.
CALL_TOKENS = 120


def slowly(request: Request) -> Say:
    return Say(judge_facts(request), latency=0.15)


def until(what: Callable[[], bool], seconds: float = 120.0) -> None:
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


def asked(server: Loopback) -> Counter[tuple[str, str]]:
    """How often each fact was asked about, by task."""
    found: Counter[tuple[str, str]] = Counter()
    for request in list(server.requests):
        fact = re.search(r"Fact (\d+) holds", request.user)
        assert fact
        found[request.task, fact[1]] += 1
    return found


def check_promises(store: Store, server: Loopback, run: str, count: int, in_flight_at_kills: int) -> None:
    """Nothing lost or doubled; nothing whose reply was kept is asked again; what was in flight at a kill at most once
    more; one bill."""
    row = store.run(run)
    assert row.state == "complete", row.manifest.get("stopped")
    assert [verdict.id for _, verdict in store.verdicts(run)] == [f"fact-{n}" for n in range(1, count + 1)]
    assert store.judged(run) == {"judged": count}
    calls = asked(server)
    assert len(calls) == 2 * count
    again = sum(calls.values()) - len(calls)
    assert again <= in_flight_at_kills
    paid = store.paid(run)
    replies = sum(store.spent_by_judge(run).values(), start=Usage())
    assert paid.calls == replies.calls == 2 * count
    assert paid.prompt_tokens + paid.completion_tokens == CALL_TOKENS * paid.calls
    # What the endpoint was asked and the store has no reply to was in flight when a worker was killed.
    assert sum(calls.values()) - paid.calls == again
