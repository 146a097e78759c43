"""`rubric`: writes an example rubric, lists the shipped ones, and checks one with a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, EncodingOption, FormatOption, MapOption, StoreOption, check_files, pairs
from steelyard.cli.flags import JudgeOption

if TYPE_CHECKING:
    from steelyard.judges.base import Judge
    from steelyard.protocols.rubric_check import CheckedCriterion, Checking, RubricCheck
    from steelyard.records import Sample

app = typer.Typer(help="Write, list and check rubrics.", no_args_is_help=True, rich_markup_mode=None)
UNUSABLE = 4
SAMPLES = 5

TOML_EXAMPLE = """\
# A rubric for `steelyard run answers.jsonl -p rubric:{file} -j JUDGE`. Lines that begin with # are comments.
title = "Support answers"
# What a sample is: "answer" (a question and its answer) or "dialogue" (a whole conversation).
for = "answer"

# A criterion is a table with a question. Without labels the answer is yes or no, and yes earns the point.
[polite]
ask = "Is the answer polite in every sentence?"

# good = "no": here no earns the point. veto: an answer that fails this gets the score 0, whatever the rest says.
[blame]
ask = "Does the answer blame the customer?"
good = "no"
veto = true

# A scale: its points are described from the worst to the best. weight: how much a criterion counts (default 1).
[solves]
ask = "How far does the answer solve the problem?"
scale = ["not at all", "in part: a step is missing", "fully: every step is there"]
weight = 2

# Categories with their points. when: judged only where this holds; elsewhere the criterion is left out of the score.
[refund]
ask = "What does the answer say about a refund?"
when = "the customer asks for a refund"
labels = { granted = 1, refused = 1, ignored = 0 }
"""
MARKDOWN_EXAMPLE = """\
# Support answers
for: answer

<!-- A rubric for `steelyard run answers.jsonl -p rubric:{file} -j JUDGE`. Comments like this one are not read.
A criterion is a heading with its name, then the question. Without labels the answer is yes (one point) or no. -->

## polite
Is the answer polite in every sentence?

<!-- good: no earns the point. veto: an answer that fails this gets the score 0, whatever the rest says. -->

## blame
Does the answer blame the customer?
good: no
veto

<!-- A scale, from the worst to the best. weight: how much a criterion counts (default 1). -->

## solves
How far does the answer solve the problem?
1. not at all
2. in part: a step is missing
3. fully: every step is there
weight: 2

<!-- Categories with their points. when: judged only where this holds; elsewhere it is left out of the score. -->

## refund
What does the answer say about a refund?
when: the customer asks for a refund
- granted (1)
- refused (1)
- ignored (0): the answer does not mention it
"""


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Ends in .toml or .md.")] = Path("rubric.toml"),
    like: Annotated[str | None, typer.Option("--like", metavar="NAME", help="Start from a shipped rubric.")] = None,
) -> None:
    """Write a commented example of a rubric, to be changed into your own.

    Example:  steelyard rubric new tone.toml
    """
    from steelyard.errors import ConfigError
    from steelyard.protocols.rubric_file import ENDINGS, shipped_rubrics

    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{file}: the name of a rubric ends in {', '.join(ENDINGS)}")
    if like is not None and like not in shipped_rubrics():
        raise ConfigError(f"there is no shipped rubric {like!r}; there are {', '.join(shipped_rubrics())}")
    if like is not None and file.suffix.lower() != ".toml":
        raise ConfigError(f"{file}: the shipped rubrics are TOML; name a file that ends in .toml")
    example = TOML_EXAMPLE if file.suffix.lower() == ".toml" else MARKDOWN_EXAMPLE
    text = shipped_rubrics()[like] if like else example.replace("{file}", file.name)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} is there already; name another file") from None
    print(f"{file} is written. Edit it, then: steelyard run answers.jsonl -p rubric:{file} -j JUDGE")


@app.command("list")
def list_() -> None:
    """List the shipped rubrics.

    Example:  steelyard rubric list
    """
    from steelyard.protocols.rubric_file import find_rubric, shipped_rubrics

    for name in shipped_rubrics():
        rubric, _ = find_rubric(name)
        print(f"rubric:{name:18} {rubric.title.en} · {rubric.title.zh} ({len(rubric.criteria)} criteria)")


@app.command()
def check(
    rubric: Annotated[str, typer.Argument(metavar="FILE", help="A rubric's file, or the name of a shipped one.")],
    judge: JudgeOption = None,
    samples: Annotated[
        str | None,
        typer.Option("--samples", "-s", metavar="FILE", help="Samples to label twice. Default: general ones."),
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=100, help="How many of them.")] = SAMPLES,
    map: MapOption = None,
    encoding: EncodingOption = "utf-8",
    format: FormatOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Ask a judge which criteria are vague, overlap or cannot be answered, and how consistent its labels are.

    It labels a few samples twice, the second time with each question reworded and in reverse order: a criterion whose
    labels change with the words cannot be relied on. Without --samples these are general ones that come with Steelyard.

    Example:  steelyard rubric check tone.toml -j openai:gpt-4o-mini --samples answers.jsonl
    """
    from steelyard.engine.inputs import Input
    from steelyard.errors import InputError
    from steelyard.evaluation.factory import JudgeFactory
    from steelyard.judges.limiter import Limits
    from steelyard.protocols.rubric import make_protocol
    from steelyard.protocols.rubric_check import check_rubric
    from steelyard.protocols.rubric_file import find_rubric, trial_samples
    from steelyard.settings import Settings

    found, source = find_rubric(rubric)
    protocol = make_protocol(found, source)
    if samples:
        check_files([samples])
        rows = Input([samples], pairs(map, "--map"), encoding, format).rows(protocol)
        chosen: list[Sample] = list(islice((row for _, row in rows if not isinstance(row, InputError)), number))
    else:
        chosen = trial_samples(found)[:number]
    settings = Settings.load(config)
    made = JudgeFactory(settings, limiter=Limits().limiter(), store=store).judge(judge)
    result = asyncio.run(_driven(check_rubric(found, chosen), made))
    print("\n".join(_lines(result, f"{len(chosen)} {'' if samples else 'general '}samples", made.name)))
    if not any(one.reviewed for one in result.criteria):
        raise typer.Exit(UNUSABLE)


async def _driven(checking: Checking, judge: Judge) -> RubricCheck:
    try:
        asks = next(checking)
        while True:
            asks = checking.send(list(await asyncio.gather(*map(judge.answer, asks))))
    except StopIteration as done:
        found: RubricCheck = done.value
        return found
    finally:
        await judge.aclose()


def _lines(result: RubricCheck, samples: str, judge: str) -> Iterator[str]:
    from steelyard.reports.model import reason_in

    for one in result.criteria:
        yield f"{one.name:20} {', '.join(one.problems) or ('no problem found' if one.reviewed else 'not reviewed')}"
        if one.problems or not one.reviewed:
            yield f"{'':20} {reason_in('en', one.reason)}"
        if one.compared:
            yield f"{'':20} {_consistency(one)}"
    if result.failure:
        yield f"problem: {result.failure}"
    amiss = sum(bool(one.problems) for one in result.criteria)
    yield f"{len(result.criteria)} criteria, {amiss} with a problem, by {judge}"
    compared, same = (sum(getattr(one, part) for one in result.criteria) for part in ("compared", "same"))
    if compared:
        yield f"{same} of {compared} labels were the same in both wordings ({samples})"


def _consistency(one: CheckedCriterion) -> str:
    changed = "" if one.same == one.compared else f"; reworded: {one.rewording}"
    return f"same label in {one.same} of {one.compared} samples{changed}"
