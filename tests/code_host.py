"""GitHub's and GitLab's comments on loopback, as both document them: listed in pages, made, edited, with a token."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

from aiohttp import web


class CodeHost:
    """The server; `comments` is what stands below the change, `calls` what was asked."""

    def __init__(self, token: str = "s3cret-token") -> None:
        self.token = token
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.refuse: web.Response | None = None
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    @property
    def github(self) -> dict[str, str]:
        """The variables of a build of GitHub for pull request 7."""
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_REPOSITORY": "acme/assistant",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_TOKEN": self.token,
            "GITHUB_EVENT_NAME": "pull_request",
        }

    @property
    def gitlab(self) -> dict[str, str]:
        """The variables of a pipeline of GitLab for merge request 7."""
        ids = {"CI_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": "7"}
        return {"CI_API_V4_URL": f"{self.url}/api/v4", "GITLAB_TOKEN": self.token, **ids}

    def say(self, body: str) -> None:
        self.comments.append({"id": len(self.comments) + 100, "body": body})

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application()
        github, gitlab = "/repos/acme/assistant/issues", "/api/v4/projects/42/merge_requests/7/notes"
        for path in (f"{github}/7/comments", gitlab):
            app.router.add_get(path, self._list)
            app.router.add_post(path, self._add)
        app.router.add_patch(f"{github}/comments/{{id}}", self._edit)
        app.router.add_put(f"{gitlab}/{{id}}", self._edit)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def _refused(self, request: web.Request) -> web.Response | None:
        self.calls.append((request.method, request.path_qs))
        if self.refuse is not None:
            return self.refuse
        given = request.headers.get("PRIVATE-TOKEN") or request.headers.get("Authorization", "")
        if given.removeprefix("Bearer ") != self.token:
            return web.json_response({"message": f"Bad credentials {given}"}, status=401)
        return None

    async def _list(self, request: web.Request) -> web.Response:
        page, size = int(request.query["page"]), int(request.query["per_page"])
        return self._refused(request) or web.json_response(self.comments[(page - 1) * size : page * size])

    async def _add(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        self.say((await request.json())["body"])
        return web.json_response(self.comments[-1], status=201)

    async def _edit(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        one = next(comment for comment in self.comments if str(comment["id"]) == request.match_info["id"])
        one["body"] = (await request.json())["body"]
        return web.json_response(one)
