"""Rows of an Excel workbook: one sheet, its first row the header, cells as the text that a reader of the sheet sees."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from steelyard.errors import InputError, Surface
from steelyard.samples.files import Place, Rows, same_names
from steelyard.samples.values import date as date_text

_PERCENT = re.compile(r"0(?:\.(0+))?%")
# What a spreadsheet shows of a number; further digits are an artefact of binary fractions.
_DIGITS: Final = 15


def sheet_rows(file: str, sheet: str, on_note: Callable[[str], None], surface: Surface) -> Rows:
    """The rows of the named sheet, else of the first visible one; formulas give the values that were saved."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    # Two looks at the same cells: what was saved for them, and which of them are formulas.
    try:
        with warnings.catch_warnings():
            # Styles and rules that openpyxl does not know concern no cell's value.
            warnings.simplefilter("ignore")
            saved = openpyxl.load_workbook(file, read_only=True, data_only=True)
            written = openpyxl.load_workbook(file, read_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError) as error:
        problem = "is not an .xlsx file that can be read; one with a password has to be saved without it"
        yield Place(file, 0, "line"), InputError(f"{problem} ({type(error).__name__})", file=file)
        return
    try:
        names = [each.title for each in saved.worksheets if each.sheet_state == "visible"]
        if sheet and sheet not in saved.sheetnames:
            yield Place(file, 0, "line"), InputError(f"has no sheet {sheet!r}; it has {', '.join(names)}", file=file)
            return
        if not names and not sheet:
            yield Place(file, 0, "line"), InputError("has no visible sheet", file=file)
            return
        chosen = sheet or names[0]
        if len(names) > 1 and not sheet:
            other = surface.setting("format", f"xlsx:{names[1]}")
            on_note(f"{file}: the sheet {chosen!r} is read, the first of {len(names)}; another one: {other}")
        # Some programs write a wrong size into a sheet, and what is beyond it would not be read.
        for book in (saved, written):
            book[chosen].reset_dimensions()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from _rows(file, saved[chosen].iter_rows(), written[chosen].iter_rows())
    finally:
        saved.close()
        written.close()


def _rows(file: str, saved: Iterator[Sequence[Any]], written: Iterator[Sequence[Any]]) -> Rows:
    header: list[str] | None = None
    for number, (cells, sources) in enumerate(zip(saved, written, strict=False), 1):
        place = Place(file, number, "row")
        try:
            texts = [_text(cell, source) for cell, source in zip(cells, sources, strict=False)]
        except ValueError as error:
            yield place, place.error(str(error))
            continue
        if not any(text.strip() for text in texts):
            continue
        if header is None:
            header = [text.strip() for text in texts]
            if twice := same_names(header):
                yield place, place.error(twice)
                return
            continue
        if any(texts[len(header) :]):
            yield place, place.error(f"{len(texts)} cells under {len(header)} columns")
            continue
        row = dict.fromkeys(header, "") | dict(zip(header, texts, strict=False))
        row.pop("", None)
        yield place, row


def _text(cell: Any, source: Any) -> str:
    """A cell as text. ValueError where there is none to read."""
    from openpyxl.utils.escape import unescape

    value = cell.value
    if value is None:
        if getattr(source, "data_type", "") == "f" and source.value is not None:
            raise ValueError(f"{source.coordinate} is a formula that was never calculated; open the file and save it")
        return ""
    if cell.data_type == "e":
        raise ValueError(f"{cell.coordinate} holds the error {value}")
    match value:
        case str():
            return str(unescape(value))
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return _number(value, str(cell.number_format or ""))
        case datetime.datetime() | datetime.date():
            return date_text(value, "")
    return value.isoformat() if isinstance(value, datetime.time) else str(value)


def _number(value: float, form: str) -> str:
    if percent := _PERCENT.search(form):
        return f"{value * 100:.{len(percent[1] or '')}f}%"
    return str(int(value)) if float(value).is_integer() else f"{value:.{_DIGITS}g}"
