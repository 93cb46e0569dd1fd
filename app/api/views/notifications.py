"""Notifications: submit, list, show."""

from collections.abc import Mapping
from uuid import UUID

from app.api import validation
from app.api.access import COORDINATORS
from app.api.errors import BadRequest
from app.api.idempotency import key_header, read_key
from app.api.load import Draining, refuse_while_draining
from app.api.routing import Call, Routes
from app.api.schemas import (
    NewNotificationBody,
    NotificationInFullJson,
    NotificationJson,
    NotificationsQuery,
    PageJson,
    ReadableOfNotification,
    SubmittedJson,
)
from app.delivery import service as delivery
from app.delivery.contract import BacklogFull, SendingLimited, SendingLimits, SubmissionKey
from app.foundation.errors import IdempotencyKeyReused, InvalidValue, NotFound

routes = Routes("Notifications")


def _find_more_problems(call: Call, content: bytes) -> Mapping[str, str]:
    try:
        read = validation.read_body(ReadableOfNotification, content)
    except BadRequest:
        # The body is not a JSON object.
        return {}
    with call.services.db.reading() as conn:
        return delivery.refusals_of_submission(
            conn,
            call.scope,
            read.notification_type,
            read.recipient,
            read.metadata,
            read.expires_at,
            call.services.settings.country_code,
            call.services.settings.sms_country_codes,
        )


@routes.add(
    "POST",
    "/api/notifications",
    who=COORDINATORS,
    answers={202: SubmittedJson},
    headers=(
        key_header(
            "A request that its caller repeats with the same key returns the same notification. Keys do not expire."
        ),
    ),
    errors=(InvalidValue, IdempotencyKeyReused, SendingLimited, BacklogFull, Draining),
    find_more_problems=_find_more_problems,
    is_witnessed=False,
)
def submit_notification(call: Call, body: NewNotificationBody) -> SubmittedJson:
    """Send a notification.

    202 once the notification is committed; `GET /api/notifications/{id}` shows its status.
    """
    refuse_while_draining()
    call.site.backlog.admit()
    key = read_key(call)
    settings = call.services.settings
    with call.services.db.transaction() as conn:
        call.site.backlog.hold_place(conn)
        submitted = delivery.submit_notification(
            conn,
            call.scope,
            body.to_submission(),
            settings.country_code,
            SubmissionKey(call.caller.id, key) if key else None,
            countries=settings.sms_country_codes,
        )
        if submitted.is_new:
            limits = SendingLimits.from_settings(settings)
            delivery.count_message(conn, limits, call.caller.id, body.notification_type, submitted.recipient)
    if submitted.is_new:
        call.site.backlog.note_added()
    return SubmittedJson(id=submitted.id, submitted_at=submitted.submitted_at)


@routes.add(
    "GET", "/api/notifications", who=COORDINATORS, answers={200: PageJson[NotificationJson]}, errors=(InvalidValue,)
)
def list_notifications(call: Call, query: NotificationsQuery) -> PageJson[NotificationJson]:
    """List notifications, newest first."""
    with call.services.db.reading() as conn:
        page = delivery.list_notifications(
            conn,
            call.scope,
            recipient_user_id=query.recipient_user_id,
            status=query.status,
            notification_type=query.notification_type,
            cursor=query.cursor,
            limit=query.limit,
        )
    return PageJson[NotificationJson].model_validate(page)


@routes.add(
    "GET",
    "/api/notifications/{notificationId}",
    who=COORDINATORS,
    answers={200: NotificationInFullJson},
    errors=(NotFound,),
)
def get_notification(call: Call, notification_id: UUID) -> NotificationInFullJson:
    """Show one notification with every attempt to send it."""
    with call.services.db.reading() as conn:
        return NotificationInFullJson.model_validate(delivery.get_notification(conn, call.scope, notification_id))
