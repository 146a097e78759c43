"""Which parts of an endpoint's settings are secret, and texts without them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from html.entities import html5
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

HIDDEN = "hidden"
MASK = "***"
# What a query may hold that is no secret and shapes the answers; of all else only the name is shown.
PLAIN_QUERY = ("api-version",)
# Headers that people add and that say nothing secret.
PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent", "http-referer", "x-title"})
# Anywhere in a name, for nobody agrees where its words end: appkey, accesstoken, user_pass.
SECRET_PARTS = (
    "key", "token", "secret", "pass", "pwd", "auth", "bearer", "credential", "cookie", "signature", "jwt", "session",
    "密钥", "密鑰", "密码", "密碼", "口令", "令牌",
)  # fmt: skip
SECRET_WORDS = frozenset({"sk", "ak", "pw", "sig"})
PLAIN_WORD = re.compile(
    r"keywords?|monkeys?|keyframes?|passages?|bypass|authors?|tokeni[sz]\w*|(?:max|min)(?:new|output|completion)?tokens"
)
# Beside one of these, tokens are those of a text.
COUNTED = frozenset(
    "max min new completion prompt budget thinking reasoning special output input total num bad stop skip "
    "eos bos pad ids count limit".split()
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
# sk-…; a UUID; runs of letters and digits that no word and no version has.
KEY_LIKE = re.compile(
    r"^sk-.{8}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?<![A-Za-z0-9])(?=[A-Za-z]*+\d)(?=\d*+[A-Za-z])[A-Za-z0-9]{16,}"
    r"|(?<![A-Za-z0-9])(?:[A-Za-z0-9]{24,}|\d{16,})"
    r"|(?<![A-Za-z0-9])(?=[A-Za-z0-9]{9})\d*+(?:[A-Za-z]++\d++){2}"
)
PLAIN_RUN = re.compile("[A-Za-z0-9]+")
# A short secret may be a common word: it is masked only where it stands by itself, and in a judge's reply only if it is
# the key or has a secret's name.
LONG = 8
SHORTEST = 3
SHORTEST_IN_REPLIES = 4
# What people set for servers that want some key but look at none.
NO_KEYS = frozenset({"empty", "none", "null", "test", "dummy", "local", "ollama", "anything", "token", "nokey"})
# Words and small numbers: a region, a project, a passphrase.
ORDINARY = re.compile(r"(?:[A-Za-z]+|\d{1,4})(?:[-_ ./:,;]+(?:[A-Za-z]+|\d{1,4}))*")


class Mask:
    """Texts without an endpoint's secrets: `mask(text)` for messages, `mask.reply(text)` for what a judge says.

    What looks like a secret is masked in both, as are the key and what is `certain`. A header such as
    `X-Region: cn-hangzhou` is masked in messages only: a judge may quote the same words from an answer, and a changed
    quote would change a score.
    """

    def __init__(self, secrets: Iterable[str], key: str = "", certain: Iterable[str] = ()) -> None:
        sure = {form for secret in (key, *certain) for form in _forms(secret)}
        forms = {form for secret in secrets for form in _forms(secret)} | sure
        # The longest first: one may hold another.
        ordered = sorted((form for form in forms if len(form) >= SHORTEST), key=lambda form: (-len(form), form))
        self._everywhere = [_Spellings(form) for form in ordered]
        self._certain = [
            spellings
            for form, spellings in zip(ordered, self._everywhere, strict=True)
            if (form in sure and len(form) >= SHORTEST_IN_REPLIES and form.lower() not in NO_KEYS)
            or (len(form) >= LONG and not ORDINARY.fullmatch(form))
        ]

    def __call__(self, text: str) -> str:
        return _without(text, self._everywhere)

    def reply(self, text: str) -> str:
        return _without(text, self._certain)

    def may_be_in(self, text: str) -> bool:
        """Whether `reply` might change a text that is part of this one; false says that it certainly would not."""
        return any(secret.part in text for secret in self._certain)


class _Spellings:
    """A secret, with each of its signs as it is or as URLs, JSON and HTML write it."""

    def __init__(self, secret: str) -> None:
        self._pattern = re.compile(_spelled(secret))
        # Letters and digits are spelled in one way: a text without this part of the secret does not hold it.
        self.part = max(PLAIN_RUN.findall(secret), key=len, default="")

    def masked(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self.part in text else text


def _spelled(secret: str) -> str:
    spelled = "".join(char if char.isascii() and char.isalnum() else _sign(char) for char in secret)
    return spelled if len(secret) >= LONG else rf"(?<!\w){spelled}(?!\w)"


def _sign(char: str) -> str:
    utf16 = char.encode("utf-16-be").hex()
    spellings = [
        "".join(f"%{byte:02x}" for byte in char.encode()),
        "".join(f"%25{byte:02x}" for byte in char.encode()),
        "".join(rf"\\u{utf16[at : at + 4]}" for at in range(0, len(utf16), 4)),
        f"&#0{{0,4}}{ord(char)};",
        f"&#x0{{0,4}}{ord(char):x};",
        *(f"&{name}" for name, meant in html5.items() if meant == char and name.endswith(";")),
    ]
    plus = r"|\+" if char == " " else ""
    return rf"(?:\\?{re.escape(char)}{plus}|(?i:{'|'.join(spellings)}))"


def _without(text: str, secrets: Iterable[_Spellings]) -> str:
    for secret in secrets:
        text = secret.masked(text)
    return text


def _forms(secret: str) -> Iterator[str]:
    """A secret, and what follows a scheme such as Bearer."""
    secret = secret.encode("utf-8", "replace").decode().strip()
    scheme, space, token = secret.partition(" ")
    if space and scheme.isalpha():
        yield from _forms(token)
    yield secret


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name is a secret: `apikey` and `x-access-token` are, `max_tokens` is not."""
    words = [word.lower() for word in WORD.findall(name)]
    if not SECRET_WORDS.isdisjoint(words):
        return True
    counts = not COUNTED.isdisjoint(words)
    telling = "".join(
        word for word in words if not PLAIN_WORD.fullmatch(word) and not (counts and word in ("token", "tokens"))
    )
    return any(part in telling for part in SECRET_PARTS)


def header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    yield from (value for name, value in headers.items() if name.lower() not in PLAIN_HEADERS)


def named_secrets(headers: Mapping[str, str], body: Any) -> Iterator[str]:
    """What its name says to be secret, however ordinary it looks."""
    yield from (value for name, value in headers.items() if is_secret_name(name))
    yield from body_secrets(body)


def url_secrets(url: str) -> Iterator[str]:
    """What a URL gives away: its password, the values of its query, a key in its path; as written and as meant."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        yield from {password, unquote(password)} if colon else {user, unquote(user)}
        # As a proxy is told it.
        yield base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    for name, value in _query(parts.query):
        if name not in PLAIN_QUERY:
            yield from {value, unquote(value), unquote_plus(value)}
    for part in parts.path.split("/"):
        if KEY_LIKE.search(unquote(part)):
            yield from {part, unquote(part)}


def _query(query: str) -> Iterator[tuple[str, str]]:
    """The names and values of a query as they are written; a value alone has no name."""
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        yield (name, value) if equals else ("", part)


def shown_url(url: str) -> str:
    """A URL as manifests, reports and pages may say it: people put keys into it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    _, at, host = parts.netloc.rpartition("@")
    shown = ((name, value if name in PLAIN_QUERY else HIDDEN) for name, value in _query(parts.query))
    query = "&".join(f"{name}={value}" if name else value for name, value in shown)
    path = "/".join(HIDDEN if KEY_LIKE.search(unquote(part)) else part for part in parts.path.split("/"))
    return urlunsplit((parts.scheme, f"{HIDDEN}@{host}" if at else host, path, query, ""))


def body_secrets(body: Any, *, is_secret: bool = False) -> Iterator[str]:
    """The texts and numbers in a request's parameters whose names say that they are secret."""
    if isinstance(body, Mapping):
        for name, value in body.items():
            yield from body_secrets(value, is_secret=is_secret or is_secret_name(str(name)))
    elif isinstance(body, list | tuple):
        for value in body:
            yield from body_secrets(value, is_secret=is_secret)
    elif is_secret and isinstance(body, str | int | float) and not isinstance(body, bool):
        yield str(body)


def shown_body(body: Any, *, is_secret: bool = False) -> Any:
    """A request's parameters as a manifest may hold them."""
    if isinstance(body, Mapping):
        return {
            name: shown_body(value, is_secret=is_secret or is_secret_name(str(name))) for name, value in body.items()
        }
    if isinstance(body, list | tuple):
        return [shown_body(value, is_secret=is_secret) for value in body]
    return HIDDEN if is_secret and body is not None else body
