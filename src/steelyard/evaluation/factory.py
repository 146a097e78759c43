"""From a judge's name to the judge. On the command line, in Python and in steelyard.toml it is one of

    mine                 a [judges.mine] table of steelyard.toml
    embedded             the judge in the box: a small network that reads, offline
    local[:MODEL|FILE]   a language model in this process, offline
    verifier:NAME|FOLDER an encoder that says what passages support, offline
    openai:MODEL         any OpenAI-compatible endpoint, from OPENAI_BASE_URL and OPENAI_API_KEY
    PROVIDER:MODEL       a provider of judges/providers.toml: deepseek, qwen, anthropic, gemini, ...
    recorded:FILE|RUN    replies of an earlier run
    NAME[:REST]          an entry point of the group steelyard.judges
    ONE+TWO+THREE        a panel of these
    ONE>TWO              ONE decides what it is sure of, TWO gets the rest

Whoever names none gets the endpoint whose key is in the environment, else `embedded`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from steelyard.errors import ConfigError, invalid_field
from steelyard.judges.base import Judge, JudgeLike, as_judge
from steelyard.judges.providers import Provider, providers
from steelyard.prompts import Prompts
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.judges.endpoint import Endpoint
    from steelyard.judges.limiter import Limiter
    from steelyard.judges.panel_settings import PanelSettings, RouteSettings
    from steelyard.judges.sigv4 import Signer
    from steelyard.store import StoreLocation

GROUP = "steelyard.judges"
OFFLINE = ("embedded", "local", "verifier")
DEFAULT_REGION = "us-east-1"


def built_in() -> list[str]:
    """Kinds of judges that come with the package."""
    return ["embedded", "local", "verifier:NAME", *(f"{name}:MODEL" for name in providers()), "recorded:FILE"]


def is_provider(name: str) -> bool:
    """Whether a judge is named by its provider, as `deepseek:deepseek-chat` is."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in providers()


def judge_names(settings: Settings) -> list[str]:
    """The judges that can be named as they are: the user's own and those of installed packages."""
    return [*settings.judges, *_installed_names()]


class JudgeFactory:
    """Makes the judges that these settings know, with these prompts. `limiter` limits their calls; `store` is where
    `recorded:RUN` looks for the run, if not where the settings say."""

    def __init__(
        self,
        settings: Settings,
        prompts: Prompts | None = None,
        limiter: Limiter | None = None,
        store: StoreLocation | None = None,
    ) -> None:
        self._settings, self._prompts, self._limiter = (
            settings,
            settings.prompts if prompts is None else prompts,
            limiter,
        )
        self._store, self._surface = store, settings.surface

    def judge(self, name: str | None, together: Mapping[str, Any] | None = None) -> Judge:
        """The judge a user named, or the one who judges when none is named. `together` is what flags say of how it is
        asked: repeats, escalate, verify, sure."""
        name = self._settings.choose(name).name
        sure = {part: value for part, value in (together or {}).items() if part == "sure"}
        together = {part: value for part, value in (together or {}).items() if part != "sure"}
        if not together and (route := self._route(name, sure)):
            return self._routed(route, sure)
        if sure and not self._is_route(name):
            raise ConfigError(f"{self._surface.judge(name)}: sure is for two judges in a row, FIRST>THEN")
        if panel := self._panel_settings(name, together):
            return panel.make(self._judge)
        return self._judge(name)

    def endpoint(self, name: str) -> Endpoint | None:
        """The endpoint of a judge; None for one that is not called over HTTP."""
        table = dict(self._settings.judges.get(name, {}))
        kind, _, model = name.partition(":")
        if not table and kind in providers() and not self._is_route(name):
            table = {"kind": kind, "model": model or None}
        provider = providers().get(str(table.pop("kind", "openai"))) if table else None
        return self._endpoint(name, provider, table) if provider else None

    def _is_route(self, name: str) -> bool:
        if name in self._settings.judges:
            return self._settings.judges[name].get("kind") == "routed"
        return ">" in name and not Path(name.removeprefix("recorded:")).exists()

    def _route(self, name: str, sure: Mapping[str, Any]) -> RouteSettings | None:
        """The settings of two judges in a row, where the name asks for them."""
        if not self._is_route(name):
            return None
        from steelyard.judges.panel_settings import RouteSettings

        table = dict(self._settings.judges.get(name, {}))
        where = f"{self._settings.source}: judges.{name}." if table else f"{self._surface.judge(name)}: "
        if not table:
            first, _, then = name.partition(">")
            table = {"first": first.strip(), "then": then.strip()}
        table.pop("kind", None)
        try:
            return RouteSettings.model_validate({**table, **sure})
        except ValidationError as error:
            raise ConfigError(f"{where}{invalid_field(error)}") from error

    def _routed(self, route: RouteSettings, sure: Mapping[str, Any]) -> Judge:
        def named(name: str) -> Judge:
            return self.judge(name, sure if self._is_route(name) else None)

        # A file that a flag names is looked for here, one of the settings beside them.
        return route.make(named, Path() if sure else self._settings.folder)

    def _panel_settings(self, name: str, together: Mapping[str, Any]) -> PanelSettings | None:
        """The settings of a panel, where the name or the flags ask for one."""
        from steelyard.judges.panel_settings import PanelSettings

        table = dict(self._settings.judges.get(name, {}))
        is_panel = "+" in name and name not in self._settings.judges
        if table.pop("kind", None) == "panel":
            where = f"{self._settings.source}: judges.{name}."
        elif is_panel and not Path(name.removeprefix("recorded:")).exists():
            where, table = f"{self._surface.judge(name)}: ", {"members": name.split("+")}
        elif together:
            where, table = f"{self._surface.judge(name)}: ", {"members": [name]}
        else:
            return None
        try:
            return PanelSettings.model_validate({**table, **together})
        except ValidationError as error:
            raise ConfigError(f"{where}{invalid_field(error)}") from error

    def _judge(self, name: str, temperature: float | None = None) -> Judge:
        """A judge that is named by itself; `temperature` is for one that would otherwise have none."""
        if name in self._settings.judges:
            if self._settings.judges[name].get("kind") in ("panel", "routed"):
                return self.judge(name)
            return self._from_table(name, dict(self._settings.judges[name]), temperature)
        if self._is_route(name):
            return self.judge(name)
        kind, _, rest = name.partition(":")
        if kind in providers():
            return self._from_table(kind, {"kind": kind, "model": rest or None}, temperature)
        if kind == "recorded":
            return self._recorded(rest)
        if kind in OFFLINE:
            return self._offline(kind, {"model": rest} if rest else {}, name)
        if maker := _installed(kind):
            return _made(name, maker, rest)
        known = ", ".join([*built_in(), *judge_names(self._settings)])
        provider = next((one for one in providers() if name.startswith(one)), "openai")
        hint = "" if ":" in name else f"; a model of that name is {self._surface.judge(f'{provider}:{name}')}"
        raise ConfigError(f"there is no judge {name!r}; known: {known}{hint}")

    def _from_table(self, name: str, table: dict[str, Any], temperature: float | None) -> Judge:
        kind, where = table.pop("kind", "openai"), f"{self._settings.source}: judges.{name}"
        if kind == "recorded":
            file = str(table.get("file", ""))
            beside = self._settings.folder / file
            return self._recorded(str(beside) if beside.is_file() else file)
        if kind in OFFLINE:
            return self._offline(kind, table, where)
        provider = providers().get(str(kind))
        if provider is None:
            maker = _installed(str(kind))
            if maker is None:
                known = ", ".join([*(judge.partition(":")[0] for judge in built_in()), *_installed_names()])
                raise ConfigError(f"{where}.kind: there is no kind {kind!r}; known: {known}")
            return _made(where, maker, **table)
        from steelyard.judges.chat import ChatJudge

        endpoint = self._endpoint(name, provider, table, temperature)
        return ChatJudge(endpoint, self._prompts, key=self._key(endpoint), limiter=self._limiter)

    def _key(self, endpoint: Endpoint) -> SecretStr | Signer | None:
        """The API key, from the environment."""
        environment = self._settings.environment
        key = environment.get(endpoint.key_env) if endpoint.key_env else None
        if endpoint.row.signing and endpoint.key_env == "AWS_ACCESS_KEY_ID":
            from steelyard.judges.sigv4 import Signer

            token = environment.get("AWS_SESSION_TOKEN")
            return Signer(
                access_key=key or "",
                secret=SecretStr(environment.get("AWS_SECRET_ACCESS_KEY") or ""),
                region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION,
                service=endpoint.row.signing,
                session_token=SecretStr(token) if token else None,
            )
        return SecretStr(key) if key else None

    def _endpoint(
        self, name: str, provider: Provider, table: dict[str, Any], temperature: float | None = None
    ) -> Endpoint:
        from steelyard.judges.endpoint import Endpoint
        from steelyard.judges.prices import price_of

        settings, where = self._settings, f"{self._settings.source}: judges.{name}"
        if "provider" in table:
            raise ConfigError(f"{where}.provider: a provider is named by kind")
        if not table.get("model"):
            named, example = (self._surface.judge(f"{provider.name}:{model}") for model in ("MODEL", provider.example))
            raise ConfigError(f"the {provider.name} judge needs a model: {named}, e.g. {example}")
        usual_url = provider.address(str(table["model"]), settings.environment)
        if usual_url is None and "base_url" not in table:
            variable = provider.missing(settings.environment)
            raise ConfigError(f"{name}: set {variable}, of which the address of {provider.name} is made")
        table.setdefault("base_url", usual_url)
        # One service's key is never sent to another: elsewhere, the user names the variable.
        try:
            is_usual = urlsplit(str(table["base_url"]))[:2] == urlsplit(usual_url or "")[:2]
            table.setdefault("proxy", proxy_for(str(table["base_url"]), settings.environment))
        except ValueError:
            # Not in its own words: they may quote a password.
            raise ConfigError(f"{where}.base_url: is not a URL") from None
        usual_key = provider.key_choice(settings.environment).variable if is_usual else None
        try:
            table.setdefault("price", price_of(str(table.get("model")), settings.prices))
        except ConfigError as error:
            raise ConfigError(f"{settings.source}: {error}") from None
        body = table.get("body", {})
        if temperature is not None and isinstance(body, Mapping) and not body.get("temperature"):
            table["body"] = {**body, "temperature": temperature}
        given = {"name": name, "provider": provider.name, **table, "key_env": table.get("key_env") or usual_key}
        try:
            return Endpoint.model_validate(given)
        except ValidationError as error:
            raise ConfigError(f"{where}.{invalid_field(error)}") from error

    def _offline(self, kind: str, table: dict[str, Any], named: str) -> Judge:
        """Make a judge that needs neither a key nor the network."""
        if kind == "embedded":
            from steelyard.judges.embedded import EmbeddedJudge

            if table:
                raise ConfigError(f"{named}: embedded is one judge and takes no model and no settings")
            return as_judge(EmbeddedJudge())
        if kind == "verifier":
            from steelyard.judges.verifiers import make_verifier

            return _made(named, make_verifier, environment=self._settings.environment, **table)
        from steelyard.judges.local import make_local

        return _made(named, make_local, environment=self._settings.environment, **table)

    def _recorded(self, source: str) -> Judge:
        from steelyard.judges.recorded import RecordedJudge

        if not source:
            example = self._surface.judge("recorded:replies.jsonl")
            raise ConfigError(f"recorded needs a file of replies or a run: {example}")
        if Path(source).exists():
            return RecordedJudge(Path(source))
        from steelyard.engine.journal import judge_of_stored_run
        from steelyard.store import is_run_name

        if not is_run_name(source):
            raise ConfigError(f"there is no file {source} of recorded replies")
        return judge_of_stored_run(source, self._settings.store_location(self._store))


def _installed_names() -> list[str]:
    return [point.name for point in _points(tuple(sys.path))]


@lru_cache(maxsize=4)
def _points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Cached: the lookup reads the metadata of every installed package, and each page of the viewer needs it."""
    return tuple(entry_points(group=GROUP))


def _installed(kind: str) -> Callable[..., JudgeLike] | None:
    """What makes judges of this kind, where a package that offers it is installed."""
    found = next((point for point in _points(tuple(sys.path)) if point.name == kind), None)
    try:
        return found.load() if found else None
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the judge {kind!r} is installed but cannot be loaded: {error}") from error


def _made(name: str, maker: Callable[..., JudgeLike], *given: str, **table: Any) -> Judge:
    try:
        return as_judge(maker(*given, **table))
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from error


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that the usual variables name for this address; none for loopback and what NO_PROXY lists."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    passed_by = [entry.strip().lstrip(".") for entry in no_proxy.split(",") if entry.strip()]
    if host in ("localhost", "127.0.0.1", "::1") or any(
        entry == "*" or host == entry or host.endswith(f".{entry}") for entry in passed_by
    ):
        return None
    name = f"{parts.scheme}_proxy"
    return environment.get(name) or environment.get(name.upper()) or None
