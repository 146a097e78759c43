"""`comment`: a gate's comment, below the change that a build is about."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption


def register(app: typer.Typer) -> None:
    app.command("comment")(comment)


def comment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What gate --comment wrote.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Tells comments of one change apart; default: the protocol's name.")
    ] = None,
    number: Annotated[
        int | None, typer.Option("--number", min=1, help="The pull or merge request; default: that of the build.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Post a gate's comment to the pull request of GitHub, or merge request of GitLab, that this build is about; the
    next time the same comment is updated.

    Example:  steelyard comment comment.md
    """
    from steelyard.errors import InputError
    from steelyard.integrations.code_hosts import change_of, marked, post
    from steelyard.settings import Settings

    if not file.is_file():
        raise InputError("there is no such file", file=str(file))
    mark, body = marked(file.read_text("utf-8"), name)
    change = change_of(Settings.load(config).environment, number)
    done = asyncio.run(post(change, mark, body))
    print(f"comment {done} on {change.host}", file=sys.stderr)
