"""Try the prompts on a real model: `python bench/prompts/run.py --url URL --model NAME`. See README.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from dialogues import dialogues
from public_sets import answers, pairs
from pydantic import SecretStr
from summary import markdown
from watching import Record, WatchedJudge

from steelyard.engine.journal import JournalledJudge
from steelyard.engine.runner import Budget, Runner
from steelyard.judges import ChatJudge, Endpoint
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.records import Sample, Verdict
from steelyard.store import Store

HERE = Path(__file__).parent
DATA = HERE.parent.parent.parent / "shared" / "data"
PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval", "pairwise", "rubric:summary")
LANGUAGES = ("zh", "en")
MODES = ("json_schema", "text")
DATE = "2026-11-16"
# Of one protocol: one sample is split while the one before is judged.
SAMPLES_AT_ONCE = 2

Pairs = list[list[Any]]


class Labelled(NamedTuple):
    """A sample, and what a verdict on it is compared with: a function that gives [task, expected, found] triples."""

    sample: Sample
    compare: Callable[[Verdict], Pairs]


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    log = given.folder / "asks.jsonl"
    if given.url:
        given.folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(_run(given, log))
    page = markdown(_records(log), _prompts(given))
    print(page)
    if given.write:
        given.write.write_text(page + "\n", "utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    several = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--url", help="the endpoint; without it, only the table is made from what is there")
    parser.add_argument("--model", default="model")
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds the key, if one is needed")
    parser.add_argument("--samples", type=int, default=50, help="per protocol and language (50)")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many: prompts were mended on them")
    parser.add_argument("--protocols", choices=PROTOCOLS, default=PROTOCOLS, **several)
    parser.add_argument("--languages", choices=LANGUAGES, default=LANGUAGES, **several)
    parser.add_argument("--modes", choices=MODES, default=MODES, **several)
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="where the public sets are")
    parser.add_argument("--folder", type=Path, default=Path(".steelyard/prompts"), help="store and records; resumes")
    parser.add_argument(
        "--prompts", type=Path, nargs="*", default=[], metavar="FILE", help="your own, as in steelyard run"
    )
    parser.add_argument(
        "--at-once", type=int, default=2, help="asks under way at the same time, of different prompts (2)"
    )
    parser.add_argument("--first-only", action="store_true", help="ask nothing a second time: quicker, less real")
    parser.add_argument("--max-tokens", type=int, default=1500, help="of one reply; more is cut off (1500)")
    parser.add_argument("--max-minutes", type=float, help="stop politely after this time")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table here")
    return parser


def _prompts(given: argparse.Namespace) -> Prompts:
    return Prompts.shipped().with_files(given.prompts)


async def _run(given: argparse.Namespace, log: Path) -> None:
    clock = asyncio.get_running_loop().time
    ends = clock() + given.max_minutes * 60 if given.max_minutes else None
    prompts = _prompts(given)
    with Store.open(given.folder / "replies.db") as store, log.open("a", encoding="utf-8") as out:

        def note(record: Record) -> None:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
            out.flush()

        for mode in given.modes:
            endpoint = Endpoint(
                name="prompts",
                base_url=given.url,
                model=given.model,
                structured=mode,
                timeout=900,
                corrections=1,
                body={"max_tokens": given.max_tokens, "seed": 1},
            )
            key = os.environ[given.key_env] if given.key_env else None
            chat = ChatJudge(endpoint, prompts, key=SecretStr(key) if key else None)
            watched = WatchedJudge(chat, prompts, note, given.at_once, first_only=given.first_only, key=key)
            judge = JournalledJudge(watched, store)
            try:
                seconds = ends - clock() if ends else None
                if seconds is None or seconds > 0:
                    # All protocols side by side: stopped at any time, they have come equally far.
                    each = product(given.protocols, given.languages)
                    await asyncio.gather(*(_judge(*which, judge, given, note, seconds) for which in each))
            finally:
                await judge.aclose()


async def _judge(
    protocol: str,
    language: str,
    judge: JournalledJudge,
    given: argparse.Namespace,
    note: Callable[[Record], None],
    seconds: float | None,
) -> None:
    chosen = get_protocol(protocol)
    options = chosen.parse_options({"date": DATE} if "date" in chosen.options.model_fields else {})
    labelled = {one.sample.id: one for one in _labelled(protocol, language, given)}

    def finished(_: int, sample: Sample, verdict: Verdict) -> None:
        note(
            {
                "kind": "verdict",
                "protocol": protocol,
                "language": language,
                "mode": judge.judge.mode,
                "sample": sample.id,
                "prompts": judge.judge.prompts_of(protocol, language),
                "status": verdict.status,
                "flags": verdict.flags,
                "compared": labelled[sample.id].compare(verdict),
            }
        )

    runner = Runner(chosen, options, judge, workers=SAMPLES_AT_ONCE, budget=Budget(max_seconds=seconds))
    await runner.run(enumerate(one.sample for one in labelled.values()), finished)


def _labelled(protocol: str, language: str, given: argparse.Namespace) -> Iterator[Labelled]:
    until = given.skip + given.samples
    if protocol == "dialogue":
        for sample, expected in islice(dialogues(language, until), given.skip, None):
            yield Labelled(sample, lambda verdict, expected=expected: _criteria(verdict, expected))
        return
    if protocol == "pairwise":
        for sample in pairs(given.data, language, until)[given.skip :]:
            yield Labelled(sample, lambda _: [])
        return
    for sample, supported in answers(given.data, language, until)[given.skip :]:
        yield Labelled(sample, lambda verdict, supported=supported: _support(verdict, supported))


def _criteria(verdict: Verdict, expected: Iterable[Any]) -> Pairs:
    items: dict[tuple[int, str], Any] = {(item.turn, item.text): item for item in verdict.items}  # type: ignore[union-attr]
    pairs: Pairs = []
    for turn, text, valid, satisfied in expected:
        item = items[turn, text]
        if item.validity != "unjudged":
            pairs.append(["dialogue.validity", valid, item.validity == "valid"])
        if valid and item.label in ("satisfied", "violated") and item.decided_by == "judge":
            pairs.append(["dialogue.compliance", satisfied, item.label == "satisfied"])
    return pairs


def _support(verdict: Verdict, supported: bool) -> Pairs:
    """Whether the judge found the whole answer supported; nothing where it could not say."""
    found: bool | None = None
    if verdict.protocol == "atomic" and verdict.scores["coverage"] is not None:
        found = verdict.scores["accuracy_strict"] == 1
    elif verdict.protocol == "grounded":
        label = next(item.label for item in verdict.items if item.name == "from_background")  # type: ignore[union-attr]
        found = label == 1 if label != "unjudged" else None
    elif verdict.protocol == "scorecard" and verdict.scores["faithfulness"] is not None:
        found = verdict.scores["faithfulness"] == 100
    return [] if found is None else [[f"{verdict.protocol}.judge", supported, found]]


def _records(log: Path) -> list[Record]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


if __name__ == "__main__":
    raise SystemExit(main())
