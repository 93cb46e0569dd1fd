"""Offers in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from app.matching.states import OfferState
from app.matching.store.memory.students import MemoryStudents
from app.matching.store.memory.tables import OfferRow, StudentRow, TaskRow, distance_m
from app.matching.store.records import Expired, Fact, Offer, Pick, Skip


class MemoryOffers(MemoryStudents):
    def offer_of(self, task_id: UUID, student_id: int) -> Offer | None:
        row = self.rows.offers.get((task_id, student_id))
        return None if row is None else self._offer(row)

    def live_offers(self, task_ids: Iterable[UUID]) -> dict[UUID, Offer]:
        live = [self.rows.live_offer_for(task_id) for task_id in task_ids]
        return {row.task_id: self._offer(row) for row in live if row is not None}

    def live_task_of_students(self, student_ids: Iterable[int]) -> dict[int, UUID]:
        live = [self.rows.live_offer_of(student_id) for student_id in student_ids]
        return {row.student_id: row.task_id for row in live if row is not None}

    def _offer(self, row: OfferRow) -> Offer:
        return Offer(row.id, row.task_id, row.student_id, row.state, row.deadline, self._overdue(row))

    def _overdue(self, row: OfferRow) -> bool:
        return row.state is OfferState.PENDING and row.deadline is not None and row.deadline <= self.now()

    def _change_offer(self, offer: Offer, **changes: Any) -> bool:
        """False when it is no longer in the state it was read in."""
        row = self.rows.offers[offer.task_id, offer.student_id]
        if row.state is not offer.state:
            return False
        self.rows.put_offer(replace(row, closed_at=self.now(), **changes))
        return True

    def close_offer(self, offer: Offer, state: OfferState, reason: str | None = None) -> bool:
        row = self.rows.offers[offer.task_id, offer.student_id]
        return self._change_offer(offer, state=state, reason=reason or row.reason)

    def accept_offer(self, offer: Offer) -> bool:
        row = self.rows.offers[offer.task_id, offer.student_id]
        pending = row.state is OfferState.PENDING and not self._overdue(row)
        return pending and self._change_offer(offer, state=OfferState.ACCEPTED)

    def accept_by_hand(self, task_id: UUID, student_id: int, time_zone: str) -> None:
        task, student, now = self.rows.tasks[task_id], self.rows.students[student_id], self.now()
        new = OfferRow(
            self._next_id(),
            task_id,
            student_id,
            OfferState.ACCEPTED,
            task.asked + task.skipped + 1,
            self.completed(student, time_zone),
            None if student.location is None else distance_m(task.spot, student.location),
            "ASSIGNED_BY_HAND",
            now,
            closed_at=now,
        )
        known = self.rows.offers.get((task_id, student_id))
        if known is not None:
            rank = new.rank if known.rank is None else known.rank
            offered_at = known.offered_at or now
            new = replace(known, state=new.state, reason=new.reason, closed_at=now, rank=rank, offered_at=offered_at)
        self.rows.put_offer(new)
        asked, skipped = self.rows.counted(task_id)
        self.rows.put_task(replace(task, asked=asked, skipped=skipped))

    def _next_id(self) -> int:
        return max((row.id for row in self.rows.offers.values()), default=0) + 1

    def expire_offers(self, task_ids: Sequence[UUID]) -> tuple[list[Expired], dict[UUID, Offer]]:
        now = self.now()
        expired: list[Expired] = []
        for row in [self.rows.live_offer_for(task_id) for task_id in task_ids]:
            if row is not None and row.deadline is not None and row.deadline <= now:
                self.rows.put_offer(replace(row, state=OfferState.EXPIRED, closed_at=now))
                expired.append(Expired(row.task_id, row.student_id, (now - row.deadline).total_seconds()))
        return expired, self.live_offers(task_ids)

    def facts(
        self, pairs: Sequence[tuple[UUID, int]], *, radius_m: float, time_zone: str
    ) -> dict[tuple[UUID, int], Fact]:
        return {
            (task_id, student_id): self._fact(self.rows.tasks[task_id], student_id, radius_m, time_zone)
            for task_id, student_id in pairs
            if task_id in self.rows.tasks
        }

    def _fact(self, task: TaskRow, student_id: int, radius_m: float, time_zone: str) -> Fact:
        student = self.rows.students.get(student_id)
        away = None if student is None or student.location is None else distance_m(student.location, task.spot)
        return Fact(
            task.id,
            student_id,
            _obstacle(student, away, radius_m),
            (task.id, student_id) in self.rows.offers,
            self.busy_until(student_id),
            0 if student is None else self.completed(student, time_zone),
            away,
            hash(student),
        )

    def insert_offers(self, picks: Sequence[Pick], ttl: timedelta) -> dict[UUID, datetime]:
        now = self.now()
        made: dict[UUID, datetime] = {}
        for pick in sorted(picks, key=lambda pick: pick.student_id):
            row = OfferRow(
                self._next_id(),
                pick.task_id,
                pick.student_id,
                OfferState.PENDING,
                pick.rank,
                pick.completed,
                pick.distance_m,
                None,
                now,
                now + ttl,
            )
            if self.rows.offer_fits(row):
                self.rows.put_offer(row)
                made[row.task_id] = now + ttl
        return made

    def insert_skips(self, skips: Sequence[Skip]) -> list[UUID]:
        made: list[UUID] = []
        for skip in sorted(skips, key=lambda skip: skip.student_id):
            row = OfferRow(
                self._next_id(),
                skip.task_id,
                skip.student_id,
                OfferState.SKIPPED,
                completed=skip.completed,
                distance_m=skip.distance_m,
                reason=skip.reason,
                closed_at=self.now(),
            )
            if skip.student_id in self.rows.students and self.rows.offer_fits(row):
                self.rows.put_offer(row)
                made.append(row.task_id)
        return made


def _obstacle(student: StudentRow | None, away: float | None, radius_m: float) -> str | None:
    if student is None or not student.active:
        return "INACTIVE"
    if not student.on_duty:
        return "OFF_DUTY"
    if away is None:
        return "NO_LOCATION"
    if student.open_task_id is not None:
        return "HAS_A_TASK"
    return "TOO_FAR" if away > radius_m else None
