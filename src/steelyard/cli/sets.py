"""`sets`: versioned sets of samples, taken from runs to be judged again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.common import ConfigOption, StoreOption, check_out, console
from steelyard.cli.flags import RunArgument
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.engine.sets import StoredSet
    from steelyard.store import Store

app = typer.Typer(
    help="List, show, change, export and delete sets of samples.", no_args_is_help=True, rich_markup_mode=None
)
SetArgument = Annotated[str, typer.Argument(metavar="SET[@VERSION]", help="A set's name; @3 for its version 3.")]
SetName = Annotated[str, typer.Argument(metavar="SET", help="A set's name.")]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="The set's project, where several have one of that name.")
]
NoteOption = Annotated[str, typer.Option("--note", help="What to note about the new version.")]


def _chosen(store: Store, name: str, project: str | None) -> StoredSet:
    from steelyard.engine.sets import StoredSet

    return StoredSet.named(store, name, project)


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per set.")] = False,
    project: Annotated[str | None, typer.Option("--project", help="Only the sets of this project.")] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """List the sets by name.

    Example:  steelyard sets list
    """
    from rich.markup import escape
    from rich.table import Table

    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = opened.sets(project)
    if as_json:
        for one in found:
            print(json.dumps(one._asdict(), ensure_ascii=False))
        return
    table = Table("set", "project", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("samples", "version"):
        table.add_column(title, justify="right")
    table.add_column("changed")
    for one in found:
        table.add_row(escape(one.name), escape(one.project), str(one.samples), str(one.version), one.changed)
    console().print(table)


@app.command("show")
def show(
    name: SetArgument,
    as_json: Annotated[bool, typer.Option("--json", help="The set and its versions as JSON.")] = False,
    project: ProjectOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Show the versions of a set and the samples of one.

    Example:  steelyard sets show regression@2
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        chosen = _chosen(opened, name, project)
        versions = opened.set_versions(chosen.found.id)
        held = [(one.sample.id, one.run) for one in opened.set_samples(chosen.found.id, chosen.version.version)]
    if as_json:
        document: dict[str, Any] = chosen.found._asdict()
        document["versions"] = [one._asdict() for one in versions]
        document["held"] = [{"id": id, "run": run} for id, run in held]
        print(json.dumps(document, ensure_ascii=False))
        return
    for one in versions:
        by, note = f" by {one.author}" if one.author else "", f": {one.note}" if one.note else ""
        print(f"version {one.version}  {one.samples} samples  {one.time}{by}{note}")
    print(f"\n{chosen}")
    for id, run in held:
        print(f"  {id}  from {run}")


@app.command("export")
def export(
    name: SetArgument,
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE", help="The JSONL file to write.")],
    project: ProjectOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Write the samples of a version to a file that `run` reads.

    Example:  steelyard sets export regression -o regression.jsonl
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        chosen = _chosen(opened, name, project)
        check_out(to, [])
        with to.open("w", encoding="utf-8") as file:
            file.writelines(f"{sample.model_dump_json(exclude_defaults=True)}\n" for sample in chosen)
    print(f"{len(chosen)} samples of {chosen} in {to}", file=sys.stderr)


@app.command("add")
def add(
    name: SetName,
    run: RunArgument,
    samples: Annotated[
        list[str] | None, typer.Argument(metavar="SAMPLE...", help="Ids of samples; or choose them by a filter.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KIND:LABEL", help="Those with an item of this kind that has this label."),
    ] = None,
    flag: Annotated[list[str] | None, typer.Option("--flag", help="Those with this flag.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Those with this tag.")] = None,
    search: Annotated[str, typer.Option("--search", help="Those whose id, question, answer or tags hold this.")] = "",
    score: Annotated[
        list[str] | None,
        typer.Option("--score", metavar="NAME=LOW..HIGH", help="Those with a score in this range; an end may be open."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All samples of the run.")] = False,
    note: NoteOption = "",
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Add samples of a run to a set of its project; a new name makes a new set. Several filters mean all of them.

    Example:  steelyard sets add regression last --label atom:wrong
    """
    from steelyard.engine.manifest import now
    from steelyard.settings import Settings
    from steelyard.store import Store
    from steelyard.store.listing import SampleQuery, chosen

    filtered = bool(label or flag or tag or search or score)
    if sum((bool(samples), filtered, everything)) != 1:
        raise ConfigError("name samples, or choose them by --label, --flag, --tag, --search, --score, or take --all")
    query = SampleQuery(
        search=search,
        flags=tuple(flag or ()),
        labels=tuple(label or ()),
        tags=tuple(tag or ()),
        scores=dict(map(_range, score or ())),
    )
    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        row = opened.run(run)
        places = [] if samples else chosen(opened, row.id, query)
        found = opened.add_to_set(name, row.id, samples or (), places=places, time=now(), note=note)
    print(f"{found.name}@{found.version}: {found.samples} samples", file=sys.stderr)


def _range(given: str) -> tuple[str, Any]:
    from steelyard.store.listing import Range

    name, equals, ends = given.partition("=")
    low, dots, high = ends.partition("..")
    try:
        if equals and dots:
            return name, Range(low=float(low) if low else None, high=float(high) if high else None)
    except ValueError:
        pass
    raise ConfigError(f"--score takes NAME=LOW..HIGH, for example accuracy=..0.5, not {given!r}")


@app.command("remove")
def remove(
    name: SetName,
    samples: Annotated[list[str], typer.Argument(metavar="SAMPLE...", help="Ids of samples.")],
    note: NoteOption = "",
    project: ProjectOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Make a version without these samples; earlier versions still hold them.

    Example:  steelyard sets remove regression q17
    """
    from steelyard.engine.manifest import now
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = opened.set_named(name, project)
        found = opened.remove_from_set(found.id, samples, time=now(), note=note)
    print(f"{found.name}@{found.version}: {found.samples} samples", file=sys.stderr)


@app.command("delete")
def delete(
    name: SetName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: ProjectOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a set with all its versions; runs over it keep their samples.

    Example:  steelyard sets delete regression --yes
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = opened.set_named(name, project)
        if not yes:
            typer.confirm(f"Delete {found.name} with all its versions?", abort=True)
        opened.delete_set(found.id)
