"""Addresses of runs and samples. A sample's id is any text; its place in an address is one plain segment."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

# Ids of this form stand in an address as they are, percent-encoded; all others after a tilde, in base64.
PLAIN = re.compile(r"[^~/\\\x00-\x20.][^/\\\x00-\x1f\x7f]*", re.DOTALL)
# What an address may end in to ask for another form of the page.
FORMS = (".json", ".md", ".html", ".jsonl", ".csv")
LONGEST_PLAIN = 200


def run_address(run: str, *parts: str, **query: object) -> str:
    """The address of a run, or of something below it."""
    path = "/".join(("", "runs", quote(run, safe=""), *(quote(part, safe="") for part in parts)))
    return with_query(path, query)


def sample_address(run: str, sample: str, *parts: str, **query: object) -> str:
    """The address of a sample, or of something below it."""
    path = "/".join(("", "runs", quote(run, safe=""), "samples", segment_of(sample), *parts))
    return with_query(path, query)


def with_query(path: str, query: Mapping[str, object]) -> str:
    """The path with what is given of these parameters."""
    given = {name: value for name, value in query.items() if value not in (None, "", [], ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def segment_of(sample: str) -> str:
    """A sample's id as one segment of a path."""
    if PLAIN.fullmatch(sample) and not sample.endswith(FORMS) and len(sample) <= LONGEST_PLAIN:
        return quote(sample, safe="")
    encoded = base64.urlsafe_b64encode(sample.encode("utf-8", "surrogatepass")).decode()
    return "~" + encoded.rstrip("=")


def sample_of(segment: str) -> str:
    """The id that a (decoded) segment stands for; one that stands for none is taken as it is."""
    if not segment.startswith("~"):
        return segment
    padded = segment[1:] + "=" * (-len(segment[1:]) % 4)
    try:
        # Strictly: half a character is in no id, and SQLite cannot be asked for one.
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return segment


def as_file(name: str) -> str:
    """A Content-Disposition that keeps an answer under this name. Ids of runs from elsewhere may hold anything."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else "_" for one in name)
    return f'attachment; filename="{plain}"'
