"""Qualifying a judge, and what importing judges costs."""

import re
import subprocess
import sys
from typing import Any

import pytest

import steelyard.judges
from endpoint import Loopback, Request, Say
from steelyard.judges.chat import ChatJudge
from steelyard.judges.check import EXPECTED, check
from steelyard.judges.scripted import ScriptedJudge
from steelyard.prompts import Prompts
from steelyard.records import Unjudged

LABELS = [{"id": id, "reason": "r", "label": label, "level": 1} for id, label in EXPECTED.items()]
SOUND = {"atoms": LABELS, "fallback": False}


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_a_good_endpoint_is_fit(language: Any) -> None:
    """Reachable, the settled mode, ids, labels, latency and usage, and one plain sentence."""
    with Loopback(SOUND, accepts=("json_object", "text"), latency=0.02) as server:
        judge = ChatJudge(server.endpoint(), Prompts.shipped())
        found = await check(judge, language)
        await judge.aclose()
    assert found.fit
    assert (found.reachable, found.structured, found.obeys_ids, found.labels_as_expected) == (
        True, "json_object", True, 3)  # fmt: skip
    assert found.latency_seconds is not None
    assert 0.02 <= found.latency_seconds < 2
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


@pytest.mark.parametrize(
    ("replies", "verdict", "fit"),
    [
        ({"atoms": LABELS[:2], "fallback": False}, "Not advisable", False),
        ({"atoms": [*LABELS, LABELS[0]], "fallback": False}, "Not advisable", False),
        ({"atoms": [LABELS[0] | {"id": 9}, *LABELS[1:]], "fallback": False}, "Not advisable", False),
        ({"atoms": [atom | {"label": "correct"} for atom in LABELS], "fallback": False}, "labelled 1 of 3", True),
        ([SOUND, Unjudged(reason="timeout", detail="slow"), SOUND], "Usable with losses: 1 of 3", False),
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

    def without_usage(_: Request) -> Say:
        return Say(SOUND, usage=None)

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
