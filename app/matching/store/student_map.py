"""Statements of the map on which coordinators see students.

Without an institution, the indexes by place are read until there are enough students. With one that has few students,
these are read instead, because a part of a city may hold a million students of others.
"""

from typing import Any

from sqlalchemy import text

from app.matching.rules.eligibility import AVAILABLE, UNAVAILABLE
from app.matching.rules.liveness import live
from app.matching.rules.map_cells import on_the_map
from app.matching.rules.staff_views import MapBox, StudentMap, StudentOnMap
from app.matching.rules.states import is_held
from app.matching.store.connected import Connected
from app.matching.store.staff_lists import seen_students
from app.users.contract import StaffScope
from app.users.models import LatLon, Role

FEW = 20_000

IN_BOX = "s.plane <@ box(point(:x_from, :y_from), point(:x_to, :y_to))"
HOLDS_A_TASK = "s.on_duty AND s.open_task_id IS NOT NULL"

PART = f"SELECT s.id FROM {{rows}} JOIN users u ON u.id = s.id WHERE {{which}} AND {IN_BOX} AND {{seen}} LIMIT :most"
# On duty first: students with a task, then the available ones, then the others. One part is read after the other, and
# none when there are enough. Those with a task are found by their tasks, because they are few among the unavailable.
PARTS = (
    ("tasks t JOIN students s ON s.id = t.student_id", f"{is_held('t.status')} AND {HOLDS_A_TASK}"),
    ("students s", AVAILABLE),
    ("students s", f"{UNAVAILABLE} AND NOT ({HOLDS_A_TASK})"),
)
# OFFSET 0, because the planner takes any box for a small one, and would read it first.
OF_INSTITUTION = f"""
SELECT s.id FROM (SELECT u.id FROM users u WHERE u.role = '{Role.STUDENT}' AND {{seen}} OFFSET 0) mine
CROSS JOIN LATERAL (SELECT s.id, s.active, s.on_duty, s.plane FROM students s WHERE s.id = mine.id OFFSET 0) s
WHERE s.active AND {IN_BOX} ORDER BY s.on_duty DESC, s.id LIMIT :most"""

SHOWN = f"""
WITH chosen AS MATERIALIZED ({{chosen}})
SELECT s.id, u.name, s.on_duty, ST_Y(s.location::geometry) AS lat, ST_X(s.location::geometry) AS lon,
       s.open_task_id IS NOT NULL OR asking.task_id IS NOT NULL AS busy,
       CASE WHEN {{seen_elder}} THEN asking.task_id END AS offered_task_id
FROM chosen JOIN students s USING (id) JOIN users u USING (id)
LEFT JOIN LATERAL (
    SELECT o.task_id, elder.institution_id FROM offers o JOIN tasks t ON t.id = o.task_id
    JOIN users elder ON elder.id = t.elder_id WHERE o.student_id = s.id AND {live("o")}
) asking ON true
ORDER BY s.on_duty DESC, s.id"""


class StudentMapStatements(Connected):
    def student_map(self, scope: StaffScope, box: MapBox, most: int, few: int = FEW) -> StudentMap:
        own, *needed = seen_students(scope)
        parts = [OF_INSTITUTION.format(seen=one) for one in needed]
        if self._has_at_most(few, scope):
            parts.append(OF_INSTITUTION.format(seen=own))
        else:
            parts += [PART.format(rows=rows, which=which, seen=own) for rows, which in PARTS]
        chosen = f"SELECT id FROM ({' UNION ALL '.join(f'({part})' for part in parts)}) parts LIMIT :most"
        statement = SHOWN.format(chosen=chosen, seen_elder=scope.sees("asking.institution_id"))
        low, high = on_the_map(LatLon(box.south, box.west)), on_the_map(LatLon(box.north, box.east))
        values = {"x_from": low.x, "y_from": low.y, "x_to": high.x, "y_to": high.y, "most": most + 1}
        rows = self.conn.execute(text(statement), values).all()
        return StudentMap([_on_the_map(row) for row in rows[:most]], len(rows) > most)

    def _has_at_most(self, few: int, scope: StaffScope) -> bool:
        if scope.is_everything:
            return False
        counted = f"SELECT FROM users WHERE role = '{Role.STUDENT}' AND {scope.sees('institution_id')} LIMIT {few + 1}"
        return self.conn.execute(text(f"SELECT count(*) FROM ({counted}) counted")).scalar_one() <= few


def _on_the_map(row: Any) -> StudentOnMap:
    return StudentOnMap(row.id, row.name, row.lat, row.lon, row.on_duty, row.busy, row.offered_task_id)
