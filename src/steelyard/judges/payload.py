"""What an endpoint sends, made safe where it arrives: valid Unicode, bounded text, counts that are counts."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MOST_BYTES = 32 * 2**20
# Each object or list takes up to thirty times the space of its two characters; no completion has as many.
MOST_PARTS = 200_000
# No completion is nested deeper; what lies below is read by nobody.
DEEPEST = 50
LONGEST_NUMBER = 300
# A call of more tokens than this was miscounted.
MOST_TOKENS = 10**9
DETAIL_LENGTH = 300
# Never past the next opening: or each of ten thousand would be looked for up to the end.
MARKUP = re.compile(
    r"<(?:script|style)\b(?:(?!<(?:script|style)\b).)*?</(?:script|style)>|<[^<>]*>", re.IGNORECASE | re.DOTALL
)
# Terminals obey some of these, and others turn the direction of a line.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
GZIP, ZLIB, RAW_DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
GZIP_NAMES, GZIP_MAGIC = ("gzip", "x-gzip"), b"\x1f"
MOST_MEMBERS = 1000
ACCEPTED_ENCODINGS = "gzip, deflate"
SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


class AnswerBody(NamedTuple):
    """The bytes of an answer, unpacked. `is_whole` is false where it is longer than what is read."""

    content: bytes
    is_whole: bool = True


class BrokenBody(ValueError):
    """What was sent is not what its headers say."""


def unpacked(body: AnswerBody, encoding: str, most: int = MOST_BYTES) -> AnswerBody:
    """The bytes of an answer that was sent packed, up to a limit."""
    unpacker = None
    content, rest, members = bytearray(), body.content, 0
    while rest:
        if unpacker is None or unpacker.eof:
            if unpacker and not (encoding in GZIP_NAMES and rest.startswith(GZIP_MAGIC)):
                break  # padding after the end
            unpacker, members = _unpacker(encoding, rest), members + 1
            if members > MOST_MEMBERS:
                raise BrokenBody(f"the {encoding} body has more than {MOST_MEMBERS} members")
        try:
            content += unpacker.decompress(rest, most + 1 - len(content))
        except zlib.error as error:
            raise BrokenBody(f"the body is not {encoding}: {error}") from None
        if len(content) > most:
            return AnswerBody(bytes(content[:most]), is_whole=False)
        rest = unpacker.unused_data
    if unpacker and not unpacker.eof:
        if not body.is_whole:
            return AnswerBody(bytes(content), is_whole=False)
        raise BrokenBody(f"the {encoding} body breaks off")
    return AnswerBody(bytes(content))


def _unpacker(encoding: str, beginning: bytes) -> Any:
    if encoding in GZIP_NAMES:
        return zlib.decompressobj(GZIP)
    if encoding == "deflate":
        # Some servers leave the zlib header out.
        return zlib.decompressobj(ZLIB if beginning[0] & 0x0F == 8 else RAW_DEFLATE)
    raise BrokenBody(f"the body is packed as {one_line(encoding, 40)!r}, which was not asked for")


def parse_json(content: bytes | str) -> Any:
    """JSON as it is found in the wild; raises `ValueError` for anything else.

    Bytes that are no text, NaN and numbers of a thousand digits spoil themselves, not the reply they stand in.
    """
    if isinstance(content, bytes):
        content = decoded(content)
    try:
        return _DECODER.decode(content.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def decoded(content: bytes) -> str:
    """The text of a JSON body; raises `ValueError` where parsing it would cost far too much."""
    if has_too_many_parts(content):
        raise ValueError("too many parts")
    return content.decode(json.detect_encoding(content), "replace")


def has_too_many_parts(content: bytes) -> bool:
    """Whether this JSON may cost far more memory than its length; known before it is parsed."""
    return sum(map(content.count, (b"[", b"{", b","))) > MOST_PARTS


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= LONGEST_NUMBER else None


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=lambda _: None)


def cleaned(value: Any, text: Callable[[str], str], depth: int = DEEPEST) -> Any:
    """The same JSON with every text, names too, made valid and passed through `text`."""
    if isinstance(value, str):
        return text(valid(value))
    if isinstance(value, dict):
        return {text(valid(name)): cleaned(part, text, depth - 1) for name, part in value.items()} if depth else None
    if isinstance(value, list):
        return [cleaned(part, text, depth - 1) for part in value] if depth else None
    return value


def is_shallow(value: Any, depth: int = DEEPEST) -> bool:
    """Whether nothing lies deeper than `cleaned` keeps."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return True
    return depth > 0 and all(is_shallow(part, depth - 1) for part in value)


def valid(text: str) -> str:
    """Text that can be written: half a surrogate pair, or a byte that no encoding explains, becomes a question mark."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def one_line(text: str, most: int = DETAIL_LENGTH) -> str:
    """A text for people to read in one line, without what a terminal would obey."""
    line = " ".join(CONTROL.sub(" ", valid(text)).split())
    return line if len(line) <= most else f"{line[:most]}…"


def readable(content: bytes) -> str:
    """What the beginning of a body that is not JSON says; not yet in one line, so that no secret is cut in two."""
    text = MARKUP.sub(" ", content[:20_000].decode("utf-8", "replace"))
    return text if one_line(text) else "(empty body)"


def token_count(value: Any) -> int:
    """A reported number of tokens; 0, which means unknown, for what can be none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 < value <= MOST_TOKENS else 0


def is_error(payload: Mapping[str, Any]) -> bool:
    """Whether a success is none: some gateways wrap an error in a 200, and MiniMax puts its own status beside."""
    return bool(_own_status(payload).get("status_code")) or ("error" in payload and "choices" not in payload)


def _own_status(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    status = payload.get("base_resp")
    return status if isinstance(status, dict) else {}


def error_code(payload: Mapping[str, Any]) -> int:
    """The status that an error in a success stands for."""
    error = payload.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    own = _own_status(payload).get("status_code")
    if isinstance(own, int) and 2000 <= own < 3000:
        return 400  # the request's fault
    return code if isinstance(code, int) and 400 <= code < 600 else 500


class ReportedError(NamedTuple):
    """What the server says was wrong: in words with a code, all codes it gives, and how long it asks to wait."""

    message: str
    codes: tuple[str, ...] = ()
    retry_after: float | None = None


def reported_error(payload: Mapping[str, Any] | None, error_type: str = "") -> ReportedError:
    """An error in whichever of the usual shapes it is told; `error_type` is what a header says of it (Amazon's)."""
    # A type of Amazon's may have an address behind it.
    typed = (error_type.partition(":")[0],) if error_type else ()
    if payload is None:
        return ReportedError("", typed)
    own = _own_status(payload)
    if own.get("status_code"):
        codes = (*typed, str(own["status_code"]))
        return ReportedError(_with_code(str(own.get("status_msg") or "no reason given"), codes), codes)
    error = payload.get("error")
    if not isinstance(error, dict):
        said = error or payload.get("message") or payload.get("detail") or payload
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        codes = (*typed, *_codes(payload))
        return ReportedError(_with_code(text, codes), codes)
    details = error.get("details")
    parts = [details] if isinstance(details, dict) else details if isinstance(details, list) else []
    further = [part for part in (*parts, error.get("innererror")) if isinstance(part, dict)]
    codes = (*_codes(error), *(code for part in further for code in _codes(part)))
    said = error.get("message") or json.dumps(error, ensure_ascii=False)
    delays = (part.get("retryDelay") for part in further)
    return ReportedError(_with_code(str(said), codes), codes, next((d for d in map(_seconds, delays) if d), None))


def _codes(error: Mapping[str, Any]) -> tuple[str, ...]:
    """Names for what went wrong; Google gives the HTTP status as a code, which says nothing new."""
    given = (error.get(name) for name in ("code", "type", "status", "error_code", "reason"))
    return tuple(
        str(code) for code in given if isinstance(code, str | int) and code and not (type(code) is int and code < 600)
    )


def _with_code(said: str, codes: tuple[str, ...]) -> str:
    return f"{said} [{codes[0]}]" if codes and codes[0] not in said else said


def _seconds(duration: Any) -> float | None:
    """Google's durations: `34.07s`."""
    found = SECONDS.fullmatch(duration) if isinstance(duration, str) else None
    return float(found[1]) if found else None
