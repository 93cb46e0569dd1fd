"""HTTP models of the changes of lists and of consumers. The names in the answer of the feed are those of the seed."""

from typing import Literal

from pydantic import ConfigDict, Field

from app.api.validation import (
    Cursor,
    Instant,
    LargePageSize,
    Name,
    PageNumber,
    Request,
    Response,
    ServiceMoment,
)
from app.roster.models import ConsumerScope


class ChangesQuery(Request):
    since: ServiceMoment | None = Field(None, description="Changes after this time. Required without `cursor`.")
    until: ServiceMoment | None = Field(None, description="Changes up to this time and at it; now if absent.")
    page: PageNumber = 1
    page_size: LargePageSize = 100
    cursor: Cursor | None = Field(
        None, description="Changes after this place, instead of `since`, `until` and `page`: the recommended way."
    )


class ChangeJson(Response):
    """Besides these members, it has those of the kind. All of them are null if it was removed."""

    model_config = ConfigDict(extra="allow")

    identifier: str
    changeType: Literal["added", "modified", "removed"]
    changedAt: str = Field(description="Service time; `einvoice` and `edespatch` show it without an offset.")
    aliases: list[dict[str, str | None]] | None


class ChangesJson(Response):
    changes: list[ChangeJson]
    total_count: int = Field(description="Of all pages.")
    page: int
    page_size: int
    total_pages: int
    until: str = Field(description="Use it as the next `since`, after the last page.")
    next_cursor: str = Field(description="Use it as the next `cursor`, also if there are no changes.")


class NewConsumerBody(Request):
    kind: str = Field(max_length=100, examples=["students"])
    name: Name
    scope: ConsumerScope = ConsumerScope.READ


class ConsumerJson(Response):
    id: int
    kind: str
    name: str
    scope: ConsumerScope
    created_at: Instant
    used_at: Instant | None = Field(description="To the minute.")
    revoked_at: Instant | None


class NewConsumerJson(Response):
    consumer: ConsumerJson
    token: str = Field(description="Shown only here.")
