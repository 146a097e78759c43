"""The page of prompts: versions, differences of the user's own, and the prompts of earlier runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from steelyard.errors import PromptError
from steelyard.prompts import PLACEHOLDER, Prompt, Prompts
from steelyard.prompts.lock import CHANGELOG
from steelyard.records import Record
from steelyard.store import RunRow, Store
from steelyard.web.rendering import page, page_routes
from steelyard.web.viewer import viewer_of

ROW = re.compile(r"^\| (?P<id>[\w.]+) \| (?P<version>\d+) \| (?P<what>.*) \|$", re.MULTILINE)
CONTEXT = 3
MOST_RUNS = 50


class PromptInfo(Record):
    """A prompt as it is now."""

    id: str
    task: str
    language: str
    version: int
    sha256: str
    source: str
    is_own: bool


class PromptChange(Record):
    """What changed in one version, and why."""

    version: int
    what: str


class DiffLine(Record):
    sign: Literal["+", "-", " ", "@"]
    text: str


class PromptDifference(Record):
    """The present wording against another one."""

    other: str
    version: int
    sha256: str
    lines: tuple[DiffLine, ...]


class UsedBy(Record):
    """A run and the version of the prompt that it recorded."""

    run: str
    number: int
    version: int
    sha256: str
    is_same: bool


class PromptsPage(Record):
    prompts: tuple[PromptInfo, ...]


class PromptPage(Record):
    prompt: PromptInfo
    text: str
    variables: tuple[str, ...]
    changelog: tuple[PromptChange, ...]
    differences: tuple[PromptDifference, ...]
    runs: tuple[UsedBy, ...]


def prompts(request: Request) -> Response:
    found = sorted(viewer_of(request).config.prompts)
    return page(request, "prompts.html", PromptsPage(prompts=tuple(map(info, found))))


def info(prompt: Prompt) -> PromptInfo:
    own = shipped_like(prompt)
    return PromptInfo(
        id=prompt.id,
        task=prompt.task,
        language=prompt.language,
        version=prompt.version,
        sha256=prompt.sha256,
        source=prompt.source,
        is_own=own is None or own.sha256 != prompt.sha256,
    )


def shipped_like(prompt: Prompt) -> Prompt | None:
    try:
        return Prompts.shipped().get(prompt.task, prompt.language)
    except PromptError:
        return None


def prompt(request: Request) -> Response:
    viewer, id = viewer_of(request), request.path_params["prompt"]
    found = next((prompt for prompt in viewer.config.prompts if prompt.id == id), None)
    if found is None:
        raise HTTPException(404, f"there is no prompt {id!r}")
    with viewer.store() as store:
        model = PromptPage(
            prompt=info(found),
            text=found.text,
            variables=tuple(dict.fromkeys(PLACEHOLDER.findall(f"{found.static}\n{found.sample}"))),
            changelog=tuple(entry for entry in changelog().get(found.id, ())),
            differences=tuple(differences(store, found)),
            runs=tuple(used_by(store.runs(), found)),
        )
    return page(request, "prompt.html", model)


@cache
def changelog() -> dict[str, list[PromptChange]]:
    """The shipped changelog by prompt, the newest version first."""
    found: dict[str, list[PromptChange]] = {}
    for row in ROW.finditer(CHANGELOG.read_text("utf-8")):
        found.setdefault(row["id"], []).append(
            PromptChange(version=int(row["version"]), what=row["what"].replace("\\|", "|"))
        )
    return {id: sorted(entries, key=lambda entry: -entry.version) for id, entries in found.items()}


def differences(store: Store, now: Prompt) -> Iterator[PromptDifference]:
    """The present wording against the shipped one, and against those that runs of this store were judged by."""
    seen = {now.sha256}
    shipped = shipped_like(now)
    if shipped and shipped.sha256 not in seen:
        seen.add(shipped.sha256)
        yield difference(shipped.text, now, shipped.source, shipped.version, shipped.sha256)
    for then in store.wordings(now.id):
        if then.sha256 not in seen:
            seen.add(then.sha256)
            yield difference(then.text, now, "", then.version, then.sha256)


def difference(before: str, now: Prompt, other: str, version: int, sha256: str) -> PromptDifference:
    lines = difflib.unified_diff(before.splitlines(), now.text.splitlines(), lineterm="", n=CONTEXT)
    return PromptDifference(other=other, version=version, sha256=sha256, lines=tuple(diff_lines(lines)))


def diff_lines(lines: Iterable[str]) -> Iterator[DiffLine]:
    """The lines of a unified diff without its two file names."""
    for number, line in enumerate(lines):
        if number < 2:
            continue
        sign = line[:1]
        if sign in ("+", "-", " "):
            yield DiffLine(sign=sign, text=line[1:])
        elif sign == "@":
            yield DiffLine(sign="@", text=line)


def used_by(runs: Iterable[RunRow], now: Prompt) -> Iterator[UsedBy]:
    """The newest runs that recorded this prompt."""
    found = 0
    for run in runs:
        then = run.manifest.get("prompts", {}).get(now.id)
        if then and found < MOST_RUNS:
            found += 1
            same = then["sha256"] == now.sha256
            yield UsedBy(run=run.id, number=run.number, version=then["version"], sha256=then["sha256"], is_same=same)


routes = [*page_routes("/prompts/{prompt}", prompt), *page_routes("/prompts", prompts)]
