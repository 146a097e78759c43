"""`steelyard.evaluate`: runs that are kept, budgets, prompts, progress, and errors in the words of Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas
import pytest

import steelyard
from command import EXAMPLES, RAG, Steelyard, fact_server, lines_of, point_to
from endpoint import Loopback
from steelyard import ConfigError, InputError, NoReadableRow, RecordedJudge, SteelyardError
from steelyard.errors import Surface
from steelyard.evaluation import dated, redated
from steelyard.protocols import get_protocol
from steelyard.store import Store

ROOT = Path(__file__).parent.parent


def facts(count: int, start: int = 1) -> list[dict[str, Any]]:
    """Samples that do not say when they were asked; judging one with `atomic` takes two calls."""
    return [
        {"id": n, "question": "?", "references": [f"Fact {n} holds, as everybody knows."], "answer": f"Fact {n} holds."}
        for n in range(start, start + count)
    ]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A judge `mine` in an empty folder; each of its calls costs one dollar."""
    monkeypatch.chdir(tmp_path)
    with fact_server() as loopback:
        point_to(loopback)
        # The server reports 100 tokens of prompt and 20 of completion for each call.
        prices = '[prices."test-model"]\nprompt = 10000\ncached = 10000\ncompletion = 0\n'
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write(prices)
        yield loopback


@pytest.fixture
def recorded() -> RecordedJudge:
    return RecordedJudge(EXAMPLES / "replies.jsonl")


# --- rows --------------------------------------------------------------------------------------------


def test_every_row_bad_is_an_error(recorded: RecordedJudge, tmp_path: Path) -> None:
    """Where nothing can be judged there is no result to mistake for one; the error has all bad rows."""
    rows = pandas.DataFrame([{"q": "?", "a": "!"}, {"q": "?", "a": "?"}])
    for store in (None, tmp_path / "store.db"):
        with pytest.raises(NoReadableRow, match="none of 2 rows can be read; the first: question, answer: ") as raised:
            steelyard.evaluate(rows, "atomic", recorded, store=store)
        assert [(bad.line, bad.field) for bad in raised.value.bad_rows] == [
            (1, "question, answer"),
            (2, "question, answer"),
        ]
        assert "fields={'question': 'COLUMN', 'answer': 'COLUMN'}" in str(raised.value)
        assert isinstance(raised.value, InputError)


def test_a_run_without_a_readable_row_is_not_kept(
    recorded: RecordedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of bad rows nor of none; no rows at all give an empty result, as without a store."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoReadableRow):
        steelyard.evaluate([{"question": "?"}], "atomic", recorded, store="store.db")
    assert len(steelyard.evaluate([], "atomic", recorded, store="store.db")) == 0
    with Store.open(tmp_path / "store.db") as store:
        assert store.runs() == []


# --- stores --------------------------------------------------------------------------------------------


def test_nothing_is_paid_for_twice(server: Loopback) -> None:
    """With a store, the same samples cost nothing again, and of others only what is new is asked."""
    first = steelyard.evaluate(facts(3), "atomic", "mine", store="kept/store.db")
    assert len(server.requests) == 6
    again = steelyard.evaluate(pandas.DataFrame(facts(3)), "atomic", "mine", store="kept/store.db")
    assert len(server.requests) == 6
    assert [verdict.scores for verdict in again] == [verdict.scores for verdict in first]
    assert [verdict.usage.calls for verdict in again] == [0, 0, 0]
    assert first.run != again.run
    more = steelyard.evaluate(facts(4), "atomic", "mine", store="kept/store.db")
    assert (len(more), len(server.requests)) == (4, 8)


def test_nothing_is_paid_for_twice_on_another_day(server: Loopback) -> None:
    """The date is part of what is asked: over the same samples, that of the earlier run is used, and a note says so."""
    options = {"date": "2020-02-29"}
    steelyard.evaluate(facts(2), "atomic", "mine", options=options, store="store.db")
    again = steelyard.evaluate(facts(2), "atomic", "mine", store="store.db")
    assert len(server.requests) == 4
    (note,) = again.notes
    assert note.startswith("date 2020-02-29, as in run ")
    assert "options={'date': …} changes it" in note
    assert note in again.summary()
    with Store.open(Path("store.db")) as store:
        assert store.run(str(again.run)).manifest["options"]["date"] == "2020-02-29"
    other = steelyard.evaluate(facts(2), "atomic", "mine", options={"date": "2021-01-01"}, store="store.db")
    # The first of two calls splits the answer, for which the date does not matter.
    assert (other.notes, len(server.requests)) == ((), 6)
    assert steelyard.evaluate(facts(1), "atomic", "mine", store="store.db").notes == ()


def test_the_clock_is_an_argument() -> None:
    """Without an earlier run the date is today's; an earlier run's on the same day is no news."""
    protocol = get_protocol("atomic")
    options = protocol.parse_options(dated(protocol, {}, lambda: date(2026, 11, 18)))
    assert options.model_dump()["date"] == "2026-11-18"
    assert redated(options, "2026-11-18", "r", Surface.flags) == (options, "")
    changed, note = redated(options, "2026-11-17", "r", Surface.flags)
    assert (changed.model_dump()["date"], "--date or --fresh changes it" in note) == ("2026-11-17", True)


def test_a_name(server: Loopback, steelyard: Steelyard) -> None:
    """A run can be given a name, which the list of runs shows; without a store there is nothing to name."""
    from steelyard import evaluate

    evaluate(facts(1), "atomic", "mine", store="store.db")
    assert "name" not in steelyard("runs", "list", "--store", "store.db").out
    named = evaluate(facts(1), "atomic", "mine", store="store.db", name="v2 [new]")
    listed = steelyard("runs", "list", "--store", "store.db").out
    assert re.search(rf"{named.run}\s+v2 \[new\]\s+atomic", listed), listed
    (newest, _) = map(json.loads, steelyard("runs", "list", "--store", "store.db", "--json").out.splitlines())
    assert newest["name"] == "v2 [new]"
    with pytest.raises(ConfigError, match="give store= too"):
        evaluate(facts(1), "atomic", "mine", name="x")


def test_a_run_of_python_in_other_commands(server: Loopback, steelyard: Steelyard) -> None:
    """It can be reported and shown like any other; only going on with it needs Python again."""
    from steelyard import evaluate

    evaluate(facts(2), "atomic", "mine", store="store.db")
    assert steelyard("report", "last", "--store", "store.db", "--lang", "en").code == 0
    done = steelyard("resume", "last", "--store", "store.db")
    assert (done.code, "call evaluate() again with this store" in done.err) == (5, True)


def test_a_file_with_a_store_can_be_resumed(server: Loopback, steelyard: Steelyard) -> None:
    """A run over a file is the same run as the command line's."""
    from steelyard import evaluate

    file = Path("facts.jsonl")
    file.write_text("".join(json.dumps(row) + "\n" for row in facts(2)), encoding="utf-8")
    results = evaluate(file, "atomic", "mine", store="store.db")
    done = steelyard("resume", str(results.run), "--store", "store.db")
    assert (done.code, len(server.requests)) == (0, 4)
    assert steelyard("run", file, "-p", "atomic", "-j", "mine", "--store", "store.db").code == 0
    assert len(server.requests) == 4


# --- money, prompts, progress ---------------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, "store.db"])
def test_max_cost_stops(server: Loopback, store: str | None) -> None:
    """After the given sum no further call is made; what was judged until then is returned, and it says so."""
    results = steelyard.evaluate(facts(20), "atomic", "mine", max_cost=5, concurrency=1, store=store)
    assert results.stopped == "max_cost=5 reached"
    assert 1 <= len(results) <= 3
    assert len(server.requests) <= 6
    assert "stopped: max_cost=5 reached" in results.summary()
    assert "stopped: max_cost=5 reached" in repr(results)


def test_max_cost_needs_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows the price, a limit on money is refused before anything is sent."""
    monkeypatch.chdir(tmp_path)
    with fact_server() as server:
        point_to(server)
        with pytest.raises(ConfigError, match=r"^max_cost needs the prices of mine:test-model") as raised:
            steelyard.evaluate(facts(1), "atomic", "mine", max_cost=1)
        assert "--" not in str(raised.value)
        assert server.requests == []


def test_own_prompts(server: Loopback, steelyard: Steelyard, tmp_path: Path) -> None:
    """A file, or a folder of them, is laid over the shipped prompts of a judge that is named."""
    from steelyard import evaluate

    shipped = steelyard("prompts", "print", "atomic.split.en").out
    folder = tmp_path / "mine"
    folder.mkdir()
    own = folder / "atomic.split.en.md"
    own.write_text(shipped.replace("\n---\n", "\n---\n\nCount the oysters first.\n", 1), encoding="utf-8")
    for prompts in (own, str(folder), [own]):
        server.requests.clear()
        evaluate(facts(1), "atomic", "mine", prompts=prompts)
        assert "Count the oysters first." in json.dumps(server.requests[0].body)
    judge = RecordedJudge(EXAMPLES / "replies.jsonl")
    with pytest.raises(ConfigError, match="prompts= belongs to a judge that is named"):
        evaluate(RAG, "atomic", judge, prompts=own)


@pytest.mark.parametrize("store", [None, "store.db"])
def test_progress(server: Loopback, capsys: pytest.CaptureFixture[str], store: str | None) -> None:
    """A function is called with the state after each sample; True prints lines; otherwise nothing is said."""
    seen: list[dict[str, Any]] = []
    steelyard.evaluate(facts(3), "atomic", "mine", progress=seen.append, store=store)
    assert [state["done"] for state in seen] == [1, 2, 3]
    assert (seen[-1]["calls"], seen[-1]["cost"]) == (6, pytest.approx(6))
    assert capsys.readouterr() == ("", "")
    steelyard.evaluate(facts(3), "atomic", "mine", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "6 calls" in err


def test_a_judge_that_is_passed_in_needs_no_settings(
    recorded: RecordedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in the steelyard.toml of the folder concerns only judges that are named."""
    monkeypatch.chdir(tmp_path)
    Path("steelyard.toml").write_text("slip", encoding="utf-8")
    assert len(steelyard.evaluate(RAG, "atomic", recorded)) == 8
    with pytest.raises(ConfigError, match="not valid TOML"):
        steelyard.evaluate(RAG, "atomic", "embedded")


# --- errors speak Python ----------------------------------------------------------------------------------


def test_errors_name_arguments_not_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls Python is told what to pass in Python."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("gbk.csv").write_bytes("question,answer\n几点？,九点。\n".encode("gbk"))
    Path("a.docx").write_bytes(b"not a database, whatever else it may be" * 50)
    mistakes: list[tuple[Any, dict[str, Any], str]] = [
        ([{"question": "q", "a": "b"}], {}, "fields={'answer': 'COLUMN'}"),
        ([{"question": "q", "answer": "b", "response": "c"}], {}, "fields={'answer': 'answer'}"),
        ("gbk.csv", {}, "encoding="),
        ("a.docx", {}, "format="),
        (RAG, {"judge": "gpt-4o"}, "judge='openai:gpt-4o'"),
        (RAG, {"judge": "openai"}, "judge='openai:MODEL'"),
        (RAG, {"judge": "recorded:"}, "judge='recorded:replies.jsonl'"),
        (RAG, {"store": "a.docx"}, "is not a Steelyard store; name another one"),
    ]
    for samples, more, says in mistakes:
        with pytest.raises(SteelyardError) as raised:
            steelyard.evaluate(samples, "atomic", **{"judge": "embedded", **more})
        assert says in str(raised.value)
        assert not re.search(r"(^|\s)--?[a-z]", str(raised.value)), raised.value
    read = steelyard.evaluate("gbk.csv", "atomic", "embedded", encoding="gb18030")
    assert len(read) == 1


def test_how_a_file_was_read_is_noted(recorded: RecordedJudge, tmp_path: Path) -> None:
    """Where the meaning of columns was decided for the caller, the results say so."""
    row = lines_of(RAG)[0]
    ark = {"prompt": row["question"], "answer": "gold", "response": row["answer"], "usage": {}, "error": ""}
    (tmp_path / "a.jsonl").write_text(json.dumps(ark | {"references": row["references"], "date": row["date"]}))
    for samples in (tmp_path / "a.jsonl", lines_of(tmp_path / "a.jsonl")):
        results = steelyard.evaluate(samples, "atomic", recorded)
        assert results[0].scores["accuracy"] == 1
        (note,) = results.notes
        assert "read as a file of 火山方舟 Volcengine Ark" in note
        assert note.endswith("to read its columns by their names: importer='plain'")


# --- results ------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Which elements there are, all of them closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_the_report(recorded: RecordedJudge) -> None:
    """`_repr_html_` is the report as headings and tables; judged text cannot add an element of its own."""
    results = steelyard.evaluate(RAG, "atomic", recorded)
    shown = results._repr_html_()
    assert "70.0%" in shown
    found = Tags(shown)
    assert found.open == []
    ours = {"div", "h3", "h4", "h5", "p", "br", "table", "thead", "tbody", "tr", "th", "td", "style", "ul", "li"}
    assert found.seen <= ours | {"details", "summary", "span", "blockquote", "mark", "strong"}
    hostile = {"id": "<script>x</script>", "question": "?", "answer": "a", "tags": ["<img src=x>"]}
    shown = steelyard.evaluate([hostile, {"<b>": 1}], "atomic", "embedded")._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<b>" not in shown
    assert Tags(shown).open == []


def test_summary_is_the_report_of_the_command_line(steelyard: Steelyard, recorded: RecordedJudge) -> None:
    """The same text, 80 columns wide, without colours."""
    from steelyard import evaluate

    said = evaluate(RAG, "atomic", recorded).summary("en")
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 80
    done = steelyard("run", RAG, "-p", "atomic", "-j", f"recorded:{EXAMPLES / 'replies.jsonl'}", "--lang", "en")
    score_lines = [line for line in done.out.splitlines() if line.startswith(("Accuracy", "Strict", "Coverage"))]
    assert len(score_lines) >= 3
    for line in score_lines:
        assert line.rstrip() in said


def test_save(recorded: RecordedJudge, tmp_path: Path) -> None:
    """Result lines, tables and the report as a page, by the name of the file; anything else is refused."""
    results = steelyard.evaluate(RAG, "atomic", recorded)
    assert results.save(tmp_path / "out.jsonl") == tmp_path / "out.jsonl"
    assert lines_of(tmp_path / "out.jsonl") == results.to_dicts()
    results.save(str(tmp_path / "out.csv"))
    assert len(pandas.read_csv(tmp_path / "out.csv")) == 8
    results.save(tmp_path / "items.parquet", items=True)
    assert len(pandas.read_parquet(tmp_path / "items.parquet")) == sum(len(verdict.items) for verdict in results)
    results.save(tmp_path / "report.html")
    assert "car-seat" in (tmp_path / "report.html").read_text("utf-8")
    with pytest.raises(ConfigError, match=r"\.jsonl, \.csv, \.parquet or \.html"):
        results.save(tmp_path / "out.txt")
    with pytest.raises(ConfigError, match="items=True"):
        results.save(tmp_path / "out.jsonl", items=True)


def test_the_python_examples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    """What the README and the page about Python show can be pasted into a typed project as it is."""
    examples = []
    for page in ("README.md", "README.zh.md", "docs/python.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
        assert blocks, page
        examples.append(tmp_path / f"{page.replace('.', '_').replace('/', '_')}.py")
        examples[-1].write_text("\n\n".join(blocks), encoding="utf-8")
    # Only the example is judged here; the package has its own check.
    words = ["--strict", "--follow-imports=silent", "--config-file=", "--python-executable", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "--cache-dir", str(tmp_path / "cache"), *map(str, examples)],
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("limit", [0, -1, "1", True])
def test_a_limit_on_money_is_a_positive_number(limit: Any) -> None:
    """As on the command line: what cannot be a budget is refused before anything is read."""
    with pytest.raises(ConfigError, match="max_cost= is a number"):
        steelyard.evaluate([], max_cost=limit)


def test_a_language_without_reports_is_named() -> None:
    """Not an error about a file of the package."""
    with pytest.raises(ConfigError, match="zh-Hans, zh-Hant, en"):
        steelyard.evaluate([], "atomic", "embedded").summary("fr")  # type: ignore[arg-type]
