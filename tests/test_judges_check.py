"""Qualifying a judge, and what importing judges costs."""

import re
import subprocess
import sys
import time
from itertools import product
from typing import Any

import pytest

import steelyard.judges
from command import judge_plainly
from endpoint import Loopback, Request, Say
from steelyard.judges.chat import ChatJudge
from steelyard.judges.check import EXPECTED, QUESTIONS, check, orders
from steelyard.judges.scripted import ScriptedJudge
from steelyard.prompts import Prompts
from steelyard.records import Ask, Unjudged

BY_POSITION = [{"id": id, "reason": "r", "label": label, "level": 1} for id, label in enumerate(EXPECTED, 1)]


def plainly(ask: Ask) -> dict[str, Any]:
    """What a judge that reads says, wherever the statements stand."""
    said = dict(zip((atom.text for atom in QUESTIONS[ask.language].atoms), EXPECTED, strict=True))
    atoms = [{"id": atom.id, "reason": "r", "label": said[atom.text], "level": 1} for atom in ask.data.atoms]
    return {"atoms": atoms, "fallback": False}


def all_but_one(ask: Ask) -> dict[str, Any]:
    """The same, with one statement that is never told apart from a wrong one."""
    said = plainly(ask)
    return said | {"atoms": [a | {"label": "wrong"} if a["label"] == "undetermined" else a for a in said["atoms"]]}


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_a_good_endpoint_is_fit(language: Any) -> None:
    """Reachable, the settled mode, ids, labels, latency and usage, and one plain sentence."""
    with Loopback(reply_for=judge_plainly, accepts=("json_object", "text"), latency=0.02) as server:
        judge = ChatJudge(server.endpoint(), Prompts.shipped())
        began = time.monotonic()
        found = await check(judge, language)
        took = time.monotonic() - began
        await judge.aclose()
    assert found.fit
    assert (found.reachable, found.structured, found.obeys_ids, found.labels_as_expected) == (
        True, "json_object", True, 9)  # fmt: skip
    assert found.latency_seconds is not None
    assert 0.02 <= found.latency_seconds < took
    assert found.reports_usage
    assert found.usage.calls == 3
    assert found.verdict == "Fit for use"


async def test_an_unreachable_endpoint_says_so() -> None:
    """Nobody there: not usable, and nothing is claimed about the rest."""
    with Loopback() as server:
        endpoint = server.endpoint(retries=0)
    judge = ChatJudge(endpoint, Prompts.shipped())
    found = await check(judge)
    await judge.aclose()
    assert (found.reachable, found.obeys_ids, found.latency_seconds, found.fit) == (False, None, None, False)
    assert found.verdict.startswith("Not usable: openai: no answer from 127.0.0.1")


async def test_a_refused_key_is_told_with_its_advice() -> None:
    """An unusable judge is a finding of the check, not an exception."""
    with Loopback(key="other") as server:
        judge = ChatJudge(server.endpoint(key_env="SCALES_KEY"), Prompts.shipped())
        found = await check(judge)
        await judge.aclose()
    assert not found.reachable
    assert "SCALES_KEY" in found.verdict


def losing_one(ask: Ask) -> Any:
    """A judge that reads, and is too slow for one of the three orders."""
    return (
        Unjudged(reason="timeout", detail="slow") if ask.data.atoms[0].text.endswith(("发车", "6:20")) else plainly(ask)
    )


@pytest.mark.parametrize("labels", sorted(product(EXPECTED, repeat=3)))
async def test_whoever_labels_by_position_fails(labels: tuple[str, ...]) -> None:
    """Whatever labels a judge gives to the first, second and third item without reading them, it has a third right."""
    atoms = [atom | {"label": label} for atom, label in zip(BY_POSITION, labels, strict=True)]
    for language in ("zh", "en"):
        found = await check(ScriptedJudge({"atomic.judge": {"atoms": atoms, "fallback": False}}), language)
        assert (found.labels_as_expected, found.items, found.finding, found.fit) == (3, 9, "guessing", False)


async def test_the_orders_are_the_same_every_time() -> None:
    """Three different orders, each statement once in each place, and the same ones in every check."""
    assert orders() == orders()
    assert len(set(orders())) == 3
    assert [set(place) for place in zip(*orders(), strict=True)] == [{0, 1, 2}] * 3
    judge = ScriptedJudge({"atomic.judge": plainly})
    assert (await check(judge, "en")).finding == "fit"


@pytest.mark.parametrize(
    ("replies", "verdict", "fit"),
    [
        ({"atoms": BY_POSITION[:2], "fallback": False}, "Not advisable", False),
        ({"atoms": [*BY_POSITION, BY_POSITION[0]], "fallback": False}, "Not advisable", False),
        ({"atoms": [BY_POSITION[0] | {"id": 9}, *BY_POSITION[1:]], "fallback": False}, "Not advisable", False),
        ({"atoms": BY_POSITION, "fallback": False}, "Not usable: it labelled 3 of 9 plain items", False),
        (all_but_one, "labelled 6 of 9", True),
        (losing_one, "Usable with losses: 1 of 3", False),
        (Unjudged(reason="invalid_reply", detail="prose"), "none of 3 replies could be read", False),
        (Unjudged(reason="timeout", detail="slow"), "Not usable: timeout", False),
    ],
)
async def test_weak_judges_are_told_apart(replies: Any, verdict: str, fit: bool) -> None:
    """Each weakness has its own sentence."""
    found = await check(ScriptedJudge({"atomic.judge": replies}))
    assert verdict in found.verdict
    assert verdict in found.closing("en")
    assert found.fit is fit
    for language in ("zh-Hans", "zh-Hant"):
        # What went wrong is quoted as the judge's side told it; all else is said in the reader's words.
        told = found.closing(language).replace(found.problems[0] if found.problems else "", "")
        assert told
        assert not re.search("[A-Za-z{}]", told)
    assert found.structured is None


async def test_a_server_without_usage_is_noticed() -> None:
    """Costs cannot be counted where no usage is reported."""

    def without_usage(request: Request) -> Say:
        return Say(judge_plainly(request), usage=None)

    with Loopback(reply_for=without_usage) as server:
        judge = ChatJudge(server.endpoint(), Prompts.shipped())
        found = await check(judge)
        await judge.aclose()
    assert found.reports_usage is False
    assert found.fit


@pytest.mark.parametrize("module", ["steelyard.judges", "steelyard.judges.base", "steelyard.judges.endpoint"])
def test_importing_judges_does_not_import_http(module: str) -> None:
    """The light modules bring neither aiohttp nor tenacity nor json_repair."""
    code = f"import sys, {module}; print(*{{'aiohttp', 'tenacity', 'json_repair'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_package_exports_what_it_says() -> None:
    """Every name of `__all__` is there; others are not."""
    for name in steelyard.judges.__all__:
        assert getattr(steelyard.judges, name).__name__ == name
    assert dir(steelyard.judges) == steelyard.judges.__all__
    with pytest.raises(AttributeError):
        steelyard.judges.Nobody  # noqa: B018
