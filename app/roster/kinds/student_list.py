"""Students who may volunteer, as their universities list them."""

from app.roster.kinds.kind import Kind
from app.roster.kinds.people_lists import HASHED, people_lists
from app.users.models import Role

KIND = Kind(
    name="students",
    document_type=3,
    source=people_lists("students", record="student"),
    hashed=HASHED,
    role=Role.STUDENT,
)
