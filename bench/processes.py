"""`steelyard run --processes N` over one bare aiohttp process making the same calls: `python bench/processes.py`.

Ratios of rounds in which all take turns; the median, the least and the most of them are printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from environments import BARE
from harness import Lab, Load

OWN = "steelyard run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, help="install nothing; run Steelyard from source with this interpreter")
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    print("| in flight | processes | wall over bare (least to most) | CPU over bare (least to most) |")
    print("| ---: | ---: | ---: | ---: |")
    with Lab(given.python) as lab:
        for in_flight in given.in_flight:
            load = Load(given.samples, concurrency=in_flight)
            ratios: dict[int, list[tuple[float, float]]] = {n: [] for n in given.processes}
            for _ in range(given.rounds):
                bare = lab.run(BARE, load)
                for n, found in ratios.items():
                    own = lab.run(OWN, load, told={"processes": n})
                    if own.ended != "exit 0" or own.calls != bare.calls:
                        raise SystemExit(f"{own.ended}, {own.calls} calls instead of {bare.calls}:\n{own.log}")
                    found.append((own.wall_s / bare.wall_s, own.cpu_s / bare.cpu_s))
            for n, found in ratios.items():
                wall, cpu = (_spread(list(column)) for column in zip(*found, strict=True))
                print(f"| {in_flight:,} | {n} | {wall} | {cpu} |", flush=True)


def _spread(ratios: list[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
