"""Options that several commands share, and small things to print with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from steelyard.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.records import Language

Command = TypeVar("Command", bound=Callable[..., Any])


class Lang(StrEnum):
    """The languages of reports."""

    simplified = "zh-Hans"
    traditional = "zh-Hant"
    english = "en"


class ProgressStyle(StrEnum):
    """How progress is printed."""

    auto = "auto"
    live = "live"
    plain = "plain"
    json = "json"
    quiet = "quiet"


def complete_protocol(begun: str) -> list[str]:
    """For the shell: the protocols that begin like this."""
    from steelyard.protocols import protocol_names

    # After a comma the next of several is begun.
    before, comma, last = begun.rpartition(",")
    return [before + comma + name for name in protocol_names() if name.startswith(last)]


def complete_importer(begun: str) -> list[str]:
    """For the shell: the tools whose files are read."""
    from steelyard.samples import PLAIN, importer_names

    return [name for name in (*importer_names(), PLAIN) if name.startswith(begun)]


def complete_judge(begun: str) -> list[str]:
    """For the shell: the judges that can be named here and begin like this."""
    from steelyard.errors import SteelyardError
    from steelyard.evaluation.factory import built_in, judge_names
    from steelyard.settings import Settings

    kinds = [f"{name.partition(':')[0]}{':' * (':' in name)}" for name in built_in()]
    try:
        own = judge_names(Settings.load())
    except SteelyardError:  # a slip in the settings is told when a command runs
        own = []
    return [name for name in [*own, *kinds] if name.startswith(begun)]


ProtocolName = Annotated[
    str,
    typer.Option(
        "--protocol",
        "-p",
        help="atomic, grounded, scorecard, dialogue, retrieval, pairwise, rubric:FILE, or one you installed.",
        autocompletion=complete_protocol,
    ),
]
ProtocolNames = Annotated[
    str,
    typer.Option(
        "--protocol",
        "-p",
        help="atomic, grounded, scorecard, dialogue, retrieval, pairwise, rubric:FILE, or one installed; several: A,B.",
        autocompletion=complete_protocol,
    ),
]
SamplesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Samples: files, folders, globs, s3://… and other URLs; - is standard input."
    ),
]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", "-m", metavar="FIELD=COLUMN", help="Where a field is found, e.g. answer=output.text."),
]
EncodingOption = Annotated[str, typer.Option(help="Encoding of text files, e.g. gb18030.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="jsonl, json, csv, tsv, parquet or xlsx[:SHEET], where the name does not say it."),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TOOL",
        help="The tool that wrote the file (dify, langfuse, ...), where it is not recognised; plain: no tool.",
        autocompletion=complete_importer,
    ),
]
LangOption = Annotated[Lang | None, typer.Option("--lang", help="Language of the report; default: the data's.")]
PageLangOption = Annotated[Lang | None, typer.Option("--lang", help="Language of the pages; default: the browser's.")]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="Settings file; default: ./steelyard.toml.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Where runs are kept: a file, or postgresql://…; default: .steelyard/store.db."),
]


def pairs(given: list[str] | None, flag: str) -> dict[str, str]:
    """`NAME=VALUE` arguments as a dict."""
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"{flag} takes NAME=VALUE, not {text!r}")
        found[name.strip()] = value.strip()
    return found


def check_files(files: list[str], importer: str | None = None) -> None:
    """Report a mistyped file name before anything is judged."""
    from steelyard.samples import is_dataset, takes_names

    if importer and takes_names(importer):
        return
    for file in files:
        if file != "-" and not is_dataset(file) and not Path(file).exists():
            raise InputError("there is no such file", file=file)


def check_out(to: Path | str | None, inputs: list[str]) -> None:
    """Report an output path that cannot be written, or that would overwrite an input."""
    if to is None:
        return
    if isinstance(to, str):
        from steelyard.engine.datasets import check_folder, names_folder

        if names_folder(to):
            if any(f"{to.rstrip('/')}/".startswith(f"{file.rstrip('/')}/") for file in inputs):
                raise ConfigError(f"-o {to} lies in the input; name another folder")
            check_folder(to)
            return
    out = Path(to)
    for file in inputs:
        if file != "-" and out.exists() and Path(file).exists() and out.samefile(file):
            raise ConfigError(f"-o {out} would overwrite the input; name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8"):
        pass


def out_of(to: str, protocol: str) -> str:
    """Where the lines of one of several protocols go: `results.jsonl` becomes `results.scorecard.jsonl`. Each file has
    a sample once, as every command that reads one expects. In a folder each run has a place of its own anyway."""
    from steelyard.engine.datasets import names_folder

    if names_folder(to):
        return to
    out = Path(to)
    return str(out.with_name(f"{out.stem}.{protocol.replace(':', '-').replace('/', '-')}{out.suffix}"))


def note(said: str) -> None:
    """Print a decision that was made for the user, on standard error."""
    print(f"note: {said}", file=sys.stderr)


def language(lang: Lang | None) -> Language | None:
    return lang.value if lang else None


def console(*, stderr: bool = False) -> Console:
    """Where tables are printed: as wide as the terminal; 80 columns, no colour, in a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 80
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)
