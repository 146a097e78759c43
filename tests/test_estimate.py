"""Before anything is sent: the calls exactly, the tokens roughly, the cost by the price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import DIALOGUE, EXAMPLES, PAIRS, RAG, Steelyard, facts, lines_of, point_to, write_lines
from endpoint import Loopback
from steelyard.engine.estimate import RunEstimate, StandIn, estimate, example, tokens
from steelyard.engine.inputs import Input
from steelyard.engine.runner import Row, Runner
from steelyard.errors import InputError
from steelyard.evaluation import dated
from steelyard.judges.endpoint import Price
from steelyard.judges.recorded import RecordedJudge
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Data, RagSample, Reply, Unjudged
from steelyard.tasks import TASKS

PROTOCOLS = [
    *(("atomic", RAG), ("grounded", RAG), ("scorecard", RAG), ("dialogue", DIALOGUE), ("retrieval", RAG)),
    ("pairwise", PAIRS),
]


def recorded_server(protocol_name: str, file: str) -> Loopback:
    """A server that says what the recorded judge said, found by the words of the request."""
    protocol, prompts = get_protocol(protocol_name), Prompts.shipped()
    said: dict[str, str] = {}

    class Noting(RecordedJudge):
        async def answer(self, ask: Ask) -> Reply | Unjudged:
            reply = await super().answer(ask)
            assert isinstance(reply, Reply)
            said[prompts.messages(ask)[-1]["content"]] = reply.raw
            return reply

    runner = Runner(protocol, protocol.parse_options(dated(protocol, {})), Noting(EXAMPLES / "replies.jsonl"))
    asyncio.run(runner.run(Input([file]).rows(protocol), lambda *_: None))
    return Loopback(reply_for=lambda request: json.loads(said[request.user]))


def figures(out: str) -> dict[str, str]:
    """The lines of `--dry-run` by their names."""
    return {line[:19].strip(): line[19:].split("  (")[0].strip() for line in out.splitlines()}


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize(("protocol", "file"), PROTOCOLS)
def test_the_calls_are_those_that_a_faultless_run_makes(steelyard: Steelyard, protocol: str, file: str) -> None:
    """Nothing is sent by a dry run; the real run then makes as many calls as it said, of about that size."""
    with recorded_server(protocol, file) as server:
        point_to(server)
        words = ("run", file, "-p", protocol, "-j", "mine")
        said = figures(steelyard(*words, "--dry-run").out)
        assert server.requests == []
        assert not Path(".steelyard").exists()
        done = steelyard(*words, "-o", "out.jsonl")
        assert done.code == 0, done.err
        assert number(said["calls"]) == len(server.requests)
        assert number(said["samples"]) == len(lines_of("out.jsonl"))
        sent = sum(tokens("".join(message["content"] for message in request.messages)) for request in server.requests)
    assert 0.8 * sent <= number(said["prompt tokens"]) <= 1.25 * sent
    assert number(said["completion tokens"]) > 0
    assert said["cost"] == "unknown"


@pytest.mark.parametrize(("protocol", "file"), PROTOCOLS)
def test_the_replies_are_of_about_the_size_of_real_ones(protocol: str, file: str) -> None:
    """Stand-in replies are within a factor of three of the recorded ones, so that the cost is of the right order."""
    chosen = get_protocol(protocol)
    options = chosen.parse_options(dated(chosen, {}))
    said: list[int] = []

    class Weighing(RecordedJudge):
        async def answer(self, ask: Ask) -> Reply | Unjudged:
            reply = await super().answer(ask)
            said.append(tokens(reply.raw if isinstance(reply, Reply) else ""))
            return reply

    rows = Input([file]).rows
    runner = Runner(chosen, options, Weighing(EXAMPLES / "replies.jsonl"))
    asyncio.run(runner.run(rows(chosen), lambda *_: None))
    expected = asyncio.run(estimate(rows(chosen), chosen, options, StandIn(Prompts.shipped(), None), None))
    assert sum(said) / 3 <= expected.completion_tokens <= 3 * sum(said)


def test_the_cost_is_tokens_times_price(steelyard: Steelyard) -> None:
    """With a price in the judge's table, the dry run says dollars and which price it took."""
    samples = facts(Path("facts.jsonl"), 10)
    with Loopback() as server:
        point_to(server)
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write("price = { prompt = 1000, completion = 2000 }\n")
        out = steelyard("run", samples, "-p", "atomic", "-j", "mine", "--dry-run").out
        assert server.requests == []
    said = figures(out)
    dollars = (number(said["prompt tokens"]) * 1000 + number(said["completion tokens"]) * 2000) / 1_000_000
    assert float(said["cost"].removeprefix("$").replace(",", "")) == pytest.approx(dollars, rel=0.001)
    assert "$1000 and $2000 a million tokens" in out


def test_a_recording_does_not_hide_the_price(steelyard: Steelyard) -> None:
    """`--record` changes nothing about what is expected, and a dry run writes no recording."""
    facts(Path("facts.jsonl"), 2)
    words = ("run", "facts.jsonl", "-p", "atomic", "-j", "openai:gpt-4o-mini", "--dry-run")
    assert steelyard(*words, "--record", "replies.jsonl").out == steelyard(*words).out
    assert not Path("replies.jsonl").exists()


def rows(count: int, read: list[int]) -> Iterator[Row]:
    for place in range(count):
        read.append(place)
        yield place, RagSample(id=str(place), question="Q?", answer="It is so.", references=("It is so.",))


def estimated(count: int, total: int | None, read: list[int], most: int = 500) -> RunEstimate:
    protocol = get_protocol("atomic")
    options = protocol.parse_options({"date": "2026-03-02"})
    price = Price(prompt=1, completion=1)
    return asyncio.run(estimate(rows(count, read), protocol, options, StandIn(Prompts.shipped(), price), total, most))


@pytest.mark.parametrize("total", [200, None])
def test_a_long_file_is_estimated_from_its_beginning(total: int | None) -> None:
    """Where the number of samples is known, the rest is not even read; else it is read but not rendered."""
    read: list[int] = []
    found = estimated(200, total, read, 20)
    assert (found.samples, found.looked_at, found.calls) == (200, 20, 400)
    assert len(read) == (21 if total else 200)
    whole = estimated(20, None, [])
    assert found.prompt_tokens == 10 * whole.prompt_tokens
    assert found.cost == pytest.approx(10 * (whole.cost or 0))


def test_nothing_costs_nothing() -> None:
    """An empty file is no division by zero."""
    found = estimated(0, 0, [])
    assert (found.samples, found.calls, found.prompt_tokens) == (0, 0, 0)


def test_bad_rows_are_not_paid_for(steelyard: Steelyard) -> None:
    """They are named in the estimate and cost nothing in it."""
    good = lines_of(facts(Path("facts.jsonl"), 3))
    write_lines(Path("mixed.jsonl"), [good[0], {"id": "bad"}, *good[1:]])
    words = ("-p", "atomic", "-j", "openai:gpt-4o-mini", "--dry-run")
    mixed, clean = (steelyard("run", name, *words).out for name in ("mixed.jsonl", "facts.jsonl"))
    assert "(1 bad rows)" in mixed
    assert figures(mixed) == figures(clean)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_stand_in_reply(task: str) -> None:
    """An ask of any task is answered in its own shape."""
    data_type, reply_type = TASKS[task]
    ask = Ask(task=task, language="en", data=data_type.model_construct(**_plain(data_type)), reply=reply_type)
    reply_type.model_validate(example(ask))


def _plain(data: type[Data]) -> dict[str, Any]:
    """An empty value for each field."""
    empty: dict[Any, Any] = {int: 1, str: ""}
    return {name: empty.get(field.annotation, ()) for name, field in data.model_fields.items()}


async def test_the_stand_in_weighs_what_would_be_sent() -> None:
    """One call, as many prompt tokens as the rendered prompt has, a price where one is known."""
    data = TASKS["atomic.split"][0].model_validate({"question": "Q?", "answer": "A. " * 400})
    ask = Ask(task="atomic.split", language="en", data=data, reply=TASKS["atomic.split"][1])
    prompts = Prompts.shipped()
    reply = await StandIn(prompts, Price(prompt=1_000_000, completion=0)).answer(ask)
    sent = tokens("".join(message["content"] for message in prompts.messages(ask)))
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.cost) == (1, sent, sent)
    assert (await StandIn(prompts, None).answer(ask)).usage.cost is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_fewer_tokens(a: str, b: str) -> None:
    """The estimate grows with the text and is never negative."""
    assert 0 <= tokens(a) <= tokens(a + b) + 1
    assert tokens("") == 0


def test_chinese_counts_for_more_than_english() -> None:
    """A character of Chinese is a token or nearly so, four letters of English are one."""
    assert (tokens("今天天气很好" * 100), tokens("word" * 100)) == (400, 100)


def test_rows_after_an_unreadable_one_still_count() -> None:
    """A file that cannot be read at all raises what reading it raises."""

    def broken() -> Iterator[Row]:
        yield from rows(2, [])
        raise InputError("is cut off", file="a.jsonl")

    protocol = get_protocol("atomic")
    options = protocol.parse_options({"date": "x"})
    with pytest.raises(InputError, match="cut off"):
        asyncio.run(estimate(broken(), protocol, options, StandIn(Prompts.shipped(), None), None))
