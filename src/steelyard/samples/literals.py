"""Lists and objects that stand in a text: JSON, the seeds' Python literals, numpy's printed arrays."""

from __future__ import annotations

import ast
import json
import re
import warnings

# Longer text is hardly a Python literal, and a syntax tree costs many times its source.
_LITERAL_LIMIT = 1_000_000
_GLUE = re.compile(r'"\s*,\s*"')
_NO_COMMA = re.compile(r"""['"]\s*['"]""")
# A string, which goes on to the end where it is never closed; or what stands between strings.
_PIECE = re.compile(
    r"""('{3}(?:[^'\\]++|\\.|'{1,2}(?!'))*+(?:'{3}|[\\']{0,2}\Z)|"{3}(?:[^"\\]++|\\.|"{1,2}(?!"))*+(?:"{3}|[\\"]{0,2}\Z)"""
    r"""|'(?:[^'\\]++|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|[^'"]++""",
    re.DOTALL,
)
_PREFIXES = frozenset(("", "b", "r", "u", "br", "rb"))
_UNPARSABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


def parsed(source: str) -> object:
    """The list or object that this text is. ValueError if it is neither; nothing is ever evaluated."""
    source = source.strip()
    if source[:1] + source[-1:] not in ("[]", "{}"):
        raise ValueError("neither a list nor an object")
    try:
        return json.loads(source, strict=False)
    except (ValueError, RecursionError):
        pass
    if len(source) > _LITERAL_LIMIT:
        raise ValueError("too long for a Python literal")
    try:
        with warnings.catch_warnings():
            # A stray backslash in a passage is no concern of the user's.
            warnings.simplefilter("ignore")
            return ast.literal_eval(_with_commas(source))
    except _UNPARSABLE as error:
        raise ValueError("neither JSON nor a Python literal") from error


def unglued(passage: str) -> list[str]:
    """The parts of `a","b`, which is what a list escaped twice leaves of its passages.

    Text that merely quotes a list (`say "a","b"`) has its outer quotes and does not parse this way.
    """
    if not _GLUE.search(passage):
        return [passage]
    try:
        parts = json.loads(f'["{passage}"]', strict=False)
    except (ValueError, RecursionError):
        return [passage]
    return parts if all(isinstance(part, str) for part in parts) else [passage]


def _with_commas(source: str) -> str:
    """Numpy prints `['a' 'b']`, which Python would read as the one string `ab`."""
    if not _NO_COMMA.search(source):
        return source
    pieces: list[str] = []
    between: str | None = None  # what stands after the last string, where there was one
    for match in _PIECE.finditer(source):
        if match[1] is None:
            between = None if between is None else match[0]
            pieces.append(match[0])
            continue
        if between is not None and between.strip().lower() in _PREFIXES:
            pieces.insert(len(pieces) - bool(between), ",")
        between = ""
        pieces.append(match[0])
    return "".join(pieces)
