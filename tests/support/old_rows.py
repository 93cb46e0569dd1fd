"""Rows of the past, for tests of retention: rows that the product wrote long ago, and the months that they are in."""

import json
import secrets
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.db.months import Partition, following, partitions
from app.delivery.channels import audit_trail
from app.delivery.messages.values import Notification, Priority
from app.delivery.service import MONTHLY
from app.foundation.ids import earliest_id


def id_of(moment: datetime) -> UUID:
    tail = int.from_bytes(secrets.token_bytes(8), "big") >> 2
    return UUID(int=earliest_id(moment).int | 0x7 << 76 | 0b10 << 62 | tail)


class OldRows:
    def __init__(self, db: Database) -> None:
        self._db = db

    # ---- SQL ----

    def rows(self, statement: str, **values: Any) -> list[Any]:
        with self._db.transaction() as conn:
            return list(conn.execute(text(statement), values))

    def run(self, statement: str, **values: Any) -> None:
        with self._db.transaction() as conn:
            conn.execute(text(statement), values)

    def count(self, table: str) -> int:
        return self.rows(f"SELECT count(*) AS n FROM {table}")[0].n

    # ---- months ----

    def add_month(self, month: date) -> None:
        """As it was made when the month was still to come."""
        for table in MONTHLY:
            partition = Partition(table, month)
            first, last = partition.borders
            self.run(
                f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF {table.name}"
                f" FOR VALUES FROM ('{first}') TO ('{last}')"
            )

    def months(self, table: str) -> list[str]:
        [monthly] = [one for one in MONTHLY if one.name == table]
        with self._db.reading() as conn:
            return [partition.name for partition in partitions(conn, monthly)]

    def months_with_rows(self) -> set[str]:
        return {row.name for row in self.rows("SELECT DISTINCT tableoid::regclass::text AS name FROM notifications")}

    def is_over(self, name: str, *, days: int) -> bool:
        year, month = (int(part) for part in name.rsplit("_", 2)[1:])
        end = following(date(year, month, 1))
        return datetime(end.year, end.month, 1, tzinfo=UTC) <= datetime.now(UTC) - timedelta(days=days)

    def drop_months(self, after: date | None = None) -> None:
        """Drops the months of the past, which a new database does not have."""
        this_month = datetime.now(UTC).date().replace(day=1)
        with self._db.reading() as conn:
            found = [partition for table in MONTHLY for partition in partitions(conn, table)]
        for partition in found:
            if partition.month < this_month or (after is not None and partition.month > after):
                self.run(f"DROP TABLE {partition.name}")

    # ---- rows ----

    def notification(
        self,
        *,
        days: float,
        status: str = "SENT",
        recipient: str = "user:1",
        subject: str = "s",
        body: str = "b",
        metadata: dict[str, Any] | None = None,
        attempts: int = 0,
        id_: UUID | None = None,
    ) -> UUID:
        at = datetime.now(UTC) - timedelta(days=days)
        self.add_month(at.date().replace(day=1))
        id_ = id_ or id_of(at)
        is_live = status in ("ACCEPTED", "SENDING", "RETRYING")
        self.run(
            "INSERT INTO notifications (id, notification_type, recipient, subject, body, metadata, status, created_at,"
            " due_at, finished_at, attempts) VALUES (:id, 'PUSH', :recipient, :subject, :body,"
            " CAST(:metadata AS jsonb), :status, :at, :due_at, :finished_at, :attempts)",
            id=id_,
            recipient=recipient,
            subject=subject,
            body=body,
            metadata=json.dumps(metadata or {}),
            status=status,
            at=at,
            due_at=at if is_live else None,
            finished_at=None if is_live else at,
            attempts=attempts,
        )
        self.run(
            "INSERT INTO notification_attempts (notification_id, attempt, outcome, at)"
            " SELECT :id, n, 'SENT', :at FROM generate_series(1, :attempts) AS n",
            id=id_,
            at=at,
            attempts=attempts,
        )
        return id_

    def many_notifications(self, count: int, *, days: float) -> None:
        at = datetime.now(UTC) - timedelta(days=days)
        self.add_month(at.date().replace(day=1))
        self.run(
            "INSERT INTO notifications (id, notification_type, recipient, subject, body, status, created_at, due_at,"
            " finished_at) SELECT (left(CAST(:first AS text), 14) || '7' || substr(md5(n::text), 1, 3) || '-8' ||"
            " substr(md5(n::text), 4, 3) || '-' || substr(md5(n::text), 7, 12))::uuid, 'PUSH', 'user:1', 's', 'b',"
            " 'SENT', :at, NULL, :at FROM generate_series(1, :count) AS n",
            first=str(earliest_id(at)),
            at=at,
            count=count,
        )

    def notifications(self, *ids: UUID) -> list[Any]:
        found = {row.id: row for row in self.rows("SELECT * FROM notifications WHERE id = ANY(:ids)", ids=list(ids))}
        return [found[id_] for id_ in ids if id_ in found]

    def finish(self, id_: UUID) -> None:
        self.run(
            "UPDATE notifications SET status = 'SENT', due_at = NULL, finished_at = created_at WHERE id = :id", id=id_
        )

    def dead_letter(self, notification_id: UUID, *, days: float) -> UUID:
        at = datetime.now(UTC) - timedelta(days=days)
        id_ = id_of(at)
        self.run(
            "INSERT INTO dead_letters (id, notification_id, channel_type, error_code, error_message, retryable,"
            " retry_count, failed_at) VALUES (:id, :notification_id, 'push', 'X', 'x', true, 0, :at)",
            id=id_,
            notification_id=notification_id,
            at=at,
        )
        return id_

    def close(self, dead_letter_id: UUID, *, days: float) -> None:
        self.run(
            "UPDATE dead_letters SET status = 'DISCARDED',"
            " closed_at = clock_timestamp() - make_interval(days => CAST(:days AS int)) WHERE id = :id",
            id=dead_letter_id,
            days=days,
        )

    def age_task(self, task_id: UUID, *, days: float) -> None:
        """As if the task had been pressed, and last changed, so long ago. Its id stays."""
        columns = ("created_at", "updated_at", "search_until", "next_step_at", "assigned_at", "started_at", "ended_at")
        sets = ", ".join(f"{column} = {column} - make_interval(days => CAST(:days AS int))" for column in columns)
        self.run(f"UPDATE tasks SET {sets} WHERE id = :id", id=task_id, days=days)

    def age_action(self, action_id: UUID, *, days: float) -> UUID:
        """As if the action had been requested so long ago. Returns its id, which tells the time."""
        new_id = id_of(datetime.now(UTC) - timedelta(days=days))
        self.run(
            "UPDATE actions SET id = :new_id, created_at = created_at - make_interval(days => CAST(:days AS int)),"
            " finished_at = finished_at - make_interval(days => CAST(:days AS int)) WHERE id = :id",
            id=action_id,
            new_id=new_id,
            days=days,
        )
        self.run("UPDATE notifications SET action_id = :new_id WHERE action_id = :id", id=action_id, new_id=new_id)
        return new_id

    def audit_entry(self, *, days: float) -> UUID:
        at = datetime.now(UTC) - timedelta(days=days)
        entry = Notification(id_of(at), "AUDIT", "user:1", "Kayıt", "Elle atandı", Priority.NORMAL, at, {})
        with self._db.transaction() as conn:
            audit_trail.append(conn, [entry])
        return entry.id
