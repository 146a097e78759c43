"""`runs`: what the store holds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, console, pairs
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.store import RunRow

app = typer.Typer(
    help="List, show, watch, edit, delete, import and rescue runs.", no_args_is_help=True, rich_markup_mode=None
)
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, number, or last.")]


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per run.")] = False,
    project: Annotated[str | None, typer.Option("--project", help="Only the runs of this project.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only runs with this tag.")] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """List the runs, newest first.

    Example:  steelyard runs list
    """
    from rich.markup import escape
    from rich.table import Table

    from steelyard.engine.runs import failure_of, state_of
    from steelyard.reports.blocks import one_line
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = [run._replace(state=state_of(run, opened)) for run in opened.runs(project=project, tag=tag)]
        rows = [(run, opened.judged(run.id)) for run in found]
        failures = {run.id: failure for run in found if (failure := failure_of(run, opened))}
    if as_json:
        for run, counts in rows:
            why = failures[run.id].model_dump() if run.id in failures else None
            print(json.dumps({**run._asdict(), "samples": counts, "failure": why}, ensure_ascii=False))
        return
    table = Table("#", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    # The id is what people copy: others may be cut short, it never is.
    table.add_column("run", no_wrap=True, min_width=20)
    # Most people name nothing: a column is there where somebody did.
    titles = [title for title in ("name", "project", "tags") if any(getattr(run, title) for run, _ in rows)]
    for title in (*titles, "protocol", "judge", "state"):
        table.add_column(title)
    table.add_column("samples", justify="right")
    table.add_column("gaps", justify="right")
    for run, counts in rows:
        gaps = counts.get("partial", 0) + counts.get("failed", 0)
        name = (escape(_short(run, title)) for title in titles)
        shown = (run.protocol, escape(run.judge), run.state, str(sum(counts.values())), str(gaps or ""))
        table.add_row(str(run.number), run.id, *name, *shown)
    console().print(table)
    for run, _ in rows:
        if run.id in failures:
            _, reason, remedy = failures[run.id].sentences("en")
            print(f"\n{run.number} failed. {one_line(reason)} {remedy}")


def _short(run: RunRow, title: str) -> str:
    value = getattr(run, title)
    text = ", ".join(value) if title == "tags" else str(value)
    return f"{text} (baseline)".lstrip() if title == "project" and run.baseline else text


@app.command("edit")
def edit(
    name: RunArgument,
    called: Annotated[str | None, typer.Option("--name", help="What to call the run.")] = None,
    notes: Annotated[str | None, typer.Option("--notes", help="What to note about it.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Add a tag; may be given several times.")] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", help="Remove a tag.")] = None,
    meta: Annotated[
        list[str] | None, typer.Option("--meta", metavar="KEY=VALUE", help="Set a value; an empty one removes it.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="The project it belongs to; '' for none.")] = None,
    baseline: Annotated[
        bool | None, typer.Option("--baseline/--no-baseline", help="Whether it is its project's baseline.")
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Change what a run is called: its name, notes, tags, project. The manifest stays as it is.

    Example:  steelyard runs edit last --name "prompt 7" --tag nightly --baseline
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        run = opened.run(name)
        tags = [one for one in (*run.tags, *(tag or ())) if one not in (untag or ())] if tag or untag else None
        values = {**run.meta, **pairs(meta, "--meta")} if meta else None
        kept = None if values is None else {key: value for key, value in values.items() if value != ""}
        opened.edit_run(run.id, name=called, notes=notes, tags=tags, meta=kept, project=project, baseline=baseline)
    print(f"changed {run.id}", file=sys.stderr)


@app.command("watch")
def watch(
    name: RunArgument = "last",
    once: Annotated[bool, typer.Option("--once", help="Show it once, do not wait.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a second.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Follow a run that workers judge: how far it is, who is at work, how fast, and what they hold.

    Example:  steelyard runs watch last
    """
    from rich.live import Live

    from steelyard.cli.worker import followed, watched
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        run = opened.run(name).id
        with Live(console=console(), auto_refresh=False, transient=not once) as live:
            for shown in followed(opened, run):
                if as_json:
                    print(json.dumps(shown, ensure_ascii=False), flush=True)
                else:
                    live.update(watched(shown), refresh=True)
                if once:
                    break


@app.command("show")
def show(name: RunArgument = "last", config: ConfigOption = None, store: StoreOption = None) -> None:
    """Print a run's manifest: exactly how it came about.

    Example:  steelyard runs show last
    """
    from steelyard.engine.runs import state_of
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        run = opened.run(name)
        run = run._replace(state=state_of(run, opened))
        shown = {**run._asdict(), "samples": opened.judged(run.id), "bad_rows": len(opened.bad_rows(run.id))}
    print(json.dumps(shown, ensure_ascii=False, indent=2))


@app.command("delete")
def delete(
    name: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a run's samples and verdicts. The judge's replies stay, so nothing is ever paid for twice.

    Example:  steelyard runs delete 3
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        run = opened.run(name)
        if not yes:
            if not sys.stdin.isatty():
                raise ConfigError(f"add --yes to delete run {run.id} without being asked")
            typer.confirm(f"Delete run {run.id} with {sum(opened.judged(run.id).values())} samples?", abort=True)
        opened.delete_run(run.id)
    print(f"deleted {run.id}", file=sys.stderr)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file of `export --whole`.")],
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Import a run from another store.

    Example:  steelyard runs import run.jsonl
    """
    from steelyard.engine import exports
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store)) as opened:
        run = exports.read(opened, file)
    print(f"imported {run.id} as number {run.number}", file=sys.stderr)


@app.command("rescue")
def rescue(
    damaged: Annotated[Path, typer.Argument(metavar="STORE", help="The store that cannot be read.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new store; must not exist.")],
) -> None:
    """Copy what can be read of a damaged store into a new one.

    Example:  steelyard runs rescue .steelyard/store.db -o rescued.db
    """
    from steelyard.store.rescue import rescue as rescued_from

    found = rescued_from(damaged, out)
    print(f"{out}: {found.runs} runs, {found.verdicts} verdicts, {found.replies} replies, {found.labels} labels")
    if found.lost_replies:
        print(f"{found.lost_replies} replies that these runs used are lost", file=sys.stderr)
    if found.orphans:
        print(f"{found.orphans} rows are of runs or sets that are lost; they are left out", file=sys.stderr)
    if not (found.runs or found.replies):
        print("nothing could be rescued", file=sys.stderr)
        raise typer.Exit(3)
    if found.runs:
        print(f"go on with: steelyard resume RUN --store {out}; replies that were rescued are not paid again")
    else:
        print(f"run the same command again with --store {out}: replies that were rescued are not paid again")
