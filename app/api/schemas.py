"""HTTP models of tasks, users, notifications and the service. Fields may be added, but are never renamed."""

from typing import Annotated, Any, Generic, Literal, Self, TypeVar
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from app.api.validation import (
    LINE,
    Address,
    Cursor,
    DeviceToken,
    FirebaseUid,
    Identifier,
    IfReadable,
    Instant,
    MessageText,
    Moment,
    Name,
    Note,
    PageSize,
    PathIdentifier,
    Phone,
    Point,
    QueryFlag,
    Request,
    Response,
    SearchText,
    Subject,
)
from app.delivery.contract import (
    NewSubmission,
    NotificationStatus,
    NotificationType,
    Outcome,
    Priority,
    SubjectKind,
)
from app.matching.contract import OfferReason, OfferState, TaskOutcome, TaskStatus
from app.ops.health import Health, ReadinessReport
from app.users.models import AddressKind, LatLon, Platform, Role
from app.users.service import NewUser

Item = TypeVar("Item", bound=Response)
Locale = Literal["tr", "en"]


def is_none(value: Any) -> bool:
    return value is None


def without_default(schema: dict[str, Any]) -> None:
    """For fields whose absence means "unchanged", and not the default value in Python."""
    schema.pop("default", None)


class PageJson(Response, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(description="Send it as `cursor` to get the next page; null on the last page.")


class PageQuery(Request):
    limit: PageSize = 20
    cursor: Cursor | None = None


class PlaceJson(Response):
    lat: float
    lon: float


# Tasks


class NewTaskBody(Request):
    note: Note | None = Field(None, examples=["Ekmek ve ilaç alınacak"])
    location: Point | None = Field(None, description="Where help is wanted; the elder's home if absent.")
    elder_id: Identifier | None = Field(None, description="Required if a coordinator calls for an elder.")


class AssignBody(Request):
    student_id: Identifier


class TasksQuery(PageQuery):
    status: TaskStatus | None = None


class ElderJson(Response):
    id: int
    name: str
    phone: str | None


class StudentJson(Response):
    id: int
    name: str
    phone: str | None


class CurrentOfferJson(Response):
    deadline: Instant
    student_id: int | None = Field(None, exclude_if=is_none, description="For coordinators only.")
    student_name: str | None = Field(
        None, exclude_if=is_none, description="For coordinators; the elder gets the first word; absent for students."
    )


class SaidOutcomeJson(Response):
    outcome: TaskOutcome
    note: str | None
    said_by: int = Field(description="The id of the coordinator or admin.")
    said_at: Instant


STAFF_ONLY = "For coordinators only; absent until it happens, and for others."


class TaskJson(Response):
    id: UUID
    status: TaskStatus
    created_at: Instant
    note: str | None
    asked: int
    remaining: int
    next_step_at: Instant | None
    location: PlaceJson | None
    elder: ElderJson
    student: StudentJson | None
    current_offer: CurrentOfferJson | None
    outcome: SaidOutcomeJson | None = Field(
        None, description="What became of a task that nobody took. For coordinators only."
    )
    assigned_at: Instant | None = Field(None, exclude_if=is_none, description=STAFF_ONLY)
    started_at: Instant | None = Field(None, exclude_if=is_none, description=STAFF_ONLY)
    ended_at: Instant | None = Field(None, exclude_if=is_none, description=STAFF_ONLY)
    search_ends_at: Instant | None = Field(
        None, exclude_if=is_none, description="No student is asked after this; absent after the search, and for others."
    )


class OutcomeBody(Request):
    outcome: TaskOutcome
    note: Note | None = None


class OfferJson(Response):
    student_id: int
    student_name: str
    rank: int | None
    completed_this_month: int
    distance_m: float | None
    state: OfferState
    reason: OfferReason | None = Field(
        description="Why the student was skipped or the offer was taken back, or that a coordinator has made it."
    )
    offered_at: Instant | None
    deadline: Instant | None
    closed_at: Instant | None = Field(description="When the offer ended, or the student was skipped.")


class OffersJson(Response):
    items: list[OfferJson]


# The caller


class MyOfferJson(Response):
    task_id: UUID
    deadline: Instant
    distance_m: float = Field(description="In steps of 100, rounded up, between cells of the map.")
    elder_name: str
    note: str | None


class MeJson(Response):
    id: int
    role: Role
    name: str
    locale: Locale
    on_duty: bool | None = Field(description="Null if the caller is not a student.")
    open_task: TaskJson | None
    offer: MyOfferJson | None
    institution_id: int | None
    helpline: str | None = Field(description="The phone number of a person, for whoever gets no further.")
    server_time: Instant = Field(description="By the database's clock, which decides deadlines.")


class AvailabilityBody(Request):
    on_duty: bool


class DeviceBody(Request):
    token: DeviceToken
    platform: Platform
    address_kind: AddressKind = AddressKind.TOKEN


class MessagesQuery(PageQuery):
    unread: QueryFlag = Field(False, description="`true` leaves out messages that I have read.")


class MessageJson(Response):
    id: int
    notification_id: UUID
    subject: str
    body: str
    data: dict[str, Any]
    created_at: Instant
    read_at: Instant | None


class RecordedPushJson(Response):
    id: int
    notification_id: UUID
    title: str | None
    body: str | None
    data: dict[str, Any]
    recorded_at: Instant


# Users


class NewUserBody(Request):
    role: Role
    name: Name
    phone: Phone | None = None
    locale: Locale = "tr"
    location: Point | None = Field(None, description="An elder's home, or a student's location.")
    institution_id: Identifier | None = None
    firebase_uid: FirebaseUid | None = None
    active: bool = True

    def to_new_user(self) -> NewUser:
        return NewUser(
            role=self.role,
            name=self.name,
            phone=self.phone,
            locale=self.locale,
            location=lat_lon(self.location),
            institution_id=self.institution_id,
            firebase_uid=self.firebase_uid,
            active=self.active,
        )


class UserChangesBody(Request):
    """Absent fields stay as they are; null empties a field that may be empty."""

    name: Name = Field("", json_schema_extra=without_default)
    phone: Phone | None = Field(None, json_schema_extra=without_default)
    locale: Locale = Field("tr", json_schema_extra=without_default)
    location: Point | None = Field(None, json_schema_extra=without_default)
    institution_id: Identifier | None = Field(None, json_schema_extra=without_default)
    firebase_uid: FirebaseUid | None = Field(None, json_schema_extra=without_default)
    active: bool = Field(True, json_schema_extra=without_default)


class UsersQuery(PageQuery):
    role: Role | None = None
    active: QueryFlag | None = None
    search: SearchText | None = None


class UserJson(Response):
    id: int
    role: Role
    name: str
    phone: str | None
    locale: Locale
    location: PlaceJson | None
    institution_id: int | None
    firebase_uid: str | None
    active: bool
    on_duty: bool | None
    created_at: Instant


# Notifications


class NewNotificationBody(Request):
    notification_type: NotificationType
    recipient: Address = Field(
        description="Depends on the type: an e-mail address, a phone number, a URL, `user:7` or a device token.",
        examples=["ayse@ornek.org"],
    )
    subject: Subject | None = Field(None, description="Subject of an e-mail, or title of a push.")
    body: MessageText = Field(examples=["Hoş geldiniz"])
    priority: Priority | None = Field(None, description="NORMAL if absent.")
    metadata: dict[str, Any] | None = Field(
        None,
        description="At most 8,192 bytes. `data`, an object of strings, is sent to an app together with the text;"
        " `addressKind`, TOKEN or FID, is the kind of device token in `recipient`.",
    )
    expires_at: Moment | None = Field(None, description="The notification is not sent after this time.")

    def to_submission(self) -> NewSubmission:
        return NewSubmission(
            self.notification_type,
            self.recipient,
            self.body,
            self.subject or "",
            self.priority or Priority.NORMAL,
            self.metadata or {},
            self.expires_at,
        )


class ReadableOfNotification(Request):
    """The fields of a refused body that the delivery package checks. An unreadable field is None."""

    # Strict mode would refuse text for a time, because `IfReadable` gets values that are Python objects already.
    model_config = ConfigDict(strict=False, extra="ignore")

    notification_type: IfReadable[NotificationType] = None
    recipient: IfReadable[Address] = None
    metadata: IfReadable[dict[str, Any]] = None
    expires_at: IfReadable[Moment] = None


class SubmittedJson(Response):
    id: UUID
    status: Literal[NotificationStatus.ACCEPTED] = NotificationStatus.ACCEPTED
    message: str = "Notification submitted for processing"
    submitted_at: Instant


class NotificationsQuery(PageQuery):
    recipient_user_id: PathIdentifier | None = None
    status: NotificationStatus | None = None
    notification_type: NotificationType | None = None


class NotificationJson(Response):
    id: UUID
    notification_type: NotificationType
    recipient: str
    recipient_user_id: int | None
    subject: str
    body: str
    priority: Priority
    status: NotificationStatus
    metadata: dict[str, Any]
    task_id: UUID | None
    created_at: Instant
    expires_at: Instant | None
    finished_at: Instant | None
    error_code: str | None


class AttemptJson(Response):
    attempt: int
    device_id: str | None
    outcome: Outcome
    error_code: str | None
    provider_message_id: str | None
    at: Instant


class NotificationInFullJson(NotificationJson):
    attempts: list[AttemptJson]


# The audit trail


def _hex(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


Hash = Annotated[str, BeforeValidator(_hex), Field(description="SHA-256 in hexadecimal.")]


AuditAuthor = Annotated[
    str,
    StringConstraints(pattern=r"^(user:[1-9][0-9]{0,18}|operator|service)$"),
    Field(description="As entries have it.", examples=["user:7"]),
]
Deed = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, pattern=LINE),
    Field(description="The `subject` of entries: a route, a command, or a step of a plan.", examples=["POST /users"]),
]
SubjectId = Annotated[
    str,
    StringConstraints(pattern=r"^([1-9][0-9]{0,18}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
    Field(description="A UUID for tasks, jobs and dead letters, a number otherwise.", examples=["7"]),
]


class AuditQuery(PageQuery):
    author: AuditAuthor | None = None
    deed: Deed | None = None
    subject_kind: SubjectKind | None = Field(None, description="With `subjectId`: what it was done to.")
    subject_id: SubjectId | None = None
    since: Moment | None = Field(None, description="Written at this time or later.")
    until: Moment | None = Field(None, description="Written before this time.")


class AuditEntryJson(Response):
    id: int
    author: str | None = Field(
        description="`user:` and the id of the coordinator or admin, `operator` for a command, or `service`. Null for"
        " entries from before authors were written."
    )
    notification_id: UUID
    recipient: str
    subject: str
    body: str
    metadata: str = Field(description="JSON as text, exactly the characters that are hashed.")
    written_at: Instant
    previous_hash: Hash
    hash: Hash


# The service itself


class AliveJson(Response):
    status: Literal["ok"] = "ok"


class ChecksJson(Response):
    database: Health
    migrations: Health
    redis: Health
    matcher: Annotated[Health, Field(description="`failed`: tasks are overdue and no matcher has handled them.")]


class ReadyJson(Response):
    status: Annotated[
        Literal["ready", "degraded", "unready"],
        Field(
            description="`degraded`: Redis does not answer, or the matchers are late; presses and answers still work."
        ),
    ]
    checks: ChecksJson

    @classmethod
    def of(cls, report: ReadinessReport, **more: Any) -> Self:
        status = "degraded" if report.degraded else "ready" if report.ready else "unready"
        return cls.model_validate({"status": status, "checks": ChecksJson.model_validate(report), **more})


def lat_lon(point: Point | None) -> LatLon | None:
    return LatLon(point.lat, point.lon) if point else None
