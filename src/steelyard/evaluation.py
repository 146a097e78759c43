"""The Python door: `evaluate(samples, protocol=…, judge=…)` and what it returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steelyard.errors import ConfigError, InputError, JudgeError, MissingExtra
from steelyard.judges.base import Judge
from steelyard.judges.gate import Limits
from steelyard.protocols import Protocol, get_protocol
from steelyard.protocols.common import Options
from steelyard.records import DialogueSample, Language, RagSample, Sample, Verdict
from steelyard.runner import Row, Runner, run_to_end

if TYPE_CHECKING:
    from steelyard.reports.model import Report

T = TypeVar("T")
Samples = str | PathLike[str] | Iterable[Mapping[str, Any] | Sample]


class Results(Sequence[Verdict]):
    """The verdicts in the order of the samples, with what could not be read beside them."""

    def __init__(self, protocol: str, judged: Sequence[tuple[Sample, Verdict]], bad_rows: Sequence[InputError]) -> None:
        self.protocol, self.bad_rows = protocol, tuple(bad_rows)
        self.samples = tuple(sample for sample, _ in judged)
        self._verdicts = tuple(verdict for _, verdict in judged)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, index: int | slice) -> Verdict | Sequence[Verdict]:
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        return f"<Results: {len(self)} {self.protocol} verdicts, {len(self.bad_rows)} bad rows>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """The result lines, as `-o` writes them."""
        return [verdict.line() for verdict in self]

    def report(self, language: Language | None = None) -> Report:
        """The summary that the command line shows."""
        from steelyard.reports import ReportBuilder

        builder = ReportBuilder(self.protocol, language)
        for sample, verdict in zip(self.samples, self, strict=True):
            builder.add(verdict, sample)
        for bad in self.bad_rows:
            builder.add_bad_row(bad)
        return builder.build()

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per sample: id, status, each score, flags joined by commas, cost."""
        for verdict in self:
            yield {
                "id": verdict.id,
                "protocol": verdict.protocol,
                "status": verdict.status,
                **verdict.scores,
                "flags": ",".join(verdict.flags),
                "judge": verdict.judge,
                "cost": verdict.usage.cost,
            }

    def item_rows(self) -> Iterator[dict[str, Any]]:
        """One flat row per labelled item, with the sample's id."""
        for verdict in self:
            for item in verdict.line()["items"]:
                evidence = item.pop("evidence", None) or {}
                flat = {name: _flat(name, value) for name, value in item.items()}
                yield {"sample": verdict.id, **flat, **{f"evidence_{k}": v for k, v in evidence.items()}}

    def to_pandas(self, *, items: bool = False) -> Any:
        """A pandas frame of the samples, or of the items."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        return pandas.DataFrame(list(self.item_rows() if items else self.rows()))

    def to_polars(self, *, items: bool = False) -> Any:
        """A polars frame of the samples, or of the items."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("polars", "polars", "to_polars()") from None
        rows = list(self.item_rows() if items else self.rows())
        return polars.DataFrame(rows, infer_schema_length=None)


def _flat(name: str, value: Any) -> Any:
    """A cell: lists joined, and labels always words, since a check's 0 and 1 share their column with `unjudged`."""
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in value.items())
    return str(value) if name == "label" else value


def evaluate(
    samples: Samples,
    protocol: str | Protocol = "atomic",
    judge: Judge | str | None = None,
    *,
    options: Mapping[str, Any] | Options | None = None,
    fields: Mapping[str, str] | None = None,
    concurrency: int = 32,
) -> Results:
    """Judge samples (dicts, records, or the path of a file) and return the verdicts.

    `judge` is a judge, or a name as on the command line. Rows that cannot be read are in `.bad_rows`. A judge that
    becomes unusable is a `JudgeError`, which has the `results` until then.
    Works inside a notebook too, where an event loop is running already.
    """

    return in_own_loop(
        lambda: evaluate_async(samples, protocol, judge, options=options, fields=fields, concurrency=concurrency), judge
    )


def in_own_loop(work: Callable[[], Coroutine[Any, Any, T]], judge: object) -> T:
    """Do the work in an event loop of its own: in this thread, or in another where one is running here already."""

    async def alone() -> T:
        try:
            return await work()
        finally:
            # This loop ends with the call, and connections cannot outlive their loop.
            if isinstance(judge, Judge):
                await judge.aclose()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_to_end(alone())
    return _in_thread(alone())


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T | BaseException] = []

    def work() -> None:
        try:
            outcome.append(run_to_end(coroutine))
        except BaseException as error:  # handed to the caller's thread below
            outcome.append(error)

    thread = threading.Thread(target=work, name="steelyard-evaluate")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def evaluate_async(
    samples: Samples,
    protocol: str | Protocol = "atomic",
    judge: Judge | str | None = None,
    *,
    options: Mapping[str, Any] | Options | None = None,
    fields: Mapping[str, str] | None = None,
    concurrency: int = 32,
) -> Results:
    """The same, inside your own event loop."""
    protocol = get_protocol(protocol)
    chosen = options if isinstance(options, Options) else protocol.parse_options(dated(protocol, options or {}))
    made = judge if isinstance(judge, Judge) else named_judge(judge, protocol.prompts, concurrency)
    judged: list[tuple[Sample, Verdict]] = []
    bad_rows: list[InputError] = []
    # A named judge has a gate that counts calls; one that is passed in may only be held back by its callers.
    at_once = concurrency if made is judge else Limits(concurrency=concurrency).samples_at_once
    runner = Runner(protocol, chosen, made, workers=at_once)
    try:
        await runner.run(
            rows_of(samples, protocol, fields or {}),
            lambda _, sample, verdict: judged.append((sample, verdict)),
            bad_rows.append,
        )
    except JudgeError as error:
        # Nothing is kept elsewhere, and it was paid for.
        error.results = Results(protocol.name, judged, bad_rows)
        raise
    finally:
        if made is not judge:
            await made.aclose()
    return Results(protocol.name, judged, bad_rows)


def named_judge(name: object, prompts: Mapping[str, str], concurrency: int) -> Judge:
    """The judge that a user named, who knows the shipped prompts and these."""
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"{type(name).__name__} is no judge: it needs a name, answer(ask) and aclose()")
    from steelyard.config import Config

    config = Config.load()
    return config.judge(name, config.prompts.with_texts(prompts), Limits(concurrency=concurrency).gate())


def dated(protocol: Protocol, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with today's date where the protocol wants one: protocols read no clock."""
    if "date" in protocol.options.model_fields and not options.get("date"):
        return {**options, "date": date.today().isoformat()}
    return dict(options)


def rows_of(samples: Samples, protocol: Protocol, fields: Mapping[str, str]) -> Iterator[Row]:
    from steelyard.samples import read_samples, samples_from

    if isinstance(samples, str | PathLike):
        if not Path(samples).exists():
            raise InputError("there is no such file", file=str(samples))
        yield from enumerate(read_samples([samples], protocol.kind, fields=fields))
        return
    # Both can be iterated, and what came out would be fields, not samples.
    if isinstance(samples, Mapping | RagSample | DialogueSample):
        samples = [samples]
    yield from enumerate(samples_from(samples, protocol.kind, fields=fields))
