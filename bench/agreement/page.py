"""Results as Markdown: one table of all judges for docs/agreement.md, and all figures of one for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agreement.published import OWN, PREFERENCES, PUBLIC, Line

Result = Mapping[str, Any]
Row = Sequence[str]
INTRODUCTION = """\
# How far the judges agree with people

A score is worth what its judge is worth. Here judges are compared with labels that people gave, on public sets and on
texts of our own. All rows are held out: no part of a judge that ships with Steelyard was learned from them.
"""
HOW_TO_READ = """\
## How to read it

- Each claim goes to the judge as the protocols put it: an atom of `atomic` or a sentence of `scorecard`, with the
  passages as references. What counts is the label that a report would show; *supported* is `correct` or `supported`.
- A judge that abstains (`undetermined`, `exempt`) has not found support, so that counts as not supported.
- Balanced accuracy, the figure of the public sets, is the mean of the shares that are right among supported and other
  claims: .50 is chance. The lexical baseline is the share of a claim's words that the passages have, above a threshold.
- Intervals are 95 %, by resampling whole documents. Two judges whose intervals overlap may be equally good.
- Planted errors: one number, date, name, unit, ordinal or negation of a true claim is changed. Careful claims: right
  ones in other words than the passages', wrong ones in the passages' own words.
- Your texts are not these. What a judge is worth to you, labels of your own tell ([trust](trust.md)).
"""
MEASURE = """\
## Measure a judge

```bash
python bench/agreement openai:MODEL --rows 200            # any judge that -j takes, some rows of each set
python bench/agreement embedded --write docs/agreement.md # all rows; writes this page
```

[bench/agreement](../bench/agreement/README.md) says where the sets are from and how each is asked. On labels of your
own, use [`steelyard calibrate`](trust.md).
"""


def page(results: Sequence[Result], notes: Mapping[str, str] | None = None) -> str:
    """The whole page, for all judges that were measured, with what people noted about them."""
    results = sorted(results, key=lambda result: (result["judge"] != "embedded", result["judge"]))
    facts = [f"- `{result['judge']}`: {' '.join(_facts(result))}" for result in results]
    noted = [note.strip() + "\n" for result in results if (note := (notes or {}).get(result["judge"], ""))]
    parts = [INTRODUCTION, overview(results) + "\n", "\n".join(facts) + "\n", *noted, HOW_TO_READ, MEASURE]
    return "\n".join(parts)


def overview(results: Sequence[Result]) -> str:
    """What each judge reached, beside the baseline and what others published; only sets that one was measured on."""
    judges = [f"`{result['judge']}`" for result in results]
    head = ["balanced accuracy, or as named", "lexical baseline", *judges, "published"]
    measured = [line for line in _lines(results) if any(cell.strip("– ") for cell in line[2 : 2 + len(results)])]
    return table(head, measured)


def _lines(results: Sequence[Result]) -> Iterator[Row]:
    sets = [result["sets"] for result in results]
    for line in PUBLIC:
        yield _line(line, sets)
    for line in OWN:
        yield _line(line, [{**found, line.set: _all(found, line.set)} for found in sets])
    seeds = [found.get("seeds") for found in sets]
    shown = [f"{s['atoms']} of {s['atoms of']}, {s['grounded']} of {s['grounded of']}" if s else "–" for s in seeds]
    yield ["worked examples right: atoms, grounded samples", "–", *shown, ""]
    preferred = [found.get("ragchecker") for found in sets]
    for asked, (metric, people) in PREFERENCES.items():
        cells = [cell(found["correlations"][asked]) if found else "–" for found in preferred]
        published = f"RAGChecker {short(metric, 3)}; person to person {short(people, 3)}"
        yield [f"ragchecker en, which answer is better: {asked}, Pearson", "–", *cells, published]
    speeds = [found.get("speed") for found in sets]
    yield [
        "speed: `atomic`, 3 passages of 300 characters, samples/s",
        "–",
        *(_speed(s) if s else "–" for s in speeds),
        "",
    ]


def _all(sets: Result, name: str) -> Result | None:
    return {"figures": sets[name]["groups"]["all"]} if name in sets else None


def _speed(found: Mapping[str, Any]) -> str:
    # On a machine that is busy with other things the figure says more about those.
    busy = f" (load {found['load']:g} on {found['cores']} cores)" if found["load"] > found["cores"] else ""
    return f"{found['samples a second']:.3g}{busy}"


def _line(line: Line, sets: Sequence[Result]) -> Row:
    there = [found.get(line.set) for found in sets]
    # Judges may have seen different numbers of rows; the baseline shown is that over most of them.
    baselines = [found["lexical"][line.measure] for found in there if found and "lexical" in found]
    widest = max(baselines, key=lambda figure: figure["n"], default=None)
    cells = [cell(found["figures"].get(line.measure)) if found else "–" for found in there]
    return [line.shown, cell(widest), *cells, line.published]


def section(result: Result) -> str:
    """All figures of one judge."""
    head = [f"## `{result['judge']}`\n", *_facts(result), ""]
    groups = [*_groups(result, "planted"), *_groups(result, "careful"), *_groups(result, "short answers")]
    rest = [*_groups(result, "good dialogues"), *_preferences(result), *_misses(result)]
    return "\n".join([*head, *_support(result), *groups, *rest]).rstrip()


def _facts(result: Result) -> Iterator[str]:
    described = ", ".join(f"{name} {value}" for name, value in result["described"].items() if name == "model")
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    machine = f"{result['machine']['cores']} cores, {result['machine']['system']}"
    yield f"Measured on {result['date']} on {machine}; {versions}{'; ' + described if described else ''}."
    labelled = {name: found for name, found in result["sets"].items() if "labels" in found}
    if fewer := [name for name, found in labelled.items() if found["of"] > found["n"]]:
        yield (
            f"Only part of the rows, as many supported as not: {', '.join(fewer)}. "
            "That leaves balanced accuracy as it is; accuracy is not comparable with that of other judges."
        )
    if failed := result.get("unanswered"):
        yield "Asks without a usable answer: " + ", ".join(f"{why} {n}" for why, n in failed.items()) + "."
    if left_out := result.get("left out"):
        yield "Not measured: " + ", ".join(left_out) + "."
    if speed := result["sets"].get("speed"):
        yield (
            f"Speed: {speed['samples a second']:.3g} samples/s over {speed['samples']} samples at a load of "
            f"{speed['load']}, {speed['CPU milliseconds a sample']} ms of CPU each in this process, others not "
            f"counted; the first one, with loading, took {speed['first sample, seconds']} s."
        )


SHOWN = (
    "balanced accuracy",
    "accuracy",
    "macro-F1",
    "AUC",
    "abstained",
    "balanced accuracy, decided",
    "accuracy, decided",
)


def _support(result: Result) -> Iterator[str]:
    found = {name: figures for name, figures in result["sets"].items() if "figures" in figures}
    if not found:
        return
    lines = []
    for name, figures in found.items():
        unjudged = f" ({figures['unjudged']} unjudged)" if figures["unjudged"] else ""
        lines.append([name, f"{figures['n']}{unjudged}", *(cell(figures["figures"].get(measure)) for measure in SHOWN)])
        if "lexical" in figures:
            lines.append(
                ["– lexical", "", *(cell(figures["lexical"].get(measure)) for measure in SHOWN[:4]), "", "", ""]
            )
    yield table(["set", "n", *SHOWN], lines)
    yield ""


GROUPED = {
    "planted": "Planted errors: *caught* are planted claims, *false alarms* clean twins, not labelled correct.",
    "careful": "Careful claims, right and wrong ones:",
    "short answers": "Short answers, right and wrong ones:",
    "good dialogues": "Criteria that are valid and met: *faulted* are those called invalid or violated.",
}


def _groups(result: Result, name: str) -> Iterator[str]:
    if name not in result["sets"]:
        return
    groups = result["sets"][name]["groups"]
    measures = list(groups["all"])
    lines = [
        [group, str(figures[measures[0]]["n"]), *(cell(figures[measure]) for measure in measures)]
        for group, figures in groups.items()
    ]
    yield GROUPED[name] + "\n"
    yield table(["", "n", *measures], lines)
    yield ""


def _preferences(result: Result) -> Iterator[str]:
    if found := result["sets"].get("ragchecker"):
        part = f" (of {found['of']})" if found["of"] > found["n"] else ""
        yield f"Which of two answers is better, {found['n']} pairs{part}, Pearson's r with the mean of the raters:\n"
        people = found["people"]
        yield table(
            ["", "judge", "rater to rater"],
            [[asked, cell(r), short(people[asked], 3)] for asked, r in found["correlations"].items()],
        )
        yield ""


def _misses(result: Result) -> Iterator[str]:
    if missed := result["sets"].get("seeds", {}).get("missed"):
        yield "Of the seeds' worked examples it missed:\n"
        yield from (f"- {line}" for line in missed)


def table(head: Row, lines: Sequence[Row]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def cell(figure: Mapping[str, Any] | None) -> str:
    """A share as people read it in a table: .712 (.68–.74)."""
    if figure is None or figure["value"] is None:
        return "–"
    if figure["low"] is None:
        return short(figure["value"], 3)
    return f"{short(figure['value'], 3)} ({short(figure['low'])}–{short(figure['high'])})"


def short(value: float | None, places: int = 2) -> str:
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text.removeprefix("0") if text.startswith("0.") else text
