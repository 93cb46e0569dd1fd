"""The tables of tasks, offers and outcomes. Partial unique indexes keep the second promise of `docs/architecture.md`,
even if all other code is wrong."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.types import UserDefinedType

from app.db.schema import GeographyPoint, metadata, one_of
from app.matching.rules.states import OfferState, TaskOutcome, TaskStatus, is_held, is_open, is_searching

OPEN, HELD, SEARCHING = is_open(), is_held(), is_searching()
LIVE = f"state = '{OfferState.PENDING}'"


class CircleColumn(UserDefinedType[Any]):
    """PostgreSQL's own circle, on the map of `students.plane`."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "CIRCLE"


tasks = Table(
    "tasks",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("status", Text, nullable=False),
    Column("elder_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("student_id", BigInteger, ForeignKey("students.id")),
    Column("note", Text),
    Column[Any]("location", GeographyPoint(), nullable=False),
    # Where the cells of students are near, for a place that the elder has chosen; see `rules/map_cells.py`.
    Column[Any]("area", CircleColumn()),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("search_until", DateTime(timezone=True), nullable=False),
    Column("next_step_at", DateTime(timezone=True)),
    # True while no candidate can be asked; the first may become free at `next_step_at`.
    Column("waiting", Boolean, nullable=False, server_default=text("false")),
    Column("listed", Integer, nullable=False, server_default=text("0")),
    Column("asked", Integer, nullable=False, server_default=text("0")),
    Column("skipped", Integer, nullable=False, server_default=text("0")),
    Column("assigned_at", DateTime(timezone=True)),
    Column("started_at", DateTime(timezone=True)),
    Column("ended_at", DateTime(timezone=True)),
    Column("idempotency_key", Text),
    # The coordinators have not been told yet that nobody was found, because they were told of the same elder just now.
    Column("alarm_owed", Boolean, nullable=False, server_default=text("false")),
    Column("alarmed_at", DateTime(timezone=True)),
    CheckConstraint(one_of("status", TaskStatus), name="status"),
    CheckConstraint(f"({HELD}) <= (student_id IS NOT NULL)", name="held_by_a_student"),
    CheckConstraint(
        f"status <> '{TaskStatus.PENDING}' OR (student_id IS NULL AND next_step_at IS NOT NULL)", name="goes_on"
    ),
    Index("tasks_one_open_per_elder", "elder_id", unique=True, postgresql_where=text(OPEN)),
    Index("tasks_one_open_per_student", "student_id", unique=True, postgresql_where=text(HELD)),
    Index(
        "tasks_idempotency_key",
        "elder_id",
        "idempotency_key",
        unique=True,
        postgresql_where=text("idempotency_key IS NOT NULL"),
    ),
    Index("tasks_next_step_idx", "next_step_at", postgresql_where=text(f"next_step_at IS NOT NULL AND {OPEN}")),
    Index(
        "tasks_waiting_idx",
        "location",
        postgresql_using="gist",
        postgresql_where=text(f"waiting AND {SEARCHING}"),
    ),
    Index("tasks_elder_idx", "elder_id", "id", postgresql_include=["status"]),
    Index("tasks_open_idx", "id", postgresql_where=text(OPEN)),
    Index("tasks_status_idx", "status", "id"),
    Index("tasks_updated_idx", "updated_at"),
    Index("tasks_alarm_owed_idx", "elder_id", postgresql_where=text("alarm_owed")),
)

offers = Table(
    "offers",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("task_id", Uuid, ForeignKey("tasks.id"), nullable=False),
    Column("student_id", BigInteger, ForeignKey("students.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("rank", Integer),
    Column("completed_this_month", Integer, nullable=False, server_default=text("0")),
    Column("distance_m", Double),
    Column("reason", Text),
    Column("offered_at", DateTime(timezone=True)),
    Column("deadline", DateTime(timezone=True)),
    Column("closed_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    UniqueConstraint("task_id", "student_id", name="offers_once_per_student"),
    CheckConstraint(one_of("state", OfferState), name="state"),
    CheckConstraint(f"(state = '{OfferState.SKIPPED}') = (offered_at IS NULL)", name="skipped_was_never_offered"),
    CheckConstraint(f"state <> '{OfferState.PENDING}' OR deadline IS NOT NULL", name="live_has_a_deadline"),
    Index("offers_one_live_per_task", "task_id", unique=True, postgresql_where=text(LIVE)),
    Index("offers_one_live_per_student", "student_id", unique=True, postgresql_where=text(LIVE)),
    Index(
        "offers_one_accepted_per_task",
        "task_id",
        unique=True,
        postgresql_where=text(f"state = '{OfferState.ACCEPTED}'"),
    ),
    Index("offers_student_idx", "student_id", "task_id", postgresql_include=["state", "reason"]),
)

# A row for each task that nobody took. Without an outcome it waits on the board until a coordinator says one. A table
# of its own, so that presses write nothing more.
task_outcomes = Table(
    "task_outcomes",
    metadata,
    Column("task_id", Uuid, ForeignKey("tasks.id"), primary_key=True),
    Column("outcome", Text),
    Column("note", Text),
    Column("said_by", BigInteger, ForeignKey("users.id")),
    Column("said_at", DateTime(timezone=True)),
    CheckConstraint(one_of("outcome", TaskOutcome), name="outcome"),
    CheckConstraint(
        "(outcome IS NULL) = (said_at IS NULL) AND (outcome IS NULL) = (said_by IS NULL)"
        " AND (outcome IS NOT NULL OR note IS NULL)",
        name="said_at_once",
    ),
    Index("task_outcomes_owed_idx", "task_id", postgresql_where=text("outcome IS NULL")),
    Index("task_outcomes_said_idx", "said_at"),
)
