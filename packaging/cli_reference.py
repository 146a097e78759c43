"""The page "Commands and options" of the documentation site, written from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from steelyard.cli import app

INTRODUCTION = """# Commands and options

Every command with its arguments and options, as `--help` shows them. [Command line](../cli.md) explains their use, exit
codes and settings.
"""
EXAMPLE = "Example:"
MARKUP = re.compile(r"[\\|*_<\[]")


def cli_reference() -> str:
    """Markdown: a section for each command, with a table of its arguments and options."""
    return "\n".join([INTRODUCTION, *(_section(words, command) for words, command in commands())])


def commands() -> Iterator[tuple[str, Any]]:
    """All commands by the words that call them, groups before what is in them."""
    yield from _below("steelyard", typer.main.get_command(app))


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below(f"{words} {name}", inner)


def _section(words: str, command: Any) -> str:
    told, _, example = (command.help or "").partition(EXAMPLE)
    parts = [f"## `{words}`", _escaped(told)]
    if example:
        parts.append(f"```bash\n{' '.join(example.split())}\n```")
    if inner := getattr(command, "commands", {}):
        parts.append(", ".join(f"[`{name}`](#{words.replace(' ', '-')}-{name})" for name in inner))
    context = command.context_class(command, info_name=words)
    records = (parameter.get_help_record(context) for parameter in command.params)
    rows = [f"| {_names(shown)} | {_escaped(told)} |" for shown, told in filter(None, records)]
    if rows:
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _names(shown: str) -> str:
    return f"`{shown.replace('|', chr(92) + '|')}`"


def _escaped(text: str) -> str:
    """Text in which nothing is markup, in one line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
