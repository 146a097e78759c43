"""Errors in one shape everywhere: `{"error": {"code", "message", "field"}}`, or a page that says the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard import errors
from steelyard.records import Language
from steelyard.text.wording import say
from steelyard.web.rendering import JSON, environment, frame, language_of

log = logging.getLogger("steelyard.web")

# The first that fits counts.
KINDS: tuple[tuple[type[errors.SteelyardError], int, str], ...] = (
    (errors.UnknownRun, 404, "not_found"),
    (errors.UnknownSet, 404, "not_found"),
    (errors.UnknownQueue, 404, "not_found"),
    (errors.UnknownExperiment, 404, "not_found"),
    (errors.RunInUse, 409, "in_use"),
    (errors.InputError, 422, "invalid"),
    (errors.NotComparable, 422, "not_comparable"),
    (errors.NotAllowed, 403, "forbidden"),
    (errors.ConfigError, 422, "invalid"),
    (errors.JudgeError, 502, "judge"),
    (errors.MissingExtra, 501, "missing_extra"),
    (errors.StoreError, 503, "store"),
    (errors.SteelyardError, 500, "failed"),
)
CODES = {
    400: "invalid",
    401: "token_needed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported",
    422: "invalid",
    503: "busy",
}


class ErrorDetail(BaseModel):
    """The error, and the field of the request that it is about."""

    code: str
    message: str
    field: str | None = Field(default=None, description="the field it is about, as a dotted path")
    reasons: tuple[tuple[str, str], ...] | None = Field(
        default=None, description="of not_comparable: what the runs differ in, code and detail"
    )


class ErrorBody(BaseModel):
    """The shape of every answer that is not a success."""

    error: ErrorDetail


# What any operation of the API may answer besides a success, for its document.
FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The request cannot be read."},
    401: {"model": ErrorBody, "description": "A token is needed, or this one is not right."},
    403: {"model": ErrorBody, "description": "Your role does not allow it; or another site made the request."},
    404: {"model": ErrorBody, "description": "There is no such thing."},
    405: {"model": ErrorBody, "description": "Not with this method."},
    409: {"model": ErrorBody, "description": "Not now: another process is working on the run."},
    413: {"model": ErrorBody, "description": "The request is too large."},
    415: {"model": ErrorBody, "description": "Not in this form."},
    422: {"model": ErrorBody, "description": "Something in the request does not fit; `field` says what."},
    500: {"model": ErrorBody, "description": "Something unexpected happened; the terminal of the viewer says what."},
    503: {"model": ErrorBody, "description": "The store cannot be used."},
}
# The same for what makes a judge.
JUDGING: dict[int | str, dict[str, Any]] = {
    501: {"model": ErrorBody, "description": "The judge needs an optional dependency; the message names it."},
    502: {"model": ErrorBody, "description": "The judge cannot be used; the message says why."},
    503: {
        "model": ErrorBody,
        "description": "Too many evaluations at once, or the store cannot be used.",
        "headers": {"Retry-After": {"schema": {"type": "string"}, "description": "seconds, where it is the former"}},
    },
}


def wants_json(request: Request) -> bool:
    path = request.url.path
    return path.startswith("/api/") or path.endswith(JSON)


def problem_response(
    request: Request,
    status: int,
    message: str,
    *,
    code: str = "",
    field: str | None = None,
    reasons: tuple[tuple[str, str], ...] | None = None,
    headers: Mapping[str, str] | None = None,
    refusal: errors.FormRefused | None = None,
) -> Response:
    """The answer to a request that failed; a page says a refusal in the reader's language."""
    code, message = code or CODES.get(status, "failed"), " ".join(message.split())
    problem = ErrorDetail(code=code, message=message, field=field, reasons=reasons)
    if wants_json(request):
        body = ErrorBody(error=problem).model_dump_json(exclude_none=True)
        return Response(body, status, headers, media_type="application/json")
    language = language_of(request)
    if refusal:
        problem = ErrorDetail(code=code, message=refusal_text(refusal, language))
    text = (
        environment()
        .get_template("error.html")
        .render(problem=problem, status=status, name=HTTPStatus(status).phrase, **frame(request, language))
    )
    return Response(text, status, headers, media_type="text/html")


def refusal_text(error: errors.SteelyardError, language: Language) -> str:
    """What went wrong; a refusal in the reader's language."""
    if isinstance(error, errors.FormRefused):
        return say(language, f"viewer.refused.{error.code}").format(**error.values)
    return " ".join(str(error).split())


async def on_steelyard_error(request: Request, error: Exception) -> Response:
    status, code = next((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    reasons = error.reasons if isinstance(error, errors.NotComparable) else None
    field = getattr(error, "field", None)
    refusal = error if isinstance(error, errors.FormRefused) else None
    return problem_response(request, status, str(error), code=code, field=field, reasons=reasons, refusal=refusal)


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(request, error.status_code, error.detail, headers=error.headers)


async def on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)
    found = errors.invalid_field(error)
    return problem_response(request, 422, found.problem, field=_without_place(found.field))


def _without_place(field: str) -> str | None:
    """`body.samples.3.answer` as `samples.3.answer`: which part of a request has a field matters to nobody."""
    place, _, rest = field.partition(".")
    return (rest if place in ("body", "query", "path", "header", "cookie") else field) or None


def unexpected(request: Request) -> Response:
    return problem_response(request, 500, "something unexpected happened; please report it with what the terminal says")


async def on_unexpected(request: Request, error: Exception) -> Response:
    """For the API, which as an application of its own would say it in plain text before `Unexpected` hears of it."""
    return unexpected(request)


HANDLERS: Mapping[Any, Any] = {
    errors.SteelyardError: on_steelyard_error,
    HTTPException: on_http_error,
    RequestValidationError: on_invalid,
    ValidationError: on_invalid,
}


class Unexpected:
    """An internal error: the details go to the log, the reader gets a general message."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await unexpected(Request(scope, receive))(scope, receive, send)
