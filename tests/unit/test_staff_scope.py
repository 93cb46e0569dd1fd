import pytest

from app.users.contract import EVERYTHING, StaffScope, scope_of
from app.users.models import Caller, Role


def caller(role: Role, institution_id: int | None) -> Caller:
    return Caller(7, role, "Zeynep Koç", "tr", institution_id)


def test_a_coordinator_of_an_institution_sees_and_reaches_its_people_and_themselves() -> None:
    scope = scope_of(caller(Role.COORDINATOR, 34))
    assert scope == StaffScope(7, 34)
    assert scope.sees("n.institution_id") == "n.institution_id = 34"
    assert scope.values == {"scope_institution": 34, "scope_user": 7}
    reached = [scope.reaches(*user) for user in ((1, 34), (1, 35), (1, None), (7, 35))]
    assert reached == [True, False, False, True]


@pytest.mark.parametrize(
    "scope", [EVERYTHING, scope_of(caller(Role.COORDINATOR, None)), scope_of(caller(Role.ADMIN, 34))]
)
def test_without_an_institution_and_for_admins_nothing_is_hidden(scope: StaffScope) -> None:
    assert scope.is_everything
    assert (scope.sees("n.institution_id"), scope.values["scope_institution"]) == ("true", None)
    assert scope.reaches(1, 35) and scope.reaches(1, None)


@pytest.mark.parametrize("role", [Role.ELDER, Role.STUDENT])
def test_elders_and_students_have_no_scope(role: Role) -> None:
    with pytest.raises(AssertionError):
        scope_of(caller(role, 34))
