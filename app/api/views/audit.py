"""The audit trail, for administrators."""

from app.api.access import ADMIN
from app.api.routing import Call, Routes
from app.api.schemas import AuditEntryJson, AuditQuery, PageJson
from app.delivery import service as delivery
from app.delivery.contract import WITH_UUIDS, AuditFilter, SubjectKind
from app.foundation.errors import InvalidValue, InvalidValues

routes = Routes("Audit")


@routes.add("GET", "/api/v1/audit", who=ADMIN, answers={200: PageJson[AuditEntryJson]}, errors=(InvalidValue,))
def list_audit_entries(call: Call, query: AuditQuery) -> PageJson[AuditEntryJson]:
    """List the audit trail, newest first.

    The hash of each entry covers the hash of the entry before it; `python -m app audit verify` checks the chain.
    """
    filter_ = _filter(query)
    with call.services.db.reading() as conn:
        page = delivery.list_audit_entries(conn, filter_, cursor=query.cursor, limit=query.limit)
    return PageJson[AuditEntryJson].model_validate(page)


def _filter(query: AuditQuery) -> AuditFilter:
    kind, id_ = query.subject_kind, query.subject_id
    problems = _problems_of_subject(kind, id_)
    if query.since is not None and query.until is not None and query.until <= query.since:
        problems["until"] = "must be after since"
    if problems:
        raise InvalidValues(problems)
    about = None if kind is None or id_ is None else (kind, id_)
    return AuditFilter(query.author, query.deed, about, query.since, query.until)


def _problems_of_subject(kind: SubjectKind | None, id_: str | None) -> dict[str, str]:
    if (kind is None) != (id_ is None):
        return {"subjectKind": "is required with subjectId"} if kind is None else {"subjectId": "is required"}
    if kind is None or id_ is None or ("-" in id_) == (kind in WITH_UUIDS):
        return {}
    return {"subjectId": "must be a UUID" if kind in WITH_UUIDS else "must be a whole number"}
