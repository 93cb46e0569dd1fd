"""The tables of notifications, attempts and dead letters. The table of notifications is also the queue."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.months import MonthlyTable
from app.db.schema import metadata, one_of
from app.delivery.messages import states
from app.delivery.messages.dead_letter_states import DEAD_LETTER_TRANSITIONS, DeadLetterStatus
from app.delivery.messages.states import NOTIFICATION_TRANSITIONS, S
from app.delivery.messages.values import NotificationStatus, Outcome, Priority
from app.foundation.state_machine import new_state

LIVE = one_of("status", states.LIVE)
FAILED = one_of("status", states.FINAL - {S.SENT})

# The table is the queue. `due_at` is when a worker may claim the row; while the notification is being sent, it is the
# end of the lease. `attempts` counts claims. It is a fencing token: a worker whose lease has passed to another worker
# cannot record its result. `worker_id` is the worker that claimed it last, see `takeover.py`. `failures` counts only
# attempts that failed, so that the death of a worker costs no retry. `fresh_from` is the number of the last attempt
# before a redrive: refusals up to this attempt no longer count.
#
# Partitioned by month, so that old months can be dropped (see `app/db/months.py`). Ids increase with time, so the
# borders of months are ids, and a lookup by id reads one partition. There are no foreign keys to or from it, because
# adding or dropping a partition would lock the other tables.
notifications = Table(
    "notifications",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("notification_type", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("recipient_user_id", BigInteger),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("priority", Text, nullable=False, server_default="NORMAL"),
    Column("status", Text, nullable=False, server_default=new_state(NOTIFICATION_TRANSITIONS, S.ACCEPTED)),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("task_id", Uuid),
    # The institution whose coordinators see it: that of its elder when it was written, or else of who submitted it.
    Column("institution_id", BigInteger),
    # The action and the step of the notification, and the recipient's channel that it goes to.
    Column("action_id", Uuid),
    Column("step_order", Integer),
    Column("channel_id", BigInteger),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("expires_at", DateTime(timezone=True)),
    Column("due_at", DateTime(timezone=True), server_default=func.clock_timestamp()),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("fresh_from", Integer, nullable=False, server_default=text("0")),
    Column("finished_at", DateTime(timezone=True)),
    Column("error_code", Text),
    Column("worker_id", BigInteger),
    CheckConstraint(one_of("status", NotificationStatus), name="status"),
    CheckConstraint(one_of("priority", Priority), name="priority"),
    CheckConstraint(f"({LIVE}) = (due_at IS NOT NULL)", name="live_is_due"),
    CheckConstraint(f"({LIVE}) = (finished_at IS NULL)", name="live_is_unfinished"),
    Index("notifications_due_idx", "notification_type", "priority", "due_at", postgresql_where=text(LIVE)),
    Index("notifications_failed_idx", "status", "id", postgresql_where=text(FAILED)),
    Index("notifications_recipient_idx", "recipient_user_id", "id"),
    Index("notifications_institution_idx", "institution_id", "id", postgresql_where=text("institution_id IS NOT NULL")),
    Index("notifications_task_idx", "task_id", postgresql_where=text("task_id IS NOT NULL")),
    postgresql_partition_by="RANGE (id)",
)

# The workers that are alive. `beats` increases every half second.
delivery_workers = Table(
    "delivery_workers",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("beats", BigInteger, nullable=False, server_default=text("0")),
)

# Partitions cannot have identity columns.
_ATTEMPT_ID = Sequence("notification_attempts_id_seq", metadata=metadata)

# The primary key finds the attempts of a notification in their order.
notification_attempts = Table(
    "notification_attempts",
    metadata,
    Column("id", BigInteger, _ATTEMPT_ID, server_default=_ATTEMPT_ID.next_value(), nullable=False),
    Column("notification_id", Uuid, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("device_id", Text),
    Column("outcome", Text, nullable=False),
    Column("error_code", Text),
    Column("provider_message_id", Text),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    CheckConstraint(one_of("outcome", Outcome), name="outcome"),
    PrimaryKeyConstraint("notification_id", "id"),
    postgresql_partition_by="RANGE (notification_id)",
)

# Every notification is updated at least twice. By default, vacuum runs when a fifth of the rows is dead, and by then
# the index of the queue would be bloated. Partitions do not inherit these settings.
MONTHLY = (
    MonthlyTable("notifications", "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000"),
    MonthlyTable("notification_attempts"),
)

# How many messages were submitted since `began_at` (see `sending_limits.py`). Every submission updates its rows, so
# there is room in their pages.
sending_counts = Table(
    "sending_counts",
    metadata,
    Column("subject", Uuid, nullable=False),
    Column("window_s", Integer, nullable=False),
    Column("began_at", DateTime(timezone=True), nullable=False),
    Column("count", Integer, nullable=False),
    PrimaryKeyConstraint("subject", "window_s"),
    postgresql_with={"fillfactor": "50", "autovacuum_vacuum_scale_factor": "0.02"},
)

# What stays of notifications that were forgotten. The month is that of UTC, as in the borders of the partitions.
notification_counts = Table(
    "notification_counts",
    metadata,
    Column("month", Date, primary_key=True),
    Column("notification_type", Text, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("notifications", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
)

# A repeated key returns the same notification. `digest` shows whether the request is the same.
notification_keys = Table(
    "notification_keys",
    metadata,
    Column("caller_id", BigInteger, ForeignKey("users.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("notification_id", Uuid, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    # Keys are forgotten in the order of time.
    Index("notification_keys_notification_idx", "notification_id"),
)

# A dead letter without a notification is about a step, or about a request for an action, that created none.
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("notification_id", Uuid),
    Column("action_id", Uuid, ForeignKey("actions.id")),
    Column("action_plan_id", BigInteger),
    Column("step_order", Integer),
    Column("institution_id", BigInteger),
    Column("channel_type", Text, nullable=False),
    Column("error_code", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("retryable", Boolean, nullable=False),
    Column("retry_count", Integer, nullable=False),
    Column("failed_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("status", Text, nullable=False, server_default=new_state(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.OPEN)),
    Column("closed_at", DateTime(timezone=True)),
    Column("closed_by", BigInteger, ForeignKey("users.id")),
    Column("expires_at", DateTime(timezone=True)),
    CheckConstraint(one_of("status", DeadLetterStatus), name="status"),
    CheckConstraint("(status = 'OPEN') = (closed_at IS NULL)", name="open_is_not_closed"),
    Index("dead_letters_open_idx", "id", postgresql_where=text("status = 'OPEN'")),
    Index("dead_letters_expiry_idx", "expires_at", postgresql_where=text("status = 'OPEN' AND expires_at IS NOT NULL")),
    Index(
        "dead_letters_one_open_per_notification",
        "notification_id",
        unique=True,
        postgresql_where=text("status = 'OPEN' AND notification_id IS NOT NULL"),
    ),
    Index("dead_letters_institution_idx", "institution_id", "id", postgresql_where=text("institution_id IS NOT NULL")),
    Index("dead_letters_action_idx", "action_id", postgresql_where=text("action_id IS NOT NULL")),
)

# `raised` is true if the coordinators were notified that there are too many dead letters. A process locks the row while
# it checks.
delivery_alarms = Table(
    "delivery_alarms",
    metadata,
    Column("name", Text, primary_key=True),
    Column("raised", Boolean, nullable=False, server_default=text("false")),
    Column("raised_at", DateTime(timezone=True)),
)
