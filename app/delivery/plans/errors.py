from app.foundation.errors import Conflict


class ShippedPlan(Conflict):
    """The product itself requests this plan: it can be edited and switched off, but neither retired nor emptied."""

    code = "shipped_plan"


class ShippedTemplate(Conflict):
    """A shipped plan or the product itself uses this template: it can be edited, but not retired."""

    code = "shipped_template"


class TemplateInUse(Conflict):
    """A step of a plan uses this template; give the step another one first."""

    code = "template_in_use"


class StepOrderTaken(Conflict):
    """Another step of this plan has this order."""

    code = "step_order_taken"

    def __init__(self) -> None:
        super().__init__("Another step of this plan has this order.")


class TemplateTaken(Conflict):
    """There is already a template with this key in this language."""

    code = "template_taken"

    def __init__(self) -> None:
        super().__init__("There is a template of this key in this language. Edit that one.")
