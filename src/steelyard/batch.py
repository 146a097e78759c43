"""Half-price judging: asks out as a provider's batch file, its output file back into the journal, round by round.

Both directions walk the same way through a run: every sample is driven as far as the journal carries it, and
what it then asks is open. `export` writes the open asks; `take_in` first looks for their answers in the
provider's output. When nothing is open any more, the run is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.journal import JournalledJudge, reply_key
from steelyard.judges.chat import ChatJudge
from steelyard.manifest import now
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Record, Reply, Unjudged
from steelyard.runs import Input
from steelyard.store import RunRow, Store

URL = "/v1/chat/completions"


class Walk(Record):
    """How far a run has come: samples finished, asks still open, answers taken in, answers of no use."""

    finished: int
    open: int
    taken: int = 0
    unusable: int = 0


def export(store: Store, row: RunRow, judge: ChatJudge, data: Input, out: Path) -> Walk:
    """Write the asks of the next round. The same ask of two samples is written once."""
    written: set[str] = set()
    with out.open("w", encoding="utf-8") as file:

        def write(key: str, ask: Ask) -> None:
            if key not in written:
                written.add(key)
                line = {"custom_id": key, "method": "POST", "url": URL, "body": judge.request(ask)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

        return _walk(store, row, judge, data, {}, write)


def take_in(store: Store, row: RunRow, judge: ChatJudge, data: Input, output: Path) -> Walk:
    """Journal the answers of a provider's output file and finish the samples that need no more."""
    answers: dict[str, Mapping[str, Any]] = {}
    for number, line in _lines(output):
        if not isinstance(line, dict) or "custom_id" not in line:
            raise InputError("is not a line of batch output", file=str(output), line=number, field="custom_id")
        response = line.get("response") or {}
        if response.get("status_code") == 200 and isinstance(response.get("body"), dict):
            answers[line["custom_id"]] = response["body"]
    return _walk(store, row, judge, data, answers, lambda key, ask: None)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                if not text.isspace():
                    try:
                        yield number, json.loads(text)
                    except ValueError as error:
                        raise InputError(f"is not JSON: {error}", file=str(path), line=number) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None


def _walk(
    store: Store, row: RunRow, judge: ChatJudge, data: Input, answers: Mapping[str, Mapping[str, Any]], on_open: Any
) -> Walk:
    protocol = get_protocol(row.protocol)
    options = protocol.parse_options(row.manifest["options"])
    journal = JournalledJudge(judge, store, row.id)
    done = store.finished(row.id)
    taken = unusable = open_asks = 0
    finished = sum(done)

    def answer(ask: Ask) -> Reply | Unjudged | None:
        nonlocal taken, unusable
        key = reply_key(judge, ask)
        if known := journal.recall(key, ask):
            return known
        if key not in answers:
            return None
        reply = judge.read_completion(ask, answers[key])
        if isinstance(reply, Reply):
            taken += 1
            journal.keep(key, ask, reply)
        else:
            unusable += 1
        return reply

    store.clear_bad_rows(row.id)
    for seq, sample in data.rows(protocol):
        if isinstance(sample, InputError):
            store.add_bad_row(row.id, sample)
            continue
        if seq < len(done) and done[seq]:
            continue
        rounds = protocol.rounds(sample, options)
        usage_of: list[Reply | Unjudged] = []
        try:
            asks = next(rounds)
            while True:
                replies = [(ask, answer(ask)) for ask in asks]
                waiting = [ask for ask, reply in replies if reply is None]
                if waiting:
                    for ask in waiting:
                        on_open(reply_key(judge, ask), ask)
                    open_asks += len(waiting)
                    break
                usage_of += [reply for _, reply in replies if reply]
                asks = rounds.send([reply for _, reply in replies if reply])
        except StopIteration as end:
            usage = sum((reply.usage for reply in usage_of), start=end.value.usage)
            verdict = end.value.model_copy(update={"judge": judge.name, "usage": usage})
            store.add_verdict(row.id, seq, sample, verdict)
            finished += 1
    state = "stopped" if open_asks else "complete"
    store.update_run(row.id, state=state, finished=now(), manifest=row.manifest)
    return Walk(finished=finished, open=open_asks, taken=taken, unusable=unusable)
