"""A language model in this process: llama.cpp, loaded at the first question, asked one question at a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.errors import JudgeError, MissingExtra
from steelyard.judges.embedded.judge import usable_cores
from steelyard.records import Usage

Message = Mapping[str, str]

CONTEXT = 4096
# A label's token is among the first few, or the model has not understood the question.
CANDIDATES = 24
NO_LOG = -1
# With less than this for all labels together, the model was about to say something else altogether.
LEAST_MASS = 1e-3


FirstToken = Mapping[str, float]
"""What the model would say next: the likeliest tokens with their log-probabilities."""


class ModelServer:
    """llama.cpp's server as a library. It also listens on a free loopback port (`address`) for HTTP clients.

    Calls may come from any thread. Questions about the same text belong into one `turn`, so that what the model has
    read of it is not pushed out by another thread's question in between. HTTP clients that ask about several texts
    by turns want as many `slots`: each keeps what the model has read of one, and has the whole context.
    """

    def __init__(self, path: Path, *, threads: int | None = None, context: int = CONTEXT, slots: int = 1) -> None:
        self.path, self.threads, self.context, self.slots = path, threads or usable_cores(), context, slots
        self._lock = threading.RLock()
        self._spent = threading.local()
        self._server: Any = None
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Questions asked inside are not interrupted by those of other threads."""
        with self._lock:
            yield

    @contextmanager
    def counted(self) -> Iterator[list[Usage]]:
        """What this thread's questions cost, one entry each, while inside."""
        entries: list[Usage] = []
        self._spent.entries = entries
        try:
            yield entries
        finally:
            self._spent.entries = None

    @property
    def address(self) -> str:
        """The base URL of its HTTP interface."""
        with self._lock:
            return f"{self._started().listening_address}/v1"

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None:
        """The distribution of the first token of the reply; None where the model could not take the question."""
        said = self._said(messages)
        if "choices" not in said and messages[0]["role"] == "system":
            # Some templates know no system role.
            said = self._said(_without_system(messages))
        if (entries := getattr(self._spent, "entries", None)) is not None:
            entries.append(_usage(said))
        try:
            likely = said["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            return {entry["token"]: float(entry["logprob"]) for entry in likely}
        except (KeyError, IndexError, TypeError):
            # Nothing said (a reply that ends at once), or an error: the question is longer than the context.
            return None

    def _said(self, messages: Sequence[Message]) -> Mapping[str, Any]:
        asked = {
            "messages": list(messages),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": CANDIDATES,
            "cache_prompt": True,
            # A model that thinks aloud first would never come to the label.
            "chat_template_kwargs": {"enable_thinking": False},
        }
        with self._lock:
            said: Mapping[str, Any] = self._started().handle_chat_completions(asked)
        return said

    def close(self) -> None:
        """Stop the model and give its memory back."""
        with self._lock:
            self._server, self._closed = None, True

    def _started(self) -> Any:
        if self._closed:
            raise JudgeError("the local model was closed; make a new judge")
        if self._server is None:
            self._server = _start(self.path, self.threads, self.context, self.slots)
        return self._server


def _start(path: Path, threads: int, context: int, slots: int) -> Any:
    llama = llama_cpp()
    settings = llama.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_parallel = context * slots, slots
    for part in (settings.cpuparams, settings.cpuparams_batch):
        # Waiting threads sleep instead of spinning, so that other work on the machine goes on.
        part.n_threads, part.poll = threads, 0
    settings.verbosity = NO_LOG
    settings.warmup = False
    # Whole states of earlier prompts would be kept in memory, up to 8 GB of them; one shared prefix is all we need.
    settings.cache_ram_mib = 0
    try:
        return llama.Server(settings)
    except Exception as error:
        # What llama.cpp says here speaks of its own settings, whatever is wrong.
        raise JudgeError(
            f"{path}: llama.cpp could not load this file; it is damaged or incomplete, needs more memory than is "
            "free, or is a kind of model that the installed version does not know"
        ) from error


def llama_cpp() -> Any:
    """The bindings, or what to install."""
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtra("xllamacpp", "local", "the local judge") from error
    return xllamacpp


def label_shares(first: FirstToken, labels: Sequence[str]) -> list[float] | None:
    """How the model's next token divides among the labels; None if it thinks of saying something else altogether.

    A label may be longer than one token, and a token longer than a label: each counts for the label it begins, or is
    begun by, unless that could be several.
    """
    folded = [label.casefold() for label in labels]
    masses = [0.0] * len(labels)
    for token, logarithm in first.items():
        said = token.strip().casefold()
        meant = [at for at, label in enumerate(folded) if said and (label.startswith(said) or said.startswith(label))]
        if len(meant) == 1:
            masses[meant[0]] += math.exp(logarithm)
    total = sum(masses)
    return [mass / total for mass in masses] if total > LEAST_MASS else None


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The same chat with the instruction at the head of the first question."""
    system, first, *rest = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _usage(said: Mapping[str, Any]) -> Usage:
    counts, timings = said.get("usage") or {}, said.get("timings") or {}
    return Usage(
        calls=1,
        prompt_tokens=int(counts.get("prompt_tokens") or 0),
        completion_tokens=int(counts.get("completion_tokens") or 0),
        cached_tokens=int(timings.get("cache_n") or 0),
    )
