"""The flags of commands that judge. Those that go to every session are one class, `SessionFlags`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from steelyard.cli.common import ConfigOption, LangOption, ProgressStyle, StoreOption, complete_judge


class Engine(StrEnum):
    """What starts the workers of a run, if not this command."""

    ray = "ray"


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, number, or last.")]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        "-j",
        help="embedded, local, verifier:NAME, PROVIDER:MODEL, recorded:FILE, one of steelyard.toml, A+B (panel), or "
        "'A>B' (routed).",
        autocompletion=complete_judge,
    ),
]
OutOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE|FOLDER/|URL",
        help="Write one result line per sample here (JSONL), or verdicts and items as Parquet to a folder or URL.",
    ),
]
LinesOption = Annotated[Path | None, typer.Option("--out", "-o", help="Write one result line per sample here (JSONL).")]
ConcurrencyOption = Annotated[
    int | None, typer.Option("--concurrency", "-c", min=1, help="Maximum concurrent calls. Default: adaptive.")
]
Rpm = Annotated[float | None, typer.Option("--rpm", min=0.1, help="Maximum requests per minute.")]
Tpm = Annotated[float | None, typer.Option("--tpm", min=1, help="Maximum prompt tokens per minute (estimated).")]
ProgressOption = Annotated[ProgressStyle, typer.Option(help="How to show progress, on standard error.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop after this many US dollars.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Stop after this many tokens.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", min=0, help="Stop after this many seconds.")]
RepeatsOption = Annotated[
    int | None, typer.Option("--repeats", min=1, help="Ask each judge N times; majority vote per label.")
]
EscalateOption = Annotated[
    str | None, typer.Option("--escalate", metavar="JUDGE", help="Who decides where a vote is split.")
]
VerifyOption = Annotated[
    str | None,
    typer.Option("--verify", metavar="JUDGE", help="Judge that re-checks negative labels, or itself."),
]
SureOption = Annotated[
    str | None,
    typer.Option(
        "--sure",
        metavar="NUMBER|FILE",
        help="For FIRST>THEN: the confidence from which the first judge's label is taken (default 0.9), "
        "or a file of calibrate --write-thresholds.",
    ),
]
OptionOption = Annotated[
    list[str] | None, typer.Option("--option", "-O", metavar="NAME=VALUE", help="Any option of the protocol.")
]
PromptsOption = Annotated[
    list[Path] | None, typer.Option("--prompts", help="Your own prompt file or folder, over the shipped ones.")
]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="FILE",
        help="Your own judge prompt: sent as it is, one call a sample, its reply read as a transcript.",
    ),
]
NameOption = Annotated[str | None, typer.Option("--name", help="What to call the run.")]
NotesOption = Annotated[str | None, typer.Option("--notes", help="What to note about the run.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="A tag of the run; may be given several times.")]
MetaOption = Annotated[
    list[str] | None, typer.Option("--meta", metavar="KEY=VALUE", help="Further metadata, e.g. commit=1a2b3c.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Only put the samples into the store, for `steelyard worker`.")
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--processes", min=1, help="Judge with so many processes on this machine, or Ray actors."),
]
EngineOption = Annotated[
    Engine | None, typer.Option("--engine", help="Where workers run: as actors of a Ray cluster (PostgreSQL).")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="HOST:PORT", help="The Ray cluster; default: RAY_ADDRESS, else one on this machine."
    ),
]
SilenceOption = Annotated[
    float,
    typer.Option("--silence", min=1, help="Seconds without a heartbeat after which a worker's samples go to others."),
]
ProjectOption = Annotated[str | None, typer.Option("--project", help="The project that the run belongs to.")]
FenceOption = Annotated[
    bool, typer.Option("--fence", help="With --template: put each text between tags with a code of its own.")
]


@dataclass(frozen=True)
class SessionFlags:
    """How hard to judge, how much it may cost, how the user hears of it, and where settings and store are."""

    concurrency: ConcurrencyOption = None
    rpm: Rpm = None
    tpm: Tpm = None
    max_cost: MaxCost = None
    max_tokens: MaxTokens = None
    max_time: MaxTime = None
    progress: ProgressOption = ProgressStyle.auto
    lang: LangOption = None
    config: ConfigOption = None
    store: StoreOption = None


def with_session_flags(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each field of its parameter `flags` as a flag of its own, the way typer wants them."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        flags = SessionFlags(**{field.name: given.pop(field.name) for field in fields(SessionFlags)})
        command(**given, flags=flags)

    hints = get_type_hints(SessionFlags, include_extras=True)
    singly = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(SessionFlags)
    ]
    own = inspect.signature(command, eval_str=True).parameters.values()
    every = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own if one.name != "flags"), *singly]
    called.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in every}
    return called
