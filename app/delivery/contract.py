"""The values and errors of delivery that other packages use."""

from app.delivery.actions.errors import EvaluationKeyReused, PlanNotFound
from app.delivery.actions.models import Origin
from app.delivery.actions.redrive import DeadLetterTooLate, NothingToRedrive
from app.delivery.actions.request_format import LONGEST_KEY, MOST_VARIABLES_BYTES
from app.delivery.actions.requests import NewAction
from app.delivery.actions.states import ActionStatus, StepState
from app.delivery.audit_heads import KnownHeads
from app.delivery.channels.audit_list import WITH_UUIDS, AuditFilter, SubjectKind
from app.delivery.channels.audit_trail import GENESIS, Verified
from app.delivery.channels.inbox import MessageNotFound
from app.delivery.channels.recorded_pushes import PushesNotRecorded
from app.delivery.directory.errors import (
    AlreadyVerified,
    ChannelDisabled,
    NotAWebhook,
    NotYourProfile,
    ProfileHasChannels,
    VerificationExpired,
    VerificationNeedsNoCode,
    VerificationNotRunning,
    VerificationTooSoon,
    VerificationTriesUsedUp,
    WrongVerificationCode,
)
from app.delivery.directory.states import VerifyStatus
from app.delivery.messages.addresses import InvalidAddress
from app.delivery.messages.backlog import Backlog, BacklogFull
from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.delivery.messages.dead_letter_views import EVERY, DeadLetterCriteria, DeadLetterView
from app.delivery.messages.dead_letters import DeadLetterClosed
from app.delivery.messages.message_log import SUBMITTED
from app.delivery.messages.outcomes import MAY_LACK_DEAD_LETTER
from app.delivery.messages.rules import DeliveryRules
from app.delivery.messages.sending_limits import SendingLimited, SendingLimits
from app.delivery.messages.service_levels import ServiceLevels
from app.delivery.messages.submit import NewSubmission, SubmissionKey
from app.delivery.messages.values import Notification, NotificationStatus, NotificationType, Outcome, Priority
from app.delivery.plans.errors import ShippedPlan, ShippedTemplate, StepOrderTaken, TemplateInUse, TemplateTaken
from app.delivery.plans.models import Audience, OnFailure
from app.delivery.plans.service import HIGHEST_ORDER
from app.delivery.traces_of_person import FoundTraces, PersonTraces
from app.delivery.witnessed_deed import OPERATOR, WitnessedDeed
from app.delivery.words.rendering import Words

__all__ = [
    "EVERY",
    "GENESIS",
    "HIGHEST_ORDER",
    "LONGEST_KEY",
    "MAY_LACK_DEAD_LETTER",
    "MOST_VARIABLES_BYTES",
    "OPERATOR",
    "SUBMITTED",
    "WITH_UUIDS",
    "ActionStatus",
    "AlreadyVerified",
    "Audience",
    "AuditFilter",
    "Backlog",
    "BacklogFull",
    "ChannelDisabled",
    "DeadLetterClosed",
    "DeadLetterCriteria",
    "DeadLetterStatus",
    "DeadLetterTooLate",
    "DeadLetterView",
    "DeliveryRules",
    "EvaluationKeyReused",
    "FoundTraces",
    "InvalidAddress",
    "KnownHeads",
    "MessageNotFound",
    "NewAction",
    "NewSubmission",
    "NotAWebhook",
    "NotYourProfile",
    "NothingToRedrive",
    "Notification",
    "NotificationStatus",
    "NotificationType",
    "OnFailure",
    "Origin",
    "Outcome",
    "PersonTraces",
    "PlanNotFound",
    "Priority",
    "ProfileHasChannels",
    "PushesNotRecorded",
    "SendingLimited",
    "SendingLimits",
    "ServiceLevels",
    "ShippedPlan",
    "ShippedTemplate",
    "StepOrderTaken",
    "StepState",
    "SubjectKind",
    "SubmissionKey",
    "TemplateInUse",
    "TemplateTaken",
    "VerificationExpired",
    "VerificationNeedsNoCode",
    "VerificationNotRunning",
    "VerificationTooSoon",
    "VerificationTriesUsedUp",
    "Verified",
    "VerifyStatus",
    "WitnessedDeed",
    "Words",
    "WrongVerificationCode",
]
