"""The lock: which version of each shipped prompt has which content, so that no edit goes unnoticed.

`python -m steelyard.prompts.lock` checks the shipped prompts against `prompts.lock` and `CHANGELOG.md`, and
writes the lock anew once every edited prompt has a higher version and a line in the changelog.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from steelyard.prompts import Prompt, Prompts

FOLDER = Path(__file__).parent
LOCK, CHANGELOG = FOLDER / "prompts.lock", FOLDER / "CHANGELOG.md"
COMMAND = "python -m steelyard.prompts.lock"

Lock = Mapping[str, Mapping[str, int | str]]


def locked(prompts: Iterable[Prompt]) -> Lock:
    """What the lock says about these prompts."""
    return {
        prompt.id: {"version": prompt.version, "sha256": prompt.sha256}
        for prompt in sorted(prompts, key=lambda p: p.id)
    }


def problems(prompts: Iterable[Prompt], lock: Lock, changelog: str) -> Iterator[str]:
    """What an author has still to do before the lock may be written."""
    for prompt in prompts:
        known = lock.get(prompt.id, {"version": 0, "sha256": ""})
        version = int(known["version"])
        if known["sha256"] != prompt.sha256 and prompt.version != version + 1:
            yield f"{prompt.source} was edited: set its version to {version + 1} (it says {prompt.version})"
        line = f"| {prompt.id} | {prompt.version} |"
        if line not in changelog:
            yield f"{prompt.source}: add to CHANGELOG.md the line {line} what changed and why |"


def main() -> int:
    shipped = list(Prompts.shipped())
    lock = json.loads(LOCK.read_text("utf-8")) if LOCK.exists() else {}
    found = list(problems(shipped, lock, CHANGELOG.read_text("utf-8")))
    if found:
        print(*found, sep="\n", file=sys.stderr)
        return 1
    LOCK.write_text(json.dumps(locked(shipped), indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
