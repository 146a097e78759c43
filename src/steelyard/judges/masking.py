"""Which parts of an endpoint's settings are secret, and texts without them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

HIDDEN = "hidden"
MASK = "***"
# What a query may hold that is no secret and shapes the answers; of all else only the name is shown.
PLAIN_QUERY = ("api-version",)
# Headers that people add and that say nothing secret.
PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent", "http-referer", "x-title"})
SECRET_WORDS = frozenset(
    "key apikey accesskey token secret password passwd pwd passphrase auth authorization bearer credential credentials "
    "cookie signature".split()
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# sk-…, or a run of letters and digits that no word and no version has.
KEY_LIKE = re.compile(r"^sk-.{8}|(?<![A-Za-z0-9])(?=[A-Za-z]*+\d)(?=\d*+[A-Za-z])[A-Za-z0-9]{16,}")
# A short secret may be a common word: it is masked only where it stands by itself, and never in a judge's reply.
LONG = 8
SHORTEST = 3
# Words and small numbers: a region, a project, a passphrase.
ORDINARY = re.compile(r"(?:[A-Za-z]+|\d{1,4})(?:[-_ ./:,;]+(?:[A-Za-z]+|\d{1,4}))*")


class Mask:
    """Texts without an endpoint's secrets: `mask(text)` for messages, `mask.reply(text)` for what a judge says.

    What looks like a secret is masked in both, as is the key. A header such as `X-Region: cn-hangzhou` is masked in
    messages only: a judge may quote the same words from an answer, and a changed quote would change a score.
    """

    def __init__(self, secrets: Iterable[str], key: str = "") -> None:
        keys = set(_forms(key))
        forms = {form for secret in secrets for form in _forms(secret)} | keys
        # The longest first: one may hold another.
        ordered = sorted((form for form in forms if len(form) >= SHORTEST), key=lambda form: (-len(form), form))
        self._long = [form for form in ordered if len(form) >= LONG]
        self._certain = [form for form in self._long if form in keys or not ORDINARY.fullmatch(form)]
        short = "|".join(re.escape(form) for form in ordered if len(form) < LONG)
        self._short = re.compile(rf"(?<!\w)(?:{short})(?!\w)") if short else None

    def __call__(self, text: str) -> str:
        text = _without(text, self._long)
        return self._short.sub(MASK, text) if self._short else text

    def reply(self, text: str) -> str:
        return _without(text, self._certain)


def _without(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as URLs and JSON write it."""
    secret = secret.strip()
    scheme, space, token = secret.partition(" ")
    if space and scheme.isalpha():
        yield from _forms(token)
    yield secret
    yield quote(secret, safe="")
    yield secret.replace("/", "\\/")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name is a secret: `apiKey` and `x-access-token` are, `max_tokens` is not."""
    return any(word.lower() in SECRET_WORDS for word in WORD.findall(name))


def header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    yield from (value for name, value in headers.items() if name.lower() not in PLAIN_HEADERS)


def url_secrets(url: str) -> Iterator[str]:
    """What a URL gives away: its password, the values of its query, a key in its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        yield from {password, unquote(password)} if colon else {user, unquote(user)}
        # As a proxy is told it.
        yield base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    yield from (value for name, value in parse_qsl(parts.query) if name not in PLAIN_QUERY)
    yield from (part for part in parts.path.split("/") if KEY_LIKE.search(part))


def shown_url(url: str) -> str:
    """A URL as manifests, reports and pages may say it: people put keys into it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    _, at, host = parts.netloc.rpartition("@")
    query = [(name, value if name in PLAIN_QUERY else HIDDEN) for name, value in parse_qsl(parts.query, True)]
    path = "/".join(HIDDEN if KEY_LIKE.search(part) else part for part in parts.path.split("/"))
    return urlunsplit((parts.scheme, f"{HIDDEN}@{host}" if at else host, path, urlencode(query), ""))


def body_secrets(body: Any, *, is_secret: bool = False) -> Iterator[str]:
    """The texts in a request's parameters whose names say that they are secret."""
    if isinstance(body, Mapping):
        for name, value in body.items():
            yield from body_secrets(value, is_secret=is_secret or is_secret_name(str(name)))
    elif isinstance(body, list | tuple):
        for value in body:
            yield from body_secrets(value, is_secret=is_secret)
    elif is_secret and isinstance(body, str):
        yield body


def shown_body(body: Any, *, is_secret: bool = False) -> Any:
    """A request's parameters as a manifest may hold them."""
    if isinstance(body, Mapping):
        return {
            name: shown_body(value, is_secret=is_secret or is_secret_name(str(name))) for name, value in body.items()
        }
    if isinstance(body, list | tuple):
        return [shown_body(value, is_secret=is_secret) for value in body]
    return HIDDEN if is_secret and isinstance(body, str) else body
