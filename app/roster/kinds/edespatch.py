"""Taxpayers who send and receive electronic despatch advices."""

from app.roster.kinds.gib_lists import GIB_LISTS, HASHED
from app.roster.kinds.kind import Kind

KIND = Kind(
    name="edespatch",
    document_type=2,
    source=GIB_LISTS,
    document="DespatchAdvice",
    hashed=HASHED,
    answers_in_service_time=True,
)
