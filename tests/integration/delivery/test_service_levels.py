"""The four service levels, compared with counts by hand."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.messages.dead_letters import NewDeadLetter, write
from app.delivery.messages.service_levels import ServiceLevels, measure_service_levels
from app.delivery.messages.values import Priority
from app.foundation.ids import earliest_id, uuid7
from app.ops.delivery_gauges import DeliveryGauges
from app.ops.service_level_gauges import ServiceLevelGauges
from tests.support.actions import ActionHarness
from tests.support.delivery import add_user, post


def end(db: Database, ids: list[UUID], status: str, took_s: float = 0.0) -> None:
    with db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE notifications SET status = :status, due_at = NULL,"
                " finished_at = created_at + make_interval(secs => :took_s) WHERE id = ANY(:ids)"
            ),
            {"status": status, "took_s": took_s, "ids": ids},
        )


def give_up(db: Database, id_: UUID, *, retryable: bool) -> None:
    end(db, [id_], "DEAD")
    with db.transaction() as conn:
        write(conn, [NewDeadLetter("push", "TIMEOUT", retryable, notification_id=id_)])


def measured(db: Database) -> ServiceLevels:
    with db.reading() as conn:
        return measure_service_levels(conn)


def test_levels_are_perfect_without_notifications(db: Database) -> None:
    assert measured(db) == ServiceLevels(0.0, 1.0, 0.0, 0.0, 0.0)


def test_levels_are_shares_of_ended_notifications(db: Database) -> None:
    user_id = add_user(db)
    plain = post(db, [user_id] * 96)
    end(db, plain[:90], "SENT", 1.0)
    end(db, plain[90:95], "SENT", 9.0)
    end(db, plain[95:], "EXPIRED")
    urgent = post(db, [user_id] * 4, priority=Priority.URGENT)
    end(db, urgent[:2], "SENT", 1.0)
    give_up(db, urgent[2], retryable=True)
    give_up(db, urgent[3], retryable=False)
    post(db, [user_id] * 7)
    told = measured(db)
    assert (told.success_rate, told.dlq_rate, told.critical_exhausted_rate) == (0.97, 0.02, 0.25)
    assert 1.0 < told.p95_s <= 9.0


def test_every_letter_counts_also_without_a_message(db: Database) -> None:
    sent = post(db, [add_user(db)] * 3)
    end(db, sent, "SENT")
    with db.transaction() as conn:
        write(conn, [NewDeadLetter("sms", "NO_RECIPIENT", False)])
    assert measured(db).dlq_rate == 0.25


def test_an_action_lasts_until_its_last_message_is_sent(db: Database) -> None:
    harness = ActionHarness(db)
    plan = harness.plan({"channel_type": "push"}, {"channel_type": "sms"})
    harness.ask(plan, harness.user())
    harness.deliver("push")
    harness.deliver("sms")
    ids = [row.id for row in harness.sql("SELECT id FROM notifications ORDER BY id")]
    assert len(ids) == 2
    end(db, ids[:1], "SENT", 1.0)
    end(db, ids[1:], "SENT", 8.0)
    assert 8.0 <= measured(db).action_p95_s < 10.0


def test_backlog_has_each_type_that_waits(db: Database) -> None:
    ids = post(db, [add_user(db)] * 3)
    end(db, ids[:1], "SENT")
    [_, backlog] = DeliveryGauges(db).collect()
    assert {sample.labels["type"]: sample.value for sample in backlog.samples} == {"PUSH": 2}


def test_notifications_older_than_an_hour_do_not_count(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    give_up(db, id_, retryable=True)
    with db.transaction() as conn:
        conn.execute(text("DELETE FROM dead_letters"))
        old = earliest_id(db.now() - timedelta(minutes=61))
        conn.execute(text("UPDATE notifications SET id = :old"), {"old": old})
    assert measured(db).dlq_rate == 0.0


def test_new_id_is_not_older_than_its_time(db: Database) -> None:
    now = db.now()
    assert earliest_id(now - timedelta(seconds=1)) < uuid7() < earliest_id(now + timedelta(seconds=60))


@pytest.mark.parametrize("name", ["delivery_p95_seconds", "delivery_success_ratio", "action_p95_seconds"])
def test_levels_are_exported_to_prometheus(db: Database, name: str) -> None:
    assert f"yaninda_slo_{name}" in {metric.name for metric in ServiceLevelGauges(db).collect()}
