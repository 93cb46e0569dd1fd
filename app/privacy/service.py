"""Privacy: data that is forgotten after its time, and people who want to be forgotten."""

from app.privacy.forget_person import Forgetting, StillSending, forget_person
from app.privacy.retention import KINDS, RetentionRun, run_retention

__all__ = ["KINDS", "Forgetting", "RetentionRun", "StillSending", "forget_person", "run_retention"]
