"""What this viewer is and what it offers."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request

from steelyard import __version__
from steelyard.protocols import get_protocol, protocol_names
from steelyard.records import Record
from steelyard.web.pages.judges import JudgeInfo, listed
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["about"])


class Health(Record):
    status: Literal["ok"] = "ok"
    version: str


class ProtocolInfo(Record):
    """A way to judge: what it wants, what it scores, and the JSON schema of its options."""

    name: str
    kind: Literal["rag", "dialogue", "pair"]
    scores: tuple[str, ...]
    main_score: str
    version: int
    options: dict[str, Any]


class Protocols(Record):
    protocols: tuple[ProtocolInfo, ...]


class Judges(Record):
    default: str
    judges: tuple[JudgeInfo, ...]


@router.get("/health")
def health() -> Health:
    """Whether the viewer is there."""
    return Health(version=__version__)


@router.get("/protocols")
def protocols() -> Protocols:
    """The protocols with their options."""
    found = ((name, get_protocol(name)) for name in protocol_names())
    return Protocols(
        protocols=tuple(
            ProtocolInfo(
                name=name,
                kind=one.kind,
                scores=one.scores,
                main_score=one.main,
                version=one.version,
                options=one.options.model_json_schema(),
            )
            for name, one in found
        )
    )


@router.get("/judges")
def judges(request: Request) -> Judges:
    """The judges that may be named. Keys are named by their variables, and never shown."""
    known = listed(viewer_of(request).config)
    return Judges(default=known.default, judges=known.judges)
