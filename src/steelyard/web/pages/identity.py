"""A run's name, notes and tags: changed on its page and over the API."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import InputError
from steelyard.store import RunRow
from steelyard.store.rows import MetaValue
from steelyard.text.wording import say
from steelyard.web.addresses import run_address
from steelyard.web.rendering import language_of
from steelyard.web.viewer import Viewer, viewer_of

# Chinese is typed with commas of its own.
COMMAS = str.maketrans("，、", ",,")


def edit(viewer: Viewer, run: str, changes: dict[str, Any]) -> RunRow:
    """Change what is given of a run's identity; the rest stays."""
    with viewer.store() as store:
        row = store.run(run)
        project = changes.get("project", row.project)
        # Whoever edits a run may not put it where they may edit nothing.
        if project != row.project and not viewer.may("edit", project):
            raise HTTPException(403, f"you may not edit runs of the project {project!r}")
        return store.edit_run(row.id, **changes)


async def save(request: Request) -> Response:
    """The form on the run's page, which always carries all of it."""
    async with request.form(max_files=0, max_fields=20) as form:
        changes: dict[str, Any] = {
            "name": _text(form, "name").strip(),
            "project": _text(form, "project").strip(),
            "notes": _text(form, "notes").replace("\r\n", "\n").strip(),
            "tags": [tag.strip() for tag in _text(form, "tags").translate(COMMAS).split(",") if tag.strip()],
            "meta": meta_of(_text(form, "meta"), say(language_of(request), "viewer.identity.line")),
            "baseline": form.get("baseline") == "1",
        }
    row = await run_in_threadpool(_saved, viewer_of(request), request.path_params["run"], changes)
    return RedirectResponse(run_address(row.id), 303)


def _saved(viewer: Viewer, run: str, changes: dict[str, Any]) -> RunRow:
    with viewer.store() as store:
        known = store.run(run).meta
    # A form has only texts: what nobody touched stays the number that a program set.
    kept = {key: known[key] if str(known.get(key)) == value else value for key, value in changes["meta"].items()}
    return edit(viewer, run, {**changes, "meta": kept})


def _text(form: FormData, name: str) -> str:
    given = form.get(name)
    return given if isinstance(given, str) else ""


def meta_of(text: str, problem: str, field: str = "meta") -> dict[str, MetaValue]:
    """Lines of key=value; values are text, as those of the command line are."""
    found: dict[str, MetaValue] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not key.strip():
            raise InputError(problem.format(line=number), field=field)
        found[key.strip()] = value.strip()
    return found


routes = [Route("/runs/{run}/identity", save, methods=["POST"])]
