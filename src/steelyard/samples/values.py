"""Values as people write them, turned to text: passages, lists of lines, tags, dates. Text stays verbatim."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from steelyard.errors import InputError
from steelyard.samples.literals import parsed, unglued

_PASSAGE_KEYS = ("text", "content", "page_content", "passage", "context")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG_COMMA = re.compile("[,，]")


def plain(value: object) -> object:
    """Numpy, pandas and pyarrow values as Python ones; every kind of 'not a value' as None."""
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return _decoded(value)
    # NaN and NaT differ from themselves; pandas' NA refuses to be compared.
    if type(value).__name__ == "NAType":
        return None
    if isinstance(value, float | Decimal | datetime.date) and value != value:
        return None
    return value


def _decoded(value: bytes) -> str | bytes:
    """Parquet files of some writers hold text as bytes."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def kind_of(value: object) -> str:
    """What a user would call this value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return "a number"
        case str():
            return "text"
        case bytes():
            return "bytes that are not UTF-8"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"


def is_blank(value: object) -> bool:
    """Whether a value says nothing: null or empty text, as in an empty cell."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_encodable(value: str) -> bool:
    """Whether a text is free of lone surrogates. Encoding it is many times faster than searching it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def text(value: object, field: str) -> str:
    """Text, verbatim but for lone surrogates, which no file, socket or database takes."""
    if not isinstance(value, str):
        raise InputError(f"expected text, got {kind_of(value)}", field=field)
    return value if is_encodable(value) else _SURROGATE.sub("\ufffd", value)


def scalar(value: object, field: str) -> str:
    """Text or a number, as text. A whole float is an integer that went through a spreadsheet."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return text(value, field)
    # As a Decimal, 1e999999999 would be a whole number of a billion digits.
    number = value if isinstance(value, int) else float(value)
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def date(value: object, field: str) -> str:
    """A date as text; a moment at midnight is a date that went through a table."""
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, datetime.date) else text(value, field)


def passages(value: object, field: str) -> tuple[str, ...]:
    """Passages from a list, nested lists, objects with text, one text, or a list written as text."""
    found: tuple[str, ...] = ()
    if not isinstance(value, str):
        found = tuple(_flat(value, field))
    elif value.strip():
        try:
            found = tuple(_flat(_listed(value), field))
        except (ValueError, RecursionError, InputError):
            found = (text(value, field),)
    return tuple(passage for passage in found if passage.strip())


def lines(value: object, field: str) -> tuple[str, ...]:
    """A list of texts, a list written as text, or text with one per line. Blank ones are dropped."""
    if isinstance(value, str):
        try:
            return lines(_listed(value), field)
        except (ValueError, InputError):
            value = [line.strip() for line in value.split("\n")]
    if not isinstance(value, list):
        raise InputError(f"expected a list of texts, got {kind_of(value)}", field=field)
    found = (text(line, f"{field}[{index}]") for index, line in enumerate(value) if line is not None)
    return tuple(line for line in found if line.strip())


def joined(value: object, field: str) -> str:
    """One text; several, as older ragas files have them, on lines of their own."""
    return "\n".join(lines(value, field)) if isinstance(value, list) else text(value, field)


def tags(value: object, field: str) -> tuple[str, ...]:
    """A list, `a, b`, a list or object written as text, or an object, whose entries become `key:value`."""
    if isinstance(value, str):
        source = value
        try:
            value = parsed(source)
        except ValueError:
            value = _TAG_COMMA.split(source)
    found = (tag.strip() for tag in _tags(value, field, ""))
    return tuple(dict.fromkeys(tag for tag in found if tag))


def structured(value: object, field: str) -> list[object]:
    """A list, or a list written as text, as the cells of a CSV hold it."""
    if isinstance(value, str):
        try:
            return _listed(value)
        except ValueError:
            raise InputError("expected a list, got text that is not JSON", field=field) from None
    if not isinstance(value, list):
        raise InputError(f"expected a list, got {kind_of(value)}", field=field)
    return value


def _listed(source: str) -> list[object]:
    value = parsed(source)
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value


def _flat(value: object, field: str) -> Iterator[str]:
    if isinstance(value, str):
        for part in unglued(value):
            yield text(part, field)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            if part is not None:
                yield from _flat(part, f"{field}[{index}]")
    elif isinstance(value, Mapping):
        key = next((key for key in _PASSAGE_KEYS if value.get(key) is not None), None)
        if key is None:
            raise InputError(f"an object needs one of {', '.join(_PASSAGE_KEYS)}", field=field)
        yield text(value[key], f"{field}.{key}")
    else:
        raise InputError(f"expected text or a list of texts, got {kind_of(value)}", field=field)


def _tags(value: object, field: str, prefix: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _tags(part, f"{field}.{key}", f"{prefix}{text(key, field)}:")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _tags(part, f"{field}[{index}]", prefix)
    elif isinstance(value, bool):
        yield f"{prefix}{kind_of(value)}"
    elif not is_blank(value):
        yield f"{prefix}{scalar(value, field)}"
