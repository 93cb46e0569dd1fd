"""Statements on users of all roles."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.plain_statements import execute_later
from app.matching.rules.liveness import live
from app.matching.rules.states import is_held, is_open
from app.matching.store.connected import Connected
from app.matching.store.records import KnownPress, LeftBehind, NamedPerson, PressingElder
from app.users.contract import StaffScope
from app.users.models import LatLon, Role

# The coordinators of the elder's institution. If there are none, those who see everything: the coordinators without an
# institution and the admins. Somebody has to be notified of every request that failed, but nobody of another
# institution.
COORDINATORS = text("""
WITH own AS (
    SELECT id FROM users
     WHERE role = 'COORDINATOR' AND active AND institution_id = (SELECT institution_id FROM users WHERE id = :elder_id)
)
SELECT id FROM own
UNION ALL
SELECT id FROM users
 WHERE active AND (role = 'ADMIN' OR role = 'COORDINATOR' AND institution_id IS NULL) AND NOT EXISTS (SELECT FROM own)
 ORDER BY id
""")

# A coordinator gives a task only to students of the own institution, and to those whom a task of its elders has named.
MAY_BE_ASSIGNED = """
({of_institution} OR EXISTS (
    SELECT FROM offers o JOIN tasks t ON t.id = o.task_id JOIN users elder ON elder.id = t.elder_id
     WHERE o.student_id = u.id AND {of_elder}))
"""


LEFT_BEHIND = text(f"""
WITH people AS MATERIALIZED (SELECT unnest(CAST(:ids AS bigint[])) AS id), touched AS MATERIALIZED (
    SELECT t.id FROM tasks t JOIN people ON people.id = t.elder_id WHERE {is_open("t.status")}
    UNION SELECT t.id FROM tasks t JOIN people ON people.id = t.student_id WHERE {is_held("t.status")}
)
SELECT (SELECT count(*) FROM touched),
       (SELECT count(*) FROM offers o WHERE {live("o")}
           AND (student_id IN (SELECT id FROM people) OR task_id IN (SELECT id FROM touched)))
""")


def may_be_assigned(scope: StaffScope) -> str:
    """SQL on the user `u`, a student."""
    if scope.is_everything:
        return "true"
    return MAY_BE_ASSIGNED.format(
        of_institution=scope.sees("u.institution_id"), of_elder=scope.sees("elder.institution_id")
    )


# As the others, parsed once: a press runs it.
@lru_cache(100)
def _lock_elder(seen: str) -> TextClause:
    return text(f"""
    SELECT u.role, u.active, ST_Y(u.home::geometry) AS lat, ST_X(u.home::geometry) AS lon,
           (SELECT id FROM tasks WHERE elder_id = u.id AND {is_open()}) AS open_task_id,
           ARRAY(SELECT clock_timestamp() - created_at
                 FROM (SELECT created_at FROM tasks WHERE elder_id = u.id ORDER BY id DESC LIMIT :newest) newest
                 WHERE created_at > clock_timestamp() - interval '1 hour' ORDER BY 1) AS ages,
           known.id AS known_id, known.note AS known_note,
           ST_Y(known.location::geometry) AS known_lat, ST_X(known.location::geometry) AS known_lon
    FROM users u LEFT JOIN tasks known ON known.elder_id = u.id AND known.idempotency_key = CAST(:key AS text)
    WHERE u.id = :id AND {seen} FOR SHARE OF u""")


def _pressing_elder(row: Any) -> PressingElder | None:
    if row is None:
        return None
    home = None if row.lat is None else LatLon(row.lat, row.lon)
    known = row.known_id and KnownPress(row.known_id, row.known_note, LatLon(row.known_lat, row.known_lon))
    return PressingElder(Role(row.role), row.active, home, row.open_task_id, known, row.ages)


class PeopleStatements(Connected):
    def lock_elder_later(
        self, elder_id: int, scope: StaffScope, key: str | None, newest: int
    ) -> Callable[[], PressingElder | None]:
        """Locks the elder's row, together with the next statement: transactions that change it wait until this one
        ends. Returns what gives the elder after that. A task that was committed while this call waited for the lock is
        not seen. `make_task` then finds it."""
        statement = _lock_elder(scope.sees("u.institution_id"))
        locked = execute_later(self.conn, statement, {"id": elder_id, "key": key, "newest": newest})
        return lambda: _pressing_elder(locked.rows.one_or_none())

    def may_be_assigned(self, scope: StaffScope, student_id: int) -> bool:
        statement = f"SELECT FROM users u WHERE u.id = :student_id AND {may_be_assigned(scope)}"
        return self.conn.execute(text(statement), {"student_id": student_id}).one_or_none() is not None

    def set_active_user(self, user_id: int, active: bool) -> Role | None:
        """The user's role; None if there is no such user."""
        role = self.conn.execute(
            text("UPDATE users SET active = :active, updated_at = clock_timestamp() WHERE id = :id RETURNING role"),
            {"id": user_id, "active": active},
        ).scalar_one_or_none()
        return None if role is None else Role(role)

    def drop_devices(self, user_id: int) -> None:
        """The user was deactivated in this transaction, so that no phone registers meanwhile."""
        self.conn.execute(text("DELETE FROM devices WHERE user_id = :id"), {"id": user_id})

    def lock_inactive(self, user_id: int) -> Role | None:
        """The role of a user who is not active; None if there is no such user. The user stays so until the commit."""
        statement = "SELECT role FROM users WHERE id = :id AND NOT active FOR SHARE"
        role = self.conn.execute(text(statement), {"id": user_id}).scalar_one_or_none()
        return None if role is None else Role(role)

    def busy_people(self, user_ids: Iterable[int]) -> set[int]:
        """Those with a task as in `tasks_of`."""
        statement = f"""
        SELECT elder_id AS id FROM tasks WHERE elder_id = ANY(:ids) AND {is_open()}
        UNION SELECT student_id FROM tasks WHERE student_id = ANY(:ids) AND {is_held()}
        UNION SELECT student_id FROM offers o WHERE student_id = ANY(:ids) AND {live("o")}"""
        return {row.id for row in self.conn.execute(text(statement), {"ids": list(user_ids)})}

    def left_behind(self, user_ids: Iterable[int]) -> LeftBehind:
        return LeftBehind(*self.conn.execute(LEFT_BEHIND, {"ids": list(user_ids)}).one())

    def tasks_of(self, user_id: int) -> list[UUID]:
        """The open tasks that this user has requested, has accepted, or is being asked for."""
        statement = f"""
        SELECT id FROM tasks WHERE elder_id = :id AND {is_open()}
        UNION SELECT id FROM tasks WHERE student_id = :id AND {is_held()}
        UNION SELECT task_id FROM offers o WHERE student_id = :id AND {live("o")}"""
        return [row.id for row in self.conn.execute(text(statement), {"id": user_id})]

    def people(self, ids: Iterable[int]) -> dict[int, NamedPerson]:
        statement = "SELECT id, name, phone FROM users WHERE id = ANY(:ids)"
        rows = self.conn.execute(text(statement), {"ids": list(ids)})
        return {row.id: NamedPerson(row.id, row.name, row.phone) for row in rows}

    def coordinators(self, elder_id: int) -> list[int]:
        return list(self.conn.execute(COORDINATORS, {"elder_id": elder_id}).scalars())
