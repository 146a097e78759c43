"""The bench: its stub answers what is asked, its faults are the same for all, its harness runs end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.judges.schema import strict_schema
from steelyard.tasks import TASKS

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules import each other as scripts do."""
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.fixture
def lab() -> Iterator[Any]:
    """A stub at work, with Steelyard run from this checkout."""
    from harness import Lab

    with Lab(Path(sys.executable)) as opened:
        yield opened


def request(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    return {"model": "stub", "messages": [{"role": "user", "content": text}], "response_format": form}


@pytest.mark.parametrize("task", TASKS)
def test_stub_answers_satisfy_the_schema(task: str) -> None:
    """Whatever a task's reply must look like, the stub's answer does."""
    from answers import answer_to

    _, reply = TASKS[task]
    content, tool = answer_to(request("Unit-0000001", strict_schema(reply)), "Unit-0000001")
    assert tool is None
    assert reply.model_validate_json(content)


def test_stub_answers_item_by_item() -> None:
    """The ids of a fenced, numbered block come back one to one, and not those of another block."""
    from answers import answer_to

    code = "0123456789abcdef"
    text = f"<sentences {code}>\n2. One.\n5. Two.\n</sentences {code}>\n<atoms {code}>\n7. Three.\n</atoms {code}>"
    said = json.loads(answer_to(request(text, strict_schema(TASKS["scorecard.judge"][1])), text)[0])
    assert [row["id"] for row in said["sentences"]] == [2, 5]
    assert [row["id"] for row in said["atoms"]] == [7]


def test_stub_says_the_same_when_asked_in_other_words() -> None:
    """Labels depend on the sample, not on the wording, and differ between samples."""
    from answers import answer_to

    schema = strict_schema(TASKS["scorecard.judge"][1])

    def labels(text: str) -> str:
        return answer_to(request(text, schema), text)[0]

    said = [labels(f"Judge Unit-{number:07d}.") for number in range(20)]
    assert said == [labels(f"Once more, as that was broken: Unit-{number:07d}") for number in range(20)]
    assert len(set(said)) > 1


def test_stub_mends_a_broken_reply_when_asked() -> None:
    """ragas sends the prompt and the broken reply again; a willing model would then say what it should have said."""
    from answers import answer_to

    schema = json.dumps(
        {"type": "object", "properties": {"statements": {"type": "array", "items": {"type": "string"}}}}
    )
    prompt = f"Split Unit-0000001, as specified in JSON Schema:\n{schema}Do not use single quotes."
    said = answer_to({}, prompt)[0]
    given = json.dumps({"output_string": said[:20], "prompt_value": prompt}, indent=4)
    text = json.dumps({"type": "object", "properties": {"text": {"type": "string"}}})
    mend = (
        "The output string did not satisfy the constraints given in the prompt, as specified in JSON Schema:\n"
        f"{text}\nNow perform the same with the following input\ninput: {given}\nOutput: "
    )
    assert json.loads(answer_to({}, mend)[0])["text"] == said


def test_every_client_meets_the_same_faults() -> None:
    """429, 500 and broken replies depend on what is asked and how often, not on who asks when."""
    from stub import State

    def faults(order: list[int]) -> dict[int, tuple[int, bool]]:
        state = State()
        state.control({"p429": 0.2, "p500": 0.2, "p_broken": 0.2})
        met = {}
        for number in order:
            body = request(f"Unit-{number:07d}", {"type": "object", "properties": {"label": {"type": "string"}}})
            plan = state.completion(json.dumps(body).encode())
            content = plan.reply["choices"][0]["message"]["content"] if plan.status == 200 else "{}"
            met[number] = plan.status, not content.endswith("}")
        return met

    forward, backward = faults(list(range(200))), faults(list(range(199, -1, -1)))
    assert forward == backward
    assert {status for status, _ in forward.values()} == {200, 429, 500}
    assert any(broken for _, broken in forward.values())


def test_another_try_meets_another_draw() -> None:
    """No call is doomed: asked often enough, every one is answered."""
    from stub import State

    state = State()
    state.control({"p429": 0.5})
    for number in range(50):
        body = json.dumps(request(f"Unit-{number:07d}", {"type": "object"})).encode()
        assert any(state.completion(body).status == 200 for _ in range(20))


def test_samples_are_the_same_everywhere() -> None:
    """A longer file begins with a shorter one, and no two samples are alike."""
    from samples import samples

    some, more = list(samples(20)), list(samples(40))
    assert more[:20] == some
    assert len({sample["answer"] for sample in more}) == 40


def test_own_clients_run_end_to_end(lab: Any) -> None:
    """Steelyard scores all samples in three calls each, through either door, and the bare loop repeats those calls."""
    from environments import BARE, COMMAND, EVALUATE
    from harness import Load

    load = Load(samples=5, concurrency=4, latency_ms=5)
    runs = {name: lab.run(name, load) for name in (COMMAND, EVALUATE, BARE)}
    for run in runs.values():
        assert run.ended == "exit 0", run.log
        assert (run.calls, run.stub["repeated"]) == (15, 0)
        assert run.stub["peak_in_flight"] <= 4
        assert 0 < run.cpu_s <= run.whole_cpu_s
    assert runs[COMMAND].scored == runs[EVALUATE].scored == 5
    assert runs[COMMAND].values == runs[EVALUATE].values
    assert runs[BARE].stub["prompt_chars"] == runs[COMMAND].stub["prompt_chars"]


def test_a_killed_run_is_told_from_a_failed_one(lab: Any) -> None:
    """The harness kills when it is told to and then counts what is asked a second time."""
    from environments import COMMAND
    from harness import Load

    load = Load(samples=5, concurrency=1, latency_ms=50)
    killed = lab.run(COMMAND, load, kill_when=lambda stats: stats.get("requests", 0) >= 8)
    assert killed.ended == "killed"
    again = lab.run(COMMAND, load, keep_counting=True)  # in a folder of its own, so nothing is remembered
    assert again.stub["settled_asked_again"] >= 1
    assert again.stub["repeated"] == killed.stub["distinct"]


def test_the_page_shows_every_figure(tmp_path: Path) -> None:
    """`run.py` measures what it is asked to and writes it as JSON and as a page that says it is preliminary."""
    import run

    page = tmp_path / "benchmarks.md"
    given = ["--no-peers", "--small", "--samples", "5", "--peer-samples", "5", "--big", "20"]
    given += ["--figures", "calls", "memory"]
    assert run.main([*given, "--python", sys.executable, "--results", str(tmp_path), "--write", str(page)]) == 0
    (results,) = (json.loads(path.read_text("utf-8")) for path in tmp_path.glob("*.json"))
    assert [row["calls"] for row in results["figures"]["calls"]] == [3.0, 3.0]
    assert "**Preliminary**" in page.read_text("utf-8")
    assert "| steelyard run | 20 |" in page.read_text("utf-8")


def test_sections_that_people_wrote_stay_on_the_page() -> None:
    """A new page has the figures anew and keeps, in its place, what no figure makes."""
    from table import with_other_sections

    before = "# Benchmarks\n\n## CPU per call\n\nold\n\n## By hand\n\nkept\n\n## Faults\n\nold\n\n## Last\n\nkept too\n"
    page = "# Benchmarks\n\n## CPU per call\n\nnew\n\n## Faults\n\nnew\n"
    written = with_other_sections(page, before)
    assert written == before.replace("old", "new")
    assert with_other_sections(page, written) == written
    assert with_other_sections(page, "") == page


def test_results_are_written_row_by_row(tmp_path: Path) -> None:
    """A run that is stopped halfway leaves the rows it has, with the load before them."""
    from results import Results

    def rows() -> Iterator[dict[str, Any]]:
        yield {"client": "steelyard run", "calls": 3.0}
        raise KeyboardInterrupt

    results = Results(tmp_path, {"steelyard run": "1"})
    with pytest.raises(KeyboardInterrupt):
        results.add("calls", rows())
    written = json.loads(results.file.read_text("utf-8"))
    assert [row["calls"] for row in written["figures"]["calls"]] == [3.0]
    assert len(written["measured"]["calls"]["loads"]) == 2


def test_the_viewers_figures_come_onto_the_page(tmp_path: Path) -> None:
    """`viewer.py` leaves results of the same form: the times of every look, and the weight of every page."""
    from table import markdown

    sizes = ["--small", "5", "--large", "20", "--rounds", "1", "--results", str(tmp_path)]
    subprocess.run([sys.executable, str(BENCH / "viewer.py"), *sizes], check=True, capture_output=True)
    (written,) = (json.loads(path.read_text("utf-8")) for path in tmp_path.glob("*.json"))
    assert [len(written["figures"][name]) for name in ("viewer", "pages")] == [29, 15]
    assert "| searched, no hit | 20 | 5 |" in markdown(written)
    assert all(row["kb"] > 1 for row in written["figures"]["pages"])


def test_a_run_for_one_figure_serves_another_that_does_not_hang_on_time() -> None:
    """Calls and tokens are counted in the run for the CPU where there was one of the same load, not in a second one."""
    from environments import COMMAND
    from figures import Sizes, calls
    from harness import Load, Measured

    made = Measured(COMMAND, Load(10, latency_ms=20), "exit 0", True, 1, 1, 1, 1, 50, {"requests": 30})
    (row,) = calls(None, Sizes(peer_samples=10, clients=[COMMAND], seen=[made]))  # type: ignore[arg-type]
    assert row["calls"] == 3.0


def test_a_killed_run_goes_on(lab: Any) -> None:
    """The figure on kill -9: no more is asked again than was in flight, and all is scored as without the kill."""
    from environments import COMMAND
    from figures import Sizes, resume

    (row,) = resume(lab, Sizes(samples=40, clients=[COMMAND]))
    assert row["ended"] == "exit 0"
    assert row["calls_needed"] == 120
    assert (row["scored"], row["changed"]) == (40, 0)
    # Which of the two hangs on time: on a busy machine an answer may have been on the wire for long without being read.
    asked_again = row["answered_asked_again"] + row["others_asked_again"]
    assert asked_again <= 32
    assert row["calls_in_all"] == 120 + asked_again


def test_what_installs_is_uv_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv is taken from the path, and compiles as pip does; without it, the environment's own pip."""
    from environments import installer

    monkeypatch.setenv("PATH", str(tmp_path))
    assert installer(Path("python"))[:3] == ["python", "-m", "pip"]
    uv = tmp_path / "uv"
    uv.touch(mode=0o755)
    assert installer(Path("python"))[0] == str(uv)
    assert "--compile-bytecode" in installer(Path("python"))


def results(at: str, loads: list[float], figures: dict[str, Any]) -> dict[str, Any]:
    machine = {"processor": "P", "cores": "2", "system": "S", "python": "3"}
    measured = {name: {"at": at, "loads": loads} for name in figures}
    given = {"preliminary": False, "machine": machine, "versions": {}, "missing": {}}
    return {**given, "measured": measured, "figures": figures}


def test_a_page_of_several_runs_shows_the_last_of_what_was_measured_twice() -> None:
    """Figures of several runs come onto one page, and each table says when its rows were measured and at what load."""
    from table import markdown

    def row(client: str, cpu: float) -> dict[str, Any]:
        return {"client": client, "samples": 200, "concurrency": 32, "cpu_ms_per_call": cpu, "ended": "exit 0"}

    first = results("2026-01-01 08:00", [9.5, 2.0, 10.0], {"cpu": [row("ragas", 6.5), row("steelyard run", 7.25)]})
    second = results("2026-01-02 09:30", [0.3, 0.3], {"cpu": [row("steelyard run", 1.25)]})
    page = markdown(first, second)
    assert "6.50" in page
    assert "1.25" in page
    assert "7.25" not in page
    assert page.index("| steelyard run") < page.index("| ragas")
    assert (
        "Measured 2026-01-02 09:30, load 0.3 (steelyard run); 2026-01-01 08:00, load 2.0 to 10.0 (the peers)." in page
    )
    assert "Measured 2026-01-01 08:00, load 2.0 to 10.0." in markdown(first)


def test_peers_of_several_runs_are_named_below_their_table() -> None:
    """Where not all peers come from one run, the page says which come from which."""
    from table import markdown

    runs = [
        results(f"2026-01-0{day} 08:00", [day], {"calls": [{"client": name, "samples": 200, "calls": 3.0}]})
        for day, name in ((1, "ragas"), (2, "deepeval"))
    ]
    assert "Measured 2026-01-01 08:00, load 1.0 (ragas); 2026-01-02 08:00, load 2.0 (deepeval)." in markdown(*runs)


def test_a_page_of_several_runs_keeps_the_most_requests_in_flight() -> None:
    """A limit that was broken in one run is not hidden by another run that kept it."""
    from table import rows_of

    peaks = [[{"client": "ragas", "limit": 32, "peak": peak}] for peak in (31, 40, 32)]
    runs = [results("2026-01-01 08:00", [0.0], {"in-flight": rows}) for rows in peaks]
    assert [row["peak"] for row in rows_of("in-flight", runs)] == [40]
