"""Shipped plans are installed once. Later installations keep the changes of operators."""

from typing import Any

from sqlalchemy import text

from app.db.database import Database
from app.delivery.plans import shipped_plans

TABLES = ("recipient_profiles", "message_templates", "action_plans", "action_plan_steps", "action_routes")


def everything(db: Database) -> dict[str, list[Any]]:
    with db.transaction() as conn:
        return {
            table: [tuple(row) for row in conn.execute(text(f"SELECT * FROM {table} ORDER BY id"))] for table in TABLES
        }


def test_all_shipped_plans_are_installed(db: Database):
    there = everything(db)
    assert len(there["action_plans"]) == len(shipped_plans.PLANS)
    assert len(there["action_plan_steps"]) == sum(len(plan.steps) for plan in shipped_plans.PLANS)
    assert len(there["message_templates"]) == 2 * len(shipped_plans.TEMPLATES)
    with db.transaction() as conn:
        routed = conn.execute(
            text(
                "SELECT p.key, p.status, s.channel_type, s.audience FROM action_routes r"
                " JOIN recipient_profiles p ON p.id = r.recipient_profile_id"
                " JOIN action_plan_steps s ON s.action_plan_id = r.action_plan_id AND s.step_order = r.step_order"
                " ORDER BY p.key"
            )
        ).all()
    assert [tuple(row) for row in routed] == [
        ("coordinator.on_call", False, "sms", "ROUTES"),
        ("coordinator.on_call", False, "sms", "ROUTES"),
        ("roster.watchers", False, "webhook", "ROUTES"),
    ]


def test_second_installation_changes_nothing(db: Database):
    before = everything(db)
    with db.transaction() as conn:
        shipped_plans.install_shipped(conn)
    assert everything(db) == before


def test_changes_of_an_operator_are_kept(db: Database):
    with db.transaction() as conn:
        conn.execute(text("UPDATE message_templates SET body = 'Geliyor!' WHERE key = 'matching.on_the_way'"))
        conn.execute(text("UPDATE message_templates SET retired_at = now() WHERE locale = 'en'"))
        conn.execute(text("UPDATE action_plans SET status = false"))
        conn.execute(text("UPDATE recipient_profiles SET name = 'Nöbet', retired_at = now()"))
        conn.execute(text("DELETE FROM action_routes"))
        conn.execute(text("DELETE FROM action_plan_steps WHERE step_order = 2"))
    before = everything(db)
    with db.transaction() as conn:
        shipped_plans.install_shipped(conn)
    assert everything(db) == before


def test_missing_plan_is_installed_with_all_its_parts(db: Database):
    with db.transaction() as conn:
        conn.execute(text("DELETE FROM action_routes"))
        conn.execute(text("DELETE FROM action_plan_steps"))
        conn.execute(text("DELETE FROM action_plans WHERE key = 'matching.nobody_found'"))
        conn.execute(text("DELETE FROM message_templates WHERE key = 'matching.offer' AND locale = 'en'"))
        shipped_plans.install_shipped(conn)
    there = everything(db)
    assert len(there["action_plans"]) == len(shipped_plans.PLANS)
    assert len(there["action_plan_steps"]) == 2
    assert len(there["action_routes"]) == 1
    assert len(there["message_templates"]) == 2 * len(shipped_plans.TEMPLATES)
