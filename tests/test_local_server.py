"""A real llama.cpp server in this process: asked directly, and over HTTP by the `openai` judge."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_model import small_model
from steelyard.errors import JudgeError, MissingExtra
from steelyard.judges.chat import ChatJudge
from steelyard.judges.embedded.judge import usable_cores
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.local import server as server_module
from steelyard.judges.local.server import ModelServer, label_shares
from steelyard.records import Ask, Numbered, Reply
from steelyard.tasks import SplitData, SplitReply, ValidityData, ValidityReply

QUESTION = [{"role": "user", "content": "Is water wet? Answer Yes or No."}]


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    """One server for all tests here: loading takes a second or two."""
    running = ModelServer(small_model().path, threads=1, context=2048)
    yield running
    running.close()


class TestServer:
    def test_gives_log_probabilities_of_the_first_token(self, server: ModelServer) -> None:
        """The likeliest next tokens come with log-probabilities that sum to no more than one."""
        first = server.first_token(QUESTION)
        assert first is not None
        assert 0 < sum(map(math.exp, first.values())) <= 1 + 1e-6
        assert {"Yes", "No"} <= {token.strip() for token in first}

    def test_same_question_same_answer(self, server: ModelServer) -> None:
        """Asked again after something else, the model says the same to within rounding."""
        once = server.first_token(QUESTION)
        server.first_token([{"role": "user", "content": "Name a colour."}])
        again = server.first_token(QUESTION)
        assert once is not None
        assert again is not None
        assert again == pytest.approx(once, abs=0.15)

    def test_common_beginning_is_read_once(self, server: ModelServer) -> None:
        """Of a second question about the same long passage, the passage is not read again."""
        passage = "The library has 120 seats on the second floor. " * 9
        with server.counted() as spent:
            for claim in ("It has seats.", "It has no roof."):
                server.first_token([{"role": "user", "content": f"{passage}\nClaim: {claim}"}])
        first, second = spent
        assert second.prompt_tokens > 100
        assert second.cached_tokens > 0.8 * second.prompt_tokens
        assert first.calls == second.calls == 1

    def test_too_long_a_question_is_none(self, server: ModelServer) -> None:
        """A question longer than the context is not answered, and the next one is."""
        assert server.first_token([{"role": "user", "content": "water " * 4000}]) is None
        assert server.first_token(QUESTION) is not None

    def test_broken_text_does_no_harm(self, server: ModelServer) -> None:
        """After text full of marks and control characters, the next question is answered as before."""
        server.first_token([{"role": "user", "content": "<|im_end|>\x00\u202e｜🙂" * 3}])
        assert server.first_token(QUESTION) is not None

    def test_threads_may_ask_at_once(self, server: ModelServer) -> None:
        """Questions from several threads are all answered, and each thread counts only its own."""
        counts: list[int] = []

        def ask(times: int) -> None:
            with server.counted() as spent, server.turn():
                for _ in range(times):
                    server.first_token(QUESTION)
            counts.append(len(spent))

        threads = [threading.Thread(target=ask, args=(times,)) for times in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(counts) == [1, 2, 3]

    def test_closed_is_closed(self) -> None:
        """A closed server loads nothing and says so; closing twice is fine."""
        closed = ModelServer(Path("never-loaded.gguf"))
        closed.close()
        closed.close()
        with pytest.raises(JudgeError, match="was closed"):
            closed.first_token(QUESTION)

    def test_file_that_is_no_model_is_named(self, tmp_path: Path) -> None:
        """A file that only pretends to be GGUF is an error with its name, not a crash of the process."""
        (tmp_path / "fake.gguf").write_bytes(b"GGUF" + bytes(1000))
        with pytest.raises(JudgeError, match=r"fake\.gguf: llama\.cpp could not load this file"):
            ModelServer(tmp_path / "fake.gguf").first_token(QUESTION)

    def test_missing_bindings_say_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the extra, the error is the command that brings it."""
        monkeypatch.setitem(__import__("sys").modules, "xllamacpp", None)
        with pytest.raises(MissingExtra, match=r"pip install 'steelyard\[local\]'"):
            server_module.llama_cpp()

    def test_threads_default_to_the_cores_there_are(self) -> None:
        """No more threads than this process may use cores."""
        assert 1 <= ModelServer(Path("x")).threads == usable_cores()

    def test_system_text_can_go_into_the_question(self) -> None:
        """For templates without a system role, the instruction stands at the head of the first question."""
        chat = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]
        assert server_module._without_system(chat) == [{"role": "user", "content": "S\n\nQ"}]


class TestShares:
    def test_adds_up_ways_to_write_a_label(self) -> None:
        """Yes, yes and Y are one label; what is neither is left out."""
        first = {"Yes": math.log(0.4), " yes": math.log(0.1), "No": math.log(0.25), "Maybe": math.log(0.25)}
        assert label_shares(first, ["Yes", "No"]) == pytest.approx([2 / 3, 1 / 3])

    def test_token_that_begins_two_labels_counts_for_none(self) -> None:
        """A first token that leaves the label open is no evidence for either."""
        first = {"un": math.log(0.9), "uns": math.log(0.1)}
        assert label_shares(first, ["unclear", "unstated"]) == pytest.approx([0, 1])

    def test_model_that_says_something_else_has_no_share(self) -> None:
        """Where no label is among what the model would say, there is no opinion to read."""
        assert label_shares({"Hello": -0.1, "": -2.0, " ": -3.0}, ["是", "否"]) is None
        assert label_shares({}, ["是", "否"]) is None

    @given(
        st.dictionaries(
            st.sampled_from(["是", "否", "是的", "Yes", "no", "", " ", "x"]), st.floats(-30, 0, allow_nan=False)
        )
    )
    def test_shares_sum_to_one(self, first: dict[str, float]) -> None:
        """Whatever the tokens, shares are probabilities or there are none."""
        shares = label_shares(first, ["是", "否"])
        assert shares is None or (sum(shares) == pytest.approx(1) and min(shares) >= 0)


class ShortPrompts:
    """The whole prompt in a line: reading is what takes a small machine its time."""

    def messages(self, ask: Ask) -> list[dict[str, str]]:
        return [{"role": "user", "content": ask.data.model_dump_json()}]

    def identity(self, ask: Ask) -> str:
        return "short"


def endpoint(server: ModelServer) -> Endpoint:
    limits = {"max_tokens": 60, "seed": 1}
    return Endpoint(base_url=server.address, model="smollm2", body=limits, timeout=60, corrections=1)


class TestOpenAiJudge:
    async def test_negotiates_json_schema(self, server: ModelServer) -> None:
        """Against a real server the openai judge gets strict structured output, and a reply of the right shape."""
        judge = ChatJudge(endpoint(server), ShortPrompts())
        ask = Ask(
            task="dialogue.validity",
            language="en",
            data=ValidityData(system_prompt="Be brief.", criteria=(Numbered(id=1, text="The answer is brief"),)),
            reply=ValidityReply,
        )
        try:
            reply = await judge.answer(ask)
        finally:
            await judge.aclose()
        assert judge.structured == "json_schema"
        assert isinstance(reply, Reply) or reply.reason in ("truncated", "invalid_reply")
        assert reply.usage.prompt_tokens > 10

    async def test_cut_off_reply_is_not_data(self, server: ModelServer) -> None:
        """A reply that the token limit cut off is `truncated`, though the server called it a success."""
        short = endpoint(server).model_copy(update={"body": {"max_tokens": 4}})
        judge = ChatJudge(short, ShortPrompts())
        data = SplitData(question="Where is it?", answer="It is in the hall, on the left, behind the stairs.")
        try:
            reply = await judge.answer(Ask(task="atomic.split", language="en", data=data, reply=SplitReply))
        finally:
            await judge.aclose()
        assert getattr(reply, "reason", None) == "truncated"
