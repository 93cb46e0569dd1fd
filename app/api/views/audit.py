"""The audit trail, for administrators."""

from app.api.access import ADMIN
from app.api.routing import Call, Routes
from app.api.schemas import AuditEntryJson, PageJson, PageQuery
from app.delivery import service as delivery
from app.foundation.errors import InvalidValue

routes = Routes("Audit")


@routes.add("GET", "/api/v1/audit", who=ADMIN, answers={200: PageJson[AuditEntryJson]}, errors=(InvalidValue,))
def list_audit_entries(call: Call, query: PageQuery) -> PageJson[AuditEntryJson]:
    """List the audit trail, newest first.

    The hash of each entry covers the hash of the entry before it; `python -m app audit verify` checks the chain.
    """
    with call.services.db.reading() as conn:
        page = delivery.list_audit_entries(conn, cursor=query.cursor, limit=query.limit)
    return PageJson[AuditEntryJson].model_validate(page)
