"""`judges`: who can judge, and whether an endpoint is fit to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, console

if TYPE_CHECKING:
    from steelyard.judges.check import Qualification

app = typer.Typer(help="List judges and qualify them.", no_args_is_help=True, rich_markup_mode=None)
UNFIT = 4


def _described(found: Qualification) -> Iterator[tuple[str, str]]:
    """What the check showed, one thing per line; what could not be seen is left out."""
    words = {True: "yes", False: "no", None: "not seen"}
    yield "judge", found.judge
    yield "reachable", words[found.reachable]
    if found.reachable:
        yield "structured", found.structured or "not seen"
        yield "obeys ids", words[found.obeys_ids]
        if found.labels_as_expected is not None:
            yield "labels", f"{found.labels_as_expected} of 3 plain items as expected"
        if found.latency_seconds is not None:
            yield "latency", f"{found.latency_seconds:.2f} s"
        tokens = f"{found.usage.prompt_tokens} + {found.usage.completion_tokens} tokens"
        yield "usage", tokens if found.reports_usage else "not reported"
    for problem in found.problems:
        yield "problem", problem
    yield "verdict", found.verdict


class AskLanguage(StrEnum):
    """The languages of prompts."""

    chinese = "zh"
    english = "en"


@app.command("list")
def list_(config: ConfigOption = None) -> None:
    """List the judges that can be named.

    Example:  steelyard judges list
    """
    from rich.table import Table

    from steelyard.config import Config

    settings = Config.load(config)
    table = Table("judge", "what it is", "key")
    for name, given in settings.settings.judges.items():
        key_env = str(given.get("key_env", "OPENAI_API_KEY"))
        has_key = "set" if settings.environment.get(key_env) else "not set"
        what = f"{given.get('kind', 'openai')} · {given.get('model', '')} · {given.get('base_url', '')}"
        table.add_row(name, what, f"{key_env} ({has_key})" if given.get("kind", "openai") == "openai" else "")
    has_key = "set" if settings.environment.get("OPENAI_API_KEY") else "not set"
    table.add_row("openai:MODEL", "any OpenAI-compatible endpoint (OPENAI_BASE_URL)", f"OPENAI_API_KEY ({has_key})")
    table.add_row("recorded:FILE", "replies recorded earlier (run --record), or recorded:RUN", "")
    for name in settings.judge_names()[len(settings.settings.judges) :]:
        table.add_row(name, "installed", "")
    console().print(table)


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="A judge as -j takes it.")],
    language: Annotated[AskLanguage, typer.Option("--language", help="Which prompts to try.")] = AskLanguage.chinese,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Qualify an endpoint: reachable, structured output, obeys ids, latency.

    Example:  steelyard judges check openai:gpt-4o-mini
    """
    from steelyard.config import Config
    from steelyard.judges.check import check as qualify

    settings = Config.load(config)

    async def run() -> Qualification:
        judge = settings.judge(name, settings.prompts, None, store)
        try:
            return await qualify(judge, language.value)
        finally:
            await judge.aclose()

    found = asyncio.run(run())
    for name, value in _described(found):
        print(f"{name:12} {value}")
    if not found.fit:
        raise typer.Exit(UNFIT)
