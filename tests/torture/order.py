"""Checks that candidates were asked in the order that the rules give.

In calm places the check is exact: students there do not move, do not accept and get no offers of other tasks, so every
search asks the same students, nearest first, whatever happens to the candidate lists. In busy places the recorded
history shows which students were available all the time; none of those may have been passed over or never asked.
"""

from collections.abc import Sequence
from typing import Any

from tests.torture.checker import Conn, Violation, some
from tests.torture.people import Place

# A history row has the time of its statement. Its commit may come later, after a wait for a lock.
SLACK = "interval '4 s'"

# x was asked before y although y ranks higher, neither changed, and y had no offer of another task at the time.
PASSED_OVER = f"""
SELECT x.task_id, x.student_id, y.student_id FROM offers x
JOIN offers y ON y.task_id = x.task_id AND y.offered_at > x.offered_at JOIN tasks t ON t.id = x.task_id
WHERE x.deadline IS NOT NULL AND y.deadline IS NOT NULL
  AND x.reason IS DISTINCT FROM 'ASSIGNED_BY_HAND' AND y.reason IS DISTINCT FROM 'ASSIGNED_BY_HAND'
  AND (y.completed_this_month, y.distance_m, y.student_id) < (x.completed_this_month, x.distance_m, x.student_id)
  AND NOT EXISTS (SELECT FROM student_history d WHERE d.student_id = y.student_id
                  AND d.at BETWEEN t.created_at - {SLACK} AND y.offered_at)
  AND NOT EXISTS (SELECT FROM student_history d WHERE d.student_id = x.student_id AND d.measured
                  AND d.at BETWEEN t.created_at - {SLACK} AND y.offered_at)
  AND NOT EXISTS (SELECT FROM offers o WHERE o.student_id = y.student_id AND o.task_id <> y.task_id
                  AND o.offered_at < x.offered_at + interval '1 s' AND o.closed_at > x.offered_at - interval '1 s')
"""

# A student who was eligible but never asked, although the search ended early because nobody was left to ask.
NEVER_ASKED = f"""
SELECT t.id, s.id FROM tasks t CROSS JOIN students s
JOIN LATERAL (SELECT * FROM student_history d WHERE d.student_id = s.id AND d.at <= t.ended_at
              ORDER BY d.at DESC, d.id DESC LIMIT 1) last ON true
WHERE t.status = 'TIMED_OUT' AND t.ended_at < t.search_until - interval '0.5 s'
  AND last.available AND ST_DWithin(last.location, t.location, %s - 1.0)
  AND NOT EXISTS (SELECT FROM student_history d WHERE d.student_id = s.id
                  AND d.at BETWEEN t.ended_at - {SLACK} AND t.ended_at + interval '1 s')
  AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)
"""

CALM_SEARCHES = """
SELECT t.id, t.status, t.ended_at < t.search_until - interval '0.5 s', t.skipped,
       array(SELECT o.student_id FROM offers o WHERE o.task_id = t.id AND o.offered_at IS NOT NULL
             ORDER BY o.offered_at, o.id)
FROM tasks t WHERE t.elder_id = ANY(%s)
"""


def check_order(conn: Conn, calm: Sequence[Place], radius_m: float) -> list[Violation]:
    passed_over = [str(row) for row in conn.execute(PASSED_OVER).fetchall()]
    never_asked = [str(row) for row in conn.execute(NEVER_ASKED, [radius_m]).fetchall()]
    return [
        *some("a student who was asked after a worse candidate", passed_over),
        *some("an eligible student who was never asked", never_asked),
        *some("a calm place not asked in order of distance", calm_disorder(conn, calm)),
    ]


def calm_disorder(conn: Conn, calm: Sequence[Place]) -> list[str]:
    found: list[str] = []
    for place in calm:
        nearest_first = [student.id for student in place.students]
        rows: list[Any] = conn.execute(CALM_SEARCHES, [[elder.id for elder in place.elders]]).fetchall()
        for task_id, status, ended_early, skipped, asked in rows:
            wanted = nearest_first if status == "TIMED_OUT" and ended_early else nearest_first[: len(asked)]
            if asked != wanted or skipped:
                found.append(f"{task_id}: asked {asked} instead of {wanted}, skipped {skipped}")
    return found
