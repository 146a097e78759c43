"""Whether two runs can be compared at all: the same judge, prompts, options and questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.comparison.rows import Judged, Row
from steelyard.runs import differing

Mark = tuple[str, str]
"""A code of the wording (`compare.mark.*`) and a detail: names, ids or numbers."""

# These make a difference mean something else than a better assistant.
GRAVE = ("protocol", "judge", "prompts", "options", "questions")
# How the work is cut up or when it is done, not what is asked.
HARMLESS_OPTIONS = {"date", "items_per_ask", "thorough"}


def marks_of(a: Judged, b: Judged, before: Mapping[str, Row], after: Mapping[str, Row]) -> Iterator[Mark]:
    """What tells the two runs apart beside the answers."""
    yield from _both("protocol", (row.protocol for row in before.values()), (row.protocol for row in after.values()))
    yield from _both("judge", (row.judge for row in before.values()), (row.judge for row in after.values()))
    if a.manifest is None or b.manifest is None:
        yield "unknown", ", ".join(side.name for side in (a, b) if side.manifest is None)
    else:
        yield from _of_manifests(a.manifest, b.manifest)
    shared = [id for id in before if id in after]
    asked = [id for id in shared if _differ(before[id].asked, after[id].asked)]
    if asked:
        yield "questions", _first(asked)
    given = [id for id in shared if id not in set(asked) and _differ(before[id].given, after[id].given)]
    if given:
        yield "material", _first(given)
    only = (len(before) - len(shared), len(after) - len(shared))
    if any(only):
        yield "unpaired", f"{only[0]} / {only[1]}"


def _both(code: str, a: Iterable[str], b: Iterable[str]) -> Iterator[Mark]:
    one, other = set(a) - {""}, set(b) - {""}
    if one and other and one != other:
        yield code, f"{_listed(one)} / {_listed(other)}"


def _of_manifests(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Mark]:
    one, other = a.get("judge", {}), b.get("judge", {})
    if changed := list(dict.fromkeys([*differing(one, other), *differing(other, one)])):
        yield "judge", _first(changed)
    words = [{id: prompt.get("sha256") for id, prompt in side.get("prompts", {}).items()} for side in (a, b)]
    if prompts := [id for id in sorted({*words[0], *words[1]}) if words[0].get(id) != words[1].get(id)]:
        yield "prompts", _first(prompts)
    versions = [side.get("protocol", {}).get("version") for side in (a, b)]
    if versions[0] != versions[1]:
        yield "protocol", f"{versions[0]} / {versions[1]}"
    options = [side.get("options", {}) for side in (a, b)]
    names = sorted({*options[0], *options[1]} - HARMLESS_OPTIONS)
    if others := [name for name in names if options[0].get(name) != options[1].get(name)]:
        yield "options", ", ".join(others)


def _differ(a: str | None, b: str | None) -> bool:
    return a is not None and b is not None and a != b


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _first(ids: Sequence[str], most: int = 3) -> str:
    return ", ".join(ids[:most]) + (f" +{len(ids) - most}" if len(ids) > most else "")
