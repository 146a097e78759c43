"""Rubrics as a user has them: the command line over a real server, stored runs, panels, gates, HTTP, `rubric check`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from command import Steelyard, lines_of, point_to, write_lines
from endpoint import Loopback, Request
from steelyard import evaluate, rubric
from steelyard.protocols import _registered, vocabulary
from steelyard.store import Store
from viewer import settings, viewing

RUBRIC = """title = "Tone"
[polite]
ask = "Is the answer polite?"
[solves]
ask = "How far does it help?"
scale = ["not at all", "in part", "fully"]
weight = 3
[blame]
ask = "Is the customer blamed?"
good = "no"
veto = true
"""
TABLE = {"title": "Tone", "polite": {"ask": "Is the answer polite?"}}
ROWS = [
    {"id": "kind", "question": "It leaks!", "answer": "We are sorry to hear that. Send it back and we repair it."},
    {"id": "curt", "question": "It leaks!", "answer": "Your own fault. Send it back."},
    {"id": "half", "question": "It leaks!", "answer": "We are sorry to hear that."},
    {"id": "rude", "question": "It leaks!", "answer": "So what? Send it back and we repair it."},
]
NUMBER = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


def label(criterion: str, user: str) -> str:
    """What a model that reads says of these rows; it is easily led where a question asks for kindness."""
    if "polite" in criterion or "courteous" in criterion:
        return "yes" if "sorry" in user or "courteous" in criterion else "no"
    if "blame" in criterion or "accuse" in criterion:
        return "yes" if "own fault" in user else "no"
    return "3" if "we repair it" in user else "2" if "Send it back" in user else "1"


def reply(request: Request) -> dict[str, Any]:
    criteria = request.user.rpartition("<criteria ")[2]
    found = [(int(number), text) for number, text in NUMBER.findall(criteria)]
    if request.task == "rubric.check":
        words = {1: "Is the answer courteous?", 2: "How much help does it give?", 3: "Does it accuse the customer?"}
        return {
            "criteria": [
                {"id": id, "rewording": words[id], "reason": "Say what is polite.", "vague": id == 1,
                 "unanswerable": False, "overlaps": None}
                for id, _ in found
            ]
        }  # fmt: skip
    before = request.user.rpartition("<criteria ")[0]
    return {"criteria": [{"id": i, "quote": None, "reason": "r", "label": label(text, before)} for i, text in found]}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(reply_for=reply) as running:
        yield running


@pytest.fixture
def desk(steelyard: Steelyard, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    """A folder with samples, a rubric, and a judge `mine` that reads."""
    monkeypatch.setenv("MY_KEY", "key")
    point_to(server)
    write_lines(Path("rows.jsonl"), ROWS)
    Path("tone.toml").write_text(RUBRIC, "utf-8")
    _registered.clear()
    vocabulary.cache_clear()
    return steelyard


def run(desk: Steelyard, *more: object, rubric: str = "tone.toml", code: int = 0) -> Any:
    done = desk("run", "rows.jsonl", "-p", f"rubric:{rubric}", "-j", "mine", *more)
    assert done.code == code, done.err
    return done


def forgotten() -> None:
    """As in another process, which knows only what the store holds."""
    _registered.clear()
    vocabulary.cache_clear()


# --- runs ------------------------------------------------------------------------------------------


def test_from_a_file_to_scores(desk: Steelyard, server: Loopback) -> None:
    """One call a sample; result lines hold labels, points and scores, and the report shows the score."""
    done = run(desk, "-o", "out.jsonl", "--lang", "en")
    assert len(server.requests) == len(ROWS)
    schema = json.dumps(server.requests[0].schema)
    assert '"enum": ["yes", "no", "1", "2", "3"]' in schema
    scores = {line["id"]: line["scores"] for line in lines_of("out.jsonl")}
    assert scores["kind"] == {"score": 1, "raw_score": 1}
    assert scores["curt"] == {"score": 0, "raw_score": 0.3}
    assert scores["half"] == {"score": 0.4, "raw_score": 0.4}
    assert scores["rude"] == {"score": 0.8, "raw_score": 0.8}
    curt = next(line for line in lines_of("out.jsonl") if line["id"] == "curt")
    assert curt["flags"] == ["vetoed"]
    assert [(item["name"], item["label"], item["points"]) for item in curt["items"]] == [
        ("polite", "no", 0),
        ("solves", "2", 0.5),
        ("blame", "yes", 0),
    ]
    assert "55.0%" in done.out


def test_a_stored_run_knows_its_rubric(desk: Steelyard) -> None:
    """Without the file, and in another process, a run is shown, rescored and exported as it was judged."""
    run(desk)
    Path("tone.toml").unlink()
    forgotten()
    assert desk("rescore", "last", "-o", "again.jsonl").code == 0
    assert {line["id"]: line["scores"]["score"] for line in lines_of("again.jsonl")}["rude"] == 0.8
    forgotten()
    assert desk("show", "last", "curt", "--lang", "en").code == 0
    with Store.open(Path(".steelyard/store.db")) as store:
        row = store.run("last")
        origin = row.manifest["protocol"]["origin"]
        assert set(row.manifest["prompts"]) >= {"rubric.judge.en", "rubric.judge.zh", "reply.en"}
    assert origin["source"] == "tone.toml"
    assert origin["rubric"]["criteria"][1]["weight"] == "3"
    assert vocabulary(row.protocol).label("blame", "yes").tone == "bad"


def test_resume_refuses_a_changed_rubric(desk: Steelyard) -> None:
    """A run goes on by the rubric it began with. A changed file is named; comments and a lost file are no change."""
    run(desk, "--max-tokens", 1, code=3)
    forgotten()
    Path("tone.toml").write_text(RUBRIC.replace("weight = 3", "weight = 4"), "utf-8")
    refused = desk("resume", "last")
    assert refused.code == 2
    assert "the rubric tone.toml has changed since run" in refused.err
    Path("tone.toml").write_text("# a comment\n" + RUBRIC, "utf-8")
    assert desk("resume", "last").code == 0
    forgotten()
    Path("tone.toml").unlink()
    assert desk("retry", "last").code == 0


def test_other_weights_cost_nothing(desk: Steelyard, server: Loopback) -> None:
    """The same questions with other weights are answered from the store; another wording is asked anew."""
    run(desk)
    asked = len(server.requests)
    Path("tone.toml").write_text(RUBRIC.replace("weight = 3", "weight = 1").replace("veto = true", ""), "utf-8")
    run(desk, "-o", "out.jsonl")
    assert len(server.requests) == asked
    assert {line["id"]: line["scores"] for line in lines_of("out.jsonl")}["curt"] == {"score": pytest.approx(1 / 6)}
    Path("tone.toml").write_text(RUBRIC.replace("the answer polite", "the answer really polite"), "utf-8")
    run(desk)
    assert len(server.requests) == 2 * asked


def test_markdown_and_shipped_rubrics_run(desk: Steelyard, server: Loopback) -> None:
    """`rubric:FILE.md` and `rubric:NAME` are used like `rubric:FILE.toml`."""
    Path("tone.md").write_text("## polite\nIs the answer polite?\n", "utf-8")
    run(desk, "-o", "out.jsonl", rubric="tone.md")
    assert [line["scores"]["score"] for line in sorted(lines_of("out.jsonl"), key=lambda line: line["id"])] == [
        0,
        1,
        1,
        0,
    ]
    done = desk("run", "rows.jsonl", "-p", "rubric:support-tone", "-j", "mine", "-o", "shipped.jsonl")
    assert done.code in (0, 3)
    assert lines_of("shipped.jsonl")[0]["protocol"].startswith("rubric:support-tone@")


def test_a_dry_run_counts_one_call_a_sample(desk: Steelyard, server: Loopback) -> None:
    """The estimate knows the reply of a rubric, and sends nothing."""
    done = run(desk, "--dry-run")
    assert re.search(r"^calls +4$", done.out, re.MULTILINE)
    assert not server.requests


def test_options_in_the_settings_file(desk: Steelyard, server: Loopback) -> None:
    """[options.rubric] holds for every rubric."""
    with Path("steelyard.toml").open("a", encoding="utf-8") as file:
        file.write("[options.rubric]\nthorough = true\n")
    run(desk)
    assert len(server.requests) == 3 * len(ROWS)


def test_slips_are_told_before_anything_is_paid(desk: Steelyard, server: Loopback) -> None:
    """A rubric that cannot be read and a name that is none cost nothing."""
    Path("bad.toml").write_text("[polite]\nask = 'x?'\nwieght = 2\n", "utf-8")
    for name, says in (
        ("bad.toml", "bad.toml:3: polite.wieght: is not a field of a criterion; did you mean weight?"),
        ("nothing", "no rubric file nothing and no shipped rubric of that name"),
        ("", "rubric needs a file or a name"),
    ):
        assert says in run(desk, rubric=name, code=2).err
    assert not server.requests
    assert not Path(".steelyard/store.db").exists() or desk("runs", "list").out.count("rubric:") == 0


def test_embedded_decides_form_and_leaves_the_rest_open() -> None:
    """What code can count is labelled; everything else is unjudged, with the reason."""
    made = rubric(
        {
            "short": {"ask": "Is the answer at most 7 words long?"},
            "简短": {"ask": {"en": "Does the answer contain an emoji?", "zh": "回答是否包含表情符号？"}, "good": "no"},
            "polite": {"ask": "Is the answer polite?"},
        }
    )
    found = {verdict.id: verdict for verdict in evaluate(ROWS, protocol=made, judge="embedded")}
    assert [item.label for item in found["curt"].items] == ["yes", "no", "unjudged"]
    assert [item.label for item in found["kind"].items] == ["no", "no", "unjudged"]
    assert found["curt"].status == "partial"
    assert found["curt"].scores == {"score": 1}
    assert "only questions of form" in found["curt"].items[2].reason
    talk = rubric({"for": "dialogue", "short": {"ask": "Are the answers at most 2 words long?"}})
    turns = [{"prompt": "Hi", "answer": "Hello you"}, {"prompt": "Ok?", "answer": "Yes it is ok"}]
    sample = {"id": "d", "system_prompt": "Be brief.", "turns": turns}
    (verdict,) = evaluate([sample], protocol=talk, judge="embedded")
    assert [item.label for item in verdict.items] == ["no"]


# --- several judges, several runs --------------------------------------------------------------------


def test_a_panel_and_a_route(desk: Steelyard, server: Loopback) -> None:
    """Repeats are voted on; a route whose first judge can tell nothing leaves all to the second."""
    run(desk, "--repeats", 3, "-o", "panel.jsonl")
    assert len(server.requests) == 3 * len(ROWS)
    assert {item["confidence"] for line in lines_of("panel.jsonl") for item in line["items"]} == {1}
    done = desk("run", "rows.jsonl", "-p", "rubric:tone.toml", "-j", "embedded>mine", "-o", "route.jsonl")
    assert done.code == 0, done.err
    assert {line["id"]: line["scores"] for line in lines_of("route.jsonl")}["kind"]["score"] == 1


def test_gate_compare_and_reports(desk: Steelyard) -> None:
    """A rubric's score can be demanded, two runs of one rubric compared, and a run written as HTML."""
    run(desk, "-o", "one.jsonl")
    run(desk, "-o", "two.jsonl", "--fresh")
    assert desk("gate", "last", "--require", "score>=0.5").code in (0, 7)
    assert desk("gate", "last", "--require", "score>=0.9").code == 6
    compared = desk("compare", "1", "2", "--lang", "en")
    assert compared.code == 0, compared.err
    assert desk("compare", "one.jsonl", "two.jsonl").code == 0
    assert desk("report", "last", "--html", "run.html").code == 0
    assert "Is the answer polite?" in Path("run.html").read_text("utf-8")


def test_two_rubrics_are_not_compared(desk: Steelyard) -> None:
    """Runs by two versions of a rubric are not taken for the same protocol."""
    run(desk)
    Path("tone.toml").write_text(RUBRIC.replace("weight = 3", "weight = 9"), "utf-8")
    run(desk)
    refused = desk("compare", "1", "2")
    assert refused.code == 2
    assert "protocol" in refused.err


def test_people_label_it_and_calibrate(desk: Steelyard) -> None:
    """A sheet asks the rubric's own questions; its labels are compared with the judge's."""
    run(desk)
    forgotten()
    done = desk("sample", "last", "--for-labelling", 4, "-o", "sheet.csv")
    assert done.code == 0, done.err
    assert "solves" in Path("sheet.csv").read_text("utf-8-sig")
    labels = [{"sample": row["id"], "kind": "polite", "item": 1, "label": "no"} for row in ROWS]
    write_lines(Path("people.jsonl"), labels)
    calibrated = desk("calibrate", "last", "--labels", "people.jsonl", "--lang", "en")
    assert calibrated.code == 0, calibrated.err
    assert "polite" in calibrated.out


def test_a_batch_is_written_and_read(desk: Steelyard, server: Loopback) -> None:
    """The requests of a rubric stand in a provider's batch file."""
    done = desk("batch", "start", "rows.jsonl", "-p", "rubric:tone.toml", "-j", "mine", "-o", "requests.jsonl")
    assert done.code == 0, done.err
    assert len(lines_of("requests.jsonl")) == len(ROWS)
    assert not server.requests


def test_dialogues_are_judged_from_the_command_line(desk: Steelyard, server: Loopback) -> None:
    """`for = "dialogue"` judges all answers of a conversation together, in one call."""
    Path("talk.toml").write_text('for = "dialogue"\n[polite]\nask = "Is the assistant polite?"\n', "utf-8")
    turns = [{"prompt": "It leaks!", "answer": "We are sorry."}, {"prompt": "And?", "answer": "Send it back."}]
    write_lines(Path("talks.jsonl"), [{"id": "d", "system_prompt": "Help.", "turns": turns}])
    done = desk("run", "talks.jsonl", "-p", "rubric:talk.toml", "-j", "mine", "-o", "out.jsonl")
    assert done.code == 0, done.err
    assert [request.task for request in server.requests] == ["rubric.dialogue"]
    assert lines_of("out.jsonl")[0]["scores"] == {"score": 1}


def test_pages_of_the_viewer(desk: Steelyard) -> None:
    """Run, samples, sample, labelling and exchanges show the criteria, also where only the store knows the rubric."""
    run(desk)
    Path("tone.toml").unlink()
    store = Path(".steelyard/store.db")
    with Store.open(store) as opened:
        id = opened.run("last").id
    forgotten()
    with viewing(store) as address, httpx.Client(base_url=address, timeout=60) as client:
        for page in ("/runs", f"/runs/{id}", f"/runs/{id}/samples", f"/runs/{id}/samples/curt", f"/runs/{id}/label"):
            answer = client.get(page, headers={"accept-language": "en"})
            assert answer.status_code == 200, page
        assert "Is the customer blamed?" in client.get(f"/runs/{id}/samples/curt").text
        assert "How far does it help?" in client.get(f"/runs/{id}/label").text
        labels = [{"sample": "curt", "kind": "solves", "item": 2, "label": "1", "annotator": "ann"}]
        kept = client.post("/api/v1/labels", json={"run": id, "labels": labels})
        assert kept.status_code == 201, kept.text


def test_a_judge_is_audited_by_a_rubric(desk: Steelyard) -> None:
    """The audit takes a rubric like any protocol."""
    own = ("--data", "rows.jsonl", "--no-built-in", "--only", "stability,injection", "--repeats", 1)
    done = desk("audit", "mine", "-p", "rubric:tone.toml", *own, "-o", "card.json")
    assert done.code == 0, done.err


# --- rubric new, list, check -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mine.toml", "mine.md"])
def test_a_new_rubric_can_be_used_at_once(desk: Steelyard, name: str) -> None:
    """`rubric new` writes a file that judges, and never writes over one."""
    assert desk("rubric", "new", name).code == 0
    assert desk("run", "rows.jsonl", "-p", f"rubric:{name}", "-j", "mine").code in (0, 3)
    again = desk("rubric", "new", name)
    assert (again.code, "is there already" in again.err) == (2, True)


def test_new_from_a_shipped_one_and_list(desk: Steelyard) -> None:
    """A shipped rubric can be copied as a start; the list names all five."""
    assert desk("rubric", "new", "care.toml", "--like", "medical-safety").code == 0
    assert "dangerous_advice" in Path("care.toml").read_text("utf-8")
    assert desk("rubric", "new", "other.toml", "--like", "nothing").code == 2
    assert len(desk("rubric", "list").out.splitlines()) == 5


def test_check_names_what_is_vague_and_what_wobbles(desk: Steelyard, server: Loopback) -> None:
    """The judge's review is told by criterion, and how many labels stay the same when the questions are reworded."""
    done = desk("rubric", "check", "tone.toml", "-j", "mine", "--samples", "rows.jsonl", "-n", 4)
    assert done.code == 0, done.err
    assert re.search(r"^polite +vague$", done.out, re.MULTILINE)
    assert "same label in 2 of 4 samples; reworded: Is the answer courteous?" in done.out
    assert "10 of 12 labels were the same in both wordings (4 samples)" in done.out
    assert len(server.requests) == 1 + 2 * 4
    general = desk("rubric", "check", "tone.toml", "-j", "mine")
    assert re.search(r"\d+ of 12 labels were the same in both wordings \(4 general samples\)\n", general.out)
    refused = desk("rubric", "check", "tone.toml", "-j", "embedded")
    assert (refused.code, "no function for rubric.check" in refused.out) == (4, True)


# --- HTTP ------------------------------------------------------------------------------------------


@pytest.fixture
def api(tmp_path: Path, server: Loopback) -> Iterator[httpx.Client]:
    """A viewer whose judge `mine` reads."""
    _registered.clear()
    (tmp_path / "tone.toml").write_text(RUBRIC, "utf-8")
    config = settings(mine={"base_url": server.url, "model": "m", "retries": 0})
    with (
        viewing(tmp_path / "store.db", config=config) as address,
        httpx.Client(base_url=f"{address}/api/v1", timeout=30) as client,
    ):
        yield client


def test_a_rubric_is_sent_inline_or_named(api: httpx.Client) -> None:
    """A table, a text and the name of a shipped rubric are judged by."""
    for given in ({"rubric": TABLE}, {"rubric": RUBRIC}, {"rubric": "## polite\nIs the answer polite?\n"}):
        answer = api.post("/evaluate", json={"protocol": "rubric", "judge": "mine", "samples": ROWS, **given})
        assert answer.status_code == 200, answer.text
        assert {line["id"]: line["items"][0]["label"] for line in answer.json()["results"]}["rude"] == "no"
    named = api.post("/evaluate", json={"protocol": "rubric:support-tone", "judge": "mine", "samples": ROWS})
    assert named.json()["results"][0]["items"][0]["name"] == "polite"
    assert {"rubric:summary", "rubric:code-answer"} <= {
        one["name"] for one in api.get("/protocols").json()["protocols"]
    }


def test_a_run_by_an_inline_rubric(api: httpx.Client, wait: Callable[[httpx.Client, str], None]) -> None:
    """The store keeps the rubric with the run, so that it is read, shown and resumed later."""
    made = api.post("/runs", json={"protocol": "rubric", "rubric": TABLE, "judge": "mine", "samples": ROWS})
    assert made.status_code == 201, made.text
    wait(api, made.json()["id"])
    forgotten()
    detail = api.get(f"/runs/{made.json()['id']}").json()
    assert detail["run"]["protocol"].startswith("rubric:tone@")
    assert detail["manifest"]["protocol"]["origin"]["source"] == "(inline)"
    assert api.post(f"/runs/{made.json()['id']}/retry").status_code == 202


@pytest.fixture
def wait() -> Callable[[httpx.Client, str], None]:
    def until_it_ends(client: httpx.Client, run: str) -> None:
        with client.stream("GET", f"/runs/{run}/events") as answer:
            assert "event: end" in "".join(answer.iter_text())

    return until_it_ends


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"protocol": "rubric:tone.toml"}, "there is no rubric 'tone.toml' here"),
        ({"protocol": "rubric:/etc/passwd"}, "there is no rubric '/etc/passwd' here"),
        ({"protocol": "rubric:../tone.toml"}, "there is no rubric '../tone.toml' here"),
        ({"protocol": "rubric"}, "is missing: the criteria"),
        ({"protocol": "atomic", "rubric": TABLE}, 'goes with protocol "rubric" only'),
        ({"protocol": "rubric", "rubric": {"a": {"ask": "x?", "wieght": 1}}}, "did you mean weight?"),
        ({"protocol": "rubric", "rubric": "tone.toml"}, "not valid TOML"),
    ],
)
def test_no_path_of_the_server_and_no_slip(
    api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], says: str
) -> None:
    """Over HTTP a rubric never names a file, also not one that is there; a slip in it is told with its field."""
    monkeypatch.chdir(tmp_path)
    for path in ("/evaluate", "/runs"):
        answer = api.post(path, json={"judge": "mine", "samples": ROWS, **body})
        assert 400 <= answer.status_code < 500, answer.text
        assert says in answer.text.replace('\\"', '"')
