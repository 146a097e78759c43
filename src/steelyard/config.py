"""What the user asked for: judges and defaults from steelyard.toml, keys and URLs from the environment.

The only reader of both. A judge is named on the command line or in Python by one of

    mine                 a [judges.mine] table of steelyard.toml
    embedded             the judge in the box: rules and a small model, offline
    local[:MODEL|FILE]   a language model in this process, offline
    openai:MODEL         any OpenAI-compatible endpoint, from OPENAI_BASE_URL and OPENAI_API_KEY
    recorded:FILE|RUN    replies of an earlier run
    NAME[:REST]          an entry point of the group steelyard.judges
    ONE+TWO+THREE        a panel of these
    ONE>TWO              ONE decides what it is sure of, TWO gets the rest

Whoever names none gets the endpoint whose key is in the environment, else `embedded`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from steelyard.errors import ConfigError, Surface
from steelyard.judges.base import Judge
from steelyard.prompts import Prompts

if TYPE_CHECKING:
    from steelyard.judges.endpoint import Endpoint
    from steelyard.judges.jury import Jury, Route

FILE = "steelyard.toml"
STORE = Path(".steelyard") / "store.db"
GROUP = "steelyard.judges"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
# Kinds of judges that come with the package.
BUILT_IN = ("embedded", "local", "openai:MODEL", "recorded:FILE")
Gate = Any  # judges.gate.Gate, not imported here: `--help` does not need it


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Defaults(Strict):
    """The [run] table: what flags would otherwise say each time."""

    judge: str | None = None
    language: Literal["zh-Hans", "zh-Hant", "en"] | None = None
    store: Path | None = None
    concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    prompts: tuple[Path, ...] = ()


class Settings(Strict):
    """A whole steelyard.toml."""

    run: Defaults = Defaults()
    judges: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)


class Choice(NamedTuple):
    """Which judge a user gets, and why this one; no reason is needed where it was named on the spot."""

    name: str
    why: str = ""


class Config:
    """The settings of one file with one environment."""

    def __init__(
        self, settings: Settings, environment: Mapping[str, str], source: str, surface: Surface = Surface.flags
    ) -> None:
        self.settings, self.environment, self.source, self.surface = settings, environment, source, surface

    @classmethod
    def load(
        cls,
        path: Path | None = None,
        environment: Mapping[str, str] | None = None,
        surface: Surface = Surface.flags,
    ) -> Config:
        """From the named file, else from steelyard.toml here, else the defaults."""
        environment = os.environ if environment is None else environment
        named = path or environment.get("STEELYARD_CONFIG")
        file = Path(named or FILE)
        if not named and not file.exists():
            return cls(Settings(), environment, FILE, surface)
        try:
            settings = Settings.model_validate(tomllib.loads(file.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{file}: not valid TOML: {error}") from error
        except ValidationError as error:
            raise ConfigError(f"{file}: {_first(error)}") from error
        return cls(settings, environment, str(file), surface)

    @cached_property
    def prompts(self) -> Prompts:
        """The shipped prompts with the user's own laid over them."""
        folder = Path(self.source).parent
        return Prompts.shipped().with_files(folder / path for path in self.settings.run.prompts)

    def store_path(self, given: Path | None = None) -> Path:
        """Where runs are kept: as named, else as the environment says, else as the file does, beside it."""
        if named := given or self.environment.get("STEELYARD_STORE"):
            return Path(named)
        return Path(self.source).parent / self.settings.run.store if self.settings.run.store else STORE

    @property
    def token(self) -> str | None:
        """What the viewer asks of every request, where the environment says so."""
        return self.environment.get("STEELYARD_TOKEN") or None

    def judge_names(self) -> list[str]:
        """The judges that can be named as they are: the user's own and those of installed packages."""
        return [*self.settings.judges, *_installed_names()]

    def choose(self, name: str | None) -> Choice:
        """The judge by the name given here, else in the environment, in the file, by a key, else `embedded`."""
        if name:
            return Choice(name)
        if by_variable := self.environment.get("STEELYARD_JUDGE"):
            return Choice(by_variable, "STEELYARD_JUDGE names it")
        if self.settings.run.judge:
            return Choice(self.settings.run.judge, f"run.judge in {self.source} names it")
        if not self.environment.get("OPENAI_API_KEY"):
            return Choice("embedded", "no judge is named and OPENAI_API_KEY is not set")
        elsewhere = self.environment.get("OPENAI_BASE_URL")
        model = self.environment.get("OPENAI_MODEL") or (None if elsewhere else DEFAULT_MODEL)
        if model:
            return Choice(f"openai:{model}", "no judge is named and OPENAI_API_KEY is set")
        return Choice("embedded", "no judge is named, and OPENAI_MODEL does not say what to ask at OPENAI_BASE_URL")

    def judge(
        self,
        name: str | None,
        prompts: Prompts,
        gate: Gate | None = None,
        store: Path | None = None,
        together: Mapping[str, Any] | None = None,
    ) -> Judge:
        """The judge a user named, or the one who judges when none is named. `together` is what flags say of how it is
        asked: repeats, escalate, verify, sure."""
        name = self.choose(name).name
        sure = {part: value for part, value in (together or {}).items() if part == "sure"}
        together = {part: value for part, value in (together or {}).items() if part != "sure"}
        if not together and (route := self._route(name, sure)):
            return self._routed(route, prompts, gate, store, sure)
        if sure and not self._is_route(name):
            raise ConfigError(f"{self.surface.judge(name)}: sure is for two judges in a row, FIRST>THEN")
        if jury := self._jury(name, together or {}):
            return jury.make(lambda member, warmth: self._judge(member, prompts, gate, store, warmth))
        return self._judge(name, prompts, gate, store)

    def _is_route(self, name: str) -> bool:
        if name in self.settings.judges:
            return self.settings.judges[name].get("kind") == "routed"
        return ">" in name and not Path(name.removeprefix("recorded:")).exists()

    def _route(self, name: str, sure: Mapping[str, Any]) -> Route | None:
        """The settings of two judges in a row, where the name asks for them."""
        if not self._is_route(name):
            return None
        from steelyard.judges.jury import Route

        table = dict(self.settings.judges.get(name, {}))
        where = f"{self.source}: judges.{name}." if table else f"{self.surface.judge(name)}: "
        if not table:
            first, _, then = name.partition(">")
            table = {"first": first.strip(), "then": then.strip()}
        table.pop("kind", None)
        try:
            return Route.model_validate({**table, **sure})
        except ValidationError as error:
            raise ConfigError(where + _first(error).removeprefix(": ").removeprefix("Value error, ")) from error

    def _routed(
        self, route: Route, prompts: Prompts, gate: Gate | None, store: Path | None, sure: Mapping[str, Any]
    ) -> Judge:
        def named(name: str) -> Judge:
            return self.judge(name, prompts, gate, store, sure if self._is_route(name) else None)

        # A file that a flag names is looked for here, one of the settings beside them.
        return route.make(named, Path() if sure else Path(self.source).parent)

    def _jury(self, name: str, together: Mapping[str, Any]) -> Jury | None:
        """The settings of a panel, where the name or the flags ask for one."""
        from steelyard.judges.jury import Jury

        table = dict(self.settings.judges.get(name, {}))
        if table.pop("kind", None) == "panel":
            where = f"{self.source}: judges.{name}."
        elif "+" in name and name not in self.settings.judges and not Path(name.removeprefix("recorded:")).exists():
            where, table = f"{self.surface.judge(name)}: ", {"members": name.split("+")}
        elif together:
            where, table = f"{self.surface.judge(name)}: ", {"members": [name]}
        else:
            return None
        try:
            return Jury.model_validate({**table, **together})
        except ValidationError as error:
            raise ConfigError(where + _first(error).removeprefix(": ").removeprefix("Value error, ")) from error

    def _judge(
        self, name: str, prompts: Prompts, gate: Gate | None, store: Path | None, warmth: float | None = None
    ) -> Judge:
        """A judge that is named by itself; `warmth` is the temperature for one that would otherwise have none."""
        if name in self.settings.judges:
            if self.settings.judges[name].get("kind") in ("panel", "routed"):
                return self.judge(name, prompts, gate, store)
            return self._from_table(name, dict(self.settings.judges[name]), prompts, gate, store, warmth)
        if self._is_route(name):
            return self.judge(name, prompts, gate, store)
        kind, _, rest = name.partition(":")
        if kind == "openai":
            table = {"kind": "openai", "model": rest or None}
            return self._from_table("openai", table, prompts, gate, store, warmth)
        if kind == "recorded":
            return self._recorded(rest, store)
        if kind in ("embedded", "local"):
            return self._offline(kind, {"model": rest} if rest else {}, name)
        if maker := _installed(kind):
            return _made(name, maker, rest)
        known = ", ".join([*BUILT_IN, *self.judge_names()])
        hint = "" if ":" in name else f"; a model of that name is {self.surface.judge(f'openai:{name}')}"
        raise ConfigError(f"there is no judge {name!r}; known are {known}{hint}")

    def _from_table(
        self,
        name: str,
        table: dict[str, Any],
        prompts: Prompts,
        gate: Gate | None,
        store: Path | None,
        warmth: float | None = None,
    ) -> Judge:
        kind = table.pop("kind", "openai")
        if kind == "recorded":
            file = str(table.get("file", ""))
            beside = Path(self.source).parent / file
            return self._recorded(str(beside) if beside.is_file() else file, store)
        if kind in ("embedded", "local"):
            return self._offline(kind, table, f"{self.source}: judges.{name}")
        if kind != "openai":
            maker = _installed(str(kind))
            if maker is None:
                known = ", ".join([*(judge.partition(":")[0] for judge in BUILT_IN), *_installed_names()])
                raise ConfigError(f"{self.source}: judges.{name}.kind: there is no kind {kind!r}; known are {known}")
            return _made(f"{self.source}: judges.{name}", maker, **table)
        from steelyard.judges.chat import ChatJudge

        endpoint = self._endpoint(name, table, warmth)
        key = self.environment.get(endpoint.key_env) if endpoint.key_env else None
        return ChatJudge(endpoint, prompts, key=SecretStr(key) if key else None, gate=gate)

    def endpoint(self, name: str) -> Endpoint | None:
        """Where a judge is asked; None for one that is not asked over HTTP."""
        table = dict(self.settings.judges.get(name, {}))
        kind, _, model = name.partition(":")
        if not table and kind == "openai" and not self._is_route(name):
            table = {"model": model or None}
        return self._endpoint(name, table) if table and table.pop("kind", "openai") == "openai" else None

    def _endpoint(self, name: str, table: dict[str, Any], warmth: float | None = None) -> Endpoint:
        from steelyard.judges.endpoint import Endpoint
        from steelyard.prices import price_of

        usual_url = self.environment.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
        table.setdefault("base_url", usual_url)
        # One service's key is never sent to another: elsewhere, the user names the variable.
        try:
            is_usual = urlsplit(str(table["base_url"]))[:2] == urlsplit(usual_url)[:2]
            table.setdefault("proxy", proxy_for(str(table["base_url"]), self.environment))
        except ValueError:
            # Not in its own words: they may quote a password.
            raise ConfigError(f"{self.source}: judges.{name}.base_url: is not a URL") from None
        key_env = table.get("key_env") or ("OPENAI_API_KEY" if is_usual else None)
        try:
            table.setdefault("price", price_of(str(table.get("model")), self.settings.prices))
        except ConfigError as error:
            raise ConfigError(f"{self.source}: {error}") from None
        if not table.get("model"):
            example = self.surface.judge(f"openai:{DEFAULT_MODEL}")
            raise ConfigError(f"the openai judge needs a model: {self.surface.judge('openai:MODEL')}, e.g. {example}")
        body = table.get("body", {})
        if warmth is not None and isinstance(body, Mapping) and not body.get("temperature"):
            table["body"] = {**body, "temperature": warmth}
        try:
            return Endpoint.model_validate({"name": name, **table, "key_env": key_env})
        except ValidationError as error:
            raise ConfigError(f"{self.source}: judges.{name}.{_first(error)}") from error

    def _offline(self, kind: str, table: dict[str, Any], named: str) -> Judge:
        """The two judges that need neither a key nor the network."""
        if kind == "embedded":
            from steelyard.judges.embedded import EmbeddedJudge

            if table:
                raise ConfigError(f"{named}: embedded is one judge and takes no model and no settings")
            return EmbeddedJudge()
        from steelyard.judges.local import make_local

        return _made(named, make_local, environment=self.environment, **table)

    def _recorded(self, source: str, store: Path | None) -> Judge:
        from steelyard.judges.recorded import RecordedJudge

        if not source:
            example = self.surface.judge("recorded:replies.jsonl")
            raise ConfigError(f"recorded needs a file of replies or a run: {example}")
        if Path(source).exists():
            return RecordedJudge(Path(source))
        from steelyard.journal import judge_of_stored_run
        from steelyard.store import is_run_name

        if not is_run_name(source):
            raise ConfigError(f"there is no file {source} of recorded replies")
        return judge_of_stored_run(source, self.store_path(store))


def _installed_names() -> list[str]:
    return [point.name for point in entry_points(group=GROUP)]


def _installed(kind: str) -> Callable[..., Judge] | None:
    """What makes judges of this kind, where a package that offers it is installed."""
    found = next((point for point in entry_points(group=GROUP) if point.name == kind), None)
    try:
        return found.load() if found else None
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the judge {kind!r} is installed but cannot be loaded: {error}") from error


def _made(name: str, maker: Callable[..., Judge], *given: str, **table: Any) -> Judge:
    try:
        return maker(*given, **table)
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


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
