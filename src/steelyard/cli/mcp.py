"""`mcp`: the store for assistants that speak the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, complete_judge
from steelyard.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command("mcp")(mcp)


def mcp(
    allow_run: Annotated[
        bool, typer.Option("--allow-run", help="Offer the tool evaluate too: it judges, and may cost money.")
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", help="With --allow-run: who judges.", autocompletion=complete_judge),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="With --allow-run: US dollars that one call may cost.")
    ] = None,
    root: Annotated[
        Path, typer.Option("--root", help="With --allow-run: the folder that files of samples are read from.")
    ] = Path(),
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Serve runs to an assistant over standard input and output (MCP): list, show, compare; read-only.

    Example:  steelyard mcp --store .steelyard/store.db
    """
    from steelyard.integrations.mcp import McpSettings, serve
    from steelyard.settings import Settings

    settings = Settings.load(config)
    if not allow_run and (judge or max_cost is not None):
        raise ConfigError("--judge and --max-cost are for --allow-run")
    if not root.is_dir():
        raise ConfigError(f"--root {root} is not a folder")
    serve(McpSettings(settings, settings.store_location(store), root.resolve(), allow_run, judge, max_cost))
