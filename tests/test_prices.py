"""What a model's tokens cost: the shipped list, dated, with the user's own prices before it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import RAG, Steelyard, fact_server, facts, lines_of, point_to
from steelyard.cli.run import print_estimate
from steelyard.engine.inputs import Input
from steelyard.errors import ConfigError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.endpoint import Price
from steelyard.judges.prices import dating, price_of, shipped
from steelyard.protocols import get_protocol
from steelyard.records import Usage
from steelyard.settings import Settings


def test_the_shipped_list_is_dated_and_plausible() -> None:
    """A reader can tell how old each price is; cached tokens never cost more than others."""
    assert shipped()
    for price, as_of in shipped().values():
        assert date(2026, 1, 1) <= date.fromisoformat(f"{as_of}-01") <= date.today()
        assert 0 < price.prompt <= price.completion
        assert price.cached is None or price.cached <= price.prompt


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4.1-mini", "gpt-4.1-mini"),
    ],
)
def test_dated_versions_cost_what_their_family_does(model: str, family: str) -> None:
    """The longest name that fits, so that mini is never priced as its big sister."""
    assert price_of(model, {}) == shipped()[family].price


@pytest.mark.parametrize("model", ["", "gpt-4o-audio-preview", "gpt-4", "gpt-4oo", "qwen3-32b", "GPT-4O"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    """A price that is merely likely is none: null, never 0 and never another model's."""
    assert price_of(model, {}) is None


def test_ones_own_prices_go_first() -> None:
    """For models of the list and for others; zero is a price."""
    own = {"gpt-4o": {"prompt": 1, "completion": 2}, "local": {"prompt": 0, "completion": 0}}
    assert price_of("gpt-4o", own) == Price(prompt=1, completion=2)
    assert price_of("local", own) == Price(prompt=0, completion=0)
    assert price_of("gpt-4o-mini", own) == shipped()["gpt-4o-mini"].price


@pytest.mark.parametrize(
    "slip", [{"prompt": 1}, {"prompt": -1, "completion": 1}, {"prompt": 1, "completion": 1, "x": 1}]
)
def test_a_slip_in_ones_own_prices_is_named(slip: dict[str, float]) -> None:
    """The message says which model's price is wrong."""
    with pytest.raises(ConfigError, match=r"prices\.'mine'"):
        price_of("mine", {"mine": slip})


def test_a_price_is_old_after_half_a_year() -> None:
    """Where a shipped price is used, its month is told, and after six months that it may have changed; of several the
    oldest counts. One's own price has no date."""
    mini, flash = shipped()["gpt-4o-mini"], shipped()["deepseek-v4-flash"]
    assert mini.as_of == flash.as_of == "2026-06"
    prices = {"gpt-4o-mini": mini.price, "gpt-4o-2024-08-06": shipped()["gpt-4o"].price}
    assert dating(prices, date(2026, 12, 31)) == "shipped prices as of 2026-06"
    assert dating(prices, date(2027, 1, 1)) == "shipped prices as of 2026-06; they may have changed"
    older = {**prices, "gpt-4.1": shipped()["gpt-4.1"].price}
    assert dating(older, date(2026, 11, 18)) == "shipped prices as of 2026-04; they may have changed"
    assert dating({"gpt-4o-mini": Price(prompt=1, completion=2), "mine": None}, date(2030, 1, 1)) == ""


def test_a_dry_run_says_how_old_the_prices_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line with the cost says of when the shipped prices are, and, long after, that they may have changed."""
    monkeypatch.chdir(tmp_path)
    config, protocol = Settings.load(environment={}), get_protocol("atomic")
    judge = JudgeFactory(config).judge("openai:gpt-4o-mini")
    data = Input([RAG])
    for today, told in (
        (date(2026, 11, 18), "; shipped prices as of 2026-06)"),
        (date(2027, 3, 1), "; shipped prices as of 2026-06; they may have changed)"),
    ):
        options = protocol.parse_options({"date": "2026-03-02"})
        print_estimate(judge, data.rows(protocol), protocol, options, config.prompts, None, lambda day=today: day)
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cost")]
        assert line.endswith(told)


counts = st.integers(0, 10**9)


@given(counts, counts, counts)
def test_the_sum_of_prices_is_the_price_of_the_sum(prompt: int, completion: int, cached: int) -> None:
    """Counting call by call or all at once comes to the same, and cached tokens save money."""
    price = Price(prompt=2.5, completion=10, cached=1.25)
    usage = Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, cached_tokens=min(cached, prompt))
    assert price.of(usage + usage) == pytest.approx(2 * price.of(usage))
    assert 0 <= price.of(usage) <= price.of(usage.model_copy(update={"cached_tokens": 0}))


def test_prices_from_the_settings_reach_the_results(steelyard: Steelyard) -> None:
    """[prices."model"] in steelyard.toml prices each call, cached tokens at their own rate."""
    samples = facts(Path("facts.jsonl"), 2)
    with fact_server() as server:
        point_to(server)
        with Path("steelyard.toml").open("a", encoding="utf-8") as file:
            file.write('[prices."test-model"]\nprompt = 100\ncompletion = 1000\ncached = 10\n')
        assert steelyard("run", samples, "-p", "atomic", "-j", "mine", "-o", "out.jsonl").code == 0
    # The server reports 100 prompt tokens, 64 of them cached, and 20 of completion, for each of two calls.
    one = (36 * 100 + 64 * 10 + 20 * 1000) / 1_000_000
    for line in lines_of("out.jsonl"):
        assert line["usage"]["cached_tokens"] == 128
        assert line["usage"]["cost"] == pytest.approx(2 * one)


def test_without_a_price_the_cost_is_unknown_not_zero(steelyard: Steelyard) -> None:
    """Null in the results, and no dollars in the progress line."""
    samples = facts(Path("facts.jsonl"), 1)
    with fact_server() as server:
        point_to(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "mine", "-o", "out.jsonl")
    assert lines_of("out.jsonl")[0]["usage"]["cost"] is None
    assert "$" not in done.err
