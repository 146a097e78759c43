"""Secrets of an endpoint: known wherever people put them, shown nowhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from command import Steelyard, fact_server, facts
from endpoint import Loopback, Raw, Request, Say, Status, Wire
from steelyard.engine.manifest import differing
from steelyard.errors import JudgeError
from steelyard.judges.chat import ChatJudge
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.masking import Mask, is_secret_name, shown_body, shown_url
from steelyard.prompts import Prompts, nonce
from steelyard.records import Ask, Reply, Unjudged
from steelyard.tasks import SplitData, SplitReply

KEY, TOKEN, QUERY, BODY, PROXY = "sk-0a1b2c3d4e5f", "tok/9f8e+7d6c==", "q-1122334455", "b-6677889900", "p@ss:word-77"
ASK = Ask(task="atomic.split", language="en", data=SplitData(question="q", answer="a"), reply=SplitReply)


HIDDEN_NAMES = (
    "appkey accesstoken secretkey apitoken authkey apisecret sessiontoken subscriptionkey user_pass jwt sk ak "
    "X-Session-Id Ocp-Apim-Subscription-Key pwd 密钥"
).split()


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("api_key", True),
        ("apiKey", True),
        ("API-KEY", True),
        ("x-access-token", True),
        ("Authorization", True),
        ("clientSecret", True),
        ("password", True),
        ("max_tokens", False),
        ("tokenizer", False),
        ("stop_token_ids", False),
        ("max_completion_tokens", False),
        ("maxOutputTokens", False),
        ("maxtokens", False),
        ("thinking_budget_tokens", False),
        ("keywords", False),
        ("author", False),
        ("top_k", False),
        ("skip_special_tokens", False),
        ("task", False),
        ("tokens", True),
        *((name, True) for name in HIDDEN_NAMES),
        ("temperature", False),
        ("monkey", False),
    ],
)
def test_names_say_what_is_secret(name: str, is_secret: bool) -> None:
    """By parts of words, for people write them together; the tokens of a text are none."""
    assert is_secret_name(name) is is_secret


def test_a_body_is_shown_without_its_secrets() -> None:
    """At any depth, numbers too; what has a harmless name stays."""
    body = {
        "seed": 1,
        "stop_token_ids": [7],
        "auth": {"user": "me", "n": 2},
        "tools": [{"apiKey": "x"}],
        "max_tokens": 5,
    }
    assert shown_body(body) == {
        "seed": 1,
        "stop_token_ids": [7],
        "auth": {"user": "hidden", "n": "hidden"},
        "tools": [{"apiKey": "hidden"}],
        "max_tokens": 5,
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/v1", "https://host/v1"),
        ("https://me:pw@host/v1", "https://hidden@host/v1"),
        ("https://host/v1?key=abc&api-version=2024-10-21", "https://host/v1?key=hidden&api-version=2024-10-21"),
        ("https://host/sk-abcdefgh1234/v1", "https://host/hidden/v1"),
        ("https://host/0123456789abcdef0123/v1", "https://host/hidden/v1"),
        (
            "https://host/openai/deployments/gpt-4o-mini-2024-07-18",
            "https://host/openai/deployments/gpt-4o-mini-2024-07-18",
        ),
        ("http://[::1", "hidden"),
        ("https://host/v1?9b+9Xk2/ef", "https://host/v1?hidden"),
        ("https://host/3f2a91bc-77de-4b1a-9c11-0d2e5f60a7b8/v1", "https://host/hidden/v1"),
        ("https://host/kJhGfDsAqWeRtYuIoPzXcVbNm/v1", "https://host/hidden/v1"),
        ("https://host/a8Zq-x91_Tb3kW7pQ2/v1", "https://host/hidden/v1"),
        ("https://host/accounts/123456789012/Qwen2.5-72B-Instruct-2507", None),
        ("https://host/v1alpha1/projects", None),
        ("https://host/models/Meta-Llama-3.1-8B-Instruct-GPTQ-Int4", None),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str | None) -> None:
    """Password, query and key-like parts of the path; the names of models are none."""
    assert shown_url(url) == (shown or url)
    assert shown_url(shown or url) == (shown or url)


def test_forms_of_a_secret() -> None:
    """As it is, in a URL, in JSON, after its scheme; a short one only by itself, and never in a reply."""
    mask = Mask(["Bearer abc/def+ghi", "pw"])
    assert mask("a Bearer abc/def+ghi b abc%2Fdef%2Bghi c abc\\/def+ghi d") == "a *** b *** c *** d"
    assert Mask(["abc"])("abc abcd (abc)") == "*** abcd (***)"
    assert Mask(["abc"]).reply("abc") == "abc"
    assert mask("pw") == "pw"


@pytest.mark.parametrize(
    "spelled",
    [
        "9b+9Xk2/efGH34==",
        "9b%2B9Xk2%2FefGH34%3D%3D",
        "9b%2b9Xk2%2fefGH34%3d%3d",
        "9b%252b9Xk2%252fefGH34%253d%253d",
        "9b+9Xk2\\/efGH34==",
        "9b\\u002b9Xk2\\u002FefGH34\\u003d\\u003D",
        "9b&#43;9Xk2&#x2f;efGH34&#x3D;&#061;",
        "9b&plus;9Xk2&sol;efGH34&equals;&equals;",
        "9b 9Xk2/efGH34==",
    ],
)
def test_a_value_of_the_query_is_known_in_every_spelling(spelled: str) -> None:
    """As written, decoded, and as URLs, JSON and HTML write it, in either case."""
    for written in ("9b+9Xk2/efGH34==", "9b%2B9Xk2%2FefGH34%3D%3D"):
        mask = Mask(Endpoint(base_url=f"http://host/v1?sig={written}", model="m").secrets())
        # A plus in a query may mean a space; one that is escaped may not.
        if " " not in spelled or "+" in written:
            assert mask(f"at <{spelled}>.") == "at <***>."
            assert mask.reply(f"at <{spelled}>.") == "at <***>."


def test_what_is_named_a_secret_stays_out_of_replies() -> None:
    """A header or parameter with a secret's name, however ordinary; the key from four characters on, by itself."""
    settings: dict[str, Any] = {
        "headers": {"X-Api-Key": "correct-horse-battery", "X-Region": "cn-hangzhou"},
        "body": {"user_pass": "open sesame now", "auth": {"pin": 48151623}},
    }
    given = Endpoint(base_url="http://host/v1", model="m", **settings)
    mask = Mask(given.secrets(), "k7Qz", given.certain_secrets())
    said = "correct-horse-battery cn-hangzhou open sesame now 48151623 k7Qz k7Qzz"
    assert mask.reply(said) == "*** cn-hangzhou *** *** *** k7Qzz"
    assert Mask((), "EMPTY").reply("EMPTY shelves") == "EMPTY shelves"


@pytest.mark.parametrize("sent", [b"junk\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", b""])
async def test_a_broken_answer_tells_nothing_of_the_address(sent: bytes) -> None:
    """The HTTP library quotes the address in its errors; ours say in their own words what happened."""
    with Loopback(Wire((sent,))) as server:
        given = endpoint(server, base_url=f"{server.url}?sig=9b+9Xk2/efGH34==&u=a%2Bb")
        judge = ChatJudge(given, Prompts.shipped(), key=SecretStr(KEY))
        told = await judge.answer(ASK)
        await judge.aclose()
    assert isinstance(told, Unjudged)
    assert "9Xk2" not in told.detail
    assert "url" not in told.detail
    assert "sig" not in told.detail


async def test_a_redirect_tells_nothing_of_the_address() -> None:
    """Whatever spelling the server prefers."""
    for place in ("/other?sig=9b%2b9Xk2%2fefGH34", "https://me:9Xk2@host/v1", "/9b%2b9Xk2%2fefGH34%3d%3d/"):
        with Loopback(Status(302, headers={"Location": place})) as server:
            given = endpoint(server, base_url=f"{server.url}?sig=9b+9Xk2/efGH34==")
            judge = ChatJudge(given, Prompts.shipped())
            with pytest.raises(JudgeError) as told:
                await judge.answer(ASK)
            await judge.aclose()
        assert "redirects to" in str(told.value)
        assert "9Xk2" not in str(told.value)


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:pa#ss9Xk2@127.0.0.1:9",
        "http://user:pa/ss9Xk2@127.0.0.1:9",
        "http://user:pa?ss9Xk2@127.0.0.1:9",
        "http://user:12/ss9Xk2@127.0.0.1:9",
        "user:ss9Xk2@127.0.0.1:9",
        "http://user:pa[ss9Xk2@127.0.0.1:9",
        "http://user:ss9Xk2@127.0.0.1:port",
        "http://user:ss9Xk2@",
        "socks5://user:ss9Xk2@127.0.0.1:9",
    ],
)
def test_an_address_with_a_broken_password_is_refused(proxy: str) -> None:
    """As a proxy and as an endpoint; the error says what to write and does not quote it."""
    with pytest.raises(ValidationError, match="percent-encoded") as refused:
        Endpoint(base_url="http://host/v1", model="m", proxy=proxy)
    with pytest.raises(ValidationError) as refused_too:
        Endpoint(base_url=f"{proxy}/v1", model="m")
    for error in (refused, refused_too):
        for part in ("9Xk2", "pa#", "'pa", "port'"):
            assert part not in str(error.value)


def test_ordinary_words_stay_in_replies() -> None:
    """A judge may quote them from the answer; the key is masked whatever it looks like."""
    mask = Mask(["cn-hangzhou", "customer support", "3f9ac81b-2d"], key="correct-horse")
    quote = "cn-hangzhou customer support 3f9ac81b-2d correct-horse"
    assert mask.reply(quote) == "cn-hangzhou customer support *** ***"
    assert mask(quote) == "*** *** *** ***"


def endpoint(server: Loopback, **more: Any) -> Endpoint:
    settings: dict[str, Any] = {
        "base_url": f"{server.url}?key={QUERY}",
        "headers": {"X-Team": TOKEN, "Accept-Language": "en"},
        "body": {"extra": {"client_secret": BODY}},
        "retries": 0,
    }
    return server.endpoint(**(settings | more))


def quoted(request: Request) -> str:
    """What a talkative server says back."""
    return f"en {request.headers} {QUERY} {request.body} {base64.b64encode(PROXY.encode()).decode()}"


def secrets_in(text: object) -> list[str]:
    return [secret for secret in (KEY, TOKEN, QUERY, BODY, PROXY, "p%40ss%3Aword-77") if secret in str(text)]


@pytest.mark.parametrize("status", [200, 400, 401, 413, 429, 500, 503])
async def test_nothing_that_a_server_quotes_is_told(status: int) -> None:
    """Errors of every kind, whether they end an ask or the run."""
    with Loopback() as server:
        server.reply_for = lambda request: (
            Status(status, quoted(request)) if status != 200 else Raw(quoted(request).encode())
        )
        judge = ChatJudge(endpoint(server), Prompts.shipped(), key=SecretStr(KEY))
        try:
            told: object = await judge.answer(ASK)
        except JudgeError as error:
            told = error
        await judge.aclose()
    assert "***" in str(told)
    assert secrets_in(told) == []


@pytest.mark.parametrize("before", range(280, 305))
async def test_a_secret_at_the_end_of_a_line_is_not_half_told(before: int) -> None:
    """An error is cut to a line after its secrets are masked, not before."""
    with Loopback(Raw(b"x" * before + KEY.encode(), "text/html")) as server:
        judge = ChatJudge(endpoint(server), Prompts.shipped(), key=SecretStr(KEY))
        told = await judge.answer(ASK)
        await judge.aclose()
    assert KEY[:4] not in str(told)


async def test_a_reply_that_quotes_the_key_is_kept_without_it() -> None:
    """In its words and in its data."""
    with Loopback() as server:
        server.reply_for = lambda request: {
            "atoms": [{"id": 1, "text": f"the key is {request.headers['Authorization']}"}]
        }
        judge = ChatJudge(endpoint(server), Prompts.shipped(), key=SecretStr(KEY))
        reply = await judge.answer(ASK)
        batched = judge.read_completion(ASK, Say({"atoms": [{"id": 1, "text": KEY}]}).completion("m", nonce(ASK)))
        await judge.aclose()
    for found in (reply, batched):
        assert isinstance(found, Reply)
        assert "***" in found.raw
        assert secrets_in(found.model_dump_json()) == []


async def test_a_key_in_escaped_letters_is_masked() -> None:
    """JSON may write any letter as its number: then the body does not hold the key, and the texts in it do."""
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    with Loopback() as server:
        said = Say({"atoms": [{"id": 1, "text": KEY}]}).completion("m", nonce(ASK))
        server.reply_for = lambda request: Raw(json.dumps(said).replace(KEY, escaped).encode())
        judge = ChatJudge(endpoint(server), Prompts.shipped(), key=SecretStr(KEY))
        reply = await judge.answer(ASK)
        await judge.aclose()
    assert isinstance(reply, Reply)
    assert "***" in reply.raw
    assert secrets_in(reply.model_dump_json()) == []


async def test_a_proxys_password_is_not_told() -> None:
    """Neither as it stands in the address, nor as the proxy is told it, nor where the proxy cannot be reached."""
    with Loopback() as server:
        server.reply_for = lambda request: Status(500, f"{request.headers['Proxy-Authorization']} p@ss:word-77")
        address = server.url.removesuffix("/v1").replace("http://", "http://me:p%40ss%3Aword-77@")
        given = endpoint(server, base_url="http://judge.invalid/v1", proxy=address, backoff=0)
        judge = ChatJudge(given, Prompts.shipped())
        told = await judge.answer(ASK)
        await judge.aclose()
    assert isinstance(told, Unjudged)
    assert "Basic ***" in told.detail
    judge = ChatJudge(given, Prompts.shipped())
    with pytest.raises(JudgeError) as gone:
        await judge.answer(ASK)
    await judge.aclose()
    encoded = base64.b64encode(b"me:p@ss:word-77").decode()
    for text in (told.detail, str(gone.value), repr(given)):
        assert secrets_in(text) == []
        assert encoded not in text


def test_settings_are_shown_without_secrets() -> None:
    """In a manifest, in a repr, and in what pydantic says of a mistake."""
    with Loopback() as server:
        given = endpoint(server, proxy=f"http://me:{PROXY}@proxy:8080")
    judge = ChatJudge(given, Prompts.shipped(), key=SecretStr(KEY))
    assert secrets_in(f"{given!r} {given} {judge.describe()}") == []
    with pytest.raises(ValidationError) as refused:
        Endpoint(base_url=f"https://me:{BODY}@host/v1", model="m")
    assert secrets_in(refused.value) == []


def test_a_run_of_an_earlier_version_is_still_the_same_run() -> None:
    """Its manifest holds the parameters as they were; only what is not secret is compared."""
    then = {"base_url": "http://host/v1?key=hidden", "body": {"api_key": "old", "seed": 1}}
    today = {"base_url": "http://host/v1?key=hidden", "body": {"api_key": "hidden", "seed": 1}}
    assert differing(then, today) == []
    assert differing(then, {**today, "body": {"api_key": "hidden", "seed": 2}}) == ["body"]


def test_the_command_line_shows_none(steelyard: Steelyard) -> None:
    """The list of judges, a dry run, a run with --debug that fails, and its manifest."""
    with fact_server(key="other") as server:
        Path("steelyard.toml").write_text(
            f'[judges.mine]\nmodel = "m"\nretries = 0\nkey_env = "MY_KEY"\nbase_url = "{server.url}?key={QUERY}"\n'
            f'headers = {{"X-Team" = "{TOKEN}"}}\nbody = {{client_secret = "{BODY}"}}\n'
            f'[judges.wrong]\nmodel = "m"\nbase_url = "https://me:{PROXY}@host/v1"\n',
            encoding="utf-8",
        )
        samples = facts(Path("facts.jsonl"), 2)
        words = [
            ["judges"],
            ["run", samples, "-p", "atomic", "-j", "mine", "--dry-run"],
            ["run", samples, "-p", "atomic", "-j", "mine"],
            ["judges", "check", "mine"],
            ["runs", "show"],
        ]
        for command in words:
            done = steelyard(*command)
            assert secrets_in(done.out + done.err) == [], command
        refused = steelyard("run", samples, "-p", "atomic", "-j", "wrong")
    assert refused.code == 2
    assert secrets_in(refused.err) == []
