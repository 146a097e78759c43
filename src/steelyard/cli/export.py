"""`export`: a run as a file, or its scores in another tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, pairs
from steelyard.cli.runs import RunArgument
from steelyard.errors import ConfigError

INCOMPLETE = 3


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def _print_schema(wanted: bool) -> None:
    if wanted:
        from steelyard.reports.files import line_schema

        print(json.dumps(line_schema(), ensure_ascii=False, indent=2))
        raise typer.Exit


def export(
    name: RunArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FILE|FOLDER/|URL|TOOL[:WHERE]",
            help="A file (.jsonl: result lines; .csv, .parquet: a row per sample), a folder or URL of Parquet, or "
            "opentelemetry, phoenix, langfuse, mlflow, every-eval-ever with an address or folder.",
        ),
    ],
    items: Annotated[bool, typer.Option("--items", help="A row per labelled item instead (.csv, .parquet).")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything, samples and manifest too, for `runs import` (.jsonl).")
    ] = False,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", metavar="NAME=VALUE", help="An option of the tool.")
    ] = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of result lines."),
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Write a run to a file or a folder, or send its scores to another tool.

    Example:  steelyard export last --to langfuse
    """
    from steelyard.engine import exports
    from steelyard.engine.datasets import names_folder
    from steelyard.integrations.sending import TARGETS, send, stored_run
    from steelyard.settings import Settings
    from steelyard.store import Store

    settings, options = Settings.load(config), pairs(option, "--option")
    is_tool = to.partition(":")[0] in TARGETS
    if is_tool and (items or whole):
        raise ConfigError("--items and --whole are for files")
    if not is_tool and options:
        raise ConfigError("--option is for tools")
    is_folder = not is_tool and names_folder(to)
    if not is_tool and not is_folder and not Path(to).suffix:
        raise ConfigError(
            f"{to!r} is neither a file name with an ending, nor a folder (FOLDER/), nor a tool; "
            f"tools are {', '.join(TARGETS)}"
        )
    with Store.open(settings.store_location(store), create=False) as opened:
        run = opened.run(name)
        if not is_tool:
            count = exports.write(opened, run, to, items=items, whole=whole)
            print(f"{count} {'verdicts, with their items,' if is_folder else 'lines'} in {to}", file=sys.stderr)
            return
        delivery = send(stored_run(opened, run), to, settings.environment, options)
    print(f"{to.partition(':')[0]}: {delivery}", file=sys.stderr)
    if not delivery.is_complete:
        raise typer.Exit(INCOMPLETE)
