"""The directory: recipient profiles, their channels, secrets and verification."""

from app.api.access import COORDINATORS
from app.api.routing import Call, Reply, Routes
from app.api.schemas_v1 import (
    ChannelChangesBody,
    ChannelsQuery,
    NewChannelBody,
    NewProfileBody,
    NewRecipientChannelJson,
    ProfileChangesBody,
    ProfilesQuery,
    RecipientChannelJson,
    RecipientProfileJson,
    SecretJson,
    VerificationBody,
    VerificationStartedJson,
)
from app.api.table_routes import Resource, add_table_routes
from app.api.validation import PathIdentifier
from app.delivery import service as delivery
from app.delivery.contract import (
    AlreadyVerified,
    ChannelDisabled,
    DeliveryRules,
    NotAWebhook,
    NotYourProfile,
    ProfileHasChannels,
    SendingLimited,
    SendingLimits,
    VerificationExpired,
    VerificationNeedsNoCode,
    VerificationNotRunning,
    VerificationTooSoon,
    VerificationTriesUsedUp,
    WrongVerificationCode,
)
from app.foundation.errors import NotFound

routes = Routes("Directory")

add_table_routes(
    routes,
    Resource(
        delivery.PROFILES,
        DeliveryRules.from_settings,
        "/api/v1/recipient-profiles",
        "profileId",
        "recipient profile",
        RecipientProfileJson,
        NewProfileBody,
        ProfileChangesBody,
        ProfilesQuery,
        delivery.seen_profiles,
        COORDINATORS,
        delivery.check_profile_change,
        write_errors=(NotYourProfile, ProfileHasChannels),
        retire_errors=(NotYourProfile,),
    ),
)
add_table_routes(
    routes,
    Resource(
        delivery.CHANNELS,
        DeliveryRules.from_settings,
        "/api/v1/recipient-channels",
        "channelId",
        "recipient channel",
        RecipientChannelJson,
        NewChannelBody,
        ChannelChangesBody,
        ChannelsQuery,
        delivery.seen_channels,
        COORDINATORS,
        delivery.check_channel_change,
        write_errors=(NotYourProfile,),
        retire_errors=(NotYourProfile,),
        shown_new=NewRecipientChannelJson,
    ),
)

CHANNEL = "/api/v1/recipient-channels/{channelId}"


@routes.add(
    "POST",
    f"{CHANNEL}/secret",
    who=COORDINATORS,
    answers={200: SecretJson},
    errors=(NotFound, NotYourProfile, NotAWebhook),
)
def rotate_secret(call: Call, channel_id: PathIdentifier) -> SecretJson:
    """Give a webhook a new secret.

    Requests are signed with the new secret and with the last two, until `DELETE …/secret/previous` removes the old
    ones. Call it when the receiver knows the new secret.
    """
    with call.services.db.transaction() as conn:
        delivery.check_keeper(conn, call.scope, channel_id)
        return SecretJson(secret=delivery.rotate_secret(conn, channel_id))


@routes.add(
    "DELETE",
    f"{CHANNEL}/secret/previous",
    who=COORDINATORS,
    answers={204: None},
    errors=(NotFound, NotYourProfile, NotAWebhook),
)
def forget_old_secrets(call: Call, channel_id: PathIdentifier) -> None:
    """Sign with the newest secret only."""
    with call.services.db.transaction() as conn:
        delivery.check_keeper(conn, call.scope, channel_id)
        delivery.forget_old_secrets(conn, channel_id)


@routes.add(
    "POST",
    f"{CHANNEL}/verification",
    who=COORDINATORS,
    answers={202: VerificationStartedJson},
    errors=(NotFound, NotYourProfile, AlreadyVerified, ChannelDisabled, VerificationTooSoon, SendingLimited),
)
def start_verification(call: Call, channel_id: PathIdentifier) -> Reply:
    """Send a code over the channel, or a challenge to a webhook.

    A code is valid for ten minutes and five tries. A webhook that answers the challenge is verified by its answer.
    """
    limits = SendingLimits.from_settings(call.services.settings)
    with call.services.db.transaction() as conn:
        delivery.check_keeper(conn, call.scope, channel_id)
        started = delivery.start_verification(conn, channel_id)
        delivery.count_message(conn, limits, call.caller.id, started.channel_type.upper(), started.target)
    return Reply(VerificationStartedJson.model_validate(started, from_attributes=True))


@routes.add(
    "PUT",
    f"{CHANNEL}/verification",
    who=COORDINATORS,
    answers={200: RecipientChannelJson},
    errors=(
        NotFound,
        NotYourProfile,
        VerificationNotRunning,
        VerificationNeedsNoCode,
        VerificationExpired,
        VerificationTriesUsedUp,
        WrongVerificationCode,
    ),
)
def confirm_verification(call: Call, channel_id: PathIdentifier, body: VerificationBody) -> RecipientChannelJson:
    """Confirm the code that arrived.

    A repeat is harmless.
    """
    with call.services.db.transaction() as conn:
        delivery.check_keeper(conn, call.scope, channel_id)
        refusal = delivery.confirm_verification(conn, channel_id, body.code)
        channel = delivery.CHANNELS.get(conn, channel_id)
    # Raised after the commit, because a wrong try has to be counted.
    if refusal is not None:
        raise refusal
    return RecipientChannelJson.model_validate(channel)
