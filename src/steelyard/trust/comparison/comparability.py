"""Whether two runs can be compared at all: the same protocol, judge, prompts, options and questions.

`check_comparable` decides it for the command, the gate, the page and the API alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.engine.manifest import differing
from steelyard.errors import NotComparable
from steelyard.protocols import vocabulary
from steelyard.trust.comparison.rows import Judged, PairedRow

Mark = tuple[str, str]
"""A code of the wording (`compare.mark.*`) and a detail: names, ids or numbers."""

# These make a difference mean something else than a better assistant.
GRAVE = ("protocol", "scale", "judge", "prompts", "template", "options", "questions")
# How the work is cut up or when it is done, not what is asked.
HARMLESS_OPTIONS = {"date", "items_per_ask", "thorough"}


def check_comparable(
    a: Judged, b: Judged, before: Mapping[str, PairedRow], after: Mapping[str, PairedRow], *, anyway: bool = False
) -> tuple[Mark, ...]:
    """The differences that make the runs less comparable; raises `NotComparable` if they are grave, unless `anyway`."""
    if not before.keys() & after.keys():
        raise NotComparable(a.name, b.name, [("no_common", f"{len(before)} / {len(after)}")], can_be_forced=False)
    marks = tuple(marks_of(a, b, before, after))
    grave = [mark for mark in marks if mark[0] in GRAVE]
    if grave and not anyway:
        raise NotComparable(a.name, b.name, grave)
    return marks


def marks_of(a: Judged, b: Judged, before: Mapping[str, PairedRow], after: Mapping[str, PairedRow]) -> Iterator[Mark]:
    """The differences of the two runs beside the answers."""
    protocols = [{row.protocol for row in side.values()} for side in (before, after)]
    yield from _both("protocol", *protocols)
    yield from _both("scale", *({vocabulary(name).scale for name in side} for side in protocols))
    yield from _both("judge", (row.judge for row in before.values()), (row.judge for row in after.values()))
    if a.manifest is None or b.manifest is None:
        yield "unknown", ", ".join(side.name for side in (a, b) if side.manifest is None)
    else:
        yield from _of_manifests(a.manifest, b.manifest, same_protocol=protocols[0] == protocols[1])
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


def _of_manifests(a: Mapping[str, Any], b: Mapping[str, Any], *, same_protocol: bool) -> Iterator[Mark]:
    one, other = a.get("judge", {}), b.get("judge", {})
    if changed := list(dict.fromkeys([*differing(one, other), *differing(other, one)])):
        yield "judge", _first(changed)
    if not same_protocol:  # then prompts and options are others as a matter of course
        return
    templates = [side.get("template") or {} for side in (a, b)]
    other_template = any(templates[0].get(part) != templates[1].get(part) for part in ("sha256", "fence"))
    if other_template:
        yield "template", " / ".join(str(template.get("source", "shipped prompts")) for template in templates)
    words = [{id: prompt.get("sha256") for id, prompt in side.get("prompts", {}).items()} for side in (a, b)]
    # Two templates need no list of the shipped prompts that one of the runs did without.
    if not other_template and (
        prompts := [id for id in sorted({*words[0], *words[1]}) if words[0].get(id) != words[1].get(id)]
    ):
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
