"""Statements that find the students to whom a coordinator can assign a task by hand, nearest first.

The order is that on the map, whose distances are right to a few thousandths; the distance that is shown is exact. Two
searches keep this fast among a million students. The first looks at the nearest students only. If they are not enough,
because few of them have the name or belong to the institution, the second begins with those who do.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.matching.rules.eligibility import (
    ACTIVE,
    AVAILABLE,
    UNAVAILABLE,
    NotAskedBecause,
    completed_this_month,
    distance_m,
    near_task,
    not_asked_because,
)
from app.matching.rules.errors import TaskNotFound
from app.matching.rules.map_cells import MapPoint, on_the_map
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.staff_views import AssignableStudent
from app.matching.rules.states import OfferState
from app.matching.store.connected import Connected
from app.matching.store.people import may_be_assigned
from app.matching.store.views import seen_elder
from app.users.contract import PeopleSearch, StaffScope
from app.users.models import LatLon, Role

EXAMINED = 1_000
"""Of the nearest students."""

PLACE = """
SELECT ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon
FROM tasks t JOIN users elder ON elder.id = t.elder_id WHERE t.id = :task_id AND {seen}"""

WAY = "s.plane <-> point(:x, :y)"
NEAREST = f"(SELECT s.id, {WAY} AS way FROM students s WHERE {{which}} ORDER BY {WAY} LIMIT :examined)"
# Each index gives its nearest students one after the other. Those without a place come last.
AROUND = f"""
SELECT id, way FROM ({NEAREST.format(which=AVAILABLE)} UNION ALL {NEAREST.format(which=UNAVAILABLE)}) both_indexes
ORDER BY way, id LIMIT :examined"""

FIRST_SEARCH = f"""
WITH around AS MATERIALIZED ({AROUND}),
     found AS MATERIALIZED (SELECT id FROM users WHERE id = ANY (ARRAY(SELECT id FROM around)) AND {{searched}}),
     chosen AS (SELECT u.id FROM around JOIN found USING (id) JOIN users u USING (id)
                WHERE {{allowed}} ORDER BY way, u.id LIMIT :most)"""
SECOND_SEARCH = f"""
WITH found AS MATERIALIZED (SELECT u.id FROM users u WHERE u.role = '{Role.STUDENT}' AND {{searched}} AND {{allowed}}),
     chosen AS (SELECT s.id FROM found JOIN students s USING (id) WHERE {ACTIVE} ORDER BY {WAY}, s.id LIMIT :most)"""

DETAILS = f"""
SELECT s.id, u.name, u.phone, s.on_duty, measured.distance_m, {completed_this_month(":time_zone")} AS completed,
       {not_asked_because(near_task("measured.distance_m"), "t.id", "t.elder_id")} AS obstacle, o.state AS asked_before
FROM chosen JOIN students s USING (id) JOIN users u USING (id) JOIN tasks t ON t.id = :task_id
CROSS JOIN LATERAL (SELECT {distance_m("t.location")} AS distance_m) measured
LEFT JOIN offers o ON o.task_id = t.id AND o.student_id = s.id"""


class AssignableStatements(Connected):
    def assignable(
        self,
        scope: StaffScope,
        task_id: UUID,
        search: PeopleSearch | None,
        rules: MatchingRules,
        limit: int,
        examined: int = EXAMINED,
    ) -> list[AssignableStudent]:
        here = self._place_on_the_map(scope, task_id)
        values = rules.parameters | {"task_id": task_id, "x": here.x, "y": here.y, "most": limit, "examined": examined}
        searched, allowed = "true", may_be_assigned(scope)
        if search is not None:
            searched, values = search.condition, values | search.values
        found = self._chosen(FIRST_SEARCH.format(searched=searched, allowed=allowed), values)
        if len(found) < limit and not (search is None and scope.is_everything):
            # Without a search, those of other institutions are found among the nearest only.
            allowed = allowed if search is not None else scope.sees("u.institution_id")
            found |= self._chosen(SECOND_SEARCH.format(searched=searched, allowed=allowed), values)
        return sorted(found.values(), key=_by_distance)[:limit]

    def _place_on_the_map(self, scope: StaffScope, task_id: UUID) -> MapPoint:
        row = self.conn.execute(text(PLACE.format(seen=seen_elder(scope))), {"task_id": task_id}).one_or_none()
        if row is None:
            raise TaskNotFound
        return on_the_map(LatLon(row.lat, row.lon))

    def _chosen(self, chosen: str, values: dict[str, Any]) -> dict[int, AssignableStudent]:
        rows = self.conn.execute(text(chosen + DETAILS), values)
        return {row.id: _student(row) for row in rows}


def _student(row: Any) -> AssignableStudent:
    return AssignableStudent(
        student_id=row.id,
        name=row.name,
        phone=row.phone,
        distance_m=row.distance_m,
        completed_this_month=row.completed,
        on_duty=row.on_duty,
        obstacle=None if row.obstacle is None else NotAskedBecause(row.obstacle),
        asked_before=None if row.asked_before is None else OfferState(row.asked_before),
    )


def _by_distance(student: AssignableStudent) -> tuple[bool, float, int]:
    return student.distance_m is None, student.distance_m or 0.0, student.student_id
