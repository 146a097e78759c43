"""Pages: one model, as HTML for people and as JSON for programs, in the reader's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from steelyard import __version__
from steelyard.protocols import vocabulary
from steelyard.records import Language
from steelyard.reports.html.environment import make_environment
from steelyard.text.wording import LANGUAGES, say
from steelyard.web.addresses import sample_address
from steelyard.web.viewer import Viewer, viewer_of

Handler = Callable[[Request], Any]
COOKIE = "steelyard_lang"
YEAR = 365 * 24 * 3600
JSON = ".json"
# The sections of the viewer, as its header shows them.
SECTIONS = ("runs", "trends", "compare", "sets", "label", "judges", "prompts")
NAMES = {"zh-Hans": "简体", "zh-Hant": "繁體", "en": "English"}


@cache
def environment() -> Environment:
    """The report's templates with those of the viewer before them."""
    return make_environment(PackageLoader("steelyard.web"))


def page_routes(path: str, handler: Handler) -> list[Route]:
    """A page under its address, and the same as JSON under its address with `.json`."""
    return [Route(f"{path}{JSON}", handler, methods=["GET"]), Route(path, handler, methods=["GET"])]


def is_json(request: Request) -> bool:
    return request.url.path.endswith(JSON)


def page(request: Request, template: str, model: BaseModel, *, status: int = 200, **extras: Any) -> Response:
    """The model as the address asks for it. `extras` are for the template alone: charts, views, what is not data."""
    if is_json(request):
        return Response(model.model_dump_json(), status, media_type="application/json")
    language = language_of(request)
    text = environment().get_template(template).render(model=model, **frame(request, language), **extras)
    response = HTMLResponse(text, status, headers={"Content-Language": language, "Cache-Control": "no-store"})
    if request.query_params.get("lang") == language:
        response.set_cookie(COOKIE, language, max_age=YEAR, samesite="lax", httponly=True)
    return response


def frame(request: Request, language: Language) -> dict[str, Any]:
    """What the base template needs on every page."""
    viewer = viewer_of(request)
    return {
        "say": partial(say, language),
        "protocol_name": lambda name: vocabulary(name).told(language),
        "language": language,
        "languages": [(name, NAMES[name], with_query(request, lang=name)) for name in LANGUAGES],
        "sections": _sections(viewer),
        "section": _section(request.url.path),
        "as_json": f"{request.url.path.rstrip('/')}{JSON}{'?' if request.url.query else ''}{request.url.query}",
        "version": __version__,
        "person": viewer.person,
        "may": viewer.may,
        "sample_href": sample_address,
    }


def _sections(viewer: Viewer) -> tuple[str, ...]:
    """Who is not signed in to a team's server sees no more of it than the page where one does."""
    if viewer.accounts is None:
        return SECTIONS
    if viewer.person is None:
        return ()
    return (*SECTIONS, "users", "audit") if viewer.may("read users") else SECTIONS


def _section(path: str) -> str:
    """Which part of the viewer an address belongs to; a run is labelled below its own address."""
    first, *rest = path.strip("/").removesuffix(JSON).split("/")
    return "label" if rest[1:2] == ["label"] else first


def with_query(request: Request, **changes: object) -> str:
    """This address with some of its query changed; None takes a parameter out."""
    given = [(name, value) for name, value in request.query_params.multi_items() if name not in changes]
    given += [(name, str(value)) for name, value in changes.items() if value is not None]
    # A path that begins with two slashes would be read as the name of another host.
    path = f"/{request.url.path.lstrip('/')}"
    return f"{path}?{urlencode(given)}" if given else path


def language_of(request: Request) -> Language:
    """The reader's language: as this address says, as chosen before, as the viewer was started, as the browser asks."""
    for named in (request.query_params.get("lang"), request.cookies.get(COOKIE), viewer_of(request).language):
        for known in LANGUAGES:
            if named == known:
                return known
    return accepted(request.headers)


def accepted(headers: Mapping[str, str]) -> Language:
    """The first language of Accept-Language that there is; English where there is none."""
    wishes = []
    for place, part in enumerate(headers.get("accept-language", "").split(",")):
        tag, _, weight = part.strip().lower().partition(";q=")
        try:
            wishes.append((-float(weight or 1), place, tag))
        except ValueError:
            continue
    for _, _, tag in sorted(wishes):
        if tag.startswith("zh"):
            return "zh-Hant" if any(part in tag for part in ("hant", "-tw", "-hk", "-mo")) else "zh-Hans"
        if tag.startswith("en"):
            return "en"
    return "en"
