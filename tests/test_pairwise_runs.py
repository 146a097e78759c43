"""Two answers compared as a user has it: files, `compare --pairwise` over stored runs, reports, the viewer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import steelyard
from command import PAIRS, RECORDED, Steelyard, lines_of, point_to, write_lines
from endpoint import Loopback, Request
from steelyard import ScriptedJudge, evaluate
from steelyard.engine.pairs import PairedRuns
from steelyard.errors import ConfigError, InputError
from steelyard.people.calibration import calibrate
from steelyard.people.labelling import candidates, draw, labels_in, sheet, write_sheet
from steelyard.records import Ask, RagSample
from steelyard.reports import ReportBuilder
from steelyard.samples import sample_from
from steelyard.store import Store
from steelyard.trust.audit import scope_of
from viewer import viewing

QUESTIONS = [f"What is {n} and {n}?" for n in range(8)]
ANSWERS = {
    "plain": [f"It is {2 * n}." for n in range(8)],
    "longer": [f"It is {2 * n}, which is {n} twice." for n in range(8)],
    "longest": [f"It is {2 * n}, which is {n} twice, as one can see by counting." for n in range(8)],
}
FENCED = re.compile(r"<(first|second) (\w+)>\n(.*?)\n</\1 \2>", re.DOTALL)
NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)


def by_length(request: Request) -> dict[str, Any]:
    """A model that prefers the longer answer, except to the first question, where it takes what stands first."""
    texts = {name: text for name, _, text in FENCED.findall(request.user)}
    longer = "first" if len(texts["first"]) > len(texts["second"]) else "second"
    label = "first" if QUESTIONS[0] in request.user else longer
    ids = NUMBERED.findall(request.user.rpartition("<criteria ")[2])
    return {"criteria": [{"id": int(id), "quote": texts[label], "reason": "", "label": label} for id in ids]}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.reply_for = by_length
        yield running


@pytest.fixture
def three(tmp_path: Path, steelyard: Steelyard) -> list[str]:
    """Three runs over the same questions, of three assistants; their ids."""
    for name, answers in ANSWERS.items():
        rows = [
            {"id": f"q{n}", "question": question, "references": [f"{n} and {n} is {2 * n}."], "answer": answer}
            for n, (question, answer) in enumerate(zip(QUESTIONS, answers, strict=True))
        ]
        evaluate(rows, "grounded", ScriptedJudge(_fine), store=tmp_path / ".steelyard" / "store.db", name=name)
    with Store.open(tmp_path / ".steelyard" / "store.db") as store:
        return [row.id for row in reversed(store.runs())]


def _fine(ask: Ask) -> dict[str, Any]:
    items = ask.data.items()
    labels = {"sentences": "from_background", "checks": 1}
    rows = {name: [{"id": item.id, "label": labels[name]} for item in items.get(name, ())] for name in labels}
    return {"own_answer": "", "answerable": True, **rows}


# --- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        ("answer_a", "answer_b"),
        ("answer", "other_answer"),
        ("Response A", "Response B"),
        ("chosen", "rejected"),
        ("output_1", "output_2"),
        ("回答A", "回答B"),
    ],
)
def test_the_names_people_use(columns: tuple[str, str]) -> None:
    """Two answers are found under the names that files of pairs have; models too."""
    row = {"id": "x", "question": "Q?", columns[0]: "one", columns[1]: "", "model_a": "m", "model_b": "n"}
    found = sample_from(row, "pair")
    assert isinstance(found, RagSample)
    assert (found.answer, found.other_answer) == ("one", "")
    assert (found.model, found.other_model, found.contestants) == ("m", "n", ("m", "n"))


def test_preference_data_with_conversations() -> None:
    """Where chosen and rejected are whole conversations, the last answers and their question are taken."""
    asked = {"role": "user", "content": "Why?"}
    row = {"id": "x"} | {
        name: [asked, {"role": "assistant", "content": text}]
        for name, text in (("chosen", "Because."), ("rejected", "No."))
    }
    found = sample_from(row, "pair")
    assert isinstance(found, RagSample)
    assert (found.question, found.answer, found.other_answer) == ("Why?", "Because.", "No.")


def test_a_row_with_one_answer_is_named() -> None:
    """A missing second answer is an error that says which field and how to name it; so is a record without one."""
    with pytest.raises(InputError, match=r"other_answer: not in this row.*fields=\{'other_answer': 'COLUMN'\}"):
        sample_from({"id": "x", "question": "Q?", "answer": "one"}, "pair")
    results = evaluate(
        [RagSample(id="one", answer="x"), RagSample(id="two", answer="x", other_answer="x")], "pairwise", "embedded"
    )
    assert [verdict.id for verdict in results] == ["two"]
    assert "other_answer" in str(results.bad_rows[0])


def test_other_protocols_and_old_ids_are_untouched() -> None:
    """A file of pairs is not read as one of single answers by accident; records without a second answer say nothing
    of one, so that ids and stored samples stay as they were."""
    with pytest.raises(InputError, match="answer"):
        sample_from({"id": "x", "question": "Q?", "answer_a": "one", "answer_b": "two"}, "rag")
    assert "other_answer" not in RagSample(id="x", answer="y").model_dump_json()


def test_the_example_file(steelyard: Steelyard, tmp_path: Path) -> None:
    """The bundled pairs, judged from their recording: win rate with interval, consistency, bias, in every form."""
    done = steelyard("run", PAIRS, "-p", "pairwise", "-j", RECORDED, "-o", "out.jsonl", "--lang", "en")
    assert done.code == 0, done.err
    for words in ("Win rate of A ", "66.7%", "Consistency", "85.0%", "Position bias", "tie (inconsistent)", "Ranking"):
        assert words in done.out
    line = {line["id"]: line for line in lines_of("out.jsonl")}["train-bike"]
    assert [item["label"] for item in line["items"]] == ["tie"] * 4
    assert [item["flags"] for item in line["items"]] == [[], [], ["inconsistent"], ["inconsistent"]]
    assert line["scores"]["position_bias"] == 1
    for form, words in (("markdown", "| Win rate of A: Clarity |"), ("json", '"win_rate.clarity"')):
        assert steelyard("report", "last", "--as", form, "-o", "report.txt", "--lang", "en").code == 0
        assert words in Path("report.txt").read_text("utf-8")
    assert steelyard("report", "last", "--html", "page.html", "--lang", "en").code == 0
    page = Path("page.html").read_text("utf-8")
    assert "side-by-side" in page
    assert "Answer B · assistant-2" in page
    shown = steelyard("show", "last", "card-lost", "--lang", "zh-Hans").out
    assert "回答 A · assistant-1" in shown
    assert "平局（前后不一致）" in shown


def test_a_gate(steelyard: Steelyard) -> None:
    """A run of preferences can be gated, also by the score of one aspect."""
    assert steelyard("run", PAIRS, "-p", "pairwise", "-j", RECORDED, "--progress", "quiet").code == 0
    assert steelyard("gate", "last", "--require", "win_rate>=0.5", "--require", "consistency>=0.8").code == 0
    assert steelyard("gate", "last", "--require", "win_rate.clarity>=0.9").code == 6


def test_people_label_preferences(steelyard: Steelyard, tmp_path: Path) -> None:
    """People have three choices, see both answers but not whose they are, and a judge is compared with them."""
    assert steelyard("run", PAIRS, "-p", "pairwise", "-j", RECORDED, "--progress", "quiet").code == 0
    path = tmp_path / ".steelyard" / "store.db"
    with Store.open(path) as store:
        run = store.runs()[0].id
        found = list(store.verdicts(run))
    rows = list(sheet(found, draw(candidates(found), 6), run=run))
    assert {row["choices"] for row in rows} == {"a_better / b_better / tie"}
    assert all("[A] " in row["answer"] and "[B] " in row["answer"] for row in rows)
    assert "assistant-2" not in json.dumps(rows)
    for row in rows:
        row["label"] = "A 更好"
    write_sheet(tmp_path / "sheet.csv", rows)
    measured = calibrate(found, list(labels_in(tmp_path / "sheet.csv")), run=run, language="en")
    assert [task.task for task in measured.tasks] == ["preference"]
    (rate,) = [score for score in measured.scores if score.metric == "win_rate"]
    assert (rate.judge, rate.people) == (pytest.approx(2 / 3), 1)
    cookies = {"steelyard_annotator": "ana"}
    with viewing(path) as address, httpx.Client(base_url=address, timeout=60, cookies=cookies) as client:
        task = client.get("/runs/1/label.json", params={"n": "0", "at": "1"}).json()["item"]
        assert task["other_answer"]["pieces"]
        assert "assistant-" not in client.get("/runs/1/label", params={"n": "0", "at": "1"}).text


# --- runs ------------------------------------------------------------------------------------------


def test_compare_two_runs(steelyard: Steelyard, server: Loopback, three: list[str], tmp_path: Path) -> None:
    """Preferences between two runs: two calls a sample, an ordinary run, nothing asked again when it is resumed."""
    point_to(server)
    words = ("compare", *three[:2], "--pairwise", "-j", "mine", "--aspects", "clarity", "--progress", "quiet")
    done = steelyard(*words, "--lang", "en")
    assert done.code == 0, done.err
    assert "A: plain · B: longer" in done.err
    assert len(server.requests) == 16
    assert re.search(r"Win rate of A +6\.2% +\S+ +8", done.out)  # seven lost, one tie
    assert re.search(r"Consistency +87\.5%", done.out)
    assert re.search(r"Position bias +100\.0%", done.out)
    assert re.search(r"longer +93\.8%", done.out)
    assert steelyard("resume", "last").code == 0
    assert steelyard(*words).code == 0
    assert len(server.requests) == 16
    saved = json.loads(steelyard("report", "last", "--as", "json").out)
    assert [one["name"] for one in saved["ranking"]] == ["longer", "plain"]
    assert saved["manifest"]["data"][0]["runs"] == three[:2]


def test_compare_three_runs(steelyard: Steelyard, server: Loopback, three: list[str], tmp_path: Path) -> None:
    """Each with each, and a ranking over all: Bradley–Terry strengths that fall in order, with intervals."""
    point_to(server)
    done = steelyard("compare", *three, "--pairwise", "-j", "mine", "--aspects", "", "--progress", "quiet")
    assert done.code == 0, done.err
    report = json.loads(steelyard("report", "last", "--as", "json").out)
    assert report["n"] == 24
    assert [one["name"] for one in report["ranking"]] == ["longest", "longer", "plain"]
    values = [one["strength"]["value"] for one in report["ranking"]]
    assert values == sorted(values, reverse=True)
    assert sum(values) == pytest.approx(0, abs=1e-9)
    assert all(one["strength"]["interval"] for one in report["ranking"])
    # The answers to a question are not independent: three comparisons of it are one cluster.
    assert report["scores"]["win_rate"]["clusters"] == 8


def test_runs_that_changed_are_not_resumed(
    steelyard: Steelyard, server: Loopback, three: list[str], tmp_path: Path
) -> None:
    """What is compared must still be what it was; a run that is gone is named."""
    point_to(server)
    assert steelyard("compare", *three[:2], "--pairwise", "-j", "mine", "--progress", "quiet").code == 0
    with Store.open(tmp_path / ".steelyard" / "store.db") as store:
        store.write("DELETE FROM samples WHERE run = ? AND id = ?", three[0], "q3")
    done = steelyard("resume", "last")
    assert done.code != 0
    assert "have changed since" in done.err


def test_what_cannot_be_compared(steelyard: Steelyard, three: list[str], tmp_path: Path) -> None:
    """One run, the same run twice, dialogues, no common sample, flags that do not go together: each is said."""
    path = tmp_path / ".steelyard" / "store.db"
    evaluate(
        [{"id": "d", "system_prompt": "Be brief.", "turns": [{"prompt": "a", "answer": "b"}]}],
        "dialogue",
        ScriptedJudge(_fine),
        store=path,
    )
    evaluate([{"id": "other", "question": "Q?", "answer": "x"}], "grounded", ScriptedJudge(_fine), store=path)
    for words, problem in [
        ((three[0],), "two or more"),
        ((three[0], three[0]), "two or more"),
        (("4", "4"), "two or more"),
        ((three[0], "last"), "no sample in common"),
    ]:
        done = steelyard("compare", *words, "--pairwise", "-j", "embedded")
        assert done.code != 0
        assert problem in done.err
    assert "add --pairwise" in steelyard("compare", *three[:2], "-j", "embedded").err
    assert "between two runs" in steelyard("compare", *three).err
    assert "become a run" in steelyard("compare", *three[:2], "--pairwise", "--json").err


def test_pairs_of_runs(three: list[str], tmp_path: Path) -> None:
    """Samples are paired by id; passages of both retrievers are there; another question under an id is a bad row."""
    path = tmp_path / ".steelyard" / "store.db"
    rows = [
        {"id": "q0", "question": QUESTIONS[0], "answer": "Zero.", "references": ["Another passage."], "model": "m"},
        {"id": "q1", "question": "Something else?", "answer": "One."},
        {"id": "new", "question": "New?", "answer": "Two."},
    ]
    evaluate(rows, "grounded", ScriptedJudge(_fine), store=path)
    with Store.open(path) as store:
        paired = PairedRuns(store, [three[0], "last"])
        good, bad = list(paired)
        assert isinstance(good, RagSample)
        assert good.references == ("0 and 0 is 0.", "Another passage.")
        assert (good.other_answer, good.other_model, good.contestants) == ("Zero.", "m", ("plain", paired.ids[1]))
        assert isinstance(bad, InputError)
        assert "another question" in str(bad)
        assert paired.alone() == 7
        results = evaluate(paired, "pairwise", ScriptedJudge(lambda ask: {"criteria": []}))
    assert (len(results), len(results.bad_rows)) == (1, 1)


def test_dialogues_are_no_pairs(tmp_path: Path) -> None:
    """Runs over dialogues hold no answers to compare."""
    path = tmp_path / "store.db"
    rows = [{"id": "d", "system_prompt": "Be brief.", "turns": [{"prompt": "a", "answer": "b"}]}]
    for _ in range(2):
        evaluate(rows, "dialogue", ScriptedJudge(_fine), store=path)
    with Store.open(path) as store, pytest.raises(ConfigError, match="not dialogues"):
        PairedRuns(store, [row.id for row in store.runs()])


def test_an_audit_takes_no_pairs() -> None:
    """An audit's samples have one answer each: the protocol is left out of it, and refused where it is named."""
    assert "pairwise" not in scope_of().protocols
    with pytest.raises(ConfigError, match="compares two answers"):
        scope_of(["pairwise"])


# --- reports and the viewer ------------------------------------------------------------------------


def test_who_wrote_the_answers_ranks_them() -> None:
    """In a file of battles either model may stand as A; the ranking goes by the names, not by the places."""
    rows = [
        {"id": str(n), "question": f"Q{n}?", "answer_a": pair[0], "answer_b": pair[1],
         "model_a": pair[0][:3], "model_b": pair[1][:3]}
        for n, pair in enumerate([("low x", "big one"), ("big one", "low y"), ("low z", "big two"), ("mid m", "low q"),
                                  ("low w", "mid m"), ("big k", "mid m"), ("mid", "big")])
    ]  # fmt: skip
    order = ["low", "mid", "big"]

    def larger(ask: Ask) -> dict[str, Any]:
        first, second = (order.index(text[:3]) for text in (ask.data.first, ask.data.second))  # type: ignore[attr-defined]
        label = "first" if first > second else "second"
        if {"low w", "big k"} & {ask.data.first, ask.data.second}:  # type: ignore[attr-defined]
            label = "tie"
        return {"criteria": [{"id": 1, "label": label}]}

    results = evaluate(rows, "pairwise", ScriptedJudge(larger), options={"aspects": []})
    ranking = results.report().ranking
    assert [one.name for one in ranking] == ["big", "mid", "low"]
    assert [one.win_rate.n for one in ranking] == [5, 4, 5]


def test_own_family_of_either_side_is_told() -> None:
    """A judge of the family of one of the two answers is flagged, whichever that is."""
    judge = ScriptedJudge(lambda ask: {"criteria": [{"id": 1, "label": "tie"}]})
    judge.name = "openai:gpt-4o"
    row = {"id": "x", "question": "Q?", "answer_a": "one", "answer_b": "two", "model_b": "gpt-4o-mini"}
    [verdict] = evaluate([row], "pairwise", judge, options={"aspects": []})
    assert "self_judged" in verdict.flags


def test_without_names_there_is_no_ranking() -> None:
    """Answers of nobody in particular have a win rate and no table of contestants."""
    builder = ReportBuilder("pairwise")
    for sample, verdict in zip(*_unnamed(), strict=True):
        builder.add(verdict, sample)
    assert builder.build().ranking == ()


def _unnamed() -> tuple[list[Any], list[Any]]:
    rows = [{"id": "x", "question": "Q?", "answer_a": "one", "answer_b": "one"}]
    results = steelyard.evaluate(rows, "pairwise", "embedded")
    return list(results.samples), list(results)


def test_the_viewer_shows_both_answers(steelyard: Steelyard, tmp_path: Path) -> None:
    """The page of a sample has the two answers side by side, and shows hostile text as text."""
    path = tmp_path / ".steelyard" / "store.db"
    hostile = {"id": "h", "question": "Q?", "answer_a": "<b>bold</b>", "answer_b": "<script>alert(1)</script>",
               "model_a": "<i>m</i>", "model_b": "n"}  # fmt: skip
    write_lines(tmp_path / "hostile.jsonl", [hostile])
    assert steelyard("run", PAIRS, "-p", "pairwise", "-j", RECORDED, "--progress", "quiet").code == 0
    steelyard("run", tmp_path / "hostile.jsonl", "-p", "pairwise", "-j", RECORDED, "--progress", "quiet")
    with viewing(path) as address, httpx.Client(base_url=address, timeout=60) as client:
        found = client.get("/runs/1/samples/pool-hours", headers={"Accept-Language": "en"}).text
        assert "side-by-side" in found
        assert found.index("Answer A · assistant-1") < found.index("Answer B · assistant-2")
        page = client.get("/runs/2/samples/h").text
        assert "<script>alert(1)" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert "<i>m</i>" not in page
