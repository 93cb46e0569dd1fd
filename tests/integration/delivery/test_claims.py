"""Claims, leases and records of notifications, on the real database."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import TextClause, text

from app.db.database import Database
from app.delivery.messages.claims import (
    CLAIM,
    CLAIM_BESIDE_CROWD,
    LOOK_AHEAD,
    STARVED_AFTER_S,
    Claim,
    Claimed,
    Crowd,
    claim,
    put_back,
)
from app.delivery.messages.outcomes import RECORD_MANY, RECORD_ONE, Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Device, NotificationChange, NotificationType, Outcome, Priority
from app.delivery.messages.values import NotificationStatus as S
from app.delivery.role import FOLLOWERS
from app.foundation.ids import uuid7
from tests.support.delivery import add_user, attempts, change, make_due, post, row

PUSH = NotificationType.PUSH
SENT = Verdict(S.SENT)


def take(db: Database, limit: int = 10, lease_s: float = 30) -> Claim:
    with db.transaction() as conn:
        return claim(conn, PUSH, limit, lease_s, followers=FOLLOWERS)


def tell(db: Database, *reports: Report) -> int:
    with db.transaction() as conn:
        return len(record(conn, reports, FOLLOWERS))


def later(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def retry(seconds: float) -> Verdict:
    return Verdict(S.RETRYING, due_at=later(seconds), error_code="TIMEOUT", failed=True)


def test_each_notification_is_claimed_once(db: Database) -> None:
    ids = post(db, [add_user(db)] * 5)
    first, second = take(db, limit=3), take(db, limit=3)
    assert len(first.taken) == 3
    assert {one.id for one in first.taken + second.taken} == set(ids)
    assert take(db).size == 0


def test_parallel_claims_do_not_wait_for_each_other(db: Database) -> None:
    post(db, [add_user(db)] * 6)
    with db.transaction() as one, db.transaction() as other:
        mine = claim(one, PUSH, 3, 30, followers=FOLLOWERS).taken
        theirs = claim(other, PUSH, 6, 30, followers=FOLLOWERS).taken
    assert (len(mine), len(theirs)) == (3, 3)
    assert not {one.id for one in mine} & {one.id for one in theirs}


def test_claims_are_ordered_by_priority_then_age(db: Database) -> None:
    user_id = add_user(db)
    order = [Priority.LOW, Priority.NORMAL, Priority.URGENT, Priority.HIGH, Priority.URGENT]
    ids = [post(db, [user_id], priority=priority)[0] for priority in order]
    taken = [one.id for _ in range(5) for one in take(db, limit=1).taken]
    assert taken == [ids[2], ids[4], ids[3], ids[1], ids[0]]


def test_notification_that_is_not_due_is_not_claimed(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    change(db, id_, "due_at = clock_timestamp() + interval '1 hour'")
    assert take(db).size == 0


def test_expired_notification_is_not_claimed(db: Database) -> None:
    [id_] = post(db, [add_user(db)], expires_at=later(-0.001))
    found = take(db)
    assert found == Claim([], [NotificationChange(id_, None)])
    stored = row(db, id_)
    assert (stored.status, stored.error_code, stored.attempts) == ("EXPIRED", "TOO_LATE", 0)


def test_claim_includes_the_devices_of_the_user(db: Database) -> None:
    user_id = add_user(db, "phone", "tablet")
    post(db, [user_id])
    [one] = take(db).taken
    assert [(device.device_id, device.token) for device in one.devices] == [
        ("phone", "token-phone"),
        ("tablet", "token-tablet"),
    ]


def test_claim_includes_only_the_newest_devices(db: Database) -> None:
    """A setting, so there may be more from before it was lowered."""
    user_id = add_user(db, *(f"phone {number}" for number in range(5)))
    post(db, [user_id])
    with db.transaction() as conn:
        conn.execute(text("UPDATE devices SET updated_at = clock_timestamp() WHERE device_id = 'phone 1'"))
        [one] = claim(conn, PUSH, 1, 30, followers=FOLLOWERS, most_devices=2).taken
    assert [device.device_id for device in one.devices] == ["phone 1", "phone 4"]


def test_notification_with_an_expired_lease_is_claimed_again(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    [lost] = take(db).taken
    assert take(db).size == 0
    make_due(db, id_)
    [taken] = take(db).taken
    assert (lost.attempt, taken.attempt) == (1, 2)


def test_record_after_a_lost_lease_is_refused(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    [lost] = take(db).taken
    make_due(db, id_)
    [held] = take(db).taken
    assert tell(db, Report(lost, Verdict(S.DEAD, error_code="TIMEOUT", failed=True))) == 0
    assert row(db, id_).status == "SENDING"
    assert tell(db, Report(held, SENT)) == 1
    assert tell(db, Report(held, SENT)) == 0
    assert row(db, id_).status == "SENT"


def test_device_reached_by_a_late_worker_gets_no_second_push(db: Database) -> None:
    [id_] = post(db, [add_user(db, "phone", "tablet")])
    [late] = take(db).taken
    make_due(db, id_)
    take(db)
    tell(db, Report(late, SENT, [Try(late.devices[0], SendResult(Outcome.SENT))]))
    make_due(db, id_)
    [next_one] = take(db).taken
    assert next_one.settled == {"phone": Outcome.SENT}


@pytest.mark.parametrize(
    ("outcome", "settled"),
    [
        (Outcome.SENT, True),
        (Outcome.PERMANENT, True),
        (Outcome.TRANSIENT, False),
        (Outcome.UNKNOWN, False),
        (Outcome.RECIPIENT_GONE, False),
    ],
)
def test_next_attempt_omits_only_finished_devices(db: Database, outcome: Outcome, settled: bool) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    [one] = take(db).taken
    device = replace(one.devices[0], token="another by now")
    tell(db, Report(one, retry(60), [Try(device, SendResult(outcome, "X"))]))
    make_due(db, id_)
    [again] = take(db).taken
    assert ("phone" in again.settled) is settled
    assert (again.failures, again.attempt) == (1, 2)


def test_record_ends_or_postpones_a_notification(db: Database) -> None:
    user_id = add_user(db, "phone")
    sent, dead, waiting = post(db, [user_id] * 3)
    one, two, three = take(db).taken
    code = Try(two.devices[0], SendResult(Outcome.PERMANENT, "SENDER_ID_MISMATCH"))
    reports = [
        Report(one, SENT, [Try(one.devices[0], SendResult(Outcome.SENT, provider_message_id="m/1"))]),
        Report(two, Verdict(S.DEAD, error_code="SENDER_ID_MISMATCH", failed=True), [code]),
        Report(three, retry(60)),
    ]
    assert tell(db, *reports) == 3
    assert [row(db, id_).status for id_ in (sent, dead, waiting)] == ["SENT", "DEAD", "RETRYING"]
    assert [row(db, id_).finished_at is None for id_ in (sent, dead, waiting)] == [False, False, True]
    assert attempts(db, dead) == [(1, "phone", "PERMANENT", "SENDER_ID_MISMATCH")]
    assert attempts(db, sent) == [(1, "phone", "SENT", None)]


def test_notification_that_expires_while_claimed_is_not_retried(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    [one] = take(db).taken
    change(db, id_, "expires_at = clock_timestamp()")
    tell(db, Report(one, retry(5)))
    assert row(db, id_).status == "EXPIRED"


def gone(one: Claimed, device: Device) -> Report:
    result = SendResult(Outcome.RECIPIENT_GONE, "UNREGISTERED")
    return Report(one, Verdict(S.DEAD, error_code="UNREGISTERED", failed=True), [Try(device, result)])


def devices(db: Database) -> list[Any]:
    with db.transaction() as conn:
        return list(conn.execute(text("SELECT device_id FROM devices ORDER BY device_id")).scalars())


def test_only_the_unregistered_device_is_removed(db: Database) -> None:
    post(db, [add_user(db, "phone", "tablet")])
    [one] = take(db).taken
    tell(db, gone(one, one.devices[0]))
    assert devices(db) == ["tablet"]


def test_device_that_registered_again_meanwhile_stays(db: Database) -> None:
    post(db, [add_user(db, "phone")])
    [one] = take(db).taken
    tell(db, gone(one, replace(one.devices[0], token="the one before")))
    assert devices(db) == ["phone"]


def test_returned_notification_can_be_claimed_at_once(db: Database) -> None:
    first, second = post(db, [add_user(db)] * 2)
    change(db, second, "failures = 1")
    with db.transaction() as conn:
        put_back(conn, claim(conn, PUSH, 10, 30, followers=FOLLOWERS).taken)
    assert [row(db, id_).status for id_ in (first, second)] == ["ACCEPTED", "RETRYING"]
    assert [one.attempt for one in take(db).taken] == [2, 2]


def test_only_the_holder_of_the_lease_can_return_a_notification(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    [lost] = take(db).taken
    make_due(db, id_)
    take(db)
    with db.transaction() as conn:
        put_back(conn, [lost])
    assert row(db, id_).status == "SENDING"


def plan_of_a_claim(db: Database, statement: TextClause) -> str:
    with db.transaction() as conn:
        values = {
            "notification_type": "PUSH",
            "limit": 200,
            "starved": 20,
            "starved_after_s": 30,
            "lease_s": 30,
            "max_age_s": 86_400,
            "worker_id": None,
        }
        if statement is CLAIM_BESIDE_CROWD:
            values |= {"crowd": ["user:2"], "crowded": ["HIGH", "LOW"], "others": 50, "look_ahead": LOOK_AHEAD}
        rows = conn.execute(text("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " + statement.text), values)
        return "\n".join(rows.scalars())


@pytest.mark.parametrize("statement", [RECORD_ONE, RECORD_MANY])
def test_record_does_not_read_the_queue(db: Database, statement: TextClause) -> None:
    """The planner believes that few messages wait. If it could, it would read all of them to find one by its state."""
    names = ("status", "due_at", "error_code", "failed", "device_id", "outcome", "try_error_code")
    values: dict[str, Any] = dict.fromkeys((*names, "provider_message_id"))
    values |= {"id": uuid7(), "attempt": 1, "rows": "[]", "more_tries": "[]"}
    with db.transaction() as conn:
        # After autovacuum has removed rows of other tests, another index that holds the id may be smaller.
        conn.execute(text("TRUNCATE notifications CASCADE"))
        for setting in ("enable_seqscan", "enable_nestloop", "enable_mergejoin"):
            conn.execute(text("SELECT set_config(:setting, 'off', true)"), {"setting": setting})
        plan = "\n".join(conn.execute(text("EXPLAIN " + statement.text), values).scalars())
    assert "pkey" in plan, plan
    assert "due_at_idx" not in plan


def fill(db: Database, user_id: int, status: str, count: int, due: str) -> None:
    with db.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, status,"
                " priority, due_at, finished_at)"
                " SELECT CAST('ff' || substr(gen_random_uuid()::text, 3) AS uuid), 'PUSH', 'user:1', :user_id, '', '',"
                " :status,"
                " (ARRAY['LOW', 'NORMAL', 'HIGH', 'URGENT'])[1 + i % 4],"
                f" {due}, CASE WHEN :status = 'SENT' THEN clock_timestamp() END FROM generate_series(1, :count) AS i"
            ),
            {"user_id": user_id, "status": status, "count": count},
        )


def test_urgent_flood_leaves_room_for_old_notifications(db: Database) -> None:
    user_id = add_user(db)
    fill(db, user_id, "ACCEPTED", 40, "clock_timestamp() - interval '1 hour'")
    [oldest] = post(db, [user_id], priority=Priority.LOW)
    change(db, oldest, "due_at = clock_timestamp() - interval '2 hours'")
    post(db, [user_id] * 100, priority=Priority.URGENT)
    taken = take(db, limit=20).taken
    assert oldest in {one.id for one in taken}
    assert Counter(one.notification.priority for one in taken)[Priority.URGENT] >= 17
    assert len(taken) == 20


def test_every_tenth_claim_of_one_takes_an_old_notification(db: Database) -> None:
    user_id = add_user(db)
    [oldest] = post(db, [user_id], priority=Priority.LOW)
    change(db, oldest, "due_at = clock_timestamp() - interval '2 hours'")
    post(db, [user_id] * 5, priority=Priority.URGENT)
    with db.transaction() as conn:
        [first] = claim(conn, PUSH, 1, 30, chance=lambda: 0.89, followers=FOLLOWERS).taken
        [second] = claim(conn, PUSH, 1, 30, chance=lambda: 0.91, followers=FOLLOWERS).taken
    assert (first.notification.priority, second.id) == (Priority.URGENT, oldest)


def test_notification_older_than_the_limit_expires(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    change(db, id_, "created_at = clock_timestamp() - interval '25 hours'")
    assert take(db) == Claim([], [NotificationChange(id_, None)])
    assert row(db, id_).status == "EXPIRED"


@pytest.mark.parametrize("by_channel", [False, True])
def test_message_to_somebody_who_was_deactivated_meanwhile_is_not_sent(db: Database, by_channel: bool) -> None:
    user_id = add_user(db, "phone")
    [id_] = post(db, [user_id])
    with db.transaction() as conn:
        conn.execute(text("UPDATE users SET active = false WHERE id = :id"), {"id": user_id})
        if by_channel:
            conn.execute(text("INSERT INTO recipient_profiles (name, user_id) VALUES ('Ali', :id)"), {"id": user_id})
            channel = "INSERT INTO recipient_channels (profile_id, channel_type, target) SELECT id, 'push', 'token'"
            conn.execute(text(f"{channel} FROM recipient_profiles WHERE user_id = :id"), {"id": user_id})
            to_token = (
                "recipient_user_id = NULL, recipient = 'token', channel_id = (SELECT max(id) FROM recipient_channels)"
            )
            conn.execute(text(f"UPDATE notifications SET {to_token} WHERE id = :id"), {"id": id_})
    assert take(db) == Claim([], [NotificationChange(id_, None)])
    assert (row(db, id_).status, row(db, id_).error_code) == ("EXPIRED", "RECIPIENT_INACTIVE")


def test_claim_of_an_old_backlog_is_as_large_as_a_new_one(db: Database) -> None:
    """After a smaller one, a worker takes the queue for empty and waits."""
    fill(db, add_user(db), "ACCEPTED", 60, f"clock_timestamp() - make_interval(secs => {STARVED_AFTER_S + 30})")
    assert [take(db, limit=25).size for _ in range(3)] == [25, 25, 10]


# ---- a crowd ----


def beside(db: Database, crowd: Crowd, limit: int, others: int) -> list[UUID]:
    with db.transaction() as conn:
        found = claim(conn, PUSH, limit, 30, followers=FOLLOWERS, crowd=crowd, others=others, chance=lambda: 0.0)
        return [one.id for one in found.taken]


def test_others_come_before_a_crowd_that_is_older(db: Database) -> None:
    many, another = add_user(db), add_user(db)
    older = post(db, [many] * 20)
    [behind] = post(db, [another])
    crowd = Crowd([f"user:{many}"], [Priority.NORMAL])
    assert beside(db, crowd, 0, 5) == [behind], "there is room for others only"
    [behind] = post(db, [another])
    assert set(beside(db, crowd, 5, 5)) == {behind, *older[:4]}
    assert beside(db, crowd, 100, 100) == older[4:], "the crowd fills the room that others leave"


def test_crowd_does_not_wait_for_others_of_a_lower_priority(db: Database) -> None:
    many = add_user(db)
    post(db, [add_user(db) for _ in range(3)], priority=Priority.LOW)
    urgent = post(db, [many] * 5, priority=Priority.URGENT)
    assert beside(db, Crowd([f"user:{many}"], [Priority.URGENT]), 5, 5) == urgent


def test_two_workers_beside_a_crowd_claim_different_messages(db: Database) -> None:
    many = add_user(db)
    post(db, [many] * 10 + [add_user(db), add_user(db)])
    crowd = Crowd([f"user:{many}"], [Priority.NORMAL])
    with db.transaction() as one, db.transaction() as other:
        taken = [
            claim(conn, PUSH, 4, 30, followers=FOLLOWERS, crowd=crowd, others=4, chance=lambda: 0.0).taken
            for conn in (one, other)
        ]
    assert [len(some) for some in taken] == [4, 4]
    assert len({claimed.id for some in taken for claimed in some}) == 8


@pytest.mark.parametrize("statement", [CLAIM, CLAIM_BESIDE_CROWD])
def test_claim_reads_no_finished_and_no_later_rows(db: Database, statement: TextClause) -> None:
    user_id = add_user(db)
    fill(db, user_id, "SENT", 20_000, "NULL")
    fill(db, user_id, "RETRYING", 20_000, "clock_timestamp() + interval '1 hour'")
    fill(db, user_id, "ACCEPTED", 8, "clock_timestamp()")
    with db.transaction() as conn:
        conn.execute(text("ANALYZE notifications"))
    plan = plan_of_a_claim(db, statement)
    # The ids of `fill` are of no month, so the rows are in the default partition.
    assert "notifications_default_notification_type_priority_due_at_idx" in plan
    assert "Seq Scan on notifications_default" not in plan
    removed = [int(number) for number in re.findall(r"Rows Removed by Filter: (\d+)", plan)]
    assert sum(removed) <= (4 if statement is CLAIM_BESIDE_CROWD else 0), "rows that it has taken as those of others"
