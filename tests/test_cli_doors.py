"""The command line at its doors: dates of earlier runs, files without a readable row, grouped problems, completion."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import openpyxl
import pytest

from command import RAG, RECORDED, Steelyard, fact_server, lines_of, point_to, process_environment, write_lines
from steelyard.cli.run import chosen_options
from steelyard.judges.models import known_models
from steelyard.protocols import get_protocol
from steelyard.settings import Settings
from steelyard.store import Store


def undated(path: Path, count: int) -> Path:
    """Samples that do not say when they were asked; judging one with `atomic` takes two calls."""
    rows = [
        {"id": n, "question": "?", "references": [f"Fact {n} holds, as everybody knows."], "answer": f"Fact {n} holds."}
        for n in range(1, count + 1)
    ]
    return write_lines(path, rows)


def stored_runs() -> int:
    path = Path(".steelyard/store.db")
    if not path.exists():
        return 0
    with Store.open(path) as store:
        return len(store.runs())


# --- the same command on another day -----------------------------------------------------------------


def test_the_same_command_on_another_day_pays_nothing(steelyard: Steelyard) -> None:
    """The date of the earlier run over the same file is used, and it says so; --date and --fresh overrule that."""
    samples = undated(Path("a.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        command = ("run", samples, "-p", "atomic", "-j", "mine", "--progress", "quiet")
        assert steelyard(*command, "--date", "2020-02-29").code == 0
        assert len(server.requests) == 4
        done = steelyard(*command)
        assert (done.code, len(server.requests)) == (0, 4)
        (note,) = [line for line in done.err.splitlines() if line.startswith("note: date")]
        assert re.fullmatch(
            r"note: date 2020-02-29, as in run \S+ over the same data, .*; --date or --fresh changes it", note
        )
        # The same file under another name is the same data.
        copy = Path("copy.jsonl")
        shutil.copy(samples, copy)
        assert "note: date 2020-02-29" in steelyard("run", copy, *command[2:]).err
        assert len(server.requests) == 4
        done = steelyard(*command, "--date", "2021-01-01")
        # Splitting does not depend on the date, labelling does.
        assert ("note: date" in done.err, len(server.requests)) == (False, 6)
        done = steelyard(*command, "--fresh")
        assert ("note: date" in done.err, len(server.requests)) == (False, 10)


def test_only_the_same_protocol_judge_and_file_count(steelyard: Steelyard) -> None:
    """With other data, another protocol or another judge, the date is today's."""
    samples, others = undated(Path("a.jsonl"), 1), undated(Path("b.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        quiet = ("--progress", "quiet")
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "--date", "2020-02-29", *quiet).code == 0
        for words in (
            ("run", others, "-p", "atomic", "-j", "mine"),
            ("run", samples, "-p", "atomic", "-j", "embedded"),
            ("run", samples, "-p", "grounded", "-j", "embedded"),
            ("run", samples, others, "-p", "atomic", "-j", "embedded"),
        ):
            assert "note: date" not in steelyard(*words, *quiet).err
    shown = json.loads(steelyard("runs", "show", "last").out)
    assert shown["manifest"]["options"]["date"] == date.today().isoformat()


def test_the_settings_file_may_name_a_date(steelyard: Steelyard) -> None:
    """A date in steelyard.toml is the user's, like one of a flag."""
    samples = undated(Path("a.jsonl"), 1)
    assert steelyard("run", samples, "-p", "atomic", "-j", "embedded", "--date", "2020-02-29").code in (0, 3)
    Path("steelyard.toml").write_text('[options.atomic]\ndate = "2022-02-22"\n', encoding="utf-8")
    assert "note: date" not in steelyard("run", samples, "-p", "atomic", "-j", "embedded").err
    assert json.loads(steelyard("runs", "show", "last").out)["manifest"]["options"]["date"] == "2022-02-22"


def test_today_is_the_clocks(steelyard: Steelyard) -> None:
    """The command asks the clock that it is given."""
    options = chosen_options(get_protocol("scorecard"), Settings.load(environment={}), {}, lambda: date(2031, 5, 6))
    assert options.model_dump()["date"] == "2031-05-06"


def test_a_batch_uses_the_earlier_date_too(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered to `run` is not put into a batch file on another day."""
    samples = undated(Path("a.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "--date", "2020-02-29").code == 0
    done = steelyard("batch", "start", samples, "-p", "atomic", "-j", "mine", "-o", "round.jsonl")
    assert "note: date 2020-02-29" in done.err
    assert "2 samples finished, 0 asks open" in done.err


# --- rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[{"q": 1}, {"q": 2}], []])
@pytest.mark.parametrize("piped", [False, True])
def test_a_run_without_a_readable_row_is_not_stored(steelyard: Steelyard, rows: list[object], piped: bool) -> None:
    """It is an error with exit code 2 that shows the first problem; nothing is kept, an earlier result file stays."""
    Path("out.jsonl").write_text("what was there\n", encoding="utf-8")
    file = write_lines(Path("a.jsonl"), rows)
    source = ("-", "--format", "jsonl") if piped else (file,)
    words = ("run", *source, "-p", "atomic", "-j", RECORDED, "-o", "out.jsonl")
    done = steelyard(*words, stdin=file.read_text("utf-8") if piped else None)
    assert done.code == 2
    said = "none of 2 rows can be read; the first: question, answer: not in" if rows else "there is no sample in it"
    assert said in done.err
    if rows:
        assert "--map question=COLUMN --map answer=COLUMN" in done.err
    assert stored_runs() == 0
    assert Path("out.jsonl").read_text("utf-8") == "what was there\n"


def test_validate_tells_equal_problems_together(steelyard: Steelyard) -> None:
    """Rows with the same problem are one entry with their numbers; all missing fields of a row are named at once."""
    good = {"question": "q", "answer": "a"}
    rows = [{"q": "x", "a": "y"}] * 8 + [good | {"id": "1"}, good | {"id": "1"}, good | {"id": "2"}, good | {"id": "2"}]
    rows += [{"question": "q", "answer": None}]
    done = steelyard("validate", write_lines(Path("a.jsonl"), rows), "-p", "atomic")
    assert done.code == 3
    mapping = "--map question=COLUMN --map answer=COLUMN"
    assert done.out.splitlines() == [
        f"a.jsonl:1: question, answer: not in this row; it has 'q', 'a' (name the right ones: {mapping})",
        "  and 7 more rows: 2, 3, 4, 5, 6, …",
        "a.jsonl:10: id: '1' was used on line 9 already; ids must differ",
        "  and 1 more row: 12",
        'a.jsonl:13: answer: is null; write "" for an empty text',
    ]
    assert "2 good, 11 bad" in done.err


def test_validate_names_all_missing_fields_of_dialogues(steelyard: Steelyard) -> None:
    """Of the dialogue, and of a turn in it."""
    rows = [{"x": 1}, {"system_prompt": "s", "turns": [{"y": 1}]}]
    done = steelyard("validate", write_lines(Path("a.jsonl"), rows), "-p", "dialogue")
    first, second = done.out.splitlines()
    assert first.startswith("a.jsonl:1: system_prompt, turns: not in this row")
    assert second.startswith("a.jsonl:2: turns[0].prompt, turns[0].answer: not in this row")
    assert "--map turns.prompt=COLUMN --map turns.answer=COLUMN" in second


def test_an_excel_file_is_judged_and_resumed(steelyard: Steelyard) -> None:
    """A workbook is a file like any other, and the sheet that was read is read again."""
    book = openpyxl.Workbook()
    sheet, rows = book.create_sheet("answers"), lines_of(RAG)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    sheet.append(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        sheet.append([json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell for cell in cells])
    book.save("a.xlsx")
    words = ("-p", "atomic", "-j", RECORDED, "--format", "xlsx:answers", "-o", "out.jsonl")
    done = steelyard("run", "a.xlsx", *words)
    assert done.code == 0, done.err
    assert [line["id"] for line in lines_of("out.jsonl")] == [row["id"] for row in rows]
    assert steelyard("resume", "last").code == 0


def test_how_a_file_is_read_is_said(steelyard: Steelyard) -> None:
    """A result file of Ark is read as one, and every command that reads it says so once."""
    row = {"prompt": "q", "answer": "gold", "response": "said", "usage": {}, "error": ""}
    file = write_lines(Path("ark.jsonl"), [row, row | {"prompt": "q2"}])
    for words in (("validate", file, "-p", "atomic"), ("run", file, "-p", "atomic", "-j", "embedded")):
        err = steelyard(*words).err
        assert err.count("note: ark.jsonl: read as a file of 火山方舟 Volcengine Ark") == 1


# --- models and completion ------------------------------------------------------------------------------


def test_models_list(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The known models with size and licence, and whether each is here; bare `models` shows the same."""
    monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
    listed = steelyard("models", "list")
    assert listed.code == 0
    for name, known in known_models().items():
        assert name in listed.out
        assert known.licence in listed.out
    assert listed.out == steelyard("models").out


def completion(shell: str, words: str) -> list[str]:
    """What the shell would offer after these words, asked as its script asks."""
    environment = process_environment() | {
        "_STEELYARD_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "steelyard"], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    """Each shell gets a script, and the script's questions are answered: commands, and the values of options."""
    environment = process_environment() | {"_STEELYARD_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "steelyard" in done.stdout
    assert {"bash": "complete ", "zsh": "compdef ", "fish": "complete "}[shell] in done.stdout
    assert any("validate" in line for line in completion(shell, "steelyard val"))
    assert any("scorecard" in line for line in completion(shell, "steelyard run a.jsonl -p sc"))
    assert any("embedded" in line for line in completion(shell, "steelyard run a.jsonl -j emb"))


def test_completion_in_a_real_bash(tmp_path: Path) -> None:
    """In bash itself: after the script is loaded, a half-typed command is completed."""
    tool = tmp_path / "steelyard"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steelyard "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    script = """
    eval "$(_STEELYARD_COMPLETE=source_bash steelyard)"
    COMP_WORDS=(steelyard jud) COMP_CWORD=1
    function=$(complete -p steelyard | sed -E 's/.*-F ([^ ]+).*/\\1/')
    $function steelyard jud steelyard
    echo "${COMPREPLY[@]}"
    """
    environment = process_environment() | {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "judges", done.stderr
