"""Half-price judging: asks out as a provider's batch file, its output file back into the journal, round by round.

Both directions go through a run the same way: every sample is taken as far as the journal carries it, and
what it then asks is open. `export` writes the open asks; `import_answers` first looks for their answers in the
provider's output. When nothing is open any more, the run is complete.

An answer that cannot be used is noted with the run and leaves its items unjudged; `retry` asks for them again.
What the provider failed to answer stays open.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from steelyard.engine.inputs import Input
from steelyard.engine.journal import JournalledJudge
from steelyard.engine.manifest import now
from steelyard.engine.runner import replay, run_to_end
from steelyard.engine.templates import protocol_of_run
from steelyard.errors import InputError
from steelyard.judges.chat import ChatJudge
from steelyard.judges.payload import one_line, parse_json
from steelyard.records import Ask, Record, Reply, Unjudged, Usage
from steelyard.store import RunRow, Store

URL = "/v1/chat/completions"


class BatchProgress(Record):
    """Progress of a batch run: samples finished, asks still open; and what became of the answers: taken in, of no
    use, failed at the provider (by reason), or answers to something this run never asked."""

    finished: int
    open: int
    taken: int = 0
    unusable: int = 0
    failures: Mapping[str, int] = Field(default_factory=dict)
    unknown: int = 0


def export(store: Store, row: RunRow, judge: ChatJudge, data: Input, out: Path) -> BatchProgress:
    """Write the asks of the next round. The same ask of two samples is written once."""
    written: set[str] = set()
    with out.open("w", encoding="utf-8") as file:

        def write(key: str, ask: Ask) -> None:
            if key not in written:
                written.add(key)
                line = {"custom_id": key, "method": "POST", "url": URL, "body": judge.request(ask)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

        batch_run = _BatchRun(store, row, judge, {})
        run_to_end(batch_run.advance(data, write))
    return batch_run.result(len(written))


def import_answers(store: Store, row: RunRow, judge: ChatJudge, data: Input, output: Path) -> BatchProgress:
    """Journal the answers of a provider's output file and finish the samples that need no more."""
    answers: dict[str, Mapping[str, Any]] = {}
    failures: Counter[str] = Counter()
    for number, line in _lines(output):
        id, body, failure = _outcome(line, str(output), number)
        if body is None:
            failures[failure] += 1
        else:
            answers[id] = body
    open_keys: set[str] = set()
    batch_run = _BatchRun(store, row, judge, answers)
    run_to_end(batch_run.advance(data, lambda key, ask: open_keys.add(key)))
    unknown = sum(1 for key in answers if not batch_run.knows(key))
    if answers and unknown == len(answers):
        raise InputError(f"answers nothing that run {row.id} asked; is it another run's file?", file=str(output))
    return batch_run.result(len(open_keys)).model_copy(update={"failures": dict(failures), "unknown": unknown})


def _outcome(line: Any, file: str, number: int) -> tuple[str, Mapping[str, Any] | None, str]:
    """(what was answered, the completion, or else why there is none)."""
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        raise InputError("is not a line of batch output", file=file, line=number, field="custom_id")
    if "response" not in line and "error" not in line:
        raise InputError(
            "has no response: name the provider's output file, not the one that was uploaded", file=file, line=number
        )
    response = line.get("response")
    response = response if isinstance(response, dict) else {}
    body, status = response.get("body"), response.get("status_code")
    if status == 200 and isinstance(body, dict):
        return line["custom_id"], body, ""
    said = line.get("error") or (body.get("error") if isinstance(body, dict) else None)
    code = said.get("code") or said.get("message") if isinstance(said, dict) else said
    return line["custom_id"], None, one_line(" ".join(str(part) for part in (status, code) if part)) or "no answer"


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, text in enumerate(file, start=1):
                if not text.isspace():
                    try:
                        yield number, parse_json(text)
                    except ValueError as error:
                        raise InputError(f"is not JSON: {error}", file=str(path), line=number) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"cannot be read: {error}", file=str(path)) from None


class _Unanswered(Exception):
    """A round with asks that nobody has answered yet."""

    def __init__(self, asks: list[Ask]) -> None:
        super().__init__()
        self.asks = asks


class _BatchRun:
    """Takes every unfinished sample of a run as far as the journal and the new answers carry it."""

    def __init__(self, store: Store, row: RunRow, judge: ChatJudge, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self._store, self._row, self._judge, self._answers = store, row, judge, answers
        self._protocol = protocol_of_run(row.protocol, row.manifest)
        self._options = self._protocol.parse_options(row.manifest["options"])
        fresh = bool(row.manifest.get("fresh"))
        self._journal = JournalledJudge(judge, store, row.id, fresh=fresh, continued=True)
        self._paid: set[str] = set()
        self._taken = self._unusable = self._finished = 0

    async def advance(self, data: Input, on_open: Callable[[str, Ask], None]) -> None:
        done = self._store.finished(self._row.id)
        self._finished = sum(done)
        waiting, rows = False, 0
        self._store.clear_bad_rows(self._row.id)
        for seq, sample in data.rows(self._protocol):
            rows = seq + 1
            if isinstance(sample, InputError):
                self._store.add_bad_row(self._row.id, sample)
                continue
            if seq < len(done) and done[seq]:
                continue
            await asyncio.sleep(0)  # where Ctrl-C is heard
            try:
                verdict = await replay(self._protocol, sample, self._answers_to, self._options, self._judge.name)
                self._store.add_verdict(self._row.id, seq, sample, verdict)
                self._finished += 1
            except _Unanswered as round:
                waiting = True
                for ask in round.asks:
                    on_open(self._journal.key(ask), ask)
        is_complete = not (waiting or self._store.unaccounted(self._row.id, rows))
        manifest = {**self._row.manifest, "rows": rows} if is_complete else self._row.manifest
        state = "complete" if is_complete else "stopped"
        self._store.update_run(self._row.id, state=state, finished=now(), manifest=manifest)

    def result(self, open: int) -> BatchProgress:
        return BatchProgress(finished=self._finished, open=open, taken=self._taken, unusable=self._unusable)

    def knows(self, key: str) -> bool:
        """Whether this run ever made this ask."""
        return self._store.reply(key) is not None or self._store.unusable(self._row.id, key) is not None

    async def _answers_to(self, asks: list[Ask]) -> list[Reply | Unjudged]:
        replies = [self._answer(ask) for ask in asks]
        if unanswered := [ask for ask, reply in zip(asks, replies, strict=True) if reply is None]:
            raise _Unanswered(unanswered)
        return [reply for reply in replies if reply is not None]

    def _answer(self, ask: Ask) -> Reply | Unjudged | None:
        key = self._journal.key(ask)
        reply = self._journal.recall(key, ask) or self._store.unusable(self._row.id, key)
        if reply is None and key in self._answers:
            reply = self._take(key, ask)
        if reply is None:
            return None
        if key in self._paid:
            # Two samples ask the same: it was one call.
            return reply.model_copy(update={"usage": Usage()})
        self._paid.add(key)
        return reply

    def _take(self, key: str, ask: Ask) -> Reply | Unjudged:
        reply = self._judge.read_completion(ask, self._answers[key])
        if isinstance(reply, Reply):
            self._taken += 1
            self._journal.keep(key, ask, reply)
        else:
            self._unusable += 1
            self._store.add_unusable(self._row.id, key, reply)
        return reply
