"""The caller's own state: offer, location, availability, devices, in-app messages."""

from app.api.access import SIGNED_IN, STUDENT
from app.api.routing import Call, Reply, Routes
from app.api.schemas import (
    AvailabilityBody,
    DeviceBody,
    MeJson,
    MessageJson,
    MessagesQuery,
    MyOfferJson,
    PageJson,
    PageQuery,
    RecordedPushJson,
)
from app.api.validation import DeviceId, PathIdentifier, Point
from app.delivery import service as delivery
from app.delivery.contract import InvalidAddress, MessageNotFound, PushesNotRecorded
from app.foundation.errors import InvalidValue, TooManyRequests
from app.matching.contract import MyOffer, Overtaken, Suspended
from app.users import service as users
from app.users.contract import DeviceNotFound, DeviceTaken
from app.users.models import AddressKind, LatLon, Platform, Role

routes = Routes("Me")


@routes.add("GET", "/me", who=SIGNED_IN, answers={200: MeJson})
def me(call: Call) -> MeJson:
    """Show who I am, my open task and my live offer."""
    caller, matching = call.caller, call.services.matching
    is_student = caller.role is Role.STUDENT
    on_duty = None
    if is_student:
        with call.services.db.reading() as conn:
            on_duty = users.is_on_duty(conn, caller.id)
    open_task = matching.open_task(caller) if is_student or caller.role is Role.ELDER else None
    offer = matching.current_offer(caller) if is_student else None
    return MeJson.model_validate(
        {
            "id": caller.id,
            "role": caller.role,
            "name": caller.name,
            "locale": caller.locale,
            "on_duty": on_duty,
            "open_task": open_task,
            "offer": offer,
            "institution_id": caller.institution_id,
            "helpline": call.services.settings.helpline_phone,
            # Last, so that it is as new as possible when it arrives.
            "server_time": call.services.db.now(),
        }
    )


@routes.add("GET", "/me/offer", who=STUDENT, answers={200: MyOfferJson, 204: None})
def my_offer(call: Call) -> MyOfferJson | None:
    """Show the task that I am asked to take. 204 if there is none."""
    offer: MyOffer | None = call.services.matching.current_offer(call.caller)
    return None if offer is None else MyOfferJson.model_validate(offer)


@routes.add("PUT", "/me/location", who=STUDENT, answers={204: None}, errors=(TooManyRequests, Overtaken))
def put_location(call: Call, body: Point) -> Reply:
    """Report my location."""
    call.services.location_limit.hit(call.caller.id)
    call.services.matching.set_location(call.caller.id, LatLon(body.lat, body.lon))
    return Reply(None)


@routes.add("PUT", "/me/availability", who=STUDENT, answers={204: None}, errors=(Suspended, Overtaken))
def put_availability(call: Call, body: AvailabilityBody) -> Reply:
    """Go on duty or off duty. Going off duty withdraws an offer that I have not answered."""
    call.services.matching.set_availability(call.caller, body.on_duty)
    return Reply(None)


@routes.add("PUT", "/me/devices/{deviceId}", who=SIGNED_IN, answers={204: None}, errors=(DeviceTaken, InvalidValue))
def put_device(call: Call, device_id: DeviceId, body: DeviceBody) -> Reply:
    """Register this phone for notifications.

    A phone belongs to the user who signed in last. It moves from another user only with the same token; an app that has
    a new token then chooses a new `deviceId`. The newest 10 phones of a user are kept. A page gives `addressKind`
    WEB_PUSH and as `token` the JSON of its push subscription.
    """
    device = users.DeviceRegistration(device_id, _token(body), body.platform, body.address_kind)
    with call.services.db.transaction() as conn:
        users.put_device(conn, call.caller.id, device, call.services.settings.devices_per_person)
    return Reply(None)


def _token(body: DeviceBody) -> str:
    if body.address_kind is not AddressKind.WEB_PUSH:
        return body.token
    if body.platform is not Platform.WEB:
        raise InvalidValue("platform", "must be WEB for the subscription of a page")
    try:
        return delivery.read_subscription(body.token).token
    except InvalidAddress as error:
        raise InvalidValue("token", str(error)) from None


@routes.add("DELETE", "/me/devices/{deviceId}", who=SIGNED_IN, answers={204: None}, errors=(DeviceNotFound,))
def delete_device(call: Call, device_id: DeviceId) -> Reply:
    """Send no more notifications to this phone."""
    with call.services.db.transaction() as conn:
        users.delete_device(conn, call.caller.id, device_id)
    return Reply(None)


@routes.add("GET", "/me/messages", who=SIGNED_IN, answers={200: PageJson[MessageJson]}, errors=(InvalidValue,))
def list_messages(call: Call, query: MessagesQuery) -> PageJson[MessageJson]:
    """List my in-app messages, newest first."""
    with call.services.db.reading() as conn:
        page = delivery.list_messages(conn, call.caller.id, unread=query.unread, cursor=query.cursor, limit=query.limit)
    return PageJson[MessageJson].model_validate(page)


@routes.add(
    "PUT",
    "/me/messages/{messageId}/read",
    who=SIGNED_IN,
    answers={204: None},
    errors=(MessageNotFound,),
    is_witnessed=False,
)
def read_message(call: Call, message_id: PathIdentifier) -> Reply:
    """Mark a message as read. Repeating it is harmless."""
    with call.services.db.transaction() as conn:
        delivery.mark_read(conn, call.caller.id, message_id)
    return Reply(None)


@routes.add(
    "GET",
    "/me/pushes",
    who=SIGNED_IN,
    answers={200: PageJson[RecordedPushJson]},
    errors=(InvalidValue, PushesNotRecorded),
)
def list_pushes(call: Call, query: PageQuery) -> PageJson[RecordedPushJson]:
    """List the pushes that a copy without providers has recorded for me, newest first.

    404 where pushes are sent.
    """
    delivery.check_pushes_recorded(call.services.settings)
    with call.services.db.reading() as conn:
        page = delivery.list_recorded_pushes(conn, call.caller.id, cursor=query.cursor, limit=query.limit)
    return PageJson[RecordedPushJson].model_validate(page)
