"""Lists and objects that stand in a text: JSON, the seeds' Python literals, numpy's printed arrays."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings

# Longer text is hardly a Python literal, and a syntax tree costs many times its source.
_LITERAL_LIMIT = 1_000_000
_GLUE = re.compile(r'"\s*,\s*"')
_NO_COMMA = re.compile(r"""['"]\s*['"]""")
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
    starts = [0]
    for line in io.StringIO(source):
        starts.append(starts[-1] + len(line))
    ends: list[int] = []
    last: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NL:
            continue
        if token.type == tokenize.STRING and last is not None and last.type == tokenize.STRING:
            row, column = last.end
            ends.append(starts[row - 1] + column)
        last = token
    pieces = [source[start:end] for start, end in zip([0, *ends], [*ends, len(source)], strict=True)]
    return ",".join(pieces)
