"""The results as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from environments import CLIENTS

Row = dict[str, Any]
# For each figure: its title, what it shows, and its columns as heading → key:format.
SHOWN: dict[str, tuple[str, str, dict[str, str]]] = {
    "wall": (
        "Wall time",
        "Latency 200 ms. *Over bare* is the time over that of a bare aiohttp loop making the same calls in the same "
        "run; *of ideal* is calls × latency ÷ concurrency over the time taken, 1 being the physical limit (above it, "
        "the client had more in flight than it was told). With 256 in flight Steelyard is bound by its own CPU, so "
        "what else the machine does shows most there.",
        {
            "in flight": "concurrency:d",
            "samples": "samples:,d",
            "seconds": "wall_s:.2f",
            "over bare": "over_bare:.2f",
            "of ideal": "of_ideal:.2f",
            "ended": "ended:s",
        },
    ),
    "cpu": (
        "CPU per call",
        "Latency 20 ms, 32 in flight. Milliseconds of user and system time per call: of the judging, and of the whole "
        "process with its start; and its peak of memory.",
        {
            "samples": "samples:,d",
            "judging": "cpu_ms_per_call:.2f",
            "whole": "whole_cpu_ms_per_call:.2f",
            "peak MB": "peak_mb:.0f",
            "ended": "ended:s",
        },
    ),
    "calls": (
        "Calls and tokens per sample",
        "Prompt tokens are characters ÷ 4, schemas and tools included. *Uncached* are those after the longest "
        "beginning that an earlier call had too, in blocks of 128 tokens: a provider's prompt cache holds the rest.",
        {
            "metrics": "metrics:s",
            "calls": "calls:.2f",
            "embedding calls": "embedding_calls:.2f",
            "prompt tokens": "prompt_tokens:,.0f",
            "uncached": "uncached_tokens:,.0f",
            "ended": "ended:s",
        },
    ),
    "faults": (
        "Faults",
        "10 % 429, 5 % 500, 5 % broken JSON, one hang of 60 s; 200 ms, 32 in flight, 10 s for an attempt. *Changed* "
        "are values that differ from the same client's run without faults; *beyond need* are calls above those of that "
        "run and one for each fault (below zero: work was given up, or a broken reply was taken as it was); *over "
        "calm* is the time over that run's, where the client came to an end.",
        {
            "samples": "samples:,d",
            "scored": "scored:,d",
            "changed": "changed:d",
            "faults met": "faults:d",
            "beyond need": "calls_beyond_need:d",
            "over calm": "over_calm:.2f",
            "ended": "ended:s",
        },
    ),
    "in-flight": (
        "Requests in flight",
        "The most that the endpoint saw at once in any of these runs, next to the limit that the client was given and "
        "what that limit counts: not all have one for requests.",
        {"limit": "limit:d", "of": "limit_of:s", "peak": "peak:d"},
    ),
    "resume": (
        "kill -9 at half, then resume",
        "*Answered* calls had their answer on the wire at least 0.1 s before the kill; the others were in flight or "
        "had just been sent. Who has no way to go on after a kill, or was not measured, is not shown.",
        {
            "by": "way:s",
            "calls before": "calls_at_kill:,d",
            "in flight at kill": "in_flight_at_kill:d",
            "answered, asked again": "answered_asked_again:d",
            "others asked again": "others_asked_again:d",
            "calls in all": "calls_in_all:,d",
            "needed": "calls_needed:,d",
            "scored": "scored:,d",
            "changed": "changed:d",
            "ended": "ended:s",
        },
    ),
    "memory": (
        "Peak memory",
        "`steelyard run` from a JSONL file into a store and a result file. `grounded`, one ask "
        "a sample, by a judge inside the process, so that a million take minutes, not hours; all else is as over HTTP.",
        {
            "samples": "samples:,d",
            "peak MB": "peak_mb:.0f",
            "over small": "over_small:.2f",
            "seconds": "wall_s:.0f",
            "ended": "ended:s",
        },
    ),
    "startup": (
        "Start-up and size",
        "Warm, median, in turns. The size is that of a fresh environment without pip and setuptools.",
        {"ms": "ms:.0f", "over python": "over_python:.2f", "MB": "mb:.1f"},
    ),
    "viewer": (
        "The viewer",
        "`python bench/viewer.py`: time to the first byte with many samples in the store over that with few. Sorting "
        "and searching are measured after the run was indexed, which happens once. What has fewer than three "
        "characters is searched for in every text.",
        {"samples": "samples:,d", "over": "small:,d", "times": "over_small:.1f"},
    ),
    "pages": (
        "Weight of the viewer's pages",
        "With all that they load, uncompressed.",
        {"kB": "kb:.0f"},
    ),
}


def markdown(*runs: dict[str, Any]) -> str:
    """One page of the results of one run or of several; of what was measured twice, the last is shown."""
    parts = ["# Benchmarks\n"]
    if any(results["preliminary"] for results in runs):
        parts.append(
            "**Preliminary**: a small run to show the form, on a machine that was busy with other things. "
            "The numbers below mean nothing yet.\n"
        )
    parts.append(
        "Made by `python bench/run.py` ([how](../bench/README.md)) against a stub endpoint on loopback. Compare within "
        "one table only, and rows that were measured together: below each table stands when that was (UTC), and the "
        "load of the machine before and between its rows, the bench itself included.\n"
    )
    parts.append("\n".join(f"- {name}: {value}" for name, value in _facts(runs)))
    for name, (title, explained, columns) in SHOWN.items():
        if rows := rows_of(name, runs):
            parts.append(f"## {title}\n\n{explained}\n\n{_table(rows, columns)}\n\n{_measured(name, rows, runs)}")
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def with_other_sections(page: str, before: str) -> str:
    """The page with the sections that people wrote into the one before, each behind the section that it followed."""
    made = {title for title, _, _ in SHOWN.values()}
    sections = page.rstrip("\n").split("\n## ")
    behind = ""
    for section in before.rstrip("\n").split("\n## ")[1:]:
        title = section.partition("\n")[0]
        if title not in made:
            titles = [one.partition("\n")[0] for one in sections]
            sections.insert(titles.index(behind) + 1 if behind in titles else len(sections), section)
        behind = title
    return "\n## ".join(section.rstrip("\n") + "\n" for section in sections)


def rows_of(figure: str, runs: Sequence[dict[str, Any]]) -> list[Row]:
    """The rows of a figure, each with the number of its run. A later run replaces all that an earlier one says of a
    client, except for the most requests in flight, where the most of all counts."""
    kept: dict[str, list[Row]] = {}
    for number, results in enumerate(runs):
        fresh: dict[str, list[Row]] = {}
        for row in results["figures"].get(figure, ()):
            fresh.setdefault(_name(row), []).append({**row, "run": number})
        for name, rows in fresh.items():
            kept[name] = _highest([*kept.get(name, ()), *rows]) if figure == "in-flight" else rows
    order = [*CLIENTS]
    rows = [row for name in sorted(kept, key=lambda n: order.index(n) if n in order else 0) for row in kept[name]]
    return sorted(rows, key=lambda row: (_is_peer(row), row.get("concurrency") or row.get("limit") or 0))


def _highest(rows: list[Row]) -> list[Row]:
    highest: dict[int, Row] = {}
    for row in rows:
        if row["limit"] not in highest or row["peak"] > highest[row["limit"]]["peak"]:
            highest[row["limit"]] = row
    return list(highest.values())


def _name(row: Row) -> str:
    return str(row.get("client") or row["what"])


def _is_peer(row: Row) -> bool:
    client = CLIENTS.get(_name(row))
    return client is not None and client.is_peer


def _facts(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The machine and the versions; where runs differ in them, all are named."""
    for fact in ("processor", "cores", "system", "python"):
        yield fact, "; ".join(dict.fromkeys(results["machine"][fact] for results in runs))
    versions = {name: version for results in runs for name, version in results["versions"].items()}
    yield "versions", ", ".join(f"{name} {versions[name]}" for name in CLIENTS if name in versions)
    missing = {name: why for results in runs for name, why in results["missing"].items() if name not in versions}
    if missing:
        yield "not measured", "; ".join(f"{name} ({why})" for name, why in missing.items())


def _measured(figure: str, rows: list[Row], runs: Sequence[dict[str, Any]]) -> str:
    """When the rows of a table were measured, and on how busy a machine."""
    numbers = dict.fromkeys(row["run"] for row in rows)
    said = []
    for number in numbers:
        measured = runs[number]["measured"][figure]
        whose = f" ({_whose([row for row in rows if row['run'] == number], rows)})" if len(numbers) > 1 else ""
        said.append(f"{measured['at']}, {_busy(measured['loads'])}{whose}")
    return f"Measured {'; '.join(said)}."


def _busy(loads: list[float]) -> str:
    if not loads:
        return "load not noted"
    least, most = f"{min(loads):.1f}", f"{max(loads):.1f}"
    return f"load {least}" if least == most else f"load {least} to {most}"


def _whose(rows: list[Row], all_rows: list[Row]) -> str:
    """The clients of some rows, in few words if they are the peers."""
    names = dict.fromkeys(_name(row) for row in rows if not _is_peer(row))
    peers = dict.fromkeys(_name(row) for row in rows if _is_peer(row))
    if peers and peers == dict.fromkeys(_name(row) for row in all_rows if _is_peer(row)):
        peers = {"the peers": None}
    return ", ".join([*names, *peers])


def _table(rows: list[Row], columns: dict[str, str]) -> str:
    keys = [column.split(":") for column in columns.values()]
    lines = [["", *columns], ["---", *("---" if form == "s" else "---:" for _, form in keys)]]
    for row in rows:
        lines.append([_name(row), *(_cell(row.get(key), form) for key, form in keys)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)
