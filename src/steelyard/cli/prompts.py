"""`prompts`: lists, prints and compares the judge prompts."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption

app = typer.Typer(help="List, print and compare prompts.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(config: ConfigOption = None) -> None:
    """List every prompt with its version and where it comes from.

    Example:  steelyard prompts list
    """
    from steelyard.settings import Settings

    for prompt in sorted(Settings.load(config).prompts):
        print(f"{prompt.id:26} v{prompt.version:<3} {prompt.sha256[:12]}  {prompt.source}")


@app.command("print")
def print_(
    name: Annotated[str, typer.Argument(help="Task and language, as `prompts list` shows them.")],
    config: ConfigOption = None,
) -> None:
    """Print one prompt as a file that can be edited and used with --prompts.

    Example:  steelyard prompts print atomic.split.en > atomic.split.en.md
    """
    from steelyard.settings import Settings

    print(Settings.load(config).prompts.get(*_id(name)).text, end="")


@app.command("diff")
def diff(
    files: Annotated[list[Path], typer.Argument(help="Your prompt files, or a folder of them.")],
) -> None:
    """Show how your prompts differ from the shipped ones.

    Example:  steelyard prompts diff my-prompts/
    """
    from steelyard.errors import PromptError
    from steelyard.prompts import Prompts

    shipped = Prompts.shipped()
    for mine in Prompts([]).with_files(files):
        try:
            theirs = shipped.get(mine.task, mine.language)
        except PromptError:
            print(f"{mine.source}: there is no shipped prompt {mine.id}")
            continue
        lines = list(
            difflib.unified_diff(
                theirs.text.splitlines(), mine.text.splitlines(), f"shipped {theirs.id}", mine.source, lineterm=""
            )
        )
        print("\n".join(lines) if lines else f"{mine.source}: the same as the shipped {mine.id}")


def _id(name: str) -> tuple[str, str]:
    task, _, language = name.removesuffix(".md").rpartition(".")
    return task, language
