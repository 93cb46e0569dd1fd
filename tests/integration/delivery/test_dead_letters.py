"""Dead letters: published, listed, and redriven or discarded exactly once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.actions.redrive import (
    DeadLetterTooLate,
    NothingToRedrive,
    Redriven,
    redrive_dead_letter,
    redrive_dead_letters,
)
from app.delivery.actions.result_format import Topic
from app.delivery.messages import dead_letters
from app.delivery.messages.claims import claim
from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.delivery.messages.dead_letter_views import EVERY, DeadLetterCriteria, DeadLetterView, list_dead_letters
from app.delivery.messages.dead_letters import (
    DeadLetterClosed,
    Discarded,
    NewDeadLetter,
    discard_dead_letter,
    discard_dead_letters,
)
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import NotificationStatus, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.foundation.errors import AppError, NotFound
from app.foundation.ids import earliest_id, uuid7
from app.users.contract import EVERYTHING
from tests.support.delivery import add_user, change, post, row
from tests.support.streams import event_payloads

DEAD = Verdict(NotificationStatus.DEAD, error_code="UNREACHABLE", failed=True, retryable=True)


def give_up(db: Database, number: int = 1, **changes: Any) -> list[UUID]:
    """Posts notifications and records that their channel has refused them."""
    ids = post(db, [add_user(db, f"phone-{uuid7()}")] * number, **changes)
    fail_again(db)
    return ids


def fail_again(db: Database) -> None:
    with db.transaction() as conn:
        taken = claim(conn, NotificationType.PUSH, 1000, 30, chance=lambda: 0.0, followers=FOLLOWERS).taken
        refused = SendResult(Outcome.PERMANENT, "UNREACHABLE")
        record(conn, [Report(one, DEAD, [Try(one.devices[0], refused)]) for one in taken], FOLLOWERS)


def listed(db: Database, **filters: Any) -> list[DeadLetterView]:
    with db.transaction() as conn:
        return list_dead_letters(conn, EVERYTHING, which=DeadLetterCriteria(**filters)).items


def write(db: Database, **changes: Any) -> UUID:
    dead_letter = NewDeadLetter(
        **({"channel_type": "email", "error_code": "NO_RECIPIENT", "retryable": False} | changes)
    )
    with db.transaction() as conn:
        dead_letters.write(conn, [dead_letter])
    return dead_letter.id


def again(db: Database, id_: UUID, by: int | None = None) -> None:
    with db.transaction() as conn:
        redrive_dead_letter(conn, EVERYTHING, id_, by)


def again_all(db: Database, which: DeadLetterCriteria = EVERY, limit: int = 200) -> Redriven:
    with db.transaction() as conn:
        return redrive_dead_letters(conn, which, None, limit)


def test_dead_letter_is_published_in_the_same_transaction(db: Database):
    (id_,) = give_up(db)
    (dead_letter,) = listed(db)
    (told,) = event_payloads(db, Topic.DEAD_LETTER)
    assert told == {
        "dead_letter_id": str(dead_letter.id),
        "action_id": None,
        "notification_id": str(id_),
        "trace_id": None,
        "action_plan_id": None,
        "step_order": None,
        "channel_type": "push",
        "error_code": "UNREACHABLE",
        "error_message": "The provider cannot be reached.",
        "retry_count": 0,
        "failed_at": dead_letter.failed_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def test_dead_letter_with_the_same_id_is_written_and_published_once(db: Database):
    id_ = uuid7()
    write(db, id=id_)
    write(db, id=id_)
    assert [dead_letter.id for dead_letter in listed(db)] == [id_]
    assert len(event_payloads(db, Topic.DEAD_LETTER)) == 1


def test_dead_letters_are_filtered(db: Database):
    mail, other, sms = (
        write(db, action_plan_id=21),
        write(db, error_code="INVALID_ADDRESS"),
        write(db, channel_type="sms", action_plan_id=21),
    )
    assert [one.id for one in listed(db)] == [sms, other, mail]
    assert [one.id for one in listed(db, channel_type="email")] == [other, mail]
    assert [one.id for one in listed(db, error_code="INVALID_ADDRESS")] == [other]
    assert [one.id for one in listed(db, action_plan_id=21, channel_type="sms")] == [sms]
    moment = listed(db)[1].failed_at
    assert [one.id for one in listed(db, since=moment)] == [sms, other]
    assert [one.id for one in listed(db, until=moment)] == [mail]
    assert listed(db, since=moment + timedelta(hours=1)) == []


def test_dead_letters_are_paginated(db: Database):
    written = [write(db) for _ in range(5)]
    found: list[UUID] = []
    cursor = None
    with db.transaction() as conn:
        while True:
            page = list_dead_letters(conn, EVERYTHING, status=DeadLetterStatus.OPEN, cursor=cursor, limit=2)
            found += [one.id for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
    assert found == written[::-1]


def test_redriven_notification_keeps_its_id_and_gets_all_attempts(db: Database):
    (id_,) = give_up(db)
    operator = add_user(db)
    again(db, listed(db)[0].id, operator)
    revived = row(db, id_)
    assert (revived.status, revived.failures, revived.fresh_from, revived.attempts) == ("ACCEPTED", 0, 1, 1)
    assert (revived.error_code, revived.finished_at) == (None, None)
    (dead_letter,) = listed(db)
    assert (dead_letter.status, dead_letter.closed_by) == (DeadLetterStatus.REDRIVEN, operator)
    assert dead_letter.closed_at is not None
    with db.transaction() as conn:
        (taken,) = claim(conn, NotificationType.PUSH, 10, 30, chance=lambda: 0.0, followers=FOLLOWERS).taken
    assert (taken.id, taken.attempt, taken.settled) == (id_, 2, {})


def test_notification_that_fails_again_is_a_new_dead_letter(db: Database):
    (id_,) = give_up(db)
    for failed in range(1, 4):
        assert [one.notification_id for one in listed(db)] == [id_] * failed
        again(db, listed(db)[0].id)
        fail_again(db)
    assert [one.status for one in listed(db)] == ["OPEN", "REDRIVEN", "REDRIVEN", "REDRIVEN"]


def test_dead_letter_is_redriven_once(db: Database):
    give_up(db)
    (dead_letter,) = listed(db)
    again(db, dead_letter.id)
    with pytest.raises(DeadLetterClosed):
        again(db, dead_letter.id)
    fail_again(db)
    with pytest.raises(DeadLetterClosed):
        again(db, dead_letter.id)


@pytest.mark.parametrize(
    "assignment", ["expires_at = clock_timestamp()", "created_at = clock_timestamp() - interval '25 hours'"]
)
def test_expired_notification_is_not_redriven(db: Database, assignment: str):
    (id_,) = give_up(db)
    change(db, id_, assignment)
    with pytest.raises(DeadLetterTooLate):
        again(db, listed(db)[0].id)
    assert row(db, id_).status == "DEAD"
    assert [one.status for one in listed(db)] == ["OPEN"]


def expire_late(db: Database) -> int:
    with db.transaction() as conn:
        return dead_letters.expire_late(conn, db.now(), 86_400, limit=10)


def test_dead_letters_close_when_their_message_has_lost_its_meaning(db: Database):
    soon = db.now() + timedelta(hours=1)
    give_up(db, expires_at=soon)
    give_up(db)
    (old,) = give_up(db)
    yesterday = earliest_id(db.now() - timedelta(hours=25))
    with db.transaction() as conn:
        conn.execute(
            text("UPDATE dead_letters SET notification_id = :then WHERE notification_id = :id"),
            {"then": yesterday, "id": old},
        )
    write(db, channel_type="action", error_code="INVALID_REQUEST")
    assert expire_late(db) == 1
    with db.transaction() as conn:
        conn.execute(
            text("UPDATE dead_letters SET expires_at = clock_timestamp() WHERE expires_at = :soon"), {"soon": soon}
        )
    assert [expire_late(db), expire_late(db)] == [1, 0]
    by_age = [(one.status, one.closed_at is not None, one.closed_by) for one in reversed(listed(db))]
    assert by_age == [("EXPIRED", True, None), ("OPEN", False, None), ("EXPIRED", True, None), ("OPEN", False, None)]


def test_hint_for_an_app_is_given_up_without_a_dead_letter(db: Database):
    (id_,) = give_up(db, subject="", body="", data={"type": "OFFER_WITHDRAWN"})
    assert (row(db, id_).status, row(db, id_).error_code, listed(db)) == ("DEAD", "UNREACHABLE", [])
    give_up(db, subject="", body="", data={})
    assert len(listed(db)) == 1, "a push without words and data is a mistake of somebody"


def test_dead_letter_without_notification_or_action_cannot_be_redriven(db: Database):
    id_ = write(db, channel_type="action", error_code="INVALID_REQUEST")
    with pytest.raises(NothingToRedrive):
        again(db, id_)
    with pytest.raises(NotFound):
        again(db, uuid7())


@pytest.mark.parametrize("together", [2, 8])
def test_one_of_several_parallel_redrives_succeeds(db: Database, together: int):
    for _ in range(5):
        (id_,) = give_up(db)
        letter_id = listed(db)[0].id
        line = threading.Barrier(together)

        def attempt(_: int, id_: UUID = letter_id, line: threading.Barrier = line) -> type[AppError] | None:
            line.wait()
            try:
                again(db, id_)
            except AppError as error:
                return type(error)
            return None

        with ThreadPoolExecutor(together) as pool:
            outcomes = list(pool.map(attempt, range(together)))
        assert outcomes.count(None) == 1
        assert outcomes.count(DeadLetterClosed) == together - 1
        assert (row(db, id_).status, row(db, id_).fresh_from) == ("ACCEPTED", 1)
        fail_again(db)
        again_all(db)
        with db.transaction() as conn:
            claim(conn, NotificationType.PUSH, 10, 30, followers=FOLLOWERS)


def test_dead_letter_is_redriven_or_discarded_but_not_both(db: Database):
    for _ in range(10):
        (id_,) = give_up(db)
        letter_id = listed(db)[0].id
        line = threading.Barrier(2)

        def close(how: Any, id_: UUID = letter_id, line: threading.Barrier = line) -> bool:
            line.wait()
            try:
                with db.transaction() as conn:
                    how(conn, EVERYTHING, id_, None)
            except DeadLetterClosed:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            redriven, discarded = pool.map(close, (redrive_dead_letter, discard_dead_letter))
        assert redriven != discarded
        assert row(db, id_).status == ("ACCEPTED" if redriven else "DEAD")
        with db.transaction() as conn:
            claim(conn, NotificationType.PUSH, 10, 30, followers=FOLLOWERS)


def test_matching_dead_letters_are_redriven_in_batches_oldest_first(db: Database):
    ids = give_up(db, 5)
    write(db)
    late, *_ = give_up(db, 1)
    change(db, late, "expires_at = clock_timestamp()")
    meant = DeadLetterCriteria(error_code="UNREACHABLE")
    assert again_all(db, meant, limit=2) == Redriven(2, skipped=1, remaining=3)
    assert [row(db, id_).status for id_ in ids] == ["ACCEPTED", "ACCEPTED", "DEAD", "DEAD", "DEAD"]
    assert again_all(db, meant, limit=2) == Redriven(2, skipped=1, remaining=1)
    assert again_all(db, meant, limit=2) == Redriven(1, skipped=1, remaining=0)
    assert again_all(db, meant, limit=2) == Redriven(0, skipped=1, remaining=0)
    assert again_all(db) == Redriven(0, skipped=2, remaining=0)


def test_redrive_takes_only_matching_dead_letters(db: Database):
    (id_,) = give_up(db)
    assert again_all(db, DeadLetterCriteria(channel_type="email")) == Redriven(0, 0, 0)
    assert again_all(db, DeadLetterCriteria(error_code="TIMEOUT")) == Redriven(0, 0, 0)
    assert row(db, id_).status == "DEAD"
    assert again_all(db, DeadLetterCriteria(channel_type="push")) == Redriven(1, 0, 0)


def test_discard_keeps_its_limit_under_any_query_plan(db: Database):
    """In a nested loop, a subquery may run once for each row, and its LIMIT then counts from zero each time."""
    for _ in range(5):
        write(db)
    with db.transaction() as conn:
        for other in ("hashjoin", "mergejoin", "hashagg", "material", "memoize", "indexscan", "bitmapscan", "sort"):
            conn.execute(text(f"SET LOCAL enable_{other} = off"))
        assert discard_dead_letters(conn, EVERY, None, limit=2) == Discarded(2, remaining=3)


def test_parallel_redrives_of_all_share_the_dead_letters(db: Database):
    ids = give_up(db, 60)

    def work(_: int) -> int:
        done = 0
        while (batch := again_all(db, limit=7)).remaining or batch.redriven:
            done += batch.redriven
        return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 60
    assert {row(db, id_).fresh_from for id_ in ids} == {1}


def test_redrive_wakes_the_dispatchers(db: Database):
    give_up(db)
    with db.engine.connect() as ear:
        driver: Any = ear.connection.driver_connection
        driver.autocommit = True
        driver.execute("LISTEN delivery")
        again(db, listed(db)[0].id)
        assert [one.channel for one in driver.notifies(timeout=2, stop_after=1)] == ["delivery"]
        driver.execute("UNLISTEN *")
