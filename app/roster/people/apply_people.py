"""Lets people enter, change and leave after a run: brings each person in the queue to the newest row of the list.

A person leaves the queue with the statement that brings them there, so a run that is killed is simply repeated, and
nothing that is done twice has an effect. People who left are first deactivated, any number in one statement. From that
commit on nobody gives them a new task or offer, so those who have none are done, and for the few others matching ends
what they have, one after the other.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlalchemy import Connection, Row, TextClause

from app.db.bites import BY_KEYS, CONNECTION_S, FIRST, in_time, next_size, short_statements
from app.db.database import Database
from app.matching.contract import Overtaken
from app.matching.service import Matching
from app.roster.people import people_statements as statements
from app.roster.people.people_report import PeopleReport
from app.roster.people.which_side_wins import (
    Follows,
    KnownUser,
    PersonValues,
    QueuedPerson,
    WhatFollows,
    decide_all,
    listed_values,
    place,
)
from app.users.models import Role

log = structlog.get_logger(__name__)

PASSES, PAUSE_S = 10, 0.2
"""How often, and after which pause, people are tried again whom others had locked or changed meanwhile."""
READS_IN_VAIN = 10
ANALYZE_FIRST = 1_000

WRITTEN_BY = {
    statements.CREATE: {Follows.CREATED},
    statements.CHANGE: {Follows.BOUND, Follows.UPDATED, Follows.RETURNED},
    statements.LEAVE: {Follows.LEFT},
    statements.DEQUEUE: {Follows.GONE},
}


@dataclass(frozen=True)
class ListOfPeople:
    """What has to be known of a kind."""

    document_type: int
    role: Role
    has_places: bool


def go_through_people(
    db: Database,
    matching: Matching,
    people: ListOfPeople,
    cancelled: Callable[[], bool],
    progress: Callable[[int, int], None],
) -> PeopleReport:
    with db.reading() as conn:
        total = conn.execute(statements.COUNT_QUEUED, {"document_type": people.document_type}).scalar_one()
    work = _PeopleRun(db, matching, people, cancelled, lambda done: progress(done, max(done, total)))
    if total >= ANALYZE_FIRST:
        work.analyze()
    for number in range(PASSES):
        if number:
            time.sleep(PAUSE_S)
        work.go_through_queue()
        if not work.report.left or cancelled():
            break
    if work.report.left:
        log.warning("people_left_in_queue", role=people.role, people=work.report.left)
    return work.report


@dataclass
class _PeopleRun:
    db: Database
    matching: Matching
    listed: ListOfPeople
    cancelled: Callable[[], bool]
    note: Callable[[int], None]
    report: PeopleReport = field(default_factory=PeopleReport)
    done: int = 0
    analyze_at: int = ANALYZE_FIRST
    size: int = FIRST
    in_vain: int = 0
    """Reads of one person in a row that took too long."""
    slowest_ms: float = 0.0
    """Of the statements of this bite."""

    def go_through_queue(self) -> None:
        self.report.left = self.in_vain = 0
        after: str | None = ""
        while after is not None and not self.cancelled():
            with short_statements(self.db, BY_KEYS) as conn:
                give_back_at = time.monotonic() + CONNECTION_S
                while after is not None and not self._is_time(give_back_at):
                    after = self._bite(conn, after)
            if self.done >= self.analyze_at:
                self.analyze()

    def _is_time(self, give_back_at: float) -> bool:
        return self.done >= self.analyze_at or time.monotonic() > give_back_at or self.cancelled()

    def analyze(self) -> None:
        """A first list makes tables large before autovacuum comes, and without statistics each bite would read them
        whole."""
        self.analyze_at = max(2 * self.done, ANALYZE_FIRST)
        with self.db.autocommit() as conn:
            conn.execute(statements.ANALYZE)

    def _bite(self, conn: Connection, after: str) -> str | None:
        """Returns the last person of the bite; None at the end of the queue."""
        self.slowest_ms = 0.0
        people = self._read(conn, statements.READ_NEXT, after=after, size=self.size)
        if people == []:
            return None
        self.in_vain = self.in_vain + 1 if people is None and self.size == 1 else 0
        if self.in_vain == READS_IN_VAIN:
            # The database is too busy to read a single person, so this pass ends.
            self.report.left += 1
            return None
        if people:
            self._bring(conn, people)
            after = people[-1].identifier
        self.size = next_size(self.size, self.slowest_ms)
        self.note(self.done)
        return after

    def _bring(self, conn: Connection, people: Sequence[QueuedPerson]) -> None:
        done = self._write(conn, decide_all(people))
        leaving = [one.person.identifier for one in done if one.follows is Follows.LEFT]
        if leaving:
            left = self._read(conn, statements.READ_AGAIN, identifiers=leaving) or ()
            done += self._write(conn, decide_all(left))
        out = sum(one.follows is not Follows.LEFT for one in done)
        self.done += out
        self.report.left += len(people) - out

    def _write(self, conn: Connection, decided: Sequence[WhatFollows]) -> list[WhatFollows]:
        """Returns those whose statement was committed."""
        busy = self._end_tasks([one.user.id for one in decided if one.follows is Follows.GONE and one.user])
        written: list[WhatFollows] = []
        for statement, follows in WRITTEN_BY.items():
            group = [one for one in decided if one.follows in follows and not (one.user and one.user.id in busy)]
            rows = self._execute(conn, statement, people=_to_json(group)) if group else ()
            identifiers = {row.identifier for row in rows or ()}
            written += [one for one in group if one.person.identifier in identifiers]
        self.report.add(written, has_places=self.listed.has_places)
        self._announce([one for one in written if one.follows is Follows.RETURNED])
        return written

    def _end_tasks(self, user_ids: Sequence[int]) -> set[int]:
        """For people who are deactivated already. Returns those whose tasks or offers could not be ended."""
        overtaken: set[int] = set()
        for user_id in sorted(self.matching.busy_people(user_ids)) if user_ids else ():
            try:
                self.report.add_ended(self.matching.leave_service(user_id), self.listed.role)
            except Overtaken:
                log.warning("leaving_was_overtaken", user_id=user_id)
                overtaken.add(user_id)
        return overtaken

    def _announce(self, returned: Sequence[WhatFollows]) -> None:
        students = [one.user.id for one in returned if one.user] if self.listed.role is Role.STUDENT else []
        if students:
            self.matching.students_returned(students)

    def _read(self, conn: Connection, statement: TextClause, **values: Any) -> list[QueuedPerson] | None:
        rows = self._execute(conn, statement, **values)
        return None if rows is None else [_queued(row) for row in rows]

    def _execute(self, conn: Connection, statement: TextClause, **values: Any) -> Sequence[Row[Any]] | None:
        """None if it took too long. Whoever it was about stays in the queue, and the next bite is smaller."""
        values |= {"document_type": self.listed.document_type, "role": self.listed.role.value}
        began = time.monotonic()
        rows = in_time(lambda: conn.execute(statement, values).all())
        took_ms = (time.monotonic() - began) * 1e3
        self.slowest_ms = max(self.slowest_ms, took_ms if rows is not None else took_ms * 4)
        self.report.longest_ms = max(self.report.longest_ms, took_ms)
        return rows


def _queued(row: Row[Any]) -> QueuedPerson:
    return QueuedPerson(
        row.identifier,
        row.run_id,
        None if row.fields is None else listed_values(row.fields, row.aliases),
        None if row.given is None else _values(row.given),
        row.given is not None and row.left_at is None,
        None if row.bound_to is None else _known_user(row.bound_to),
        [_known_user(one) for one in row.same_phone or ()],
    )


def _known_user(found: Mapping[str, Any]) -> KnownUser:
    return KnownUser(found["id"], found["version"], found["active"], _values(found))


def _values(found: Mapping[str, Any]) -> PersonValues:
    return PersonValues(found["name"], found["phone"], found["locale"], found["institution_id"], place(found["home"]))


def _to_json(group: Sequence[WhatFollows]) -> str:
    return json.dumps([_given(one) for one in group], ensure_ascii=False)


def _given(one: WhatFollows) -> dict[str, Any]:
    person, user, values, home = one.person, one.user, one.values, one.values.home
    known: dict[str, Any] = {"identifier": person.identifier, "run_id": person.run_id, "active": one.active}
    if user is not None:
        known |= {"user_id": user.id, "version": user.version}
    if person.row is not None:
        known |= {"is_changed": one.is_changed, "fields": _fields(one.given), **_plain(values)}
    if home is not None:
        known |= {"lat": home.lat, "lon": home.lon}
    return known


def _plain(values: PersonValues) -> dict[str, Any]:
    return {
        "name": values.name,
        "phone": values.phone,
        "locale": values.locale,
        "institution_id": values.institution_id,
    }


def _fields(values: PersonValues) -> dict[str, Any]:
    home = values.home
    return {**_plain(values), "home": None if home is None else {"lat": home.lat, "lon": home.lon}}
