"""The command line as a user has it, without the price of a new interpreter for each command."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from endpoint import Loopback, Request
from steelyard.cli import main
from steelyard.judges.check import EXPECTED, QUESTIONS

EXAMPLES = Path(__file__).parent.parent / "examples"
RAG, DIALOGUE, PAIRS = (str(EXAMPLES / f"{name}.jsonl") for name in ("rag", "dialogue", "pairs"))
RECORDED = f"recorded:{EXAMPLES / 'replies.jsonl'}"


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Steelyard:
    """Call it with the words of a command; it runs in the test's own folder and environment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: object, stdin: str | None = None) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["steelyard", *map(str, words)])
        if stdin is not None:
            self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)


def process_environment() -> dict[str, str]:
    """For commands that must be a process of their own: the package under test is found from any folder."""
    return {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "src"), "PYTHONUTF8": "1"}


def installed_plugin(folder: Path) -> Path:
    """The pytest plugin as an installed package brings it: a folder for the path, with the project's entry point."""
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / "steelyard_here-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steelyard-here\nVersion: 0\n")
    listed = "".join(f"{name} = {target}\n" for name, target in project["entry-points"]["pytest11"].items())
    (info / "entry_points.txt").write_text(f"[pytest11]\n{listed}")
    return folder


def lines_of(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def write_lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


# --- samples about numbered facts, and a server that knows how to judge them -------------------------


def facts(path: Path, count: int) -> Path:
    """A file of samples whose answer is one true statement each; judging one with `atomic` takes two calls."""
    return write_lines(
        path,
        [
            {
                "id": f"fact-{n}",
                "question": f"Does fact {n} hold?",
                "references": [f"Fact {n} holds, as everybody knows."],
                "answer": f"Fact {n} holds.",
                "date": "2026-03-02",
            }
            for n in range(1, count + 1)
        ],
    )


def judge_facts(request: Request) -> dict[str, Any]:
    """What a flawless model replies about such a sample."""
    found = re.search(r"Fact (\d+) holds", request.user)
    assert found, request.user
    if request.task == "atomic.split":
        return {"atoms": [{"id": 1, "text": f"{found[0]}."}]}
    atom = {"id": 1, "reference": 0, "quote": found[0], "label": "correct", "source": "reference", "level": 1}
    return {"atoms": [atom], "fallback": False}


def judge_plainly(request: Request) -> dict[str, Any]:
    """What a judge that reads replies to `judges check`: the label of each statement, wherever it stands."""
    said = {atom.text: label for data in QUESTIONS.values() for atom, label in zip(data.atoms, EXPECTED, strict=True)}
    there = sorted((request.user.rfind(text), label) for text, label in said.items() if text in request.user)
    atoms = [{"id": id, "reason": "r", "label": label, "level": 1} for id, (_, label) in enumerate(there, 1)]
    return {"atoms": atoms, "fallback": False}


def fact_server(**settings: Any) -> Loopback:
    return Loopback(reply_for=judge_facts, **settings)


def point_to(server: Loopback, path: Path = Path("steelyard.toml"), **more: object) -> None:
    """A settings file whose judge `mine` is this server, impatient enough for tests."""
    judge = {"base_url": server.url, "model": "test-model", "key_env": "MY_KEY"}
    table = judge | {"retries": 0, "timeout": 20, "backoff": 0.05} | more
    written = "\n".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
    path.write_text(f"[judges.mine]\n{written}\n", encoding="utf-8")
