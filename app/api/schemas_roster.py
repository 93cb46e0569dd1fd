"""HTTP models of the runs that take lists, under /api/v1/roster."""

from typing import Any

from pydantic import Field

from app.api.validation import Identifier, Instant, Response
from app.roster.contract import RunStatus


class RosterRunJson(Response):
    id: Identifier
    status: RunStatus
    started_at: Instant
    finished_at: Instant
    report: dict[str, Any] = Field(
        description="By kind, what was added, modified, removed or held back; by list, what was read and left out."
    )


class ApprovedJson(Response):
    kinds: list[str]


class KeptListJson(Response):
    sha256: str
    size: int = Field(description="In bytes.")
