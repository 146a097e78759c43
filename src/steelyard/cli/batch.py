"""`batch`: judging through a provider's batch files, at half the price."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import (
    ConfigOption,
    EncodingOption,
    FormatOption,
    FromOption,
    MapOption,
    ProtocolName,
    StoreOption,
    check_files,
    check_out,
    note,
    pairs,
)
from steelyard.cli.flags import FenceOption, JudgeOption, OptionOption, RunArgument, TemplateOption
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.engine.batch import Walk
    from steelyard.judges.chat import ChatJudge
    from steelyard.settings import Settings
    from steelyard.store import RunRow, Store

app = typer.Typer(help="Judge through batch files.", no_args_is_help=True, rich_markup_mode=None)


@app.command("start")
def start(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Samples; standard input is not possible.")],
    protocol: ProtocolName,
    out: Annotated[Path, typer.Option("--out", "-o", help="The batch file to upload.")],
    judge: JudgeOption = None,
    map: MapOption = None,
    importer: FromOption = None,
    option: OptionOption = None,
    template: TemplateOption = None,
    fence: FenceOption = False,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Begin a run and write its first round of asks as an OpenAI batch file.

    Example:  steelyard batch start answers.jsonl -p atomic -j openai:gpt-4o-mini -o round1.jsonl
    """
    from steelyard.cli.run import chosen_options, with_earlier_date
    from steelyard.engine import batch, runs
    from steelyard.engine.inputs import Input
    from steelyard.settings import Settings
    from steelyard.store import Store

    settings = Settings.load(config)
    chosen = settings.protocol(protocol, template, fence=fence)
    if "-" in files:
        raise ConfigError("batch reads the samples again in every round, so they must be in a file")
    check_files(files, importer)
    check_out(out, files)
    given = pairs(option, "--option")
    options = chosen_options(chosen, settings, given)
    data = Input(files, pairs(map, "--map"), encoding, format, on_note=note, importer=importer)
    data.check(chosen)
    prompts = settings.prompts.with_texts(chosen.prompts)
    made = _chat(settings, judge, chosen.name, store)
    with Store.open(settings.store_location(store)) as opened:
        options = with_earlier_date(opened, chosen, settings, given, options, made, data)
        begun = runs.start(
            opened, chosen, options, made, settings.choose(judge).name, prompts, data, runs.RunSettings()
        )
        with opened.alone_with(begun.row.id):
            _say(begun.row, batch.export(opened, begun.row, made, data, out), out)


@app.command("export")
def export(
    name: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The batch file to upload.")],
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Write the next round of a run's asks as an OpenAI batch file.

    Example:  steelyard batch export last -o round2.jsonl
    """
    from steelyard.engine import batch
    from steelyard.engine.inputs import input_of

    opened, row, made = _opened(name, config, store)
    with opened, opened.alone_with(row.id):
        check_out(out, [data["path"] for data in row.manifest["data"]])
        _say(row, batch.export(opened, row, made, input_of(row, opened), out), out)


@app.command("import")
def import_(
    name: RunArgument,
    output: Annotated[Path, typer.Argument(help="The provider's output file.")],
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Take in the provider's output file; what it answers is never asked again.

    Example:  steelyard batch import last output1.jsonl
    """
    from steelyard.engine import batch
    from steelyard.engine.inputs import input_of

    opened, row, made = _opened(name, config, store)
    with opened, opened.alone_with(row.id):
        _say(row, batch.take_in(opened, row, made, input_of(row, opened), output), None)


def _opened(name: str, config: Path | None, store: str | None) -> tuple[Store, RunRow, ChatJudge]:
    from steelyard.engine.manifest import check_unchanged
    from steelyard.protocols import get_protocol
    from steelyard.settings import Settings
    from steelyard.store import Store

    settings = Settings.load(config)
    opened = Store.open(settings.store_location(store), create=False)
    try:
        row = opened.run(name)
        made = _chat(settings, row.manifest.get("judge_spec") or None, row.protocol, store)
        check_unchanged(row, made, settings.prompts.with_texts(get_protocol(row.protocol).prompts))
    except BaseException:
        opened.close()
        raise
    return opened, row, made


def _chat(settings: Settings, spec: str | None, protocol: str, store: str | None) -> ChatJudge:
    from steelyard.evaluation.factory import JudgeFactory
    from steelyard.judges.chat import ChatJudge
    from steelyard.judges.panel import PanelJudge
    from steelyard.protocols import get_protocol

    prompts = settings.prompts.with_texts(get_protocol(protocol).prompts)
    made = JudgeFactory(settings, prompts, store=store).judge(spec)
    if not isinstance(made, ChatJudge) or made.endpoint.row.wire != "chat":
        several = isinstance(made, PanelJudge)
        hint = "; run a batch for each member, then -j recorded:RUN+recorded:RUN votes on them" if several else ""
        raise ConfigError(f"batch files are for judges in OpenAI's chat form; {made.name} is none{hint}")
    return made


def _say(row: RunRow, walk: Walk, out: Path | None) -> None:
    took = f"{walk.taken} answers taken in, {walk.unusable} unusable; " if out is None else ""
    print(f"run {row.id}: {took}{walk.finished} samples finished, {walk.open} asks open", file=sys.stderr)
    for reason, count in walk.failures.items():
        print(f"{count} not answered by the provider: {reason}", file=sys.stderr)
    if walk.unknown:
        print(f"{walk.unknown} answers to nothing that this run asked; ignored", file=sys.stderr)
    if walk.unusable:
        print(f"unusable answers leave items unjudged; ask again with: steelyard retry {row.id}", file=sys.stderr)
    if out is not None and walk.open:
        print(f"upload {out}, then: steelyard batch import {row.id} OUTPUT", file=sys.stderr)
    elif walk.open:
        print(f"go on with: steelyard batch export {row.id} -o NEXT", file=sys.stderr)
    else:
        print(f"complete; see: steelyard report {row.id}", file=sys.stderr)
