"""Judging through a provider's batch files: out, answered, in, round by round, with the results of a direct run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command import (
    DIALOGUE,
    EXAMPLES,
    RAG,
    Steelyard,
    fact_server,
    facts,
    judge_facts,
    lines_of,
    point_to,
    write_lines,
)
from endpoint import USAGE, Request, Say
from steelyard.engine import batch, runs
from steelyard.engine.inputs import Input
from steelyard.engine.journal import reply_key
from steelyard.engine.runner import Runner
from steelyard.errors import InputError
from steelyard.evaluation import dated
from steelyard.judges.chat import ChatJudge
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.recorded import RecordedJudge
from steelyard.prompts import Prompts, nonce
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Reply, Unjudged, Verdict
from steelyard.store import Store

Line = dict[str, Any]
PRICE = {"prompt": 10.0, "completion": 20.0}


def chat() -> ChatJudge:
    return ChatJudge(Endpoint(base_url="http://127.0.0.1:9/v1", model="m", price=PRICE), Prompts.shipped())


class Begun(NamedTuple):
    """A run that is judged by batch, and what a direct run would have been told."""

    store: Store
    run: runs.Run
    judge: ChatJudge
    data: Input
    answers: Mapping[str, str]
    direct: list[Verdict]

    def export(self, out: Path) -> tuple[batch.BatchProgress, list[Line]]:
        progress = batch.export(self.store, self.run.row, self.judge, self.data, out)
        return progress, lines_of(out)

    def import_answers(self, output: Path) -> batch.BatchProgress:
        return batch.import_answers(self.store, self.run.row, self.judge, self.data, output)

    def results(self) -> list[Line]:
        found = self.store.verdicts(self.run.row.id)
        return [{**verdict.line(), "usage": None, "judge": None} for _, verdict in found]

    def expected(self) -> list[Line]:
        return [{**verdict.line(), "usage": None, "judge": None} for verdict in self.direct]


def begin(store: Store, protocol_name: str, file: str) -> Begun:
    protocol, judge, recorded = get_protocol(protocol_name), chat(), RecordedJudge(EXAMPLES / "replies.jsonl")
    options = protocol.parse_options(dated(protocol, {}))
    data = Input([file])
    answers: dict[str, str] = {}

    class Noting(RecordedJudge):
        async def answer(self, ask: Ask) -> Reply | Unjudged:
            reply = await recorded.answer(ask)
            assert isinstance(reply, Reply)
            answers[reply_key(judge, ask)] = json.dumps({"code": nonce(ask), **json.loads(reply.raw)})
            return reply

    direct: list[Verdict] = []
    runner = Runner(protocol, options, Noting(EXAMPLES / "replies.jsonl"))
    asyncio.run(runner.run(data.rows(protocol), lambda seq, sample, verdict: direct.append(verdict)))
    run = runs.start(store, protocol, options, judge, "openai:m", Prompts.shipped(), data, runs.RunSettings())
    return Begun(store, run, judge, data, answers, direct)


def completion(id: str, content: str, finish: str = "stop") -> Line:
    """A line of OpenAI's batch output."""
    body = Say(content, finish_reason=finish).completion("m")
    response = {"status_code": 200, "request_id": "req_1", "body": body}
    return {"id": f"batch_req_{id[:6]}", "custom_id": id, "response": response, "error": None}


def failed(id: str, status: int = 429, code: str = "rate_limit_exceeded") -> Line:
    """A line of the same file for a request that the provider did not answer."""
    error = {"error": {"code": code, "message": "too much"}}
    response = {"status_code": status, "request_id": "req_1", "body": error}
    return {"id": "batch_req_0", "custom_id": id, "response": response, "error": None}


def answered(lines: list[Line], say: Callable[[Line], Line], path: Path) -> Path:
    """The provider: answers each line, in an order of its own."""
    return write_lines(path, [say(line) for line in reversed(lines)])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def atomic(store: Store) -> Begun:
    return begin(store, "atomic", RAG)


# --- the whole way ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "file"), [("atomic", RAG), ("grounded", RAG), ("scorecard", RAG), ("dialogue", DIALOGUE)]
)
def test_rounds_until_complete_give_what_a_direct_run_gives(
    store: Store, tmp_path: Path, protocol: str, file: str
) -> None:
    """Each ask is written once, in the right round; labels, scores, flags and usage are those of direct calls."""
    begun = begin(store, protocol, file)
    asked: list[str] = []
    for _ in range(6):
        progress, lines = begun.export(tmp_path / "in.jsonl")
        assert (progress.open, progress.taken) == (len(lines), 0)
        if not lines:
            break
        asked += [line["custom_id"] for line in lines]
        output = answered(
            lines, lambda line: completion(line["custom_id"], begun.answers[line["custom_id"]]), tmp_path / "out.jsonl"
        )
        taken = begun.import_answers(output)
        assert (taken.taken, taken.unusable, taken.unknown, taken.failures) == (len(lines), 0, 0, {})
    assert sorted(asked) == sorted(begun.answers)
    assert begun.results() == begun.expected()
    assert store.run(begun.run.row.id).state == "complete"
    calls = [verdict.usage.calls for _, verdict in store.verdicts(begun.run.row.id)]
    assert sum(calls) == len(asked)


def test_the_file_is_openais_batch_input(atomic: Begun, tmp_path: Path) -> None:
    """Four keys a line; the body is the request that a direct call would post; ids are unique and short enough."""
    _, lines = atomic.export(tmp_path / "in.jsonl")
    assert len({line["custom_id"] for line in lines}) == len(lines) > 1
    for line in lines:
        assert list(line) == ["custom_id", "method", "url", "body"]
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert len(line["custom_id"]) <= 64
        assert line["body"]["model"] == "m"
        assert [message["role"] for message in line["body"]["messages"]] == ["system", "user"]
        assert line["body"]["response_format"]["type"] == "json_schema"
    assert not (tmp_path / "in.jsonl").read_bytes().startswith(b"\xef\xbb\xbf")


def test_tokens_and_cost_of_the_answers_are_counted(atomic: Begun, tmp_path: Path) -> None:
    """Also over several rounds: a sample's price is that of all its answers."""
    for _ in range(3):
        _, lines = atomic.export(tmp_path / "in.jsonl")
        answered(lines, lambda line: completion(line["custom_id"], atomic.answers[line["custom_id"]]), tmp_path / "out")
        atomic.import_answers(tmp_path / "out")
    usages = [verdict.usage for _, verdict in atomic.store.verdicts(atomic.run.row.id) if verdict.usage.calls == 2]
    assert usages
    for usage in usages:
        assert usage.prompt_tokens == 2 * USAGE["prompt_tokens"]
        assert usage.cost == pytest.approx(2 * (100 * 10 + 20 * 20) / 1_000_000)


def test_taking_in_a_file_twice_changes_nothing(atomic: Begun, tmp_path: Path) -> None:
    """The second time everything is known already."""
    _, lines = atomic.export(tmp_path / "in.jsonl")
    output = answered(
        lines, lambda line: completion(line["custom_id"], atomic.answers[line["custom_id"]]), tmp_path / "out"
    )
    first = atomic.import_answers(output)
    second = atomic.import_answers(output)
    assert (second.taken, second.unknown, second.open, second.finished) == (0, 0, first.open, first.finished)


# --- answers that are none ----------------------------------------------------------------------------------


def test_what_the_provider_did_not_answer_stays_open(atomic: Begun, tmp_path: Path) -> None:
    """Failed lines are counted by reason and written out again in the next round; the others are not."""
    _, lines = atomic.export(tmp_path / "in.jsonl")
    late, never = lines[0]["custom_id"], lines[1]["custom_id"]
    expired = {"id": "b", "custom_id": never, "response": None, "error": {"code": "batch_expired"}}
    lost = {late: failed(late), never: expired}

    def say(line: Line) -> Line:
        id = line["custom_id"]
        return lost.get(id) or completion(id, atomic.answers[id])

    progress = atomic.import_answers(answered(lines, say, tmp_path / "out.jsonl"))
    assert progress.taken == len(lines) - 2
    assert progress.failures == {"429 rate_limit_exceeded": 1, "batch_expired": 1}
    _, again = atomic.export(tmp_path / "in2.jsonl")
    written = {line["custom_id"] for line in again}
    assert written & {line["custom_id"] for line in lines} == set(lost)


@pytest.mark.parametrize(("content", "finish"), [("no JSON at all", "stop"), ('{"atoms": []}', "length"), ("", "stop")])
def test_an_unusable_answer_is_final_and_the_run_ends(atomic: Begun, tmp_path: Path, content: str, finish: str) -> None:
    """However often the model fails at one ask, the rounds come to an end; the sample is not scored by accident."""
    _, lines = atomic.export(tmp_path / "in.jsonl")
    bad = lines[0]["custom_id"]

    def say(line: Line) -> Line:
        id = line["custom_id"]
        return completion(id, content, finish) if id == bad else completion(id, atomic.answers[id])

    asked: list[str] = []
    unusable = 0
    while lines and len(asked) < 100:
        asked += [line["custom_id"] for line in lines]
        unusable += atomic.import_answers(answered(lines, say, tmp_path / "out.jsonl")).unusable
        _, lines = atomic.export(tmp_path / "in.jsonl")
    assert (lines, unusable, asked.count(bad)) == ([], 1, 1)
    statuses = [verdict.status for _, verdict in atomic.store.verdicts(atomic.run.row.id)]
    assert statuses.count("judged") == len(statuses) - 1
    assert atomic.store.run(atomic.run.row.id).state == "complete"
    assert (
        sum(verdict.usage.calls for _, verdict in atomic.store.verdicts(atomic.run.row.id)) == len(atomic.answers) - 1
    )


def test_answers_to_nothing_are_counted_and_ignored(atomic: Begun, tmp_path: Path) -> None:
    """An id that this run never asked does no harm."""
    _, lines = atomic.export(tmp_path / "in.jsonl")
    output = answered(
        lines, lambda line: completion(line["custom_id"], atomic.answers[line["custom_id"]]), tmp_path / "out"
    )
    with output.open("a", encoding="utf-8") as file:
        file.write(json.dumps(completion("nobody-asked", "{}")) + "\n")
    progress = atomic.import_answers(output)
    assert (progress.taken, progress.unknown) == (len(lines), 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"custom_id": "a", "method": "POST", "url": "/v1", "body": {}}', "not the one that was uploaded"),
        ('{"id": "x"}', "custom_id"),
        ('{"custom_id": 7, "response": null}', "custom_id"),
        ("[]", "custom_id"),
        ('{"custom_id": ', "not JSON"),
        (json.dumps(completion("nobody-asked", "{}")), "another run's file"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(atomic: Begun, tmp_path: Path, text: str, problem: str) -> None:
    """The file that was uploaded, another run's, or none of that kind: nothing is taken in."""
    (tmp_path / "wrong.jsonl").write_text(f"\n{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=problem) as refused:
        atomic.import_answers(tmp_path / "wrong.jsonl")
    assert "wrong.jsonl" in str(refused.value)
    assert list(atomic.store.used_replies(atomic.run.row.id)) == []


def test_files_that_cannot_be_read(atomic: Begun, tmp_path: Path) -> None:
    """A file that is not there, or not text, is an error about that file."""
    (tmp_path / "latin").write_bytes(b'{"custom_id": "\xe9"}\n')
    for name in ("nosuch", "latin"):
        with pytest.raises(InputError, match=f"{name}: cannot be read"):
            atomic.import_answers(tmp_path / name)


# --- on the command line ------------------------------------------------------------------------------------


def as_request(line: Line) -> Request:
    return Request(line["url"], {}, line["body"])


def by_judge(line: Line) -> Line:
    request = as_request(line)
    return completion(line["custom_id"], json.dumps({"code": request.code, **judge_facts(request)}))


def test_batch_on_the_command_line(steelyard: Steelyard) -> None:
    """start, import, export, import: the messages lead from one to the next, and nothing is sent."""
    samples = facts(Path("facts.jsonl"), 5)
    with fact_server() as server:
        point_to(server)
        begun = steelyard("batch", "start", samples, "-p", "atomic", "-j", "mine", "-o", "in1.jsonl")
        assert (begun.code, "5 asks open" in begun.err) == (0, True)
        answered(lines_of("in1.jsonl"), by_judge, Path("out1.jsonl"))
        taken = steelyard("batch", "import", "last", "out1.jsonl")
        assert "5 answers taken in, 0 unusable; 0 samples finished, 5 asks open" in taken.err
        assert steelyard("batch", "export", "last", "-o", "in2.jsonl").code == 0
        answered(lines_of("in2.jsonl"), by_judge, Path("out2.jsonl"))
        done = steelyard("batch", "import", "last", "out2.jsonl")
        assert "5 samples finished, 0 asks open" in done.err
        assert "complete; see: steelyard report" in done.err
        assert server.requests == []
        # The journal is the same one: a direct run over the same data has nothing to ask.
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "-o", "out.jsonl").code == 0
        assert server.requests == []
    assert [line["scores"]["accuracy"] for line in lines_of("out.jsonl")] == [1.0] * 5


def test_equal_asks_are_written_and_counted_once(steelyard: Steelyard) -> None:
    """Two samples with the same text are one line, and one call in the sums."""
    (row,) = lines_of(facts(Path("one.jsonl"), 1))
    write_lines(Path("twice.jsonl"), [row, {**row, "id": "again"}])
    with fact_server() as server:
        point_to(server)
        begun = steelyard("batch", "start", "twice.jsonl", "-p", "atomic", "-j", "mine", "-o", "in.jsonl")
        assert "1 asks open" in begun.err
        for _ in range(2):
            answered(lines_of("in.jsonl"), by_judge, Path("out.jsonl"))
            assert steelyard("batch", "import", "last", "out.jsonl").code == 0
            assert steelyard("batch", "export", "last", "-o", "in.jsonl").code == 0
    assert lines_of("in.jsonl") == []
    assert steelyard("export", "last", "--to", "results.jsonl").code == 0
    assert [line["usage"]["calls"] for line in lines_of("results.jsonl")] == [2, 0]


def test_a_partly_judged_run_exports_what_is_open(steelyard: Steelyard) -> None:
    """What was answered directly is not asked again at half the price."""
    samples = facts(Path("facts.jsonl"), 6)
    with fact_server() as server:
        point_to(server)
        words = ("run", samples, "-p", "atomic", "-j", "mine", "-c", 1, "--max-tokens", 120 * 5)
        assert steelyard(*words).code == 3
        assert len(server.requests) == 5
        known = {(request.task, request.user) for request in server.requests}
        written: list[Line] = []
        for _ in range(2):
            assert steelyard("batch", "export", "last", "-o", "in.jsonl").code == 0
            written += lines_of("in.jsonl")
            answered(lines_of("in.jsonl"), by_judge, Path("out.jsonl"))
            steelyard("batch", "import", "last", "out.jsonl")
        assert len(server.requests) == 5
    assert len(written) == 7
    assert not known & {(as_request(line).task, as_request(line).user) for line in written}


def test_retry_asks_directly_for_what_was_unusable(steelyard: Steelyard) -> None:
    """The message says so, and the retry asks just that."""
    samples = facts(Path("facts.jsonl"), 3)
    with fact_server() as server:
        point_to(server)
        steelyard("batch", "start", samples, "-p", "atomic", "-j", "mine", "-o", "in.jsonl")
        first = lines_of("in.jsonl")[0]["custom_id"]
        answered(
            lines_of("in.jsonl"),
            lambda line: completion(first, "?") if line["custom_id"] == first else by_judge(line),
            Path("out.jsonl"),
        )
        taken = steelyard("batch", "import", "last", "out.jsonl")
        assert "ask again with: steelyard retry" in taken.err
        steelyard("batch", "export", "last", "-o", "in.jsonl")
        answered(lines_of("in.jsonl"), by_judge, Path("out.jsonl"))
        steelyard("batch", "import", "last", "out.jsonl")
        assert steelyard("retry", "last", "-o", "results.jsonl").code == 0
        assert len(server.requests) == 2
    assert [line["status"] for line in lines_of("results.jsonl")] == ["judged"] * 3


def test_a_changed_judge_is_refused_before_anything_is_written(steelyard: Steelyard) -> None:
    """Another temperature would ask everything anew; the user is told what changed."""
    samples = facts(Path("facts.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        steelyard("batch", "start", samples, "-p", "atomic", "-j", "mine", "-o", "in.jsonl")
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write("body = { temperature = 1 }\n")
        done = steelyard("batch", "export", "last", "-o", "in2.jsonl")
        assert (done.code, "body is not what it was" in done.err) == (2, True)
        assert not Path("in2.jsonl").exists()
        assert steelyard("resume", "last").code == 2


def test_only_chat_judges_have_batches(steelyard: Steelyard) -> None:
    """Recorded replies need no provider."""
    done = steelyard("batch", "start", RAG, "-p", "atomic", "-j", f"recorded:{EXAMPLES / 'replies.jsonl'}", "-o", "x")
    assert (done.code, "judges in OpenAI's chat form" in done.err) == (2, True)
