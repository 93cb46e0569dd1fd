"""Streams on real stores: who gets what, resuming, and what ends them."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.api.identities import FirebaseUid, VerifierUnavailable
from app.api.services import Services
from app.api.stream_tokens import check_tokens_in
from app.api.tokens import LIFETIME_S, LocalTokens
from app.db import wake
from app.db.wake import Announcer
from app.foundation.errors import InvalidValue
from app.realtime import event_log, live_events
from app.realtime.contract import EndReason, EventsGone, EventType, Wanted
from app.realtime.event_stream import MOST_WAITING
from app.realtime.live_events import MOST_AT_ONCE
from app.realtime.service import CHANNEL, Realtime
from app.realtime.stream_checks import EVERY_S, TURN_S
from tests.conftest import SECRET
from tests.integration.realtime.conftest import PATIENCE_S, Follower, written
from tests.support import mishaps
from tests.support.depth import size
from tests.support.matching import Neighbourhood
from tests.support.streams import wait_until

Build = Callable[..., Realtime]


def test_each_gets_their_own_at_once_from_any_process(town: Neighbourhood, build: Build) -> None:
    elder, (student, other) = town.elder(institution_id=1), town.students(10, 20)
    here, there = build(), build()
    followers = {
        "elder": Follower(here, elder),
        "student": Follower(there, student),
        "other": Follower(there, other),
        "own": Follower(here, town.coordinator(institution_id=1)),
        "another": Follower(there, town.coordinator(institution_id=2)),
    }
    task = town.press(elder)
    of_task = Follower(there, elder, Wanted(task), after=0)
    town.matching.accept(student, task)
    town.matching.cancel(elder, task)
    expected = {
        "elder": ["TASK_CREATED", "TASK_OFFERED", "TASK_ASSIGNED", "TASK_CANCELLED"],
        "student": ["TASK_OFFERED", "TASK_ASSIGNED", "TASK_CANCELLED"],
        "own": ["TASK_CREATED", "TASK_OFFERED", "TASK_ASSIGNED", "TASK_CANCELLED"],
    }
    for who, types in expected.items():
        assert followers[who].until_type("TASK_CANCELLED") == ["READY", *types]
    assert of_task.until_type("TASK_CANCELLED") == ["READY", *expected["elder"]]
    town.run("UPDATE students SET on_duty = false WHERE id = :id", id=other.id)
    assert followers["other"].until_type("DUTY_CHANGED") == ["READY", "DUTY_CHANGED"]
    assert [event["type"] for event in followers["another"].events] == ["READY"]
    theirs = town.press(town.elder(institution_id=2))
    resumed = Follower(there, town.coordinator(institution_id=2), after=0)
    assert resumed.until_type("TASK_OFFERED") == ["READY", "TASK_CREATED", "TASK_OFFERED"]
    assert {event["taskId"] for event in resumed.events[1:]} == {str(theirs)}
    for follower in (*followers.values(), of_task, resumed):
        follower.go()


def test_a_reader_who_resumes_while_others_write_misses_and_repeats_nothing(town: Neighbourhood, build: Build) -> None:
    students, admin = town.students(10, 20, 30), town.coordinator()
    stop = threading.Event()

    def write(id_: int) -> None:
        while not stop.is_set():
            town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=id_)

    writers = [threading.Thread(target=write, args=(student.id,)) for student in students]
    for writer in writers:
        writer.start()
    processes = [build(), build()]
    seen: list[int] = []
    for turn in range(12):
        after = seen[-1] if seen else 0
        follower = Follower(processes[turn % 2], admin, after=after)
        follower.until(lambda events: len(events) > 15)
        follower.go()
        ready, *events = [event for event in follower.events if "id" in event]
        assert ready["id"] == after
        seen += [event["id"] for event in events]
    stop.set()
    for writer in writers:
        writer.join()
    assert seen == list(range(1, len(seen) + 1))


@pytest.mark.parametrize("place", ["events.before_sequence", "events.sequenced"])
def test_a_process_that_is_killed_while_it_gives_positions_costs_nobody_an_event(
    town: Neighbourhood, build: Build, place: str
) -> None:
    """At the first kill nobody reads, so the killed process gives the positions. At the others, one follows."""
    student, admin = town.student(10), town.coordinator()
    realtime = build()
    following: list[Follower] = []
    resumed: list[int] = []
    for _ in range(size(suite=3, deep=30)):
        for _ in range(10):
            town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
        assert mishaps.Step(town.services.settings, f"{place}=kill@1", "give_positions", admin, None, "").end().died
        town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
        follower = Follower(realtime, admin, after=len(resumed))
        ready, *events = follower.until(lambda events: len(events) >= 12)
        assert ready["id"] == len(resumed)
        resumed += ids(events)
        following.append(follower)
    for first, follower in enumerate(following):
        events = follower.until(lambda events: events[-1]["id"] == len(resumed))
        assert ids(events) == list(range(11 * first, len(resumed) + 1))
        follower.go()
    assert resumed == list(range(1, len(resumed) + 1))


def ids(events: Sequence[Mapping[str, Any]]) -> list[int]:
    return [event["id"] for event in events]


def test_a_reader_who_does_not_read_is_dropped_and_resumes(town: Neighbourhood, build: Build) -> None:
    student, admin, most = town.student(10), town.coordinator(), MOST_WAITING + 2 * MOST_AT_ONCE
    realtime = build()
    slow, quick = Follower(realtime, admin), Follower(realtime, admin)
    for follower in (slow, quick):
        follower.until_type("READY")
    with slow.standing_still():
        statement = "INSERT INTO new_events (type, person_id) SELECT 'DUTY_CHANGED', :id FROM generate_series(1, :most)"
        town.run(statement, id=student.id, most=most)
        assert [event["id"] for event in quick.until(lambda events: len(events) > most)] == list(range(most + 1))
    events = slow.until(lambda events: events[-1]["type"] == "END")
    assert events[-1]["reason"] == "SLOW"
    seen = [event["id"] for event in events if "id" in event]
    again = Follower(realtime, admin, after=seen[-1])
    seen += [event["id"] for event in again.until(lambda events: events[-1:] != [] and events[-1]["id"] == most)[1:]]
    assert seen == list(range(most + 1))
    for follower in (quick, again):
        follower.go()


def test_streams_of_people_who_may_not_read_any_more_end_within_30_s(
    town: Neighbourhood, build: Build, expired: set[str]
) -> None:
    now = [0.0]
    realtime = build(monotonic=lambda: now[0])
    elder, (student, other) = town.elder(), town.students(10, 20)
    followers = [Follower(realtime, who) for who in (elder, student, other)]
    for follower in followers:
        follower.until_type("READY")
    town.matching.set_active(student.id, False)
    expired.add(str(elder.id))
    reasons: list[str | None] = []
    # The thread looks once a second of real time, and the time it looks at is ours.
    for follower in followers[:2]:
        while not follower.is_over and now[0] < PATIENCE_S * 20:
            now[0] += 1
            with follower.came:
                follower.came.wait(0.05)
        reasons.append(follower.events[-1].get("reason"))
    assert reasons == ["TOKEN_EXPIRED", "DEACTIVATED"]
    assert EVERY_S + 2 * TURN_S < 30
    assert not followers[2].is_over
    followers[2].go()


def test_positions_that_no_stream_can_begin_at(town: Neighbourhood, build: Build) -> None:
    realtime, admin = build(), town.coordinator()
    with pytest.raises(InvalidValue):
        realtime.open_stream(admin, "", Wanted(), 1)
    student = town.student(10)
    for _ in range(4):
        town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    assert len(written(town.db)) == 4
    with pytest.raises(InvalidValue):
        realtime.open_stream(admin, "", Wanted(), 5)
    town.run("DELETE FROM events WHERE id <= 2")
    with pytest.raises(EventsGone):
        realtime.open_stream(admin, "", Wanted(), 1)
    follower = Follower(realtime, admin, after=2)
    assert [event["id"] for event in follower.until(lambda events: len(events) == 3)] == [2, 3, 4]
    follower.go()
    with town.db.transaction() as conn:
        event_log.keep_head(conn)
    town.run("DELETE FROM events")
    Follower(realtime, admin, after=4).go()
    with pytest.raises(EventsGone):
        realtime.open_stream(admin, "", Wanted(), 3)


def test_a_stream_does_not_stay_silent_after_a_backup_was_restored(town: Neighbourhood, build: Build) -> None:
    """The restored events end below the place of the process, which would wait until they pass it."""
    student, admin, realtime = town.student(10), town.coordinator(), build()
    before = Follower(realtime, admin)
    for _ in range(5):
        town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    before.until(lambda events: len(events) == 6)
    town.run("DELETE FROM events WHERE id > 2")
    assert before.until(lambda events: events[-1]["type"] == "END")[-1]["reason"] == "RESTORED"
    after = Follower(realtime, admin)
    town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    events = after.until(lambda events: len(events) == 2)
    assert [event["id"] for event in events] == [2, 3]
    after.go()


def test_without_redis_the_others_look_by_themselves(town: Neighbourhood, build: Build) -> None:
    nowhere = "redis://127.0.0.1:1/0"
    here, there = build(redis_url=nowhere), build(redis_url=nowhere)
    admin, student = town.coordinator(), town.student(10)
    followers = [Follower(here, admin), Follower(there, admin)]
    town.run("UPDATE students SET on_duty = false WHERE id = :id", id=student.id)
    for follower in followers:
        assert follower.until_type(EventType.DUTY_CHANGED) == ["READY", "DUTY_CHANGED"]
        follower.go()


def test_only_who_has_streams_listens(town: Neighbourhood, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """To wake every process of the api for each event costs a tenth of all presses."""
    monkeypatch.setattr(live_events, "POLL_S", 60)
    monkeypatch.setattr(wake, "IDLE_CHECK_S", 60)
    reads, idle = build(), build()
    idle.start()
    reads.start()
    assert not listening(town)
    follower = Follower(reads, town.coordinator())
    wait_until(lambda: listening(town))
    town.press(town.elder())
    assert follower.until_type("TASK_CREATED")[0] == "READY"
    assert len(listening(town)) == 1
    follower.go()


def test_announcer_stops_listening_when_it_is_not_needed_any_more(town: Neighbourhood, services: Services) -> None:
    needed, woken = threading.Event(), threading.Semaphore(0)
    announcer = Announcer(services.settings.database_url, CHANNEL, listens_on_s=0.1)
    announcer.on("", woken.release)
    announcer.listen_only_while(needed.is_set)
    announcer.start()
    for _ in range(2):
        needed.set()
        announcer.listen()
        assert woken.acquire(timeout=PATIENCE_S), "what was announced before may be lost"
        [pid] = listening(town)
        town.run("NOTIFY events")
        assert woken.acquire(timeout=PATIENCE_S)
        assert listening(town) == [pid], "a new connection would have woken it, too"
        needed.clear()
        wait_until(lambda: not listening(town))
    announcer.close()
    assert not woken.acquire(blocking=False)


def listening(town: Neighbourhood) -> list[int]:
    own = "datname = current_database() AND application_name = 'yaninda-events-listen'"
    return [row.pid for row in town.all(f"SELECT pid FROM pg_stat_activity WHERE {own} ORDER BY pid")]


def test_a_first_stream_begins_after_what_was_committed_before(town: Neighbourhood, build: Build) -> None:
    student, admin = town.student(10), town.coordinator()
    for _ in range(700):
        town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    follower = Follower(build(), admin)
    [ready] = follower.until(lambda events: bool(events))
    assert ready["id"] == 700
    follower.go()


def test_which_tokens_of_open_streams_still_admit_their_callers(town: Neighbourhood) -> None:
    now = [1_000_000.0]
    tokens = LocalTokens(SECRET, lambda: now[0])
    elder, student, coordinator = town.elder(), town.student(10), town.coordinator(institution_id=1)
    early = tokens.issue(elder.id)
    now[0] += 3600
    later = [tokens.issue(person.id) for person in (elder, student, coordinator)]
    check = check_tokens_in(town.db, tokens.verify)
    assert check([early, *later]) == [elder, elder, student, coordinator]
    now[0] += LIFETIME_S - 3600
    town.matching.set_active(student.id, False)
    town.run("UPDATE users SET institution_id = 2 WHERE id = :id", id=coordinator.id)
    assert check([early, *later, "forged"]) == [
        EndReason.TOKEN_EXPIRED,
        elder,
        EndReason.DEACTIVATED,
        replace(coordinator, institution_id=2),
        EndReason.TOKEN_EXPIRED,
    ]


def test_tokens_of_firebase_are_checked_by_the_uid(town: Neighbourhood) -> None:
    student = town.student(10)
    town.run("UPDATE users SET firebase_uid = 'uid-1' WHERE id = :id", id=student.id)

    def identify(token: str) -> FirebaseUid:
        if token == "unknown":
            raise VerifierUnavailable("Google does not answer.")
        return FirebaseUid(token)

    check = check_tokens_in(town.db, identify)
    assert check(["uid-1", "unknown", "uid-2"]) == [student, None, EndReason.DEACTIVATED]


def test_a_clock_that_is_set_back_hides_no_event(town: Neighbourhood, build: Build) -> None:
    student, admin = town.student(10), town.coordinator()
    follower = Follower(build(), admin)
    town.run(
        "INSERT INTO events (id, day, type, at)"
        " SELECT coalesce(max(id), 0) + 1, current_date + 400, 'DUTY_CHANGED', now() FROM events"
    )
    follower.until(lambda events: len(events) == 2)
    town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    assert follower.until(lambda events: len(events) == 3)[-1]["studentId"] == student.id
    follower.go()


def test_an_event_of_an_unknown_type_is_passed_by(town: Neighbourhood, build: Build) -> None:
    """A newer version of the service has written it, and this process is still the older one."""
    student, admin = town.student(10), town.coordinator()
    realtime = build()
    follower = Follower(realtime, admin)
    town.run("INSERT INTO new_events (type) VALUES ('TASK_SUNG')")
    town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=student.id)
    assert follower.until_type(EventType.DUTY_CHANGED) == ["READY", "DUTY_CHANGED"]
    resumed = Follower(realtime, admin, after=0)
    assert resumed.until_type(EventType.DUTY_CHANGED) == ["READY", "DUTY_CHANGED"]
    for one in (follower, resumed):
        one.go()
