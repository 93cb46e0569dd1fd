"""Errors of requests for actions."""

from app.foundation.errors import Conflict, NotFound


class PlanNotFound(NotFound):
    """There is no such plan, or it is retired or switched off."""

    code = "plan_not_found"


class EvaluationKeyReused(Conflict):
    """The evaluation key was used for another plan, other variables, or another recipient."""

    code = "evaluation_key_reused"
