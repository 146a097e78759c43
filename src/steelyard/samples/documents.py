"""The objects of a JSON document, one at a time: of its array, of the array under a known key, or itself."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TextIO

from steelyard.samples.columns import names_a_sample

Event = tuple[str, Any]

_LISTS: Final = frozenset(("samples", "data", "items", "examples", "results", "评估数据", "評估數據"))
_OPEN, _CLOSE = ("start_map", "start_array"), ("end_map", "end_array")
# A noncharacter: no real text holds it.
_DAMAGE: Final = "\ufdd0"
_UNDECODED = re.compile("[\udc80-\udcff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Escaped backslashes and proper pairs come first, so that only a lone half is left for the last branch.
_LONE_ESCAPE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_ESCAPE: Final = len("\\ud800")
_MOST_EVENTS: Final = 5_000


def broken_json() -> type[Exception]:
    """The error of `elements` for text that is not JSON (looked up late: ijson is not cheap to import)."""
    import ijson

    error: type[Exception] = ijson.JSONError
    return error


def elements(text: TextIO, *, whole: bool = False) -> Iterator[tuple[object, bool]]:
    """Each element, and whether undecodable bytes stood in it. Whole ones come before the error of a broken one.

    With `whole`, an object is an element even where it holds a list under a known key.
    """
    import ijson

    source = _Source(text)
    if source.is_blank():
        return
    for value in _values(iter(ijson.basic_parse(source, multiple_values=True)), whole):
        yield value, source.damaged and _is_damaged(value)


def paths_at(head: str) -> frozenset[str]:
    """The dotted paths of keys in the first objects of a document that breaks off; those through lists have no number,
    and those in a list under a known key are there without that key too."""
    import ijson

    found: set[str] = set()
    events = ijson.parse(_Source(io.StringIO(head)), multiple_values=True)
    try:
        for prefix, event, key in islice(events, _MOST_EVENTS):
            if event == "map_key":
                steps = [step for step in prefix.split(".") if step and step != "item"]
                found.add(".".join((*steps, key)))
                if steps and steps[0] in _LISTS:
                    found.add(".".join((*steps[1:], key)))
    except ijson.JSONError:
        pass
    return frozenset(found)


def _values(events: Iterator[Event], whole: bool) -> Iterator[object]:
    for event, value in events:
        if event == "start_array":
            yield from _array(events)
        elif event == "start_map" and whole:
            yield _built(event, value, events)
        elif event == "start_map":
            yield from _map(events)
        else:
            yield value


def _array(events: Iterator[Event]) -> Iterator[object]:
    for event, value in events:
        if event == "end_array":
            return
        yield _built(event, value, events)


def _map(events: Iterator[Event]) -> Iterator[object]:
    """The list under a known key; without one, the object itself is the sample."""
    row: dict[str, object] = {}
    wraps = False
    for event, key in events:
        if event == "end_map":
            break
        event, value = next(events)
        if key in _LISTS and event == "start_array" and not names_a_sample(row):
            wraps = True
            yield from _array(events)
        else:
            row[key] = _built(event, value, events)
    if wraps:
        return
    inner = next(iter(row.values())) if len(row) == 1 and not row.keys().isdisjoint(_LISTS) else None
    yield inner if isinstance(inner, dict) else row


def wraps_samples(document: object) -> bool:
    """Whether a whole document is an object that holds its samples in a list."""
    if not isinstance(document, dict) or names_a_sample(document):
        return False
    return any(isinstance(document.get(key), list) for key in _LISTS)


def _built(event: str, value: Any, events: Iterator[Event]) -> object:
    from ijson.common import ObjectBuilder

    builder = ObjectBuilder()
    builder.event(event, value)
    depth = int(event in _OPEN)
    while depth:
        event, value = next(events)
        builder.event(event, value)
        depth += (event in _OPEN) - (event in _CLOSE)
    built: object = builder.value
    return built


def _is_damaged(value: object) -> bool:
    rest = [value]
    while rest:
        part = rest.pop()
        if isinstance(part, str) and _DAMAGE in part:
            return True
        if isinstance(part, dict):
            rest += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            rest += part
    return False


class _Source:
    """Text as the UTF-8 bytes that the parser wants, without what it would stumble over."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._ahead = ""
        self.damaged = False

    def is_blank(self) -> bool:
        while not self._ahead:
            chunk = self._text.read(1 << 16)
            if not chunk:
                return True
            self._ahead = chunk.lstrip()
        return False

    def read(self, size: int) -> bytes:
        if not size:
            return b""
        more = self._text.read(size)
        chunk = self._ahead + more
        while more and not _uncut(chunk):
            more = self._text.read(size)
            chunk += more
        end = _uncut(chunk) if more else len(chunk)
        chunk, self._ahead = chunk[:end], chunk[end:]
        if "\\u" in chunk:
            chunk = _LONE_ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], chunk)
        chunk = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", chunk)
        try:
            return chunk.encode()
        except UnicodeEncodeError:
            self.damaged = True
            return _UNDECODED.sub(_DAMAGE, chunk).encode("utf-8", "replace")


def _uncut(chunk: str) -> int:
    """How much of a chunk can be used before an escape, or a pair of them, that may go on in the next one."""
    end = _escape_before(chunk, len(chunk))
    high = _escape_before(chunk, end)
    return high if _HIGH.fullmatch(chunk, high, end) else end


def _escape_before(chunk: str, end: int) -> int:
    """Where the escape that reaches to `end`, or could have, begins; `end` if there is none."""
    at = chunk.rfind("\\", max(end - _ESCAPE, 0), end)
    # After an even number of backslashes in a row the last one is itself escaped.
    escaped = (at + 1 - len(chunk[: at + 1].rstrip("\\"))) % 2 == 0
    return end if at < 0 or escaped else at
