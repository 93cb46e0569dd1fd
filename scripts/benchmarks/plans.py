"""A plan that falls back to a second channel of the same person, and the results of its actions."""

from dataclasses import dataclass

from app.db.database import Database
from app.delivery.actions.requests import NewAction
from app.delivery.actions.service import request_actions
from benchmarks import backlog
from benchmarks.bench import Bench, Connection, fetch
from benchmarks.provider import RequestLog
from benchmarks.stand_in import StandIn

BATCH = 100
CHANNELS = ("PUSH", "SMS")

MAKE = """
WITH plan AS (INSERT INTO action_plans (name) VALUES (%(subject)s) RETURNING id),
     step AS (INSERT INTO action_plan_steps (action_plan_id, step_order, channel_type, template_key, fallback,
                                              may_arrive_twice)
              SELECT id, 1, 'push', 'bench', '{sms}', true FROM plan),
     template AS (INSERT INTO message_templates (key, locale, subject, body)
                  VALUES ('bench', 'tr', %(subject)s, %(body)s)),
     profile AS (INSERT INTO recipient_profiles (name) VALUES ('Elif') RETURNING id),
     channels AS (INSERT INTO recipient_channels (profile_id, channel_type, target, verify_status)
                  SELECT id, type, target, 'verified' FROM profile,
                         (VALUES ('push', %(push)s), ('sms', %(sms)s)) AS entries (type, target)),
     route AS (INSERT INTO action_routes (action_plan_id, step_order, recipient_profile_id)
               SELECT plan.id, 1, profile.id FROM plan, profile)
SELECT id FROM plan
"""
UNFINISHED = "SELECT EXISTS (SELECT FROM actions WHERE status = 'RUNNING')"
MESSAGES = "SELECT action_id::text, id::text, notification_type FROM notifications WHERE action_id IS NOT NULL"


@dataclass(frozen=True)
class Arrivals:
    plans: int
    arrived: int
    """Actions of which at least one provider took a notification."""
    by_first_channel: int
    twice: int
    """Actions of which both providers took one."""


def request(bench: Bench, database: str, provider: StandIn, how_many: int) -> None:
    targets = {type_.lower(): provider.recipient(type_) for type_ in CHANNELS}
    with bench.connect(database) as conn:
        plan = fetch(conn, MAKE, {"subject": backlog.SUBJECT, "body": backlog.BODY, **targets})[0][0]
    db = Database(bench.url(database), pool_size=1)
    for first in range(0, how_many, BATCH):
        with db.transaction() as conn:
            request_actions(conn, [NewAction(plan)] * min(BATCH, how_many - first))
    db.close()


def are_over(conn: Connection) -> bool:
    return not fetch(conn, UNFINISHED)[0][0]


def arrivals(conn: Connection, request_logs: dict[str, RequestLog]) -> Arrivals:
    taken = {type_: {id_ for id_, _ in request_logs[type_].accepted} for type_ in CHANNELS if type_ in request_logs}
    reached_by: dict[str, list[str]] = {}
    for action, id_, type_ in fetch(conn, MESSAGES):
        reached: list[str] = reached_by.setdefault(action, [])
        if id_ in taken.get(type_, ()):
            reached.append(type_)
    return Arrivals(
        len(reached_by),
        sum(map(bool, reached_by.values())),
        sum(CHANNELS[0] in reached for reached in reached_by.values()),
        sum(len(reached) > 1 for reached in reached_by.values()),
    )
