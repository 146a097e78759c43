"""The table of an experiment: as one frozen value, and as a page for a terminal, Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Direction, Scale
from steelyard.records import Language, Record
from steelyard.reports.blocks import (
    NOT_APPLICABLE,
    Block,
    Heading,
    Lines,
    Table,
    Tone,
    TonedText,
    interval,
    number,
    one_line,
)
from steelyard.reports.comparison import Outcome, ends, signed
from steelyard.stats import Interval
from steelyard.text.wording import say

LONGEST_CELL = 60
PARTS = ("data", "protocol", "judge", "options")
TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad", "undecided": "open"}


class CellScore(Record):
    """One main score of a run, and how it differs from the same score of the first run of its protocol."""

    metric: str
    scale: Scale
    direction: Direction
    value: float | None
    interval: Interval | None
    n: int
    n_unjudged: int
    difference: float | None = None
    difference_interval: Interval | None = None
    n_pairs: int = 0
    n_moved: int = Field(default=0, description="samples whose score differs")
    p_adjusted: float | None = Field(default=None, description="Holm's, over all differences of the experiment")
    outcome: Outcome | None = Field(default=None, description="null for the baseline, and where nothing is paired")


class ExperimentRun(Record):
    """One combination and its run."""

    data: str
    protocol: str
    judge: str
    options: str = Field(description="the name of the variant; empty where the experiment has none")
    run: str | None
    state: str = Field(description="complete, stopped or failed; pending where it was not begun")
    problem: str = ""
    n: int = 0
    cost: float | None = None
    calls: int = 0
    is_baseline: bool = False
    scores: tuple[CellScore, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.state != "complete"


class ExperimentTable(Record):
    """All runs of an experiment side by side."""

    name: str
    language: Language
    runs: tuple[ExperimentRun, ...]

    def _repr_html_(self) -> str:
        from steelyard.reports.notebook import fragment

        return fragment(blocks(self))


# --- the page ---------------------------------------------------------------------------------------


def blocks(table: ExperimentTable, *, brief: bool = False) -> Iterator[Block]:
    """The table as a page. What all runs have in common is said once, above it; in a terminal (`brief`) the rest of
    what a run is stands in a list, and its number in the table."""

    def phrase(key: str, **values: object) -> str:
        return say(table.language, f"experiment.{key}").format(**values)

    colon = say(table.language, "report.colon")
    varied = [part for part in PARTS if len({getattr(run, part) for run in table.runs}) > 1]
    yield Heading(f"{phrase('title')} · {one_line(table.name, LONGEST_CELL)}", 1)
    facts = [phrase("done", done=sum(run.state == "complete" for run in table.runs), all=len(table.runs))]
    common = [part for part in PARTS if part not in varied and getattr(table.runs[0], part)]
    facts += [f"{phrase(part)}{colon}{one_line(getattr(table.runs[0], part), 200)}" for part in common]
    yield Lines(tuple(facts))
    if brief:
        yield Lines(tuple(f"{at} = {_title(run, varied)}" for at, run in enumerate(table.runs, start=1)), listed=True)
    columns = (
        *(("#",) if brief else (phrase(part) for part in varied)),
        *(say(table.language, f"report.{key}") for key in ("score", "value", "interval")),
        "n",
        phrase("difference_brief" if brief else "difference"),
        phrase("decision"),
    )
    rows = tuple(_rows(table, varied, brief))
    yield Table(columns, ("r" if brief else "l" * len(varied)) + "lrrrrl", rows, grouped=bool(varied) and not brief)
    problems = [f"{_title(run, PARTS)}{colon}{_state(run, table.language)}" for run in table.runs if run.is_open]
    if problems:
        yield Lines(tuple(problems), listed=True)
    notes = [phrase("note")] if any(score.outcome for run in table.runs for score in run.scores) else []
    spent = [run.cost for run in table.runs if run.cost is not None]
    notes += [f"{say(table.language, 'report.cost')}{colon}{sum(spent):.4f}"] if spent else []
    if notes:
        yield Lines(tuple(notes))


def _title(run: ExperimentRun, parts: Sequence[str]) -> str:
    return one_line(" · ".join(filter(None, (getattr(run, part) for part in parts))), 200) or NOT_APPLICABLE


def _state(run: ExperimentRun, language: Language) -> str:
    state = say(language, f"experiment.state.{run.state}")
    return f"{state} ({one_line(run.problem, 300)})" if run.problem else state


def _rows(table: ExperimentTable, varied: Sequence[str], brief: bool) -> Iterator[tuple[str | TonedText, ...]]:
    for at, run in enumerate(table.runs, start=1):
        words = vocabulary(run.protocol)
        full = tuple(one_line(getattr(run, part), LONGEST_CELL) or NOT_APPLICABLE for part in varied)
        names = (str(at),) if brief else full
        for score in run.scores:
            yield (
                *names,
                words.metric_words(score.metric, table.language),
                number(score.value, score.scale),
                interval(score.interval, score.scale),
                f"{score.n:,}",
                difference_text(score, brief),
                decision_text(run, score, table.language),
            )
        if not run.scores:
            state = TonedText(say(table.language, f"experiment.state.{run.state}"), "bad")
            yield (*names, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, "0", NOT_APPLICABLE, state)


def difference_text(score: CellScore, brief: bool) -> str:
    if score.difference is None:
        return NOT_APPLICABLE
    within = f" ({ends(score.difference_interval, score.scale)})" if score.difference_interval and not brief else ""
    return signed(score.difference, score.scale) + within


def decision_text(run: ExperimentRun, score: CellScore, language: Language) -> str | TonedText:
    """Whether it is better or worse than the baseline."""
    if run.is_baseline:
        return say(language, "experiment.baseline")
    if score.outcome is None:
        return say(language, "experiment.unpaired")
    outcome = score.outcome if score.n_moved else "equal"
    return TonedText(say(language, f"compare.outcome_{outcome}"), TONES.get(outcome, "plain"))
