"""The judge over HTTP, against a real endpoint on loopback."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from endpoint import Close, Hang, Loopback, Raw, Request, Say, Status
from steelyard.errors import JudgeError
from steelyard.judges.base import Judge
from steelyard.judges.chat import ChatJudge
from steelyard.judges.dialects.chat import ChatDialect
from steelyard.judges.endpoint import Endpoint, Price
from steelyard.judges.limiter import Limiter
from steelyard.prompts import nonce
from steelyard.records import Ask, Reply, Unjudged, Usage
from steelyard.tasks import SplitData, SplitReply

GOOD = {"atoms": [{"id": 1, "text": "奥匈帝国存在于1867年至1918年", "causal_of": None}]}
SECRET = "sk-very-secret-0123456789"


class PlainPrompts:
    """The smallest prompts there can be."""

    def messages(self, ask: Ask) -> list[dict[str, str]]:
        user = f"{nonce(ask)}\n{ask.data.model_dump_json()}"
        return [{"role": "system", "content": ask.task}, {"role": "user", "content": user}]

    def identity(self, ask: Ask) -> str:
        return "plain"


def make_ask(answer: str = "奥匈帝国存在于1867年至1918年。", language: Any = "zh") -> Ask:
    data = SplitData(question="名字最长的国家？", answer=answer)
    return Ask(task="atomic.split", language=language, data=data, reply=SplitReply)


async def ask_once(
    server: Loopback, ask: Ask | None = None, key: str | None = None, **changes: Any
) -> Reply | Unjudged:
    judge = ChatJudge(server.endpoint(**changes), PlainPrompts(), key=SecretStr(key) if key else None)
    try:
        return await judge.answer(ask or make_ask())
    finally:
        await judge.aclose()


async def asked(server: Loopback) -> None:
    """Wait for the first request, however busy the machine."""
    for _ in range(6000):
        if server.requests:
            return
        await asyncio.sleep(0.01)


def replied(result: Reply | Unjudged) -> SplitReply:
    assert isinstance(result, Reply), result
    assert isinstance(result.data, SplitReply)
    return result.data


def failed(result: Reply | Unjudged, reason: str) -> Unjudged:
    assert isinstance(result, Unjudged), result
    assert result.reason == reason, result
    return result


@pytest.fixture
def server():
    with Loopback(GOOD) as running:
        yield running


# --- a call that goes well -------------------------------------------------------------------------


async def test_an_ask_becomes_one_request_and_a_reply(server: Loopback) -> None:
    """Model, messages, temperature 0 and the strict schema go out; the validated reply and its usage come back."""
    result = await ask_once(server)
    assert replied(result) == SplitReply.model_validate(GOOD)
    assert result.usage == Usage(calls=1, prompt_tokens=100, completion_tokens=20, cached_tokens=64)
    assert isinstance(result, Reply)
    assert json.loads(result.raw) == {"code": nonce(make_ask()), **GOOD}
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert (request.body["model"], request.body["temperature"]) == ("test-model", 0)
    assert (request.task, request.system) == ("atomic.split", "atomic.split")
    assert request.schema is not None
    assert request.schema["required"] == ["code", "atoms"]
    assert "Authorization" not in request.headers


async def test_key_headers_and_body_parameters_are_sent(server: Loopback) -> None:
    """What the user sets for the endpoint reaches it; the user's temperature wins."""
    server.key = SECRET
    body = {"temperature": 0.5, "max_tokens": 900, "enable_thinking": False}
    replied(await ask_once(server, key=f" {SECRET}\n", headers={"X-Team": "scales"}, body=body))
    (request,) = server.requests
    assert request.headers["X-Team"] == "scales"
    assert {name: request.body[name] for name in body} == body


def test_a_chat_judge_is_a_judge() -> None:
    """It satisfies the protocol and its name says which endpoint and model judged."""
    judge = ChatJudge(Endpoint(name="deepseek", base_url="http://localhost/v1", model="chat-v3"), PlainPrompts())
    assert isinstance(judge, Judge)
    assert judge.name == "deepseek:chat-v3"
    assert judge.structured is None


async def test_a_price_turns_tokens_into_cost(server: Loopback) -> None:
    """Cost is counted from the reported tokens, cached ones at their own price."""
    result = await ask_once(server, price=Price(prompt=1.0, cached=0.1, completion=2.0))
    assert result.usage.cost == pytest.approx((36 * 1.0 + 64 * 0.1 + 20 * 2.0) / 1e6)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (None, Usage(calls=1)),
        ({}, Usage(calls=1)),
        ({"prompt_tokens": None, "completion_tokens": "7"}, Usage(calls=1)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(calls=1, prompt_tokens=9)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(calls=1, prompt_tokens=9, cached_tokens=4)),
        ({"prompt_tokens": -1, "completion_tokens": 3}, Usage(calls=1, completion_tokens=3)),
    ],
)
async def test_usage_is_read_as_far_as_it_is_reported(
    server: Loopback, reported: dict[str, Any] | None, expected: Usage
) -> None:
    """A server that reports no, half or odd usage still counts as one call."""
    server.script(Say(GOOD, usage=reported))
    assert (await ask_once(server)).usage == expected


async def test_a_megabyte_of_text_and_half_characters_are_sent(server: Loopback) -> None:
    """Large bodies and lone surrogates neither warn nor fail."""

    class Broken(PlainPrompts):
        def messages(self, ask: Ask) -> list[dict[str, str]]:
            return [{"role": "user", "content": f"{nonce(ask)}\n" + "文" * 1_000_000 + "\ud83d"}]

    judge = ChatJudge(server.endpoint(), Broken())
    replied(await judge.answer(make_ask()))
    await judge.aclose()
    assert server.requests[0].user.endswith("\n" + "文" * 1_000_000 + "?")


# --- structured output -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepts", "settled", "calls"),
    [
        (("json_schema", "json_object", "text"), "json_schema", 1),
        (("json_object", "text"), "json_object", 2),
        (("text",), "text", 3),
        (("json_schema",), "json_schema", 1),
    ],
)
@pytest.mark.parametrize("error", ["response_format is unavailable now", "Bad Request"])
@pytest.mark.parametrize("status", [400, 422])
async def test_structured_output_is_negotiated_and_remembered(
    accepts: tuple[str, ...], settled: str, calls: int, error: str, status: int
) -> None:
    """The first ask steps down to what the server accepts, whatever its 400 says; later asks start there."""
    with Loopback(GOOD, accepts=accepts, format_error=error, format_status=status) as server:
        judge = ChatJudge(server.endpoint(), PlainPrompts())
        replied(await judge.answer(make_ask()))
        assert (judge.structured, len(server.requests)) == (settled, calls)
        replied(await judge.answer(make_ask("another")))
        assert len(server.requests) == calls + 1
        assert server.requests[-1].mode == settled
        await judge.aclose()


async def test_concurrent_first_asks_probe_once() -> None:
    """Fifty asks at once step down once, not fifty times."""
    with Loopback(GOOD, accepts=("text",), latency=0.02) as server:
        judge = ChatJudge(server.endpoint(), PlainPrompts(), limiter=Limiter(50))
        results = await asyncio.gather(*(judge.answer(make_ask(str(n))) for n in range(50)))
        await judge.aclose()
    assert all(isinstance(result, Reply) for result in results)
    assert [request.mode for request in server.requests[:3]] == ["json_schema", "json_object", "text"]
    assert len(server.requests) == 52


async def test_waiting_for_the_probe_has_an_end(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call that hangs does not hold up the others for long."""
    monkeypatch.setattr("steelyard.judges.chat.PROBE_SECONDS", 0.05)
    server.script(Hang())
    judge = ChatJudge(server.endpoint(timeout=60, retries=0), PlainPrompts())
    hanging = asyncio.create_task(judge.answer(make_ask("first")))
    await asked(server)
    replied(await asyncio.wait_for(judge.answer(make_ask("second")), 20))
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    await judge.aclose()


async def test_a_refusal_that_was_not_about_the_format_is_not_remembered(server: Loopback) -> None:
    """If stepping down does not help, the judge keeps its best mode."""
    server.script(*[Status(400, "bad request")] * 3)
    judge = ChatJudge(server.endpoint(), PlainPrompts())
    failed(await judge.answer(make_ask()), "rejected")
    replied(await judge.answer(make_ask("next")))
    assert judge.structured == "json_schema"
    await judge.aclose()


async def test_after_a_success_only_a_plain_word_steps_down(server: Loopback) -> None:
    """Once the mode works, an unexplained 400 is about that ask; one that names the schema is about the mode."""
    judge = ChatJudge(server.endpoint(), PlainPrompts())
    replied(await judge.answer(make_ask()))
    server.script(Status(400, "bad request"))
    failed(await judge.answer(make_ask()), "rejected")
    assert judge.structured == "json_schema"
    server.script(Status(400, "grammar failed to compile"))
    replied(await judge.answer(make_ask()))
    assert judge.structured == "json_object"
    await judge.aclose()


async def test_a_mode_the_user_fixed_stays() -> None:
    """With `structured` set there is no stepping down."""
    with Loopback(GOOD, accepts=("json_schema",), format_error="json_object is not supported") as server:
        result = await ask_once(server, structured="json_object")
        assert "json_object is not supported" in failed(result, "rejected").detail
        assert [request.mode for request in server.requests] == ["json_object"]


async def test_refused_parameters_are_dropped_and_remembered() -> None:
    """Reasoning models that refuse temperature, top_p and max_tokens are asked without, from then on."""
    with Loopback(GOOD, refuses_parameters=("temperature", "top_p", "max_tokens")) as server:
        judge = ChatJudge(server.endpoint(body={"top_p": 0.9, "max_tokens": 500}), PlainPrompts())
        replied(await judge.answer(make_ask()))
        assert judge.without == {"temperature", "top_p", "max_tokens"}
        replied(await judge.answer(make_ask()))
        assert len(server.requests) == 5
        assert server.requests[-1].body["max_completion_tokens"] == 500
        assert server.requests[-1].mode == "json_schema"
        await judge.aclose()


# --- replies that cannot be used -------------------------------------------------------------------


@pytest.mark.parametrize(("language", "words"), [("zh", "无法使用"), ("en", "cannot be used")])
async def test_an_invalid_reply_is_asked_for_once_more_with_what_was_wrong(
    server: Loopback, language: str, words: str
) -> None:
    """The second request continues the conversation: the bad reply, then the problem in the ask's language."""
    ask = make_ask(language=language)
    said = json.dumps({"code": nonce(ask), "atoms": [{"id": "one", "text": "x"}]})
    server.script(Say(f"<think>hm</think>{said}"), GOOD)
    result = await ask_once(server, ask)
    assert replied(result).atoms[0].id == 1
    assert result.usage == Usage(calls=2, prompt_tokens=200, completion_tokens=40, cached_tokens=128)
    first, second = server.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2] == {"role": "assistant", "content": said}
    assert words in second.user
    assert nonce(ask) in second.user
    assert "atoms[0].id" in second.user


async def test_a_judge_that_never_fits_is_unjudged(server: Loopback) -> None:
    """After the corrections the endpoint allows there is no further try; the last problem and the cost are kept."""
    server.script("I would rather talk about the weather.", '{"atoms": 3}', '{"atoms": 4}')
    result = failed(await ask_once(server, corrections=2), "invalid_reply")
    assert "atoms" in result.detail
    assert result.usage.calls == 3
    assert len(server.requests) == 3


async def test_broken_replies_in_a_row_lose_nothing(server: Loopback) -> None:
    """Each correction shows only the latest mistake, and the first reply that fits counts."""
    server.script('{"atoms": [{"id": 1, "te', "{", "[", GOOD)
    result = await ask_once(server)
    assert replied(result).atoms[0].id == 1
    assert result.usage.calls == 4
    assert [len(request.messages) for request in server.requests] == [2, 4, 4, 4]


async def test_without_a_schema_the_correction_shows_it() -> None:
    """In the modes without a schema a judge that erred is shown the shape."""
    with Loopback(accepts=("text",)) as server:
        server.reply_for = lambda request: GOOD if "additionalProperties" in request.user else "hm"
        replied(await ask_once(server))


@pytest.mark.parametrize("content", ["", None, "   ", []])
async def test_an_empty_reply_is_asked_for_again_without_an_empty_turn(server: Loopback, content: Any) -> None:
    """Servers refuse empty messages and two of the user in a row, so neither is sent; reasoning is never the reply."""
    server.script(Say(content, reasoning=json.dumps(GOOD)), GOOD)
    replied(await ask_once(server))
    system, asked = server.requests[1].messages
    assert (system["role"], asked["role"]) == ("system", "user")
    assert asked["content"].startswith(server.requests[0].messages[1]["content"])


async def test_a_message_in_parts_is_joined(server: Loopback) -> None:
    """Content may come as a list of text parts."""
    half = json.dumps(GOOD)
    server.script(Say([{"type": "text", "text": half[:9]}, {"type": "text", "text": half[9:]}]))
    replied(await ask_once(server))


async def test_a_cut_off_reply_is_truncated_even_if_it_parses(server: Loopback) -> None:
    """finish_reason=length is never data, and is not asked for again under the same limit."""
    server.script(Say(GOOD, finish_reason="length"))
    result = failed(await ask_once(server, body={"max_tokens": 20}), "truncated")
    assert "max_tokens" in result.detail
    assert result.usage.calls == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "behaviour",
    [
        Say(refusal="I cannot help with that."),
        Say(GOOD, finish_reason="content_filter"),
        Status(400, "Output data may contain inappropriate content.", "data_inspection_failed"),
        Status(400, "Content Exists Risk"),
    ],
)
async def test_refusals_are_what_they_are(server: Loopback, behaviour: Say | Status) -> None:
    """A refusal by the model or the vendor's moderation is `refused`, and asked once."""
    server.script(behaviour)
    failed(await ask_once(server), "refused")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "payload", [{}, {"choices": []}, {"choices": None}, {"choices": [{"message": None}]}, {"choices": ["x"]}]
)
async def test_a_completion_without_a_message_is_a_server_error(server: Loopback, payload: dict[str, Any]) -> None:
    """An envelope that is not a completion is the server's fault, not a reply."""
    server.script(Raw(json.dumps(payload).encode()))
    failed(await ask_once(server), "server_error")


# --- what goes wrong on the way --------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        *(Status(status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        Close(),
        Close(midway=True),
        Hang(),
        Raw(b"<html>Bad gateway</html>", "text/html"),
        Raw(b'{"choices": [{"mess'),
        Raw(b"[]"),
        Raw(b'{"error": {"message": "upstream overloaded", "code": 503}}'),
    ],
    ids=str,
)
async def test_what_time_may_mend_is_tried_again(server: Loopback, trouble: Any) -> None:
    """A passing trouble costs a retry, not the reply; only the answered call is counted."""
    server.script(trouble)
    result = await ask_once(server, timeout=0.3 if isinstance(trouble, Hang) else 60)
    replied(result)
    assert result.usage.calls == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (Status(429, "slow down"), "rate_limited"),
        (Status(503, "overloaded"), "server_error"),
        (Status(504), "timeout"),
        (Hang(), "timeout"),
        (Close(), "unreachable"),
        (Raw(b"hello"), "server_error"),
    ],
)
async def test_when_retries_are_used_up_the_reason_stays(server: Loopback, trouble: Any, reason: str) -> None:
    """After the last try the ask is unjudged, with what went wrong and how often it was tried."""
    server.script(*[trouble] * 3)
    # Only what hangs is given up soon: on a busy machine an answer may take its time.
    result = failed(await ask_once(server, timeout=0.2 if isinstance(trouble, Hang) else 60), reason)
    assert "tried 3 times" in result.detail
    assert len(server.requests) == 3


async def test_nobody_listening_stops_the_judge() -> None:
    """Where nothing accepts a connection, no ask can have an answer: that is said after five tries."""
    with Loopback() as server:
        endpoint = server.endpoint(retries=1)
    judge = ChatJudge(endpoint, PlainPrompts())
    with pytest.raises(JudgeError, match=r"no answer from 127\.0\.0\.1:\d+ in 5 tries"):
        await judge.answer(make_ask())
    await judge.aclose()


async def test_an_endpoint_that_goes_away_is_waited_for_longer() -> None:
    """One that has answered before may be restarting: ten tries, and when it is back, it is asked on."""
    with Loopback(GOOD) as server:
        judge = ChatJudge(server.endpoint(retries=1), PlainPrompts())
        replied(await judge.answer(make_ask()))
    with pytest.raises(JudgeError, match="in 10 tries"):
        await judge.answer(make_ask("else"))
    await judge.aclose()


async def test_connections_that_are_closed_without_an_answer(server: Loopback) -> None:
    """It may be this ask, so the others are asked on; after 25 tries in a row it is the endpoint."""
    judge = ChatJudge(server.endpoint(retries=4), PlainPrompts())
    server.script(*[Close()] * 20)
    for _ in range(4):
        failed(await judge.answer(make_ask()), "unreachable")
    replied(await judge.answer(make_ask()))
    server.script(*[Close()] * 25)
    for _ in range(4):
        failed(await judge.answer(make_ask("else")), "unreachable")
    with pytest.raises(JudgeError, match="in 25 tries"):
        await judge.answer(make_ask("else"))
    await judge.aclose()


async def test_an_endpoint_that_never_answers(server: Loopback) -> None:
    """Connections that hang count as those that are closed do; one answer to anybody, and it is the samples."""
    judge = ChatJudge(server.endpoint(retries=4, timeout=0.05), PlainPrompts())
    server.reply_for = lambda request: Hang(0.2)
    for _ in range(4):
        failed(await judge.answer(make_ask()), "timeout")
    with pytest.raises(JudgeError, match="in 25 tries"):
        await judge.answer(make_ask())
    server.reply_for = lambda request: Status(504)
    for _ in range(6):
        failed(await judge.answer(make_ask()), "timeout")
    await judge.aclose()


async def test_https_to_a_plain_server_stops_the_judge(server: Loopback) -> None:
    """A TLS handshake that fails again and again is no sample's fault."""
    with pytest.raises(JudgeError, match="no answer"):
        await ask_once(server, base_url=server.url.replace("http:", "https:"))


async def test_a_proxy_is_used_where_one_is_set(server: Loopback) -> None:
    """The endpoint's host is then the proxy's business."""
    proxy = server.url.removesuffix("/v1")
    replied(await ask_once(server, base_url="http://judge.invalid/v1", proxy=proxy))
    assert server.requests[0].headers["Host"] == "judge.invalid"


@pytest.mark.parametrize("header", [{"Retry-After": "0.3"}, {"retry-after-ms": "300"}])
async def test_retry_after_is_honoured(server: Loopback, header: dict[str, str]) -> None:
    """The pause is at least what the server asks for."""
    server.script(Status(429, headers=header))
    began = asyncio.get_running_loop().time()
    replied(await ask_once(server))
    assert asyncio.get_running_loop().time() - began >= 0.3


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "inf", "Thu, 01 Jan 1970 00:00:00 GMT"])
async def test_an_odd_retry_after_does_no_harm(server: Loopback, value: str) -> None:
    """What cannot be read, or lies in the past, is not waited for."""
    server.script(Status(503, headers={"Retry-After": value}))
    replied(await asyncio.wait_for(ask_once(server), 3))


async def test_a_retry_after_beyond_patience_stops_the_judge(server: Loopback) -> None:
    """Nobody waits an hour in silence, and nobody comes back earlier than asked."""
    server.script(Status(429, "daily limit", headers={"Retry-After": "7200"}))
    with pytest.raises(JudgeError, match=r"asks to wait 2 hours \(Retry-After\).*daily limit"):
        await asyncio.wait_for(ask_once(server), 2)
    assert len(server.requests) == 1


async def test_pauses_that_are_asked_for_use_up_patience_not_retries(server: Loopback) -> None:
    """Two pauses of a second are within a patience of two; the third is not, and nobody else was answered."""
    busy = Status(429, headers={"Retry-After": "1"})
    server.script(busy, busy)
    replied(await ask_once(server, retries=0, patience=2))
    server.script(busy, busy, busy)
    with pytest.raises(JudgeError, match="patience is 2 s"):
        await ask_once(server, retries=0, patience=2)
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_other_refusals_reject_this_ask_alone(server: Loopback, status: int) -> None:
    """A refusal that is about this ask carries the server's words and is not tried again."""
    server.script(Status(status, "This model's maximum context length is 8192 tokens."))
    assert "maximum context length" in failed(await ask_once(server), "rejected").detail
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("behaviour", "advice"),
    [
        (Status(401, f"Incorrect API key provided: {SECRET}"), "SCALES_KEY"),
        (Status(403, "region not supported"), "SCALES_KEY"),
        (Status(400, "API key not valid. Please pass a valid API key."), "SCALES_KEY"),
        (Status(404, "page not found"), "/v1"),
        (Status(400, "Model Not Exist"), "test-model"),
        (Status(400, "The model `test-model` does not exist"), "test-model"),
        (Status(405, body="<h1>Method Not Allowed</h1>"), "base_url"),
        (Status(301, headers={"Location": "https://elsewhere.example/"}), "elsewhere.example"),
        (Status(402, "Insufficient Balance"), "balance"),
        (Status(429, "You exceeded your current quota", "insufficient_quota"), "balance"),
    ],
    ids=str,
)
async def test_an_unusable_endpoint_stops_at_once_with_advice(server: Loopback, behaviour: Status, advice: str) -> None:
    """Key, model, URL and balance are matters for the user: one line that says what to do, without the key."""
    server.script(behaviour)
    with pytest.raises(JudgeError) as caught:
        await ask_once(server, key=SECRET, key_env="SCALES_KEY")
    text = str(caught.value)
    assert advice in text
    assert SECRET not in text
    assert "\n" not in text
    assert len(server.requests) == 1


async def test_without_a_key_the_advice_is_to_name_one(server: Loopback) -> None:
    """A 401 to a judge without key_env says where a key would go."""
    server.key = "wanted"
    with pytest.raises(JudgeError, match="key_env"):
        await ask_once(server)


def test_a_key_that_no_header_carries_is_refused_without_showing_it() -> None:
    """A line break inside a key is found before anything is sent."""
    endpoint = Endpoint(base_url="http://localhost/v1", model="m", key_env="SCALES_KEY")
    with pytest.raises(JudgeError, match="SCALES_KEY") as caught:
        ChatJudge(endpoint, PlainPrompts(), key=SecretStr("sk-one\nsk-two"))
    assert "sk-one" not in str(caught.value)


# --- many calls, many loops ------------------------------------------------------------------------


async def test_the_gate_bounds_calls_in_flight_retries_included() -> None:
    """However many asks wait, the server never sees more than the limit, and pauses do not hold a slot."""
    with Loopback(GOOD, latency=0.01) as server:
        server.script(*[Status(503, latency=0.01)] * 10)
        limiter = Limiter(4)
        judge = ChatJudge(server.endpoint(retries=12), PlainPrompts(), limiter=limiter)
        results = await asyncio.gather(*(judge.answer(make_ask(str(n))) for n in range(40)))
        await judge.aclose()
    assert all(isinstance(result, Reply) for result in results)
    assert len(server.requests) == 50
    assert server.max_in_flight == limiter.peak == 4
    assert limiter.in_flight == 0


def test_a_judge_works_in_one_event_loop_after_another(server: Loopback) -> None:
    """Two runs may share a judge that was closed between them, even where asks had to wait at the limiter."""
    judge = ChatJudge(server.endpoint(), PlainPrompts(), limiter=Limiter(1))

    async def several() -> None:
        for result in await asyncio.gather(*(judge.answer(make_ask(str(n))) for n in range(3))):
            replied(result)
        await judge.aclose()

    asyncio.run(several())
    asyncio.run(several())
    assert len(server.requests) == 6


async def test_a_cancelled_ask_gives_its_slot_back(server: Loopback) -> None:
    """Stopping a run leaves the limiter free."""
    server.script(Hang())
    limiter = Limiter(1)
    judge = ChatJudge(server.endpoint(), PlainPrompts(), limiter=limiter)
    task = asyncio.create_task(judge.answer(make_ask()))
    await asked(server)
    assert limiter.in_flight == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limiter.in_flight == 0
    replied(await judge.answer(make_ask()))
    await judge.aclose()


async def test_the_reply_can_be_computed_from_the_request() -> None:
    """The loopback endpoint answers by the request's own text, task and schema."""

    def split(request: Request) -> dict[str, Any]:
        assert request.task == "atomic.split"
        return {"atoms": [{"id": 1, "text": json.loads(request.user.splitlines()[1])["answer"], "causal_of": None}]}

    with Loopback(reply_for=split) as server:
        assert replied(await ask_once(server, make_ask("今天很热"))).atoms[0].text == "今天很热"


# --- the endpoint as a value -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://host:8000/v1", "http://host:8000/v1/chat/completions"),
        (" http://host:8000/v1/ ", "http://host:8000/v1/chat/completions"),
        ("http://host/v1/chat/completions", "http://host/v1/chat/completions"),
        ("http://host", "http://host/chat/completions"),
        ("https://host/openai?api-version=1", "https://host/openai/chat/completions?api-version=1"),
    ],
)
def test_base_urls_are_understood_as_people_paste_them(given: str, url: str) -> None:
    """With or without a trailing slash, path or query."""
    assert ChatDialect(Endpoint(base_url=given, model="m")).url == url


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "localhost:8000/v1"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "https://user:pw@host/v1"},
        {"model": ""},
        {"headers": {"X-A": "line\nbreak"}},
        {"headers": {"X-密": "v"}},
        {"body": {"stream": True}},
        {"body": {"response_format": {}}},
        {"timeout": 0},
        {"retries": -1},
        {"structured": "yaml"},
        {"api_key": "sk-1"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    """A mistake in an endpoint's settings is found when it is made."""
    with pytest.raises(ValidationError):
        Endpoint(**({"base_url": "http://host/v1", "model": "m"} | wrong))


def test_secrets_are_not_shown() -> None:
    """Neither an endpoint, nor a judge, nor what a manifest says of it, shows headers or keys."""
    endpoint = Endpoint(
        base_url="http://host/v1", model="m", headers={"Authorization": SECRET}, proxy=f"http://{SECRET}"
    )
    judge = ChatJudge(endpoint, PlainPrompts(), key=SecretStr(SECRET))
    assert SECRET not in f"{endpoint!r} {endpoint} {judge!r} {judge.describe()}"
    azure = endpoint.model_copy(update={"base_url": f"http://host/v1?key={SECRET}&api-version=1"})
    described = ChatJudge(azure, PlainPrompts()).describe()
    assert described["base_url"] == "http://host/v1?key=hidden&api-version=1"


def test_fingerprints_follow_what_is_asked_of_whom() -> None:
    """The same conversation with the same model and parameters has one fingerprint; any change has another."""
    base = {"base_url": "http://host/v1", "model": "m"}

    def fingerprint(ask: Ask, **changes: Any) -> str:
        return ChatJudge(Endpoint(**(base | changes)), PlainPrompts()).fingerprint(ask)

    same = {fingerprint(make_ask()), fingerprint(make_ask(), retries=9, name="other", headers={"a": "b"})}
    others = {
        fingerprint(make_ask("else")),
        fingerprint(make_ask(), model="n"),
        fingerprint(make_ask(), body={"temperature": 1}),
    }
    assert len(same) == 1
    assert len(same | others) == 4


async def test_without_a_key_nothing_is_sent_to_openai() -> None:
    """The refusal is known beforehand, and the message is about the key, not about the network."""
    endpoint = Endpoint(name="openai", base_url="https://api.openai.com/v1", model="m", key_env="OPENAI_API_KEY")
    judge = ChatJudge(endpoint, PlainPrompts())
    with pytest.raises(JudgeError, match="there is no key: set OPENAI_API_KEY"):
        await judge.answer(make_ask())
    await judge.aclose()
