"""The functions of delivery that other packages may call. Each call runs in the caller's transaction."""

from app.delivery.actions.redrive import redrive_dead_letter, redrive_dead_letters
from app.delivery.actions.request_format import new_trace_id, problem_with_variables
from app.delivery.actions.service import ReadPlans, cancel_actions, read_plan, read_plan_where, request_actions
from app.delivery.actions.views import get_action, list_actions
from app.delivery.audit_heads import read_heads
from app.delivery.channels.audit_list import list_audit_entries
from app.delivery.channels.audit_trail import verify_audit_trail
from app.delivery.channels.inbox import list_messages, mark_read
from app.delivery.channels.push_subscription import read_subscription
from app.delivery.channels.recorded_pushes import check_pushes_recorded, list_recorded_pushes
from app.delivery.directory.keepers import (
    check_channel_change,
    check_keeper,
    check_profile_change,
    seen_channels,
    seen_profiles,
)
from app.delivery.directory.service import CHANNELS, PROFILES, forget_old_secrets, rotate_secret, without_headers
from app.delivery.directory.verification import confirm_verification, start_verification
from app.delivery.forget_recipient import (
    append_to_audit_trail,
    count_being_sent,
    count_kept,
    forget_copies,
    forget_directory,
    forget_words,
    stop_messages,
)
from app.delivery.messages.backlog import count_live_notifications, longest_wait_s, watch_backlog
from app.delivery.messages.dead_letter_views import count_open_dead_letters, get_dead_letter, list_dead_letters
from app.delivery.messages.dead_letters import discard_dead_letter, discard_dead_letters
from app.delivery.messages.sending_limits import count_action, count_message
from app.delivery.messages.service_levels import measure_service_levels
from app.delivery.messages.submit import refusals_of_submission, submit_later, submit_notification
from app.delivery.messages.views import get_notification, list_notifications
from app.delivery.old_messages import MONTHLY, OLD_MESSAGES
from app.delivery.plans.service import (
    PLANS,
    ROUTES,
    STEPS,
    TEMPLATES,
    create_step,
    edit_step,
    list_steps,
    preview_template,
    retire_step,
    show_step,
)
from app.delivery.plans.shipped_plans import install_shipped
from app.delivery.traces_of_person import find_traces, is_address_of_others, own_addresses, spellings
from app.delivery.words.rendering import preview_words

__all__ = [
    "CHANNELS",
    "MONTHLY",
    "OLD_MESSAGES",
    "PLANS",
    "PROFILES",
    "ROUTES",
    "STEPS",
    "TEMPLATES",
    "ReadPlans",
    "append_to_audit_trail",
    "cancel_actions",
    "check_channel_change",
    "check_keeper",
    "check_profile_change",
    "check_pushes_recorded",
    "confirm_verification",
    "count_action",
    "count_being_sent",
    "count_kept",
    "count_live_notifications",
    "count_message",
    "count_open_dead_letters",
    "create_step",
    "discard_dead_letter",
    "discard_dead_letters",
    "edit_step",
    "find_traces",
    "forget_copies",
    "forget_directory",
    "forget_old_secrets",
    "forget_words",
    "get_action",
    "get_dead_letter",
    "get_notification",
    "install_shipped",
    "is_address_of_others",
    "list_actions",
    "list_audit_entries",
    "list_dead_letters",
    "list_messages",
    "list_notifications",
    "list_recorded_pushes",
    "list_steps",
    "longest_wait_s",
    "mark_read",
    "measure_service_levels",
    "new_trace_id",
    "own_addresses",
    "preview_template",
    "preview_words",
    "problem_with_variables",
    "read_heads",
    "read_plan",
    "read_plan_where",
    "read_subscription",
    "redrive_dead_letter",
    "redrive_dead_letters",
    "refusals_of_submission",
    "request_actions",
    "retire_step",
    "rotate_secret",
    "seen_channels",
    "seen_profiles",
    "show_step",
    "spellings",
    "start_verification",
    "stop_messages",
    "submit_later",
    "submit_notification",
    "verify_audit_trail",
    "watch_backlog",
    "without_headers",
]
