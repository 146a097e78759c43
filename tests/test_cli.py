"""The command line, as people and scripts use it: every command, what it prints, and how it ends."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len

from command import (
    DIALOGUE,
    EXAMPLES,
    PAIRS,
    RAG,
    RECORDED,
    Steelyard,
    fact_server,
    facts,
    judge_plainly,
    lines_of,
    point_to,
    process_environment,
    write_lines,
)
from endpoint import Loopback
from steelyard import __version__
from steelyard.cli import app
from steelyard.protocols import vocabulary

KEYS = ["id", "protocol", "status", "scores", "items", "flags", "judge", "usage"]
SCORES = {
    "atomic": ["accuracy", "accuracy_strict", "coverage", "fallback"],
    "grounded": ["relevance", "truthfulness", "accuracy"],
    "scorecard": ["relevance", "completeness", "accuracy", "faithfulness", "faithfulness_soft"],
    "dialogue": ["csr", "isr", "ssr"],
    "retrieval": ["recall", "precision", "precision_at_k", "ndcg", "mrr", "noise", "use"],
    "pairwise": [
        *("win_rate", "win_rate.correctness", "win_rate.completeness", "win_rate.clarity"),
        *("consistency", "position_bias"),
    ],
}
KINDS = {
    "atomic": {"atom"},
    "grounded": {"check"},
    "scorecard": {"sentence", "key_point", "atom"},
    "dialogue": {"criterion"},
    "retrieval": {"cause", "point", "passage"},
    "pairwise": {"preference"},
}
FILES = {
    "atomic": RAG,
    "grounded": RAG,
    "scorecard": RAG,
    "dialogue": DIALOGUE,
    "retrieval": RAG,
    "pairwise": PAIRS,
}


def judge_examples(steelyard: Steelyard, protocol: str = "atomic", *words: object) -> None:
    assert steelyard("run", FILES[protocol], "-p", protocol, "-j", RECORDED, *words).code == 0


# --- run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", FILES)
def test_result_lines(steelyard: Steelyard, protocol: str) -> None:
    """`-o` writes the documented keys in the documented order, one line per sample in the input's order."""
    judge_examples(steelyard, protocol, "-o", "out.jsonl")
    lines = lines_of("out.jsonl")
    assert [line["id"] for line in lines] == [row["id"] for row in lines_of(FILES[protocol])]
    for line in lines:
        assert list(line) == KEYS
        assert list(line["scores"]) == SCORES[protocol]
        assert {item["kind"] for item in line["items"]} <= KINDS[protocol]
        assert all(next(iter(item)) == "kind" for item in line["items"])
        assert (line["protocol"], line["status"], line["judge"]) == (protocol, "judged", "recorded:replies")


@pytest.mark.parametrize("protocol", FILES)
def test_the_report_fits_80_columns(steelyard: Steelyard, protocol: str) -> None:
    """In a pipe the report is at most 80 columns wide, where a Chinese character takes two."""
    done = steelyard("run", FILES[protocol], "-p", protocol, "-j", RECORDED)
    assert done.code == 0
    assert max(cell_len(line) for line in done.out.splitlines()) <= 80


def test_the_report_is_on_stdout_and_the_rest_is_not(steelyard: Steelyard) -> None:
    """Standard output holds the report alone; which run it was is said on standard error."""
    done = steelyard("run", RAG, "-p", "atomic", "-j", RECORDED)
    assert done.out.startswith("报告")
    assert done.err.startswith("run ")
    assert "recorded:replies" in done.err.splitlines()[0]


@pytest.mark.parametrize(
    ("lang", "title"), [("en", "Report"), ("zh-Hans", "报告"), ("zh-Hant", "報告")]
)  # fmt: skip
def test_lang(steelyard: Steelyard, lang: str, title: str) -> None:
    """`--lang` decides the report's language, whatever the data's."""
    done = steelyard("run", RAG, "-p", "grounded", "-j", RECORDED, "--lang", lang)
    assert done.out.startswith(title)
    assert steelyard("report", "--lang", lang).out.startswith(title)


def test_bad_rows_are_listed_and_the_good_ones_judged(steelyard: Steelyard) -> None:
    """A broken row is named by file, line and field; the rest is judged; the exit code is 3."""
    good = lines_of(RAG)[:2]
    path = write_lines(Path("mixed.jsonl"), [good[0], {"id": "no-answer", "question": "?"}, good[1]])
    with path.open("a", encoding="utf-8") as file:
        file.write("not json\n")
    done = steelyard("run", path, "-p", "atomic", "-j", RECORDED, "-o", "out.jsonl", "--lang", "en")
    assert done.code == 3
    assert [line["id"] for line in lines_of("out.jsonl")] == ["car-tyre", "car-seat"]
    rows = [line.split()[:3] for line in done.out.splitlines() if line.startswith("mixed.jsonl")]
    assert rows == [["mixed.jsonl", "2", "answer"], ["mixed.jsonl", "4", "–"]]
    assert "4/4" in done.err


def test_unjudged_items_exit_with_3(steelyard: Steelyard) -> None:
    """What no judge labelled is not hidden: the status says so, and so does the exit code."""
    write_lines(Path("new.jsonl"), [{"id": "new", "question": "新的问题？", "answer": "新的回答在这里。"}])
    done = steelyard("run", RAG, "new.jsonl", "-p", "atomic", "-j", RECORDED, "-o", "out.jsonl")
    assert done.code == 3
    line = lines_of("out.jsonl")[-1]
    assert line["status"] == "failed"
    assert line["scores"]["accuracy"] is None
    assert "unjudged:atoms:not_recorded" in line["flags"]


def test_several_files_and_stdin(steelyard: Steelyard) -> None:
    """Files are judged one after the other; `-` reads standard input."""
    rows = Path(RAG).read_text("utf-8").splitlines(keepends=True)
    Path("a.jsonl").write_text("".join(rows[:3]), "utf-8")
    Path("b.jsonl").write_text("".join(rows[3:5]), "utf-8")
    done = steelyard(
        "run", "a.jsonl", "b.jsonl", "-", "-p", "grounded", "-j", RECORDED, "-o", "out.jsonl", stdin="".join(rows[5:])
    )
    assert done.code == 0
    assert [line["id"] for line in lines_of("out.jsonl")] == [row["id"] for row in lines_of(RAG)]


def test_map_and_csv(steelyard: Steelyard) -> None:
    """Columns of any name are mapped to the fields; a CSV gives the same verdicts as the JSONL."""
    rows = lines_of(RAG)[:3]
    with Path("mine.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["nr", "frage", "passagen", "text", "date"])
        writer.writerows([[r["id"], r["question"], json.dumps(r["references"]), r["answer"], r["date"]] for r in rows])
    maps = ["-m", "id=nr", "-m", "question=frage", "-m", "references=passagen", "-m", "answer=text"]
    done = steelyard("run", "mine.csv", "-p", "atomic", "-j", RECORDED, *maps, "-o", "out.jsonl")
    assert done.code == 0
    assert [line["scores"]["accuracy"] for line in lines_of("out.jsonl")] == [1.0, 0.0, 1.0]


def test_options(steelyard: Steelyard) -> None:
    """`-O` reaches every option of the protocol; weights bring a composite score."""
    judge_examples(steelyard, "scorecard", "-O", "weights=accuracy=2,relevance=1", "-o", "out.jsonl")
    first = lines_of("out.jsonl")[0]
    assert first["scores"]["composite"] == 100
    judge_examples(steelyard, "grounded", "--strict", "-o", "strict.jsonl")
    museum = lines_of("strict.jsonl")[4]
    assert (museum["id"], museum["scores"]["accuracy"]) == ("museum-visitors", 0)


def test_settings_file(steelyard: Steelyard) -> None:
    """Judge, language, store and options come from steelyard.toml; paths in it are relative to it."""
    Path("settings").mkdir()
    Path("settings/my.toml").write_text(
        f'[run]\njudge = "taped"\nlanguage = "en"\nstore = "my.db"\n'
        f'[judges.taped]\nkind = "recorded"\nfile = {json.dumps(str(EXAMPLES / "replies.jsonl"))}\n'
        "[options.grounded]\nstrict = true\n",
        "utf-8",
    )
    done = steelyard("run", RAG, "-p", "grounded", "--config", "settings/my.toml", "-o", "out.jsonl")
    assert done.code == 0
    assert done.out.startswith("Report")
    assert lines_of("out.jsonl")[4]["scores"]["accuracy"] == 0
    assert Path("settings/my.db").exists()


def test_record_and_replay(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `--record` wrote answers the same run without the server."""
    samples = facts(Path("facts.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "--record", "taped.jsonl").code == 0
    done = steelyard("run", samples, "-p", "atomic", "-j", "recorded:taped.jsonl", "-o", "out.jsonl")
    assert done.code == 0
    assert [line["scores"]["accuracy"] for line in lines_of("out.jsonl")] == [1.0, 1.0]
    assert lines_of("out.jsonl")[0]["usage"]["calls"] == 0


def test_own_prompts(steelyard: Steelyard) -> None:
    """A prompt of the user's own is what the model is sent."""
    mine = steelyard("prompts", "print", "atomic.split.en").out.replace("You split", "Kindly split")
    Path("atomic.split.en.md").write_text(mine, "utf-8")
    with fact_server() as server:
        point_to(server)
        samples = facts(Path("facts.jsonl"), 1)
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "--prompts", "atomic.split.en.md").code == 0
        assert any("Kindly split" in json.dumps(request.body) for request in server.requests)


@pytest.mark.parametrize("style", ["plain", "json", "quiet", "live"])
def test_progress(steelyard: Steelyard, style: str) -> None:
    """Progress is on standard error, in the form that was asked for."""
    done = steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", style)
    told = done.err.splitlines()[1:]
    if style == "quiet":
        assert told == []
    elif style == "json":
        assert json.loads(told[-1])["done"] == 8
    else:
        assert "8/8" in told[-1]


# --- keys --------------------------------------------------------------------------------------------

KEY = "sk-very-secret-0123456789"


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_key_is_sent_and_never_kept(steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key goes to the endpoint and nowhere else: not into output, results, manifest, store or recording."""
    monkeypatch.setenv("MY_KEY", KEY)
    with fact_server(key=KEY) as server:
        point_to(server)
        done = steelyard(
            "run", facts(Path("f.jsonl"), 2), "-p", "atomic", "-j", "mine", "-o", "o.jsonl", "--record", "r.jsonl"
        )
        assert done.code == 0
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    said = done.out + done.err + steelyard("report", "--as", "json").out + steelyard("judges", "list").out
    assert KEY not in said
    assert KEY.encode() not in everything(tmp_path)


def test_a_refused_key(steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad key ends the run at once: one request, exit code 4, one line, and the key is not repeated."""
    monkeypatch.setenv("MY_KEY", KEY)
    with fact_server(key="another") as server:
        point_to(server)
        done = steelyard("run", facts(Path("f.jsonl"), 40), "-p", "atomic", "-j", "mine", "--progress", "quiet")
        assert done.code == 4
        assert len(server.requests) == 1
    _, complaint = done.err.splitlines()
    assert complaint.startswith("steelyard: mine:")
    assert "MY_KEY" in complaint
    assert KEY not in done.out + done.err
    assert KEY.encode() not in everything(tmp_path)


def test_openai_from_the_environment(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """`openai:MODEL` needs no settings file: URL and key come from the environment."""
    with fact_server(key=KEY, models=("small",)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert steelyard("run", facts(Path("f.jsonl"), 1), "-p", "atomic", "-j", "openai:small").code == 0
        done = steelyard("run", "f.jsonl", "-p", "atomic", "-j", "openai:large")
        assert done.code == 4
        assert "no model 'large'" in done.err


# --- validate and parse ------------------------------------------------------------------------------


def test_validate(steelyard: Steelyard) -> None:
    """Every bad row is one line that names file, line and field; good files exit with 0."""
    assert steelyard("validate", RAG, "-p", "grounded") == (0, "", "8 good, 0 bad\n")
    write_lines(Path("bad.jsonl"), [{"question": "?", "answer": "!"}, {"question": "?"}, {"answer": 1}])
    done = steelyard("validate", "bad.jsonl", "-p", "atomic")
    assert done.code == 3
    assert [line.split(":")[:2] for line in done.out.splitlines()] == [["bad.jsonl", "2"], ["bad.jsonl", "3"]]
    assert done.err == "1 good, 2 bad\n"


@pytest.mark.parametrize("protocol", [name for name in FILES if vocabulary(name).transcript])
def test_parse_reads_back_what_report_writes(steelyard: Steelyard, protocol: str) -> None:
    """A transcript of a run, parsed again, has the same scores."""
    judge_examples(steelyard, protocol, "-o", "out.jsonl")
    rows = [
        {"id": line["id"], "transcript": steelyard("show", "last", line["id"], "--as", "transcript").out}
        for line in lines_of("out.jsonl")
        if line["items"]
    ]
    write_lines(Path("transcripts.jsonl"), rows)
    done = steelyard("parse", "transcripts.jsonl", "-p", protocol, "-o", "parsed.jsonl")
    assert done.code == 0, done.err
    scores = {line["id"]: line["scores"] for line in lines_of("out.jsonl")}
    assert {line["id"]: line["scores"] for line in lines_of("parsed.jsonl")} == {r["id"]: scores[r["id"]] for r in rows}
    assert all(list(line) == KEYS for line in lines_of("parsed.jsonl"))


def test_parse_from_files_folders_and_stdin(steelyard: Steelyard) -> None:
    """Text files are named by their stem, in a folder with their path in it; `-` is standard input."""
    judge_examples(steelyard)
    text = steelyard("show", "last", "car-seat", "--as", "transcript").out
    Path("folder/deep").mkdir(parents=True)
    for path in ("one.txt", "folder/a.md", "folder/deep/b.txt"):
        Path(path).write_text(text, "utf-8")
    done = steelyard("parse", "one.txt", "folder", "-", stdin=text)
    assert done.code == 0
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["one", "a", "deep/b", "stdin"]


def test_parse_names_what_it_cannot_read(steelyard: Steelyard) -> None:
    """A text in none of the forms is named by its place; the others are still read; the exit code is 3."""
    judge_examples(steelyard)
    text = steelyard("show", "last", "car-seat", "--as", "transcript").out
    write_lines(Path("t.jsonl"), [{"id": "x", "output": "你好"}, {"id": "y", "output": text}, {"id": "z"}])
    done = steelyard("parse", "t.jsonl")
    assert done.code == 3
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["y"]
    assert "t.jsonl:1" in done.err
    assert "t.jsonl:3" in done.err


# --- report and show -----------------------------------------------------------------------------------


def test_report_forms(steelyard: Steelyard) -> None:
    """One run as a table, as Markdown, as JSON and as transcripts; `-o` writes instead of printing."""
    judge_examples(steelyard)
    assert "| " in steelyard("report", "last", "--as", "markdown").out
    assert json.loads(steelyard("report", "1", "--as", "json").out)["protocol"] == "atomic"
    assert steelyard("report", "--as", "transcript").out.count("是否为兜底回复") == 8
    assert steelyard("report", "--as", "json", "-o", "report.json").out == ""
    assert json.loads(Path("report.json").read_text("utf-8"))["n"] == 8


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "transcript"])
@pytest.mark.parametrize("command", [("report", "own.jsonl"), ("show", "own.jsonl", "a")])
def test_every_form_says_how_far_the_judge_can_be_trusted(
    steelyard: Steelyard, command: tuple[str, ...], form: str
) -> None:
    """In the page where it has a place for it, else beside it on stderr; the documents' own forms stay as they are."""
    line = {"id": "a", "protocol": "atomic", "status": "judged", "scores": {"fallback": 0}, "items": []}
    write_lines(Path("own.jsonl"), [line | {"flags": [], "judge": "embedded", "usage": {}}])
    said = steelyard(*command, "--as", form, "--lang", "en")
    inside, beside = (" ".join(text.split()) for text in (said.out, said.err))
    assert ("It is not an LLM." in inside) is (form != "transcript")
    assert ("It is not an LLM." in beside) is (form == "transcript")


def test_a_judge_that_was_not_measured_is_not_spoken_of(steelyard: Steelyard) -> None:
    """Nothing is claimed of other judges."""
    judge_examples(steelyard)
    assert json.loads(steelyard("report", "last", "--as", "json").out)["agreement"] == {}
    assert "note:" not in steelyard("report", "last", "--as", "transcript").err


def test_dialogue_reports(steelyard: Steelyard) -> None:
    """Report 1 is the document's JSON with no further keys, report 2 its Markdown."""
    judge_examples(steelyard, "dialogue")
    report = json.loads(steelyard("show", "last", "tutor-pebble", "--as", "report1").out)
    assert list(report) == ["evaluation_report"]
    assert [list(turn) for turn in report["evaluation_report"]] == [["round", "criteria_results"]] * 2
    results = report["evaluation_report"][1]["criteria_results"]
    assert [list(result) for result in results] == [["criterion_id", "content", "result"]] * 3
    assert [result["result"] for result in results] == ["不符合", "符合", "符合"]
    assert "有效性" in steelyard("report", "last", "--as", "report2").out


def test_report_of_a_result_file(steelyard: Steelyard) -> None:
    """A file of result lines is reported and shown like a run, without a store."""
    judge_examples(steelyard, "atomic", "-o", "out.jsonl", "--store", "elsewhere.db")
    from_run = json.loads(steelyard("report", "last", "--as", "json", "--store", "elsewhere.db").out)
    from_file = json.loads(steelyard("report", "out.jsonl", "--as", "json").out)
    values = {name: score["value"] for name, score in from_run["scores"].items()}
    assert {name: score["value"] for name, score in from_file["scores"].items()} == values
    assert "第三排" in steelyard("show", "out.jsonl", "car-seat").out
    assert not Path(".steelyard").exists()


def test_show(steelyard: Steelyard) -> None:
    """One sample with its question, passages, items, reasons and evidence; in the sample's own script."""
    judge_examples(steelyard)
    shown = "".join(steelyard("show", "last", "car-seat").out.split())
    for expected in ("应该装在第几排", "应为第二排。", "请勿在第三排安装", "错误"):
        assert expected in shown
    assert "準確性" in steelyard("show", "last", "museum-visitors").out
    assert steelyard("show", "last", "museum-visitors", "--lang", "en").out.startswith("Atomic accuracy")
    line = json.loads(steelyard("show", "last", "bank-card", "--as", "json").out)
    assert [*line] == [*KEYS, "notes", "agreement"]
    assert steelyard("show", "last", "bank-card", "--as", "markdown").out.startswith("#")


# --- prompts and judges ----------------------------------------------------------------------------------


def test_prompts(steelyard: Steelyard) -> None:
    """Prompts are listed with versions, printed as files, and compared with the user's."""
    listed = steelyard("prompts", "list").out
    assert "atomic.judge.zh" in listed
    printed = steelyard("prompts", "print", "atomic.judge.zh").out
    Path("atomic.judge.zh.md").write_text(printed, "utf-8")
    assert "the same as the shipped" in steelyard("prompts", "diff", "atomic.judge.zh.md").out
    Path("atomic.judge.zh.md").write_text(printed.replace("你", "您", 1), "utf-8")
    changed = steelyard("prompts", "diff", "atomic.judge.zh.md").out
    assert any(line.startswith("+") and "您" in line for line in changed.splitlines())


def test_judges_list(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's judges are listed with whether their key is set, never with the key."""
    monkeypatch.setenv("MY_KEY", KEY)
    Path("steelyard.toml").write_text('[judges.mine]\nmodel = "m"\nkey_env = "MY_KEY"\n', "utf-8")
    listed = steelyard("judges", "list").out
    assert "mine" in listed
    assert "MY_KEY (set)" in listed
    assert KEY not in listed


def test_judges_list_says_how_far_the_judge_in_the_box_was_measured(steelyard: Steelyard) -> None:
    """How often it is right, and on how many sets that was seen."""
    row = next(line for line in steelyard("judges", "list").out.splitlines() if line.startswith("│ embedded "))
    assert re.search(r"\d\d \(\d sets\)", row)


def test_judges_check(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit endpoint exits with 0; one that cannot be reached exits with 4 and says so."""
    with Loopback(reply_for=judge_plainly) as server:
        point_to(server)
        done = steelyard("judges", "check", "mine")
        assert (done.code, "Fit for use" in done.out) == (0, True)
        assert "structured   json_schema\n" in done.out
        assert "labels       9 of 9" in done.out
    done = steelyard("judges", "check", "mine")
    assert (done.code, "Not usable" in done.out) == (4, True)


# --- help and mistakes -------------------------------------------------------------------------------------


def commands() -> list[list[str]]:
    """Every command there is, as words."""
    root = typer.main.get_command(app)
    found = []
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        found += [[name, inner] for inner in command.commands] if hasattr(command, "commands") else [[name]]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_has_an_example(steelyard: Steelyard, words: list[str]) -> None:
    """`--help` of every command shows an example that begins with the command itself."""
    done = steelyard(*words, "--help")
    assert done.code == 0
    assert f"Example:  steelyard {' '.join(words)}" in " ".join(done.out.split(" "))


def test_version_and_bare_call(steelyard: Steelyard) -> None:
    """`--version` says the version; without a command the help is shown."""
    assert steelyard("--version") == (0, f"steelyard {__version__}\n", "")
    assert "Usage: steelyard" in "".join(steelyard()[1:])


MISTAKES = {
    "no such file": (2, "nosuch.jsonl: there is no such file", ["run", "nosuch.jsonl", "-p", "atomic", "-j", RECORDED]),
    "an empty folder": (2, "there is no file of samples in it", ["run", ".", "-p", "atomic", "-j", RECORDED]),
    "one of two files": (2, "nosuch.jsonl", ["run", RAG, "nosuch.jsonl", "-p", "atomic", "-j", RECORDED]),
    "no protocol": (2, "--protocol", ["run", RAG, "-j", RECORDED]),
    "unknown protocol": (2, "atomic, grounded", ["run", RAG, "-p", "nosuch", "-j", RECORDED]),
    "embedded has no models": (2, "takes no model", ["run", RAG, "-p", "atomic", "-j", "embedded:big"]),
    "unknown judge": (2, "no judge 'nosuch'", ["run", RAG, "-p", "atomic", "-j", "nosuch"]),
    "openai without model": (2, "openai:MODEL", ["run", RAG, "-p", "atomic", "-j", "openai"]),
    "no recording": (2, "no file nosuch.jsonl", ["run", RAG, "-p", "atomic", "-j", "recorded:nosuch.jsonl"]),
    "not a recording": (2, "rag.jsonl:1: key", ["run", RAG, "-p", "atomic", "-j", f"recorded:{RAG}"]),
    "no such run": (5, "no store", ["run", RAG, "-p", "atomic", "-j", "recorded:17"]),
    "unknown option": (2, "no option 'nosuch'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-O", "nosuch=1"]),
    "bad option": (2, "option strict", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-O", "strict=perhaps"]),
    "bad pair": (2, "NAME=VALUE", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-O", "strict"]),
    "unknown field": (2, "'nosuch'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-m", "nosuch=x"]),
    "unknown encoding": (2, "'klingon'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--encoding", "klingon"]),
    "unknown format": (2, "'doc'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--format", "doc"]),
    "unknown language": (2, "'fr'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--lang", "fr"]),
    "unknown progress": (2, "'loud'", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "loud"]),
    "no calls": (2, "--concurrency", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-c", "0"]),
    "no prompt": (2, "nosuch.md", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--prompts", "nosuch.md"]),
    "no settings": (2, "nosuch.toml", ["run", RAG, "-p", "atomic", "-j", RECORDED, "--config", "nosuch.toml"]),
    "-o is the input": (2, "name another folder", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-o", f"{RAG}/"]),
    "-o below a file": (2, "", ["run", RAG, "-p", "atomic", "-j", RECORDED, "-o", f"{RAG}/out.jsonl"]),
    "strict dialogue": (2, "no option 'strict'", ["run", DIALOGUE, "-p", "dialogue", "-j", RECORDED, "--strict"]),
    "validate nothing": (2, "nosuch.csv", ["validate", "nosuch.csv", "-p", "atomic"]),
    "parse nothing": (2, "nosuch.txt", ["parse", "nosuch.txt"]),
    "report before any run": (5, "judge something first", ["report"]),
    "report of no file": (2, "nosuch.jsonl: there is no such file", ["report", "nosuch.jsonl"]),
    "report of other lines": (2, "rag.jsonl:1: protocol", ["report", RAG]),
    "resume nothing": (5, "judge something first", ["resume"]),
    "no such prompt": (2, "no prompt for nosuch", ["prompts", "print", "nosuch.zh"]),
    "no such command": (2, "'nosuch'", ["nosuch"]),
    "no such flag": (2, "--nosuch", ["report", "--nosuch"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(steelyard: Steelyard, tmp_path: Path, mistake: str) -> None:
    """A mistake is one line that says what is wrong, with its exit code, and leaves nothing behind."""
    code, expected, words = MISTAKES[mistake]
    done = steelyard(*words)
    assert done.code == code
    assert done.err.startswith("steelyard: ")
    assert done.err.count("\n") == 1
    assert expected in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--debug`, wherever it stands, lets the error through."""
    monkeypatch.setattr(sys, "argv", ["steelyard", "report", "nosuch.jsonl", "--debug"])
    from steelyard.cli import main
    from steelyard.errors import InputError

    with pytest.raises(InputError, match="nosuch"):
        main()


def test_out_must_not_be_the_input(steelyard: Steelyard) -> None:
    """Nobody's data is overwritten by a slip of `-o`."""
    samples = Path("mine.jsonl")
    samples.write_bytes(Path(RAG).read_bytes())
    for words in (["run", "-p", "atomic", "-j", RECORDED], ["parse"]):
        done = steelyard(words[0], samples, *words[1:], "-o", "./mine.jsonl")
        assert done.code == 2
        assert "would overwrite the input" in done.err
    assert samples.read_bytes() == Path(RAG).read_bytes()


def test_max_cost_needs_prices(steelyard: Steelyard) -> None:
    """A limit in dollars that could never be reached is refused before anything is paid."""
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", facts(Path("f.jsonl"), 1), "-p", "atomic", "-j", "mine", "--max-cost", "1")
        assert (done.code, "needs the prices" in done.err) == (2, True)
        assert server.requests == []


def test_settings_with_a_slip(steelyard: Steelyard) -> None:
    """A key that does not exist is named by its place in the file."""
    Path("steelyard.toml").write_text('[run]\njugde = "x"\n', "utf-8")
    done = steelyard("report")
    assert done.code == 2
    assert "steelyard.toml: run.jugde" in done.err
    Path("steelyard.toml").write_text("[run\n", "utf-8")
    assert "not valid TOML" in steelyard("report").err


def test_as_a_module(tmp_path: Path) -> None:
    """`python -m steelyard` is the same command line; its exit code and streams are a process's own."""
    command = [sys.executable, "-m", "steelyard", "run", RAG, "-p", "atomic", "-j", RECORDED]
    settings: dict[str, Any] = {"cwd": tmp_path, "env": process_environment(), "capture_output": True, "text": True}
    done = subprocess.run(command, **settings, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    bad = subprocess.run([*command[:3], "report", "nosuch.jsonl"], **settings, check=False)
    assert (bad.returncode, bad.stderr) == (2, "steelyard: nosuch.jsonl: there is no such file\n")


@pytest.mark.parametrize("words", ["prompts print atomic.judge.zh", f"run '{RAG}' -p atomic -j '{RECORDED}' 2>&1"])
def test_a_reader_that_goes_away(tmp_path: Path, words: str) -> None:
    """`steelyard … | head -1` is no failure: no traceback, exit code 0."""
    command = f"set -o pipefail; '{sys.executable}' -m steelyard {words} | head -1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=process_environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
