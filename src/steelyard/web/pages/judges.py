"""The page of judges: settings, prices, measured agreement with people, and a check of each."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steelyard.errors import SteelyardError
from steelyard.evaluation.factory import JudgeFactory, is_provider, judge_names
from steelyard.judges.check import Qualification, check_each
from steelyard.judges.endpoint import Price
from steelyard.judges.models import ModelCache, known_models
from steelyard.judges.models.cache import size_text
from steelyard.judges.models.catalogue import DEFAULT
from steelyard.judges.models.verifiers import VerifierCache
from steelyard.judges.prices import shipped
from steelyard.judges.providers import providers
from steelyard.records import Record
from steelyard.reports.agreement import AgreementSummary, summary
from steelyard.settings import Settings
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.viewer import viewer_of


class JudgeInfo(Record):
    """A judge as the settings name it. Keys are named by their variables; their values are nowhere in here."""

    name: str
    kind: str
    model: str = ""
    host: str = ""
    key_env: str = ""
    key_is_set: bool | None = None
    price: Price | None = None
    agreement: AgreementSummary | None = None
    is_default: bool = False
    can_be_checked: bool = True
    problem: str = ""


class ModelInfo(Record):
    """A model that the local judge can use."""

    name: str
    title: str
    size: str
    licence: str
    is_here: bool


class JudgesPage(Record):
    judges: tuple[JudgeInfo, ...]
    models: tuple[ModelInfo, ...]
    default: str
    why: str
    prices_as_of: str
    checked: Qualification | None = None


def judges(request: Request) -> Response:
    return page(request, "judges.html", listed(viewer_of(request).config))


def listed(config: Settings, checked: Qualification | None = None) -> JudgesPage:
    choice = config.choose(None)
    return JudgesPage(
        judges=tuple(_judges(config, choice.name)),
        models=tuple(_models(config)),
        default=choice.name,
        why=choice.why,
        prices_as_of=min(listed.as_of for listed in shipped().values()),
        checked=checked,
    )


def _judges(config: Settings, default: str) -> Iterator[JudgeInfo]:
    found = [JudgeInfo(name="embedded", kind="embedded", agreement=summary("embedded"))]
    local = summary(f"local:{known_models()[DEFAULT].full_title}")
    found.append(JudgeInfo(name="local", kind="local", agreement=local, can_be_checked=_has_model(config)))
    for record in VerifierCache.of_user(config.environment).records():
        name = f"verifier:{record.name}"
        found.append(JudgeInfo(name=name, kind="verifier", agreement=summary(name)))
    found += [_own(config, name) for name in config.judges]
    if is_provider(default) and default not in config.judges:
        kind, _, model = default.partition(":")
        found.append(_over_http(config, default, kind, model))
    found += [JudgeInfo(name=name, kind="installed") for name in judge_names(config)[len(config.judges) :]]
    for judge in found:
        yield judge.model_copy(update={"is_default": judge.name == default})


def _own(config: Settings, name: str) -> JudgeInfo:
    table = config.judges[name]
    kind, model = str(table.get("kind", "openai")), str(table.get("model", ""))
    info = JudgeInfo(name=name, kind=kind, model=model, agreement=summary(f"{name}:{model}"))
    return _over_http(config, name, kind, model) if kind in providers() else info


def _over_http(config: Settings, name: str, kind: str, model: str) -> JudgeInfo:
    info = JudgeInfo(name=name, kind=kind, model=model, agreement=summary(f"{name}:{model}"))
    try:
        endpoint = JudgeFactory(config).endpoint(name)
    except SteelyardError as error:
        return info.model_copy(update={"problem": str(error), "can_be_checked": False})
    if endpoint is None:
        return info
    key = endpoint.key_env or ""
    return info.model_copy(
        update={
            # Not the whole address: people put tokens into paths and queries.
            "host": urlsplit(endpoint.base_url).netloc,
            "key_env": key,
            "key_is_set": bool(config.environment.get(key)) if key else None,
            "price": endpoint.price,
        }
    )


def _has_model(config: Settings) -> bool:
    return bool(ModelCache.of_user(config.environment).records())


def _models(config: Settings) -> Iterator[ModelInfo]:
    here = {record.name: record for record in ModelCache.of_user(config.environment).records()}
    for name, known in known_models().items():
        title = f"{known.title} {known.quantisation}"
        size = size_text(known.size)
        yield ModelInfo(name=name, title=title, size=size, licence=known.licence, is_here=name in here)
    for name in here.keys() - known_models().keys():
        record = here[name]
        yield ModelInfo(name=name, title="", size=size_text(record.size), licence=record.licence, is_here=True)


async def health(request: Request) -> Response:
    """Ask the judge three small things and say what came of it."""
    viewer = viewer_of(request)
    async with request.form() as form:
        name = str(form.get("judge", ""))
    known = listed(viewer.config)
    if name not in [judge.name for judge in known.judges if judge.can_be_checked]:
        raise HTTPException(404, f"there is no judge {name!r} to check")
    language = language_of(request)
    judge = JudgeFactory(viewer.config, store=viewer.store_location).judge(name)
    try:
        each = await check_each(judge, "en" if language == "en" else "zh")
        # Of two judges in a row, the one that is not fit is the news.
        found = next((one for one in each if not one.fit), each[-1])
    finally:
        await judge.aclose()
    named = found.model_copy(update={"judge": name, "verdict": found.closing(language)})
    return page(request, "judges.html", listed(viewer.config, named))


routes = [
    Route("/judges/check.json", health, methods=["POST"]),
    Route("/judges/check", health, methods=["POST"]),
    *page_routes("/judges", judges),
]
