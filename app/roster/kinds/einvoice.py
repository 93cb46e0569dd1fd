"""Taxpayers who send and receive electronic invoices."""

from app.roster.kinds.gib_lists import GIB_LISTS, HASHED
from app.roster.kinds.kind import Kind

KIND = Kind(
    name="einvoice",
    document_type=1,
    source=GIB_LISTS,
    document="Invoice",
    hashed=HASHED,
    answers_in_service_time=True,
)
