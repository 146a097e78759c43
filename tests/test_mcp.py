"""`steelyard mcp`, talked to by the real client of the Model Context Protocol."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from command import EXAMPLES, RAG, RECORDED, Steelyard, lines_of, process_environment, write_lines
from steelyard.integrations.mcp import MOST_CHARS, McpSettings, bounded, make_server
from steelyard.settings import Settings, SettingsFile

READING = {"list_runs", "show_sample", "compare"}


def command(*words: object) -> StdioServerParameters:
    """The server as an assistant starts it."""
    arguments = ["-m", "steelyard", "mcp", *map(str, words)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=process_environment())


def server(store: Path, root: Path, *, allow_run: bool = True) -> Any:
    """The same in this process."""
    settings = Settings(SettingsFile(), {}, "steelyard.toml")
    return make_server(McpSettings(settings, store, root, allow_run, RECORDED))


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content[0].text
    return json.loads(found.content[0].text)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    found = await client.call_tool(tool, arguments)
    assert found.is_error, found.content[0].text
    return str(found.content[0].text)


@pytest.fixture
def two_runs(steelyard: Steelyard) -> None:
    """Two runs over the same samples, in the store of this folder."""
    for _ in range(2):
        steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet", "--fresh")


@pytest.mark.usefixtures("two_runs")
async def test_a_reader_reads() -> None:
    """Over standard input and output, runs are listed, samples shown and runs compared; nothing can be judged."""
    async with Client(command()) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        listed = await called(client, "list_runs")
        assert [run["number"] for run in listed["runs"]] == [2, 1]
        assert listed["runs"][0]["samples"] == {"judged": 8}
        lowest = (await called(client, "show_sample", run="1"))["rows"]
        assert (lowest[0]["id"], lowest[0]["scores"]["accuracy"]) == ("car-seat", 0.0)
        shown = await called(client, "show_sample", run="1", sample="car-seat")
        assert [item["label"] for item in shown["result"]["items"]] == ["wrong", "wrong", "undetermined"]
        assert shown["sample"]["question"].startswith("带ISOFIX")
        compared = await called(client, "compare", a="1", b="2")
        assert (compared["n_pairs"], compared["outcome"]) == (8, "undecided")
        assert "no sample 'nobody'" in await refused(client, "show_sample", sample="nobody")
        assert "there is no run '9'" in await refused(client, "compare", a="1", b="9")


async def test_judging_has_to_be_allowed(tmp_path: Path) -> None:
    """With --allow-run, the user's judge judges a file below the folder, or samples in the call; both become runs."""
    start = command("--allow-run", "-j", RECORDED, "--root", EXAMPLES, "--store", tmp_path / "runs.db")
    async with Client(start) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING | {"evaluate"}
        judged = await called(client, "evaluate", protocol="atomic", file="rag.jsonl")
        assert judged["means"]["accuracy"]["value"] == pytest.approx(0.7)
        shown = await called(client, "show_sample", run=judged["run"], sample="car-seat")
        assert shown["result"]["scores"]["accuracy"] == 0
    rows = [row for row in lines_of(RAG) if row["id"] == "car-tyre"]
    async with Client(server(tmp_path / "runs.db", tmp_path)) as client:
        inline = await called(client, "evaluate", protocol="atomic", samples=rows)
        assert inline["samples"] == [
            {"id": "car-tyre", "status": "judged", "scores": judged["samples"][0]["scores"]},
        ]


async def test_what_is_not_allowed(tmp_path: Path) -> None:
    """No file outside the folder is read, by path, link, rubric or recording; the judge cannot be chosen."""
    root = tmp_path / "root"
    root.mkdir()
    secret = write_lines(tmp_path / "secret.jsonl", lines_of(RAG))
    (root / "link.jsonl").symlink_to(secret)
    async with Client(server(tmp_path / "runs.db", root)) as client:
        for path in ("../secret.jsonl", str(secret), "link.jsonl", ".", "nothing.jsonl"):
            assert "no such file below" in await refused(client, "evaluate", protocol="atomic", file=path)
        assert "rubric" in await refused(client, "evaluate", protocol=f"rubric:{secret}", samples=[{"answer": "a"}])
        assert "one of the two" in await refused(client, "evaluate", protocol="atomic")
        many = [{"question": "q", "answer": "a"}] * 101
        assert "too many" in await refused(client, "evaluate", protocol="atomic", samples=many)
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "evaluate"]
        assert set(tool.input_schema["properties"]) == {"protocol", "samples", "file", "options"}


async def test_long_texts_are_cut(tmp_path: Path) -> None:
    """However long a sample is, what comes back is bounded, is JSON, and says what was left out."""
    row = {"id": "long", "question": "q", "answer": "很长。" * 50_000, "references": ["段落。" * 20_000] * 40}
    async with Client(server(tmp_path / "runs.db", tmp_path)) as client:
        await called(client, "evaluate", protocol="atomic", samples=[row])
        found = await client.call_tool("show_sample", {"sample": "long"})
    text = found.content[0].text
    assert len(text) <= MOST_CHARS
    assert "more characters)" in json.loads(text)["sample"]["answer"]


@pytest.mark.parametrize(
    "data",
    [{"a": ["x" * 900] * 9_000}, {str(n): "x" * 100 for n in range(9_000)}, {"a": [[["x" * 90] * 40] * 40] * 40}],
)
def test_anything_is_bounded(data: Mapping[str, Any]) -> None:
    """Many entries, many keys and deep lists end up below the limit as well."""
    text = bounded(data)
    assert len(text) <= MOST_CHARS
    assert json.loads(text)


def test_flags_that_do_not_fit(steelyard: Steelyard) -> None:
    """A judge for a server that may not judge is a mistake, and so is a folder that is none."""
    assert "--allow-run" in steelyard("mcp", "-j", "embedded").err
    assert "not a folder" in steelyard("mcp", "--root", "nowhere").err
