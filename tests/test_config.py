"""Settings: what a steelyard.toml may say, what the environment adds, and which judge a name means."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import EXAMPLES
from endpoint import Loopback
from steelyard.errors import ConfigError, PromptError
from steelyard.evaluation.factory import JudgeFactory, judge_names, proxy_for
from steelyard.judges import RecordedJudge
from steelyard.judges.chat import ChatJudge
from steelyard.judges.prices import shipped
from steelyard.prompts import Prompts
from steelyard.records import Ask
from steelyard.settings import Settings
from steelyard.tasks import SplitData, SplitReply

PROMPTS = Prompts.shipped()
DEFAULT_BASE_URL = "https://api.openai.com/v1"
KEY, OTHER_KEY = "sk-usual-0123456789", "sk-other-9876543210"
HELD = {"atoms": [{"id": 1, "text": "Fact 1 holds."}]}


def settings(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> Settings:
    """The configuration of a file with this text."""
    file = tmp_path / "steelyard.toml"
    file.write_text(text, encoding="utf-8")
    return Settings.load(file, environment or {})


def chat(config: Settings, name: str | None = "mine") -> ChatJudge:
    judge = JudgeFactory(config, PROMPTS).judge(name)
    assert isinstance(judge, ChatJudge)
    return judge


# --- the file --------------------------------------------------------------------------------------


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without steelyard.toml is fine, unless the user named the file."""
    monkeypatch.chdir(tmp_path)
    assert Settings.load(environment={}).run.judge is None
    with pytest.raises(ConfigError, match=r"mine\.toml: cannot be read"):
        Settings.load(Path("mine.toml"), {})


def test_the_file_in_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """steelyard.toml of the current folder counts; an empty STEELYARD_CONFIG is as good as none."""
    monkeypatch.chdir(tmp_path)
    Path("steelyard.toml").write_text('[run]\nlanguage = "zh-Hant"\n', "utf-8")
    assert Settings.load(environment={"STEELYARD_CONFIG": ""}).run.language == "zh-Hant"


def test_the_environment_names_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STEELYARD_CONFIG goes before the folder's own file, and a file it names must be there."""
    monkeypatch.chdir(tmp_path)
    Path("steelyard.toml").write_text("[run]\nconcurrency = 2\n", "utf-8")
    Path("team.toml").write_text("[run]\nconcurrency = 9\n", "utf-8")
    assert Settings.load(environment={"STEELYARD_CONFIG": "team.toml"}).run.concurrency == 9
    assert Settings.load(Path("steelyard.toml"), {"STEELYARD_CONFIG": "team.toml"}).run.concurrency == 2
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        Settings.load(environment={"STEELYARD_CONFIG": "gone.toml"})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[run\n", "not valid TOML"),
        ('[run]\njugde = "x"\n', "run.jugde"),
        ("[run]\nconcurrency = 0\n", "run.concurrency"),
        ('[run]\nconcurrency = "many"\n', "run.concurrency"),
        ("[run]\nrequests_per_minute = -1\n", "run.requests_per_minute"),
        ('[run]\nlanguage = "fr"\n', "run.language"),
        ('[run]\nprompts = "one.md"\n', "run.prompts"),
        ('[judges]\nmine = "gpt"\n', "judges.mine"),
        ("[options]\natomic = 1\n", "options.atomic"),
        ("[jugdes.mine]\n", "jugdes"),
    ],
)
def test_a_slip_is_named_by_file_and_key(tmp_path: Path, text: str, place: str) -> None:
    """The message says which file and which key, in one line."""
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'steelyard.toml'}: ")
    assert place in message
    assert "\n" not in message


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    """TOML is UTF-8; a file that is not cannot be read, and says so instead of breaking."""
    file = tmp_path / "steelyard.toml"
    file.write_bytes('[run]\njudge = "评判"\n'.encode("gb18030"))
    with pytest.raises(ConfigError, match="cannot be read"):
        Settings.load(file, {})


@given(st.text())
def test_any_text_is_settings_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever stands in the file, no other error gets out."""
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ConfigError):
        assert Settings.load(file, {}).source == str(file)


# --- where runs are kept ---------------------------------------------------------------------------


def test_store_location_precedence(tmp_path: Path) -> None:
    """The flag, then the environment, then the file, then the default."""
    with_file = settings(tmp_path, '[run]\nstore = "runs.db"\n')
    everything = settings(tmp_path, '[run]\nstore = "runs.db"\n', {"STEELYARD_STORE": "env.db"})
    assert everything.store_location(Path("flag.db")) == Path("flag.db")
    assert everything.store_location() == Path("env.db")
    assert with_file.store_location() == tmp_path / "runs.db"
    assert settings(tmp_path, "").store_location() == Path(".steelyard/store.db")


def test_an_absolute_store_stays_where_it_is(tmp_path: Path) -> None:
    """Only relative paths are beside the file."""
    assert settings(tmp_path, "[run]\nstore = '/data/runs.db'\n").store_location() == Path("/data/runs.db")


# --- prompts ---------------------------------------------------------------------------------------


def test_prompts_are_found_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative prompts folder belongs to the settings file, wherever the command is run."""
    shipped_text = PROMPTS.get("atomic.split", "zh").text
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "split.zh.md").write_text(shipped_text.replace("你", "您", 1), "utf-8")
    config = settings(tmp_path, '[run]\nprompts = ["prompts"]\n')
    monkeypatch.chdir(tmp_path.root)
    mine = config.prompts.get("atomic.split", "zh")
    assert "您" in mine.text
    assert mine.source.endswith("split.zh.md")
    assert config.prompts.get("atomic.judge", "zh") == PROMPTS.get("atomic.judge", "zh")


def test_prompts_that_are_not_there(tmp_path: Path) -> None:
    """A folder that does not exist is named."""
    with pytest.raises(PromptError, match="elsewhere"):
        _ = settings(tmp_path, '[run]\nprompts = ["elsewhere"]\n').prompts


# --- which judge a name means ----------------------------------------------------------------------


def test_a_judge_of_the_file(tmp_path: Path) -> None:
    """Every key of the table reaches the endpoint; what it leaves out has its default."""
    table = '[judges.mine]\nbase_url = "https://llm.example/v1"\nmodel = "m"\ntimeout = 7\nbody = {seed = 1}\n'
    endpoint = chat(settings(tmp_path, table)).endpoint
    assert (endpoint.name, endpoint.base_url, endpoint.model) == ("mine", "https://llm.example/v1", "m")
    assert (endpoint.timeout, dict(endpoint.body), endpoint.retries) == (7, {"seed": 1}, 4)


def test_openai_by_name() -> None:
    """`openai:MODEL` needs no file; the model may hold colons; the URL comes from the environment."""
    usual = chat(Settings.load(environment={}), "openai:gpt-4o-mini").endpoint
    local = chat(
        Settings.load(environment={"OPENAI_BASE_URL": "http://localhost:11434/v1"}), "openai:qwen3:8b"
    ).endpoint
    assert (usual.base_url, usual.model) == (DEFAULT_BASE_URL, "gpt-4o-mini")
    assert (local.base_url, local.model) == ("http://localhost:11434/v1", "qwen3:8b")
    assert chat(Settings.load(environment={"OPENAI_BASE_URL": ""}), "openai:m").endpoint.base_url == DEFAULT_BASE_URL


def test_judge_precedence(tmp_path: Path) -> None:
    """The flag, then STEELYARD_JUDGE, then the file's own default."""
    text = '[run]\njudge = "a"\n[judges.a]\nmodel = "a"\n[judges.b]\nmodel = "b"\n[judges.c]\nmodel = "c"\n'
    assert chat(settings(tmp_path, text), None).endpoint.name == "a"
    with_environment = settings(tmp_path, text, {"STEELYARD_JUDGE": "b"})
    assert chat(with_environment, None).endpoint.name == "b"
    assert chat(with_environment, "c").endpoint.name == "c"


WITH_KEY = {"OPENAI_API_KEY": "k"}
ELSEWHERE = {**WITH_KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


@pytest.mark.parametrize(
    ("environment", "named", "why"),
    [
        ({}, "embedded", "OPENAI_API_KEY is not set"),
        ({"OPENAI_API_KEY": ""}, "embedded", "OPENAI_API_KEY is not set"),
        (WITH_KEY, "openai:gpt-4o-mini", "OPENAI_API_KEY is set"),
        ({**WITH_KEY, "OPENAI_MODEL": "m"}, "openai:m", "OPENAI_API_KEY is set"),
        ({**ELSEWHERE, "OPENAI_MODEL": "m"}, "openai:m", "OPENAI_API_KEY is set"),
        (ELSEWHERE, "embedded", "OPENAI_MODEL does not say"),
        ({**WITH_KEY, "STEELYARD_JUDGE": "local"}, "local", "STEELYARD_JUDGE names it"),
    ],
)
def test_no_judge_named(environment: dict[str, str], named: str, why: str) -> None:
    """The endpoint whose key is there judges, else the embedded judge; the reason is said."""
    choice = Settings.load(environment=environment).choose(None)
    assert choice.name == named
    assert why in choice.why


def test_a_judge_of_the_file_comes_before_a_key(tmp_path: Path) -> None:
    """What somebody wrote down beats what happens to be in the environment; what is named on the spot beats both."""
    (tmp_path / "steelyard.toml").write_text('[run]\njudge = "embedded"\n')
    config = Settings.load(tmp_path / "steelyard.toml", WITH_KEY)
    assert config.choose(None).name == JudgeFactory(config, PROMPTS).judge(None).name == "embedded"
    assert "steelyard.toml" in config.choose(None).why
    assert config.choose("openai:m") == ("openai:m", "")


@pytest.mark.parametrize("text", ["", 'model = "m"\n'])
def test_embedded_in_a_table(tmp_path: Path, text: str) -> None:
    """It can be named there too, but it is one judge: a model given to it would be ignored, so it is refused."""
    config = settings(tmp_path, f'[judges.mine]\nkind = "embedded"\n{text}')
    if not text:
        assert JudgeFactory(config, PROMPTS).judge("mine").name == "embedded"
        return
    with pytest.raises(ConfigError, match=r"judges\.mine: embedded .* no model"):
        JudgeFactory(config, PROMPTS).judge("mine")


def test_an_unknown_judge_lists_the_known_ones(tmp_path: Path) -> None:
    """The user's own names are among them."""
    config = settings(tmp_path, '[judges.qwen]\nmodel = "q"\n[judges.glm]\nmodel = "g"\n')
    with pytest.raises(ConfigError) as caught:
        JudgeFactory(config, PROMPTS).judge("qwne")
    assert "'qwne'" in str(caught.value)
    assert all(name in str(caught.value) for name in ("openai:MODEL", "recorded:FILE", "qwen", "glm"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('base_url = "llm.example"\nmodel = "m"', "judges.mine.base_url: must be an http"),
        ('base_url = "https://me:pw@llm.example"\nmodel = "m"', "judges.mine.base_url"),
        ('base_url = "http://[::1"\nmodel = "m"', "judges.mine.base_url"),
        ('model = "m"\nretries = -1', "judges.mine.retries"),
        ('model = "m"\ntemprature = 0', "judges.mine.temprature"),
        ('model = "m"\nbody = {stream = true}', "judges.mine.body"),
        (
            'model = "m"\nkind = "opanai"',
            "judges.mine.kind: there is no kind 'opanai'; known: embedded, local, verifier, openai",
        ),
        ('base_url = "https://llm.example/v1"', "needs a model"),
    ],
)
def test_a_slip_in_a_judge(tmp_path: Path, table: str, message: str) -> None:
    """A table that does not fit is named by judge and key; passwords in it are not repeated."""
    with pytest.raises(ConfigError) as caught:
        JudgeFactory(settings(tmp_path, f"[judges.mine]\n{table}\n"), PROMPTS).judge("mine")
    assert message in str(caught.value)
    assert "pw" not in str(caught.value)


def test_recorded_by_name_and_by_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of replies is named on the command line as it is, in the settings beside them."""
    replies = (EXAMPLES / "replies.jsonl").read_bytes()
    (tmp_path / "replies.jsonl").write_bytes(replies)
    monkeypatch.chdir(tmp_path.root)
    config = settings(tmp_path, '[judges.old]\nkind = "recorded"\nfile = "replies.jsonl"\n')
    by_name = JudgeFactory(config, PROMPTS).judge(f"recorded:{tmp_path / 'replies.jsonl'}")
    by_table = JudgeFactory(config, PROMPTS).judge("old")
    assert isinstance(by_name, RecordedJudge)
    assert isinstance(by_table, RecordedJudge)
    assert len(by_name) == len(by_table) == len(replies.splitlines())


@pytest.mark.parametrize(("name", "message"), [("recorded:", "needs a file"), ("recorded:no/such.jsonl", "no file")])
def test_recorded_without_a_recording(name: str, message: str) -> None:
    """Nothing to replay is said at once."""
    with pytest.raises(ConfigError, match=message):
        JudgeFactory(Settings.load(environment={}), PROMPTS).judge(name)


# --- judges of other packages ----------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with two judges, one of them broken, installed where Python finds it."""
    place = tmp_path / "site"
    info = place / "coin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coin\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[steelyard.judges]\ncoin = coin:Coin\nlost = coin:Nothing\n", "utf-8")
    (place / "coin.py").write_text(
        "class Coin:\n"
        "    def __init__(self, side='', edge=0):\n"
        "        self.name, self.edge = f'coin:{side}', edge\n"
        "    async def answer(self, ask): ...\n"
        "    async def aclose(self): ...\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "coin", raising=False)
    return place


def test_a_judge_of_another_package(installed: Path, tmp_path: Path) -> None:
    """By name with what follows the colon, by table with its keys."""
    config = settings(tmp_path, '[judges.mine]\nkind = "coin"\nside = "tails"\nedge = 3\n')
    by_name: Any = JudgeFactory(config, PROMPTS).judge("coin:heads")
    by_table: Any = JudgeFactory(config, PROMPTS).judge("mine")
    assert (by_name.name, by_table.name, by_table.edge) == ("coin:heads", "coin:tails", 3)
    assert judge_names(config) == ["mine", "coin", "lost"]


def test_a_judge_of_another_package_that_does_not_fit(installed: Path, tmp_path: Path) -> None:
    """Unknown keys and a package that cannot be loaded are the user's to mend, not a traceback."""
    config = settings(tmp_path, '[judges.mine]\nkind = "coin"\ncolour = "red"\n')
    with pytest.raises(ConfigError, match=r"judges\.mine: .*colour"):
        JudgeFactory(config, PROMPTS).judge("mine")
    with pytest.raises(ConfigError, match="'lost' is installed but cannot be loaded"):
        JudgeFactory(config, PROMPTS).judge("lost")


# --- keys ------------------------------------------------------------------------------------------


async def sent_key(config: Settings, server: Loopback, name: str = "mine") -> str | None:
    """The Authorization header that arrived."""
    ask = Ask(task="atomic.split", language="en", data=SplitData(question="?", answer="!"), reply=SplitReply)
    judge = JudgeFactory(config, PROMPTS).judge(name)
    await judge.answer(ask)
    await judge.aclose()
    return server.requests[-1].headers.get("Authorization")


async def test_the_usual_key_goes_to_the_usual_host(tmp_path: Path) -> None:
    """OPENAI_API_KEY is sent where OPENAI_BASE_URL points, also by a judge of the file without a URL."""
    with Loopback(HELD) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        config = settings(tmp_path, '[judges.mine]\nmodel = "m"\n', environment)
        assert await sent_key(config, server) == f"Bearer {KEY}"
        assert await sent_key(config, server, "openai:m") == f"Bearer {KEY}"


async def test_the_usual_key_goes_nowhere_else(tmp_path: Path) -> None:
    """A judge at another address gets no key, unless its own variable is named."""
    with Loopback(HELD) as server:
        environment = {"OPENAI_API_KEY": KEY, "OTHER_KEY": OTHER_KEY}
        table = f'[judges.mine]\nmodel = "m"\nbase_url = "{server.url}"\n'
        assert await sent_key(settings(tmp_path, table, environment), server) is None
        named = settings(tmp_path, table + 'key_env = "OTHER_KEY"\n', environment)
        assert await sent_key(named, server) == f"Bearer {OTHER_KEY}"
        unset = settings(tmp_path, table + 'key_env = "NOT_SET"\n', environment)
        assert await sent_key(unset, server) is None


@pytest.mark.parametrize(
    ("url", "key_env"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("http://api.openai.com/v1", None),
        ("https://api.openai.com:444/v1", None),
        ("https://api.openai.com.example/v1", None),
        ("https://example/api.openai.com/v1", None),
    ],
)
def test_what_counts_as_the_usual_host(tmp_path: Path, url: str, key_env: str | None) -> None:
    """The same scheme, host and port; a lookalike or an unencrypted address is another one."""
    config = settings(tmp_path, f'[judges.mine]\nmodel = "m"\nbase_url = "{url}"\n', {"OPENAI_API_KEY": KEY})
    judge = chat(config)
    assert judge.endpoint.key_env == key_env
    assert KEY not in repr(judge.endpoint) + repr(judge.describe())


# --- proxies and prices ----------------------------------------------------------------------------

PROXIES = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://plain:3128"}


@pytest.mark.parametrize(
    ("url", "no_proxy", "proxy"),
    [
        ("https://llm.example/v1", "", "http://proxy:3128"),
        ("http://llm.example/v1", "", "http://plain:3128"),
        ("http://localhost:8000/v1", "", None),
        ("http://127.0.0.1:8000/v1", "", None),
        ("http://[::1]:8000/v1", "", None),
        ("https://llm.example/v1", "*", None),
        ("https://llm.example/v1", "llm.example", None),
        ("https://eu.llm.example/v1", " .llm.example , other", None),
        ("https://notllm.example/v1", "llm.example", "http://proxy:3128"),
        ("https://llm.example/v1", ",", "http://proxy:3128"),
    ],
)
def test_proxy_for(url: str, no_proxy: str, proxy: str | None) -> None:
    """By scheme, in either case; never for loopback or for what NO_PROXY lists with its subdomains."""
    assert proxy_for(url, {**PROXIES, "NO_PROXY": no_proxy}) == proxy


def test_the_proxy_reaches_the_judge(tmp_path: Path) -> None:
    """From the environment, unless the table names its own."""
    text = '[judges.mine]\nmodel = "m"\n[judges.own]\nmodel = "m"\nproxy = "http://mine:1"\n'
    config = settings(tmp_path, text, PROXIES)
    assert chat(config).endpoint.proxy == "http://proxy:3128"
    assert chat(config, "own").endpoint.proxy == "http://mine:1"


def test_prices(tmp_path: Path) -> None:
    """The judge's own price, then the file's list, then the shipped one; an unknown model has none."""
    text = """
[judges.own]
model = "gpt-4o"
price = {prompt = 9, completion = 9}
[judges.listed]
model = "qwen3-32b"
[judges.known]
model = "gpt-4o"
[judges.unknown]
model = "nobody-knows"
[prices."qwen3-32b"]
prompt = 0.5
completion = 1.5
"""
    config = settings(tmp_path, text)
    prices = {name: chat(config, name).endpoint.price for name in config.judges}
    assert prices["own"] is not None
    assert prices["own"].prompt == 9
    assert prices["listed"] is not None
    assert (prices["listed"].prompt, prices["listed"].completion) == (0.5, 1.5)
    assert prices["known"] == shipped()["gpt-4o"].price
    assert prices["unknown"] is None


def test_a_slip_in_a_price_names_file_and_model(tmp_path: Path) -> None:
    """A negative price is not silently free."""
    config = settings(tmp_path, '[judges.mine]\nmodel = "m"\n[prices.m]\nprompt = -1\ncompletion = 1\n')
    with pytest.raises(ConfigError, match=r"steelyard\.toml: prices\.'m'"):
        JudgeFactory(config, PROMPTS).judge("mine")
