"""Who is measured, and the virtual environment each of them gets under bench/.venvs."""

from __future__ import annotations

import json
import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parent
VENVS = HERE / ".venvs"
OWN = "steelyard"


@dataclass(frozen=True)
class Client:
    """A script of clients/, the environment it runs in, and what it judges."""

    script: str
    environment: str
    packages: tuple[str, ...] = ()
    metrics: str = ""
    npm: tuple[str, ...] = ()
    limit_of: str = "requests"
    """What the limit that it documents counts."""
    resumes: str = ""
    """How it goes on after a kill, if it can."""

    @property
    def is_peer(self) -> bool:
        return self.environment != OWN


BARE, COMMAND, EVALUATE = "bare aiohttp", "steelyard run", "steelyard evaluate()"
FOUR = "relevance, completeness, accuracy, faithfulness"
CLIENTS = {
    BARE: Client("run_bare.py", OWN, metrics="the same calls"),
    COMMAND: Client("run_command.py", OWN, metrics=FOUR, resumes="steelyard resume"),
    EVALUATE: Client("run_evaluate.py", OWN, metrics=FOUR),
    "ragas": Client(
        "run_ragas.py",
        "ragas",
        ("ragas==0.4.3", "langchain-openai==1.7.3", "langchain-community==0.3.31"),
        "faithfulness, answer relevancy, factual correctness, context recall",
        limit_of="metrics",
        resumes="its cache of replies",
    ),
    "deepeval": Client(
        "run_deepeval.py",
        "deepeval",
        ("deepeval==4.3.1",),
        "faithfulness, answer relevancy, contextual recall",
        limit_of="samples",
        resumes="its cache of samples",
    ),
    "inspect-ai": Client(
        "run_inspect.py",
        "inspect",
        ("inspect-ai==0.3.285", "openai==3.49.0"),
        "three model_graded_qa with templates for RAG",
        resumes="eval_retry",
    ),
    "pydantic-evals": Client(
        "run_pydantic_evals.py",
        "pydantic_evals",
        ("pydantic-evals==2.62.0", "pydantic-ai-slim[openai]==2.62.0"),
        "three LLMJudge rubrics",
        limit_of="samples",
    ),
    "autoevals": Client(
        "run_autoevals.py",
        "autoevals",
        ("autoevals==0.4.1", "openai==3.49.0"),
        "faithfulness, answer relevancy, context recall, factuality",
    ),
    "openevals": Client(
        "run_openevals.py",
        "openevals",
        ("openevals==0.2.2", "langchain-openai==1.7.3"),
        "groundedness, helpfulness, correctness",
    ),
    "phoenix": Client(
        "run_phoenix.py",
        "phoenix",
        ("arize-phoenix-evals==3.9.4", "openai==3.49.0", "pandas"),
        "faithfulness, correctness, document relevance",
        limit_of="metrics",
    ),
    "trulens": Client(
        "run_trulens.py",
        "trulens",
        ("trulens==2.16.0", "trulens-providers-openai==2.16.0"),
        "groundedness, answer relevance, context relevance",
        limit_of="samples",
    ),
    "ragchecker": Client(
        "run_ragchecker.py",
        "ragchecker",
        ("ragchecker==0.1.9",),
        "faithfulness, precision, recall, claim recall",
        limit_of="a batch",
        resumes="its saved results",
    ),
    "promptfoo": Client(
        "run_promptfoo.py",
        "promptfoo",
        npm=("promptfoo@0.121.20",),
        metrics="context-faithfulness, answer-relevance, context-recall, llm-rubric",
        limit_of="samples",
        resumes="eval --resume",
    ),
}


def python_of(environment: str) -> Path:
    return VENVS / environment / "bin" / "python"


def install(name: str) -> str | None:
    """Make a client's environment if it is not there; says why if that fails. Steelyard's own is made anew."""
    client = CLIENTS[name]
    folder = VENVS / client.environment
    if not client.is_peer:
        return _install_own(folder)
    done = folder / "installed"
    if done.exists():
        return None
    venv.create(folder, with_pip=not shutil.which("uv"), clear=True)
    command = [*installer(python_of(client.environment)), *client.packages]
    if client.npm:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *client.npm]
    if problem := _run(command, seconds=900):
        return problem
    done.touch()
    return None


def installer(python: Path) -> list[str]:
    """What installs for this interpreter: uv where there is one, as pip takes minutes to resolve ragas."""
    if uv := shutil.which("uv"):
        # pip compiles, and what is measured should not hang on who has installed it.
        return [uv, "pip", "install", "-q", "--compile-bytecode", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "-q"]


_own_is_fresh = False


def _install_own(folder: Path) -> str | None:
    global _own_is_fresh
    if _own_is_fresh:
        return None
    if not folder.exists():
        venv.create(folder, with_pip=True)
    command = installer(python_of(OWN))
    problem = _run([*command, str(PROJECT)]) or _run([*command, "--force-reinstall", "--no-deps", str(PROJECT)])
    _own_is_fresh = problem is None
    return problem


def _run(command: list[str], seconds: float = 600) -> str | None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except FileNotFoundError:
        return f"there is no {command[0]} here"
    except subprocess.TimeoutExpired:
        return f"not installed after {seconds:.0f} s"
    said = ended.stderr.strip().splitlines()
    return None if ended.returncode == 0 else (said[-1] if said else f"exit code {ended.returncode}")


def version_of(name: str, python: Path | None = None) -> str:
    """The version of a client's package, as installed."""
    client = CLIENTS[name]
    if client.npm:
        manifest = VENVS / client.environment / "node_modules" / client.npm[0].split("@")[0] / "package.json"
        return json.loads(manifest.read_text("utf-8"))["version"]
    package = {BARE: "aiohttp"}.get(name) or (client.packages or ("steelyard",))[0].split("==")[0]
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    command = [str(python or python_of(client.environment)), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "from source"
