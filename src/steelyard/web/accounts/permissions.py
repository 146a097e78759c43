"""The permissions of each role, for pages and HTTP API alike.

A request that no rule names is refused, whoever makes it; a test compares the rules with the routes there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from starlette.routing import compile_path

from steelyard.store import Role

API = "/api/v1"


class AccessRule(NamedTuple):
    """What is done under some addresses, and the least role that may; no role: whoever is signed in.

    `PAGE` stands for GET of a page and of the same as JSON.
    """

    action: str
    role: Role | None
    routes: tuple[str, ...]
    everywhere: bool = False
    """Whether it takes that role in every project: what is done concerns all of them."""


# For everyone, also for who is not signed in.
PUBLIC = (
    "GET /login",
    "POST /login",
    "GET /login/oidc",
    "GET /login/oidc/callback",
    "GET /static/{path:path}",
    f"GET {API}/health",
)
RULES = (
    AccessRule("sign out", None, ("POST /logout",)),
    AccessRule(
        "read",
        "read",
        (
            "GET /",
            "PAGE /runs",
            "GET /events",
            "PAGE /runs/{run}/samples/{sample}/asked",
            "PAGE /runs/{run}/samples/{sample}/history",
            "GET /runs/{run}/samples/{sample}.md",
            "PAGE /runs/{run}/samples/{sample}",
            "PAGE /runs/{run}/samples",
            "PAGE /runs/{run}/failures",
            "PAGE /runs/{run}/calibration",
            "GET /runs/{run}/labels.jsonl",
            "GET /runs/{run}/results.jsonl",
            "GET /runs/{run}/results.csv",
            "GET /runs/{run}/results.html",
            "PAGE /runs/{run}",
            "PAGE /trends",
            "PAGE /compare/sample",
            "PAGE /compare/runs",
            "PAGE /compare",
            "PAGE /judges/cards/{card:int}",
            "GET /judges/cards/{card:int}/report.html",
            "PAGE /judges/cards",
            "GET /sets/{set}/samples.jsonl",
            "PAGE /sets/{set}",
            "PAGE /sets",
            "PAGE /experiments/composed/{composed:int}",
            "PAGE /experiments/{experiment}",
            "PAGE /experiments",
            "PAGE /judges",
            "PAGE /prompts/{prompt}",
            "PAGE /prompts",
            f"GET {API}/openapi.json",
            f"GET {API}/protocols",
            f"GET {API}/judges",
            f"GET {API}/runs",
            f"GET {API}/runs/{{run}}",
            f"GET {API}/runs/{{run}}/events",
            f"GET {API}/runs/{{run}}/samples",
            f"GET {API}/runs/{{run}}/samples/{{sample:path}}",
            f"GET {API}/runs/{{run}}/results.jsonl",
            f"GET {API}/runs/{{run}}/results.csv",
            f"GET {API}/sets",
            f"GET {API}/sets/{{set}}",
            f"GET {API}/sets/{{set}}/samples.jsonl",
            f"GET {API}/experiments",
            f"GET {API}/experiments/composed/{{composed:int}}",
            f"GET {API}/experiments/{{experiment:path}}",
            f"GET {API}/compare",
            f"GET {API}/labels",
        ),
    ),
    AccessRule(
        "label",
        "label",
        (
            "PAGE /label",
            "PAGE /runs/{run}/label",
            "POST /runs/{run}/label",
            "POST /runs/{run}/label/start",
            "POST /runs/{run}/label/undo",
            f"POST {API}/labels",
            "PAGE /queues/{queue:int}/label",
            "POST /queues/{queue:int}/label",
            "POST /queues/{queue:int}/label/start",
            "POST /queues/{queue:int}/label/undo",
            "PAGE /queues/{queue:int}",
            f"GET {API}/queues",
            f"GET {API}/queues/{{queue:int}}",
        ),
    ),
    AccessRule(
        "make queue",
        "run",
        (
            "PAGE /runs/{run}/queues",
            "POST /runs/{run}/queues",
            "POST /queues/{queue:int}/close",
            f"POST {API}/queues",
        ),
    ),
    AccessRule(
        "adjudicate",
        "run",
        ("PAGE /queues/{queue:int}/disagreements", "POST /queues/{queue:int}/disagreements"),
    ),
    # A sheet says who labelled: whoever imports one speaks for others.
    AccessRule("import labels", "run", ("POST /runs/{run}/labels",)),
    AccessRule("evaluate", "run", (f"POST {API}/evaluate",)),
    AccessRule("check judge", "run", ("POST /judges/check", "POST /judges/check.json")),
    AccessRule(
        "preview",
        "run",
        ("POST /runs/new", "PAGE /runs/new/{upload}/check", "PAGE /runs/new/{upload}", "POST /runs/new/{upload}/check"),
    ),
    AccessRule(
        "start",
        "run",
        (
            "POST /runs",
            "POST /runs/new/{upload}",
            "PAGE /experiments/composed/new",
            "POST /experiments/composed/{composed:int}",
            "POST /experiments/composed",
            "POST /experiments/{experiment}",
            f"POST {API}/runs",
            f"POST {API}/sets/{{set}}/runs",
            f"POST {API}/experiments/composed/{{composed:int}}",
            f"POST {API}/experiments/{{experiment:path}}",
        ),
    ),
    AccessRule(
        "delete experiment",
        "run",
        ("POST /experiments/composed/{composed:int}/delete", f"DELETE {API}/experiments/composed/{{composed:int}}"),
    ),
    AccessRule("stop", "run", ("POST /runs/{run}/stop", f"POST {API}/runs/{{run}}/stop")),
    AccessRule("resume", "run", ("POST /runs/{run}/resume", f"POST {API}/runs/{{run}}/resume")),
    AccessRule("retry", "run", ("POST /runs/{run}/retry", f"POST {API}/runs/{{run}}/retry")),
    AccessRule("edit", "run", ("POST /runs/{run}/identity", f"PATCH {API}/runs/{{run}}")),
    AccessRule("add to set", "run", ("POST /runs/{run}/sets", f"POST {API}/runs/{{run}}/sets")),
    AccessRule("change set", "run", ("POST /sets/{set}/remove", f"POST {API}/sets/{{set}}/remove")),
    AccessRule("delete set", "admin", ("POST /sets/{set}/delete", f"DELETE {API}/sets/{{set}}")),
    AccessRule(
        "try",
        "run",
        (
            "PAGE /runs/{run}/samples/{sample}/try",
            "POST /runs/{run}/samples/{sample}/try",
            "POST /runs/{run}/samples/{sample}/try/save",
        ),
    ),
    AccessRule("delete", "admin", ("POST /runs/{run}/delete", f"DELETE {API}/runs/{{run}}")),
    AccessRule("read audit log", "admin", ("PAGE /audit", f"GET {API}/audit")),
    AccessRule("read users", "admin", ("PAGE /users", f"GET {API}/users")),
    AccessRule("set role", "admin", ("POST /users/role", f"PUT {API}/users/role")),
    AccessRule("add user", "admin", ("POST /users", f"POST {API}/users"), everywhere=True),
    AccessRule("disable user", "admin", ("POST /users/disable", f"POST {API}/users/disable"), everywhere=True),
    AccessRule("enable user", "admin", ("POST /users/enable", f"POST {API}/users/enable"), everywhere=True),
    AccessRule("set password", "admin", ("POST /users/password", f"POST {API}/users/password"), everywhere=True),
    AccessRule("create machine token", "admin", ("POST /users/tokens", f"POST {API}/users/tokens")),
    # Of one's own account.
    AccessRule("read account", None, ("PAGE /account", f"GET {API}/tokens")),
    AccessRule("change password", None, ("POST /account/password",)),
    AccessRule("create token", None, ("POST /account/tokens", f"POST {API}/tokens")),
    AccessRule("revoke token", None, ("POST /account/tokens/revoke", f"DELETE {API}/tokens/{{token}}")),
)
ROLE_OF: Mapping[str, Role | None] = {rule.action: rule.role for rule in RULES}
EVERYWHERE = frozenset(rule.action for rule in RULES if rule.everywhere)


class MatchedRule(NamedTuple):
    """The rule that a request falls under."""

    action: str | None
    """None: it is for everyone."""
    route: str
    values: Mapping[str, Any]


def match_rule(method: str, path: str) -> MatchedRule | None:
    """The rule for a request; None: there is none, and it is refused."""
    wanted = "GET" if method == "HEAD" else method
    for verb, route, action, pattern, convertors in _patterns():
        if verb == wanted and (found := pattern.match(path)):
            values = {name: convertors[name].convert(value) for name, value in found.groupdict().items()}
            return MatchedRule(action, f"{verb} {route}", values)
    return None


def every_route() -> Iterator[tuple[str, str, str | None]]:
    """Verb, address and action of every rule."""
    for named in PUBLIC:
        verb, _, route = named.partition(" ")
        yield verb, route, None
    for rule in RULES:
        for named in rule.routes:
            verb, _, route = named.partition(" ")
            if verb == "PAGE":
                yield "GET", f"{route}.json", rule.action
            yield "GET" if verb == "PAGE" else verb, route, rule.action


@cache
def _patterns() -> list[tuple[str, str, str | None, re.Pattern[str], Mapping[str, Any]]]:
    compiled = ((verb, route, action, compile_path(route)) for verb, route, action in every_route())
    return [(verb, route, action, pattern, convertors) for verb, route, action, (pattern, _, convertors) in compiled]
