"""The settings of an endpoint: address, model, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from steelyard.errors import ConfigError
from steelyard.judges.masking import body_secrets, header_secrets, named_secrets, shown_body, shown_url, url_secrets
from steelyard.judges.providers import Provider, WireForm, known_provider, providers
from steelyard.records import Record, Usage

Structured = Literal["auto", "json_schema", "json_object", "tool", "text"]

# Steelyard sets these itself; a second opinion in the user's body would contradict it.
RESERVED: Mapping[WireForm, frozenset[str]] = {
    "chat": frozenset({"messages", "model", "n", "response_format", "stream", "stream_options"}),
    "messages": frozenset({"messages", "model", "stream", "system", "tool_choice", "tools"}),
    "generate": frozenset({"contents", "systemInstruction", "toolConfig", "tools"}),
    "converse": frozenset({"messages", "outputConfig", "system", "toolConfig"}),
    "ollama": frozenset({"format", "messages", "model", "stream", "tools"}),
}
# What people paste along with the address.
ENDINGS = ("/chat/completions", "/v1/messages", "/api/chat")
MILLION = 1_000_000


class Price(Record):
    """US dollars for a million tokens. Prompt tokens that are read from the provider's cache (`cached`) or written
    to it (`written`) cost as much as others unless said otherwise."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    written: float | None = Field(default=None, ge=0)

    def of(self, usage: Usage, written: int = 0) -> float:
        """What these tokens cost; `written` of the prompt's went into the cache."""
        read_at = self.prompt if self.cached is None else self.cached
        written_at = self.prompt if self.written is None else self.written
        fresh = usage.prompt_tokens - usage.cached_tokens - written
        prompt = fresh * self.prompt + usage.cached_tokens * read_at + written * written_at
        return (prompt + usage.completion_tokens * self.completion) / MILLION


class Endpoint(Record):
    """An endpoint of a provider (`providers.toml`). Holds the name of the key's variable, never the key.

    `timeout` bounds one HTTP call, from connecting to the last byte; waiting for a free slot is not
    counted. `retries` come on top of the first try; `backoff` is the longest first pause between two, in
    seconds, and doubles. `patience` is how long one call waits where the endpoint asks for it (Retry-After), in
    seconds; what it asks for beyond stops the run. `corrections` are further asks after a reply that cannot be used.
    `logprobs` asks for the probabilities of tokens, which become the confidence of labels.
    """

    # A refused address may hold a password; pydantic would quote it.
    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = "openai"
    provider: str = "openai"
    base_url: str
    model: str = Field(min_length=1)
    key_env: str | None = None
    # Not shown: people put tokens into headers.
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    body: Mapping[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=4, ge=0)
    corrections: int = Field(default=3, ge=0)
    backoff: float = Field(default=1.0, ge=0)
    patience: float = Field(default=300.0, ge=0)
    structured: Structured = "auto"
    logprobs: bool = False
    proxy: str | None = Field(default=None, repr=False)
    price: Price | None = None

    @field_validator("provider")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            return known_provider(name).name
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("base_url")
    @classmethod
    def _bare_url(cls, url: str) -> str:
        if "@" in url:
            # Anywhere: a password with a slash in it ends up in the path.
            raise ValueError("must not hold a password; name the key's variable in key_env (and write @ as %40)")
        parts = _http_url(url)
        if parts is None:
            raise ValueError("must be an http(s) URL such as https://api.openai.com/v1")
        path = parts.path.rstrip("/")
        for ending in ENDINGS:
            path = path.removesuffix(ending).rstrip("/")
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    @field_validator("proxy")
    @classmethod
    def _proxy_url(cls, url: str | None) -> str | None:
        parts = _http_url(url or "")
        if url and (parts is None or parts.path not in ("", "/") or parts.query or parts.fragment or "#" in url):
            raise ValueError(
                "must be a URL such as http://user:password@host:3128; special characters in the password must be "
                "percent-encoded (/ is %2F, # is %23, ? is %3F, @ is %40, [ is %5B)"
            )
        return url or None

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in headers.items():
            if not is_header_text(name) or not is_header_text(value):
                raise ValueError(f"header {name!r} holds characters that HTTP does not carry")
        return headers

    @field_validator("body")
    @classmethod
    def _free_of_reserved(cls, body: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        provider = providers().get(info.data.get("provider", ""))
        if provider and (taken := sorted(RESERVED[provider.wire] & body.keys())):
            raise ValueError(f"{', '.join(taken)}: set by Steelyard itself; leave it out")
        return body

    @model_validator(mode="after")
    def _has_mode(self) -> Self:
        modes = {*self.row.structured, *(("json_schema", "json_object", "text") if self.row.wire == "chat" else ())}
        if self.structured != "auto" and self.structured not in modes:
            raise ValueError(f"structured: {self.provider} has {', '.join(sorted(modes))}, not {self.structured}")
        return self

    @property
    def row(self) -> Provider:
        """What the table says of its provider."""
        return known_provider(self.provider)

    def at(self, path: str) -> str:
        """An address below this one; a query such as Azure's api-version stays at the end."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(path=f"{parts.path}{path}"))

    @property
    def shown_url(self) -> str:
        """The address as manifests, reports and pages may say it."""
        return shown_url(self.base_url)

    @property
    def shown_body(self) -> dict[str, Any]:
        """The parameters as a manifest may hold them."""
        return dict(shown_body(self.body))

    def secrets(self) -> set[str]:
        """The secrets in these settings, except the key."""
        proxy = url_secrets(self.proxy) if self.proxy else ()
        return {*header_secrets(self.headers), *url_secrets(self.base_url), *proxy, *body_secrets(self.body)}

    def certain_secrets(self) -> set[str]:
        """Those that are masked in a judge's replies even if they look like ordinary words."""
        return set(named_secrets(self.headers, self.body))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        shown = {"base_url": self.shown_url, "body": self.shown_body}
        yield from ((name, shown.get(name or "", value)) for name, value in super().__repr_args__())


def _http_url(url: str) -> SplitResult | None:
    """The parts of an address that HTTP can be spoken to; the errors of the parser would quote it."""
    try:
        parts = urlsplit(url.strip())
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_sound else None


def is_header_text(text: str) -> bool:
    """Printable ASCII: what every server and proxy passes on unchanged."""
    return text.isascii() and text.isprintable()
