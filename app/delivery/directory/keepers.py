"""Which profiles a coordinator sees, and which ones they keep.

A coordinator keeps their own profile and the profiles of their institution. They see those of the elders and the
coordinators of their institution, and the ones that serve all institutions. Administrators keep all profiles, and they
alone bind profiles to other people and to devices: whoever could do that would get the messages of others.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, text

from app.db.tables import EVERY_ROW, TableRow, Values
from app.delivery.directory.errors import NotYourProfile
from app.delivery.directory.service import CHANNELS, PROFILES
from app.foundation.errors import InvalidValue, NotFound
from app.users.contract import REACHED, StaffScope

_SEEN = """
    CASE WHEN {profile}.user_id IS NULL THEN {profile}.institution_id IS NULL OR {of_institution}
         ELSE EXISTS (SELECT FROM users u WHERE u.id = {profile}.user_id AND u.role <> 'STUDENT' AND {reached}) END
"""
_SEEN_CHANNEL = """
    EXISTS (SELECT FROM recipient_profiles p WHERE p.id = recipient_channels.profile_id AND ({seen}))
"""


def seen_profiles(scope: StaffScope) -> ColumnElement[bool]:
    return _clause(scope, _seen(scope, "recipient_profiles"))


def seen_channels(scope: StaffScope) -> ColumnElement[bool]:
    return _clause(scope, _SEEN_CHANNEL.format(seen=_seen(scope, "p")))


def _seen(scope: StaffScope, profile: str) -> str:
    of_institution = scope.sees(f"{profile}.institution_id")
    return _SEEN.format(profile=profile, of_institution=of_institution, reached=REACHED)


def _clause(scope: StaffScope, condition: str) -> Any:
    return EVERY_ROW if scope.is_everything else text(f"({condition})").bindparams(**scope.values)


def check_profile_change(_conn: Connection, scope: StaffScope, current: TableRow | None, values: Values) -> None:
    """A new profile of a coordinator is that of their institution, unless they say that it is their own."""
    if scope.is_admin:
        return
    before = {} if current is None else {"user_id": current.user_id, "institution_id": current.institution_id}
    if current is None and values.get("user_id") is None:
        values.setdefault("institution_id", scope.institution_id)
    if not all(_keeps(scope, **owner) for owner in (before, before | _owner_in(values)) if owner):
        raise NotYourProfile
    if values.get("device_id") not in (None, current and current.device_id):
        raise InvalidValue("deviceId", "is given to profiles by administrators")


def _owner_in(values: Values) -> Values:
    return {name: values[name] for name in ("user_id", "institution_id") if name in values}


def _keeps(scope: StaffScope, user_id: int | None = None, institution_id: int | None = None) -> bool:
    if user_id is not None:
        return user_id == scope.user_id and institution_id is None
    return institution_id is not None and institution_id == scope.institution_id


def check_channel_change(conn: Connection, scope: StaffScope, current: TableRow | None, values: Values) -> None:
    if scope.is_admin:
        return
    profile_id = values["profile_id"] if current is None else current.profile_id
    try:
        profile = PROFILES.get(conn, profile_id, seen=seen_profiles(scope))
    except NotFound:
        raise InvalidValue("profileId", "is not the id of a recipient profile in use") from None
    if not _keeps(scope, profile.user_id, profile.institution_id):
        raise NotYourProfile


def check_keeper(conn: Connection, scope: StaffScope, channel_id: int) -> None:
    """Of a channel that is about to get a secret or a verification."""
    check_channel_change(conn, scope, CHANNELS.get(conn, channel_id, seen=seen_channels(scope)), {})
