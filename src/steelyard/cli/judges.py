"""`judges`: lists judges and qualifies endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.common import ConfigOption, StoreOption, console

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.judges.check import Qualification
    from steelyard.settings import Settings

app = typer.Typer(help="List and check judges.", invoke_without_command=True, rich_markup_mode=None)
UNFIT = 4


def _described(found: Qualification) -> Iterator[tuple[str, str]]:
    """The findings of the check, one per line; what could not be determined is left out."""
    words = {True: "yes", False: "no", None: "not seen"}
    yield "judge", found.judge
    yield "reachable", words[found.reachable]
    if found.reachable:
        yield "structured", found.structured or "not seen"
        yield "obeys ids", words[found.obeys_ids]
        if found.labels_as_expected is not None:
            yield "labels", f"{found.labels_as_expected} of {found.items} plain items as expected, in shuffled order"
        if found.latency_seconds is not None:
            yield "latency", f"{found.latency_seconds:.2f} s"
        tokens = f"{found.usage.prompt_tokens} + {found.usage.completion_tokens} tokens"
        yield "usage", tokens if found.reports_usage else "not reported"
        yield "confidence", words[found.gives_confidence]
    for problem in found.problems:
        yield "problem", problem
    yield "verdict", found.verdict


class AskLanguage(StrEnum):
    """The languages of prompts."""

    chinese = "zh"
    english = "en"


@app.callback()
def judges(context: typer.Context, config: ConfigOption = None) -> None:
    """List and check judges.

    Without a command: who can judge, how far each was found to agree with people, and who judges by default.

    Example:  steelyard judges
    """
    if context.invoked_subcommand is None:
        list_(config)


@app.command("list")
def list_(config: ConfigOption = None) -> None:
    """List the judges that can be named, with their measured agreement with people.

    Example:  steelyard judges list
    """
    from rich.table import Table

    from steelyard.evaluation.factory import judge_names
    from steelyard.judges.masking import shown_url
    from steelyard.judges.models.catalogue import DEFAULT, known_models
    from steelyard.judges.models.verifiers import VerifierCache
    from steelyard.judges.providers import providers
    from steelyard.settings import Settings

    settings = Settings.load(config)
    table = Table("judge", "what it is", "key", "right in 100")
    local = f"local:{known_models()[DEFAULT].full_title}"
    table.add_row("embedded", "a small bundled network that reads, offline", "none", _measured("embedded"))
    table.add_row("local", "a language model in this process, offline (steelyard models)", "none", _measured(local))
    pulled = [f"verifier:{record.name}" for record in VerifierCache.of_user(settings.environment).records()]
    for name in pulled or ["verifier:NAME"]:
        table.add_row(name, "an encoder run by onnxruntime, offline (steelyard models)", "none", _measured(name))
    for name, given in settings.judges.items():
        kind = str(given.get("kind", "openai"))
        url = shown_url(str(given.get("base_url", "")))
        what = " · ".join(str(part) for part in (kind, given.get("model"), url) if part)
        if kind == "panel":
            what = _panel(given)
        elif kind == "routed":
            what = f"routed: {given.get('first')} > {given.get('then')}"
        provider = providers().get(kind)
        usual = provider.key_choice(settings.environment).variable if provider else ""
        key = _key(settings, str(given.get("key_env", usual))) if provider else ""
        table.add_row(name, what, key, _measured(f"{name}:{given.get('model')}"))
    table.add_row("recorded:FILE", "replies recorded earlier (run --record), or recorded:RUN", "", "")
    for name in judge_names(settings)[len(settings.judges) :]:
        table.add_row(name, "installed", "", _measured(name))
    console().print(table)
    console().print(_providers(settings))
    choice = settings.choose(None)
    print(f"by default: {choice.name} ({choice.why})")
    print("right in 100: mean balanced accuracy against people's labels on public sets, where 50 is chance")


def _panel(given: Mapping[str, Any]) -> str:
    """A panel's members, as its table names them."""
    members = [one if isinstance(one, str) else str(one.get("judge")) for one in given.get("members", ())]
    parts = [" + ".join(members) + (f" ×{given['repeats']}" if given.get("repeats", 1) != 1 else "")]
    parts += [
        f"{name} {given[key]}" for key, name in (("escalate", "ties to"), ("verify", "verified by")) if key in given
    ]
    return f"panel: {', '.join(parts)}"


def _providers(settings: Settings) -> Table:
    """Providers by name, with the variable of each one's key."""
    from rich.table import Column, Table

    from steelyard.judges.providers import providers

    table = Table("judge", "provider", Column("key", no_wrap=True, overflow="fold"), "set")
    for provider in providers().values():
        variable, is_set = provider.key_choice(settings.environment)
        given = "yes" if is_set else "no" if provider.needs_key else "optional"
        table.add_row(f"{provider.name}:MODEL", provider.title, variable, given)
    return table


def _key(settings: Settings, variable: str) -> str:
    return f"{variable} ({'set' if settings.environment.get(variable) else 'not set'})"


def _measured(judge: str) -> str:
    from steelyard.reports.agreement import summary

    found = summary(judge)
    return f"{found.of_hundred} ({len(found.sets)} sets)" if found else "not measured"


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="A judge as -j takes it.")],
    language: Annotated[AskLanguage, typer.Option("--language", help="Which prompts to try.")] = AskLanguage.chinese,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Check an endpoint: whether it answers, structured output, labels of plain items, latency.

    Example:  steelyard judges check openai:gpt-4o-mini
    """
    from steelyard.evaluation.factory import JudgeFactory
    from steelyard.judges.check import check_each
    from steelyard.settings import Settings

    settings = Settings.load(config)

    async def run() -> list[Qualification]:
        judge = JudgeFactory(settings, store=store).judge(name)
        try:
            return await check_each(judge, language.value)
        finally:
            await judge.aclose()

    qualified = asyncio.run(run())
    for place, found in enumerate(qualified):
        if place:
            print()
        for title, value in _described(found):
            print(f"{title:12} {value}")
    if any(found.gives_confidence is False for found in qualified[:-1]):
        print("\nnote: a judge that gives no confidence passes every item on")
    if not all(found.fit for found in qualified):
        raise typer.Exit(UNFIT)
