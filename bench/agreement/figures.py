"""Results as src/steelyard/reports/agreement.toml, which `steelyard judges` and reports read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.reports.agreement import AgreementFigure, read

HEAD = "# How far judges agree with people. Written by `python bench/agreement JUDGE --write docs/agreement.md`.\n"
KEPT = ("balanced accuracy", "accuracy", "macro-F1", "AUC", "abstained")
GROUPED = {
    "planted": ("caught", "false alarms"),
    "careful": ("right ones called correct", "wrong ones called correct"),
    "short answers": ("right ones called correct", "wrong ones called correct"),
    "good dialogues": ("faulted",),
}


def write_figures(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Put the results into the file; figures of judges that are not among them stay as they are."""
    measured = {result["judge"] for result in results}
    earlier = read(path.read_text("utf-8")) if path.exists() else ()
    kept = [figure for figure in earlier if figure.judge not in measured]
    found = [figure for result in results for figure in figures_of(result)]
    blocks = [_block(figure) for figure in sorted([*kept, *found], key=lambda figure: figure.judge)]
    path.write_text("\n".join([HEAD, *blocks]), "utf-8")


def figures_of(result: Mapping[str, Any]) -> Iterator[AgreementFigure]:
    """The figures of one judge that are worth a line."""
    for name, measured in result["sets"].items():
        if name in GROUPED:
            yield from _figures(result, name, measured["groups"]["all"], GROUPED[name])
        elif name == "ragchecker":
            yield from _figures(result, name, measured["correlations"], tuple(measured["correlations"]))
        elif "figures" in measured:
            yield from _figures(result, name, measured["figures"], KEPT)
    if speed := result["sets"].get("speed"):
        yield AgreementFigure(
            judge=result["judge"],
            set="speed",
            measure="samples a second",
            value=speed["samples a second"],
            n=max(1, speed["samples"]),
            date=result["date"],
        )


def _figures(
    result: Mapping[str, Any], name: str, figures: Mapping[str, Any], wanted: Sequence[str]
) -> Iterator[AgreementFigure]:
    for measure in wanted:
        if (found := figures.get(measure)) and found["value"] is not None:
            yield AgreementFigure(judge=result["judge"], set=name, measure=measure, date=result["date"], **found)


def _block(figure: AgreementFigure) -> str:
    # JSON's strings and numbers are TOML's too.
    values = figure.model_dump(exclude_none=True)
    return "[[figures]]\n" + "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items()
    )
