"""Panels and repeats at work: over HTTP, in the store, on the command line. Second looks are in test_verifying.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, facts, judge_facts, lines_of, process_environment, write_lines
from court import OPINIONS, asked, court, down, one, scripted, seat, told
from endpoint import Loopback, Request
from feeding import respond
from steelyard import ScriptedJudge, evaluate
from steelyard.engine.manifest import differing
from steelyard.errors import ConfigError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges import Member, PanelJudge, RecordedJudge, Recorder
from steelyard.protocols.grounded import ASKED
from steelyard.records import Ask
from steelyard.settings import Settings
from steelyard.store import Store


@pytest.fixture
def samples(steelyard: Steelyard) -> Path:
    return facts(Path("facts.jsonl"), 4)


# --- votes ---------------------------------------------------------------------------------------------------


def test_a_panel_votes_item_by_item(steelyard: Steelyard, samples: Path) -> None:
    """Three models over HTTP: the majority's label, its share of the votes, the reason of one who said so."""
    with court() as server:
        seat(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "fair+harsh+harshest", "-o", "out.jsonl")
        assert done.code == 0, done.err
        # The split is the first member's alone; the atoms are labelled by all three.
        assert len(server.requests) == 4 * (1 + 3)
    assert told() == [("wrong", 0.6667, ()), ("correct", 0.6667, ())] * 2
    lines = lines_of("out.jsonl")
    assert [line["items"][0]["reason"] for line in lines] == ["harsh", "fair"] * 2
    assert lines[0]["judge"] == "panel of fair:fair + harsh:harsh + harshest:harshest"
    assert lines[0]["usage"]["calls"] == 4
    out = " ".join(done.out.split())
    assert "Votes · Statements: a label has 66.7% of the votes on average; 0.0% of 4 items are unanimous, 0 left" in out
    with Store.open(Path(".steelyard/store.db")) as store:
        row = store.run("last")
        spent = row.manifest["usage_by_judge"]
        _, verdict = next(store.verdicts(row.id))
    assert {name: usage["calls"] for name, usage in spent.items()} == {
        "fair:fair": 8,
        "harsh:harsh": 4,
        "harshest:harshest": 4,
    }
    assert verdict.notes["votes"]["atoms"] == {"1": {"label": ["correct", "wrong", "wrong"]}}


def test_a_single_judge_has_no_votes(steelyard: Steelyard, samples: Path) -> None:
    """Without a panel, result lines are what they were: no confidence, no first label, no sentence about votes."""
    with court() as server:
        seat(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "fair", "-o", "out.jsonl")
    assert "Votes" not in done.out
    assert not {"confidence", "first"} & lines_of("out.jsonl")[0]["items"][0].keys()


def test_splits_are_left_open_or_escalated(steelyard: Steelyard, samples: Path) -> None:
    """Without a further judge a tie is undetermined; with one, it is asked about the split items only, and decides."""
    with court() as server:
        seat(server)
        two = ("-p", "atomic", "-j", "fair+harsh", "-o", "out.jsonl")
        assert steelyard("run", samples, *two).code == 0
        assert told() == [("undetermined", 0.5, ("split",)), ("correct", 1.0, ())] * 2
        assert lines_of("out.jsonl")[0]["scores"]["accuracy"] is None
        before = len(server.requests)
        assert steelyard("run", samples, *two, "--escalate", "harshest").code == 0
        assert {request.body["model"] for request in server.requests[before:]} == {"harshest"}
        assert len(server.requests) == before + 2
    assert told() == [("wrong", 0.6667, ("escalated",)), ("correct", 1.0, ())] * 2
    assert lines_of("out.jsonl")[0]["items"][0]["reason"] == "harshest"


def test_a_panel_from_the_settings_file(steelyard: Steelyard, samples: Path) -> None:
    """Weights, the bar and the further judge are a table of steelyard.toml, and `judges` lists it."""
    table = """
[judges.jury]
kind = "panel"
members = [{ judge = "fair", weight = 3 }, "harsh", "harshest"]
vote = "weighted"
min_agreement = 0.7
ties = "escalate"
escalate = "lost"
"""
    with court() as server:
        seat(server, table)
        assert steelyard("run", samples, "-p", "atomic", "-j", "jury", "-o", "out.jsonl").code == 0
    # Fair alone has 3 of 5 votes, which is below the bar; with harsh it has 4 of 5.
    assert told() == [("undetermined", 0.1667, ("escalated",)), ("correct", 0.8, ())] * 2
    column = [line.split("│")[2].strip() for line in steelyard("judges", "list").out.splitlines() if "│" in line]
    assert "panel: fair + harsh + harshest, ties to lost" in " ".join(column)


def test_repeats_are_asked_at_a_temperature(steelyard: Steelyard, samples: Path) -> None:
    """One model asked three times, each time anew, at a temperature at which it may answer otherwise."""
    seen: dict[str, int] = {}

    def wavering(request: Request) -> dict[str, Any]:
        given = judge_facts(request)
        if request.task == "atomic.judge":
            seen[request.user] = seen.get(request.user, 0) + 1
            given["atoms"][0]["label"] = "wrong" if seen[request.user] == 2 else "correct"
        return given

    with court() as server:
        server.reply_for = wavering
        seat(server)
        run = ("run", samples, "-p", "atomic", "-j", "fair", "--repeats", 3, "-o", "out.jsonl")
        assert steelyard(*run).code == 0
        assert {request.body["temperature"] for request in server.requests} == {0.7}
        assert len(server.requests) == 4 * (1 + 3)
        assert steelyard(*run).code == 0
        assert len(server.requests) == 4 * (1 + 3)
    assert told() == [("correct", 0.6667, ())] * 4
    assert lines_of("out.jsonl")[0]["judge"] == "panel of fair:fair ×3"


# --- members that fail --------------------------------------------------------------------------------------


def test_the_others_vote_when_a_member_fails() -> None:
    """A quorum is enough, also for the split; below it the sample is unjudged and says who failed."""
    verdict = one(PanelJudge([down("a"), scripted("b"), scripted("c")]))
    assert [(atom.label, atom.confidence) for atom in verdict.items] == [("correct", 1.0)] * 2
    verdict = one(PanelJudge([scripted("a"), down("b"), down("c")]))
    assert {atom.label for atom in verdict.items} == {"unjudged"}
    assert {atom.reason for atom in verdict.items} == {"timeout"}
    assert "2 of 3 judges failed: b was silent; c was silent" in verdict.notes["failure"]
    assert one(PanelJudge([scripted("a"), down("b"), down("c")], quorum=1)).status == "judged"


def test_a_further_judge_that_fails_leaves_it_open() -> None:
    """Then the item is as split as it was."""
    wrong = scripted("b", {"atoms": {1: {"label": "wrong"}}})
    verdict = one(PanelJudge([scripted("a"), wrong], escalate=down("z")))
    assert [(atom.label, atom.flags) for atom in verdict.items] == [("undetermined", ("split",)), ("correct", ())]


SPLITS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("grounded", {"checks": {2: {"label": 0}}}, ("answers_question", "unjudged", "split")),
    ("scorecard", {"key_points": {1: {"label": "missing"}}}, ("key_point", "unjudged", "split")),
    ("dialogue", {"criteria": {1: {"complies": "no"}}}, ("criterion", "unjudged", "split")),
]


@pytest.mark.parametrize(("protocol", "change", "expected"), SPLITS)
def test_what_has_no_label_for_doubt_is_unjudged(
    protocol: str, change: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Checks, key points and criteria are never `undetermined` by a split vote; they are unjudged, and say why."""
    verdict = one(PanelJudge([scripted("a"), scripted("b", change)]), protocol)
    item = next(item for item in verdict.items if "split" in item.flags)
    assert (getattr(item, "name", item.kind), item.label, item.reason) == expected  # type: ignore[union-attr]
    assert item.confidence == 0.5
    assert verdict.status == "partial"


def test_whether_there_was_an_answer_is_split() -> None:
    """Declining is called honest only where it is agreed that the background holds no answer; whose word comes first
    decides nothing, and a further judge does."""
    lazy, honest, also = (declining(name, answerable=name == "lazy") for name in ("lazy", "honest", "also"))
    for members in ([lazy, honest], [honest, lazy]):
        verdict = one(PanelJudge(members), "grounded")
        assert [flag for flag in verdict.flags if "abstention" in flag or "answerable" in flag] == [
            "unjudged:answerable:split"
        ]
        assert verdict.notes["answerable"] is None
        assert "correct_abstention" in one(PanelJudge(members, escalate=also), "grounded").flags
    decided = one(PanelJudge([lazy, honest, also]), "grounded")
    assert ("correct_abstention" in decided.flags, decided.notes["answerable"]) == (True, False)
    # Where the answer does not decline, nothing hangs on it, and it is only noted.
    other = ScriptedJudge(lambda ask: {**respond(ask), "answerable": False})
    plain = one(PanelJudge([scripted("a"), other]), "grounded")
    assert (plain.flags, plain.notes["answerable"]) == ((), None)


def declining(name: str, *, answerable: bool) -> ScriptedJudge:
    """A judge that finds an answer which declines, where the background holds one or not."""

    def reply(ask: Ask) -> Any:
        return {**respond(ask, checks={ASKED.index("not_fallback") + 1: {"label": 0}}), "answerable": answerable}

    made = ScriptedJudge(reply)
    made.name = name
    return made


def test_where_a_sentence_is_split() -> None:
    """Only the label they differ on is open."""
    verdict = one(PanelJudge([scripted("a"), scripted("b", {"sentences": {1: {"on_topic": False}}})]), "scorecard")
    sentence = verdict.items[0]
    assert (sentence.on_topic, sentence.support) == ("unjudged", "supported")  # type: ignore[union-attr]
    assert verdict.scores["faithfulness"] == 100


def test_a_member_whose_key_is_refused_ends_the_run(steelyard: Steelyard, samples: Path) -> None:
    """A panel that lost a member for good is another panel: nothing is scored by what is left of it."""
    with court() as server, court(key="another") as closed:
        seat(server)
        table = f'[judges.closed]\nbase_url = "{closed.url}"\nmodel = "fair"\nretries = 0\nkey_env = "MY_KEY"\n'
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write(table)
        done = steelyard("run", samples, "-p", "atomic", "-j", "fair+harsh+closed", "-o", "out.jsonl")
    assert done.code == 4
    assert lines_of("out.jsonl") == []


# --- the store ------------------------------------------------------------------------------------------------


def test_a_killed_panel_loses_nothing(steelyard: Steelyard, samples: Path, tmp_path: Path) -> None:
    """After kill -9 no member is asked again for what it had answered."""
    with court(latency=0.1) as server:
        seat(server)
        words = ["run", samples, "-p", "atomic", "-j", "fair+harsh+harshest", "--escalate", "lost", "-c", 2]
        running = subprocess.Popen(
            [sys.executable, "-m", "steelyard", *map(str, words)],
            cwd=tmp_path,
            env=process_environment(),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while len(server.requests) < 7 and time.monotonic() < deadline:
            time.sleep(0.01)
        running.kill()
        running.wait(30)
        server.latency = 0
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        # Only what was on its way when the process died may have been asked twice.
        assert len(set(asked(server))) == 16
        assert len(asked(server)) <= 18
    assert told() == [("wrong", 0.6667, ()), ("correct", 0.6667, ())] * 2


def test_rescoring_votes_again_without_a_call(steelyard: Steelyard, samples: Path) -> None:
    """Rescored, replayed from the run or from a recording, the verdicts are the very same."""
    with court() as server:
        seat(server)
        panel = ("-j", "fair+harsh", "--escalate", "harshest", "--verify", "lost")
        run = ("run", samples, "-p", "atomic", *panel, "-o", "first.jsonl", "--record", "replies.jsonl")
        assert steelyard(*run).code == 0
        calls = len(server.requests)
        assert steelyard("rescore", "last", "-o", "second.jsonl").code == 0
        for name, judge in (("third", "recorded:1"), ("fourth", "recorded:replies.jsonl")):
            done = steelyard("run", samples, "-p", "atomic", "-j", judge, "-o", f"{name}.jsonl")
            assert done.code == 0, done.err
        assert len(server.requests) == calls
    first = [{**line, "usage": None} for line in lines_of("first.jsonl")]
    assert [{**line, "usage": None} for line in lines_of("second.jsonl")] == first
    assert [{**line, "usage": None} for line in lines_of("third.jsonl")] == first
    fourth = [{**line, "usage": None, "judge": first[0]["judge"]} for line in lines_of("fourth.jsonl")]
    assert fourth == first
    assert first[0]["items"][0]["flags"]


def two_tables(server: Loopback, more: str = "") -> None:
    """Judges `a`, `b` and `c`: three tables that say the same of the same model."""
    table = f'base_url = "{server.url}"\nmodel = "fair"\nretries = 0\nkey_env = "MY_KEY"\n'
    tables = "".join(f"[judges.{name}]\n{table}\n" for name in "abc")
    Path("steelyard.toml").write_text(tables + more, encoding="utf-8")


def fickle_court() -> Loopback:
    """One model that says something else whenever it is asked the same: first correct, then wrong, and so on."""
    times: Counter[str] = Counter()

    def reply(request: Request) -> Any:
        given = judge_facts(request)
        if request.task == "atomic.judge":
            given["atoms"][0]["label"] = ("correct", "wrong", "undetermined")[times[request.user] % 3]
            times[request.user] += 1
        return given

    return Loopback(reply_for=reply)


def test_two_tables_of_one_endpoint_are_two_voices(steelyard: Steelyard, samples: Path) -> None:
    """Each is asked, each keeps its own reply: resumed, rescored, run again or replayed, both votes stay the same."""
    run = ("run", samples, "-p", "atomic", "-j", "a+b", "-c", 1)
    with fickle_court() as server:
        two_tables(server)
        # Stopped halfway: the rest is judged when the run is resumed.
        assert steelyard(*run, "--max-tokens", 120 * 7).code == 3
        assert steelyard("resume", "-o", "first.jsonl").code == 0
        judged = [request for request in server.requests if request.task == "atomic.judge"]
        assert len(judged) == 2 * 4
        calls = len(server.requests)
        assert steelyard("rescore", "last", "-o", "second.jsonl").code == 0
        assert steelyard(*run, "-o", "third.jsonl").code == 0
        assert steelyard("run", samples, "-p", "atomic", "-j", "recorded:1", "-o", "fourth.jsonl").code == 0
        assert len(server.requests) == calls
    first = told("first.jsonl")
    assert first == [("undetermined", 0.5, ("split",))] * 4
    assert [told(f"{name}.jsonl") for name in ("second", "third", "fourth")] == [first] * 3


def test_who_settles_a_split_is_a_voice_too(steelyard: Steelyard, samples: Path) -> None:
    """A further judge with the same endpoint as a member is asked itself, and not told what the member said."""
    with fickle_court() as server:
        two_tables(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "a+b", "--escalate", "c", "-c", 1, "-o", "first.jsonl")
        assert done.code == 0
        assert len([request for request in server.requests if request.task == "atomic.judge"]) == 3 * 4
        assert steelyard("rescore", "last", "-o", "second.jsonl").code == 0
    assert [atom[0] for atom in told("first.jsonl")] == ["undetermined"] * 4
    assert told("second.jsonl") == told("first.jsonl")


def test_a_panel_uses_what_its_members_said_alone(steelyard: Steelyard, samples: Path) -> None:
    """The journal is that of each judge: who judged alone before is not paid again for the panel, nor the other way."""
    with court() as server:
        seat(server)
        steelyard("run", samples, "-p", "atomic", "-j", "fair")
        before = len(server.requests)
        assert steelyard("run", samples, "-p", "atomic", "-j", "fair+harsh+harshest").code == 0
        assert len(server.requests) == before + 2 * 4
        steelyard("run", samples, "-p", "atomic", "-j", "fair", "-o", "out.jsonl")
        assert len(server.requests) == before + 2 * 4
    assert told() == [("correct", None, ())] * 4


def test_another_panel_cannot_finish_the_run(steelyard: Steelyard, samples: Path) -> None:
    """One run is one way of judging: other weights are another panel."""
    table = '[judges.jury]\nkind = "panel"\nmembers = ["fair", { judge = "harsh", weight = WEIGHT }]\n'
    with court() as server:
        seat(server, table.replace("WEIGHT", "2"))
        assert steelyard("run", samples, "-p", "atomic", "-j", "jury", "--max-tokens", 300, "-c", 1).code == 3
        seat(server, table.replace("WEIGHT", "3"))
        done = steelyard("resume")
        assert done.code == 2
        assert "was judged by panel of fair:fair + harsh:harsh (weight 2)" in done.err
        seat(server, table.replace("WEIGHT", "2"))
        assert steelyard("resume").code == 0


def test_what_tells_two_panels_apart() -> None:
    """Descriptions are compared voice by voice; prices and time limits shape no answer."""

    def panel(**changes: Any) -> dict[str, Any]:
        member = {"name": "a", "model": "m", "body": {}, "timeout": 5, "weight": 1, "repeat": 0}
        return {"kind": "panel", "members": [member | changes, member], "quorum": 2, "escalate": None}

    assert differing(panel(), panel(timeout=9)) == []
    assert differing(panel(), panel(body={"temperature": 1})) == ["body of a"]
    assert differing(panel(), {**panel(), "quorum": 1}) == ["quorum"]
    assert differing(panel(), {**panel(), "escalate": {"name": "z"}}) == ["escalate"]


# --- costs ---------------------------------------------------------------------------------------------------


def test_a_dry_run_counts_every_member(steelyard: Steelyard, samples: Path) -> None:
    """Calls of all members, and how many splits and second looks could add at most."""

    def calls(*words: object) -> tuple[int, int]:
        out = steelyard("run", samples, "-p", "atomic", "--dry-run", *words).out
        further = re.search(r"and at most +(\d+)", out)
        return int(re.search(r"calls +(\d+)", out)[1]), int(further[1]) if further else 0  # type: ignore[index]

    with court() as server:
        seat(server)
        assert calls("-j", "fair") == (8, 0)
        assert calls("-j", "fair+harsh+harshest") == (16, 0)
        assert calls("-j", "fair", "--repeats", 5) == (24, 0)
        assert calls("-j", "fair+embedded", "--escalate", "lost", "--verify", "itself") == (8, 12)
        assert not server.requests


@pytest.mark.parametrize("alone", [True, False])
def test_a_limit_does_not_overlook_a_silent_member(steelyard: Steelyard, samples: Path, alone: bool) -> None:
    """A judge that reports no tokens makes the limit blind, alone or on a panel whose others report theirs."""
    with court(mute=["lost"]) as server:
        seat(server)
        judge = "lost" if alone else "fair+lost+harsh"
        done = steelyard("run", samples, "-p", "atomic", "-j", judge, "--max-tokens", 1_000_000, "-c", 1)
        assert done.code == 3
        assert "--max-tokens is blind: lost:lost reports no tokens" in " ".join(done.err.split())
        assert len(server.requests) < 10
        assert steelyard("run", samples, "-p", "atomic", "-j", judge, "--max-time", 600).code == 0


def test_a_budget_covers_the_whole_panel(steelyard: Steelyard, samples: Path) -> None:
    """What every member takes counts; the run stops, and goes on where it was."""
    with court() as server:
        seat(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "fair+harsh+harshest", "--max-tokens", 600, "-c", 1)
        assert (done.code, "--max-tokens 600 reached" in done.err) == (3, True)
        assert len(server.requests) < 12
        assert steelyard("resume", "-o", "out.jsonl").code == 0
        assert len(asked(server)) == len(set(asked(server))) == 16
        done = steelyard("run", samples, "-p", "atomic", "-j", "fair+harsh", "--max-cost", 1)
        assert (done.code, "needs the prices of fair:fair" in done.err) == (2, True)


# --- settings that do not fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('members = ["fair", "fair"]', "named twice"),
        ('members = ["fair", "harsh"]\nescalate = "fair"', "has voted already"),
        ('members = ["fair", "harsh"]\nties = "escalate"', "needs the further judge"),
        ('members = ["fair", "harsh"]\nvote = "weighted"', "needs weights"),
        ('members = [{ judge = "fair", weight = 2 }]\nvote = "majority"', "members have weights"),
        ('members = ["fair"]\nescalate = "harsh"', "a single voice is never split"),
        ('members = ["fair", "harsh"]\nmin_agreement = 0.3', "min_agreement"),
        ('members = ["fair", "harsh"]\nquorum = 5', "quorum must be from 1 to the 2 members"),
        ("members = []", "members"),
        ('members = ["fair", "nobody"]', "there is no judge 'nobody'"),
        ('members = ["embedded"]\nrepeats = 3', "always answers the same"),
        ('members = ["embedded"]\nverify = "itself"', "let another judge verify it"),
        ('members = ["fair", "other"]', "cannot be a member"),
        ('members = ["fair"]\njudges = 2', "judges"),
    ],
)
def test_settings_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, words: str) -> None:
    """Each is one line that says what is wrong, before anything is asked."""
    monkeypatch.chdir(tmp_path)
    other = '[judges.other]\nkind = "panel"\nmembers = ["harsh", "harshest"]\n'
    endpoints = "".join(
        f'[judges.{name}]\nbase_url = "http://127.0.0.1:9"\nmodel = "{name}"\n'
        for name in ("fair", "harsh", "harshest")
    )
    Path("steelyard.toml").write_text(f'{endpoints}{other}[judges.jury]\nkind = "panel"\n{table}\n', encoding="utf-8")
    config = Settings.load(environment={})
    with pytest.raises(ConfigError, match=re.escape(words)) as raised:
        JudgeFactory(config).judge("jury")
    assert "\n" not in str(raised.value)


def test_panels_have_no_batch_files(steelyard: Steelyard, samples: Path) -> None:
    """A provider's batch is one judge's; the message says how to vote on several."""
    with court() as server:
        seat(server)
        done = steelyard("batch", "start", samples, "-p", "atomic", "-j", "fair+harsh", "-o", "round.jsonl")
    assert (done.code, "recorded:RUN+recorded:RUN" in done.err) == (2, True)


# --- what votes are worth -----------------------------------------------------------------------------------


def test_calibrate_says_what_votes_are_worth(steelyard: Steelyard, samples: Path) -> None:
    """Agreement with people apart for items on which a panel was unanimous and on which it was divided."""
    facts(samples, 8)
    with court() as server:
        seat(server)
        assert steelyard("run", samples, "-p", "atomic", "-j", "harsh+harshest").code == 0
    labels = [{"sample": f"fact-{n}", "kind": "atom", "item": 1, "label": "wrong"} for n in range(1, 9)]
    people = write_lines(Path("people.jsonl"), labels)
    found = json.loads(steelyard("calibrate", "last", "--labels", people, "--json").out)
    # Both call odd facts wrong. Of even ones only one does: undetermined, which people never say.
    assert [(group["tag"], group["n"], group["raw"]["value"]) for group in found["votes"]] == [
        ("unanimous", 4, 1.0),
        ("divided", 4, 0.0),
    ]
    assert "by the votes of the panel" in steelyard("calibrate", "last", "--labels", people).out


# --- in Python, and on record ------------------------------------------------------------------------------


def test_members_may_be_given_weights_in_python() -> None:
    """`Member(judge, weight)`, and the name says so."""
    panel = PanelJudge([Member(scripted("a", {"atoms": {1: {"label": "wrong"}}}), 2.5), scripted("b"), scripted("c")])
    assert panel.name == "panel of a (weight 2.5) + b + c"
    assert [(atom.label, atom.confidence) for atom in one(panel).items] == [("wrong", 0.5556), ("correct", 1.0)]  # type: ignore[union-attr]


def test_a_recording_keeps_the_votes(tmp_path: Path) -> None:
    """A panel's replies can be recorded and replayed with the agreement beside them."""
    panel = PanelJudge([scripted("a"), scripted("b", {"atoms": {1: {"label": "wrong"}}})])
    live = one(Recorder(panel, tmp_path / "replies.jsonl"))
    replayed = one(RecordedJudge(tmp_path / "replies.jsonl"))
    assert replayed.items == live.items
    assert live.items[0].confidence == 0.5


def test_a_replayed_panel_says_the_same_each_time(steelyard: Steelyard, samples: Path, tmp_path: Path) -> None:
    """Its votes are journalled with its replies: what was split stays open in a second run, and when rescored."""
    panel = PanelJudge([scripted("a"), scripted("b", {"atoms": {1: {"label": "wrong"}}})])
    evaluate(str(samples), protocol="atomic", judge=Recorder(panel, tmp_path / "replies.jsonl"))
    run = ("run", samples, "-p", "atomic", "-j", f"recorded:{tmp_path / 'replies.jsonl'}", "-o", "out.jsonl")
    assert steelyard(*run).code == 0
    first = told()
    assert steelyard(*run).code == 0
    assert told() == first == [("undetermined", 0.5, ("split",))] * 4
    assert steelyard("rescore", "last", "-o", "out.jsonl").code == 0
    assert told() == first


# --- a judge of its own kind -------------------------------------------------------------------------------------


def test_a_judge_of_the_same_family_is_warned_of(steelyard: Steelyard, samples: Path) -> None:
    """Where a sample says which model wrote it, and a judge is of that family, run, report and manifest say so."""
    rows = [{**row, "model": model} for row, model in zip(lines_of(samples), ["Qwen2.5-7B", "gpt-4o"] * 2, strict=True)]
    write_lines(samples, rows)
    with court({"qwen-plus": OPINIONS["fair"]}) as server:
        seat(server, models={"qwen-plus": OPINIONS["fair"]})
        done = steelyard("run", samples, "-p", "atomic", "-j", "qwen-plus", "-o", "out.jsonl")
        told = "2 of 4 answers come from the judge's own model family (qwen)"
        assert f"warning: {told}" in done.err
        assert told in " ".join(done.out.split())
        steelyard("report", "last", "--html", "report.html")
    assert [line["flags"] for line in lines_of("out.jsonl")] == [["self_judged"], []] * 2
    assert "own model family (qwen)" in Path("report.html").read_text("utf-8")
    with Store.open(Path(".steelyard/store.db")) as store:
        assert store.run("last").manifest["self_judged"] == 2
