"""Helpers for tests of actions: add plans and recipients, end notifications, and read the rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.delivery.actions import service
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.requests import NewAction
from app.delivery.messages.claims import Claimed, claim
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.rules import DeliveryRules
from app.delivery.messages.values import NotificationStatus, NotificationType, Outcome
from app.delivery.role import FOLLOWERS

S = NotificationStatus
RULES = DeliveryRules("90", frozenset({"device_downlink"}))
PERSON, ROUTES = "PERSON", "ROUTES"
SOMEBODY_WAITS = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
STEP = {"channel_type": "push", "audience": PERSON, "on_failure": "STOP", "template_key": None, "within_s": None}
STEP |= {"may_arrive_twice": False}


@dataclass(frozen=True)
class WrittenNotification:
    id: UUID
    type: str
    recipient: str
    status: str
    step_order: int


class ActionHarness:
    """Plans, recipients, conductors and workers on the real database."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.conductor = Conductor(db, RULES)

    # Rows that a test needs

    def sql(self, statement: str, **values: Any) -> list[Any]:
        with self.db.transaction() as conn:
            found = conn.execute(text(statement), values)
            return list(found) if found.returns_rows else []

    def user(self, phone: str | None = "+905550000001", locale: str = "tr") -> int:
        return self.sql(
            "INSERT INTO users (role, name, phone, locale)"
            " VALUES ('ELDER', 'Ayşe Yılmaz', :phone, :locale) RETURNING id",
            phone=phone,
            locale=locale,
        )[0].id

    def plan(self, *steps: dict[str, Any], key: str | None = None) -> int:
        plan_id = self.sql("INSERT INTO action_plans (name, key) VALUES ('P', :key) RETURNING id", key=key)[0].id
        for order, step in enumerate(steps, 1):
            values = STEP | {"fallback": []} | step
            self.sql(
                "INSERT INTO action_plan_steps (action_plan_id, step_order, channel_type, audience, on_failure,"
                " template_key, within_s, fallback, may_arrive_twice) VALUES (:plan_id, :order, :channel_type,"
                " :audience, :on_failure, :template_key, :within_s, :fallback, :may_arrive_twice)",
                plan_id=plan_id,
                order=order,
                **values,
            )
        return plan_id

    def template(self, key: str, body: str, locale: str = "tr", subject: str = "") -> None:
        self.sql(
            "INSERT INTO message_templates (key, locale, subject, body) VALUES (:key, :locale, :subject, :body)",
            key=key,
            locale=locale,
            subject=subject,
            body=body,
        )

    def profile(self, *channels: tuple[str, str], **columns: Any) -> int:
        names, marks = "".join(f", {name}" for name in columns), "".join(f", :{name}" for name in columns)
        id_ = self.sql(f"INSERT INTO recipient_profiles (name{names}) VALUES ('P'{marks}) RETURNING id", **columns)[
            0
        ].id
        for channel_type, target in channels:
            self.channel(id_, channel_type, target)
        return id_

    def channel(self, profile_id: int, channel_type: str, target: str, verify_status: str = "verified") -> int:
        return self.sql(
            "INSERT INTO recipient_channels (profile_id, channel_type, target, verify_status)"
            " VALUES (:profile_id, :channel_type, :target, :verify_status) RETURNING id",
            profile_id=profile_id,
            channel_type=channel_type,
            target=target,
            verify_status=verify_status,
        )[0].id

    def route(self, plan_id: int, step_order: int, profile_id: int, channel_type: str | None = None) -> None:
        self.sql(
            "INSERT INTO action_routes (action_plan_id, step_order, recipient_profile_id, channel_type)"
            " VALUES (:plan_id, :step_order, :profile_id, :channel_type)",
            plan_id=plan_id,
            step_order=step_order,
            profile_id=profile_id,
            channel_type=channel_type,
        )

    # Requests, conductors and workers

    def request(self, *new: NewAction) -> list[UUID]:
        with self.db.transaction() as conn:
            return [one.id for one in service.request_actions(conn, new)]

    def ask(self, plan: int | str, person_id: int | None = None, **more: Any) -> UUID:
        return self.request(NewAction(plan, person_id, **more))[0]

    def settle(self) -> None:
        """Runs the conductor until no action is due."""
        while self.conductor.run_once():
            pass

    def claim(self, type_: str) -> list[Claimed]:
        with self.db.transaction() as conn:
            return claim(conn, NotificationType(type_.upper()), 100, 30, followers=FOLLOWERS).taken

    def record(
        self, claimed: Sequence[Claimed], status: NotificationStatus, outcome: Outcome, code: str | None
    ) -> None:
        result = SendResult(outcome, code, "provider:1" if outcome is Outcome.SENT else None)
        verdict = Verdict(status, error_code=code, failed=code is not None, retryable=code is not None)
        with self.db.transaction() as conn:
            record(conn, [Report(one, verdict, [Try(None, result)]) for one in claimed], FOLLOWERS)

    def deliver(self, type_: str = "push") -> int:
        claimed = self.claim(type_)
        if claimed:
            self.record(claimed, S.SENT, Outcome.SENT, None)
        self.settle()
        return len(claimed)

    def fail(self, type_: str = "push", outcome: Outcome = Outcome.PERMANENT, code: str = "HTTP_500") -> int:
        claimed = self.claim(type_)
        if claimed:
            self.record(claimed, S.DEAD, outcome, code)
        self.settle()
        return len(claimed)

    def pass_time(self, action_id: UUID, seconds: float) -> None:
        """Moves all times of this action into the past."""
        [row] = self.sql("SELECT steps FROM actions WHERE id = :id", id=action_id)
        statement = (
            "UPDATE actions SET due_at = due_at - make_interval(secs => :seconds),"
            " expires_at = expires_at - make_interval(secs => :seconds), steps = CAST(:steps AS jsonb) WHERE id = :id"
        )
        [now] = self.sql("SELECT clock_timestamp() - make_interval(secs => :seconds) AS then", seconds=seconds)
        steps = [step | ({"asked_at": now.then.isoformat()} if "asked_at" in step else {}) for step in row.steps]
        self.sql(statement, id=action_id, seconds=seconds, steps=json.dumps(steps))

    # Reading

    def action(self, action_id: UUID) -> Any:
        return self.sql("SELECT * FROM actions WHERE id = :id", id=action_id)[0]

    def states(self, action_id: UUID) -> list[str]:
        return [step["state"] for step in self.action(action_id).steps]

    def status(self, action_id: UUID) -> str:
        return self.action(action_id).status

    def notifications(self, action_id: UUID | None = None) -> list[WrittenNotification]:
        where = "" if action_id is None else "WHERE action_id = :id"
        rows = self.sql(f"SELECT * FROM notifications {where} ORDER BY id", **({"id": action_id} if action_id else {}))
        return [
            WrittenNotification(row.id, row.notification_type, row.recipient, row.status, row.step_order)
            for row in rows
        ]

    def sent_to(self, action_id: UUID | None = None) -> list[tuple[str, str]]:
        return [(one.type, one.status) for one in self.notifications(action_id)]

    def dead_letters(self, action_id: UUID | None = None) -> list[tuple[str, str]]:
        rows = self.sql("SELECT * FROM dead_letters ORDER BY id")
        return [(row.error_code, row.status) for row in rows if action_id in (None, row.action_id)]

    def events(self) -> list[Any]:
        return self.sql("SELECT topic, payload FROM action_events ORDER BY id")
