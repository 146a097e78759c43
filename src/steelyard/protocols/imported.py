"""`imported:TOOL`: scores that another tool or its users gave, under the names they have there. Nothing is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from steelyard.errors import ConfigError
from steelyard.protocols import IMPORTED, Protocol, registered
from steelyard.protocols.common import Options
from steelyard.protocols.vocabulary import Aspect, Label, Metric, Scale, Words
from steelyard.records import Sample

# From the narrowest to the widest: two runs with the same score have it on the wider scale.
SCALES: tuple[Scale, ...] = ("binary", "ratio", "number")
# A list of runs has room for so many.
MOST_MAIN = 3
TITLE = Words("Scores of another tool", "外部工具的评分", "外部工具的評分")
LABELS = (Label("1", "good", Words("yes", "是", "是")), Label("0", "bad", Words("no", "否", "否")))


class ImportedOptions(Options):
    """There are none: nothing is asked."""


def wider(scale: Scale | None, value: float) -> Scale:
    """The narrowest scale that holds what the first one does and this value: a tool does not say what it means."""
    held: Scale = "binary" if value in (0, 1) else "ratio" if 0 < value < 1 else "number"
    return max(scale or "binary", held, key=SCALES.index)


def imported_protocol(tool: str, scales: Mapping[str, Scale]) -> Protocol:
    """What the scores of a tool are called. A score of yes and no can be labelled by people as well."""
    name = f"{IMPORTED}:{tool}"
    known = registered(name)
    before: Mapping[str, Scale] = known.origin["scales"] if known else {}
    merged = {
        one: max(before.get(one, "binary"), scales.get(one, "binary"), key=SCALES.index) for one in (*before, *scales)
    }
    return Protocol(
        name=name,
        title=TITLE,
        kind="rag",
        rounds=_unasked,
        options=ImportedOptions,
        metrics=tuple(
            Metric(one, scale, main=scale != "number" and at < MOST_MAIN)
            for at, (one, scale) in enumerate(merged.items())
        ),
        whole=tuple(
            Aspect(one, LABELS, asked=False, confidence=None) for one, scale in merged.items() if scale == "binary"
        ),
        origin={"tool": tool, "scales": merged},
    )


def restored(origin: Mapping[str, Any]) -> Protocol | None:
    """The protocol of an imported run, from what its manifest keeps."""
    tool, scales = origin.get("tool"), origin.get("scales")
    if not isinstance(tool, str) or not isinstance(scales, Mapping) or not set(scales.values()) <= set(SCALES):
        return None
    return imported_protocol(tool, {str(name): scale for name, scale in scales.items()})


def _unasked(sample: Sample, options: ImportedOptions) -> NoReturn:
    raise ConfigError("the scores of this run come from another tool; judge its samples with a run of their own")
