"""Providers by name: each is asked as its documentation says, and its answers, errors and limits are understood."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from yarl import URL

from command import Steelyard, facts, judge_plainly, lines_of
from endpoint import Raw, Status
from provider_stub import AWS, CACHED, COMPLETION, KEY, PROMPT, WRITTEN, ProviderStub, Told, check_strict, subschemas
from steelyard.errors import ConfigError, JudgeError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.answers import room_in
from steelyard.judges.chat import ChatJudge
from steelyard.judges.check import QUESTIONS
from steelyard.judges.dialects import dialect_of
from steelyard.judges.dialects.generate import openapi_schema
from steelyard.judges.endpoint import Endpoint, Price
from steelyard.judges.payload import reported_error
from steelyard.judges.providers import VARIABLE, Provider, providers
from steelyard.judges.schema import strict_schema
from steelyard.judges.sigv4 import Signer
from steelyard.judges.terms import Terms
from steelyard.prompts import nonce
from steelyard.records import Ask, Reply, Unjudged, Usage
from steelyard.settings import Settings
from steelyard.store import Store
from steelyard.tasks import AtomicReply, ComplianceReply, GroundedReply, ScorecardReply, SplitData, SplitReply

GOOD = {"atoms": [{"id": 1, "text": "It opens at nine.", "causal_of": None}]}
ASK = Ask(task="atomic.split", language="en", data=SplitData(question="When?", answer="At nine."), reply=SplitReply)
JUDGED = Ask(task="atomic.judge", language="en", data=QUESTIONS["en"], reply=AtomicReply)
NAMES = list(providers())
NATIVE = [name for name, provider in providers().items() if provider.wire != "chat"]


def made(server: ProviderStub, table: dict[str, Any] | None = None, **environment: str) -> ChatJudge:
    """The judge as `-j PROVIDER:MODEL` makes it, impatient enough for tests."""
    settings = server.settings(**environment)
    given = {"kind": server.provider.name, "model": server.model, "backoff": 0.01, "timeout": 5, **(table or {})}
    judge = JudgeFactory(settings)._from_table(server.provider.name, given, None)
    assert isinstance(judge, ChatJudge)
    return judge


async def answered(judge: ChatJudge, ask: Ask = ASK) -> Reply | Unjudged:
    try:
        return await judge.answer(ask)
    finally:
        await judge.aclose()


# --- a call that goes well -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
async def test_each_is_asked_as_it_documents(name: str) -> None:
    """Address, headers, key and body are those of its documentation, the strictest structured output first; tokens are
    counted with those that came from its cache."""
    with ProviderStub(name, GOOD) as server:
        judge = JudgeFactory(server.settings()).judge(server.judge)
        assert isinstance(judge, ChatJudge)
        found = await answered(judge)
    assert isinstance(found, Reply), found
    assert found.data == SplitReply.model_validate(GOOD)
    assert found.usage == Usage(
        calls=1, prompt_tokens=PROMPT, completion_tokens=COMPLETION, cached_tokens=CACHED, cost=found.usage.cost
    )
    assert (judge.name, judge.structured) == (server.judge, server.provider.structured[0])


@pytest.mark.parametrize("name", NAMES)
async def test_each_steps_down_to_what_the_model_takes(name: str) -> None:
    """A model without structured output is asked in the lesser modes, down to plain text; the reply's code still
    decides what is read."""
    modes = providers()[name].structured
    with ProviderStub(name, GOOD, accepts=("text",)) as server:
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert (judge.structured, len(server.requests)) == ("text", len(modes))


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
async def test_a_tool_stands_for_the_shape_where_there_is_no_format(name: str) -> None:
    """Older models are made to call a tool whose input is the reply."""
    with ProviderStub(name, GOOD, accepts=("tool", "text")) as server:
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert judge.structured == "tool"


@pytest.mark.parametrize("name", NAMES)
async def test_a_bad_reply_is_asked_for_again_in_each_form(name: str) -> None:
    """The correction continues the conversation in the provider's roles; an empty reply leaves no empty turn."""
    with ProviderStub(name, GOOD) as server:
        server.script(Told('{"atoms": 3}'), Told(""))
        found = await answered(made(server))
    assert isinstance(found, Reply), found
    assert found.usage.calls == 3


async def test_bedrock_is_signed_where_there_is_no_key() -> None:
    """With an access key, the signature covers path, date, session token and the body that arrived."""
    with ProviderStub(
        "bedrock", GOOD, signed=True, model="arn:aws:bedrock:eu-west-1:1:inference-profile/eu.amazon.nova"
    ) as server:
        assert isinstance(await answered(made(server)), Reply)


SUITE_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SUITE_TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwth"
    "Ax7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAki"
    "Y9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)


@pytest.mark.parametrize(
    ("service", "token", "url", "body", "signature"),
    [
        # post-vanilla and post-sts-header-before of the published test suite for Signature Version 4.
        (
            "service", "", "https://example.amazonaws.com/", b"",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "service", SUITE_TOKEN, "https://example.amazonaws.com/", b"",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
        # A model id with a colon, as botocore 1.x signs it.
        (
            "bedrock", "", "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-lite-v1%3A0/converse",
            b'{"a":1}', "9fb52648c1354b932a075be51c4e99c69e6f1458012766142d3f3bd6e7f0c44a",
        ),
    ],
)  # fmt: skip
def test_signatures_are_those_of_amazon(service: str, token: str, url: str, body: bytes, signature: str) -> None:
    """The published examples, and one that botocore made."""
    signer = Signer("AKIDEXAMPLE", SecretStr(SUITE_SECRET), "us-east-1", service, SecretStr(token) if token else None)
    headers = signer.headers(URL(url, encoded=True), body, datetime(2015, 8, 30, 12, 36, tzinfo=UTC))
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert headers["x-amz-date"] == "20150830T123600Z"


async def test_what_is_written_to_the_cache_costs_more() -> None:
    """Tokens read from the cache and those written to it have prices of their own."""
    price = Price(prompt=1.0, completion=5.0, cached=0.1, written=1.25)
    with ProviderStub("anthropic", GOOD) as server:
        found = await answered(made(server, {"price": price.model_dump()}))
    fresh = PROMPT - CACHED - WRITTEN
    expected = (fresh * 1.0 + CACHED * 0.1 + WRITTEN * 1.25 + COMPLETION * 5.0) / 1e6
    assert found.usage.cost == pytest.approx(expected)


@pytest.mark.parametrize("reply", [SplitReply, AtomicReply, GroundedReply, ScorecardReply, ComplianceReply])
def test_every_reply_has_a_shape_that_gemini_knows(reply: Any) -> None:
    """No null types, no other properties, strings as enums; the order of properties is kept."""
    known = ("type", "nullable", "enum", "items", "properties", "required", "propertyOrdering", "anyOf")
    check_strict(strict_schema(reply))
    for schema in subschemas(openapi_schema(strict_schema(reply))):
        assert schema.keys() <= set(known)
        assert schema.get("type") in ("object", "array", "string", "integer", "number", "boolean", None)
        assert schema.get("propertyOrdering") == (list(schema["properties"]) if "properties" in schema else None)


def of_gemini(text: str) -> dict[str, Any]:
    return {"logprobsResult": {"chosenCandidates": [{"token": text, "logProbability": math.log(0.5)}]}}


def of_ollama(text: str) -> dict[str, Any]:
    return {"logprobs": [{"token": text, "logprob": math.log(0.5)}]}


@pytest.mark.parametrize(("name", "extra"), [("gemini", of_gemini), ("ollama", of_ollama)])
async def test_probabilities_of_tokens_become_confidence(name: str, extra: Any) -> None:
    """Where the native form gives them, under its own names."""
    atoms = [{"id": 1, "label": "correct", "level": 1, "reference": 0, "quote": "at nine", "reason": "said"}]
    text = json.dumps({"code": nonce(JUDGED), "atoms": atoms, "fallback": False})
    with ProviderStub(name) as server:
        server.script(Told(text, extra=extra(text)))
        found = await answered(made(server, {"logprobs": True}), JUDGED)
    assert isinstance(found, Reply), found
    assert found.data.atoms[0].confidence == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
async def test_without_probabilities_none_are_asked_for(name: str) -> None:
    """These APIs have none; asking would be refused."""
    with ProviderStub(name, GOOD) as server:
        assert isinstance(await answered(made(server, {"logprobs": True})), Reply)


# --- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("gemini", lambda body: body["generationConfig"]["maxOutputTokens"]),
        ("bedrock", lambda body: body["inferenceConfig"]["maxTokens"]),
        ("ollama", lambda body: body["options"]["num_predict"]),
        ("anthropic", lambda body: body["max_tokens"]),
        ("qwen", lambda body: body["max_tokens"]),
        ("mistral", lambda body: body["max_tokens"]),
    ],
)
def test_parameters_have_one_name_and_find_their_place(name: str, place: Any) -> None:
    """`body` takes the usual names everywhere; anything else is passed on, and merged with what is there."""
    provider = providers()[name]
    endpoint = Endpoint(provider=name, base_url="http://host", model="m", body={"max_tokens": 77, "x": {"y": 1}})
    body = dialect_of(endpoint).settings(ASK, Terms(provider.structured[0]))
    assert place(body) == 77
    assert body["x"] == {"y": 1}


def test_parameters_that_a_provider_spells_otherwise() -> None:
    """Mistral refuses `seed`, which it calls `random_seed`; MiniMax a temperature of 0."""
    mistral = Endpoint(provider="mistral", base_url="http://host", model="m", body={"seed": 7})
    body = dialect_of(mistral).settings(ASK, Terms("text"))
    assert body == {"model": "m", "temperature": 0, "random_seed": 7}
    minimax = Endpoint(provider="minimax", base_url="http://host", model="m")
    assert dialect_of(minimax).settings(ASK, Terms("text")) == {
        "model": "m", "temperature": 0.01, "reasoning_split": True,
    }  # fmt: skip


def minimax_error(code: int, said: str) -> Raw:
    """An error in an HTTP 200, beside a completion that is none."""
    return Raw(json.dumps({"choices": None, "base_resp": {"status_code": code, "status_msg": said}}).encode())


@pytest.mark.parametrize(
    ("code", "said", "advice"),
    [(2049, "invalid api key", "refused the key"), (1008, "insufficient balance", "no balance")],
)
async def test_minimax_says_beside_a_success_that_it_is_none(code: int, said: str, advice: str) -> None:
    """`base_resp` with a status of its own in an HTTP 200 is read as the error that it is."""
    with ProviderStub("minimax", GOOD) as server:
        server.script(minimax_error(code, said))
        with pytest.raises(JudgeError, match=advice) as caught:
            await answered(made(server))
    assert f"{said} [{code}]" in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "said", "mode"),
    [(1002, "rate limit", "json_object"), (2013, "invalid params, response_format", "text")],
)
async def test_minimax_is_asked_again_after_an_error_in_a_success(code: int, said: str, mode: str) -> None:
    """A rate limit is waited for; a parameter that it does not take is left out."""
    with ProviderStub("minimax", GOOD) as server:
        server.script(minimax_error(code, said))
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert (judge.structured, len(server.requests)) == (mode, 2)


async def test_minimax_moderates_one_text() -> None:
    """That fails only its sample."""
    with ProviderStub("minimax", GOOD) as server:
        server.script(minimax_error(1026, "input new_sensitive"))
        found = await answered(made(server))
    assert isinstance(found, Unjudged)
    assert (found.reason, "input new_sensitive" in found.detail) == ("refused", True)


async def test_groq_fails_to_write_json() -> None:
    """A model that cannot keep to the schema gets a 400 of its own; it is asked for plain JSON then."""
    with ProviderStub("groq", GOOD) as server:
        failed = {
            "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
            "type": "invalid_request_error", "code": "json_validate_failed", "failed_generation": "{",
        }  # fmt: skip
        server.script(Status(400, body=json.dumps({"error": failed})))
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert judge.structured == "json_object"


def test_native_parameters_are_merged() -> None:
    """What a user puts into a part of the body stands beside what Steelyard puts there."""
    body = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}
    endpoint = Endpoint(provider="gemini", base_url="http://host", model="m", body=body)
    config = dialect_of(endpoint).settings(ASK, Terms("json_schema"))["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 0}
    assert (config["temperature"], config["responseMimeType"]) == (0, "application/json")


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "nobody"},
        {"provider": "anthropic", "body": {"system": "be kind"}},
        {"provider": "gemini", "body": {"contents": []}},
        {"provider": "deepseek", "structured": "tool"},
        {"provider": "anthropic", "structured": "json_object"},
    ],
    ids=str,
)
def test_settings_that_a_provider_cannot_take_are_refused(wrong: dict[str, Any]) -> None:
    """Where they are made, by name."""
    with pytest.raises(ValidationError):
        Endpoint(**({"base_url": "http://host", "model": "m"} | wrong))


def test_a_table_names_its_provider_by_kind(tmp_path: Path) -> None:
    """A second word for it would be ignored, so it is refused."""
    file = tmp_path / "steelyard.toml"
    file.write_text('[judges.mine]\nprovider = "gemini"\nmodel = "m"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"judges\.mine\.provider: .* kind"):
        JudgeFactory(Settings.load(file, {})).judge("mine")


async def test_a_refused_default_is_left_out() -> None:
    """A model that wants nothing to do with the provider's default is asked without it from then on."""
    with ProviderStub("qwen", GOOD, refuses="enable_thinking") as server:
        judge = made(server)
        assert isinstance(await judge.answer(ASK), Reply)
        assert isinstance(await answered(judge), Reply)
    assert judge.without == {"enable_thinking"}
    assert ["enable_thinking" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropic", "`temperature` is deprecated for this model."),
        ("moonshot", "invalid temperature: only 1 is allowed for this model"),
    ],
)
async def test_sampling_that_a_model_has_fixed_is_left_out(name: str, said: str) -> None:
    """Claude and Kimi models refuse a temperature of 0, each in its own words; it is not sent again."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    with ProviderStub(name, GOOD) as server:
        server.script(Status(400, body=json.dumps(body)))
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert (judge.without, judge.structured) == ({"temperature"}, "json_schema")


async def test_a_route_without_structured_output_steps_down() -> None:
    """OpenRouter answers 404 where no host of the model takes all parameters; that is not a missing model."""
    with ProviderStub("openrouter", GOOD) as server:
        said = "No endpoints found that can handle the requested parameters."
        server.script(Status(404, body=json.dumps({"error": {"code": 404, "message": said}})))
        judge = made(server)
        assert isinstance(await answered(judge), Reply)
    assert judge.structured == "json_object"


def test_each_has_its_addresses() -> None:
    """The provider's own, or the one that the environment names; of Azure the deployment and the version."""
    azure = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}

    def address(name: str, model: str, **environment: str) -> str | None:
        return providers()[name].address(model, environment)

    assert address("deepseek", "m") == "https://api.deepseek.com"
    assert address("deepseek", "m", DEEPSEEK_BASE_URL="http://gateway/v1/") == "http://gateway/v1"
    assert address("ollama", "m", OLLAMA_HOST="10.0.0.7:11434") == "http://10.0.0.7:11434"
    assert address("bedrock", "m", AWS_DEFAULT_REGION="eu-west-1") == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    root = "https://mine.openai.azure.com/openai/deployments/my%20gpt?api-version="
    assert address("azure", "my gpt", **azure) == f"{root}2024-10-21"
    assert address("azure", "my gpt", **azure, OPENAI_API_VERSION="2025-01-01") == f"{root}2025-01-01"
    for name, variable in (("azure", "AZURE_OPENAI_ENDPOINT"), ("bedrock", "AWS_DEFAULT_REGION")):
        with pytest.raises(ConfigError, match=f"set {variable}"):
            JudgeFactory(Settings.load(environment={})).judge(f"{name}:m")


@pytest.mark.parametrize(
    ("provider", "given", "url"),
    [
        ("anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://gateway/anthropic/v1/messages", "https://gateway/anthropic/v1/messages"),
        ("ollama", "http://localhost:11434/v1", "http://localhost:11434/api/chat"),
        ("azure", "https://a.openai.azure.com/openai/v1", "https://a.openai.azure.com/openai/v1/chat/completions"),
        ("gemini", "https://host/v1beta", "https://host/v1beta/models/m:generateContent"),
    ],
)
def test_addresses_are_understood_as_people_paste_them(provider: str, given: str, url: str) -> None:
    """With the version, with the whole path, or in another form's way."""
    assert dialect_of(Endpoint(provider=provider, base_url=given, model="m")).url == url


@pytest.mark.parametrize("name", NAMES)
def test_a_name_without_a_model_gets_an_example(name: str) -> None:
    """One that can be copied."""
    with pytest.raises(ConfigError, match="needs a model") as caught:
        JudgeFactory(Settings.load(environment={})).judge(f"{name}:")
    assert f"-j {name}:{providers()[name].example}" in str(caught.value)


# --- keys ------------------------------------------------------------------------------------------

PUBLIC = {
    "azure": {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"},
    "bedrock": {"AWS_REGION": "us-east-1"},
}


@pytest.mark.parametrize("provider", [one for one in providers().values() if one.needs_key], ids=lambda one: one.name)
async def test_without_a_key_nothing_is_sent(provider: Provider) -> None:
    """The message says which variable to set and where a key is to be had; no host is looked up."""
    settings = Settings.load(environment=PUBLIC.get(provider.name, {}))
    judge = JudgeFactory(settings).judge(f"{provider.name}:{provider.example}")
    assert isinstance(judge, ChatJudge)
    with pytest.raises(JudgeError) as caught:
        await answered(judge)
    assert f"there is no key: set {provider.key[0]}" in str(caught.value)
    assert provider.key_url in str(caught.value)


async def test_a_local_server_needs_no_key() -> None:
    """Ollama and vLLM are asked without one."""
    for name in ("ollama", "vllm"):
        settings = Settings.load(environment={VARIABLE.findall(providers()[name].url[0])[0]: "http://127.0.0.1:9"})
        judge = JudgeFactory(settings).judge(f"{name}:m")
        assert isinstance(judge, ChatJudge)
        assert not judge.endpoint.row.asks_for_key("127.0.0.1")
        await judge.aclose()


@pytest.mark.parametrize("name", NAMES)
def test_a_key_stays_with_its_provider(name: str, tmp_path: Path) -> None:
    """A judge of the settings whose address is elsewhere gets no key unless its table names the variable."""
    file = tmp_path / "steelyard.toml"
    file.write_text(f'[judges.mine]\nkind = "{name}"\nmodel = "m"\nbase_url = "https://elsewhere.example"\n', "utf-8")
    provider = providers()[name]
    environment = {provider.key[0]: KEY, **AWS, **PUBLIC.get(name, {})}
    judge = JudgeFactory(Settings.load(file, environment)).judge("mine")
    assert isinstance(judge, ChatJudge)
    assert judge.endpoint.key_env is None
    assert judge._wire._signer is None
    assert KEY not in str(judge._wire._headers)


def test_the_first_variable_that_is_set_holds_the_key() -> None:
    """Where a provider's key has several usual names."""
    gemini, bedrock = providers()["gemini"], providers()["bedrock"]
    assert gemini.key_choice({}) == ("GEMINI_API_KEY", False)
    assert gemini.key_choice({"GOOGLE_API_KEY": "k"}) == ("GOOGLE_API_KEY", True)
    assert bedrock.key_choice(AWS) == ("AWS_ACCESS_KEY_ID", True)
    assert bedrock.key_choice({**AWS, "AWS_BEARER_TOKEN_BEDROCK": "k"}) == ("AWS_BEARER_TOKEN_BEDROCK", True)


# --- errors ----------------------------------------------------------------------------------------


def gemini_error(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


ERRORS = lines_of(Path(__file__).parent / "fixtures" / "provider_errors.jsonl")
"""Errors in each provider's documented form, and what becomes of them."""


def errors(*outcomes: str) -> Any:
    chosen = [row for row in ERRORS if row["outcome"] in outcomes]
    names = [f"{row['provider']}-{row['status']}-{place}" for place, row in enumerate(chosen)]
    return pytest.mark.parametrize("error", chosen, ids=names)


def scripted(error: dict[str, Any]) -> Status:
    return Status(error["status"], body=json.dumps(error["body"], ensure_ascii=False), headers=error.get("headers", {}))


@errors("unusable")
async def test_what_makes_a_judge_unusable_is_said_with_what_to_do(error: dict[str, Any]) -> None:
    """Key, model and account: one line with advice and the provider's own words, after one call."""
    with ProviderStub(error["provider"]) as server:
        server.script(scripted(error))
        with pytest.raises(JudgeError) as caught:
            await answered(made(server))
    said = str(caught.value)
    assert error["says"] in said
    assert f"HTTP {error['status']}" in said
    assert "\n" not in said
    assert len(server.requests) == 1


@errors("rejected", "refused")
async def test_what_is_about_one_text_fails_only_that(error: dict[str, Any]) -> None:
    """A text too long for the model, or one that the provider's moderation stops, is a value; nothing is retried."""
    with ProviderStub(error["provider"]) as server:
        server.script(scripted(error))
        found = await answered(made(server, {"structured": server.provider.structured[0]}))
    assert isinstance(found, Unjudged), found
    assert (found.reason, error["says"] in found.detail) == (error["outcome"], True), found
    assert len(server.requests) == 1


@errors("retried")
async def test_what_time_may_mend_is_tried_again(error: dict[str, Any]) -> None:
    """Rate limits and overload in each provider's form; what looks like an empty account but is none, too."""
    with ProviderStub(error["provider"], GOOD) as server:
        server.script(scripted(error))
        found = await answered(made(server))
    assert isinstance(found, Reply), found
    assert len(server.requests) == 2


def test_googles_pause_is_read_from_the_body() -> None:
    """Gemini says how long to wait in the details of the error, not in a header."""
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"}
    told = reported_error(gemini_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded", {"violations": []}, retry))
    assert told.retry_after == pytest.approx(34.07, abs=0.01)
    assert told.message == "Quota exceeded [RESOURCE_EXHAUSTED]"
    for odd in ("34", "s", "1e9s", "-3s", None, 7):
        assert reported_error(gemini_error(429, "X", "y", {"retryDelay": odd})).retry_after is None


def test_rate_headers_of_each_provider() -> None:
    """A duration (OpenAI), seconds (Azure), a moment (Anthropic); only where nothing is left."""
    soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    assert room_in({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"}) == 90
    assert room_in({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12"}) == 12
    spent = {"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": soon}
    assert 25 < room_in(spent) <= 30
    assert room_in(spent | {"anthropic-ratelimit-input-tokens-remaining": "1000"}) == 0
    assert room_in({"ratelimitbysize-remaining": "0", "ratelimitbysize-reset": "34"}) == 34  # Mistral
    assert room_in({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s"}) == 179.56  # Groq
    for odd in ("T", "2026-99-99T00:00:00Z", "nan", "-5", "inf", ""):
        assert room_in({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": odd}) == 0


async def test_nothing_left_at_anthropic_holds_calls_back() -> None:
    """The next call begins only when the header says that there is room."""
    with ProviderStub("anthropic", GOOD) as server:
        judge = made(server)
        soon = (datetime.now(UTC) + timedelta(seconds=0.4)).isoformat()
        headers = {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": soon}
        server.script(Status(529, headers=headers))
        began = asyncio.get_running_loop().time()
        assert isinstance(await answered(judge), Reply)
        assert asyncio.get_running_loop().time() - began > 0.25


# --- endings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "word", "reason"),
    [
        ("anthropic", "max_tokens", "truncated"),
        ("anthropic", "model_context_window_exceeded", "truncated"),
        ("anthropic", "refusal", "refused"),
        ("gemini", "MAX_TOKENS", "truncated"),
        ("gemini", "SAFETY", "refused"),
        ("gemini", "OTHER", "server_error"),
        ("bedrock", "max_tokens", "truncated"),
        ("bedrock", "guardrail_intervened", "refused"),
        ("bedrock", "content_filtered", "refused"),
        ("ollama", "length", "truncated"),
        ("azure", "content_filter", "refused"),
        ("glm", "sensitive", "refused"),
        ("glm", "network_error", "server_error"),
        ("hunyuan", "sensitive", "refused"),
        ("mistral", "model_length", "truncated"),
        ("deepseek", "insufficient_system_resource", "server_error"),
        ("openrouter", "error", "server_error"),
    ],
)
async def test_endings_in_each_providers_words(name: str, word: str, reason: str) -> None:
    """A reply that was cut off, refused or given up is none, even if it parses."""
    with ProviderStub(name) as server:
        text = json.dumps({"code": nonce(ASK), **GOOD})
        server.script(Told(text, word))
        found = await answered(
            made(server, {"structured": "json_schema"} if name in ("anthropic", "bedrock") else None)
        )
    assert isinstance(found, Unjudged), found
    assert found.reason == reason
    assert found.usage.prompt_tokens == PROMPT


async def test_a_prompt_that_gemini_blocks_is_refused() -> None:
    """There is no candidate then, only feedback on the prompt."""
    with ProviderStub("gemini") as server:
        server.script(Raw(json.dumps({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}).encode()))
        found = await answered(made(server))
    assert isinstance(found, Unjudged)
    assert (found.reason, found.detail) == ("refused", "blockReason is PROHIBITED_CONTENT")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "payload",
    [{}, {"content": None}, {"candidates": [None]}, {"candidates": []}, {"output": {"message": None}}, {"message": 3}],
    ids=str,
)
def test_what_is_no_answer_is_a_server_error(name: str, payload: dict[str, Any]) -> None:
    """An envelope of another kind is neither a reply nor a crash."""
    judge = ChatJudge(Endpoint(provider=name, base_url="http://host", model="m"), Settings.load(environment={}).prompts)
    found = judge.read_completion(ASK, payload)
    assert isinstance(found, Unjudged)
    assert found.reason == "server_error"


# --- nothing secret is told ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "bedrock signed"])
async def test_no_provider_quotes_the_key_back(name: str) -> None:
    """Neither in errors, nor in replies, nor in what a manifest says, in whichever header the key went."""
    name, _, signed = name.partition(" ")
    secrets = [*AWS.values()][:3] if signed else [KEY]
    quoted = " ".join(secrets)
    with ProviderStub(name, signed=bool(signed)) as server:
        judge = made(server, {"retries": 0, "corrections": 0})
        server.script(
            Status(500, body=json.dumps({"error": {"message": f"bad {quoted}"}})),
            Told(json.dumps({"code": nonce(ASK), "atoms": [{"id": 1, "text": quoted, "causal_of": None}]})),
            Status(401, body=json.dumps({"message": f"the key {quoted} is wrong"})),
        )
        failed, replied = await judge.answer(ASK), await judge.answer(ASK)
        with pytest.raises(JudgeError) as caught:
            await answered(judge)
    assert isinstance(replied, Reply), replied
    told = f"{failed!r} {replied!r} {caught.value} {judge.describe()} {judge.endpoint!r} {judge!r} {judge._wire!r}"
    assert [secret for secret in secrets if secret in told] == []
    assert told.count("***") >= 3


# --- on the command line ---------------------------------------------------------------------------


def test_judges_lists_providers_and_their_keys(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the variable of its key and whether that is set; the key itself is not shown."""
    for variable in {*AWS, *(name for provider in providers().values() for name in provider.key)}:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    done = steelyard("judges")
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in done.out.splitlines() if ":MODEL" in line]
    shown = {row[0].removesuffix(":MODEL"): tuple(row[2:]) for row in rows}
    assert shown.keys() == set(NAMES)
    assert shown["deepseek"] == ("DEEPSEEK_API_KEY", "yes")
    assert shown["bedrock"] == ("AWS_BEARER_TOKEN_BEDROCK", "no")
    assert shown["ollama"] == ("OLLAMA_API_KEY", "optional")
    assert KEY not in done.out


@pytest.mark.parametrize("name", ["deepseek", *NATIVE])
def test_judges_check_works_for_each_form(name: str, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """`judges check PROVIDER:MODEL` asks three times and finds the judge fit."""
    with ProviderStub(name) as server:
        server.reply_for = judge_plainly
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        done = steelyard("judges", "check", server.judge, "--language", "en")
    assert (done.code, f"structured   {server.provider.structured[0]}" in done.out) == (0, True), done


def test_a_run_and_its_manifest(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's judge goes through a run; the manifest names the provider and holds no key; a dry run needs none."""
    samples = facts(Path("facts.jsonl"), 1)
    dry = steelyard("run", samples, "-p", "atomic", "-j", "anthropic:claude-haiku-4-5", "--dry-run")
    assert dry.code == 0, dry
    assert "2026-" in dry.out + dry.err
    with ProviderStub("anthropic") as server:
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        label = {"id": 1, "label": "correct", "level": 1, "reference": 0, "quote": "Fact 1 holds"}
        server.reply_for = lambda request: (
            {"atoms": [{"id": 1, "text": "Fact 1 holds."}]}
            if b"causal_of" in request.content
            else {"atoms": [label], "fallback": False}
        )
        done = steelyard("run", samples, "-p", "atomic", "-j", server.judge, "--progress", "quiet")
        assert done.code == 0, done
        shown = steelyard("runs", "show", "last")
    with Store.open(Path(".steelyard") / "store.db") as store:
        judged = store.run("last").manifest["judge"]
    assert (judged["provider"], judged["model"]) == ("anthropic", server.model)
    assert KEY not in f"{judged} {shown.out} {done.out} {done.err}"
    refused = steelyard("batch", "start", samples, "-p", "atomic", "-j", server.judge, "-o", "x.jsonl")
    assert (refused.code, "OpenAI's chat form" in refused.err) == (2, True)
