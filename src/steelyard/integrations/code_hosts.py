"""One comment below a change on GitHub or GitLab that is kept up to date.

The comment is found again by the mark in its first line. Which host, project and change it is, and the token, are read
from the variables that both set in their build jobs; the token is sent to that host only and appears in no message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from steelyard.errors import CommentError, ConfigError

PER_PAGE = 100
MOST_PAGES = 30
TIMEOUT = 30.0
MARK = re.compile(r"<!-- steelyard:[a-z0-9-]{1,80} -->")
NAME = re.compile(r"[a-z0-9-]{1,80}")


@dataclass(frozen=True)
class ChangeRequest:
    """A pull or merge request: where its comments are listed and made, where one is edited, and how."""

    host: str
    comments: str
    one: str
    """The address of one comment, before its id."""
    edit: str
    """The HTTP method that edits one."""
    headers: Mapping[str, str]
    token: str


def marked(body: str, name: str | None) -> tuple[str, str]:
    """The mark of a comment, and the comment; with a name, the mark of that name takes the place of its own."""
    first, _, rest = body.partition("\n")
    if not MARK.fullmatch(first.strip()):
        raise ConfigError("the first line of the comment has no mark; write it with steelyard gate --comment FILE")
    if name is None:
        return first.strip(), body
    if not NAME.fullmatch(name):
        raise ConfigError(f"--name {name!r}: use small letters, digits and hyphens")
    mark = f"<!-- steelyard:{name} -->"
    return mark, f"{mark}\n{rest}"


def change_of(environment: Mapping[str, str], number: int | None = None) -> ChangeRequest:
    """The change that this build is about, as its host says."""
    if environment.get("GITHUB_REPOSITORY"):
        return _on_github(environment, number)
    if environment.get("CI_PROJECT_ID"):
        return _on_gitlab(environment, number)
    raise ConfigError("this is not a GitHub or GitLab build: neither GITHUB_REPOSITORY nor CI_PROJECT_ID is set")


def _on_github(environment: Mapping[str, str], number: int | None) -> ChangeRequest:
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
    if not token:
        raise ConfigError("GITHUB_TOKEN is not set: pass it to the step (env: GITHUB_TOKEN: ${{ github.token }})")
    number = number or _github_number(environment)
    if not number:
        raise ConfigError("this build is about no pull request; name one with --number")
    api = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    issues = f"{api}/repos/{quote(environment['GITHUB_REPOSITORY'], safe='/')}/issues"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return ChangeRequest("GitHub", f"{issues}/{number}/comments", f"{issues}/comments", "PATCH", headers, token)


def _github_number(environment: Mapping[str, str]) -> int | None:
    if found := re.fullmatch(r"refs/pull/(\d+)/\w+", environment.get("GITHUB_REF", "")):
        return int(found[1])
    path = Path(environment.get("GITHUB_EVENT_PATH") or "-")
    if not path.is_file():
        return None
    event = json.loads(path.read_text("utf-8"))
    number = (event.get("pull_request") or event.get("issue") or {}).get("number")
    return number if isinstance(number, int) else None


def _on_gitlab(environment: Mapping[str, str], number: int | None) -> ChangeRequest:
    token = environment.get("GITLAB_TOKEN")
    if not token:
        raise ConfigError(
            "GITLAB_TOKEN is not set: a project access token with the scope api, as a masked variable; "
            "the token of the job itself may not write comments"
        )
    iid = number or environment.get("CI_MERGE_REQUEST_IID")
    if not iid:
        raise ConfigError("this pipeline is about no merge request (CI_MERGE_REQUEST_IID); name one with --number")
    api = environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/")
    project = quote(environment["CI_PROJECT_ID"], safe="")
    notes = f"{api}/projects/{project}/merge_requests/{iid}/notes"
    return ChangeRequest("GitLab", notes, notes, "PUT", {"PRIVATE-TOKEN": token}, token)


async def post(change: ChangeRequest, mark: str, body: str) -> str:
    """Make the comment or bring it up to date: created, updated or unchanged."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    async with aiohttp.ClientSession(headers=change.headers, timeout=timeout, trust_env=True) as session:
        known = await _find(session, change, mark)
        if known is None:
            await _call(session, change, "POST", change.comments, {"body": body})
            return "created"
        if str(known["body"]).strip() == body.strip():
            return "unchanged"
        await _call(session, change, change.edit, f"{change.one}/{int(known['id'])}", {"body": body})
        return "updated"


async def _find(session: aiohttp.ClientSession, change: ChangeRequest, mark: str) -> Mapping[str, Any] | None:
    for page in range(1, MOST_PAGES + 1):
        listed = await _call(session, change, "GET", f"{change.comments}?per_page={PER_PAGE}&page={page}")
        if not isinstance(listed, list):
            raise CommentError(f"{change.host} answered with something else than a list of comments")
        for comment in listed:
            if str(comment.get("body") or "").startswith(mark):
                return dict(comment)
        if len(listed) < PER_PAGE:
            return None
    return None


async def _call(
    session: aiohttp.ClientSession, change: ChangeRequest, method: str, url: str, body: Mapping[str, str] | None = None
) -> Any:
    try:
        # A redirect could carry the token to another host.
        async with session.request(method, url, json=body, allow_redirects=False) as response:
            text = await response.text(errors="replace")
            if response.status >= 300:
                raise CommentError(_refusal(change, method, url, response.status, text))
            return json.loads(text)
    except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError) as error:
        detail = str(error).replace(change.token, "***") or type(error).__name__
        raise CommentError(f"{change.host} at {urlsplit(url).netloc} cannot be asked: {detail}") from None


def _refusal(change: ChangeRequest, method: str, url: str, status: int, text: str) -> str:
    try:
        said = str(json.loads(text).get("message", ""))
    except (json.JSONDecodeError, AttributeError):
        said = ""
    said = said.replace(change.token, "***")[:200]
    hint = {
        401: "; the token is not valid",
        403: "; the token may not write comments (on GitHub: permissions: pull-requests: write)",
        404: "; there is no such change, or the token may not see it",
    }.get(status, "")
    return f"{change.host} answered {status} to {method} {urlsplit(url).path}{f' ({said})' if said else ''}{hint}"
