"""Consumers of the roster and their tokens, for administrators."""

from app.api.access import ADMIN
from app.api.routing import Call, Reply, Routes
from app.api.schemas import PageJson, PageQuery
from app.api.schemas_feed import ConsumerJson, NewConsumerBody, NewConsumerJson
from app.api.validation import PathIdentifier
from app.foundation.errors import InvalidValue
from app.roster import service as roster
from app.roster.contract import ConsumerNotFound

routes = Routes("Roster")


@routes.add("POST", "/api/v1/roster/consumers", who=ADMIN, answers={201: NewConsumerJson}, errors=(InvalidValue,))
def create_consumer(call: Call, body: NewConsumerBody) -> Reply:
    """Add a consumer of one kind.

    The answer holds its token, which cannot be shown again.
    """
    with call.services.db.transaction() as conn:
        new = roster.create_consumer(conn, body.kind, body.name, body.scope, call.caller.id)
    location = f"/api/v1/roster/consumers/{new.consumer.id}"
    return Reply(NewConsumerJson.model_validate(new), headers={"Location": location})


@routes.add("GET", "/api/v1/roster/consumers", who=ADMIN, answers={200: PageJson[ConsumerJson]}, errors=(InvalidValue,))
def list_consumers(call: Call, query: PageQuery) -> PageJson[ConsumerJson]:
    """List the consumers, newest first, with those whose tokens are revoked."""
    with call.services.db.reading() as conn:
        page = roster.list_consumers(conn, cursor=query.cursor, limit=query.limit)
    return PageJson[ConsumerJson].model_validate(page)


@routes.add(
    "DELETE", "/api/v1/roster/consumers/{consumerId}", who=ADMIN, answers={204: None}, errors=(ConsumerNotFound,)
)
def revoke_consumer(call: Call, consumer_id: PathIdentifier) -> None:
    """Revoke the token of a consumer.

    It is refused from the next call on. A repeat is harmless.
    """
    with call.services.db.transaction() as conn:
        roster.revoke_consumer(conn, consumer_id)
