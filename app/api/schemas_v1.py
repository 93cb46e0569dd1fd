"""HTTP models of the directory, plans and templates, under /api/v1."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, AliasPath, BeforeValidator, Field, StringConstraints

from app.api.schemas import Locale, PageQuery, is_none, without_default
from app.api.validation import (
    LINE,
    TEXT,
    VISIBLE_ASCII,
    Identifier,
    Instant,
    Name,
    PathIdentifier,
    QueryFlag,
    Request,
    Response,
    normal_form,
    whole,
)
from app.delivery.contract import HIGHEST_ORDER, Audience, NotificationType, OnFailure, VerifyStatus
from app.delivery.service import without_headers

CHANNEL_TYPES = [type_.channel_type for type_ in NotificationType]


def _known_channel_type(value: str) -> str:
    if value not in CHANNEL_TYPES:
        raise ValueError(f"must be one of {', '.join(CHANNEL_TYPES)}")
    return value


ChannelType = Annotated[
    str, AfterValidator(_known_channel_type), Field(json_schema_extra={"enum": [*CHANNEL_TYPES]}, examples=["sms"])
]
StepType = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$"),
    Field(description="A channel type, or a type in `ACTION_HANDOVER_TYPES`.", examples=["push"]),
]
Order = Annotated[int, Field(ge=1, le=HIGHEST_ORDER), BeforeValidator(whole)]
Rank = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(whole)]
Seconds = Annotated[int, Field(ge=1, le=86_400), BeforeValidator(whole)]
ProfileDeviceId = Annotated[str, StringConstraints(min_length=1, max_length=21, pattern=VISIBLE_ASCII)]
Target = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, pattern=LINE),
    Field(description="A phone number, an e-mail address, a URL, a token or `user:7`.", examples=["+90 555 010 20 30"]),
]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
Subject = Annotated[str, StringConstraints(max_length=500, pattern=LINE), AfterValidator(normal_form)]
Body = Annotated[
    str,
    StringConstraints(min_length=1, max_length=10_000, pattern=TEXT),
    AfterValidator(normal_form),
    Field(examples=["{{ student }} yola çıktı!"]),
]
About = Annotated[str, StringConstraints(max_length=500, pattern=TEXT), AfterValidator(normal_form)]
Code = Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$"), Field(examples=["048213"])]
Meta = Annotated[dict[str, Any], Field(description="At most 8 KB: the platform of a token, headers of a webhook.")]


class RowsQuery(PageQuery):
    include_retired: QueryFlag = False


class TableRowJson(Response):
    id: int
    created_at: Instant
    updated_at: Instant
    retired_at: Instant | None


# Recipient profiles


class ProfilesQuery(RowsQuery):
    key: Key | None = None
    device_id: ProfileDeviceId | None = None
    user_id: PathIdentifier | None = None
    status: QueryFlag | None = None


class NewProfileBody(Request):
    name: Name
    device_id: ProfileDeviceId | None = Field(None, description="Actions about this device may go to this profile.")
    user_id: Identifier | None = None
    institution_id: Identifier | None = Field(
        None,
        description="Its coordinators keep the profile. A coordinator's own institution, unless `userId` is given.",
    )
    locale: Locale = "tr"
    status: bool = True
    priority: Rank = Field(0, description="Lower is tried first.")


class ProfileChangesBody(Request):
    """Absent fields stay as they are; null empties a field that may be empty."""

    name: Name = Field("", json_schema_extra=without_default)
    device_id: ProfileDeviceId | None = Field(None, json_schema_extra=without_default)
    user_id: Identifier | None = Field(None, json_schema_extra=without_default)
    institution_id: Identifier | None = Field(None, json_schema_extra=without_default)
    locale: Locale = Field("tr", json_schema_extra=without_default)
    status: bool = Field(True, json_schema_extra=without_default)
    priority: Rank = Field(0, json_schema_extra=without_default)


class RecipientProfileJson(TableRowJson):
    key: str | None = Field(description="Only for profiles that are shipped with the product.")
    device_id: str | None
    user_id: int | None
    institution_id: int | None
    name: str
    locale: Locale
    status: bool
    priority: int


# Recipient channels


class ChannelsQuery(RowsQuery):
    profile_id: PathIdentifier | None = None
    channel_type: ChannelType | None = None


class NewChannelBody(Request):
    profile_id: Identifier
    channel_type: ChannelType
    target: Target
    target_meta: Meta = Field(default_factory=dict[str, Any])
    enabled: bool = True


class ChannelChangesBody(Request):
    """Absent fields stay as they are. A new target has to be verified again, and its headers have to be given again."""

    target: Target = Field("", json_schema_extra=without_default)
    target_meta: Meta = Field(default_factory=dict[str, Any], json_schema_extra=without_default)
    enabled: bool = Field(True, json_schema_extra=without_default)


class RecipientChannelJson(TableRowJson):
    profile_id: int
    channel_type: str
    target: str
    target_meta: Annotated[dict[str, Any], AfterValidator(without_headers)] = Field(
        description="Values of `headers` are never shown. Sending them back as shown does not change them."
    )
    enabled: bool
    verify_status: VerifyStatus


class SecretJson(Response):
    secret: str = Field(description="Shown in this answer only.")


class NewRecipientChannelJson(RecipientChannelJson):
    secret: str | None = Field(
        None,
        validation_alias=AliasPath("secrets", 0),
        exclude_if=is_none,
        description="For webhooks: the secret that signs requests. Shown in this answer only.",
    )


class VerificationStartedJson(Response):
    notification_id: UUID
    expires_at: Instant


class VerificationBody(Request):
    code: Code


# Plans, their steps, and routes


class PlansQuery(RowsQuery):
    status: QueryFlag | None = None
    key: Key | None = None


class NewPlanBody(Request):
    name: Name
    description: About = ""
    status: bool = True


SeenAt = Annotated[
    Instant | None,
    Field(
        json_schema_extra=without_default,
        description="The `updatedAt` that the caller has seen. If there is a newer one, nothing is changed: 409.",
    ),
]


class PlanChangesBody(Request):
    """Absent fields stay as they are."""

    updated_at: SeenAt = None
    name: Name = Field("", json_schema_extra=without_default)
    description: About = Field("", json_schema_extra=without_default)
    status: bool = Field(True, json_schema_extra=without_default)


class ActionPlanJson(TableRowJson):
    key: str | None = Field(
        description="Only for plans that are shipped with the product, which requests them by this key."
    )
    name: str
    description: str
    status: bool


Fallback = Annotated[
    list[StepType],
    Field(max_length=8, description="Channel types of the same recipient to try next, in this order."),
]
Within = Annotated[
    Seconds | None,
    Field(
        description="Seconds after which the fallback is tried if nothing was delivered; after the last fallback, the"
        " next step begins if `onFailure` is CONTINUE. Without it, 60 s, and only if the message waits for a provider"
        " that fails too often."
    ),
]

MayArriveTwice = Annotated[
    bool,
    Field(
        description="If the answers of the provider were lost, the message may have arrived. True: the fallback follows"
        " all the same, so that the person may get the message twice. False: it does not."
    ),
]


class NewStepBody(Request):
    step_order: Order
    channel_type: StepType
    audience: Audience = Audience.ROUTES
    template_key: Key | None = Field(None, description="Without a template, an app gets only data.")
    on_failure: OnFailure = OnFailure.STOP
    fallback: Fallback = Field(default_factory=list[str])
    within_s: Within = None
    may_arrive_twice: MayArriveTwice = False


class StepChangesBody(Request):
    """Absent fields stay as they are; null empties a field that may be empty."""

    updated_at: SeenAt = None
    step_order: Order = Field(1, json_schema_extra=without_default)
    channel_type: StepType = Field("", json_schema_extra=without_default)
    audience: Audience = Field(Audience.ROUTES, json_schema_extra=without_default)
    template_key: Key | None = Field(None, json_schema_extra=without_default)
    on_failure: OnFailure = Field(OnFailure.STOP, json_schema_extra=without_default)
    fallback: Fallback = Field(default_factory=list[str], json_schema_extra=without_default)
    within_s: Within = Field(None, json_schema_extra=without_default)
    may_arrive_twice: MayArriveTwice = Field(False, json_schema_extra=without_default)


class ActionPlanStepJson(TableRowJson):
    action_plan_id: int
    step_order: int
    channel_type: str
    audience: Audience
    template_key: str | None
    on_failure: OnFailure
    fallback: list[str]
    within_s: int | None
    may_arrive_twice: bool


class RoutesQuery(RowsQuery):
    action_plan_id: PathIdentifier | None = None
    recipient_profile_id: PathIdentifier | None = None


class NewRouteBody(Request):
    action_plan_id: Identifier
    step_order: Order
    recipient_profile_id: Identifier
    channel_type: StepType | None = Field(None, description="Replaces the channel type of the step.")
    enabled: bool = True


class RouteChangesBody(Request):
    """Absent fields stay as they are; null empties a field that may be empty."""

    recipient_profile_id: Identifier = Field(0, json_schema_extra=without_default)
    channel_type: StepType | None = Field(None, json_schema_extra=without_default)
    enabled: bool = Field(True, json_schema_extra=without_default)


class ActionRouteJson(TableRowJson):
    action_plan_id: int
    step_order: int
    recipient_profile_id: int
    channel_type: str | None
    enabled: bool


# Templates


class TemplatesQuery(RowsQuery):
    key: Key | None = None
    locale: Locale | None = None


class NewTemplateBody(Request):
    key: Key
    locale: Locale = "tr"
    subject: Subject = ""
    body: Body


class TemplateChangesBody(Request):
    """Absent fields stay as they are."""

    updated_at: SeenAt = None
    subject: Subject = Field("", json_schema_extra=without_default)
    body: Body = Field("", json_schema_extra=without_default)


class TemplateJson(TableRowJson):
    key: str
    locale: Locale
    subject: str
    body: str


class PreviewBody(Request):
    variables: dict[str, Any] = Field(default_factory=dict[str, Any], examples=[{"student": "Ahmet"}])


class WordsPreviewBody(PreviewBody):
    subject: Subject = ""
    body: Body


class WordsJson(Response):
    subject: str
    body: str
