"""What build servers and code hosts get: comments, JUnit, SARIF, and the action and template that put them together."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import junitparser
import pytest
import sarif_pydantic
import yaml
from aiohttp import web
from markdown_it import MarkdownIt

import report_fixtures as fixtures
from code_host import CodeHost
from command import RAG, RECORDED, Steelyard, process_environment, write_lines
from steelyard.errors import CommentError, ConfigError
from steelyard.integrations.code_hosts import change_of, marked, post
from steelyard.reports.blocks import Lines
from steelyard.reports.markdown import WORD_JOINER, document, inert

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
TEMPLATE = yaml.safe_load((ROOT / "integrations" / "gitlab" / "steelyard.yml").read_text("utf-8"))[".steelyard"]


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with CodeHost() as running:
        yield running


@pytest.fixture
def judged(steelyard: Steelyard) -> Steelyard:
    """The command line after the examples were judged."""
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet").code == 0
    return steelyard


# --- the comment -----------------------------------------------------------------------------------


def test_the_comment_has_verdict_intervals_and_the_lowest_samples(judged: Steelyard) -> None:
    """First the mark, then the verdict sentence, the checks with intervals, at most five samples."""
    done = judged("gate", "last", "--require", "accuracy>=0.9", "--comment", "c.md", "--lang", "en")
    assert done.code == 6
    said = Path("c.md").read_text("utf-8")
    assert said.startswith("<!-- steelyard:atomic -->\n### Steelyard · Gate: Failed · Atomic accuracy\n")
    assert "Failed: 1 of 2 checks passed." in said
    assert "| 70.0% | 14.5–100.0% | 5 of 8 |" in said
    assert "| car-seat |" in said
    rows = said.partition("#### Lowest scores")[2].count("\n| ") - 2
    assert 1 <= rows <= 5


def test_the_comment_says_how_the_run_stands_to_its_baseline(judged: Steelyard) -> None:
    """With a baseline, the sentence of the comparison comes first."""
    judged("gate", "last", "--baseline", "last", "--comment", "c.md", "--lang", "en")
    assert "No difference: all 23 paired scores are" in Path("c.md").read_text("utf-8")


HOSTILE = (
    "@alice ping #12 !34 &5 %6 ~bug $7 GH-8 acme/repo#9 [x](http://evil.example) ![i](http://evil.example/i.png) "
    "<img src=x onerror=alert(1)> www.evil.example https://evil.example a@b.example `code` | cell"
)


def test_judged_text_notifies_nobody_and_links_nowhere(steelyard: Steelyard) -> None:
    """No mention, reference, link, image or tag of a judged text survives what Markdown makes of the comment."""
    verdict = fixtures.atomic("hostile <b>@bob</b>")
    item = verdict.items[0].model_copy(update={"label": "wrong", "text": HOSTILE, "reason": HOSTILE})
    line = verdict.model_copy(update={"items": (item,), "scores": {**verdict.scores, "accuracy": 0.0}}).line()
    write_lines(Path("lines.jsonl"), [line])
    steelyard("gate", "lines.jsonl", "--require", "accuracy>=0.9", "--comment", "c.md", "--lang", "en")
    said = Path("c.md").read_text("utf-8")
    assert len(said) < 65_536
    shown = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(said.partition("\n")[2])
    tags = set(re.findall(r"<(\w+)", shown))
    assert tags <= {"h3", "h4", "p", "br", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    text = re.sub(r"<[^>]*>", "", shown).replace("&amp;", "&").replace("&quot;", '"')
    # As the hosts look for them: a sign and then a word, in the text that is left.
    for reference in (r"@\w", r"#\d", r"!\d", r"&\d", r"%\d", r"~\w", r"\$\d", r"GH-\d", r"https?://", r"www\.\w"):
        assert not re.search(reference, text), reference
    assert "alice" in text


def test_what_is_inert_looks_the_same() -> None:
    """Only invisible characters are added."""
    written = document([Lines(("Accuracy 50.0% of @team: see #1 at http://x.example",))])
    assert inert(written).replace(WORD_JOINER, "") == written


# --- posting ---------------------------------------------------------------------------------------

BODY = "<!-- steelyard:atomic -->\n### Passed\n"


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_one_comment_is_made_then_kept_up_to_date(host: CodeHost, kind: str) -> None:
    """The own comment is found by its mark among hundreds of others, on a later page too."""
    change = change_of(getattr(host, kind))
    for n in range(130):
        host.say(f"comment {n} that quotes {BODY}")
    outcomes = []
    for body in (BODY, BODY, BODY.replace("Passed", "Failed")):
        mark, text = marked(body, None)
        outcomes.append(asyncio.run(post(change, mark, text)))
    assert outcomes == ["created", "unchanged", "updated"]
    own = [comment["body"] for comment in host.comments if comment["body"].startswith("<!--")]
    assert own == [BODY.replace("Passed", "Failed")]
    assert len(host.comments) == 131


def test_gates_of_one_change_have_comments_of_their_own(host: CodeHost) -> None:
    """`--name` tells them apart."""
    change = change_of(host.github)
    for name in (None, "faq", "faq"):
        asyncio.run(post(change, *marked(BODY, name)))
    assert [comment["body"].partition("\n")[0] for comment in host.comments] == [
        "<!-- steelyard:atomic -->",
        "<!-- steelyard:faq -->",
    ]


def test_a_refusal_is_told_without_the_token(host: CodeHost) -> None:
    """The host's answer and the remedy are in the message, the token is not; no redirect is followed."""
    wrong = change_of({**host.github, "GITHUB_TOKEN": "wr0ng-token"})
    with pytest.raises(CommentError, match=r"GitHub answered 401 .*Bad credentials.*the token is not valid") as told:
        asyncio.run(post(wrong, *marked(BODY, None)))
    assert "wr0ng-token" not in str(told.value)
    host.refuse = web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"})
    with pytest.raises(CommentError, match="answered 302"):
        asyncio.run(post(change_of(host.gitlab), *marked(BODY, None)))
    gone = change_of({**host.github, "GITHUB_API_URL": "http://127.0.0.1:9"})
    with pytest.raises(CommentError, match="cannot be asked") as told:
        asyncio.run(post(gone, *marked(BODY, None)))
    assert host.token not in str(told.value)


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("GITHUB_TOKEN", "GITHUB_TOKEN is not set"),
        ("GITHUB_REF", "about no pull request; name one with --number"),
        ("GITHUB_REPOSITORY", "not a GitHub or GitLab build"),
        ("GITLAB_TOKEN", "GITLAB_TOKEN is not set"),
        ("CI_MERGE_REQUEST_IID", "about no merge request"),
    ],
)
def test_what_the_environment_lacks_is_named(host: CodeHost, missing: str, told: str) -> None:
    """Outside a build, or without a token, the error says what to set."""
    kind = host.gitlab if missing.startswith(("GITLAB", "CI")) else host.github
    with pytest.raises(ConfigError, match=told):
        change_of({name: value for name, value in kind.items() if name != missing})


def test_the_number_stands_in_the_event_too(host: CodeHost, tmp_path: Path) -> None:
    """Builds of `pull_request_target` and of comments name the pull request in their event only."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    change = change_of({**host.github, "GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_PATH": str(event)})
    assert change.comments.endswith("/repos/acme/assistant/issues/7/comments")


def test_only_comments_with_a_mark_are_posted(steelyard: Steelyard) -> None:
    """Any other file would be posted again and again."""
    Path("c.md").write_text("hello")
    assert "has no mark" in steelyard("comment", "c.md").err
    assert "there is no such file" in steelyard("comment", "d.md").err
    with pytest.raises(ConfigError, match="small letters"):
        marked(BODY, "Über --> x")


# --- JUnit and SARIF -------------------------------------------------------------------------------


def test_junit_of_a_run_is_read_by_a_junit_reader(judged: Steelyard) -> None:
    """A case for each sample: failures where labels count against it, with the statement in the message."""
    judged("report", "last", "--as", "junit", "-o", "run.xml", "--lang", "en")
    suite = next(iter(junitparser.JUnitXml.fromfile("run.xml")))
    assert (suite.tests, suite.failures, suite.errors) == (8, 3, 0)
    (seat,) = (case for case in suite if case.name == "car-seat")
    assert "wrong: ISOFIX" in seat.result[0].message


def test_junit_has_unread_and_unjudged_samples_as_errors(steelyard: Steelyard) -> None:
    """What was not judged is no pass; control characters cannot break the XML."""
    odd = {"id": "a\x07b", "question": "?", "answer": "x \x00 y", "references": ["z"]}
    rows = [odd, {"id": "bad", "question": "?"}]
    write_lines(Path("rows.jsonl"), rows)
    steelyard("run", "rows.jsonl", "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    steelyard("report", "last", "--as", "junit", "-o", "run.xml")
    suite = next(iter(junitparser.JUnitXml.fromfile("run.xml")))
    assert (suite.tests, suite.failures, suite.errors) == (2, 0, 2)


def results_of(path: str) -> list[dict[str, Any]]:
    text = Path(path).read_text("utf-8")
    parsed = sarif_pydantic.Sarif.model_validate_json(text)
    assert (parsed.version, len(parsed.runs)) == ("2.1.0", 1)
    return json.loads(text)["runs"][0]["results"]


def test_sarif_points_at_the_line_of_the_sample(judged: Steelyard, tmp_path: Path) -> None:
    """Blank lines and bad rows before it are counted; every result has its rule, level, place and fingerprint."""
    rows = Path(RAG).read_text("utf-8").splitlines()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "some answers.jsonl").write_text("\n".join(["", "{broken", *rows]), encoding="utf-8")
    judged("run", tmp_path / "data" / "some answers.jsonl", "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    judged("report", "last", "--as", "sarif", "-o", "run.sarif", "--lang", "en")
    results = results_of("run.sarif")
    document = json.loads(Path("run.sarif").read_text("utf-8"))
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["partialFingerprints"]["steelyard/v1"]
    seat = next(one for one in results if one["message"]["text"].startswith("car-seat"))
    place = seat["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "data/some%20answers.jsonl"
    assert place["region"]["startLine"] == 4
    unread = next(one for one in results if one["ruleId"] == "unreadable-row")
    assert unread["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_sarif_of_changed_data_has_no_lines(judged: Steelyard) -> None:
    """A line of another version of the file would be the wrong one."""
    Path("mine.jsonl").write_text(Path(RAG).read_text("utf-8"), encoding="utf-8")
    judged("run", "mine.jsonl", "-p", "atomic", "-j", RECORDED, "--progress", "quiet")
    Path("mine.jsonl").write_text("\n\n" + Path(RAG).read_text("utf-8"), encoding="utf-8")
    judged("report", "last", "--as", "sarif", "-o", "run.sarif")
    lines = {one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results_of("run.sarif")}
    assert lines == {1}


def test_sarif_messages_hold_no_placeholder_and_no_link(steelyard: Steelyard) -> None:
    """Judged text with SARIF's own syntax stays text."""
    verdict = fixtures.atomic("s")
    item = verdict.items[0].model_copy(update={"label": "wrong", "text": "see {0} and [here](1)", "reason": ""})
    write_lines(Path("lines.jsonl"), [verdict.model_copy(update={"items": (item,)}).line()])
    steelyard("report", "lines.jsonl", "--as", "sarif", "-o", "run.sarif", "--lang", "en")
    (result,) = results_of("run.sarif")
    assert result["message"]["text"].startswith("s · wrong: see {{0}} and \\[here\\](1)")


def test_show_has_no_form_for_build_servers(judged: Steelyard) -> None:
    """They are about whole runs; the error says where to find them."""
    assert "steelyard report --as sarif" in judged("show", "last", "car-seat", "--as", "sarif").err


# --- the action and the template -------------------------------------------------------------------


def scripts() -> list[str]:
    return [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]


def test_no_input_is_pasted_into_a_script() -> None:
    """Expressions of the host stand in `env` only: what a user passes is never code."""
    assert not [script for script in scripts() if "${{" in script]
    gate = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    passed = {found for value in gate["env"].values() for found in re.findall(r"inputs\.([\w-]+)", value)}
    assert passed | {"version"} == set(ACTION["inputs"])


def build(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A step as the host runs it: bash, the variables, `steelyard` and `python` on the path."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for name, words in (("steelyard", "-m steelyard"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tools / name).chmod(0o755)
    clean = {name: value for name, value in process_environment().items() if not name.startswith("STEELYARD_")}
    full = {**clean, **environment, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", script], cwd=folder, env=full, capture_output=True, text=True, timeout=300)


def test_the_action_gates_and_comments(tmp_path: Path, host: CodeHost) -> None:
    """Its own script, run as GitHub runs it: exit code, output, summary, files and one comment."""
    (tmp_path / "answers.jsonl").write_text(Path(RAG).read_text("utf-8"), encoding="utf-8")
    inputs = {name: str(given.get("default", "")) for name, given in ACTION["inputs"].items()}
    inputs |= {"data": "answers.jsonl", "judge": RECORDED, "require": "accuracy>=0.9\ncoverage>=0.5", "name": "faq"}
    gate = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in gate["env"].items()
    }
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = build(gate["run"], tmp_path, {**environment, **files, **host.github})
    assert done.returncode == 6, done.stderr
    assert (tmp_path / "output").read_text() == "outcome=failed\n"
    assert "70.0%" in (tmp_path / "summary.md").read_text("utf-8")
    made = {path.name for path in (tmp_path / "steelyard-out").iterdir()}
    assert made == {"results.jsonl", "gate.xml", "gate.md", "samples.xml", "results.sarif", "comment.md"}
    assert host.comments[0]["body"].startswith("<!-- steelyard:faq -->")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("::stop-commands::")
    assert lines[-1] == f"::{lines[0].removeprefix('::stop-commands::')}::"
    assert host.token not in done.stdout + done.stderr


def test_the_template_gates_and_comments(tmp_path: Path, host: CodeHost) -> None:
    """The same for GitLab; a gate that passes leaves with 0."""
    (tmp_path / "answers.jsonl").write_text(Path(RAG).read_text("utf-8"), encoding="utf-8")
    variables = {**TEMPLATE["variables"], "STEELYARD_JUDGE": RECORDED, "STEELYARD_REQUIRE": "accuracy>=0.5"}
    (script,) = TEMPLATE["script"]
    done = build(script, tmp_path, {**variables, **host.gitlab})
    assert done.returncode == 0, done.stderr
    assert host.comments[0]["body"].startswith("<!-- steelyard:atomic -->")
    made = {path.name for path in (tmp_path / "steelyard-out").iterdir()}
    reported = {Path(path).name for path in TEMPLATE["artifacts"]["reports"]["junit"]}
    assert reported <= made
