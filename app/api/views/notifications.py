"""What was sent to whom, and what became of it."""

from uuid import UUID

from app.api.access import COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas import NotificationInFullJson, NotificationJson, NotificationsQuery, PageJson
from app.delivery import service as delivery
from app.errors import InvalidValue, NotFound

routes = Routes("Notifications")


@routes.add(
    "GET", "/api/notifications", who=COORDINATORS, answers={200: PageJson[NotificationJson]}, errors=(InvalidValue,)
)
def list_notifications(call: Call, query: NotificationsQuery) -> PageJson[NotificationJson]:
    """List notifications, newest first."""
    with call.services.db.reading() as conn:
        page = delivery.list_notifications(
            conn,
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
        return NotificationInFullJson.model_validate(delivery.get_notification(conn, notification_id))
