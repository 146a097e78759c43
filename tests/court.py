"""Judges that differ: a server with several models of different opinion, and scripted ones that find this or that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from command import judge_facts, lines_of
from endpoint import Loopback, Request, Say
from feeding import RAG, TALK, respond
from steelyard import ScriptedJudge, Unjudged, evaluate
from steelyard.records import Ask, Verdict

Opinion = Callable[[int], str]
"""What a model says of the atom of fact n."""

OPINIONS: dict[str, Opinion] = {
    "fair": lambda n: "correct",
    "harsh": lambda n: "wrong" if n % 2 else "correct",
    "harshest": lambda n: "wrong",
    "lost": lambda n: "undetermined",
}


def court(opinions: Mapping[str, Opinion] = OPINIONS, mute: Collection[str] = (), **settings: Any) -> Loopback:
    """A server with several models of different opinion; a second look finds out what is really so. Those that are
    `mute` report no tokens."""

    def reply(request: Request) -> Any:
        given = judge_facts(request)
        if request.task == "atomic.judge":
            n = int(re.findall(r"Fact (\d+) holds", request.user)[0])
            given["atoms"][0] |= {"label": opinions[request.body["model"]](n), "reason": request.body["model"]}
            if "check of findings" in request.user:
                given["atoms"][0]["label"] = "correct" if n != 1 else "wrong"
        return Say(given, usage=None) if request.body["model"] in mute else given

    return Loopback(reply_for=reply, **settings)


def seat(server: Loopback, more: str = "", models: Mapping[str, Opinion] = OPINIONS) -> None:
    """A settings file with a judge for each model of the court."""
    tables = [
        f'[judges.{name}]\nbase_url = "{server.url}"\nmodel = "{name}"\nretries = 0\nkey_env = "MY_KEY"\n'
        for name in models
    ]
    Path("steelyard.toml").write_text("\n".join(tables) + more, encoding="utf-8")


def told(path: str = "out.jsonl") -> list[tuple[Any, ...]]:
    """Label, votes and flags of the one atom of each sample."""
    atoms = [line["items"][0] for line in lines_of(path)]
    return [(atom["label"], atom.get("confidence"), tuple(atom["flags"])) for atom in atoms]


def asked(server: Loopback) -> list[tuple[str, str, str | None]]:
    return [(request.body["model"], request.user, request.task) for request in server.requests]


def scripted(name: str, *changes: Any, **script: Any) -> ScriptedJudge:
    """A judge that finds all in order, apart from these changes to the replies that hold labels."""
    made = ScriptedJudge(lambda ask: script.get(ask.task.replace(".", "_")) or respond(ask, **_fitting(ask, *changes)))
    made.name = name
    return made


def _fitting(ask: Ask, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {name: change for name, change in (changes or {}).items() if name in ask.data.items()}


def down(name: str) -> ScriptedJudge:
    made = ScriptedJudge(lambda ask: Unjudged(reason="timeout", detail=f"{name} was silent"))
    made.name = name
    return made


def one(judge: Any, protocol: str = "atomic") -> Verdict:
    (verdict,) = evaluate([TALK if protocol == "dialogue" else RAG], protocol=protocol, judge=judge)
    return verdict
