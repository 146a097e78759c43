"""Results as Markdown: the table of goals, then one section for each judge. For docs/agreement.md and the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agreement.goals import ATOMS, CAUGHT, FALSE_ALARMS, GOALS, GROUNDED, PREFERENCES, SPEED, Goal, goal_of

Result = Mapping[str, Any]
Row = Sequence[str]
INTRODUCTION = """\
# How far the judges agree with people

A score is worth what its judge is worth. `python bench/agreement JUDGE --write docs/agreement.md` writes this page
([how it measures](../bench/agreement/README.md)) and takes any judge that `-j` accepts. All rows are held out: no part
of a judge that ships with Steelyard was learned from them.

Each claim goes to the judge as the protocols put it: as an atom of `atomic` or as a sentence of `scorecard`, with the
passages as references, and what is read is the label that a report would show. *Supported* means `correct` or
`supported`. A judge that abstains (`undetermined`, or `exempt` from checking) has not found support, so that counts as
not supported; *decided* figures leave such items out. Balanced accuracy is the mean of the shares that are right among
the supported and among the others: .50 is chance. Intervals are 95 %, by resampling whole documents.
"""


def page(results: Sequence[Result], notes: Mapping[str, str] | None = None) -> str:
    """The whole page, for all judges that were measured, with what people noted about them."""
    results = sorted(results, key=lambda result: (goal_of(result["judge"]) is None, result["judge"]))
    sections = [INTRODUCTION, "## In one table\n", overview(results), ""]
    for result in results:
        sections += [section(result, (notes or {}).get(result["judge"], "")), ""]
    return "\n".join(sections).rstrip() + "\n"


def overview(results: Sequence[Result]) -> str:
    """The table of goals: what each judge reached, beside the baseline and what others published."""
    head = ["set", "lexical baseline", *(f"`{result['judge']}`" for result in results), "goal", "published"]
    return table(
        head, [line for line in _lines(results) if any(cell.strip("– ") for cell in line[2 : 2 + len(results)])]
    )


def _lines(results: Sequence[Result]) -> Iterator[Row]:
    sets = [result["sets"] for result in results]
    kinds = list(dict.fromkeys(kind for result in results if (kind := goal_of(result["judge"]))))
    seeds = [found.get("seeds") for found in sets]
    yield [
        "the seeds' worked examples: atoms, grounded samples",
        "–",
        *(f"{s['atoms']} of {s['atoms of']}, {s['grounded']} of {s['grounded of']}" if s else "–" for s in seeds),
        _goals(kinds, {kind: f"≥ {ATOMS[kind]} and {GROUNDED[kind]}" for kind in ATOMS}),
        "",
    ]
    for goal in GOALS:
        yield _goal_line(goal, sets, kinds)
    for name, shown, bounds, sign in (
        ("caught", "planted errors caught", CAUGHT, "≥"),
        ("false alarms", "false alarms on their clean twins", FALSE_ALARMS, "≤"),
    ):
        figures = [found["planted"]["groups"]["all"][name] if "planted" in found else None for found in sets]
        goals = {kind: f"{sign} {short(bound)}" for kind, bound in bounds.items()}
        yield [shown, "–", *(cell(figure) for figure in figures), _goals(kinds, goals), ""]
    preferred = [found.get("ragchecker") for found in sets]
    for asked, (metric, people) in PREFERENCES.items():
        cells = [cell(found["correlations"][asked]) if found else "–" for found in preferred]
        published = f"RAGChecker {short(metric, 3)}; person to person {short(people, 3)}"
        yield [f"ragchecker en, which answer is better: {asked}, Pearson", "–", *cells, "–", published]
    speeds = [found.get("speed") for found in sets]
    yield [
        "speed: `atomic`, 3 passages of 300 characters, samples/s",
        "–",
        *(_speed(s) if s else "–" for s in speeds),
        _goals(kinds, {kind: f"≥ {bound:g}" for kind, bound in SPEED.items()}),
        "",
    ]


def _speed(found: Mapping[str, Any]) -> str:
    # On a machine that is busy with other things the figure says more about those.
    busy = f" (load {found['load']:g} on {found['cores']} cores)" if found["load"] > found["cores"] else ""
    return f"{found['samples a second']:.3g}{busy}"


def _goal_line(goal: Goal, sets: Sequence[Result], kinds: Sequence[str]) -> Row:
    there = [found.get(goal.set) for found in sets]
    # Judges may have seen different numbers of rows; the baseline shown is that over most of them.
    baselines = [found["lexical"][goal.measure] for found in there if found and "lexical" in found]
    widest = max(baselines, key=lambda figure: figure["n"], default=None)
    wanted = {"embedded": goal.embedded, "local": goal.local}
    goals = {kind: f"≥ {short(bound)}" if bound else "report" for kind, bound in wanted.items()}
    cells = [cell(found["figures"].get(goal.measure)) if found else "–" for found in there]
    return [goal.shown, cell(widest), *cells, _goals(kinds, goals), goal.published]


def _goals(kinds: Sequence[str], goals: Mapping[str, str]) -> str:
    if len(kinds) == 1:
        return goals[kinds[0]]
    return "; ".join(f"{kind} {goals[kind]}" for kind in kinds) or "–"


def section(result: Result, note: str = "") -> str:
    """All figures of one judge."""
    noted = [note.strip(), ""] if note else []
    head = [f"## `{result['judge']}`\n", *_facts(result), *_shortfalls(result), *noted]
    return "\n".join([*head, *_support(result), *_planted(result), *_preferences(result), *_misses(result)]).rstrip()


def _shortfalls(result: Result) -> Iterator[str]:
    """Which goals were not met, and by how much."""
    kind, sets = goal_of(result["judge"]), result["sets"]
    if kind is None:
        return
    gaps: list[tuple[str, float]] = []
    for goal in GOALS:
        bound = goal.embedded if kind == "embedded" else goal.local
        figure = sets.get(goal.set, {}).get("figures", {}).get(goal.measure)
        if bound is not None and figure:
            gaps.append((goal.set, bound - figure["value"]))
    if "planted" in sets:
        all_pairs = sets["planted"]["groups"]["all"]
        gaps.append(("planted errors caught", CAUGHT[kind] - all_pairs["caught"]["value"]))
        gaps.append(("false alarms", all_pairs["false alarms"]["value"] - FALSE_ALARMS[kind]))
    missed = [f"{name} by {short(gap, 3)}" for name, gap in gaps if gap > 0]
    met = [name for name, gap in gaps if gap <= 0]
    if missed:
        yield f"Goals missed: {', '.join(missed)}. Goals met: {', '.join(met) or 'none'}.\n"
    elif met:
        yield f"All goals for agreement that were measured are met: {', '.join(met)}.\n"


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
    yield ""


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


def _planted(result: Result) -> Iterator[str]:
    if "planted" not in result["sets"]:
        return
    groups = result["sets"]["planted"]["groups"]
    names = list(groups["all"])
    lines = [
        [name, str(figures["caught"]["n"]), *(cell(figures[measure]) for measure in names)]
        for name, figures in groups.items()
    ]
    yield "Planted errors: *caught* are planted claims, *false alarms* clean twins, that are not labelled correct.\n"
    yield table(["", "pairs", *names], lines)
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
