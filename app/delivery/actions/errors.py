"""Requests for actions that cannot be carried out."""

from app.foundation.errors import Conflict, NotFound


class PlanNotFound(NotFound):
    """There is no such plan, or it is retired or switched off."""

    code = "plan_not_found"


class EvaluationKeyReused(Conflict):
    """One evaluation cannot ask for two plans."""

    code = "evaluation_key_reused"
