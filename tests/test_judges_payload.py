"""What an endpoint sends, where it arrives: any bytes become text that can be written, or an error that can be told."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoint import Loopback, Wire
from steelyard.judges.chat import ChatJudge
from steelyard.judges.payload import (
    MOST_BYTES,
    AnswerBody,
    BrokenBody,
    cleaned,
    one_line,
    parse_json,
    readable,
    token_count,
    unpacked,
    valid,
)
from steelyard.prompts import Prompts
from steelyard.records import Ask, Unjudged
from steelyard.tasks import SplitData, SplitReply

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(ANY_JSON)
def test_whatever_is_sent_can_be_written(value: Any) -> None:
    """Half pairs, NaN and large numbers included: what arrives is valid JSON in UTF-8."""
    arrived = cleaned(parse_json(json.dumps(value).encode()), lambda text: text)
    assert json.loads(json.dumps(arrived, ensure_ascii=False, allow_nan=True).encode("utf-8")) is not Ellipsis


@given(st.binary(max_size=300))
def test_any_bytes_are_json_or_a_value_error(content: bytes) -> None:
    """Nothing else is raised, and what is told of them fits a line."""
    try:
        cleaned(parse_json(content), lambda text: text)
    except ValueError:
        assert len(one_line(readable(content)).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": NaN, "b": -Infinity, "c": 1}', {"a": None, "b": None, "c": 1}),
        ('{"n": %s}' % ("9" * 5000), {"n": None}),
        ("\ufeff{}", {}),
    ],
)
def test_one_bad_number_does_not_spoil_the_rest(text: str, found: Any) -> None:
    """A reply is worth more than the count beside it."""
    assert parse_json(text) == found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_in_any_unicode_encoding(encoding: str) -> None:
    """As servers on Windows like to send it."""
    assert parse_json('{"名": "值"}'.encode(encoding)) == {"名": "值"}


def test_what_is_nested_too_deeply_is_cut_off() -> None:
    """A hundred levels are read as far as anybody looks; ten thousand are no JSON."""
    deep = cleaned(parse_json("[" * 100 + "]" * 100), lambda text: text)
    assert json.dumps(deep).count("[") == 50
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 10_000 + "]" * 10_000)


@given(ANY_TEXT)
def test_a_line_is_a_line(text: str) -> None:
    """No line break, no escape sequence, no half character, and an end."""
    line = one_line(text, 50)
    assert line.encode().decode() == line
    assert len(line) <= 51
    assert not set(line) & set(map(chr, range(32)))


@pytest.mark.parametrize("opening", [b"<", b"<script ", b"<style>"])
def test_markup_without_an_end_takes_no_time(opening: bytes) -> None:
    """What a server sends instead of JSON may not stop all other calls."""
    began = time.process_time()
    assert one_line(readable(b"Bad gateway " + opening * 20_000)).startswith("Bad gateway")
    assert time.process_time() - began < 0.1


def test_a_page_is_told_without_its_markup() -> None:
    """Scripts and styles are none of its words."""
    page = b"<html><style>p {color: red}</style><script>let a = '<p>'</script><h1>Bad\n gateway</h1></html>"
    assert one_line(readable(page)) == "Bad gateway"


def test_valid_text_stays_as_it_is() -> None:
    """Only halves are exchanged."""
    assert valid("奥匈帝国 😀") == "奥匈帝国 😀"
    assert valid("a\ud83db") == "a?b"


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (7, 7),
        (7.0, 7),
        (0, 0),
        (-1, 0),
        (1.5, 0),
        (True, 0),
        ("7", 0),
        (None, 0),
        ([7], 0),
        (float("inf"), 0),
        (float("nan"), 0),
        (10**400, 0),
        (10**10, 0),
    ],
)
def test_counts_are_counts(value: Any, count: int) -> None:
    """What cannot be a number of tokens is not reported, rather than summed up."""
    assert token_count(value) == count


# --- bodies -------------------------------------------------------------------------------------------------


def test_bodies_are_unpacked() -> None:
    """A limit is a limit of what comes out."""
    text = b'{"a": "' + b"b" * 3000 + b'"}'
    for encoding, packed in (("gzip", gzip.compress(text)), ("deflate", zlib.compress(text))):
        assert unpacked(AnswerBody(packed), encoding) == (text, True)
        short = unpacked(AnswerBody(packed), encoding, most=100)
        assert (short.content, short.is_whole) == (text[:100], False)


def test_a_gzip_bomb_costs_no_more_than_the_limit() -> None:
    """A quarter of a gigabyte in 256 kilobytes: reading ends at the limit."""
    bomb = gzip.compress(bytes(256 * 2**20), 1)
    tracemalloc.start()
    try:
        body = unpacked(AnswerBody(bomb), "gzip")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(body.content), body.is_whole) == (MOST_BYTES, False)
    assert peak < 4 * MOST_BYTES


def test_a_body_in_several_members_is_read_to_its_end() -> None:
    """As gzip allows; padding after the last is no part of it, the limit is one of all, and so is their number."""
    packed = b"".join(gzip.compress(part) for part in (b'{"a":', b"", b"1}"))
    assert unpacked(AnswerBody(packed), "gzip") == (b'{"a":1}', True)
    assert unpacked(AnswerBody(packed + bytes(9)), "gzip") == (b'{"a":1}', True)
    assert unpacked(AnswerBody(packed), "gzip", most=6) == (b'{"a":1', False)
    with pytest.raises(BrokenBody, match="breaks off"):
        unpacked(AnswerBody(packed[:-3]), "gzip")
    with pytest.raises(BrokenBody, match="members"):
        unpacked(AnswerBody(gzip.compress(b"", mtime=0) * 1001), "gzip")


@pytest.mark.parametrize("part", [b"[],", b'{"a":{}},', b"1,"])
async def test_a_body_of_nothing_but_parts_is_not_parsed(part: bytes) -> None:
    """Nine kilobytes on the wire that would take half a gigabyte as objects are told as no completion."""
    body = b'{"choices":[],"x":[' + part * (9 * 2**20 // len(part)) + b"0]}"
    sent = gzip.compress(body, mtime=0)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(sent)
    ask = Ask(task="atomic.split", language="en", data=SplitData(question="q", answer="a"), reply=SplitReply)
    with Loopback(Wire((head, sent))) as server:
        judge = ChatJudge(server.endpoint(retries=0), Prompts.shipped())
        tracemalloc.start()
        try:
            result = await judge.answer(ask)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await judge.aclose()
    assert isinstance(result, Unjudged)
    assert result.reason == "rejected"
    assert "200,000 parts" in result.detail
    assert peak < 60 * 2**20


@pytest.mark.parametrize(
    ("encoding", "content", "problem"),
    [
        ("gzip", b"hello", "is not gzip"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-4], "breaks off"),
        ("deflate", b"\xff\xff", "is not deflate"),
        ("br", b"hello", "packed as 'br'"),
        ("gzip, gzip", b"hello", "packed as 'gzip, gzip'"),
    ],
)
def test_what_is_not_packed_as_it_says(encoding: str, content: bytes, problem: str) -> None:
    """It is told as what it is."""
    with pytest.raises(BrokenBody, match=problem):
        unpacked(AnswerBody(content), encoding)


async def test_odd_numbers_in_replies_do_no_harm() -> None:
    """An id of five thousand digits, as a number or as text, is a reply that cannot be used."""
    ask = Ask(task="atomic.split", language="en", data=SplitData(question="q", answer="a"), reply=SplitReply)
    digits = "9" * 5000
    for id in (digits, f'"{digits}"', "1e400", "NaN"):
        with Loopback(f'{{"atoms": [{{"id": {id}, "text": "\\ud800"}}]}}') as server:
            judge = ChatJudge(server.endpoint(corrections=1), Prompts.shipped())
            result = await judge.answer(ask)
            await judge.aclose()
        assert isinstance(result, Unjudged)
        assert result.reason == "invalid_reply"
        assert result.model_dump_json()
