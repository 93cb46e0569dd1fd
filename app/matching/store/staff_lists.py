"""Statements of the lists in which coordinators find students and elders.

A coordinator of an institution sees its students, and the students whom an open task of its elders needs now: those who
have it or are being asked. `may_be_assigned` also allows whoever was ever asked, which is no list to read: it grows for
years.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import text

from app.foundation.pages import Page, page_of, parse_number
from app.matching.rules.eligibility import busy_until, completed_this_month
from app.matching.rules.liveness import live
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.staff_views import ListedElder, ListedStudent, PeoplePage
from app.matching.rules.states import is_open
from app.matching.store.connected import Connected
from app.users.contract import StaffScope
from app.users.models import LatLon, Role

NEEDED = f"""
SELECT coalesce(t.student_id, o.student_id) FROM tasks t JOIN users elder ON elder.id = t.elder_id
  LEFT JOIN offers o ON o.task_id = t.id AND {live("o")}
 WHERE {is_open("t.status")} AND {{of_elder}}"""

STUDENTS = f"""
SELECT u.id, u.name, u.phone, s.on_duty, s.active, s.suspended_at IS NOT NULL AS suspended,
       s.open_task_id IS NOT NULL OR {busy_until()} IS NOT NULL AS busy,
       {completed_this_month(":time_zone")} AS completed,
       ST_Y(coalesce(s.location, s.next_location)::geometry) AS lat,
       ST_X(coalesce(s.location, s.next_location)::geometry) AS lon
FROM users u JOIN students s ON s.id = u.id"""

ELDERS = f"""
SELECT u.id, u.name, u.phone, ST_Y(u.home::geometry) AS lat, ST_X(u.home::geometry) AS lon,
       (SELECT t.id FROM tasks t WHERE t.elder_id = u.id AND {is_open("t.status")}) AS open_task_id
FROM users u"""

IS_ON_DUTY = "(SELECT s.active AND s.on_duty FROM students s WHERE s.id = u.id)"
IS_SUSPENDED = "(SELECT s.active AND s.suspended_at IS NOT NULL FROM students s WHERE s.id = u.id)"


def seen_students(scope: StaffScope) -> list[str]:
    """SQL on the user `u`, a student. Several conditions exclude each other; each has an index, and together they would
    have none."""
    if scope.is_everything:
        return ["true"]
    own = scope.sees("u.institution_id")
    needed = NEEDED.format(of_elder=scope.sees("elder.institution_id"))
    return [own, f"({own}) IS NOT TRUE AND u.id IN ({needed})"]


class StaffListStatements(Connected):
    def student_list(
        self, scope: StaffScope, page: PeoplePage, on_duty: bool | None, suspended: bool | None, rules: MatchingRules
    ) -> Page[ListedStudent]:
        wanted = [(IS_ON_DUTY, ":on_duty", on_duty), (IS_SUSPENDED, ":suspended", suspended)]
        given = [f"{condition} = {name}" for condition, name, value in wanted if value is not None]
        condition = " AND ".join(given) or "true"
        values = {"on_duty": on_duty, "suspended": suspended, "time_zone": rules.time_zone}
        return self._page(Role.STUDENT, seen_students(scope), condition, page, values, STUDENTS, _listed_student)

    def elder_list(self, scope: StaffScope, page: PeoplePage) -> Page[ListedElder]:
        return self._page(Role.ELDER, [scope.sees("u.institution_id")], "u.active", page, {}, ELDERS, _listed_elder)

    def _page(
        self,
        role: Role,
        seen: Sequence[str],
        condition: str,
        page: PeoplePage,
        values: dict[str, Any],
        rows: str,
        show: Callable[[Any], Any],
    ) -> Page[Any]:
        """Newest first: later users have higher ids."""
        before = "" if page.cursor is None else "AND u.id < :before"
        people = [f"SELECT u.id FROM users u WHERE u.role = '{role}' AND {one} {before}" for one in seen]
        values |= {"limit": page.limit + 1, "before": None if page.cursor is None else parse_number(page.cursor)}
        found = ""
        if page.search is not None:
            matches = " UNION ALL ".join(f"{one} AND {page.search.condition}" for one in people)
            found = f"WITH found AS MATERIALIZED ({matches})"
            people = ["SELECT u.id FROM found JOIN users u USING (id) WHERE true"]
            values |= page.search.values
        ids = " UNION ALL ".join(f"({one} AND {condition} ORDER BY u.id DESC LIMIT :limit)" for one in people)
        statement = f"{found} {rows} WHERE u.id = ANY (ARRAY({ids})) ORDER BY u.id DESC LIMIT :limit"
        return page_of(self.conn.execute(text(statement), values).all(), page.limit, show)


def _listed_student(row: Any) -> ListedStudent:
    return ListedStudent(
        id=row.id,
        name=row.name,
        phone=row.phone,
        on_duty=row.on_duty,
        active=row.active,
        suspended=row.suspended,
        busy=row.busy,
        completed_this_month=row.completed,
        location=_place(row),
    )


def _listed_elder(row: Any) -> ListedElder:
    return ListedElder(row.id, row.name, row.phone, _place(row), row.open_task_id)


def _place(row: Any) -> LatLon | None:
    return None if row.lat is None else LatLon(row.lat, row.lon)
