"""`sample` draws items for people to label; `labels` imports and exports their labels."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, LangOption, StoreOption, console, language
from steelyard.cli.results import SourceArgument
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.people.labelling import Draw
    from steelyard.protocols.vocabulary import Vocabulary
    from steelyard.records import Language
    from steelyard.reports.blocks import Block

app = typer.Typer(help="Store human labels.", no_args_is_help=True, rich_markup_mode=None)


class Stratify(StrEnum):
    """By what samples are grouped before they are drawn."""

    tag = "tag"
    score = "score"


def register(root: typer.Typer) -> None:
    root.command("sample")(sample)
    root.add_typer(app, name="labels")


def sample(
    source: SourceArgument,
    for_labelling: Annotated[
        int, typer.Option("--for-labelling", min=1, metavar="N", help="How many samples to draw.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The sheet: .jsonl, or .csv for a spreadsheet; default: printed.")
    ] = None,
    stratify: Annotated[
        Stratify | None, typer.Option("--stratify", help="Draw equally from groups by tag or by score.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only labels of this kind (`kind` of the sheet); may be repeated."),
    ] = None,
    annotator: Annotated[str, typer.Option("--annotator", help="Who will label; two people get the same draw.")] = "",
    policy: Annotated[str, typer.Option("--policy", help="Version of the labelling policy they follow.")] = "1",
    skip: Annotated[
        Path | None, typer.Option("--skip", help="A file of labels whose samples are not drawn again.")
    ] = None,
    lang: LangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Draw samples for people to label, and write the sheet they fill in.

    Example:  steelyard sample last --for-labelling 50 -o sheet.csv
    """
    from steelyard.cli.results import ResultsSource
    from steelyard.people import labelling
    from steelyard.protocols import vocabulary
    from steelyard.reports import ReportBuilder
    from steelyard.reports.terminal import renderable

    found = ResultsSource(source, config, store)
    words = vocabulary(found.protocol)
    known = [aspect.name for aspect in words.aspects()]
    for name in kind or ():
        if name not in known:
            raise ConfigError(f"--kind: there is no {name!r} in {found.protocol}; there are {', '.join(known)}")
    done = labelling.labelled_samples(labelling.labels_in(skip)) if skip else set()
    builder = ReportBuilder(found.protocol, language(lang))
    metrics: set[str] = set()
    for one, verdict in found.verdicts():
        builder.add(verdict, one)
        metrics |= {main[0] for main in [words.main_score(verdict.scores)] if main}
    report = builder.build()
    pool = labelling.candidates(
        found.verdicts(), stratify=stratify.value if stratify else None, kinds=kind or (), skip=done
    )
    drawn = labelling.draw(pool, for_labelling, seed=seed, metric=metrics.pop() if len(metrics) == 1 else None)
    run = "" if found.file else found.run
    rows = labelling.sheet(found.verdicts(), drawn, run=run, annotator=annotator, policy=policy, kinds=kind or ())
    if out is None:
        for row in rows:
            sys.stdout.write(labelling.sheet_line(row))
    else:
        labelling.write_sheet(out, rows)
    page = _page(drawn, source, out, report.language, words)
    console(stderr=out is None).print(renderable(page))


def _page(drawn: Draw, source: str, out: Path | None, language: Language, words: Vocabulary) -> Iterator[Block]:
    """What was drawn, and how precise an estimate it allows."""
    from steelyard.reports.blocks import Lines, Table, number, one_line
    from steelyard.reports.model import named
    from steelyard.text.wording import say

    def phrase(key: str, **values: object) -> str:
        return say(language, f"labelling.{key}").format(**values)

    how = "random" if len(drawn.strata) < 2 else "stratified"
    lines = [
        phrase(how, drawn=len(drawn.weights), n=drawn.n, seed=drawn.seed, items=drawn.n_items),
        phrase(f"{how}_means"),
    ]
    if drawn.metric and drawn.reach is not None:
        metric = words.metric_words(drawn.metric, language)
        reach = number(drawn.reach, words.metric(drawn.metric).mean_scale)
        lines.append(phrase("reach", metric=metric, reach=reach))
    lines.append(phrase("blind"))
    if out is not None:
        lines.append(phrase("next", run=source, file=out))
    yield Lines(tuple(lines))
    if how == "stratified":
        yield Table(
            (phrase("group"), phrase("drawn"), phrase("of"), phrase("weight")),
            "lrrr",
            tuple(
                (
                    one_line(named(language, "labelling.band", stratum.name), 60),
                    str(stratum.n_drawn),
                    str(stratum.n),
                    f"{stratum.n / stratum.n_drawn:.1f}" if stratum.n_drawn else "–",
                )
                for stratum in drawn.strata
            ),
        )


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A filled-in sheet, JSONL or CSV.")],
    annotator: Annotated[
        str | None, typer.Option("--annotator", help="Who labelled; default: what the sheet says, or its name.")
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Keep the labels of a sheet in the store, beside those made in the viewer.

    Example:  steelyard labels import sheet.csv --annotator ana
    """
    from steelyard.engine.manifest import now
    from steelyard.people.labelling import labels_in
    from steelyard.settings import Settings
    from steelyard.store import Store

    when = now()
    labels = [
        label.model_copy(update={"annotator": annotator or label.annotator, "time": label.time or when})
        for label in labels_in(file)
    ]
    with Store.open(Settings.load(config).store_location(store)) as opened:
        count = opened.add_labels(labels)
    print(f"{count} labels kept", file=sys.stderr)


@app.command("export")
def export(
    out: Annotated[Path, typer.Argument(help="Where to write them (JSONL).")],
    run: Annotated[str | None, typer.Option("--run", help="Only those made on this run.")] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Write the labels in the store to a file.

    Example:  steelyard labels export human.jsonl --run last
    """
    from steelyard.settings import Settings
    from steelyard.store import Store
    from steelyard.store.labels import write_labels

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        count = write_labels(out, opened.labels(opened.run(run).id if run else None))
    print(f"{count} labels in {out}", file=sys.stderr)
