"""Dead letters: list, redrive, discard."""

from uuid import UUID

from app.api.access import ADMIN, COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas import PageJson
from app.api.schemas_actions import DeadLetterJson, DeadLettersQuery, DiscardedJson, MeantBody, RedrivenJson
from app.delivery import service as delivery
from app.delivery.contract import EVERY, DeadLetterClosed, DeadLetterCriteria, DeadLetterTooLate, NothingToRedrive
from app.foundation.errors import InvalidValue, NotFound

routes = Routes("Dead letters")


@routes.add(
    "GET", "/api/v1/dead-letters", who=COORDINATORS, answers={200: PageJson[DeadLetterJson]}, errors=(InvalidValue,)
)
def list_dead_letters(call: Call, query: DeadLettersQuery) -> PageJson[DeadLetterJson]:
    """List dead letters, newest first."""
    with call.services.db.reading() as conn:
        page = delivery.list_dead_letters(
            conn, call.scope, status=query.status, which=query.to_filter(), cursor=query.cursor, limit=query.limit
        )
    return PageJson[DeadLetterJson].model_validate(page)


@routes.add(
    "GET",
    "/api/v1/dead-letters/{deadLetterId}",
    who=COORDINATORS,
    answers={200: DeadLetterJson},
    errors=(NotFound,),
)
def get_dead_letter(call: Call, dead_letter_id: UUID) -> DeadLetterJson:
    """Show one dead letter."""
    with call.services.db.reading() as conn:
        return DeadLetterJson.model_validate(delivery.get_dead_letter(conn, call.scope, dead_letter_id))


@routes.add(
    "POST",
    "/api/v1/dead-letters/{deadLetterId}/redrive",
    who=COORDINATORS,
    answers={200: DeadLetterJson},
    errors=(NotFound, DeadLetterClosed, DeadLetterTooLate, NothingToRedrive),
)
def redrive_dead_letter(call: Call, dead_letter_id: UUID) -> DeadLetterJson:
    """Redrive one dead letter.

    Its notification is sent again with the same id, so that the receiver can recognise it. Of two simultaneous calls,
    one gets 409.
    """
    with call.services.db.transaction() as conn:
        delivery.redrive_dead_letter(
            conn, call.scope, dead_letter_id, call.caller.id, call.services.settings.notification_max_age_s
        )
        return DeadLetterJson.model_validate(delivery.get_dead_letter(conn, call.scope, dead_letter_id))


@routes.add("POST", "/api/v1/dead-letters/redrive", who=ADMIN, answers={200: RedrivenJson}, errors=(InvalidValue,))
def redrive_dead_letters(call: Call, body: MeantBody) -> RedrivenJson:
    """Redrive all dead letters that match, the oldest first.

    One call redrives 200 at most; call again while `remaining` is above 0. Open dead letters that cannot be redriven,
    because they have expired or never became a notification, are counted as `skipped` and stay open.
    """
    which = _criteria(body)
    max_age_s = call.services.settings.notification_max_age_s
    with call.services.db.transaction() as conn:
        return RedrivenJson.model_validate(
            delivery.redrive_dead_letters(conn, which, call.caller.id, max_age_s=max_age_s), from_attributes=True
        )


@routes.add(
    "POST",
    "/api/v1/dead-letters/{deadLetterId}/discard",
    who=COORDINATORS,
    answers={200: DeadLetterJson},
    errors=(NotFound, DeadLetterClosed),
)
def discard_dead_letter(call: Call, dead_letter_id: UUID) -> DeadLetterJson:
    """Discard one dead letter: close it without sending it again."""
    with call.services.db.transaction() as conn:
        delivery.discard_dead_letter(conn, call.scope, dead_letter_id, call.caller.id)
        return DeadLetterJson.model_validate(delivery.get_dead_letter(conn, call.scope, dead_letter_id))


@routes.add("POST", "/api/v1/dead-letters/discard", who=ADMIN, answers={200: DiscardedJson}, errors=(InvalidValue,))
def discard_dead_letters(call: Call, body: MeantBody) -> DiscardedJson:
    """Discard all dead letters that match, the oldest first.

    One call discards 200 at most; call again while `remaining` is above 0.
    """
    which = _criteria(body)
    with call.services.db.transaction() as conn:
        return DiscardedJson.model_validate(
            delivery.discard_dead_letters(conn, which, call.caller.id), from_attributes=True
        )


def _criteria(body: MeantBody) -> DeadLetterCriteria:
    which = body.to_filter()
    if which == EVERY and body.all is not True:
        raise InvalidValue("all", "must be true if no filter is given")
    return which
