"""Records → the table: per task, language and mode, how many first replies were usable, and what was wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from statistics import mean
from typing import Any

from findings import INCOMPLETE

from steelyard.prompts import Prompts
from steelyard.stats.intervals import wilson
from steelyard.tasks import TASKS

Record = dict[str, Any]
Cell = tuple[str, str, str]
ALL = "all"
HEAD = (
    "| task | language | mode | n | valid, complete | mended | no second ask | tokens | seconds | agreement | wrong |",
    "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
)


def markdown(records: Iterable[Record], prompts: Prompts) -> str:
    """Only what was asked with the present prompts counts; of an ask that was repeated, the last time."""
    records = list(records)
    asks, compared = _asks(records, prompts), _compared(records, prompts)
    rows = [_row(cell, asks[cell], compared.get(cell, [])) for cell in sorted(asks, key=_order)]
    for mode in sorted({cell[2] for cell in asks}):
        together = [ask for cell, found in asks.items() if cell[2] == mode for ask in found]
        rows.append(_row((ALL, "both", mode), together, []))
    return "\n".join([*HEAD, *rows])


def _asks(records: Iterable[Record], prompts: Prompts) -> dict[Cell, list[Record]]:
    latest: dict[tuple[str, ...], Record] = {}
    for record in records:
        if record["kind"] != "ask" or record["again"]:
            continue
        if record["prompt"] == prompts.get(record["task"], record["language"]).sha256:
            latest[record["mode"], record["key"]] = record
    cells: dict[Cell, list[Record]] = defaultdict(list)
    for record in latest.values():
        cells[record["task"], record["language"], record["mode"]].append(record)
    return cells


def _compared(records: Iterable[Record], prompts: Prompts) -> dict[Cell, list[tuple[bool, bool]]]:
    """Pairs of what people said and what the judge said."""
    present = {prompt.sha256: prompt for prompt in prompts}
    latest = {
        (record["mode"], record["protocol"], record["sample"]): record
        for record in records
        if record["kind"] == "verdict" and all(sha256 in present for sha256 in record["prompts"])
    }
    cells: dict[Cell, list[tuple[bool, bool]]] = defaultdict(list)
    for record in latest.values():
        for task, expected, found in record["compared"]:
            cells[task, record["language"], record["mode"]].append((expected, found))
    return cells


def _order(cell: Cell) -> tuple[int, str, str]:
    task, language, mode = cell
    return list(TASKS).index(task), language, mode


def _row(cell: Cell, asks: list[Record], compared: list[tuple[bool, bool]]) -> str:
    usable = [ask for ask in asks if ask["form"] and not INCOMPLETE & set(ask["wrong"])]
    at_ease = [ask for ask in asks if ask["form"] and not ask["wrong"]]
    repaired = sum(ask["form"] in ("repaired", "tidied") for ask in asks)
    wrong = Counter(kind for ask in asks for kind in ask["wrong"])
    cells = [
        cell[0] if cell[0] == ALL else f"`{cell[0]}`",
        *cell[1:],
        str(len(asks)),
        _share(len(usable), len(asks)),
        str(repaired or "–"),
        f"{len(at_ease) / len(asks):.0%}",
        f"{mean(ask['completion_tokens'] for ask in asks):.0f}",
        f"{mean(ask['seconds'] for ask in asks):.0f}",
        _agreement(compared),
        ", ".join(f"{kind} {count}" for kind, count in wrong.most_common()) or "–",
    ]
    return f"| {' | '.join(cells)} |"


def _share(some: int, n: int) -> str:
    """With its 95 % interval; a single reply has none."""
    ends = wilson(some, n)
    return f"{some / n:.0%}" + (f" ({100 * ends[0]:.0f}–{100 * ends[1]:.0f})" if ends else "")


def _agreement(pairs: list[tuple[bool, bool]]) -> str:
    """Balanced accuracy with its n; null where one side has no cases."""
    shares = list(_recalls(pairs))
    return f"{mean(shares):.2f} ({len(pairs)})" if len(shares) == 2 else "–"


def _recalls(pairs: list[tuple[bool, bool]]) -> Iterator[float]:
    for side in (True, False):
        found = [is_right == side for expected, is_right in pairs if expected == side]
        if found:
            yield mean(found)
