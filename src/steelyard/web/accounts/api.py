"""The audit log over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from steelyard.records import Record
from steelyard.store import AuditEntry
from steelyard.web.accounts.pages import read_audit
from steelyard.web.viewer import viewer_of

router = APIRouter(tags=["audit"])


class AuditLog(Record):
    entries: tuple[AuditEntry, ...]


@router.get("/audit")
def audit(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> AuditLog:
    """Who did what, newest first: in the projects that you are an admin of."""
    return AuditLog(entries=tuple(read_audit(viewer_of(request), limit, offset)))
