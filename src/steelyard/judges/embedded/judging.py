"""One function per task, looked up by the task's name: what `EmbeddedJudge` does, in this process or in another."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import JudgeError
from steelyard.records import Data, ReplyData, Unjudged

if TYPE_CHECKING:
    from steelyard.judges.embedded.support import Read

Language = Literal["zh", "en"]
TaskFunction = Callable[[Any, Language, "Read"], ReplyData]

HOMES = {
    "atomic.split": ("atomic", "split"),
    "atomic.judge": ("atomic", "judge"),
    "grounded.judge": ("grounded", "judge"),
    "scorecard.key_points": ("scorecard", "key_points"),
    "scorecard.judge": ("scorecard", "judge"),
    "dialogue.validity": ("dialogue", "validity"),
    "dialogue.compliance": ("dialogue", "compliance"),
    "rubric.judge": ("rubric", "judge"),
    "rubric.dialogue": ("rubric", "dialogue"),
    "retrieval.judge": ("retrieval", "judge"),
    "pairwise.judge": ("pairwise", "judge"),
}


def answered(task: str, language: Language, data: Data, read: Read | None = None) -> ReplyData | Unjudged:
    """The answer to a task; `read` reads the passages, by default with the package's own eyes."""
    read = read or _reader()
    try:
        from steelyard.judges.embedded.meaning import ONE_THREAD
        from steelyard.judges.embedded.voice import in_script

        with ONE_THREAD:
            return task_function(task)(data, language, in_script(read, language))
    except JudgeError:
        raise
    except Exception as error:  # one sample that breaks a rule must not end a run over a million
        return failed(task, error)


def failed(task: str, error: Exception) -> Unjudged:
    return Unjudged(reason="judge_failed", detail=f"{task}: {type(error).__name__}: {error}")


def task_function(task: str) -> TaskFunction:
    module, function = HOMES[task]
    found: TaskFunction = getattr(import_module(f"steelyard.judges.embedded.{module}"), function)
    return found


def loaded() -> None:
    """Loads what the first ask would wait for."""
    _reader()(["a"]).support("b")


def _reader() -> Read:
    """The package's own reading; what it is made of is loaded at the first ask, not at import."""
    try:
        from steelyard.judges.embedded.support import read
    except ImportError as error:
        raise JudgeError(f"the embedded judge cannot start: {error}; install steelyard anew") from error
    return read
