"""The pytest plugin in real sessions: assertions, a test for each sample, reports, xdist, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import steelyard
from command import fact_server, facts, installed_plugin, judge_facts, point_to, process_environment
from endpoint import Loopback, Request
from steelyard import testing
from steelyard.testing import Bench, NotMet, assert_that

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
PASSAGES = ["The museum is closed on Mondays.", "The museum opens at nine every day. Tickets are sold at the desk."]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench with the judge in the box. It also loads what nested sessions would load, and unload, again."""
    bench = Bench("embedded", tmp_path_factory.mktemp("bench") / "store.db")
    bench.assert_that("The museum opens at nine.").is_grounded_in(PASSAGES)
    return bench


@pytest.fixture
def site(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plugin as an installed package brings it, in a folder without settings."""
    folder = installed_plugin(pytester.mkdir("site"))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{folder}")
    for name in ("STEELYARD_JUDGE", "STEELYARD_STORE", "STEELYARD_CONFIG", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return folder


@pytest.fixture
def server() -> Iterator[Loopback]:
    with fact_server() as running:
        yield running


EACH = """
    import pytest

    @pytest.mark.steelyard("facts.jsonl", protocol="atomic")
    def test_facts(steelyard):
        assert steelyard.check().scores["accuracy"] == 1
"""


# --- assertions ------------------------------------------------------------------------------------


def test_a_contradiction_is_told_with_the_passage_it_contradicts(embedded: Bench) -> None:
    """The message has the wrong statement, the reason, and the passage in full."""
    with pytest.raises(NotMet) as failed:
        embedded.assert_that("The museum opens at ten.").is_grounded_in(PASSAGES)
    message = str(failed.value)
    assert message.startswith("The answer is not grounded in the passages (atomic, embedded)\n")
    assert "✗ wrong: The museum opens at ten." in message
    assert "Passage 2: The museum opens at nine every day. Tickets are sold at the desk." in message
    assert failed.value.verdict.scores["accuracy"] == 0


def test_what_the_passages_do_not_mention_is_ungrounded_but_not_wrong(embedded: Bench) -> None:
    """`is_grounded_in` wants support for everything; `has_no_wrong_statement` only forbids contradictions."""
    said = embedded.assert_that("The museum opens at nine. It has a rose garden.")
    assert said.has_no_wrong_statement(PASSAGES) is said
    with pytest.raises(NotMet, match="rose garden"):
        said.is_grounded_in(PASSAGES)
    with pytest.raises(NotMet, match="contradicts the passages"):
        embedded.assert_that("The museum opens at ten.").has_no_wrong_statement(PASSAGES)


def test_answers_points_and_prompts(embedded: Bench) -> None:
    """The other assertions hold and break as their protocols say."""
    embedded.assert_that("The museum opens at nine.").answers("When does the museum open?", PASSAGES)
    with pytest.raises(NotMet, match="Reaches the right conclusion"):
        embedded.assert_that("The museum opens at ten.").answers("When does the museum open?", PASSAGES)
    embedded.assert_that("It opens at nine and closes at five.").covers("It opens at nine")
    with pytest.raises(NotMet, match=r"missing: It is closed on Mondays"):
        embedded.assert_that("It opens at nine.").covers("It opens at nine", "It is closed on Mondays")
    prompt = "You are a guide. Every answer has at most 20 characters."
    embedded.assert_that("At nine.").follows(prompt, "The answer has at most 20 characters")
    with pytest.raises(NotMet, match="does not follow the system prompt"):
        embedded.assert_that("At nine, as on every other day.").follows(prompt, "The answer has at most 20 characters")


def test_a_criterion_that_the_prompt_does_not_ask_for_does_not_pass(embedded: Bench) -> None:
    """It was not tested, so the test must not pass."""
    with pytest.raises(NotMet, match="no basis in the system prompt"):
        embedded.assert_that("Bonjour").follows("Be polite.", "Answers in Latin verse")


def test_what_cannot_be_judged_fails(embedded: Bench) -> None:
    """Neither an empty answer nor a judge that cannot tell lets a test pass."""
    with pytest.raises(NotMet, match="nothing to judge"):
        embedded.assert_that("").is_grounded_in(PASSAGES)
    with pytest.raises(NotMet, match="Not everything could be judged"):
        embedded.assert_that("Hello.").meets(["Is the answer warm and witty?"])


def test_scores_decide_where_that_is_required(embedded: Bench) -> None:
    """A threshold on a score takes the place of the labels; a score that does not exist is a mistake."""
    said = embedded.assert_that("The museum opens at nine. The museum is closed on Sundays.", passages=PASSAGES)
    said.passes("atomic", require="accuracy>=0.5")
    with pytest.raises(NotMet, match=r"Accuracy is 50\.0%; required: >= 90\.0%"):
        said.passes("atomic", require=["accuracy>=0.9"])
    with pytest.raises(steelyard.ConfigError, match="there is no score 'tone'"):
        said.passes("atomic", require="tone>=1")


def test_messages_are_in_the_language_of_the_answer(embedded: Bench) -> None:
    """A Chinese answer fails in Chinese."""
    with pytest.raises(NotMet, match="回答没有材料依据"):
        embedded.assert_that("博物馆十点开门。").is_grounded_in("博物馆每天九点开门。")


def test_settings_are_those_of_the_folder_where_tests_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Loopback
) -> None:
    """A test that changes the folder is judged by the same judge, into the same store."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir(), elsewhere.mkdir()
    monkeypatch.chdir(home)
    point_to(server)
    bench = Bench("mine")
    monkeypatch.chdir(elsewhere)
    bench.assert_that("Fact 1 holds.").is_grounded_in("Fact 1 holds, as everybody knows.")
    assert len(server.requests) == 2
    assert (home / ".steelyard" / "store.db").exists()
    assert list(elsewhere.iterdir()) == []


# --- sessions --------------------------------------------------------------------------------------


def test_the_public_doors_are_one() -> None:
    """`steelyard.testing` and the plugin offer the same assertion."""
    from steelyard.integrations import pytest_plugin

    assert pytest_plugin.assert_that is assert_that


@pytest.mark.usefixtures("embedded", "site")
def test_each_sample_is_a_test_and_a_second_run_costs_nothing(pytester: pytest.Pytester, server: Loopback) -> None:
    """The marker makes one test of each row; replies come from the store the next time."""
    facts(pytester.path / "facts.jsonl", 3)
    point_to(server, pytester.path / "steelyard.toml")
    pytester.makepyfile(EACH)
    done = pytester.runpytest_inprocess("-v", "--steelyard-judge", "mine")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["*test_facts?fact-1? PASSED*", "steelyard: 3 verdicts by mine*· 6 calls*"])
    assert len(server.requests) == 6
    again = pytester.runpytest_inprocess("--steelyard-judge", "mine")
    again.assert_outcomes(passed=3)
    again.stdout.fnmatch_lines(["steelyard: 3 verdicts by mine*· 0 calls*"])
    assert len(server.requests) == 6


@pytest.mark.usefixtures("embedded", "site")
def test_workers_of_xdist_share_the_store_and_report_together(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, server: Loopback
) -> None:
    """Two processes judge every sample once between them, and one report has all verdicts."""
    facts(pytester.path / "facts.jsonl", 6)
    point_to(server, pytester.path / "steelyard.toml")
    pytester.makepyfile(EACH)
    # Workers would load every other plugin that is installed here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    arguments = ("-p", "steelyard", "-p", "xdist.plugin", "-n", "2")
    arguments += ("--steelyard-judge", "mine", "--steelyard-report", "out/lines.jsonl")
    done = pytester.runpytest_subprocess(*arguments)
    done.assert_outcomes(passed=6)
    assert len(server.requests) == 12
    lines = [json.loads(line) for line in (pytester.path / "out" / "lines.jsonl").read_text("utf-8").splitlines()]
    assert {line["id"].partition("::")[2] for line in lines} == {f"test_facts[fact-{n}]" for n in range(1, 7)}
    pytester.runpytest_inprocess("-p", "steelyard", "--steelyard-judge", "mine").assert_outcomes(passed=6)
    assert len(server.requests) == 12


def one_wrong(request: Request) -> dict[str, Any]:
    """The second fact is wrong."""
    reply = judge_facts(request)
    if "fallback" in reply and "Fact 2 " in request.user:
        reply["atoms"][0]["label"] = "wrong"
    return reply


@pytest.mark.usefixtures("embedded", "site")
def test_a_failing_sample_is_told_and_reported_with_its_text_escaped(
    pytester: pytest.Pytester, server: Loopback
) -> None:
    """The page holds the samples of failed tests in full; judged text is no markup in it."""
    server.reply_for = one_wrong
    rows = [json.loads(line) for line in facts(pytester.path / "facts.jsonl", 2).read_text("utf-8").splitlines()]
    rows[1]["references"].append("<img src=x onerror=alert(1)>")
    lines = [json.dumps(row) for row in (*rows, {"id": "no-answer", "question": "?"})]
    (pytester.path / "facts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    point_to(server, pytester.path / "steelyard.toml")
    pytester.makepyfile(EACH)
    pytester.makeini("[pytest]\nsteelyard_judge = mine\nasyncio_default_fixture_loop_scope = function\n")
    done = pytester.runpytest_inprocess("--steelyard-report", "out.html")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        ["*NotMet: Labels count against the answer*", "*wrong*Fact 2 holds.", "*Passage 1: Fact 2 holds, as everybody*"]
    )
    done.stdout.fnmatch_lines(["the sample cannot be read: *facts.jsonl:3: *answer*"])
    page = (pytester.path / "out.html").read_text("utf-8")
    assert "test_facts[fact-2]" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img" not in page


@pytest.mark.usefixtures("embedded", "site")
def test_a_test_can_bring_its_own_answer(pytester: pytest.Pytester, server: Loopback) -> None:
    """`check(answer)` judges what the assistant says now instead of what the file holds."""
    facts(pytester.path / "facts.jsonl", 1)
    point_to(server, pytester.path / "steelyard.toml")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.steelyard("facts.jsonl", protocol="atomic", judge="mine", require="accuracy>=1")
        def test_facts(steelyard):
            assert steelyard.sample.answer == "Fact 1 holds."
            steelyard.check("Fact 7 holds.")
    """)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert "Fact 7 holds." in server.requests[0].user


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ('"nowhere.jsonl"', "nowhere.jsonl: there is no such file"),
        ('"facts.jsonl", protocol="atomik"', "there is no protocol 'atomik'"),
        ('"facts.jsonl", colour="red"', "has no 'colour'; it has protocol, options"),
        ('"facts.jsonl", "more.jsonl"', "takes one file, not 2"),
    ],
)
@pytest.mark.usefixtures("embedded", "site")
def test_a_wrong_marker_is_an_error_that_says_what_to_do(pytester: pytest.Pytester, marker: str, told: str) -> None:
    """Nothing is judged by a marker that cannot be understood."""
    facts(pytester.path / "facts.jsonl", 1)
    pytester.makepyfile(f"import pytest\n@pytest.mark.steelyard({marker})\ndef test_it(steelyard): steelyard.check()")
    done = pytester.runpytest_inprocess()
    assert done.ret != 0
    assert told in "\n".join((*done.outlines, *done.errlines))


@pytest.mark.usefixtures("site")
def test_a_report_of_an_unknown_form_is_refused_before_anything_is_paid(pytester: pytest.Pytester) -> None:
    """The form follows from the name of the file."""
    done = pytester.runpytest_inprocess("--steelyard-report", "out.pdf")
    assert "must end in .html, .md, .jsonl" in "\n".join(done.errlines)


@pytest.mark.usefixtures("site")
def test_a_session_that_does_not_use_it_is_left_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing heavy is imported, nothing is printed, no file is made, no fixture or marker of the user changes."""
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef steelyard():\n    return 'mine'\n")
    pytester.makepyfile("""
        import sys

        def test_it(steelyard):
            assert steelyard == "mine"
            heavy = {"pydantic", "aiohttp", "numpy", "jinja2", "steelyard.records"}
            assert heavy & set(sys.modules) == set()
            assert "steelyard.integrations.pytest_plugin" in sys.modules
    """)
    before = {path.name for path in pytester.path.iterdir()}
    # Other plugins that happen to be installed here import some of these themselves.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = pytester.runpytest_subprocess("-p", "steelyard", "-p", "no:cacheprovider", "--strict-markers")
    done.assert_outcomes(passed=1)
    assert "steelyard" not in "\n".join(line for line in done.outlines if not line.startswith("plugins:"))
    made = {path.name for path in pytester.path.iterdir()} - before
    assert made <= {"__pycache__", "runpytest-0", "runpytest-current", "stdout", "stderr"}


def test_the_plugin_imports_nothing_heavy() -> None:
    """What every session of everybody loads: the package's door and three small files."""
    code = (
        "import sys, pytest; before = set(sys.modules); import steelyard.integrations.pytest_plugin;"
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=process_environment(), capture_output=True, text=True)
    ours = ["steelyard", "steelyard.integrations", "steelyard.integrations.pytest_plugin", "steelyard.testing"]
    assert [name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names] == ours


def test_the_bench_of_a_session_ends_with_it(embedded: Bench) -> None:
    """After nested sessions, `assert_that` judges as before."""
    assert testing.bench is not embedded
