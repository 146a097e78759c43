"""The manifest: enough to say why two runs differ, nothing that is secret."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from command import DIALOGUE, RAG, RECORDED, Steelyard, fact_server, facts, point_to
from steelyard.engine.manifest import described_data, make_manifest
from steelyard.judges import ScriptedJudge
from steelyard.judges.chat import ChatJudge
from steelyard.judges.endpoint import Endpoint
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol

SECRET = "sk-very-secret-0123456789"
NAMES = ["atomic", "grounded", "scorecard", "dialogue"]


def manifest(protocol: str = "atomic", judge: Any = None, **given: Any) -> dict[str, Any]:
    chosen = get_protocol(protocol)
    parts = {"prompts": Prompts.shipped(), "sources": [], "fields": {}, "encoding": "utf-8"} | given
    parts["data"] = [described_data(source) for source in parts.pop("sources")]
    return make_manifest(chosen, chosen.parse_options(parts.pop("options", {})), judge or ScriptedJudge({}), **parts)


@pytest.mark.parametrize("protocol", NAMES)
def test_what_it_says(protocol: str) -> None:
    """Protocol with version, every option with its value, judge, packages, Python; and it is plain JSON."""
    made = manifest(protocol)
    assert made["protocol"] == {"name": protocol, "version": get_protocol(protocol).version}
    assert set(made["options"]) == set(get_protocol(protocol).options.model_fields)
    assert made["python"] == platform.python_version()
    assert {name: version(name) for name in ("pydantic", "aiohttp")}.items() <= made["packages"].items()
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize("protocol", NAMES)
def test_prompts_with_version_and_hash(protocol: str) -> None:
    """Exactly the prompts the protocol can ask with, in both languages, each with version and sha256."""
    prompts = manifest(protocol)["prompts"]
    tasks = {name.rpartition(".")[0] for name in prompts}
    assert all(task.startswith((f"{protocol}.", "again", "reply")) for task in tasks - {"atomic.split"})
    assert ("atomic.split" in tasks) == (protocol in ("atomic", "scorecard"))
    assert {name.rpartition(".")[2] for name in prompts} == {"zh", "en"}
    for entry in prompts.values():
        assert entry["version"] >= 1
        assert len(entry["sha256"]) == 64


def test_an_own_prompt_shows(tmp_path: Path) -> None:
    """A user's prompt has another hash and says where it came from."""
    text = Prompts.shipped().get("atomic.judge", "zh").text
    mine = tmp_path / "judge.md"
    mine.write_text(text.replace("你", "您", 1), "utf-8")
    before = manifest()["prompts"]
    after = manifest(prompts=Prompts.shipped().with_files([mine]))["prompts"]
    changed = {name for name in before if before[name]["sha256"] != after[name]["sha256"]}
    assert changed == {"atomic.judge.zh"}
    assert after["atomic.judge.zh"]["source"].endswith("judge.md")


def test_options_show() -> None:
    """Two runs that differ in a switch differ in their manifests, there and nowhere else."""
    loose, strict = manifest(), manifest(options={"strict": True})
    differing = {key for key in loose if loose[key] != strict[key]}
    assert differing == {"options"}
    assert {key for key in loose["options"] if loose["options"][key] != strict["options"][key]} == {"strict"}


def test_data_files_by_content(tmp_path: Path) -> None:
    """Size and sha256 of each file, so that an edited file is noticed; stdin and missing files have a name only."""
    file = tmp_path / "答案.jsonl"
    file.write_text('{"question": "？"}\n', "utf-8")
    data = manifest(sources=[str(file), "-", "gone.jsonl"])["data"]
    assert data[0] == {
        "path": str(file),
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    assert data[1:] == [{"path": "-"}, {"path": "gone.jsonl"}]
    file.write_text('{"question": "?"}\n', "utf-8")
    assert manifest(sources=[str(file)])["data"][0]["sha256"] != data[0]["sha256"]


def test_how_the_data_was_read() -> None:
    """Mapped columns and the encoding belong to what was judged."""
    made = manifest(fields={"answer": "reply.text"}, encoding="gb18030")
    assert (made["fields"], made["encoding"]) == ({"answer": "reply.text"}, "gb18030")


def test_a_judge_over_http_without_its_secrets() -> None:
    """Model, URL and body are told; the key, its headers and the proxy's password are not."""
    endpoint = Endpoint(
        name="mine",
        base_url="https://llm.example/v1",
        model="m-1",
        key_env="MY_KEY",
        headers={"X-Token": SECRET},
        body={"seed": 7},
        proxy=f"http://me:{SECRET}@proxy:3128",
    )
    judge = manifest(judge=ChatJudge(endpoint, Prompts.shipped(), key=SecretStr(SECRET)))["judge"]
    assert (judge["base_url"], judge["model"], judge["body"]) == ("https://llm.example/v1", "m-1", {"seed": 7})
    assert judge["name"] == "mine:m-1"
    assert SECRET not in json.dumps(judge)


def test_a_judge_that_cannot_describe_itself() -> None:
    """A ten-line judge has a name, and that is enough."""
    assert manifest()["judge"] == {"name": ScriptedJudge({}).name}


# --- the commit ------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a checkout its commit is recorded."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.chdir(tmp_path)
    assert manifest()["commit"] == git(tmp_path, "rev-parse", "HEAD")


def test_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a checkout, in one without commits, and without git there is none, and nothing breaks."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert manifest()["commit"] is None
    git(tmp_path, "init", "-q")
    assert manifest()["commit"] is None
    monkeypatch.setenv("PATH", "")
    assert manifest()["commit"] is None


# --- in a run --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "file"), [("grounded", RAG), ("dialogue", DIALOGUE)])
def test_a_run_keeps_its_manifest(steelyard: Steelyard, protocol: str, file: str) -> None:
    """`runs show` prints it, and the Markdown and JSON reports carry it."""
    steelyard("run", file, "-p", protocol, "-j", RECORDED)
    shown = json.loads(steelyard("runs", "show", "last").out)
    told = json.loads(steelyard("report", "--as", "json").out)["manifest"]
    assert told["protocol"]["name"] == protocol
    assert told["data"][0]["sha256"] == hashlib.sha256(Path(file).read_bytes()).hexdigest()
    assert told["data"][0]["sha256"] in json.dumps(shown)
    assert "| packages |" in steelyard("report", "--as", "markdown", "--lang", "en").out


def test_no_secret_in_a_run(steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a run over HTTP the key is in none of the files it left behind and in none of its reports."""
    monkeypatch.setenv("MY_KEY", SECRET)
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", facts(tmp_path / "facts.jsonl", 2), "-p", "atomic", "-j", "mine", "-o", "out.jsonl")
        assert server.requests[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert done.code == 0, done.err
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    said = steelyard("report", "--as", "json").out + steelyard("report", "--as", "markdown").out
    assert SECRET.encode() not in written
    assert SECRET not in said + done.out + done.err
