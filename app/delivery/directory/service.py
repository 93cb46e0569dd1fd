"""The directory: profiles, their channels, and the secrets that sign the requests to webhooks."""

from typing import Any, cast

from sqlalchemy import Connection, delete, func, select, update

from app.db.tables import EditableTable, TableRow, Values, retire_all
from app.delivery.directory.errors import NotAWebhook, ProfileHasChannels
from app.delivery.directory.models import channel_verifications, recipient_channels, recipient_profiles
from app.delivery.directory.states import VERIFY_TRANSITIONS, VerifyStatus, initial_status, status_at_new_address
from app.delivery.messages.addresses import ABROAD, InvalidAddress, check_address, is_abroad
from app.delivery.messages.metadata import check_metadata
from app.delivery.messages.rules import DeliveryRules
from app.delivery.messages.submit import user_in
from app.delivery.messages.values import HIDDEN, NotificationType
from app.foundation.errors import InvalidValue
from app.settings.signing_secrets import create as new_secret
from app.users.contract import UserNotFound
from app.users.service import User, get_user

MOST_OLD_SECRETS = 2
LONGEST_TARGET = 255
WEBHOOK = NotificationType.WEBHOOK.channel_type


def _check_profile(conn: Connection, values: Values, current: TableRow | None, _rules: DeliveryRules) -> None:
    if values.get("user_id") is not None:
        _check_user(conn, "userId", values["user_id"])
    if current is not None:
        # The row is locked, so that no channel is added before this decision is committed.
        current = PROFILES.get(conn, current.id, lock=True)
        if values.get("user_id", current.user_id) != current.user_id and _has_channels(conn, current.id):
            raise ProfileHasChannels
    owner = {name: values.get(name, getattr(current, name, None)) for name in ("user_id", "institution_id")}
    if None not in owner.values():
        raise InvalidValue("institutionId", "cannot be combined with userId: a user has an institution already")


def _has_channels(conn: Connection, profile_id: int) -> bool:
    channels = recipient_channels.c
    in_use = select(channels.id).where(channels.profile_id == profile_id, channels.retired_at.is_(None))
    return conn.execute(in_use).first() is not None


def _retire_channels_of(conn: Connection, profile: TableRow) -> None:
    retire_all(conn, recipient_channels, profile_id=profile.id)


def _check_channel(conn: Connection, values: Values, current: TableRow | None, rules: DeliveryRules) -> None:
    if "target_meta" in values:
        wrong = check_metadata(values["target_meta"])
        if wrong is not None:
            raise InvalidValue("targetMeta", wrong)
    if current is None:
        profile = PROFILES.refer(conn, "profileId", values["profile_id"])
        channel_type = values["channel_type"]
        values["target"] = _target(conn, profile, channel_type, values["target"], rules)
        values["secrets"] = [new_secret()] if channel_type == WEBHOOK else []
        values["verify_status"] = initial_status(channel_type)
        return
    if "target" in values:
        profile = PROFILES.get(conn, current.profile_id)
        values["target"] = _target(conn, profile, current.channel_type, values["target"], rules)
    # The row is locked, so that the address cannot change before this decision is committed.
    current = CHANNELS.get(conn, current.id, lock=True)
    if values.get("target", current.target) != current.target:
        _check_headers_are_for_the_new_address(values, current)
        values["verify_status"] = status_at_new_address(current.channel_type, VerifyStatus(current.verify_status))
        _forget_verification(conn, current.id)
    elif "target_meta" in values:
        values["target_meta"] = _with_known_headers(values["target_meta"], current.target_meta)


def _check_headers_are_for_the_new_address(values: Values, current: TableRow) -> None:
    """Headers may hold secrets that no view shows. A new address must not receive the secrets of the old one."""
    if "target_meta" in values:
        keeps_old_headers = HIDDEN in _headers(values["target_meta"]).values()
    else:
        keeps_old_headers = bool(_headers(current.target_meta))
    if keeps_old_headers:
        raise InvalidValue(
            "targetMeta", "holds headers that were given for the address before; give them anew, or leave them out"
        )


def without_headers(meta: dict[str, Any]) -> dict[str, Any]:
    """The metadata for a view, with hidden values of headers, because they may hold passwords of the receiver."""
    return {**meta, "headers": dict.fromkeys(_headers(meta), HIDDEN)} if _headers(meta) else meta


def _with_known_headers(meta: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Replaces hidden values with the stored ones, because a caller may send back what a view has shown."""
    known = _headers(before)
    headers = {name: known.get(name, value) if value == HIDDEN else value for name, value in _headers(meta).items()}
    return {**meta, "headers": headers} if headers else meta


def _headers(meta: dict[str, Any]) -> dict[str, Any]:
    headers = meta.get("headers")
    return cast("dict[str, Any]", headers) if isinstance(headers, dict) else {}


def _target(conn: Connection, profile: TableRow, channel_type: str, target: str, rules: DeliveryRules) -> str:
    type_ = NotificationType(channel_type.upper())
    try:
        address = check_address(type_, target, rules.country_code)
    except InvalidAddress as error:
        raise InvalidValue("target", str(error)) from None
    if is_abroad(type_, address, rules.sms_countries):
        raise InvalidValue("target", ABROAD)
    if len(address) > LONGEST_TARGET:
        raise InvalidValue("target", f"is longer than {LONGEST_TARGET} characters")
    user_id = user_in(type_, address)
    if user_id is not None:
        _check_addressee(profile, _check_user(conn, "target", user_id))
    return address


def _check_user(conn: Connection, field: str, user_id: int) -> User:
    try:
        return get_user(conn, user_id)
    except UserNotFound:
        raise InvalidValue(field, "is not the id of a user") from None


def _check_addressee(profile: TableRow, user: User) -> None:
    """The messages to a profile do not go to a user who has nothing to do with it."""
    is_wrong_user = profile.user_id not in (None, user.id)
    if is_wrong_user or profile.institution_id not in (None, user.institution_id):
        raise InvalidValue("target", "is not the id of a user")


def _forget_verification_of(conn: Connection, channel: TableRow) -> None:
    _forget_verification(conn, channel.id)


def _forget_verification(conn: Connection, channel_id: int) -> None:
    conn.execute(delete(channel_verifications).where(channel_verifications.c.channel_id == channel_id))


PROFILES = EditableTable[DeliveryRules](
    recipient_profiles, "recipient profile", _check_profile, after_retire=(_retire_channels_of,)
)
CHANNELS = EditableTable(
    recipient_channels,
    "recipient channel",
    _check_channel,
    after_retire=(_forget_verification_of,),
    states={"verify_status": VERIFY_TRANSITIONS},
)


def rotate_secret(conn: Connection, channel_id: int) -> str:
    """Adds a new secret. Requests are signed with the last old ones too, until `forget_old_secrets`."""
    channel = _webhook(conn, channel_id)
    secret = new_secret()
    _keep_secrets(conn, channel_id, [secret, *channel.secrets[:MOST_OLD_SECRETS]])
    return secret


def forget_old_secrets(conn: Connection, channel_id: int) -> None:
    channel = _webhook(conn, channel_id)
    _keep_secrets(conn, channel_id, channel.secrets[:1])


def _webhook(conn: Connection, channel_id: int) -> TableRow:
    channel = CHANNELS.get(conn, channel_id, lock=True)
    if channel.channel_type != WEBHOOK:
        raise NotAWebhook
    return channel


def _keep_secrets(conn: Connection, channel_id: int, secrets: list[str]) -> None:
    channels = recipient_channels
    conn.execute(
        update(channels).where(channels.c.id == channel_id).values(secrets=secrets, updated_at=func.clock_timestamp())
    )
