"""Statements on offers."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.plain_statements import execute_later
from app.matching.rules.eligibility import (
    Candidate,
    Obstacle,
    OfferReason,
    busy_until,
    completed_this_month,
    distance_m,
    first_obstacle,
    near_task,
    seen_before,
)
from app.matching.rules.errors import Overtaken
from app.matching.rules.liveness import answerable, live, overdue, past_deadline
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import OfferState, check_offer_transition, may_become_offer, new_offer
from app.matching.store.connected import Connected
from app.matching.store.records import Expired, Offer, Pick, Skip
from app.matching.store.students import VERSION
from app.matching.store.task_log import log_offer
from app.matching.store.tasks import SET_COUNTS

COMPLETED = completed_this_month(":time_zone")

OFFER_COLUMNS = f"o.id, o.task_id, o.student_id, o.state, o.deadline, ({overdue('o')}) AS overdue"


def _offer(row: Any) -> Offer:
    return Offer(row.id, row.task_id, row.student_id, OfferState(row.state), row.deadline, row.overdue)


def _expired_and_live(rows: Sequence[Any]) -> tuple[list[Expired], dict[UUID, list[Offer]]]:
    expired = [Expired(row.task_id, row.student_id, row.late_s) for row in rows if row.overdue]
    for one in expired:
        log_offer(OfferState.EXPIRED, one.task_id, one.student_id)
    return expired, _by_task(_offer(row) for row in rows if not row.overdue)


def _by_task(offers: Iterable[Offer]) -> dict[UUID, list[Offer]]:
    found: dict[UUID, list[Offer]] = {}
    for offer in offers:
        found.setdefault(offer.task_id, []).append(offer)
    return found


def _own_and_others(rows: Iterable[Any], student_id: int) -> tuple[Offer | None, list[Offer]]:
    offers = [_offer(row) for row in rows]
    own = next((offer for offer in offers if offer.student_id == student_id), None)
    return own, [offer for offer in offers if offer is not own]


Deadlines = dict[tuple[UUID, int], datetime]
"""By task and student."""


def _picked(picks: Sequence[Pick], ttl: timedelta) -> dict[str, Any]:
    return {
        "task_ids": [pick.task_id for pick in picks],
        "student_ids": [pick.student_id for pick in picks],
        "ranks": [pick.rank for pick in picks],
        "completed": [pick.completed for pick in picks],
        "distances": [pick.distance_m for pick in picks],
        "versions": [pick.version for pick in picks],
        "ttl": ttl,
    }


def _made(picks: Sequence[Pick], rows: Iterable[Any]) -> Deadlines:
    """In the order of the picks, so that the oldest task notifies first."""
    deadlines = {(row.task_id, row.student_id): row.deadline for row in rows}
    for task_id, student_id in deadlines:
        log_offer(OfferState.PENDING, task_id, student_id)
    pairs = [(pick.task_id, pick.student_id) for pick in picks]
    return {pair: deadlines[pair] for pair in pairs if pair in deadlines}


# The UPDATE and the SELECT use the same time, so that each offer is in exactly one of them. The statement is sent
# together with the one that locks the tasks, before anybody knows which ones that has locked, so it asks for the locks
# as well. It may get one that the other did not get a moment before. The offer of that task expires, and the rest is
# done when the task is settled again.
CLOCK = "(SELECT now FROM clock)"
EXPIRE_OFFERS = text(f"""
WITH locked AS MATERIALIZED (
    SELECT id FROM tasks WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), clock AS MATERIALIZED (SELECT clock_timestamp() AS now), expired AS (
    UPDATE offers o SET state = '{OfferState.EXPIRED}', closed_at = clock_timestamp()
    WHERE task_id = ANY(ARRAY(SELECT id FROM locked))
      AND {may_become_offer(OfferState.EXPIRED, "o.state")} AND {past_deadline("o", CLOCK)}
    RETURNING id, task_id, student_id, state, deadline
)
SELECT id, task_id, student_id, state, deadline, true AS overdue,
       extract(epoch FROM (SELECT now FROM clock) - deadline)::float8 AS late_s
FROM expired
UNION ALL
SELECT id, task_id, student_id, state, deadline, false, 0
FROM offers o WHERE task_id = ANY(ARRAY(SELECT id FROM locked)) AND {answerable("o", CLOCK)}
ORDER BY deadline, id
""")

CANDIDATES = text(f"""
SELECT c.task_id, c.student_id, {COMPLETED} AS completed, spot.distance_m, {busy_until()} AS busy_until,
       {first_obstacle(near_task("spot.distance_m"))} AS obstacle, {seen_before("c.task_id")} AS seen_before,
       {VERSION} AS version
FROM unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[])) AS c (task_id, student_id)
JOIN tasks t ON t.id = c.task_id
LEFT JOIN students s ON s.id = c.student_id
CROSS JOIN LATERAL (SELECT {distance_m("t.location")} AS distance_m) spot
""")

MEASURED = f"""
SELECT {distance_m("t.location")} FROM tasks t, students s WHERE t.id = p.task_id AND s.id = p.student_id"""

PICKED = """
unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[]), CAST(:ranks AS int[]), CAST(:completed AS int[]),
       CAST(:distances AS float8[]), CAST(:versions AS bigint[]))
AS p (task_id, student_id, rank, completed, distance_m, version)"""

INSERT = f"""
INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline)
SELECT p.task_id, p.student_id, {new_offer(OfferState.PENDING)}, p.rank, p.completed,
       coalesce(p.distance_m, ({MEASURED})), clock.now, clock.now + :ttl
FROM {{picked}}, clock
ORDER BY p.student_id
ON CONFLICT DO NOTHING
RETURNING task_id, student_id, deadline"""

INSERT_OFFERS = text(f"WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now) {INSERT.format(picked=PICKED)}")

# The students whose rows are as they were read are asked at once. The clock counts the rows, so that it is read when
# all of them are locked.
AS_READ = f"(SELECT p.* FROM {PICKED} JOIN locked USING (student_id, version)) p"
ASK = f"""
WITH locked AS MATERIALIZED (
    SELECT s.id AS student_id, {VERSION} AS version FROM students s
    WHERE s.id = ANY(:student_ids) ORDER BY s.id FOR NO KEY UPDATE{{skip_locked}}
), clock AS MATERIALIZED (SELECT clock_timestamp() AS now, count(*) FROM locked),
made AS ({INSERT.format(picked=AS_READ)})
SELECT locked.student_id, locked.version, made.task_id, made.deadline FROM locked LEFT JOIN made USING (student_id)
"""
ASK_ALL, ASK_FREE = text(ASK.format(skip_locked="")), text(ASK.format(skip_locked=" SKIP LOCKED"))

INSERT_SKIPS = text(f"""
INSERT INTO offers (task_id, student_id, state, reason, completed_this_month, distance_m, closed_at)
SELECT p.task_id, p.student_id, {new_offer(OfferState.SKIPPED)}, p.reason, p.completed, p.distance_m, clock_timestamp()
FROM unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[]), CAST(:reasons AS text[]),
            CAST(:completed AS int[]), CAST(:distances AS float8[]))
     AS p (task_id, student_id, reason, completed, distance_m)
JOIN students s ON s.id = p.student_id
ORDER BY p.student_id
ON CONFLICT DO NOTHING
RETURNING task_id, student_id, reason
""")

OFFERS_AROUND = text(f"""
SELECT {OFFER_COLUMNS} FROM offers o
WHERE task_id = :task_id AND (student_id = :student_id OR {live("o")}) ORDER BY id
""")


class OfferStatements(Connected):
    def offer_of(self, task_id: UUID, student_id: int) -> Offer | None:
        statement = f"SELECT {OFFER_COLUMNS} FROM offers o WHERE task_id = :task_id AND student_id = :student_id"
        row = self.conn.execute(text(statement), {"task_id": task_id, "student_id": student_id}).one_or_none()
        return None if row is None else _offer(row)

    def offers_around_later(self, task_id: UUID, student_id: int) -> Callable[[], tuple[Offer | None, list[Offer]]]:
        """Asks, together with the next statement, for the offer of the task to this student, and for its live offers to
        others. Returns what gives them."""
        asked = execute_later(self.conn, OFFERS_AROUND, {"task_id": task_id, "student_id": student_id})
        return lambda: _own_and_others(asked.rows, student_id)

    def live_offers(self, task_ids: Iterable[UUID]) -> dict[UUID, list[Offer]]:
        """The live offers by task, the earliest deadline first. Tasks without one are left out."""
        statement = f"""
        SELECT {OFFER_COLUMNS} FROM offers o WHERE task_id = ANY(:ids) AND {live("o")} ORDER BY deadline, id"""
        return _by_task(_offer(row) for row in self.conn.execute(text(statement), {"ids": list(task_ids)}))

    def live_task_of_students(self, student_ids: Iterable[int]) -> dict[int, UUID]:
        """The task for which each student is being asked. Nothing is locked, so read it again under the student's
        lock."""
        statement = f"SELECT student_id, task_id FROM offers o WHERE student_id = ANY(:ids) AND {live('o')}"
        return {row.student_id: row.task_id for row in self.conn.execute(text(statement), {"ids": list(student_ids)})}

    def close_offer(self, offer: Offer, state: OfferState, reason: str | None = None) -> bool:
        """True if this call made the transition, False if the offer is no longer in the state in which it was read.

        Without `reason` the old reason stays. So a released offer still shows that a coordinator had assigned the task.
        """
        check_offer_transition(offer.state, state)
        statement = """
        UPDATE offers SET state = :state, reason = coalesce(CAST(:reason AS text), reason),
                          closed_at = clock_timestamp()
        WHERE id = :id AND state = :from_state RETURNING id"""
        row = self.conn.execute(
            text(statement), {"id": offer.id, "state": state, "from_state": offer.state, "reason": reason}
        ).one_or_none()
        if row is not None:
            log_offer(state, offer.task_id, offer.student_id)
        return row is not None

    def accept_by_hand(self, task_id: UUID, student_id: int, time_zone: str) -> None:
        """Accepts for a coordinator who assigns the task, whatever the state of an earlier offer, or without one."""
        statement = f"""
        INSERT INTO offers AS o (task_id, student_id, state, reason, rank, completed_this_month, distance_m, offered_at,
                                 closed_at)
        SELECT t.id, s.id, {new_offer(OfferState.ACCEPTED)}, '{OfferReason.ASSIGNED_BY_HAND}', t.asked + t.skipped + 1,
               {COMPLETED}, {distance_m("t.location")},
               clock_timestamp(), clock_timestamp()
        FROM tasks t, students s WHERE t.id = :task_id AND s.id = :student_id
        ON CONFLICT (task_id, student_id) DO UPDATE
        SET state = '{OfferState.ACCEPTED}', reason = '{OfferReason.ASSIGNED_BY_HAND}', closed_at = clock_timestamp(),
            offered_at = coalesce(o.offered_at, excluded.offered_at), rank = coalesce(o.rank, excluded.rank)
        WHERE {may_become_offer(OfferState.ACCEPTED, "o.state")} RETURNING o.id"""
        values = {"task_id": task_id, "student_id": student_id, "time_zone": time_zone}
        if self.conn.execute(text(statement), values).one_or_none() is None:
            raise Overtaken
        log_offer(OfferState.ACCEPTED, task_id, student_id, by_hand=True)
        self.conn.execute(
            text(f"UPDATE tasks SET {SET_COUNTS} WHERE id = :task_id"),
            {"task_id": task_id},
        )

    def expire_offers(self, task_ids: Sequence[UUID]) -> Callable[[], tuple[list[Expired], dict[UUID, list[Offer]]]]:
        """Closes the overdue offers of these tasks, except for tasks that another transaction has locked, together with
        the next statement. Returns what gives the closed offers, and by task those that are still live, the earliest
        deadline first."""
        if not task_ids:
            return lambda: ([], {})
        answer = execute_later(self.conn, EXPIRE_OFFERS, {"ids": list(task_ids)})
        return lambda: _expired_and_live(answer.rows)

    def candidates(self, pairs: Sequence[tuple[UUID, int]], rules: MatchingRules) -> dict[tuple[UUID, int], Candidate]:
        """What decides for each pair of task and student whether the task may ask the student."""
        if not pairs:
            return {}
        values = {"task_ids": [task_id for task_id, _ in pairs], "student_ids": [student_id for _, student_id in pairs]}
        rows = self.conn.execute(CANDIDATES, rules.parameters | values)
        return {
            (row.task_id, row.student_id): Candidate(
                row.student_id,
                row.completed,
                row.distance_m,
                row.busy_until,
                Obstacle(row.obstacle) if row.obstacle else None,
                row.seen_before,
                row.version,
            )
            for row in rows
        }

    def insert_offers(self, picks: Sequence[Pick], ttl: timedelta) -> Deadlines:
        """The deadline of each inserted offer. An offer that would break a unique index is left out."""
        return _made(picks, self.conn.execute(INSERT_OFFERS, _picked(picks, ttl))) if picks else {}

    def ask(
        self, picks: Sequence[Pick], ttl: timedelta, *, skip_locked: bool = False
    ) -> tuple[Deadlines, dict[int, int]]:
        """Locks the students, and makes the offers to those whose rows have not changed since they were read. An offer
        that would break a unique index is left out. Returns the deadlines, and the locked students with the versions of
        their rows. Call this once in a transaction, as `lock_students`."""
        rows = self.conn.execute(ASK_FREE if skip_locked else ASK_ALL, _picked(picks, ttl))
        made = _made(picks, [row for row in rows if row.task_id is not None])
        return made, {row.student_id: row.version for row in rows}

    def insert_skips(self, skips: Sequence[Skip]) -> list[UUID]:
        if not skips:
            return []
        inserted = self.conn.execute(
            INSERT_SKIPS,
            {
                "task_ids": [skip.task_id for skip in skips],
                "student_ids": [skip.student_id for skip in skips],
                "reasons": [skip.reason for skip in skips],
                "completed": [skip.completed for skip in skips],
                "distances": [skip.distance_m for skip in skips],
            },
        ).all()
        for row in inserted:
            log_offer(OfferState.SKIPPED, row.task_id, row.student_id, reason=row.reason)
        return [row.task_id for row in inserted]
