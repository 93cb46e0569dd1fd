"""The plans, templates and profiles that the product ships with.

Missing ones are inserted by key. After that they belong to the operator: an edit is never overwritten, and nothing is
switched on again.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, text

from app.delivery.plans.models import Audience, OnFailure
from app.delivery.words.shipped_templates import (
    DEAD_LETTERS,
    JOB_FAILED,
    ROSTER_HELD_BACK,
    ROSTER_REFUSED,
    ROSTER_RUN,
    TEMPLATES,
)

ON_CALL = "coordinator.on_call"
"""The profile of the coordinators on call. It is switched off until an operator adds a channel and switches it on."""

ROSTER_WATCHERS = "roster.watchers"
"""The profile whose webhooks are told of each run of the lists. Switched off in the same way."""


@dataclass(frozen=True)
class ShippedStep:
    channel_type: str
    audience: Audience
    template_key: str | None
    fallback: tuple[str, ...] = ()
    within_s: int | None = None
    on_failure: OnFailure = OnFailure.STOP
    may_arrive_twice: bool = False
    profile_key: str | None = None
    """The shipped profile that the step is routed to."""


@dataclass(frozen=True)
class PlanAsShipped:
    key: str
    name: str
    description: str
    steps: tuple[ShippedStep, ...]


def _push(template_key: str | None, **more: Any) -> ShippedStep:
    return ShippedStep("push", Audience.PERSON, template_key, **more)


def _push_to_be_seen(template_key: str, **more: Any) -> ShippedStep:
    """For elders and coordinators, who are told twice rather than not at all."""
    return _push(template_key, may_arrive_twice=True, **more)


def _push_then_sms(template_key: str, **more: Any) -> ShippedStep:
    return _push_to_be_seen(template_key, fallback=("sms",), within_s=60, **more)


def _plan(key: str, name: str, description: str, *steps: ShippedStep) -> PlanAsShipped:
    return PlanAsShipped(key, name, description, steps)


# Each plan is written out and not generated from its key, because its steps may become different.
PLANS = (
    _plan("matching.offer", "Teklif", "Sıradaki öğrenciye sorulur.", _push("matching.offer")),
    _plan("matching.offer_withdrawn", "Teklif geri alındı", "Telefondaki pencere sessizce kapanır.", _push(None)),
    _plan(
        "matching.on_the_way",
        "Yola çıktı",
        "Yaşlıya yardımın yolda olduğu söylenir.",
        _push_then_sms("matching.on_the_way"),
    ),
    _plan("matching.started", "Geldi", "Yaşlıya öğrencinin geldiği söylenir.", _push_to_be_seen("matching.started")),
    _plan("matching.completed", "Tamamlandı", "Yaşlıya işin bittiği söylenir.", _push_to_be_seen("matching.completed")),
    _plan(
        "matching.searching_again",
        "Yeniden arıyoruz",
        "Yaşlıya öğrencinin gelemediği söylenir.",
        _push_then_sms("matching.searching_again"),
    ),
    _plan(
        "matching.nobody_found",
        "Öğrenci bulunamadı",
        "Yaşlıya ve nöbetçi koordinatöre söylenir.",
        _push_then_sms("matching.nobody_found", on_failure=OnFailure.CONTINUE),
        ShippedStep(
            "sms",
            Audience.ROUTES,
            "matching.nobody_found_for",
            on_failure=OnFailure.CONTINUE,
            may_arrive_twice=True,
            profile_key=ON_CALL,
        ),
    ),
    _plan(
        "matching.nobody_found_again",
        "Yine bulunamadı",
        "Yaşlıya söylenir; koordinatörlere az sonra topluca söylenir.",
        _push_then_sms("matching.nobody_found"),
    ),
    _plan(
        "matching.nobody_found_joined",
        "Yine bulunamadı (koordinatör)",
        "Koordinatöre kimin kaç kez aradığı söylenir.",
        _push_then_sms("matching.nobody_found_joined"),
    ),
    _plan(
        "matching.nobody_found_on_call",
        "Yine bulunamadı (nöbetçi)",
        "Nöbetçi koordinatöre kimin kaç kez aradığı söylenir.",
        ShippedStep("sms", Audience.ROUTES, "matching.nobody_found_joined", may_arrive_twice=True, profile_key=ON_CALL),
    ),
    _plan(
        "matching.student_withdrew",
        "Öğrenci vazgeçti",
        "Koordinatöre kimin kaç kez vazgeçtiği söylenir.",
        _push_then_sms("matching.student_withdrew"),
    ),
    _plan(
        "matching.short_visits",
        "Çok kısa görevler",
        "Koordinatöre kimin kaç görevi birkaç dakikada bitirdiği söylenir.",
        _push_then_sms("matching.short_visits"),
    ),
    _plan("matching.cancelled", "İptal edildi", "Öğrenciye söylenir.", _push("matching.cancelled")),
    _plan("matching.assigned_to_you", "Görev verildi", "Öğrenciye söylenir.", _push("matching.assigned_to_you")),
    _plan("matching.released", "Görev geri alındı", "Öğrenciye söylenir.", _push("matching.released")),
    _plan(
        "matching.nobody_found_for",
        "Kimse bulunamadı (koordinatör)",
        "Koordinatöre kimin aradığı söylenir.",
        _push_then_sms("matching.nobody_found_for"),
    ),
    _plan(
        "matching.not_started",
        "Başlamadı",
        "Koordinatöre kimin beklediği söylenir.",
        _push_then_sms("matching.not_started"),
    ),
    _plan(
        "matching.not_completed",
        "Bitmedi",
        "Koordinatöre kimin beklediği söylenir.",
        _push_then_sms("matching.not_completed"),
    ),
    _plan(
        "matching.elder_left",
        "Listeden çıkan yaşlı",
        "Koordinatöre kimin talebinin kapandığı söylenir.",
        _push_then_sms("matching.elder_left"),
    ),
    _plan(DEAD_LETTERS, "Ulaşmayan mesajlar", "Koordinatöre kaç mesajın kaldığı söylenir.", _push(DEAD_LETTERS)),
    _plan(JOB_FAILED, "İş başarısız", "Yöneticiye hangi işin başarısız olduğu söylenir.", _push(JOB_FAILED)),
    _plan(
        ROSTER_RUN,
        "Listeler alındı",
        "Web kancalarına nelerin değiştiği söylenir.",
        ShippedStep("webhook", Audience.ROUTES, ROSTER_RUN, profile_key=ROSTER_WATCHERS),
    ),
    _plan(ROSTER_HELD_BACK, "Liste uygulanmadı", "Yöneticiye söylenir.", _push(ROSTER_HELD_BACK)),
    _plan(ROSTER_REFUSED, "Liste alınamadı", "Yöneticiye hangisi olduğu söylenir.", _push(ROSTER_REFUSED)),
)

PROFILES = {ON_CALL: "Nöbetçi koordinatör", ROSTER_WATCHERS: "Liste izleyicileri"}

# Steps and routes are inserted only together with their plan, because an operator may have removed those of an existing
# plan.
_INSTALL = text(
    """
    WITH profiles AS (
        INSERT INTO recipient_profiles (key, name, status)
        SELECT key, name, false FROM json_to_recordset(CAST(:profiles AS json)) AS row(key text, name text)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING id, key
    ), templates AS (
        INSERT INTO message_templates (key, locale, subject, body)
        SELECT key, locale, subject, body
          FROM json_to_recordset(CAST(:templates AS json)) AS row(key text, locale text, subject text, body text)
         WHERE NOT EXISTS (SELECT FROM message_templates t WHERE t.key = row.key AND t.locale = row.locale)
    ), plans AS (
        INSERT INTO action_plans (key, name, description)
        SELECT key, name, description
          FROM json_to_recordset(CAST(:plans AS json)) AS row(key text, name text, description text)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING id, key
    ), steps AS (
        SELECT plans.id AS action_plan_id, row.*
          FROM json_to_recordset(CAST(:steps AS json)) AS row(
               plan_key text, step_order int, channel_type text, audience text, template_key text, on_failure text,
               fallback text, within_s int, may_arrive_twice boolean, profile_key text)
          JOIN plans ON plans.key = row.plan_key
    ), inserted_steps AS (
        INSERT INTO action_plan_steps (action_plan_id, step_order, channel_type, audience, template_key, on_failure,
                                       fallback, within_s, may_arrive_twice)
        SELECT action_plan_id, step_order, channel_type, audience, template_key, on_failure,
               CAST(fallback AS text[]), within_s, may_arrive_twice
          FROM steps
    )
    INSERT INTO action_routes (action_plan_id, step_order, recipient_profile_id)
    SELECT steps.action_plan_id, steps.step_order, profile.id
      FROM steps
      JOIN (SELECT id, key FROM profiles UNION SELECT id, key FROM recipient_profiles WHERE key IS NOT NULL) AS profile
        ON profile.key = steps.profile_key
    """
)


def install_shipped(conn: Connection) -> None:
    conn.execute(_INSTALL, _rows())


@cache
def _rows() -> dict[str, str]:
    templates = [
        {"key": key, "locale": locale, **asdict(words)}
        for key, locales in TEMPLATES.items()
        for locale, words in locales.items()
    ]
    rows: dict[str, list[dict[str, Any]]] = {
        "profiles": [{"key": key, "name": name} for key, name in PROFILES.items()],
        "templates": templates,
        "plans": [{"key": plan.key, "name": plan.name, "description": plan.description} for plan in PLANS],
        "steps": [
            {"plan_key": plan.key, "step_order": order, **asdict(step), "fallback": f"{{{','.join(step.fallback)}}}"}
            for plan in PLANS
            for order, step in enumerate(plan.steps, 1)
        ],
    }
    return {name: json.dumps(values, ensure_ascii=False) for name, values in rows.items()}
