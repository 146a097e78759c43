"""Measure Steelyard next to a bare loop and its peers: `python bench/run.py`. See README.md."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from environments import BARE, CLIENTS, install, version_of
from figures import FIGURES, Sizes
from harness import Lab
from results import RESULTS, Results
from table import markdown, with_other_sections

SMALL = Sizes(samples=50, peer_samples=10, big=2_000, repeats=1)
MILLION = 1_000_000


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.page:
        return _written(markdown(*(json.loads(file.read_text("utf-8")) for file in given.page)), given.write)
    sizes = SMALL if given.small else Sizes()
    changes = {name: getattr(given, name) for name in ("samples", "peer_samples", "repeats", "big")}
    sizes = replace(sizes, **{name: value for name, value in changes.items() if value})
    missing = {} if given.python else _installed(given.clients)
    sizes = replace(sizes, clients=[name for name in given.clients if name not in missing])
    versions = {name: version_of(name, given.python) for name in sizes.clients}
    results = Results(given.results, versions, missing, preliminary=given.small)
    with Lab(given.python) as lab:
        for name in given.figures:
            _say(f"{name} …")
            results.add(name, FIGURES[name](lab, sizes))
    page = markdown(results.data)
    results.file.with_suffix(".md").write_text(page, "utf-8")
    return _written(page, given.write)


def _written(page: str, file: Path | None) -> int:
    if file:
        before = file.read_text("utf-8") if file.exists() else ""
        file.write_text(with_other_sections(page, before), "utf-8")
    print(page)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    listed = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--figures", choices=FIGURES, default=list(FIGURES), help=", ".join(FIGURES), **listed)
    parser.add_argument("--clients", choices=CLIENTS, default=list(CLIENTS), help=", ".join(CLIENTS), **listed)
    parser.add_argument("--no-peers", dest="clients", action="store_const", const=OWN_CLIENTS, help="Steelyard only")
    parser.add_argument("--small", action="store_true", help="a few samples each, to see that everything runs")
    parser.add_argument("--big", type=int, nargs="?", const=MILLION, metavar="N", help="samples for memory: a million")
    parser.add_argument("--samples", type=int, help="for Steelyard and the bare loop (1,000)")
    parser.add_argument("--peer-samples", type=int, help="for the peers (200)")
    parser.add_argument("--repeats", type=int, help="of what is timed (3)")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page here")
    parser.add_argument(
        "--page", type=Path, nargs="+", metavar="RESULTS", help="measure nothing: one page of these results, in order"
    )
    parser.add_argument("--python", type=Path, help="install nothing; run Steelyard from source with this interpreter")
    return parser


OWN_CLIENTS = [name for name, client in CLIENTS.items() if not client.is_peer]


def _installed(names: list[str]) -> dict[str, str]:
    """Make the environments; what cannot be had is left out, with the reason."""
    missing = {}
    for name in names:
        _say(f"environment of {name} …")
        if problem := install(name):
            _say(f"  left out: {problem}")
            missing[name] = problem
    if BARE in missing:
        sys.exit(f"Steelyard itself does not install: {missing[BARE]}")
    return missing


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
