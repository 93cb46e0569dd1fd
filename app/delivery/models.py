"""The tables of delivery."""

from app.db.outbox import action_events
from app.delivery.actions.models import actions
from app.delivery.channels.models import audit_entries, in_app_messages, recorded_pushes
from app.delivery.directory.models import channel_verifications, recipient_channels, recipient_profiles
from app.delivery.messages.models import (
    dead_letters,
    delivery_alarms,
    notification_attempts,
    notification_counts,
    notification_keys,
    notifications,
    sending_counts,
)
from app.delivery.plans.models import action_plan_steps, action_plans, action_routes
from app.delivery.words.models import message_templates

__all__ = [
    "action_events",
    "action_plan_steps",
    "action_plans",
    "action_routes",
    "actions",
    "audit_entries",
    "channel_verifications",
    "dead_letters",
    "delivery_alarms",
    "in_app_messages",
    "message_templates",
    "notification_attempts",
    "notification_counts",
    "notification_keys",
    "notifications",
    "recipient_channels",
    "recipient_profiles",
    "recorded_pushes",
    "sending_counts",
]
